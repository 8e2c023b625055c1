//! What uses a regular file: loop devices, swap, other processes. The same looks serve the backing file of a loop device.
//! It reads procfs and stat(2) and opens nothing.

use crate::mounts::mount_of;
use crate::text::shown;
use crate::uses::{Found, UseKind};
use crate::world::World;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Processes whose open files are looked at.
const MAX_PROCESSES: usize = 1 << 16;

/// A file beyond its name.
pub(crate) type Inode = (u64, u64);

/// Which open descriptors of others count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// Every one.
    Anyhow,
    /// Those that may write.
    ForWriting,
}

/// Finds the uses of the user's file at `path`.
pub(crate) fn find(world: &World<'_>, path: &Path, inode: Inode) -> Found {
    let mut found = Found::default();
    backing(world, inode, None, &mut found);
    swapped(world, path, inode, &mut found);
    opened(world, path, inode, Opened::ForWriting, &mut found);
    if let Some(mount) = mount_of(&world.mounts, path).filter(|mount| mount.is_read_only()) {
        found.add(UseKind::ReadOnly, &format!("{} is mounted read-only", mount.point.display()));
    }
    found
}

/// Finds who else uses the backing file of the loop device `loop_name`.
pub(crate) fn find_below_loop(world: &World<'_>, loop_name: &str, path: &Path) -> Found {
    let mut found = Found::default();
    match fs::metadata(path) {
        Ok(meta) => {
            let inode = (meta.dev(), meta.ino());
            backing(world, inode, Some(loop_name), &mut found);
            swapped(world, path, inode, &mut found);
            opened(world, path, inode, Opened::Anyhow, &mut found);
        }
        Err(error) => found.doubt(&format!("its backing file {} cannot be looked at ({error})", shown(path))),
    }
    found
}

fn backing(world: &World<'_>, inode: Inode, except: Option<&str>, found: &mut Found) {
    for node in world.tree.nodes().filter(|node| Some(node.name.as_str()) != except) {
        let Some(file) = node.backing_file.as_deref() else { continue };
        if world.backing(node).is_some_and(|backing| backing.inode == inode) {
            found.add(UseKind::BackingFile, &format!("{} keeps its data in {}", node.name, file.display()));
        }
    }
    for node in world.lost_backings().filter(|node| Some(node.name.as_str()) != except) {
        found.doubt(&format!("it may be what {} keeps its data in", node.shown()));
    }
}

fn swapped(world: &World<'_>, path: &Path, inode: Inode, found: &mut Found) {
    let is_ours = |swap: &&std::path::PathBuf| {
        *swap == path || fs::metadata(swap).is_ok_and(|meta| (meta.dev(), meta.ino()) == inode)
    };
    if let Some(swap) = world.swaps.iter().find(is_ours) {
        found.add(UseKind::Swap, &swap.display().to_string());
    }
}

/// Looks through the descriptors of the processes that may be looked at. The inode's number that the kernel prints (5.14
/// and later; before, the last name, which hard links and bind mounts change) is compared first, so that stat(2), which
/// may hang on a dead server, is called for likely files only.
fn opened(world: &World<'_>, path: &Path, inode: Inode, which: Opened, found: &mut Found) {
    let proc = &world.roots.proc;
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir(proc) else { return };
    for entry in entries.filter_map(Result::ok).take(MAX_PROCESSES) {
        let process = entry.file_name().to_string_lossy().into_owned();
        if process == own || !process.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let directory = proc.join(&process);
        let Ok(descriptors) = fs::read_dir(directory.join("fd")) else { continue };
        let is_open = descriptors.filter_map(Result::ok).any(|descriptor| {
            let link = descriptor.path();
            let may_be = || match inode_in(&directory, &descriptor.file_name().to_string_lossy()) {
                Some(number) => number == inode.1,
                None => fs::read_link(&link).is_ok_and(|target| target.file_name() == path.file_name()),
            };
            may_be()
                && fs::metadata(&link).is_ok_and(|meta| (meta.dev(), meta.ino()) == inode)
                && (which == Opened::Anyhow || writes(&directory, &descriptor.file_name().to_string_lossy()))
        });
        if is_open {
            let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
            found.add(UseKind::OpenElsewhere, &format!("process {process} ({})", name.trim_end()));
        }
    }
}

/// The number of the inode behind a descriptor, as fdinfo has it.
fn inode_in(process: &Path, descriptor: &str) -> Option<u64> {
    let info = fs::read_to_string(process.join("fdinfo").join(descriptor)).ok()?;
    info.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()
}

/// Whether a descriptor may write; one that cannot be asked is taken to.
fn writes(process: &Path, descriptor: &str) -> bool {
    const ACCESS_MODE: u32 = 0o3;
    let info = fs::read_to_string(process.join("fdinfo").join(descriptor)).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|text| u32::from_str_radix(text.trim(), 8).ok())
        .is_none_or(|flags| flags & ACCESS_MODE != 0)
}
