//! What uses a regular file: loop devices, swap, exports to other hosts, other processes. The same looks serve the backing
//! file of a loop device. It reads procfs, configfs and stat(2) and opens nothing.

use crate::exports::{self, Wanted};
use crate::mounts::mount_of;
use crate::processes::{Inode, Opened, users_of_file};
use crate::text::shown;
use crate::uses::{Found, UseKind};
use crate::world::World;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Finds the uses of the user's file at `path`.
pub(crate) fn find(world: &World<'_>, path: &Path, inode: Inode) -> Found {
    let mut found = Found::default();
    backing(world, inode, None, &mut found);
    swapped(world, path, inode, &mut found);
    exports::find(world, &Wanted::File(inode), &mut found);
    users_of_file(&world.roots.proc, path, inode, Opened::ForWriting, &mut found);
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
            exports::find(world, &Wanted::File(inode), &mut found);
            users_of_file(&world.roots.proc, path, inode, Opened::Anyhow, &mut found);
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
