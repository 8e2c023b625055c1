//! What uses a target: each use is a reason why nothing may be written, whatever the flags.
//!
//! In: what [`machine`](crate::machine) has read, and a device (`block_uses`) or a file (`file_uses`). Out: `Found`, with a [`Use`] for each
//! mount, device, process, lock and export that the target serves, and a doubt for whatever could not be looked at. `authorize` decides.
//! This file is data only; those below it look, and none of them opens anything for writing.

pub(crate) mod block_uses;
pub(crate) mod dm_openers;
pub(crate) mod erofs;
pub(crate) mod exports;
pub(crate) mod file_uses;
pub(crate) mod locks;
pub(crate) mod onlookers;
pub(crate) mod open_stat;
pub(crate) mod processes;
pub(crate) mod served;
pub(crate) mod stored_name;
pub(crate) mod system_disk;
pub(crate) mod system_files;
pub(crate) mod twins;

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// The beginning of a doubt that the owner of a file would not have.
pub(crate) const ONLY_ITS_OWNER: &str = "the kernel shows only its owner whether it is open for writing";

/// The end of a doubt about an export whose file or device cannot be looked at.
pub(crate) const LOST_EXPORT: &str = "which cannot be found here";

/// The end of a doubt about an export whose name leads elsewhere now, and need not always have.
pub(crate) const MOVED_EXPORT: &str = "a name that may have led here when it was exported";

/// The end of a doubt about a device that the kernel counts as open more often than programs, mounts and other devices explain.
pub(crate) const UNSEEN_OPENER: &str = "than can be seen";

/// How a target is in use, the most serious first: a refusal names the first kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseKind {
    /// It lies on a disk that carries `/`, `/usr` or `/boot`.
    SystemDisk,
    /// It belongs to the operating system or to its package manager.
    SystemFile,
    /// A filesystem on it is mounted.
    Mounted,
    /// It is active swap space.
    Swap,
    /// Another block device (LVM, md, crypt, loop) is built on it.
    Holder,
    /// It, or the file below it, is the backing of a loop device.
    BackingFile,
    /// Another device-mapper device or array shares some of its sectors.
    SharedSectors,
    /// The kernel serves it to other hosts.
    Exported,
    /// A program holds the device with `O_EXCL`.
    OpenExclusive,
    /// Another process has the file open or mapped, or the device open for writing.
    OpenElsewhere,
    /// Another process has the file or device open for reading.
    ReadElsewhere,
    /// Its label says that it is part of something larger or encrypted: of LVM, md, ZFS, LUKS.
    Member,
    /// Its multi-mount protection says that another host has it mounted.
    MultiMounted,
    /// It begins with metadata that util-linux does not know.
    Metadata,
    /// It has no label, and another device says that it is part of something larger.
    PartOf,
    /// A label is on it that was not there when it was examined.
    Relabelled,
    /// It accepts writes only at the write pointers of its zones.
    HostManaged,
    /// Writing to it takes of a thin pool that others need, and whose fill level is not known.
    ThinPool,
    /// The file is a program.
    Program,
    /// The file has other names, under which its data would be lost too.
    HardLinked,
    /// The file is too small to be meant.
    Small,
    /// It, or its filesystem, is read-only.
    ReadOnly,
    /// This user may not write there.
    NotWritable,
    /// The directory's filesystem is in memory, so that there is no disk to measure.
    InMemory,
}

/// What has a label that is a use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Labelled {
    /// The target, a partition of it, or the disk around it.
    Device {
        /// Its node.
        node: PathBuf,
        /// The kind of label, as libblkid names it; safe to print.
        kind: String,
    },
    /// A partition that the kernel does not show.
    HiddenPartition {
        /// The node of the device that has the table of partitions.
        table_on: PathBuf,
    },
}

/// Who has a target open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Opener {
    /// A process of this name, by its `comm`.
    Process(String),
    /// The kernel says that there is one, and no process shows it.
    Unseen,
}

/// One use, with what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Use {
    /// How.
    pub kind: UseKind,
    /// By what: `/home on sdb3`; safe to print.
    pub text: String,
    /// What has the label, for a use by a label that can be removed without harm to anything else.
    #[serde(skip)]
    pub labelled: Option<Labelled>,
    /// By what another look knows this use again; `None` where that is the text.
    #[serde(skip)]
    pub(crate) known_by: Option<String>,
    /// Who has it open, for a use by that.
    #[serde(skip)]
    pub(crate) opener: Option<Opener>,
}

impl Use {
    /// A use; control characters in `text` are escaped.
    pub(crate) fn new(kind: UseKind, text: &str) -> Self {
        Self { kind, text: rdsk_units::printable(text), labelled: None, known_by: None, opener: None }
    }

    /// Whether another look saw the same use.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.known_by() == other.known_by()
    }

    fn known_by(&self) -> &str {
        self.known_by.as_ref().unwrap_or(&self.text)
    }
}

/// The result of a search for uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse {
    pub(crate) uses: Vec<Use>,
    /// What could not be examined, so that "not in use" is not proven.
    pub(crate) doubts: Vec<String>,
}

impl InUse {
    pub(crate) fn add(&mut self, kind: UseKind, text: &str) {
        self.uses.push(Use::new(kind, text));
    }

    /// A process, by its number and name, and what it does. Its name may be another one at the next look: that of a program which it
    /// executes, or one that it gave itself.
    pub(crate) fn add_process(&mut self, kind: UseKind, id: &str, name: &str, does: &str) {
        let known_by = Some(format!("{id} {does}"));
        let opener = Some(Opener::Process(name.to_owned()));
        let text = format!("process {id} ({name}) {does}");
        self.uses.push(Use { known_by, opener, ..Use::new(kind, text.trim_end()) });
    }

    /// The kernel says that the target is open, and no process shows it.
    pub(crate) fn add_unseen(&mut self, kind: UseKind, text: &str) {
        self.uses.push(Use { opener: Some(Opener::Unseen), ..Use::new(kind, text) });
    }

    /// A label says that what has it belongs to something.
    pub(crate) fn add_label(&mut self, labelled: Labelled, text: &str) {
        self.uses.push(Use { labelled: Some(labelled), ..Use::new(UseKind::Member, text) });
    }

    /// Something could not be examined; control characters in `why` are escaped.
    pub(crate) fn doubt(&mut self, why: impl fmt::Display) {
        self.doubts.push(rdsk_units::printable(&why.to_string()));
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.uses.extend(other.uses);
        self.doubts.extend(other.doubts);
    }

    /// Sorts the uses, the most serious first, each once.
    pub(crate) fn sort_uses(&mut self) {
        self.uses.sort();
        self.uses.dedup();
    }
}

#[cfg(test)]
mod tests {
    /// The row of docs/record.md has each kind as serde spells it, in their order.
    #[test]
    fn the_document_names_every_kind() {
        let (_, from) = include_str!("uses.rs").split_once("pub enum UseKind {").unwrap();
        let (variants, _) = from.split_once('}').unwrap();
        let kebab = |name: &str| {
            let mut word = String::new();
            for letter in name.chars() {
                if letter.is_ascii_uppercase() && !word.is_empty() {
                    word.push('-');
                }
                word.push(letter.to_ascii_lowercase());
            }
            word
        };
        let lines = variants.lines().map(str::trim).filter(|line| !line.starts_with("///"));
        let kinds: Vec<String> = lines.filter_map(|line| line.strip_suffix(',')).map(kebab).collect();
        let mut rows = include_str!("../../../docs/record.md").lines();
        let row = rows.find(|line| line.starts_with("| `uses` |")).unwrap();
        let named: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        assert_eq!(named[2..], kinds);
        assert!(kinds.len() > 15 && kinds[0] == "system-disk", "{kinds:?}");
    }
}
