//! What holds a target: each a reason why nothing may be written, whatever the flags. Data only; `block_uses` and
//! `file_uses` find them, `judge` decides.

/// How a target is in use. The order is that of weight: a refusal names the first kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseKind {
    /// It lies on a disk that carries `/`, `/usr` or `/boot`.
    SystemDisk,
    /// A filesystem on it is mounted.
    Mounted,
    /// It is active swap space.
    Swap,
    /// Another block device (LVM, md, crypt, loop) is made of it.
    Holder,
    /// It, or the file below it, is what a loop device keeps its data in.
    BackingFile,
    /// Another device-mapper device or array has some of its sectors.
    SharedSectors,
    /// The kernel serves it to other hosts.
    Exported,
    /// Somebody holds the device with `O_EXCL`.
    OpenExclusive,
    /// Another process has the file open or mapped, or the device open for writing.
    OpenElsewhere,
    /// Its label says that it is a part of something larger, or the lock of something encrypted: of LVM, md, ZFS, LUKS.
    Member,
    /// It takes writes only where the write pointers of its zones stand.
    HostManaged,
    /// Writing to it may use up a thin pool that others need.
    ThinPool,
    /// It, or its filesystem, takes no writes.
    ReadOnly,
    /// This user may not write there.
    NotWritable,
    /// The directory's filesystem is in memory, so that there is no disk to measure.
    InMemory,
}

/// One use, with what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// How.
    pub kind: UseKind,
    /// By what: `/home on sdb3`; safe to print.
    pub text: String,
}

impl Use {
    /// A use; control characters in `text` are made visible.
    pub(crate) fn new(kind: UseKind, text: &str) -> Self {
        Self { kind, text: rdsk_units::printable(text) }
    }
}

/// What looking for uses found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The uses.
    pub(crate) uses: Vec<Use>,
    /// What could not be looked at, so that "not in use" is not proven.
    pub(crate) doubts: Vec<String>,
}

impl Found {
    /// Takes a use.
    pub(crate) fn add(&mut self, kind: UseKind, text: &str) {
        self.uses.push(Use::new(kind, text));
    }

    /// Takes a doubt.
    pub(crate) fn doubt(&mut self, text: &str) {
        self.doubts.push(rdsk_units::printable(text));
    }

    /// Takes over what another look found.
    pub(crate) fn extend(&mut self, other: Self) {
        self.uses.extend(other.uses);
        self.doubts.extend(other.doubts);
    }

    /// Brings the uses into order of weight, each once.
    pub(crate) fn sort_uses(&mut self) {
        self.uses.sort();
        self.uses.dedup();
    }
}
