//! What the kernel charged to rdsk, where that shows a cell's I/O: a server of a filesystem (FUSE on a disk) does it in another
//! process, and what was not charged to us is then not known, which is not 0. It judges nothing.

use crate::metrics::process_bytes;
use rdsk_model::{CellRecord, Op, Target};

/// Whether a process of its own submits the I/O of a target's filesystem to its device: `fuseblk`, as of ntfs-3g and fuse-exfat.
/// Reads through it are charged to no process here (`fuse_readahead`, since Linux 5.8), and its requests look like those of others.
pub fn is_served(target: &Target) -> bool {
    let is_fuse = target.filesystem.as_ref().is_some_and(|filesystem| filesystem.kind.starts_with("fuse"));
    is_fuse && target.device.is_some()
}

/// What the kernel charged to this process in one direction; `None` also for reads of targets that are served, whatever was counted.
pub fn charged<'a>(cell: &CellRecord, targets: impl IntoIterator<Item = &'a Target>, op: Op) -> Option<u64> {
    let mut own = targets.into_iter().filter(|target| cell.workload.targets.contains(&target.index));
    process_bytes(cell, op).filter(|_| op == Op::Write || !own.any(is_served))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, file, read_from_memory};
    use rdsk_model::{Filesystem, IoPath};

    #[test]
    fn what_a_server_was_charged_for_is_not_known_here() {
        let read = read_from_memory(cell("r", Op::Read, IoPath::Buffered, 4096, 100, 1_000_000_000));
        for (kind, has_device, wanted) in [
            ("ext4", true, Some(0)),
            ("fuseblk", true, None),
            ("fuse.ntfs-3g", true, None),
            ("fuse.sshfs", false, Some(0)),
        ] {
            let mut target = file();
            target.filesystem = Some(Filesystem { kind: kind.into(), options: "rw".into() });
            target.device = target.device.filter(|_| has_device);
            assert_eq!(charged(&read, [&target], Op::Read), wanted, "{kind}");
            assert_eq!(charged(&read, [&target], Op::Write), Some(0), "{kind}");
            target.index = 7;
            assert_eq!(charged(&read, [&target], Op::Read), Some(0), "another cell's");
        }
    }
}
