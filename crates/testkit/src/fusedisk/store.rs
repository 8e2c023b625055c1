//! The written content of the disk, in memory; with a volatile write cache, also the content of the stable media. It knows
//! no times.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// What happens to unflushed writes at a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteCache {
    /// They are kept.
    #[default]
    Safe,
    /// They are lost.
    Volatile,
}

/// The content of a disk.
#[derive(Debug)]
pub(crate) struct Store {
    /// As the disk returns it.
    current: File,
    /// As it would be after a power cut; `None` if that is the same.
    stable: Option<Stable>,
}

#[derive(Debug)]
struct Stable {
    media: File,
    /// First byte and end of ranges that differ, apart from each other.
    dirty: BTreeMap<u64, u64>,
}

impl Store {
    /// A disk of zeros.
    pub(crate) fn new(capacity_bytes: u64, write_cache: WriteCache) -> io::Result<Self> {
        let stable = match write_cache {
            WriteCache::Safe => None,
            WriteCache::Volatile => Some(Stable { media: memory(capacity_bytes)?, dirty: BTreeMap::new() }),
        };
        Ok(Self { current: memory(capacity_bytes)?, stable })
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        self.current.read_exact_at(buffer, offset_bytes)
    }

    pub(crate) fn write(&mut self, data: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.current.write_all_at(data, offset_bytes)?;
        if let Some(stable) = &mut self.stable {
            stable.add(offset_bytes..offset_bytes + data.len() as u64);
        }
        Ok(())
    }

    /// A write directly to stable media.
    pub(crate) fn write_through(&mut self, data: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.write(data, offset_bytes)?;
        match &mut self.stable {
            // Other dirty data in the same range has just been overwritten.
            Some(stable) => {
                stable.media.write_all_at(data, offset_bytes)?;
                stable.remove(&(offset_bytes..offset_bytes + data.len() as u64));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Moves everything to stable media.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.stable {
            Some(stable) => copy(&self.current, &stable.media, std::mem::take(&mut stable.dirty)),
            None => Ok(()),
        }
    }

    /// Reverts everything to what is on stable media.
    pub(crate) fn lose(&mut self) -> io::Result<()> {
        match &mut self.stable {
            Some(stable) => copy(&stable.media, &self.current, std::mem::take(&mut stable.dirty)),
            None => Ok(()),
        }
    }

    /// Bytes that a power cut would lose.
    pub(crate) fn volatile_bytes(&self) -> u64 {
        self.stable.iter().flat_map(|stable| &stable.dirty).map(|(first, end)| end - first).sum()
    }
}

impl Stable {
    fn add(&mut self, range: Range<u64>) {
        let (mut first, mut end) = (range.start, range.end);
        // Neighbours are joined, so that a sequential writer leaves one range.
        while let Some((&other, &other_end)) = self.dirty.range(..=end).next_back() {
            if other_end < first {
                break;
            }
            self.dirty.remove(&other);
            (first, end) = (first.min(other), end.max(other_end));
        }
        if first < end {
            self.dirty.insert(first, end);
        }
    }

    fn remove(&mut self, range: &Range<u64>) {
        let touched: Vec<(u64, u64)> = self
            .dirty
            .range(..range.end)
            .rev()
            .take_while(|(_, end)| **end > range.start)
            .map(|(first, end)| (*first, *end))
            .collect();
        for (first, end) in touched {
            self.dirty.remove(&first);
            if first < range.start {
                self.dirty.insert(first, range.start);
            }
            if range.end < end {
                self.dirty.insert(range.end, end);
            }
        }
    }
}

/// Up to this size a disk has all its memory from the start: the first write of a page would be slower than later ones, which no model
/// of a disk says.
const ALLOCATED_BYTES: u64 = 128 << 20;

/// An unnamed file in memory, so that the machine's own disk does not affect the times; a large one is sparse.
fn memory(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("rdsk-fusedisk", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(bytes)?;
    if bytes <= ALLOCATED_BYTES {
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    }
    Ok(file)
}

fn copy(from: &File, to: &File, ranges: BTreeMap<u64, u64>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for (mut at, end) in ranges {
        while at < end {
            let step = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
            from.read_exact_at(&mut buffer[..step], at)?;
            to.write_all_at(&buffer[..step], at)?;
            at += step as u64;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(store: &Store) -> Vec<u8> {
        let mut buffer = vec![0; 16];
        store.read(&mut buffer, 0).unwrap();
        buffer
    }

    fn dirty(store: &Store) -> Vec<(u64, u64)> {
        let stable = store.stable.as_ref().unwrap();
        stable.dirty.iter().map(|(first, end)| (*first, *end)).collect()
    }

    #[test]
    fn what_was_flushed_outlives_the_power() {
        let mut store = Store::new(16, WriteCache::Volatile).unwrap();
        store.write(b"aaaa", 0).unwrap();
        store.flush().unwrap();
        store.write(b"bb", 2).unwrap();
        store.write_through(b"cc", 8).unwrap();
        store.write(b"d", 15).unwrap();
        assert_eq!(content(&store), b"aabb\0\0\0\0cc\0\0\0\0\0d");
        assert_eq!(store.volatile_bytes(), 3);
        store.lose().unwrap();
        assert_eq!(content(&store), b"aaaa\0\0\0\0cc\0\0\0\0\0\0");
        assert_eq!(store.volatile_bytes(), 0);
    }

    #[test]
    fn a_safe_cache_loses_nothing() {
        let mut store = Store::new(16, WriteCache::Safe).unwrap();
        store.write(b"aaaa", 0).unwrap();
        store.lose().unwrap();
        assert_eq!(&content(&store)[..4], b"aaaa");
        assert_eq!(store.volatile_bytes(), 0);
    }

    #[test]
    fn ranges_join_and_split() {
        let mut store = Store::new(100, WriteCache::Volatile).unwrap();
        for (offset, bytes) in [(10, 10), (30, 10), (20, 5), (60, 10), (24, 7), (0, 0)] {
            store.write(&vec![1; bytes], offset).unwrap();
        }
        assert_eq!(dirty(&store), [(10, 40), (60, 70)]);
        store.write_through(&[2; 10], 15).unwrap();
        assert_eq!(dirty(&store), [(10, 15), (25, 40), (60, 70)]);
        store.write_through(&[2; 40], 30).unwrap();
        assert_eq!(dirty(&store), [(10, 15), (25, 30)]);
    }

    #[test]
    fn beyond_the_end_is_an_error() {
        let store = Store::new(16, WriteCache::Safe).unwrap();
        assert!(store.read(&mut [0; 8], 12).is_err());
    }
}
