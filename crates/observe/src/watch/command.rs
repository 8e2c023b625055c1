//! What the kernel says of a process that was watched, and of the dirty pages that it may have left. It starts none.

use crate::{ObserveError, read_text};
use rdsk_model::ProcessCalls;
use rdsk_sys::files::{field, memory_bytes, names_in};
use std::path::{Path, PathBuf};

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

/// Processes of a command that are looked at.
const MAX_FAMILY: usize = 64;

/// A process with this directory in procfs and those that it started, as far as the kernel lists them (`CONFIG_PROC_CHILDREN`), each
/// before its own.
pub fn family(process: &Path) -> Vec<PathBuf> {
    let proc = process.parent().unwrap_or(process);
    let mut family = vec![process.to_owned()];
    let mut next = 0;
    while let Some(parent) = family.get(next).filter(|_| family.len() < MAX_FAMILY) {
        let tasks = parent.join("task");
        let children = names_in(&tasks)
            .into_iter()
            .filter_map(|task| read_text(&tasks.join(task).join("children")).ok());
        let children: Vec<PathBuf> = children
            .flat_map(|list| list.split_whitespace().map(|pid| proc.join(pid)).collect::<Vec<_>>())
            .collect();
        family.extend(children.into_iter().take(MAX_FAMILY - family.len()));
        next += 1;
    }
    family
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
    fn a_family_is_a_process_and_all_that_it_started() {
        let proc = tempfile::tempdir().unwrap();
        for (task, children) in
            [("7/task/7", "8 9 "), ("7/task/70", "10 "), ("8/task/8", ""), ("9/task/9", "11 ")]
        {
            let directory = proc.path().join(task);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("children"), children).unwrap();
        }
        let mut family: Vec<String> = family(&proc.path().join("7"))
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into())
            .collect();
        family.sort();
        assert_eq!(family, ["10", "11", "7", "8", "9"]);
    }

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
