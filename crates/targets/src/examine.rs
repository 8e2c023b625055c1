//! Examines a name: what it is, what it lies on, what uses it. Symlinks are resolved first, so that what is checked is
//! what will be opened. It opens for reading only and decides nothing.

mod block;
mod file;
mod relabelled;
mod simulated;

#[cfg(test)]
pub(crate) use block::examine_node;
pub(crate) use file::file_target;

use crate::display::shown;
use crate::error::TargetError;
use crate::examined::{Examined, Place};
use crate::identity::naming;
use crate::machine::Machine;
use crate::probe;
use crate::roots::Roots;
use crate::sim::SIM_PREFIX;
use crate::uses::InUse;
use crate::uses::{block_uses, file_uses};
use block::examine_block;
use file::{examine_directory, examine_file};
use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Whether this process holds the target already, which decides what can be asked of the kernel and what may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The kernel is asked who holds a device exclusively, or has a file open for writing.
    NotYet,
    /// It would name this process. The target is written next, so that first blocks are read for metadata without a label.
    Ours,
}

/// Examines `name`: a directory, a regular file or a block device, or a symlink to one; `sim:` names a simulated
/// target. A word that is not an existing path may be an identity of a device, or a tag of mount(8) such as
/// `PARTUUID=`.
///
/// # Errors
/// If there is no such thing, it may not be examined, it is none of the three, or it is empty.
pub fn examine(name: &str, roots: &Roots) -> Result<Examined, TargetError> {
    if let Some(simulated) = name.strip_prefix(SIM_PREFIX) {
        return simulated::examine(name, simulated);
    }
    let given = Path::new(name);
    let path = match fs::canonicalize(given) {
        Ok(path) => path,
        Err(error) => {
            // An existing path always wins; one that may not be examined may exist.
            let is_missing = matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR));
            let named = if is_missing { naming::resolve(name, roots)? } else { None };
            named.ok_or_else(|| TargetError::from_io(given, "found", error))?
        }
    };
    examine_path(name, path, roots, Hold::NotYet)
}

/// Examines what `path` leads to; no part of it may be a symlink.
pub(crate) fn examine_path(
    name: &str,
    path: PathBuf,
    roots: &Roots,
    hold: Hold,
) -> Result<Examined, TargetError> {
    let meta = fs::symlink_metadata(&path).map_err(|error| TargetError::from_io(&path, "examined", error))?;
    let kind = meta.file_type();
    if kind.is_block_device() {
        return examine_block(name, path, &meta, roots, hold);
    }
    if !kind.is_file() && !kind.is_dir() {
        return Err(TargetError::NotMeasurable { path: shown(&path), what: describe(kind) });
    }
    if let Some(what) = pseudo_filesystem(&path) {
        return Err(TargetError::NotMeasurable { path: shown(&path), what });
    }
    if kind.is_dir() {
        examine_directory(name, path, roots)
    } else {
        examine_file(name, path, &meta, roots, hold)
    }
}

/// What is looked at again of an open target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    Uses,
    /// The labels of a device, too, for which programs are run.
    UsesAndLabels,
}

/// What uses an open device or file of the user now, except exclusive openers: that is this process itself.
pub(crate) fn uses_now(examined: &Examined, roots: &Roots, again: Again) -> InUse {
    let mut usage = InUse::default();
    let machine = Machine::read(roots, &mut usage);
    match &examined.place {
        Place::Block { major_minor, .. } => match machine.tree.by_number(*major_minor) {
            Some(node) => {
                if again == Again::UsesAndLabels {
                    relabelled::find(&machine, node, examined, &mut usage);
                }
                usage.extend(block_uses::find(&machine, node));
                usage.extend(file_uses::find_below(&machine, node));
            }
            None => usage.doubt(format_args!("sysfs does not know the device {major_minor}")),
        },
        Place::File { dev, ino } => {
            usage.extend(file_uses::find(&machine, &examined.path, (*dev, *ino)));
        }
        Place::Directory { .. } | Place::Sim(_) => {}
    }
    usage.sort_uses();
    usage
}

fn describe(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "is a pipe, not a file"
    } else if kind.is_socket() {
        "is a socket, not a file"
    } else if kind.is_char_device() {
        "is a character device; only block devices, files and directories can be measured"
    } else {
        "is neither a block device nor a file nor a directory"
    }
}

/// `f_type` of filesystems whose files are interfaces of the kernel: proc, sysfs, debugfs, tracefs, securityfs, cgroup,
/// cgroup2, bpf, pstore, efivarfs, configfs, selinuxfs, devpts, binfmt_misc.
const PSEUDO_TYPES: [u64; 14] = [
    0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x7363_6673, 0x0027_e0eb, 0x6367_7270, 0xcafe_4a11,
    0x6165_676c, 0xde5e_81e4, 0x6265_6570, 0xf97c_ff8c, 0x1cd1, 0x4249_4e4d,
];

fn pseudo_filesystem(path: &Path) -> Option<&'static str> {
    let is_pseudo = PSEUDO_TYPES.contains(&probe::filesystem_type(path)?);
    is_pseudo.then_some("is an interface of the kernel, not storage")
}
