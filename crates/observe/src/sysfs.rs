//! Where sysfs keeps block devices. It finds names and paths and reads no counters.

use rdsk_model::is_nvme_path;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{Version, is_numbered, names_in, read_word, version_of};
use std::path::{Path, PathBuf};

/// The version of the kernel whose `/proc` this is; `None` where it does not say.
pub(crate) fn version_at(proc: &Path) -> Option<Version> {
    version_of(&read_word(&proc.join("sys/kernel/osrelease"))?)
}

/// The version of the kernel whose `/sys` this is, by the `/proc` beside it; `None` where that does not say.
pub(crate) fn version_beside(sys: &Path) -> Option<Version> {
    version_at(&sys.parent()?.join("proc"))
}

/// The largest number of levels followed downwards.
pub(crate) const MAX_LEVELS: usize = 8;

/// The kernel name of the block device with this directory.
pub(crate) fn name_of(directory: &Path) -> Option<String> {
    Some(kernel_name(&directory.file_name()?.to_string_lossy()))
}

/// A name as the kernel prints it, from that of a file in sysfs, which can have no slash.
pub(crate) fn kernel_name(file_name: &str) -> String {
    file_name.replace('!', "/")
}

/// The kernel name of the block device with this number.
pub(crate) fn name_by_number(sys: &Path, number: DeviceNumber) -> Option<String> {
    name_of(&sys.join("dev/block").join(number.to_string()).canonicalize().ok()?)
}

/// Where sysfs keeps a block device of this kernel name; a slash in a name (`cciss/c0d0`) is `!` there.
pub(crate) fn block_path(sys: &Path, name: &str) -> PathBuf {
    sys.join("class/block").join(name.replace('/', "!"))
}

/// The paths of `nvme0n1`, sorted; none if it is not a multipath device.
pub(crate) fn nvme_paths(name: &str, sys: &Path) -> Vec<String> {
    if !name.starts_with("nvme") {
        return Vec::new();
    }
    names_in(&sys.join("class/block")).into_iter().filter(|path| is_nvme_path(path, name)).collect()
}

/// What is said of such partitions.
pub(crate) const UNCOUNTED_PARTITION: &str =
    "the kernel counts no I/O of partitions of an NVMe multipath device";

/// The multipath device of which this is a partition: `nvme0n1` of `nvme0n1p2`. Kernels that count the I/O of such a device (from
/// 6.4) count none of it for its partitions, the others count neither (drivers/nvme/host/multipath.c: `disk->part0`).
pub(crate) fn nvme_disk_with_paths(partition: &str, sys: &Path) -> Option<String> {
    let (disk, _) = partition.rsplit_once('p')?;
    let is_partition = is_numbered(partition, &format!("{disk}p"));
    (is_partition && !nvme_paths(disk, sys).is_empty()).then(|| disk.to_owned())
}

/// What is said of devices that their I/O does not name when it ends.
pub(crate) const UNNAMED_NVME: &str = "bios of NVMe multipath devices do not name them when they end";
const UNNAMED_BCACHE: &str = "bios of bcache devices name what they lie on when they end";
const UNNAMED_MD: &str = "bios of such an md array name a member when they end";
const UNNAMED_PARTITION: &str = "requests name no partition while queue/iostats of its disk is 0";

/// In words, why the I/O of a device does not name it when it ends, so that it would seem to stay under way or not to be; `None` if it
/// does. A request has a partition only where the kernel keeps statistics of it (block/blk-mq.c, `blk_account_io_start`). Bios of
/// an NVMe multipath device name one of its paths then, as does all that lies on its partitions (drivers/nvme/host:
/// `nvme_trace_bio_complete`). Other drivers pass on a bio itself, and no clone: bcache, so that what it lies on sees ends of bios that it
/// was not given (drivers/md/bcache/request.c, `bio_set_dev`), and md where it counts nothing (drivers/md, `linear_make_request` and
/// `faulty_make_request`; `md_account_bio` before 6.6, with `queue/iostats` at 0).
pub(crate) fn why_unnamed(name: &str, sys: &Path) -> Option<&'static str> {
    if !nvme_paths(name, sys).is_empty() || nvme_disk_with_paths(name, sys).is_some() {
        return Some(UNNAMED_NVME);
    }
    let directory = block_path(sys, name);
    let is_partition = directory.join("partition").exists();
    let disk = if is_partition { directory.join("..") } else { directory };
    let is_off = || read_word(&disk.join("queue/iostats")).as_deref() == Some("0");
    if disk.join("mq").exists() {
        return (is_partition && is_off()).then_some(UNNAMED_PARTITION);
    }
    if disk.join("bcache").exists() {
        return Some(UNNAMED_BCACHE);
    }
    match read_word(&disk.join("md/level")).as_deref() {
        Some("linear" | "faulty") => Some(UNNAMED_MD),
        Some("raid0") if is_off() => Some(UNNAMED_MD),
        _ => None,
    }
}

/// Whether the kernel counts the flushes of the device with this directory: of whole disks only, and only as requests; a driver that
/// takes bios counts a flush as a write, or not at all, and an NVMe multipath device as a read (`rdsk_analysis` takes those off). Where it
/// does not, it prints zeros.
pub(crate) fn counts_flushes(directory: &Path) -> bool {
    let has_requests = directory.join("mq").exists() || !directory.join("queue").exists();
    has_requests && !directory.join("partition").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_first_two_numbers() {
        assert_eq!(version_of("6.1.0-56-amd64"), Some((6, 1)));
        assert_eq!(version_of("4.18.0-553.el8_10.x86_64"), Some((4, 18)));
        assert_eq!(version_of("7.0"), Some((7, 0)));
        assert_eq!(["", "6", "next", "v6.1"].map(version_of), [None; 4]);
        assert_eq!((version_at(Path::new("/no/such/proc")), version_beside(Path::new("/"))), (None, None));
        assert_eq!(version_beside(Path::new("/sys")), version_at(Path::new("/proc")));
    }
}
