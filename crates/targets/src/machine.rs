//! Everything that is read once per examination: the devices, the backing files of loop devices, the mounts, the swap
//! spaces, the tables of device mapper. It answers which device a mount or a swap space lies on, and decides nothing.
//!
//! In: the [roots](crate::roots) of sysfs, procfs and `/dev`. Out: a [`Machine`], whose devices (`sysfs`) know what they are built on, byte
//! by byte (`shared_sectors`); what could not be read is a doubt.

pub(crate) mod attachment;
pub(crate) mod device_mapper;
pub(crate) mod disk_names;
pub(crate) mod luns;
pub(crate) mod lvm;
pub(crate) mod md_container;
pub(crate) mod mounts;
pub(crate) mod shared_sectors;
pub(crate) mod sysfs;

pub(crate) use attachment::Attachment;
pub(crate) use device_mapper::{Mapper, Part, PoolKind, PoolSpace, Row, Span};
pub(crate) use lvm::logical_volume;
pub(crate) use mounts::{Mount, Namespace, mount_of};
pub(crate) use shared_sectors::{Extents, Reach, Sharing};
pub(crate) use sysfs::{Node, Tree};

use crate::roots::Roots;
use crate::uses::InUse;
use device_mapper::MapperError;
use luns::Luns;
use mounts::{read_mounts, read_swaps};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::names_in;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The state of the machine at one moment.
#[derive(Debug)]
pub(crate) struct Machine<'roots> {
    pub(crate) roots: &'roots Roots,
    pub(crate) tree: Tree,
    pub(crate) luns: Luns,
    pub(crate) mapper: Mapper<'roots>,
    /// What device-mapper devices are built on, by kernel name, or why that is not known.
    tables: BTreeMap<String, Result<Vec<Row>, MapperError>>,
    /// The backing of loop devices that sysfs shows as attached, by kernel name: `None` for those that have been
    /// detached since. Those for which no source reports one are missing.
    backings: BTreeMap<String, Option<Backing>>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) swaps: Vec<PathBuf>,
}

impl<'roots> Machine<'roots> {
    /// Reads it. What cannot be read becomes a doubt.
    pub(crate) fn read(roots: &'roots Roots, usage: &mut InUse) -> Self {
        let mut tree = Tree::read(&roots.sys).unwrap_or_else(|error| {
            usage.doubt(format_args!("the list of block devices cannot be read ({error})"));
            Tree::default()
        });
        tree.mark_null(&roots.proc);
        let attached = tree.nodes().filter(|node| node.backing_file.is_some());
        let backings =
            attached.filter_map(|node| Some((node.name.clone(), backing_of(node, roots)?))).collect();
        let mounts = read_mounts(&roots.proc, usage);
        let swaps = read_swaps(&roots.proc, usage);
        let mapper = Mapper::open(roots);
        let mapped = tree.nodes().filter(|node| node.mapped_name.is_some() || node.name.starts_with("dm-"));
        let tables = mapped.map(|node| (node.name.clone(), mapper.table(node))).collect();
        Self { roots, luns: Luns::read(&tree), tree, mapper, tables, backings, mounts, swaps }
    }

    /// What a device-mapper device is built on, or why that is not known; `None` for every other device.
    pub(crate) fn table(&self, node: &Node) -> Option<&Result<Vec<Row>, MapperError>> {
        self.tables.get(&node.name)
    }

    pub(crate) fn backing(&self, node: &Node) -> Option<Backing> {
        self.backings.get(&node.name).copied().flatten()
    }

    /// Loop devices over a file of which only a deleted name is known: any file or device may be it.
    pub(crate) fn lost_backings(&self) -> impl Iterator<Item = &Node> {
        let is_deleted = |path: &PathBuf| path.to_string_lossy().ends_with(" (deleted)");
        self.unknown_backings().filter(move |node| node.backing_file.as_ref().is_some_and(is_deleted))
    }

    /// Loop devices that may not be asked for their file, and whose name for it leads nowhere here, as in a container.
    pub(crate) fn unknown_backings(&self) -> impl Iterator<Item = &Node> {
        self.tree
            .nodes()
            .filter(|node| node.backing_file.is_some() && !self.backings.contains_key(&node.name))
    }

    /// The other mount namespaces that can be seen.
    pub(crate) fn other_namespaces(&self) -> Vec<&Namespace> {
        let others =
            self.mounts.iter().map(|mount| &mount.namespace).filter(|space| **space != Namespace::Own);
        let mut others: Vec<&Namespace> = others.collect();
        others.dedup();
        others
    }

    /// The device under a mount: by its number, else by its source (btrfs), else by an overlay's upper directory.
    pub(crate) fn device_of_mount(&self, mount: &Mount) -> Option<&Node> {
        self.tree
            .by_number(mount.number)
            .or_else(|| self.tree.by_path(&mount.source, &self.roots.dev))
            .or_else(|| {
                let upper = mount.super_option("upperdir")?;
                let number = DeviceNumber::from_raw(fs::metadata(upper).ok()?.dev());
                self.tree.by_number(number)
            })
    }

    /// The devices under a mount. bcachefs names all that it lies on: `/dev/sda:/dev/sdb`.
    pub(crate) fn devices_of_mount(&self, mount: &Mount) -> Vec<&Node> {
        if let Some(device) = self.device_of_mount(mount) {
            return vec![device];
        }
        let source = mount.source.to_string_lossy();
        let names = source.split(':').filter(|_| mount.kind == "bcachefs");
        names.filter_map(|name| self.tree.by_path(Path::new(name), &self.roots.dev)).collect()
    }

    /// The devices of each btrfs that is mounted anywhere: mountinfo names one of them, and sysfs lists all.
    pub(crate) fn btrfs_filesystems(&self) -> impl Iterator<Item = Vec<&Node>> {
        let registered = self.roots.sys.join("fs/btrfs");
        names_in(&registered).into_iter().map(move |filesystem| {
            let members = names_in(&registered.join(filesystem).join("devices"));
            members.iter().filter_map(|member| self.tree.get(member)).collect()
        })
    }

    /// The devices below a mount: of a btrfs all that it has, of which mountinfo names one.
    pub(crate) fn devices_under(&self, mount: &Mount) -> Vec<&Node> {
        let mut devices = self.devices_of_mount(mount);
        let is_known = |devices: &[&Node], node: &Node| devices.iter().any(|device| device.name == node.name);
        for members in self.btrfs_filesystems().filter(|_| mount.kind == "btrfs") {
            if members.iter().any(|member| is_known(&devices, member)) {
                let others: Vec<&Node> =
                    members.into_iter().filter(|member| !is_known(&devices, member)).collect();
                devices.extend(others);
            }
        }
        devices
    }

    /// The devices that the data of a loop device lie on, in a file or not; none if that is not known. Files of btrfs have the number
    /// of their subvolume, which no mount has.
    pub(crate) fn devices_below_loop(&self, node: &Node) -> Vec<&Node> {
        if let Some(device) = self.device_below_loop(node) {
            return vec![device];
        }
        let Some(number) = self.backing(node).map(|backing| DeviceNumber::from_raw(backing.inode.0)) else {
            return Vec::new();
        };
        if let Some(device) = self.tree.by_number(number) {
            return vec![device];
        }
        let numbered = self.mounts.iter().find(|mount| mount.number == number);
        let named = || mount_of(&self.mounts, node.backing_file.as_deref()?);
        numbered.or_else(named).map(|mount| self.devices_under(mount)).unwrap_or_default()
    }

    /// The block device that backs a loop device; `None` if a file does.
    pub(crate) fn device_below_loop(&self, node: &Node) -> Option<&Node> {
        match self.backing(node).and_then(|backing| backing.device) {
            Some(number) => self.tree.by_number(number),
            None => self.tree.by_path(node.backing_file.as_deref()?, &self.roots.dev),
        }
    }
}

/// What backs a loop device, besides its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backing {
    pub(crate) inode: (u64, u64),
    device: Option<DeviceNumber>,
}

/// Whether sysfs shows nothing in flight, and would: a loop device that is being detached takes nothing new, and still does what it has
/// begun. One that has gone has nothing.
fn is_idle(node: &Node, roots: &Roots) -> bool {
    let directory = roots.sys.join("block").join(node.kernel_name());
    let shows_only = |file: &str, word: &str| {
        let shown = fs::read_to_string(directory.join(file));
        shown.is_ok_and(|text| text.split_whitespace().all(|shown| shown == word))
    };
    !directory.exists() || (shows_only("inflight", "0") && shows_only("queue/iostats", "1"))
}

/// Asks the loop device itself, because its file may have lost the name that sysfs shows and have others; if it may not
/// be asked, the name has to do. The outer `None` means that neither answers, the inner that the device was detached
/// after sysfs was read, as the kernel's ENXIO says: nothing backs it.
fn backing_of(node: &Node, roots: &Roots) -> Option<Option<Backing>> {
    let by_kernel = || {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = roots.dev.join(node.kernel_name());
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            // Between the request to detach and the last close, which sysfs does not show. A socket or a node of another device in its
            // place, which answers so too, says nothing of it.
            Err(Errno::NXIO) => {
                let meta = fs::symlink_metadata(&path).ok()?;
                let is_it =
                    meta.file_type().is_block_device() && DeviceNumber::from_raw(meta.rdev()) == node.number;
                return (is_it && is_idle(node, roots)).then_some(None);
            }
            opened => opened.ok()?,
        };
        if DeviceNumber::from_raw(rustix::fs::fstat(&fd).ok()?.st_rdev) != node.number {
            return None;
        }
        match rdsk_sys::device::loop_backing(&fd) {
            Ok(backing) => {
                let device = (backing.rdev != 0).then(|| DeviceNumber::from_raw(backing.rdev));
                Some(Some(Backing { inode: (backing.dev, backing.ino), device }))
            }
            Err(error) => {
                let is_detached = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
                (is_detached && is_idle(node, roots)).then_some(None)
            }
        }
    };
    let by_name = || {
        let meta = fs::metadata(node.backing_file.as_deref()?).ok()?;
        let device = meta.file_type().is_block_device().then(|| DeviceNumber::from_raw(meta.rdev()));
        Some(Some(Backing { inode: (meta.dev(), meta.ino()), device }))
    };
    by_kernel().or_else(by_name)
}
