//! How much of a file its filesystem allocates anew when the file is overwritten: holes and shared blocks, everything where
//! changed blocks go to another place, and the whole file where an overlay copies it first. It reads and changes nothing.

use crate::machine::{Mount, mount_of};
use crate::probe;
use crate::space::growth::{Rewriting, Taking};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The unit of `st_blocks` (inode(7)).
const BLOCK_BYTES: u64 = 512;

/// What overwriting a file takes of its filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anew {
    /// It takes no more than this.
    pub(crate) at_most_bytes: u64,
    pub(crate) taking: Taking,
    /// Why blocks that the file has already do not help; `None` if they do.
    pub(crate) why: Option<&'static str>,
}

/// For a target, which is opened for writing.
pub(crate) fn of_target(mounts: &[Mount], path: &Path, meta: &Metadata) -> Anew {
    if !probe::is_overlay(path) {
        return of_open(path, meta);
    }
    let own = mount_of(mounts, path).and_then(|mount| in_upper(mount, path, meta));
    match own {
        Some((path, meta)) => of_open(&path, &meta),
        // Documentation/filesystems/overlayfs.rst, "Non-directories": opening a file of a lower layer for writing copies it up.
        None => Anew {
            at_most_bytes: meta.len(),
            taking: Taking::Always(meta.len()),
            why: Some("an overlay, which copies a file whole before the first write"),
        },
    }
}

/// For a file that is open for writing, as that below a loop device: an overlay has already copied it.
pub(crate) fn of_open(path: &Path, meta: &Metadata) -> Anew {
    let rewriting = probe::rewriting(path);
    let why = rewriting.why();
    match rewriting {
        Rewriting::InPlace => {}
        Rewriting::Copies => return Anew { at_most_bytes: meta.len(), taking: Taking::Written, why },
        Rewriting::Keeps => return Anew { at_most_bytes: u64::MAX, taking: Taking::Always(u64::MAX), why },
    }
    let holes_bytes = meta.len().saturating_sub(meta.blocks().saturating_mul(BLOCK_BYTES));
    let bytes = holes_bytes.saturating_add(probe::shared_bytes(path, meta.len()));
    Anew { at_most_bytes: bytes.min(meta.len()), taking: Taking::Written, why: None }
}

/// The file of the upper layer that the overlay shows as `path`; `None` if it is not certain that there is one. The layer may lie
/// in another mount namespace, and may have only the metadata of the file.
fn in_upper(mount: &Mount, path: &Path, meta: &Metadata) -> Option<(PathBuf, Metadata)> {
    let upper = mount.super_option("upperdir")?.join(path.strip_prefix(&mount.point).ok()?);
    let own = fs::symlink_metadata(&upper).ok().filter(Metadata::is_file)?;
    let marks = |meta: &Metadata| {
        (meta.len(), meta.blocks(), meta.ctime(), meta.ctime_nsec(), meta.mtime(), meta.mtime_nsec())
    };
    (marks(&own) == marks(meta)).then_some((upper, own))
}
