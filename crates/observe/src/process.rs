//! What the kernel charged to a process, as `/proc/PID/io` reports it. It needs no privilege for our own process. It does
//! not include what kernel threads did for the process.

use crate::{ObserveError, read_text};
use rdsk_model::ProcessIo;
use rdsk_sys::files::field;
use std::path::Path;

/// Charges so far, from `<process>/io`, where `process` is `/proc/self` or `/proc/PID`. All threads of the process
/// count, including those that have ended. `read_bytes` is what was really fetched from storage, readahead included;
/// the kernel charges it when the read is submitted. It charges `write_bytes` when a page becomes dirty or a direct
/// write is submitted.
///
/// # Errors
/// If the file cannot be read (kernels without `CONFIG_TASK_IO_ACCOUNTING`, another user's process).
pub fn read_process_io(process: &Path) -> Result<ProcessIo, ObserveError> {
    Ok(parse(&read_text(&process.join("io"))?))
}

/// Charges between two readings; `None` if one of them lacks the field, or if it fell.
pub fn charged_between(before: &ProcessIo, after: &ProcessIo) -> ProcessIo {
    let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    ProcessIo {
        read_bytes: grown(before.read_bytes, after.read_bytes),
        write_bytes: grown(before.write_bytes, after.write_bytes),
    }
}

fn parse(text: &str) -> ProcessIo {
    let number = |name: &str| field(text, name)?.parse().ok();
    ProcessIo { read_bytes: number("read_bytes"), write_bytes: number("write_bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rchar: 6976\nwchar: 17\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 512\n\
                        cancelled_write_bytes: 3\n";

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let io = parse(TEXT);
        assert_eq!(io, ProcessIo { read_bytes: Some(4096), write_bytes: Some(512) });
        assert_eq!(parse("cancelled_write_bytes: 3\n"), ProcessIo::default());
        assert_eq!(parse("read_bytes: many\n"), ProcessIo::default());
    }

    #[test]
    fn unknown_stays_unknown() {
        let known = ProcessIo { read_bytes: Some(10), write_bytes: Some(20) };
        let half = ProcessIo { read_bytes: Some(15), write_bytes: None };
        assert_eq!(charged_between(&known, &half), ProcessIo { read_bytes: Some(5), write_bytes: None });
        assert_eq!(charged_between(&half, &known), ProcessIo::default(), "a fall is not a charge");
        assert_eq!(known.plus(half), ProcessIo { read_bytes: Some(25), write_bytes: None });
    }
}
