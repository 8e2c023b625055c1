//! The words of a workload: enums whose one spelling the Record, the command line and the screen share.

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
        /// Offsets drawn from the span, see [`crate::Workload::seed`].
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
        /// [`crate::Workload::pattern`].
        Pattern = "pattern",
        /// [`crate::Workload::path`].
        Path = "path",
        /// [`crate::Workload::sync`].
        Sync = "sync",
        /// [`crate::Workload::engine`].
        Engine = "engine",
    }
);

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
}
