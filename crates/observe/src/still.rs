//! Devices whose counters may stand still although they work: which they are, and in which words that is said. It reads sysfs, and takes
//! counters as they were read.

use crate::CountersError;
use crate::sysfs::{UNCOUNTED_PARTITION, block_path, nvme_disk_with_paths, nvme_paths, version_beside};
use rdsk_model::DiskStat;
use rdsk_sys::files::{Version, is_numbered, read_word};
use std::path::Path;

/// What is said of NVMe devices with paths: from 6.4 on they are counted.
pub(crate) const UNCOUNTED_MULTIPATH: &str = "not every kernel counts the I/O of an NVMe multipath device";

/// What is said of ram disks.
pub(crate) const UNCOUNTED_RAM: &str = "the ram disk driver counts no I/O";

/// Why the driver of a device counts nothing, or not on every kernel, so that unchanged counters prove nothing.
pub(crate) fn doubt_in(name: &str, sys: &Path) -> Option<&'static str> {
    if is_numbered(name, "ram") {
        return Some(UNCOUNTED_RAM);
    }
    let level = read_word(&block_path(sys, name).join("md/level"));
    if level.is_some_and(|level| ["linear", "multipath", "faulty"].contains(&level.as_str())) {
        return Some("not every kernel counts the I/O of such an md array");
    }
    if nvme_disk_with_paths(name, sys).is_some() {
        return Some(UNCOUNTED_PARTITION);
    }
    let has_paths = !nvme_paths(name, sys).is_empty();
    has_paths.then_some(UNCOUNTED_MULTIPATH)
}

/// That such a doubt is all that the counters of a device say.
pub(crate) fn doubted(name: &str, why: &'static str) -> CountersError {
    CountersError::StoodStill { device: name.to_owned(), why }
}

/// The first kernel whose device mapper counts only while `queue/iostats` is 1 ("dm: support turning off block-core's io stats
/// accounting"). Before, it has the switch off and counts by itself, as its counters then show.
const MAPPED_DEVICES_HEED_IOSTATS: Version = (6, 5);

/// That the device with this directory has its counting switched off; `None` if it has not. With `queue/iostats` at 0, drivers
/// with counters of their own may still count (measured on 6.1, 2026-11: dm-linear, striped, crypt and thin all do).
pub(crate) fn why_off(name: &str, directory: &Path) -> Option<CountersError> {
    // A partition has the switch of its disk.
    let switch = if directory.join("partition").exists() { "../queue/iostats" } else { "queue/iostats" };
    let is_off = read_word(&directory.join(switch)).as_deref() == Some("0");
    is_off.then(|| CountersError::SwitchedOff { device: name.to_owned() })
}

/// Whether these counters hold anything.
pub(crate) fn has_done(stat: &DiskStat) -> bool {
    !stat.is_idle() || stat.in_flight > 0
}

/// Why it proves nothing that the counters of a device, which are these, stand still; `None` if they would move.
pub(crate) fn why_silent(name: &str, stat: &DiskStat, sys: &Path) -> Option<CountersError> {
    let directory = block_path(sys, name);
    let counts_by_itself = || {
        let is_mapped = directory.join("dm").exists() && !directory.join("mq").exists();
        is_mapped && version_beside(sys).is_some_and(|version| version < MAPPED_DEVICES_HEED_IOSTATS)
    };
    let doubt = doubt_in(name, sys).filter(|_| !has_done(stat));
    let off = || why_off(name, &directory).filter(|_| !(has_done(stat) && counts_by_itself()));
    doubt.map(|why| doubted(name, why)).or_else(off)
}
