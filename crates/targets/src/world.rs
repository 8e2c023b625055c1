//! Everything that is read once per examination: the devices, the mounts, the swap spaces. It answers which device a mount
//! or a swap space lies on, and judges nothing.

use crate::mounts::{Mount, read_mounts, read_swaps};
use crate::node::DeviceNumber;
use crate::roots::Roots;
use crate::sysfs::{Node, Tree};
use crate::uses::Found;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The state of the machine at one moment.
#[derive(Debug)]
pub(crate) struct World<'roots> {
    /// Where it was read.
    pub(crate) roots: &'roots Roots,
    /// The block devices.
    pub(crate) tree: Tree,
    /// The mounts of every namespace that can be seen.
    pub(crate) mounts: Vec<Mount>,
    /// The swap spaces.
    pub(crate) swaps: Vec<PathBuf>,
}

impl<'roots> World<'roots> {
    /// Reads it. What cannot be read becomes a doubt.
    pub(crate) fn read(roots: &'roots Roots, found: &mut Found) -> Self {
        let tree = Tree::read(&roots.sys).unwrap_or_else(|error| {
            found.doubt(&format!("the list of block devices cannot be read ({error})"));
            Tree::default()
        });
        let mounts = read_mounts(&roots.proc, found);
        let swaps = read_swaps(&roots.proc, found);
        Self { roots, tree, mounts, swaps }
    }

    /// The device under a mount: by its number, else by its source (btrfs), else by where an overlay writes.
    pub(crate) fn device_of_mount(&self, mount: &Mount) -> Option<&Node> {
        self.tree
            .by_number(mount.number)
            .or_else(|| self.tree.by_path(&mount.source, &self.roots.dev))
            .or_else(|| {
                let upper = mount.super_option("upperdir")?;
                let number = DeviceNumber::from_raw(std::fs::metadata(upper).ok()?.dev());
                self.tree.by_number(number)
            })
    }

    /// The device that is a swap space; `None` for a swap file.
    pub(crate) fn device_of_swap(&self, path: &std::path::Path) -> Option<&Node> {
        self.tree.by_path(path, &self.roots.dev)
    }

    /// The block device that a loop device keeps its data in; `None` where that is a file.
    pub(crate) fn device_below_loop(&self, node: &Node) -> Option<&Node> {
        self.tree.by_path(node.backing_file.as_deref()?, &self.roots.dev)
    }
}
