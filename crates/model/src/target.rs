//! A target as the Record describes it: facts that were read, never a judgement. `None` means not known.

use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

words!(
    /// What kind of thing is measured.
    #[derive(Default)]
    TargetKind {
        /// A regular file, rdsk's own or the user's.
        #[default]
        File = "file",
        /// A block device.
        Block = "block",
        /// A simulated host and disk.
        Sim = "sim",
    }
);

/// The filesystem that a file target lives on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Filesystem {
    /// Type as in mountinfo: `ext4`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Mount and superblock options, comma-separated.
    pub options: String,
}

/// A device of a stack, with what it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layer {
    /// Kernel name: `sda2`.
    pub name: String,
    /// What people call it: `vg/lv`, a name of `/dev/mapper`; untrusted text.
    pub mapped_name: Option<String>,
    /// As [`Device::kind`].
    pub kind: String,
    /// Capacity.
    pub size_bytes: Option<u64>,
    /// As [`Device::write_cache`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// What it is made of: the members of an array, the disk of a partition.
    #[serde(default)]
    pub below: Vec<Layer>,
}

/// What the kernel calls a volatile write cache.
const WRITE_BACK: &str = "write back";

impl Layer {
    /// The same of a device that is one of several.
    pub fn has_volatile_cache(&self) -> bool {
        let is_claimed = self.write_cache.as_deref() == Some(WRITE_BACK);
        let passes_on = self.kind.starts_with("md") || self.kind == "partition";
        is_claimed && !(passes_on && !self.below.is_empty() && self.has_no_cache())
    }

    /// Whether no disk here or below has a volatile cache, by their own words.
    fn has_no_cache(&self) -> bool {
        let passes_on = self.kind.starts_with("md") || self.kind == "partition";
        if passes_on && !self.below.is_empty() {
            return self.below.iter().all(Layer::has_no_cache);
        }
        self.write_cache.as_deref().is_some_and(|cache| cache != WRITE_BACK)
    }
}

/// What the kernel says of the array that a device is, or lies on: its own words, never a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArrayFacts {
    /// Kernel name of the array: `md0`, `dm-3`.
    pub device: String,
    /// Whose words these are: `md`, `dm`, `bcache`, or `sim` for a model, which says no more than how many members it has.
    pub source: String,
    /// The level as it is spelled there: `raid5`, `striped`.
    pub level: Option<String>,
    /// The chunk in bytes.
    pub chunk_bytes: Option<u64>,
    /// The layout as it is spelled there: md's number, or a word of dm-raid; `near=2` for RAID 10 of dm-raid.
    pub layout: Option<String>,
    /// Members that share the data, parity and copies included; spares are none.
    pub members: Option<u64>,
    /// What goes on beside us: `idle`, `resync`, `recover`.
    pub activity: Option<String>,
    /// Members that are missing.
    pub degraded: Option<u64>,
    /// The byte of the array at which the target's device begins, by the starts of partitions and the tables of device mapper; `None`
    /// where it does not lie there in one piece, where that is not known, and for arrays further down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_offset_bytes: Option<u64>,
}

/// A block device: the target itself, or the one that carries the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    /// Kernel name: `sda`, `loop3`, `dm-0`.
    pub name: String,
    /// `8:0`.
    pub major_minor: String,
    /// What it is: `disk`, `partition`, `loop`; a driver that keeps its data elsewhere, as `bcache` or `zram`; `md` with its level, as in `md raid5`; `dm` with what made it, as in `dm LVM`,
    /// `dm CRYPT-LUKS2`, `dm mpath`. `None` where it was not examined.
    pub kind: Option<String>,
    /// What people call it: `vg/lv`, a name of `/dev/mapper`; untrusted text.
    pub mapped_name: Option<String>,
    /// What it is made of; empty for a disk.
    #[serde(default)]
    pub below: Vec<Layer>,
    /// Model string, trimmed; untrusted text.
    pub model: Option<String>,
    /// Revision of the firmware, trimmed (`device/firmware_rev` of NVMe, `device/rev` of SCSI and SATA); untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Serial number, trimmed; untrusted text.
    pub serial: Option<String>,
    /// Capacity.
    pub size_bytes: Option<u64>,
    /// `queue/logical_block_size`.
    pub logical_block_bytes: Option<u64>,
    /// `queue/physical_block_size`.
    pub physical_block_bytes: Option<u64>,
    /// `alignment_offset`; 0 is aligned.
    pub alignment_offset_bytes: Option<i64>,
    /// `queue/minimum_io_size`; of a striped md or dm device its chunk.
    pub minimum_io_bytes: Option<u64>,
    /// `queue/optimal_io_size`; of a striped md or dm device its full stripe. `None` where the kernel says 0.
    pub optimal_io_bytes: Option<u64>,
    /// `queue/max_sectors_kb` in bytes: the largest request; 2147483647 KiB is no limit.
    pub max_request_bytes: Option<u64>,
    /// `queue/max_segments`: pieces of memory that one request takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u64>,
    /// `queue/zoned`: `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Bytes that its zones held when it was examined (`BLKREPORTZONE`): of sequential ones up to their write pointer, of conventional
    /// ones all. Reads of the rest return zeros without the medium. `None` where there are no zones, or the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_written_bytes: Option<u64>,
    /// Size of a zone of a zoned device (`queue/chunk_sectors`); `None` where there are no zones.
    pub zone_bytes: Option<u64>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// Whether it can be asked to forget what is stored (`queue/discard_max_bytes` is not 0), as SSDs and thin LUNs can: blocks that hold
    /// nothing are then read as zeros without a medium. `None` where it was not examined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards: Option<bool>,
    /// `queue/write_cache`: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// `queue/fua`.
    pub fua: Option<bool>,
    /// The active scheduler of `queue/scheduler`.
    pub scheduler: Option<String>,
    /// `queue/iostats`; with false the counters stand still.
    pub iostats: Option<bool>,
    /// `loop/backing_file` of a loop device; untrusted text.
    pub backing_file: Option<String>,
    /// `loop/dio`: whether a loop device passes its backing file's page cache.
    pub loop_direct_io: Option<bool>,
    /// The array that it is or lies on; `None` where nothing below it has several devices below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayFacts>,
    /// The other arrays below that one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrays_below: Vec<ArrayFacts>,
    /// The arrays, of these or others, that were in another state when the run ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrays_at_end: Vec<ArrayFacts>,
}

impl Device {
    /// All arrays that it is or lies on.
    pub fn arrays(&self) -> impl Iterator<Item = &ArrayFacts> {
        self.array.iter().chain(&self.arrays_below)
    }

    /// Whether it reports a volatile write cache that none of the disks below it has: an array of md always reports one, whatever its
    /// members do (measured on 6.1, 2026-11).
    pub fn only_array_claims_cache(&self) -> bool {
        let kind = self.kind.as_deref().unwrap_or_default();
        self.write_cache.as_deref() == Some(WRITE_BACK)
            && (kind.starts_with("md") || kind == "partition")
            && !self.below.is_empty()
            && self.below.iter().all(Layer::has_no_cache)
    }

    /// Whether it says itself that its cache loses what it holds when the power fails, and means a disk's cache.
    pub fn has_volatile_cache(&self) -> bool {
        self.write_cache.as_deref() == Some(WRITE_BACK) && !self.only_array_claims_cache()
    }

    /// Whether reads may return zeros that it does not store, without its medium: those of blocks that were never written or were
    /// asked to be forgotten. A plain hard disk reads zeros like any other data; what a host of virtual machines shows as one may be a
    /// sparse file.
    pub fn may_invent_zeros(&self) -> bool {
        fn is_of_host(name: &str) -> bool {
            ["vd", "xvd"].iter().any(|driver| name.starts_with(driver))
        }
        fn lies_on_it(layers: &[Layer]) -> bool {
            layers.iter().any(|layer| is_of_host(&layer.name) || lies_on_it(&layer.below))
        }
        let is_of_host = is_of_host(&self.name) || lies_on_it(&self.below);
        self.rotational != Some(true) || self.discards != Some(false) || is_of_host
    }
}

/// The layout of a test file: every block of it was written, in order, one MiB at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaidOut {
    /// Size of the file.
    pub bytes: u64,
    /// From the first write until all of it was stable.
    pub elapsed_ns: u64,
}

/// One target of a Record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Position in the Record's list; cells name targets by it.
    pub index: u32,
    /// What the user called it; untrusted text.
    pub name: String,
    /// File, block device or simulation.
    pub kind: TargetKind,
    /// The path that was opened, symlinks resolved; `None` for a simulation.
    pub path: Option<String>,
    /// Bytes that can be read or written. Null where another program that measured does not say (0 in memory).
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    #[serde(with = "crate::unknown")]
    pub size_bytes: u64,
    /// Filesystem of a file.
    pub filesystem: Option<Filesystem>,
    /// The device itself, or the one under the file; `None` where no block device is reached (tmpfs, NFS).
    pub device: Option<Device>,
    /// The other devices of a filesystem that lies on several, as btrfs does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_devices: Vec<Layer>,
    /// Device names from the top to the members: `["dm-0", "sda2", "sda"]`.
    pub stack: Vec<String>,
    /// Whether rdsk created the file for this run.
    pub made_by_rdsk: bool,
    /// How long it took to write that file; `None` for other targets, and in Records before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laid_out: Option<LaidOut>,
    /// Whether direct I/O opens, and does not go through the page cache (`statx` `STATX_DIOALIGN`); `None` when not tried.
    pub direct_io: Option<bool>,
    /// Smallest size and alignment that direct I/O accepts (`statx` `STATX_DIOALIGN`, else the logical block).
    pub direct_align_bytes: Option<u64>,
    /// Whether reads can be issued without blocking (`RWF_NOWAIT`); without it `io_uring` runs on worker threads.
    pub nowait: Option<bool>,
    /// Whether buffered I/O may ask for its pages to be dropped when it is done (`RWF_DONTCACHE`): the path `dontcache`.
    /// `None` when not tried.
    #[serde(default)]
    pub dontcache: Option<bool>,
}

/// Filesystems whose direct writes the threads of `io_uring` do side by side (`FMODE_DIO_PARALLEL_WRITE`, Linux 6.4). Before that they hold
/// back none of the writes to blocks that a file has already, so that none reaches these threads.
const WRITTEN_IN_PARALLEL: [&str; 2] = ["ext4", "xfs"];

impl Target {
    /// Whether the worker threads of `io_uring` may write to it one I/O at a time, however many are in flight. What cannot be submitted
    /// without waiting goes to them, on btrfs each direct write to blocks that are not overwritten in place; and of the writes to a
    /// regular file they do one after the other (`io_prep_async_work` in `io_uring/io_uring.c` hashes them by inode), unless the filesystem
    /// says that it needs none of that. Block devices are never held to it.
    pub fn may_be_written_one_at_a_time(&self) -> bool {
        let in_parallel = |filesystem: &Filesystem| WRITTEN_IN_PARALLEL.contains(&filesystem.kind.as_str());
        self.kind == TargetKind::File && !self.filesystem.as_ref().is_some_and(in_parallel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_one_at_a_time_but_on_ext4_and_xfs() {
        let on = |kind: TargetKind, filesystem: Option<&str>| {
            let filesystem = filesystem.map(|kind| Filesystem { kind: kind.into(), options: String::new() });
            Target { kind, filesystem, ..Target::default() }.may_be_written_one_at_a_time()
        };
        for filesystem in ["btrfs", "bcachefs", "zfs", "fuse", "nfs4"] {
            assert!(on(TargetKind::File, Some(filesystem)), "{filesystem}");
        }
        assert!(on(TargetKind::File, None), "nothing is known of it");
        assert!(!on(TargetKind::File, Some("ext4")) && !on(TargetKind::File, Some("xfs")));
        assert!(!on(TargetKind::Block, None) && !on(TargetKind::Sim, None));
    }
}
