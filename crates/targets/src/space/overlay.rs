//! What an overlay keeps of what is written through it: its own filesystem shows memory only where the upper directory does. It
//! reads and changes nothing, but for [`stays_in_memory`], which has pages of a file of ours dropped.

use crate::display::shown;
use crate::machine::{Mount, mount_of};
use crate::probe::{self, Flush};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Why what is written at `path` stays in memory; `None` if it does not, or if an overlay does not show what takes it.
pub(crate) fn why_in_memory(mounts: &[Mount], path: &Path) -> Option<String> {
    if probe::is_in_memory(path) {
        return Some("its filesystem is in memory, so there is no disk to measure".to_owned());
    }
    let upper = upper_directory(mounts, path).filter(|upper| probe::is_in_memory(upper))?;
    let upper = shown(&upper);
    Some(format!(
        "an overlay keeps what is written there in {upper}, in memory, so there is no disk to measure"
    ))
}

/// The directory that takes what is written at `path`, which lies on an overlay. mountinfo has the name that was given to mount(8):
/// in a container it may lead nowhere, or elsewhere; a live system may have left the root below which it was one.
fn upper_directory(mounts: &[Mount], path: &Path) -> Option<PathBuf> {
    if !probe::is_overlay(path) {
        return None;
    }
    let upper = mount_of(mounts, path)?.super_option("upperdir").filter(|upper| upper.is_absolute())?;
    // An overlay shows the space of its upper directory's filesystem (fs/overlayfs/super.c, ovl_statfs).
    let size = |path: &Path| rustix::fs::statvfs(path).ok().map(|space| (space.f_frsize, space.f_blocks));
    (size(&upper)? == size(path)?).then_some(upper)
}

/// Whether the `size_bytes` of a file that were written lie in memory and nowhere else: the filesystem below shows no place on a
/// device, and keeps every page of what was flushed and is not needed. tmpfs does, whatever an overlay over it shows; filesystems
/// that answer nothing about places (ZFS, UBIFS, FUSE) let go of pages.
pub(crate) fn stays_in_memory(fd: impl AsFd, size_bytes: u64) -> bool {
    let fd = fd.as_fd();
    probe::allocation(fd, 0, size_bytes, Flush::First).is_none()
        && rdsk_sys::cache::drop_cached(fd, 0, 0).is_ok()
        && rdsk_sys::cache::mapped(fd, 0, size_bytes).is_ok_and(|state| state.cached_bytes() >= size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_file_in_memory_keeps_its_pages_and_one_on_a_disk_has_a_place() {
        let written = |directory: &Path| {
            let mut file = tempfile::tempfile_in(directory).unwrap();
            file.write_all(&vec![7; 1 << 20]).unwrap();
            file
        };
        let shm = Path::new("/dev/shm");
        if probe::is_in_memory(shm) {
            assert!(stays_in_memory(written(shm), 1 << 20));
            assert!(why_in_memory(&[], shm).unwrap().contains("its filesystem is in memory"));
        }
        let file = written(&std::env::temp_dir());
        if probe::allocation(&file, 0, 1 << 20, Flush::First).is_some() {
            assert!(!stays_in_memory(&file, 1 << 20));
            assert_eq!(why_in_memory(&[], &std::env::temp_dir()), None);
        }
    }
}
