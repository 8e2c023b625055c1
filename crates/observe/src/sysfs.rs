//! Where sysfs keeps block devices. It finds names and paths and reads no counters.

use crate::read_trimmed;
use rdsk_model::is_nvme_path;
use rdsk_sys::device_number::DeviceNumber;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of levels followed downwards.
pub(crate) const MAX_LEVELS: usize = 8;

/// The kernel name of the block device with this directory.
pub(crate) fn name_of(directory: &Path) -> Option<String> {
    Some(directory.file_name()?.to_string_lossy().replace('!', "/"))
}

/// The kernel name of the block device with this number.
pub(crate) fn name_by_number(sys: &Path, number: DeviceNumber) -> Option<String> {
    name_of(&sys.join("dev/block").join(number.to_string()).canonicalize().ok()?)
}

/// Where sysfs keeps a block device of this kernel name; a slash in a name (`cciss/c0d0`) is `!` there.
pub(crate) fn block_path(sys: &Path, name: &str) -> PathBuf {
    sys.join("class/block").join(name.replace('/', "!"))
}

/// The directories of the paths of `nvme0n1`, sorted; none if it is not a multipath device.
pub(crate) fn nvme_paths(name: &str, sys: &Path) -> Vec<PathBuf> {
    if !name.starts_with("nvme") {
        return Vec::new();
    }
    let entries = fs::read_dir(sys.join("class/block")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let paths = names.filter(|path| is_nvme_path(path, name));
    let mut paths: Vec<PathBuf> = paths.map(|path| block_path(sys, &path)).collect();
    paths.sort();
    paths
}

/// What is said of such partitions.
pub(crate) const UNCOUNTED_PARTITION: &str =
    "the kernel counts no I/O of partitions of an NVMe multipath device";

/// The multipath device of which this is a partition: `nvme0n1` of `nvme0n1p2`. Kernels that count the I/O of such a device (from
/// 6.4) count none of it for its partitions, the others count neither (drivers/nvme/host/multipath.c: `disk->part0`).
pub(crate) fn nvme_disk_with_paths(partition: &str, sys: &Path) -> Option<String> {
    let (disk, number) = partition.rsplit_once('p')?;
    (is_number(number) && !nvme_paths(disk, sys).is_empty()).then(|| disk.to_owned())
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
    let is_off = || read_trimmed(&disk.join("queue/iostats")).as_deref() == Some("0");
    if disk.join("mq").exists() {
        return (is_partition && is_off()).then_some(UNNAMED_PARTITION);
    }
    if disk.join("bcache").exists() {
        return Some(UNNAMED_BCACHE);
    }
    match read_trimmed(&disk.join("md/level")).as_deref() {
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

/// Whether a name is a driver's, with a number: `loop3`.
pub(crate) fn is_numbered(name: &str, driver: &str) -> bool {
    name.strip_prefix(driver).is_some_and(is_number)
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
