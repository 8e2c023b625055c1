//! What writing uses up besides the target itself: the filesystem that a sparse file grows in, memory, a thin pool. Data only;
//! `growing` and `thin_pool` look, and `fills_up` decides.

/// A tenth of a large filesystem is more than anything else on it needs for a while.
const MOST_KEPT_BYTES: u64 = 16 << 30;

/// What stays free of a filesystem or of memory of this size: a tenth, or enough where a tenth is more.
pub(crate) fn kept_bytes(total_bytes: u64) -> u64 {
    total_bytes.div_ceil(10).min(MOST_KEPT_BYTES)
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
    let limit = |one: &Growth| {
        let same = || growths.iter().filter(|other| other.key == one.key);
        let most = same().fold(0_u64, |sum, other| sum.saturating_add(other.at_most_bytes));
        (most > one.spare_bytes).then(|| one.spare_bytes / same().count().max(1) as u64)
    };
    growths.iter().filter_map(limit).min()
}
