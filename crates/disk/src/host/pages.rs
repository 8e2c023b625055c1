//! The page cache of one LUN: which buffers are there, dirty, being read or written. It makes no requests.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::CallSlot;

/// Stale entries of the eviction order below which a sweep is not worthwhile.
const MIN_SWEPT: usize = 1024;

/// Whether a range is on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsafe {
    /// All is.
    Nothing,
    /// Something is dirty, and nothing of it is being written.
    Dirty,
    /// Something is being written.
    Writing,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Its data is valid.
    pub(super) filled: bool,
    /// It must be written, and no request does so yet.
    pub(super) dirty: bool,
    /// A request writes it.
    pub(super) writing: bool,
    /// A request reads it.
    pub(super) reading: bool,
    pub(super) waiters: Vec<CallSlot>,
}

/// Buffers whose entries lie side by side in the table: a few hundred kilobytes of one file, as requests follow each other.
const NEIGHBOURS: u64 = 64;

/// Spreads the indices of buffers over the table, neighbours beside each other. They come from a model, not from an enemy, and there
/// is a look-up for each buffer of each simulated I/O: the standard hash took a third of the time of a run, and one that scatters
/// neighbours too made most look-ups wait for memory.
#[derive(Clone, Copy, Debug, Default)]
struct IndexHasher(u64);

impl Hasher for IndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let neighbour = value % NEIGHBOURS;
        // The golden ratio's fraction (Knuth, The Art of Computer Programming 3, 6.4).
        let mixed = (self.0.rotate_left(5) ^ (value / NEIGHBOURS)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The table takes the place from the lowest bits, so the product's halves are folded; what it compares in a place, the
        // highest bits, must differ among neighbours.
        self.0 = (mixed ^ (mixed >> 32)) ^ neighbour ^ neighbour.rotate_right(6);
    }
}

/// The cache of one LUN. Buffers are named by their index on the device.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    pages: HashMap<u64, Page, BuildHasherDefault<IndexHasher>>,
    /// Buffers in the order they came, for eviction; may name buffers that are gone, or one twice that came back.
    order: VecDeque<u64>,
    /// Dirty buffers with the time they became so, oldest first; may name buffers that are clean again.
    dirty: VecDeque<(u64, u64)>,
    /// Buffers dirty or being written.
    pub(super) unsafe_pages: u64,
    /// Buffers dirty and not being written.
    pub(super) dirty_pages: u64,
}

impl Pages {
    pub(super) fn get(&self, page: u64) -> Option<&Page> {
        self.pages.get(&page)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// When the oldest dirty buffer became so.
    pub(super) fn oldest_ns(&mut self) -> Option<u64> {
        while let Some(&(page, since_ns)) = self.dirty.front() {
            // A buffer that is being written returns to the list when that is done.
            if self.pages.get(&page).is_some_and(|page| page.dirty && !page.writing) {
                return Some(since_ns);
            }
            self.dirty.pop_front();
        }
        None
    }

    /// Whether a buffer of a range is dirty or being written, which decides whether direct I/O may bypass the cache.
    pub(super) fn unsafe_in(&self, range: &Range<u64>) -> Unsafe {
        let mut state = Unsafe::Nothing;
        if self.unsafe_pages == 0 {
            return state;
        }
        for page in range.clone().filter_map(|index| self.pages.get(&index)) {
            if page.writing {
                return Unsafe::Writing;
            }
            if page.dirty {
                state = Unsafe::Dirty;
            }
        }
        state
    }

    /// Takes the first dirty buffer of a range and its dirty successors in it, at most `most`, for one write request.
    pub(super) fn take_dirty_in(&mut self, range: &Range<u64>, most: u64) -> Option<(u64, u64)> {
        let takeable = |page: &Page| page.dirty && !page.writing;
        let first = range.clone().find(|index| self.pages.get(index).is_some_and(takeable))?;
        let mut count = 0;
        while count < most && range.contains(&(first + count)) {
            let Some(page) = self.pages.get_mut(&(first + count)).filter(|page| takeable(page)) else {
                break;
            };
            page.dirty = false;
            page.writing = true;
            self.dirty_pages -= 1;
            count += 1;
        }
        Some((first, count))
    }

    /// Inserts an empty buffer, and evicts the oldest clean ones while there are more than `most`.
    pub(super) fn enter(&mut self, page: u64, most: u64) -> &mut Page {
        if !self.pages.contains_key(&page) {
            self.order.push_back(page);
            let mut looks = self.order.len();
            while self.pages.len() as u64 >= most && looks > 0 {
                looks -= 1;
                let Some(oldest) = self.order.pop_front() else { break };
                match self.pages.get(&oldest) {
                    None if oldest == page => self.order.push_back(oldest),
                    Some(kept) if kept.dirty || kept.writing || kept.reading => self.order.push_back(oldest),
                    _ => {
                        self.pages.remove(&oldest);
                    }
                }
            }
        }
        self.pages.entry(page).or_default()
    }

    /// Marks a buffer's data as valid; returns the calls that waited.
    pub(super) fn fill(&mut self, page: u64) -> Vec<CallSlot> {
        let Some(page) = self.pages.get_mut(&page) else { return Vec::new() };
        page.reading = false;
        page.filled = true;
        std::mem::take(&mut page.waiters)
    }

    /// A read failed: the buffer is as if it had never been there.
    pub(super) fn forget_read(&mut self, page: u64) -> Vec<CallSlot> {
        self.pages.remove(&page).map_or(Vec::new(), |page| page.waiters)
    }

    pub(super) fn wait_for(&mut self, page: u64, call: CallSlot) {
        if let Some(page) = self.pages.get_mut(&page) {
            page.waiters.push(call);
        }
    }

    /// Marks a buffer as written to by a call.
    pub(super) fn dirty(&mut self, index: u64, now_ns: u64) {
        let Some(page) = self.pages.get_mut(&index) else { return };
        page.filled = true;
        if page.dirty {
            return;
        }
        page.dirty = true;
        self.dirty_pages += 1;
        if page.writing {
            return;
        }
        self.unsafe_pages += 1;
        self.dirty.push_back((index, now_ns));
    }

    /// Takes the oldest dirty buffer and its dirty successors, at most `most`, for one write request.
    pub(super) fn take_dirty(&mut self, most: u64) -> Option<(u64, u64)> {
        self.oldest_ns()?;
        let (first, _) = self.dirty.pop_front()?;
        let mut count = 0;
        loop {
            if let Some(page) = self.pages.get_mut(&(first + count)) {
                page.dirty = false;
                page.writing = true;
                self.dirty_pages -= 1;
            }
            count += 1;
            let next = first + count;
            let joins = self.dirty.front().is_some_and(|&(page, _)| page == next)
                && self.pages.get(&next).is_some_and(|page| page.dirty && !page.writing);
            if count >= most || !joins {
                return Some((first, count));
            }
            self.dirty.pop_front();
        }
    }

    /// A write request is done; a buffer written to meanwhile is dirty anew.
    pub(super) fn written(&mut self, index: u64, now_ns: u64) {
        let Some(page) = self.pages.get_mut(&index).filter(|page| page.writing) else { return };
        page.writing = false;
        if page.dirty {
            self.dirty.push_back((index, now_ns));
        } else {
            self.unsafe_pages -= 1;
        }
    }

    /// Drops all clean buffers in a range of indices.
    pub(super) fn drop_clean(&mut self, range: Range<u64>) {
        let clean = |page: &Page| !page.dirty && !page.writing && !page.reading;
        if range.end.saturating_sub(range.start) < self.pages.len() as u64 {
            for index in range {
                if self.pages.get(&index).is_some_and(clean) {
                    self.pages.remove(&index);
                }
            }
        } else {
            self.pages.retain(|index, page| !range.contains(index) || !clean(page));
        }
        // Entries of buffers that are gone are removed only occasionally, so that many small ranges stay cheap.
        if self.order.len() > 2 * self.pages.len() + MIN_SWEPT {
            let pages = &self.pages;
            let mut kept = HashSet::<u64, BuildHasherDefault<IndexHasher>>::default();
            kept.reserve(pages.len());
            self.order.retain(|index| pages.contains_key(index) && kept.insert(*index));
        }
    }

    /// How many buffers of a range of indices are there.
    pub(super) fn count(&self, range: &Range<u64>) -> u64 {
        let filled = |page: &Page| page.filled;
        if range.end.saturating_sub(range.start) < self.pages.len() as u64 {
            range.clone().filter(|index| self.pages.get(index).is_some_and(filled)).count() as u64
        } else {
            self.pages.iter().filter(|(index, page)| filled(page) && range.contains(index)).count() as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    #[test]
    fn neighbours_lie_side_by_side_and_differ_in_what_the_table_compares() {
        let hash = |index: u64| BuildHasherDefault::<IndexHasher>::default().hash_one(index);
        for first in [0, NEIGHBOURS, 1 << 20, 1 << 40] {
            let hashes: Vec<u64> = (first..first + NEIGHBOURS).map(hash).collect();
            let places: BTreeSet<u64> = hashes.iter().map(|hash| hash % (1 << 20)).collect();
            assert_eq!(places.len() as u64, NEIGHBOURS);
            assert_eq!(places.last().unwrap() - places.first().unwrap(), NEIGHBOURS - 1);
            let compared: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert_eq!(compared.len() as u64, NEIGHBOURS);
        }
        // Buffers far apart are not all at one distance from such a place.
        let places: BTreeSet<u64> = (0..NEIGHBOURS).map(|n| hash(n << 16) % NEIGHBOURS).collect();
        assert!(places.len() > 20, "{}", places.len());
    }
}
