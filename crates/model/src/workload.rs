//! One workload: what is asked of the target, in the field's words. Pure data; it decides nothing.

use crate::load::LoadJob;
use crate::ranks::AtOnce;
use crate::workload_words::{
    BufferPages, CacheState, EngineKind, IoPath, Op, Pattern, StreamRange, Sync, Untold,
};
use serde::{Deserialize, Serialize};

/// Chosen places, each visited once per pass by one stream: in the listed order by a sequential workload, from the first place or
/// round from a place of its own in every visit; in a random order, another one in every visit, by a random one. The latency
/// at each is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Points {
    /// First byte of each I/O.
    pub offset_bytes: Vec<u64>,
    /// Size of each I/O; empty where all have the workload's block size.
    pub block_bytes: Vec<u64>,
    /// Whether every pass of a sequential workload but the first begins at a random place and goes round, so that what
    /// depends on the time since a pass began is not taken for what depends on the place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moves_start: bool,
}

impl Points {
    /// Offset and size of one of them; a size that is not listed is `otherwise`.
    pub fn get(&self, index: usize, otherwise: u64) -> Option<(u64, u64)> {
        let size = self.block_bytes.get(index).copied().unwrap_or(otherwise);
        self.offset_bytes.get(index).map(|&offset| (offset, size))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.offset_bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.offset_bytes.is_empty()
    }

    /// Bytes of one pass over all of them.
    pub fn pass_bytes(&self, otherwise: u64) -> u64 {
        match self.block_bytes.as_slice() {
            [] => otherwise.saturating_mul(self.len() as u64),
            sizes => sizes.iter().sum(),
        }
    }
}

/// One workload. Sizes and offsets are in bytes; the field names are those of the Record.
// With `remote` the derived functions are not the traits, so that `crate::untold` can write null for what is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Workload"))]
#[serde(remote = "Self")]
pub struct Workload {
    /// Read or write.
    pub op: Op,
    /// Sequential or random offsets.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Pattern>"))]
    #[serde(deserialize_with = "crate::untold::pattern")]
    pub pattern: Pattern,
    /// Past the page cache or through it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<IoPath>"))]
    #[serde(deserialize_with = "crate::untold::path")]
    pub path: IoPath,
    /// What makes the data durable.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Sync>"))]
    #[serde(deserialize_with = "crate::untold::sync")]
    pub sync: Sync,
    /// Page-cache state wanted at the start of each visit.
    pub cache: CacheState,
    /// Bytes per I/O, at least 1.
    pub block_bytes: u64,
    /// Offsets are multiples of this, plus `shift_bytes`; at least 1.
    pub align_bytes: u64,
    /// Added to every offset, so that alignment moves apart from size; 0 for none.
    pub shift_bytes: u64,
    /// I/Os in flight per stream, at least 1; more than 1 needs an asynchronous engine. Null where another program
    /// that measured does not say (0 in memory).
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    #[serde(with = "crate::unknown::count")]
    pub queue_depth: u32,
    /// Threads that issue I/O, at least 1. Null where another program that measured does not say (0 in memory).
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>"))]
    #[serde(with = "crate::unknown::count")]
    pub streams: u32,
    /// Of a run of several ranks, who issues it at once while others wait, where that is compared; `None` where all ranks do. `streams` are
    /// those of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<AtOnce>,
    /// Time between the starts of two streams; 0 starts all at one barrier.
    pub stagger_ns: u64,
    /// Who issues the I/O.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EngineKind>"))]
    #[serde(deserialize_with = "crate::untold::engine")]
    pub engine: EngineKind,
    /// Indices into the Record's targets; streams are dealt round them in order.
    pub targets: Vec<u32>,
    /// First byte of the span on each target. Null where another program that measured does not say
    /// ([`crate::UNKNOWN_OFFSET`] in memory).
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    #[serde(with = "crate::unknown::offset")]
    pub offset_bytes: u64,
    /// Length of the span on each target; all I/O stays inside `offset_bytes .. offset_bytes + span_bytes`. Null
    /// where another program that measured does not say (0 in memory).
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    #[serde(with = "crate::unknown")]
    pub span_bytes: u64,
    /// How sequential streams share the span.
    #[serde(default = "disjoint")]
    pub range: StreamRange,
    /// Chosen places instead of a span to go over; `None` for most workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<Points>,
    /// Where its buffers lie; `None` for blocks of a page at most, which lie in one piece anyway, for simulated hosts, and in Records
    /// before it was recorded, whose buffers were on huge pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<BufferPages>,
    /// The jobs of a load, which say what is issued; what stands above is then what they have in common, and their largest sizes and
    /// depths. Empty for a plain workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<LoadJob>,
    /// Seed of the offsets and of the data; the same seed gives the same offsets on every engine.
    pub seed: u64,
    /// Words above that mean nothing, because another program that measured does not say: they are null in the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Untold>,
}

fn disjoint() -> StreamRange {
    StreamRange::Disjoint
}

impl Workload {
    /// A plain workload to start from: sequential direct reads of 1 MiB by one synchronous stream on target 0.
    pub fn sequential_read(span_bytes: u64) -> Self {
        Self {
            op: Op::Read,
            pattern: Pattern::Sequential,
            path: IoPath::Direct,
            sync: Sync::None,
            cache: CacheState::Any,
            block_bytes: 1 << 20,
            align_bytes: 1 << 20,
            shift_bytes: 0,
            queue_depth: 1,
            streams: 1,
            at_once: None,
            stagger_ns: 0,
            engine: EngineKind::Sync,
            targets: vec![0],
            offset_bytes: 0,
            span_bytes,
            range: StreamRange::Disjoint,
            points: None,
            buffers: None,
            jobs: Vec::new(),
            seed: 1,
            untold: Vec::new(),
        }
    }

    /// Requests that all its streams together may have in flight.
    pub fn wanted_depth(&self) -> u64 {
        let product = |depth: u32, streams: u32| u64::from(depth) * u64::from(streams);
        match self.jobs.as_slice() {
            [] => product(self.queue_depth, self.streams),
            jobs => jobs.iter().map(|job| product(job.queue_depth, job.streams)).sum(),
        }
    }

    /// Whether its depth is a limit, and not what it keeps in flight: in an open loop, and for jobs that rest, flush, or end before
    /// the load does.
    pub fn depth_is_limit(&self) -> bool {
        !self.jobs.iter().all(LoadJob::keeps_its_depth)
    }

    /// Whether this word of it is known.
    pub fn tells(&self, word: Untold) -> bool {
        !self.untold.contains(&word)
    }

    /// `random`, or nothing where it is not known; likewise for the other words.
    pub fn word(&self, word: Untold) -> Option<&'static str> {
        let text = match word {
            Untold::Pattern => self.pattern.as_str(),
            Untold::Path => self.path.as_str(),
            Untold::Sync => self.sync.as_str(),
            Untold::Engine => self.engine.as_str(),
        };
        self.tells(word).then_some(text)
    }

    /// The direction in tables for other programs: `read`, `write`, or `mixed` for a load that does both, whose rate is of neither.
    pub fn direction(&self) -> &'static str {
        let reads = self.jobs.iter().any(|job| job.reads.is_some());
        let writes = self.jobs.iter().any(|job| job.writes.is_some());
        if reads && writes { "mixed" } else { self.op.as_str() }
    }

    /// First byte of the span, if it is known.
    pub fn known_offset_bytes(&self) -> Option<u64> {
        Some(self.offset_bytes).filter(|&offset| offset != crate::UNKNOWN_OFFSET)
    }

    /// Time from the first start of a stream to the last, as requested, in ns.
    pub fn ramp_ns(&self) -> u64 {
        self.stagger_ns.saturating_mul(u64::from(self.streams.saturating_sub(1)))
    }

    /// Whether a write returns when memory has its data, before the device does.
    pub fn is_written_behind(&self) -> bool {
        self.op == Op::Write
            && self.tells(Untold::Path)
            && self.path.uses_page_cache()
            && self.sync != Sync::Dsync
    }

    /// Bytes of the span that one visit may use, if a part of it may be as large as a window, in whole blocks. Only one stream that goes
    /// in order through the page cache has such a part, which moves on from visit to visit; and the window has room for two blocks.
    pub fn part_bytes(&self, window_bytes: u64) -> u64 {
        let moves = self.pattern == Pattern::Sequential
            && self.points.is_none()
            && self.streams == 1
            && self.path.uses_page_cache();
        if moves && window_bytes < self.span_bytes && window_bytes >= self.block_bytes.saturating_mul(2) {
            window_bytes - window_bytes % self.block_bytes.max(1)
        } else {
            self.span_bytes
        }
    }

    /// Whether two workloads may be compared as a change of `path` alone.
    pub fn differs_only_in_path(&self, other: &Self) -> bool {
        let mut twin = self.clone();
        twin.path = other.path;
        twin.seed = other.seed;
        twin.cache = other.cache;
        twin == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_alone_is_recognised() {
        let direct = Workload::sequential_read(1 << 20);
        let buffered = Workload { path: IoPath::Buffered, cache: CacheState::Cold, ..direct.clone() };
        assert!(direct.differs_only_in_path(&buffered));
        let larger = Workload { block_bytes: 2 << 20, ..buffered };
        assert!(!direct.differs_only_in_path(&larger));
    }

    #[test]
    fn only_writes_through_the_page_cache_are_written_behind() {
        let of = |op, path, sync| {
            let workload = Workload { op, path, sync, ..Workload::sequential_read(1 << 20) };
            workload.is_written_behind()
        };
        for (path, expected) in [(IoPath::Direct, false), (IoPath::Buffered, true), (IoPath::DontCache, true)]
        {
            assert_eq!(path.uses_page_cache(), expected, "{path}");
            assert_eq!(of(Op::Write, path, Sync::None), expected, "{path}");
            assert_eq!(of(Op::Write, path, Sync::FsyncAtEnd), expected, "{path}");
            assert!(!of(Op::Write, path, Sync::Dsync) && !of(Op::Read, path, Sync::None), "{path}");
        }
    }
}
