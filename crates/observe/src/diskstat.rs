//! Reads the counters of block devices as the kernel prints them in `/sys/block/*/stat`. It derives no values.

use crate::ObserveError;
use rdsk_model::DiskStat;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Longer than 17 numbers of 20 digits.
const STAT_BUFFER_BYTES: usize = 512;

/// Parses a `stat` file: 11, 15, 17 or more numbers. Numbers after the 17th have no known meaning and are ignored.
///
/// # Errors
/// Fewer than 11 fields, or a field that is not a number.
pub fn parse_stat(text: &str) -> Result<DiskStat, ObserveError> {
    let mut fields = [0; DiskStat::MAX_FIELDS];
    let mut count = 0;
    for (slot, word) in fields.iter_mut().zip(text.split_ascii_whitespace()) {
        *slot = word.parse().map_err(|_| ObserveError::NotANumber(word.to_owned()))?;
        count += 1;
    }
    DiskStat::from_fields(&fields[..count])
        .ok_or(ObserveError::TooFewFields { found: count, wanted: DiskStat::MIN_FIELDS })
}

/// The counters without those of flushes, which the kernel prints as zeros where it does not count them.
pub(crate) fn without_flushes(stat: DiskStat) -> DiskStat {
    DiskStat { flush_ios: None, flush_ticks_ms: None, ..stat }
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

    /// One sample. Sysfs generates the text again for each read at offset 0.
    pub(crate) fn read(&self) -> Result<DiskStat, ObserveError> {
        let mut buffer = [0; STAT_BUFFER_BYTES];
        let length = self
            .file
            .read_at(&mut buffer, 0)
            .map_err(|source| ObserveError::Read { path: self.path.clone(), source })?;
        parse_stat(&String::from_utf8_lossy(&buffer[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_generations_of_kernels() {
        let eleven = parse_stat(" 1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        assert_eq!((eleven.read_ios, eleven.in_flight, eleven.time_in_queue_ms), (1, 9, 11));
        assert_eq!((eleven.discard_ios, eleven.flush_ios), (None, None));
        let fifteen = parse_stat("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!((fifteen.discard_ios, fifteen.discard_ticks_ms), (Some(12), Some(15)));
        assert_eq!(fifteen.flush_ios, None);
        let seventeen = parse_stat("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19").unwrap();
        assert_eq!((seventeen.flush_ios, seventeen.flush_ticks_ms), (Some(16), Some(17)));
        assert_eq!(seventeen.moved_bytes(), (3 + 7) * 512);
    }

    #[test]
    fn what_is_no_list_of_counters_is_an_error() {
        assert!(matches!(parse_stat(""), Err(ObserveError::TooFewFields { found: 0, .. })));
        assert!(matches!(parse_stat("1 2 3 4"), Err(ObserveError::TooFewFields { found: 4, .. })));
        let error = parse_stat("1 2 3 four 5 6 7 8 9 10 11").unwrap_err();
        assert_eq!(error.to_string(), "\"four\" is not a counter");
        assert!(parse_stat("1 2 3 -4 5 6 7 8 9 10 11").is_err());
    }

    #[test]
    fn diskstats_of_a_real_machine() {
        // Linux 6.18, 2026-11: /proc/diskstats of a virtual machine with one disk and loop devices.
        let text = include_str!("../tests/fixtures/diskstats-6.18.txt");
        // A line is `major minor name`, followed by the fields of a `stat` file.
        let counters = |line: &str| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            parse_stat(&words[3..].join(" "))
        };
        let all: Vec<DiskStat> = text.lines().map(|line| counters(line).unwrap()).collect();
        assert_eq!(all.len(), text.lines().count());
        let disk = text.lines().find(|line| line.contains(" vda ")).unwrap();
        assert!(disk.trim_start().starts_with("254"));
        let disk = counters(disk).unwrap();
        assert!(disk.flush_ios.is_some());
        assert!(disk.moved_bytes() > 0);
        assert!(counters("7 0 loop0 1 2 3\n").is_err());
        assert!(counters("7 0 loop0 zero 2 3 4 5 6 7 8 9 10 11\n").is_err());
    }

    #[test]
    fn a_stat_file_is_read_again_or_says_why_not() {
        let sys = tempfile::tempdir().unwrap();
        let path = sys.path().join("stat");
        std::fs::write(&path, "1 0 8 0 0 0 0 0 0 0 0").unwrap();
        let file = StatFile::open(path.clone()).unwrap();
        assert_eq!(file.read().unwrap().read_sectors, 8);
        let missing = StatFile::open(sys.path().join("none")).unwrap_err();
        let is_missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        assert!(matches!(missing, ObserveError::Read { source, .. } if is_missing(&source)));
        std::fs::write(&path, "gone").unwrap();
        assert!(matches!(file.read(), Err(ObserveError::NotANumber(word)) if word == "gone"));
    }
}
