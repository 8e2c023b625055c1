//! What writing uses up besides the target itself: the filesystem that a sparse file grows in, memory, a thin pool. Data only;
//! `growing` and `thin_pool` look, and `fills_up` decides.

/// A tenth of a large filesystem is more than anything else on it needs for a while.
const MOST_KEPT_BYTES: u64 = 16 << 30;

/// What stays free of a filesystem or of memory of this size: a tenth, or enough where a tenth is more.
pub(crate) fn kept_bytes(total_bytes: u64) -> u64 {
    total_bytes.div_ceil(10).min(MOST_KEPT_BYTES)
}

/// What a filesystem does with the blocks of a file that is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewriting {
    /// It writes them in place, or has the old one back with each new one.
    InPlace,
    /// It writes to another place and keeps the old blocks until nothing of their extent is left: up to as much again.
    Copies,
    /// It writes to another place and keeps all that was there until a cleaner comes round, which may be in an hour.
    Keeps,
}

impl Rewriting {
    /// Why blocks that a file has already do not help; `None` if they do.
    pub(crate) fn why(self) -> Option<&'static str> {
        match self {
            Self::InPlace => None,
            Self::Copies => Some("which writes changed blocks to another place"),
            Self::Keeps => Some("which keeps everything that was overwritten, until its cleaner runs"),
        }
    }

    /// What a file takes of which `first_bytes` are allocated first, and `again_bytes` overwritten, each block as often as there is
    /// time for; [`u64::MAX`] if there is no limit.
    pub(crate) fn taken_bytes(self, first_bytes: u64, again_bytes: u64) -> u64 {
        match self {
            Self::Keeps if again_bytes > 0 => u64::MAX,
            Self::InPlace | Self::Keeps => first_bytes,
            Self::Copies => first_bytes.saturating_add(again_bytes),
        }
    }
}

/// How much a target takes of something that writing to it uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taking {
    /// As much as is written (`Examined::write_bytes`), each block once; all that it may if that is not known.
    Written,
    /// So many bytes, however little is written.
    Always(u64),
    /// The test file of a directory; this many bytes as long as its size is not known.
    TestFile { unknown_bytes: u64 },
}

/// Which kind of thing is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowthKind {
    /// A filesystem that a sparse file grows in, or memory.
    Space,
    /// A filesystem that takes space for what a file has allocated already, too.
    Copies,
    /// A thin pool, or the store of a snapshot.
    Pool,
}

/// Something that writing to a target takes of, which may be shared with other targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Equal for everything that takes of the same thing: `filesystem 8:1`, `memory`.
    pub(crate) key: String,
    pub(crate) kind: GrowthKind,
    /// For messages: `the filesystem of /srv/a.img`.
    pub(crate) name: String,
    /// What happens when it is used up.
    pub(crate) loss: &'static str,
    pub(crate) free_bytes: u64,
    pub(crate) total_bytes: u64,
    /// What of the free bytes a run may take.
    pub(crate) spare_bytes: u64,
    /// The target takes no more of it than this, however much is written.
    pub(crate) at_most_bytes: u64,
    pub(crate) taking: Taking,
}

impl Growth {
    /// What a run that writes `write_bytes` of the target takes of it.
    pub(crate) fn taken_bytes(&self, write_bytes: Option<u64>) -> u64 {
        let wanted = match self.taking {
            Taking::Written => write_bytes.unwrap_or(u64::MAX),
            Taking::Always(bytes) => bytes,
            Taking::TestFile { unknown_bytes } => write_bytes.unwrap_or(unknown_bytes),
        };
        wanted.min(self.at_most_bytes)
    }
}

/// What a test file may take of `growths`, the smallest of them; `None` if nothing limits it. Two things that lie in the same
/// place, as the two halves of a mirror, may take it twice.
pub(crate) fn spare_bytes(growths: &[Growth]) -> Option<u64> {
    let limit = |growth: &Growth| {
        let same = || growths.iter().filter(|other| other.key == growth.key);
        let most = same().fold(0_u64, |sum, other| sum.saturating_add(other.at_most_bytes));
        (most > growth.spare_bytes).then(|| growth.spare_bytes / same().count().max(1) as u64)
    };
    growths.iter().filter_map(limit).min()
}
