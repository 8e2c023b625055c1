//! Whether an open file lies on an overlay, without a word to the server or disk of its filesystem: it is asked before single I/Os.

use crate::mounts::mounts_of;
use rustix::fs::{AtFlags, StatxFlags};
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::path::Path;

thread_local! {
    /// The last answer. While a file is open, no other mount gets the number of its own.
    static LAST: Cell<Option<(Mount, bool)>> = const { Cell::new(None) };
}

/// A mount and what its files say they lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    device: (u32, u32),
}

/// Whether the file lies on an overlay. False before Linux 5.8, and for a file of a mount that this process cannot see.
pub(crate) fn is_overlay(fd: BorrowedFd<'_>) -> bool {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let Ok(stat) = rustix::fs::statx(fd, "", flags, StatxFlags::MNT_ID) else { return false };
    if stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return false;
    }
    let mount = Mount { id: stat.stx_mnt_id, device: (stat.stx_dev_major, stat.stx_dev_minor) };
    if let Some((_, is_overlay)) = LAST.get().filter(|(last, _)| *last == mount) {
        return is_overlay;
    }
    let mounts = mounts_of(Path::new("/proc/self"));
    let is_overlay = mounts.iter().any(|listed| listed.id == mount.id && listed.kind == "overlay");
    LAST.set(Some((mount, is_overlay)));
    is_overlay
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn no_pages_without_an_overlay_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let is_on_overlay = rustix::fs::statfs(directory.path()).unwrap().f_type == 0x794c_7630;
        let file = tempfile::tempfile_in(directory.path()).unwrap();
        for _ in 0..2 {
            // Older kernels have no number of a mount to know it by.
            assert!(is_on_overlay || !is_overlay(file.as_fd()));
        }
        let procfs = std::fs::File::open("/proc/self/status").unwrap();
        assert!(!is_overlay(procfs.as_fd()));
    }
}
