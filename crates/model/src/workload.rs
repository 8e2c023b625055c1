//! One workload: what is asked of the target, in the field's words. Pure data; it decides nothing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A word that is none of an enum's, with those that are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{word}\" is none of {}", .words.join(", "))]
pub struct UnknownWord {
    pub(crate) word: String,
    pub(crate) words: Vec<&'static str>,
}

/// Gives an enum its one spelling, which the Record, the command line and the screen share.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }
        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The one spelling used in Records, options and pages.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $word),+ } }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.as_str()) }
        }
        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let words = || Self::ALL.iter().map(|value| value.as_str()).collect();
                let value = Self::ALL.iter().copied().find(|value| value.as_str() == word);
                value.ok_or_else(|| $crate::UnknownWord { word: word.to_owned(), words: words() })
            }
        }
    };
}
pub(crate) use words;

words!(
    /// The direction of an I/O.
    Op {
        /// Data flows from the target.
        Read = "read",
        /// Data flows to the target.
        Write = "write",
    }
);
impl Op {
    /// What belongs to this direction, of what belongs to reads and to writes.
    pub fn select<T>(self, of_reads: T, of_writes: T) -> T {
        match self {
            Self::Read => of_reads,
            Self::Write => of_writes,
        }
    }
}

words!(
    /// The order of the offsets.
    Pattern {
        /// Each block follows the one before; wraps at the end of the span.
        Sequential = "sequential",
        /// Offsets drawn from the span, see [`Workload::seed`].
        Random = "random",
    }
);
words!(
    /// Whether the kernel's page cache takes part.
    IoPath {
        /// `O_DIRECT`: past the page cache. The reports' "raw".
        Direct = "direct",
        /// Through the page cache. The reports' "block".
        Buffered = "buffered",
        /// Through the page cache with `RWF_DONTCACHE` on each call (Linux 6.14): the pages that a call brings into the
        /// cache are dropped when it is done with them, written ones when they are on the device, if the filesystem does
        /// that. Writeback starts with each write. Pages that were cached before stay.
        DontCache = "dontcache",
    }
);

/// What [`IoPath::DontCache`] takes to work, as the end of a sentence that says that it does not. The kernel answers
/// `EOPNOTSUPP` in both cases (kernel sources, `kiocb_set_rw_flags`).
pub const NEEDS_OF_DONTCACHE: &str =
    "RWF_DONTCACHE needs Linux 6.14 or later and a filesystem that supports it";

impl IoPath {
    /// Whether the bytes go through the page cache, where they are copied, read ahead and written back.
    pub const fn uses_page_cache(self) -> bool {
        matches!(self, Self::Buffered | Self::DontCache)
    }
}

words!(
    /// How the sequential streams of one target share its span.
    StreamRange {
        /// Each has its own part.
        Disjoint = "disjoint",
        /// All of them go over the whole of it.
        Shared = "shared",
    }
);
words!(
    /// What makes written data durable.
    Sync {
        /// Nothing is requested.
        None = "none",
        /// Every write returns only when its data is durable (`O_DSYNC`).
        Dsync = "dsync",
        /// One `fdatasync` after the last write, counted in the time.
        FsyncAtEnd = "fsync_at_end",
    }
);
words!(
    /// The state of the page cache over the span before a visit.
    CacheState {
        /// No page of the span is cached; checked with `cachestat(2)`.
        Cold = "cold",
        /// Every page of the span is cached; checked with `cachestat(2)`.
        Warm = "warm",
        /// Left as it is.
        Any = "any",
    }
);
words!(
    /// Who issues the I/O. An engine that stands earlier takes over if a later one is not available.
    EngineKind {
        /// One blocking system call per I/O.
        Sync = "sync",
        /// One thread with blocking system calls for each I/O in flight.
        Threads = "threads",
        /// Linux AIO (`io_submit`), a batch of I/Os per system call; direct I/O only.
        Aio = "aio",
        /// `io_uring`, a batch of I/Os per system call.
        Uring = "uring",
        /// A simulated host and disk in virtual time.
        Sim = "sim",
    }
);

words!(
    /// The memory of buffers that are larger than a page: in how many pieces a device is given each block.
    BufferPages {
        /// Pages of 4 KiB or what the machine has, as an allocator gives them to programs.
        Ordinary = "ordinary",
        /// Transparent huge pages, where the kernel has them: a block lies in one piece.
        Huge = "huge",
    }
);

words!(
    /// A word of a workload that the document of another program does not hold; its key is null in the Record.
    Untold {
        /// [`Workload::pattern`].
        Pattern = "pattern",
        /// [`Workload::path`].
        Path = "path",
        /// [`Workload::sync`].
        Sync = "sync",
        /// [`Workload::engine`].
        Engine = "engine",
    }
);

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
            stagger_ns: 0,
            engine: EngineKind::Sync,
            targets: vec![0],
            offset_bytes: 0,
            span_bytes,
            range: StreamRange::Disjoint,
            points: None,
            buffers: None,
            seed: 1,
            untold: Vec::new(),
        }
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
    fn words_round_trip_through_text_and_json() {
        for &sync in Sync::ALL {
            assert_eq!(sync.as_str().parse::<Sync>(), Ok(sync));
            assert_eq!(serde_json::to_string(&sync).unwrap(), format!("\"{sync}\""));
        }
        assert!("fsync".parse::<Sync>().unwrap_err().to_string().contains("fsync_at_end"));
    }

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
