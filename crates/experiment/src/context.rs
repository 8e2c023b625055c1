//! What an experiment knows when it plans its cells: one target, the options, the budget. It builds workloads and cells
//! from them and looks at nothing else.

use crate::request::{BudgetSource, PlanOptions};
use rdsk_model::{
    BufferPages, Cell, EngineKind, Experiment, Extent, IoPath, NEEDS_OF_DONTCACHE, Op, Pattern, Target,
    TargetKind, Workload,
};
use rdsk_stats::rng::SplitMix64;
use rdsk_units::printable;

/// Page size that plans assume where a size must be "whole pages"; the engine asks the kernel for the real one.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Whether an experiment is all that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The command of this experiment: it has the whole budget.
    Alone,
    /// One of several experiments of `rdsk run`, which share the budget.
    WholeRun,
}

/// What is known about one target when its cells are planned.
pub(crate) struct PlanContext<'a> {
    pub(crate) target: &'a Target,
    /// How many of the targets before it may hold the same blocks.
    pub(crate) twins: u32,
    /// Directions to measure, reads first.
    pub(crate) ops: Vec<Op>,
    /// Rate at which the test file was written, or at which targets that existed before were read at first; `None` where neither is known.
    pub(crate) target_bytes_per_s: Option<f64>,
    pub(crate) options: &'a PlanOptions,
    pub(crate) scope: Scope,
    /// What is left of the budget for all cells.
    pub(crate) budget_ns: u64,
}

impl PlanContext<'_> {
    /// Whether time costs nothing: a simulated target measured by one question, with no budget requested. Then cells do
    /// whole passes that reach the steady state, however long the simulated system takes.
    pub(crate) fn is_time_free(&self) -> bool {
        self.target.kind == TargetKind::Sim
            && self.scope == Scope::Alone
            && self.options.budget_source == BudgetSource::Default
            && self.options.runtime_ns.is_none()
    }

    /// Whether the path `dontcache` is measured beside the other two. A whole run has no time for it: its cells would take
    /// their turns from those that are always requested.
    pub(crate) fn asks_dontcache(&self) -> bool {
        self.scope == Scope::Alone
    }

    /// Bytes from the offset to the end; of a target that ranks share, to the end of this one's part.
    pub(crate) fn room_bytes(&self) -> u64 {
        let part_bytes =
            self.options.rank.and_then(|rank| rank.part_bytes).filter(|_| !self.target.made_by_rdsk);
        let room_bytes = self.target.size_bytes.saturating_sub(self.options.offset_bytes);
        room_bytes.min(part_bytes.unwrap_or(u64::MAX))
    }

    /// Where a sequence begins: at the offset, or at the next byte that whole pages and direct I/O can begin at.
    fn first_bytes(&self) -> u64 {
        let grain_bytes = self.target.direct_align_bytes.unwrap_or(PAGE_BYTES).max(PAGE_BYTES);
        let offset_bytes = self.options.offset_bytes;
        offset_bytes.checked_next_multiple_of(grain_bytes).unwrap_or(offset_bytes)
    }

    /// The largest span of at most `max_bytes`, in whole blocks, but of one block at least.
    pub(crate) fn span_bytes(&self, max_bytes: u64, block_bytes: u64) -> u64 {
        let room_bytes = self.room_bytes().min(max_bytes.max(block_bytes));
        room_bytes - room_bytes % block_bytes
    }

    /// Bytes that take this share of the budget of a whole run at the rate at which the test file was written; `None` outside a
    /// whole run, or without such a rate.
    #[allow(clippy::cast_possible_truncation, reason = "bytes of a small share stay far below 2^53")]
    pub(crate) fn bytes_of_share(&self, share: f64) -> Option<u64> {
        let rate = self.target_bytes_per_s.filter(|_| self.scope == Scope::WholeRun)?;
        Some((rate * self.budget_ns as f64 / 1e9 * share) as u64)
    }

    /// The id of a cell, with its block size if there are several.
    pub(crate) fn id(&self, name: String, block_bytes: u64) -> String {
        match &self.options.block_bytes {
            Some(sizes) if sizes.len() > 1 => format!("{name}/{}", size_word(block_bytes)),
            _ => name,
        }
    }

    /// A sequential workload on this target, by one synchronous stream unless the depth says otherwise.
    pub(crate) fn workload(&self, op: Op, path: IoPath, block_bytes: u64, span_bytes: u64) -> Workload {
        Workload {
            op,
            path,
            block_bytes,
            align_bytes: block_bytes,
            engine: match self.target.kind {
                TargetKind::Sim => EngineKind::Sim,
                _ => self.options.engine.unwrap_or(EngineKind::Sync),
            },
            targets: vec![self.target.index],
            offset_bytes: self.options.offset_bytes,
            buffers: self.buffers(block_bytes),
            seed: self.options.seed(),
            ..Workload::sequential_read(span_bytes)
        }
    }

    /// The pages of buffers for such blocks, where they make a difference.
    fn buffers(&self, block_bytes: u64) -> Option<BufferPages> {
        let may_differ = self.target.kind != TargetKind::Sim && block_bytes > PAGE_BYTES;
        may_differ.then_some(self.options.buffers)
    }

    /// A cell; those of a path that the target does not have, and deep ones on the sync engine, become "n/a".
    pub(crate) fn cell(
        &self,
        id: String,
        experiment: Experiment,
        mut workload: Workload,
        extent: Extent,
        weight: f64,
    ) -> Cell {
        if workload.queue_depth > 1 && self.options.engine.is_none() && workload.engine != EngineKind::Sim {
            workload.engine = EngineKind::Uring;
        }
        if workload.pattern == Pattern::Sequential && workload.points.is_none() {
            workload.shift_bytes = self.first_bytes() % workload.block_bytes.max(1);
        }
        // A cell that drew the offsets of another one would read what that one has just brought into a cache below the block layer,
        // of a hypervisor, an array or the disk itself. Chosen positions are meant to be the same.
        // Two disks draw the same, so that their difference is theirs, but for two paths of one LUN.
        if workload.points.is_none() {
            workload.seed = seed_of(workload.seed, &id, self.twins);
        }
        let not_applicable = if workload.path == IoPath::Direct && self.target.direct_io == Some(false) {
            Some(no_direct(self.target).to_owned())
        } else if workload.path == IoPath::DontCache && self.target.dontcache == Some(false) {
            Some(no_dontcache(self.target))
        } else if workload.queue_depth > 1 && workload.engine == EngineKind::Sync {
            Some("the sync engine has one I/O in flight per stream".to_owned())
        } else if workload.span_bytes == 0 {
            Some(format!("the target is smaller than one block of {} bytes", workload.block_bytes))
        } else {
            None
        };
        Cell { id, experiment, workload, extent, weight, not_applicable }
    }
}

/// The seed of a cell: another one for each id and each of the targets that may hold the same blocks, below 2^53, which every reader of JSON keeps.
fn seed_of(seed: u64, id: &str, twins: u32) -> u64 {
    // FNV-1a (Fowler, Noll, Vo), which is the same on every machine and in every version.
    let more = (0..twins).map(|_| b'+');
    let hash = id.bytes().chain(more).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    SplitMix64::from_index(seed, hash).next_u64() >> 11
}

/// Why a target has no direct path: its filesystem has none at all, or not for a file such as an encrypted one.
fn no_direct(target: &Target) -> &'static str {
    match target.kind {
        TargetKind::File => "direct I/O is not supported for this file, or on its filesystem",
        TargetKind::Block | TargetKind::Sim => "direct I/O is not supported on this filesystem",
    }
}

/// Why a target has no path `dontcache`.
fn no_dontcache(target: &Target) -> String {
    let place = match (target.kind, &target.filesystem) {
        (TargetKind::Sim, _) => return "the simulated host has no RWF_DONTCACHE".into(),
        (TargetKind::Block, _) => "a block device",
        (TargetKind::File, Some(filesystem)) => &printable(&filesystem.kind),
        (TargetKind::File, None) => "this filesystem",
    };
    format!("the kernel refuses it on {place} (EOPNOTSUPP): {NEEDS_OF_DONTCACHE}")
}

/// The direct path if the target has one, else the buffered one: for cells that measure the device, not the path.
pub(crate) fn device_path(target: &Target) -> IoPath {
    if target.direct_io == Some(false) { IoPath::Buffered } else { IoPath::Direct }
}

/// A block size as spelled in cell ids: `4k`, `1M`, `512`.
pub(crate) fn size_word(bytes: u64) -> String {
    for (unit_bytes, unit) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")] {
        if bytes >= unit_bytes && bytes.is_multiple_of(unit_bytes) {
            return format!("{}{unit}", bytes / unit_bytes);
        }
    }
    bytes.to_string()
}
