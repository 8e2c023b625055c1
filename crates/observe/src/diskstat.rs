//! The counters of one block device as the kernel prints them in `/sys/block/*/stat` and `/proc/diskstats`. It keeps
//! the kernel's own units (sectors of 512 bytes, milliseconds) and derives nothing.

use crate::{ObserveError, read_text};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The kernel's sector in every counter, whatever the device's block size.
pub const SECTOR_BYTES: u64 = 512;

/// Fields that every kernel since 2.6.25 prints; 4.18 added four for discards, 5.5 two for flushes.
const FIELDS_OLD: usize = 11;
const FIELDS_DISCARD: usize = 15;
const FIELDS_FLUSH: usize = 17;

/// Longer than 17 numbers of 20 digits.
const STAT_BUFFER_BYTES: usize = 512;

/// The 17 counters of a device since it was registered (Documentation/admin-guide/iostats.rst).
///
/// All but `in_flight` only grow. They move when a request *completes*. The `ticks` are milliseconds in 32 bits and
/// wrap. `io_ticks_ms` grows by whole jiffies, so short intervals and fast devices show it coarsely. `None` means that
/// the kernel does not count it: discards before 4.18, flushes before 5.5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStat {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads merged into a neighbour before they were issued.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Time that reads took, summed over reads.
    pub read_ticks_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes merged into a neighbour before they were issued.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Time that writes took, summed over writes.
    pub write_ticks_ms: u64,
    /// Requests in the driver now; the one field that also falls.
    pub in_flight: u64,
    /// Time with at least one request in flight.
    pub io_ticks_ms: u64,
    /// Time that all requests took, summed; since 5.0 it is the sum of the four `ticks` of completed requests.
    pub time_in_queue_ms: u64,
    /// Discards completed.
    pub discard_ios: Option<u64>,
    /// Discards merged.
    pub discard_merges: Option<u64>,
    /// Sectors discarded.
    pub discard_sectors: Option<u64>,
    /// Time that discards took.
    pub discard_ticks_ms: Option<u64>,
    /// Flush requests completed; the kernel does not count them for partitions.
    pub flush_ios: Option<u64>,
    /// Time that flushes took.
    pub flush_ticks_ms: Option<u64>,
}

/// One line of `/proc/diskstats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskstatsLine {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Kernel name.
    pub name: String,
    /// Its counters.
    pub stat: DiskStat,
}

impl DiskStat {
    /// Reads the text of a `stat` file: 11, 15, 17 or more numbers; what comes after the 17th is not known to us and is
    /// left alone.
    ///
    /// # Errors
    /// Fewer than 11 fields, or a field that is no number.
    pub fn parse(text: &str) -> Result<Self, ObserveError> {
        let mut fields = [0; FIELDS_FLUSH];
        let mut found = 0;
        for (slot, word) in fields.iter_mut().zip(text.split_ascii_whitespace()) {
            *slot = word.parse().map_err(|_| ObserveError::NotANumber { text: word.to_owned() })?;
            found += 1;
        }
        if found < FIELDS_OLD {
            return Err(ObserveError::TooFewFields { found, wanted: FIELDS_OLD });
        }
        let discard = |index: usize| (found >= FIELDS_DISCARD).then_some(fields[index]);
        let flush = |index: usize| (found >= FIELDS_FLUSH).then_some(fields[index]);
        Ok(Self {
            read_ios: fields[0],
            read_merges: fields[1],
            read_sectors: fields[2],
            read_ticks_ms: fields[3],
            write_ios: fields[4],
            write_merges: fields[5],
            write_sectors: fields[6],
            write_ticks_ms: fields[7],
            in_flight: fields[8],
            io_ticks_ms: fields[9],
            time_in_queue_ms: fields[10],
            discard_ios: discard(11),
            discard_merges: discard(12),
            discard_sectors: discard(13),
            discard_ticks_ms: discard(14),
            flush_ios: flush(15),
            flush_ticks_ms: flush(16),
        })
    }

    /// Reads the whole text of `/proc/diskstats`, one device per line, empty lines left out.
    ///
    /// # Errors
    /// The first line that is not `major minor name` and at least 11 counters.
    pub fn parse_diskstats(text: &str) -> Result<Vec<DiskstatsLine>, ObserveError> {
        text.lines().filter(|line| !line.trim().is_empty()).map(parse_line).collect()
    }

    /// Bytes read and written since the device was registered.
    #[must_use]
    pub fn moved_bytes(&self) -> u64 {
        self.read_sectors.saturating_add(self.write_sectors).saturating_mul(SECTOR_BYTES)
    }
}

/// The counters of one device: `<sys>/dev/block/<major:minor>/stat`.
///
/// # Errors
/// Where the file cannot be read, or is no list of counters (`InvalidData`).
pub fn read_stat(sys: &Path, major_minor: &str) -> io::Result<DiskStat> {
    let path = sys.join("dev/block").join(major_minor).join("stat");
    let text = read_text(&path).map_err(into_io)?;
    DiskStat::parse(&text).map_err(into_io)
}

/// A `stat` file that stays open, so that one sample is one `pread`.
#[derive(Debug)]
pub(crate) struct StatFile {
    file: File,
    path: PathBuf,
}

impl StatFile {
    pub(crate) fn open(path: PathBuf) -> Result<Self, ObserveError> {
        match File::open(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(ObserveError::Read { path, source }),
        }
    }

    /// One sample. Sysfs makes the text anew for a read at offset 0.
    pub(crate) fn read(&self) -> Result<DiskStat, ObserveError> {
        let mut buffer = [0; STAT_BUFFER_BYTES];
        let length = self
            .file
            .read_at(&mut buffer, 0)
            .map_err(|source| ObserveError::Read { path: self.path.clone(), source })?;
        DiskStat::parse(&String::from_utf8_lossy(&buffer[..length]))
    }
}

fn into_io(error: ObserveError) -> io::Error {
    match error {
        ObserveError::Read { source, .. } => source,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

fn parse_line(line: &str) -> Result<DiskstatsLine, ObserveError> {
    let (major, rest) = first_word(line);
    let (minor, rest) = first_word(rest);
    let (name, counters) = first_word(rest);
    let number = |word: &str| word.parse().map_err(|_| ObserveError::NotANumber { text: word.to_owned() });
    Ok(DiskstatsLine {
        major: number(major)?,
        minor: number(minor)?,
        name: name.to_owned(),
        stat: DiskStat::parse(counters)?,
    })
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_generations_of_kernels() {
        let eleven = DiskStat::parse(" 1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        assert_eq!((eleven.read_ios, eleven.in_flight, eleven.time_in_queue_ms), (1, 9, 11));
        assert_eq!((eleven.discard_ios, eleven.flush_ios), (None, None));
        let fifteen = DiskStat::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!((fifteen.discard_ios, fifteen.discard_ticks_ms), (Some(12), Some(15)));
        assert_eq!(fifteen.flush_ios, None);
        let seventeen = DiskStat::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19").unwrap();
        assert_eq!((seventeen.flush_ios, seventeen.flush_ticks_ms), (Some(16), Some(17)));
        assert_eq!(seventeen.moved_bytes(), (3 + 7) * 512);
    }

    #[test]
    fn what_is_no_list_of_counters_is_an_error() {
        assert!(matches!(DiskStat::parse(""), Err(ObserveError::TooFewFields { found: 0, .. })));
        assert!(matches!(DiskStat::parse("1 2 3 4"), Err(ObserveError::TooFewFields { found: 4, .. })));
        let error = DiskStat::parse("1 2 3 four 5 6 7 8 9 10 11").unwrap_err();
        assert_eq!(error.to_string(), "\"four\" is not a counter");
        assert!(DiskStat::parse("1 2 3 -4 5 6 7 8 9 10 11").is_err());
    }

    #[test]
    fn diskstats_of_a_real_machine() {
        // Linux 6.18, 2026-11: /proc/diskstats of a virtual machine with one disk and loop devices.
        let text = include_str!("../tests/fixtures/diskstats-6.18.txt");
        let lines = DiskStat::parse_diskstats(text).unwrap();
        assert_eq!(lines.len(), text.lines().count());
        let disk = lines.iter().find(|line| line.name == "vda").unwrap();
        assert_eq!((disk.major, disk.minor), (254, 0));
        assert!(disk.stat.flush_ios.is_some());
        assert!(disk.stat.moved_bytes() > 0);
        assert!(DiskStat::parse_diskstats("7 0 loop0 1 2 3\n").is_err());
        assert!(DiskStat::parse_diskstats("7 zero loop0 1 2 3 4 5 6 7 8 9 10 11\n").is_err());
    }

    #[test]
    fn a_stat_file_is_found_by_device_number() {
        let sys = tempfile::tempdir().unwrap();
        let directory = sys.path().join("dev/block/7:3");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("stat"), "1 0 8 0 0 0 0 0 0 0 0").unwrap();
        assert_eq!(read_stat(sys.path(), "7:3").unwrap().read_sectors, 8);
        assert_eq!(read_stat(sys.path(), "7:4").unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(directory.join("stat"), "gone").unwrap();
        assert_eq!(read_stat(sys.path(), "7:3").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
