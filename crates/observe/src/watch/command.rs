//! What the kernel says of a process that was watched, and of the dirty pages that it may have left. It starts none.

use crate::{ObserveError, read_text};
use rdsk_model::ProcessCalls;
use rdsk_sys::files::{field, memory_bytes};
use std::path::Path;

/// The read and write calls so far of the process with this directory in procfs. It may have ended, as long as no
/// process has waited for it.
///
/// # Errors
/// If the file cannot be read: another user's process, or a kernel without `CONFIG_TASK_IO_ACCOUNTING`.
pub fn process_calls(process: &Path) -> Result<ProcessCalls, ObserveError> {
    let text = read_text(&process.join("io"))?;
    let number = |name: &str| {
        let value = field(&text, name).unwrap_or_default();
        value.parse().map_err(|_| ObserveError::NotANumber(value.to_owned()))
    };
    Ok(ProcessCalls {
        reads: number("syscr")?,
        read_bytes: number("rchar")?,
        writes: number("syscw")?,
        written_bytes: number("wchar")?,
    })
}

/// Bytes of the whole machine in dirty pages and pages under writeback; `None` where `/proc/meminfo` does not say.
pub fn dirty_bytes(proc: &Path) -> Option<u64> {
    let text = read_text(&proc.join("meminfo")).ok()?;
    memory_bytes(&text, "Dirty")?.checked_add(memory_bytes(&text, "Writeback")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_dirty_pages_are_read_or_unknown() {
        let proc = tempfile::tempdir().unwrap();
        let io = "rchar: 6976\nwchar: 17\nsyscr: 10\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 0\n";
        std::fs::write(proc.path().join("io"), io).unwrap();
        let calls = ProcessCalls { reads: 10, read_bytes: 6976, writes: 2, written_bytes: 17 };
        assert_eq!(process_calls(proc.path()).unwrap(), calls);
        std::fs::write(proc.path().join("io"), "rchar: 6976\n").unwrap();
        assert!(matches!(process_calls(proc.path()), Err(ObserveError::NotANumber(_))));
        assert_eq!(dirty_bytes(proc.path()), None);
        std::fs::write(proc.path().join("meminfo"), "Dirty:   8 kB\nWriteback:   4 kB\nWritebackTmp: 9 kB\n")
            .unwrap();
        assert_eq!(dirty_bytes(proc.path()), Some(12 << 10));
    }
}
