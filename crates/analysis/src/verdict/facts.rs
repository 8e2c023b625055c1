//! The facts that every step of the verdict uses, gathered once. It decides nothing.

use super::{Judgement, mixed};
use crate::charged::{charged, is_served};
use crate::groups::distinct;
use crate::medium;
use crate::metrics::{self, Written};
use rdsk_model::{
    CellRecord, Device, EvidenceSource, Filesystem, IoPath, Op, Target, TargetKind, VerdictCode,
};
use rdsk_units::printable;

/// What others may read or write before it counts as disturbance: in bytes, and as a share of ours.
pub(super) const FOREIGN_BYTES: u64 = 1 << 20;
pub(super) const FOREIGN_SHARE: f64 = 0.1;
/// A compressed file is not smaller than this share: btrfs keeps 4 KiB for 128 KiB of zeros.
pub(super) const COMPRESSED_SHARE: f64 = 0.01;

/// Whether other I/O of this many bytes disturbs ours.
pub(super) fn are_foreign(foreign: u64, ours: u64) -> bool {
    foreign > FOREIGN_BYTES && metrics::ratio(foreign, ours) > FOREIGN_SHARE
}

/// Filesystems that can keep a file in fewer bytes than it has.
const COMPRESSING: &[&str] =
    &["btrfs", "bcachefs", "cramfs", "erofs", "f2fs", "jffs2", "ntfs3", "squashfs", "ubifs", "zfs"];

/// The figures of a cell that completed something.
pub(super) struct Facts<'a> {
    pub(super) cell: &'a CellRecord,
    pub(super) targets: Vec<&'a Target>,
    /// Bytes completed, at least 1.
    pub(super) bytes: u64,
    pub(super) ops: u64,
    /// Time of I/O, at least 1 ns.
    pub(super) elapsed_ns: u64,
    /// Bytes that the devices moved in the cell's direction until stable.
    pub(super) moved: Option<u64>,
    /// Bytes that they moved in the other direction.
    pub(super) opposite: Option<u64>,
    /// What the devices have to write per byte; 1 for reads, which come from one of them.
    pub(super) written: Written,
    /// `moved` per byte completed, without copies.
    pub(super) share: Option<f64>,
    /// What the kernel charged to this process in the cell's direction, for each byte completed; `None` for reads of what is served.
    pub(super) process_share: Option<f64>,
    /// Names of the devices, for sentences.
    pub(super) device_names: String,
}

impl<'a> Facts<'a> {
    /// The facts, or `None` when nothing completed.
    pub(super) fn gather(cell: &'a CellRecord, targets: &'a [Target]) -> Option<Self> {
        let bytes = cell.result.bytes.filter(|&bytes| bytes > 0)?;
        let ops = cell.result.ops.filter(|&ops| ops > 0)?;
        let op = cell.workload.op;
        let moved = metrics::device_bytes(cell, op);
        let counters = cell.workload.targets.iter().flat_map(|&target| cell.evidence.counters_of(target));
        let names = distinct(counters.map(|device| printable(&device.name)));
        let written = op.select(Written::ONCE, metrics::written(cell));
        Some(Self {
            cell,
            targets: targets.iter().filter(|target| cell.workload.targets.contains(&target.index)).collect(),
            bytes,
            ops,
            elapsed_ns: cell.result.elapsed_ns.unwrap_or(0).max(1),
            moved,
            opposite: if mixed::has_both(cell) {
                Some(0)
            } else {
                metrics::device_bytes(cell, op.select(Op::Write, Op::Read))
            },
            share: moved.map(|moved| metrics::ratio(moved, bytes) / written.least),
            written,
            process_share: charged(cell, targets, op).map(|charged| metrics::ratio(charged, bytes)),
            device_names: crate::words::list(&names),
        })
    }

    /// The block devices under the targets.
    pub(super) fn devices(&self) -> impl Iterator<Item = &'a Device> {
        self.targets.iter().filter_map(|target| target.device.as_ref())
    }

    /// The filesystems of the targets.
    pub(super) fn filesystems(&self) -> impl Iterator<Item = &'a Filesystem> {
        self.targets.iter().filter_map(|target| target.filesystem.as_ref())
    }

    /// What the kernel charged to this process in one direction, as far as that shows the cell.
    pub(super) fn charged(&self, op: Op) -> Option<u64> {
        charged(self.cell, self.targets.iter().copied(), op)
    }

    /// Whether another process does the I/O of a target, so that its requests cannot be distinguished from those of others.
    pub(super) fn is_served(&self) -> bool {
        self.targets.iter().any(|target| is_served(target))
    }

    pub(super) fn is_file(&self) -> bool {
        self.targets.iter().any(|target| target.kind == TargetKind::File)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.cell.workload.path == IoPath::Direct
    }

    /// Whether models of hosts and disks were measured: they have no other users and no kernel.
    pub(super) fn is_simulated(&self) -> bool {
        self.cell.evidence.source == EvidenceSource::Sim
            || (!self.targets.is_empty() && self.targets.iter().all(|target| target.kind == TargetKind::Sim))
    }

    /// Whether every target is a file or device over a block device, so that what the kernel charges to the process
    /// is block I/O (NFS and FUSE charge other things or nothing).
    pub(super) fn is_block_backed(&self) -> bool {
        !self.targets.is_empty() && self.targets.iter().all(|target| target.device.is_some())
    }

    /// The judgement of a cell with a target on a filesystem that keeps its files in memory.
    pub(super) fn memory_filesystem(&self) -> Judgement {
        let mut kinds = self.filesystems().map(|filesystem| &filesystem.kind);
        let kind = kinds.find(|kind| matches!(kind.as_str(), "tmpfs" | "ramfs" | "rootfs"))?;
        Some((VerdictCode::PageCache, format!("{kind} keeps its files in memory: no device holds them")))
    }

    /// The first filesystem of a target that can keep a file in fewer bytes than it has.
    pub(super) fn compressing_filesystem(&self) -> Option<&'a Filesystem> {
        self.filesystems().find(|filesystem| COMPRESSING.contains(&filesystem.kind.as_str()))
    }

    /// The disk at the bottom of a target that is memory behind a driver.
    pub(super) fn memory_disk(&self) -> Option<String> {
        self.targets.iter().find_map(|target| medium::memory_disk(target))
    }

    /// Why these devices are counted, if it is not the target's own.
    pub(super) fn why_these(&self) -> Option<String> {
        let targets = self.cell.workload.targets.iter();
        let counted = targets.filter_map(|&target| self.cell.evidence.counted_for(target));
        let whys = distinct(counted.filter_map(|counted| counted.why.as_deref().map(printable)));
        (!whys.is_empty()).then(|| whys.join("; "))
    }

    /// Whether members are counted of an array with parity that lacks one: it computes what that one held from all the others, and reads
    /// more than was asked for.
    pub(super) fn reconstructs(&self) -> bool {
        let lacks_one = |array: &rdsk_model::ArrayFacts| array.degraded.is_some_and(|missing| missing > 0);
        let is_degraded = self.devices().any(|device| device.arrays().any(lacks_one))
            || self.why_these().is_some_and(|why| why.contains("degraded"));
        is_degraded && metrics::written(self.cell).most.is_none()
    }

    /// Why there are no device counters.
    pub(super) fn no_counters(&self) -> String {
        if let Some(device) = self.devices().find(|device| device.iostats == Some(false)) {
            let name = printable(&device.name);
            return format!("queue/iostats of {name} is 0, so the kernel does not count its I/O");
        }
        match self.targets.iter().find(|target| target.device.is_none()) {
            Some(Target { filesystem: Some(filesystem), .. }) => {
                format!("{} has no block device", printable(&filesystem.kind))
            }
            Some(_) => "the target has no block device".into(),
            None => "the counters of the device could not be read".into(),
        }
    }
}
