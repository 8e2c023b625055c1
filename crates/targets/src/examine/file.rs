//! Examines a regular file or a directory: its filesystem, the device under it, what uses it. It opens for reading only.

use super::Hold;
use crate::display::shown;
use crate::error::TargetError;
use crate::examined::{Examined, Place};
use crate::facts::layers;
use crate::labels::{self, mmp};
use crate::machine::{Machine, Mount, Node, mount_of};
use crate::probe::Writers;
use crate::roots::Roots;
use crate::space::growth::{Taking, spare_bytes};
use crate::space::{anew, growing, overlay, thin_pool};
use crate::uses::open_stat::Inode;
use crate::uses::{InUse, ONLY_ITS_OWNER, UseKind};
use crate::uses::{erofs, exports, file_uses, processes, system_files, twins};
use crate::{facts, probe};
use rdsk_model::{Filesystem, Target, TargetKind};
use rdsk_sys::device_number::DeviceNumber;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name that stands for the filesystem in a file, where answers of programs are prepared.
const FILESYSTEM: &str = "file";

/// What the kernel alone says: procfs shows no such process.
const READ_UNSEEN: &str = "the kernel says that it is open for reading, where no process shows it: in a socket, in a ring of io_uring, for \
                           a client of a file server";

/// Examines a directory, in which a test file may be created.
pub(super) fn examine_directory(name: &str, path: PathBuf, roots: &Roots) -> Result<Examined, TargetError> {
    let mut usage = InUse::default();
    let machine = Machine::read(roots, &mut usage);
    let failed = |e: rustix::io::Errno| TargetError::from_io(&path, "examined", e.into());
    let (space, dev) = rustix::fs::statvfs(&path)
        .and_then(|space| Ok((space, rustix::fs::stat(&path)?.st_dev)))
        .map_err(failed)?;
    if let Some(why) = overlay::why_in_memory(&machine.mounts, &path) {
        usage.add(UseKind::InMemory, &why);
    }
    let mount = mount_of(&machine.mounts, &path);
    if let Some(mount) = mount.filter(|mount| mount.is_read_only()) {
        usage.add(UseKind::ReadOnly, &format!("{} is mounted read-only", mount.point.display()));
    }
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(errno) = rustix::fs::accessat(rustix::fs::CWD, &path, wanted, rustix::fs::AtFlags::EACCESS) {
        usage.add(UseKind::NotWritable, &errno.to_string());
    } else if let Some(why) = probe::protection(&path) {
        // In an append-only directory a file can be created and not removed.
        usage.add(UseKind::NotWritable, why);
    }
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let mut growths = Vec::new();
    if let Some(node) = node_below(&path, &machine, mount) {
        refuse_suspended(&path, &machine, node)?;
        let kind = mount.map_or("", |mount| mount.kind.as_str());
        growths = thin_pool::of_filesystem(&machine, node, kind, None, free_bytes, &mut usage);
        let (taking, most_bytes) = thin_pool::allocated_by_filesystem(kind, None, free_bytes);
        growths.extend(growing::below_device(&machine, node, taking, most_bytes));
    }
    let pool_spare_bytes = spare_bytes(&growths);
    growths.extend(growing::of_directory(&machine, &path));
    usage.sort_uses();
    let target = file_target(name, &path, 0, &machine, mount);
    let place = Place::Directory {
        path: path.clone(),
        dev,
        free_bytes,
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        pool_spare_bytes,
        rewriting: probe::rewriting(&path),
    };
    Ok(Examined { growths, ..Examined::new(target, path, place, usage) })
}

pub(super) fn examine_file(
    name: &str,
    path: PathBuf,
    meta: &Metadata,
    roots: &Roots,
    hold: Hold,
) -> Result<Examined, TargetError> {
    if meta.len() == 0 {
        return Err(TargetError::Empty { path: shown(&path) });
    }
    let mut usage = InUse::default();
    let machine = Machine::read(roots, &mut usage);
    let mount = mount_of(&machine.mounts, &path);
    let node = node_below(&path, &machine, mount);
    node.map_or(Ok(()), |node| refuse_suspended(&path, &machine, node))?;
    usage.extend(file_uses::find(&machine, &path, (meta.dev(), meta.ino())));
    if hold == Hold::NotYet && usage.uses.is_empty() {
        twins::find_writers(&machine.roots.proc, &path, &mut usage);
    }
    // Who it is says more than that there is one.
    if hold == Hold::NotYet && usage.uses.is_empty() {
        let writers = probe::writers(&path);
        told_by_kernel(&machine, writers, &mut usage);
        if usage.uses.is_empty() {
            opened_by_kernel(&machine, (&path, (meta.dev(), meta.ino())), writers, &mut usage);
        }
    }
    if let Some(why) = probe::protection(&path) {
        usage.add(UseKind::NotWritable, why);
    }
    system_files::find(&machine, &path, meta, &mut usage);
    labels::of_file(&machine, &path, FILESYSTEM, &mut usage);
    mmp::find(&machine, &path, FILESYSTEM, "the filesystem in it", &mut usage);
    let anew = anew::of_target(&machine.mounts, &path, meta);
    let mut growths = growing::of_file(&machine, &path, meta, &anew);
    if let Some(node) = node {
        let kind = mount.map_or("", |mount| mount.kind.as_str());
        let free_bytes =
            rustix::fs::statvfs(&path).map_or(0, |space| space.f_bavail.saturating_mul(space.f_frsize));
        growths.extend(thin_pool::of_filesystem(
            &machine,
            node,
            kind,
            Some(meta.len()),
            free_bytes,
            &mut usage,
        ));
        // What is allocated is written in place, except by a filesystem that copies on write.
        let (taking, most_bytes) =
            thin_pool::allocated_by_filesystem(kind, Some(anew.at_most_bytes), free_bytes);
        let taking = if taking == Taking::Written { anew.taking } else { taking };
        growths.extend(growing::below_device(&machine, node, taking, most_bytes));
    }
    usage.sort_uses();
    let mut target = file_target(name, &path, meta.len(), &machine, mount);
    target.direct_io = probe::direct_io(&path);
    target.dontcache = probe::dontcache(&path, meta.len());
    let logical = target.device.as_ref().and_then(|device| device.logical_block_bytes);
    target.direct_align_bytes = probe::direct_align(&path).or(logical);
    let allocation = probe::allocation_of(&path, 0, meta.len());
    let place = Place::File { dev: meta.dev(), ino: meta.ino() };
    Ok(Examined { allocation, growths, ..Examined::new(target, path, place, usage) })
}

/// What the kernel says of who has a file open for writing. Where it says nothing, a process that cannot be seen is a doubt.
fn told_by_kernel(machine: &Machine<'_>, writers: Writers, usage: &mut InUse) {
    let silence = match writers {
        Writers::None => return,
        Writers::Some => {
            return usage.add_unseen(UseKind::OpenElsewhere, "the kernel says that it is open for writing");
        }
        Writers::MayNotBeAsked => ONLY_ITS_OWNER,
        Writers::NotAskable => "its filesystem does not show whether it is open for writing",
    };
    file_uses::doubt_unseen(machine, silence, usage);
}

/// What the kernel itself may have open, by whatever name: a file that a filesystem is mounted from, or that is exported. Where it does
/// not say who reads the file, what it has opened by a name that need not lead there now is a doubt.
fn opened_by_kernel(
    machine: &Machine<'_>,
    (path, inode): (&Path, Inode),
    writers: Writers,
    usage: &mut InUse,
) {
    let tells = writers == Writers::None && probe::tells_readers();
    let is_read = tells && probe::has_readers(path);
    // Those that procfs shows have been judged by who they are.
    let is_shown = is_read && processes::is_shown_open(&machine.roots.proc, path, inode);
    if is_read && !is_shown {
        let mount = erofs::may_be_mounted_from(machine, path, inode).into_iter().next();
        return match mount {
            Some(mount) => {
                let said = format!("{READ_UNSEEN}, or {} is mounted from it", mount.shown());
                usage.add(UseKind::ReadElsewhere, &said);
            }
            None => usage.add_unseen(UseKind::ReadElsewhere, READ_UNSEEN),
        };
    }
    if !tells || is_shown {
        exports::doubt_file(machine, inode, usage);
        erofs::doubt(machine, path, inode, usage);
    }
}

/// Refuses a file or directory whose device takes no I/O now, before anything is asked of it that would wait.
fn refuse_suspended(path: &Path, machine: &Machine<'_>, node: &Node) -> Result<(), TargetError> {
    match growing::suspended(machine, node) {
        Some(device) => {
            Err(TargetError::Suspended { path: shown(path), device: rdsk_units::printable(&device) })
        }
        None => Ok(()),
    }
}

fn node_below<'machine>(
    path: &Path,
    machine: &'machine Machine<'_>,
    mount: Option<&Mount>,
) -> Option<&'machine Node> {
    let by_stat = fs::metadata(path).ok().map(|meta| DeviceNumber::from_raw(meta.dev()));
    by_stat
        .and_then(|number| machine.tree.by_number(number))
        .or_else(|| mount.and_then(|mount| machine.device_of_mount(mount)))
}

/// What a Record says of a file.
pub(crate) fn file_target(
    name: &str,
    path: &Path,
    size_bytes: u64,
    machine: &Machine<'_>,
    mount: Option<&Mount>,
) -> Target {
    let node = node_below(path, machine, mount);
    let filesystem = |mount: &Mount| Filesystem {
        kind: mount.kind.clone(),
        options: format!("{},{}", mount.options, mount.super_options),
    };
    Target {
        name: name.to_owned(),
        kind: TargetKind::File,
        path: Some(path.to_string_lossy().into_owned()),
        size_bytes,
        filesystem: mount.map(filesystem),
        device: node.map(|node| facts::device(&machine.tree, node, &machine.mapper)),
        other_devices: mount.map_or_else(Vec::new, |mount| {
            let is_other = |other: &&Node| node.is_none_or(|node| node.name != other.name);
            let others = machine.devices_under(mount).into_iter().filter(is_other);
            others.map(|other| layers::layer(&machine.tree, other)).collect()
        }),
        stack: node.map(|node| machine.tree.kernel_names(node)).unwrap_or_default(),
        ..Target::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    /// What is found of a file on a machine where every process can be looked at, and on one where procfs hides some.
    fn usage(writers: Writers) -> [InUse; 2] {
        let hidden = Fake::new();
        fs::remove_dir_all(hidden.path("proc/1")).unwrap();
        [Fake::new(), hidden].map(|fake| {
            fake.with(|machine, _| {
                let mut usage = InUse::default();
                told_by_kernel(machine, writers, &mut usage);
                usage
            })
        })
    }

    #[test]
    fn where_the_kernel_does_not_tell_who_writes_procfs_must_show_everybody() {
        for (writers, words) in [
            (
                Writers::MayNotBeAsked,
                "the kernel shows only its owner whether it is open for writing, and procfs hides",
            ),
            (
                Writers::NotAskable,
                "its filesystem does not show whether it is open for writing, and procfs hides",
            ),
        ] {
            let [seen, hidden] = usage(writers);
            assert_eq!((seen.uses, seen.doubts), (vec![], vec![]), "{writers:?}");
            assert_eq!(hidden.uses, []);
            assert!(hidden.doubts.len() == 1 && hidden.doubts[0].starts_with(words), "{:?}", hidden.doubts);
        }
        for one in usage(Writers::None) {
            assert_eq!((one.uses, one.doubts), (vec![], vec![]));
        }
        for one in usage(Writers::Some) {
            assert_eq!((one.uses.len(), one.uses[0].kind, one.doubts), (1, UseKind::OpenElsewhere, vec![]));
        }
    }
}
