//! The names of a device itself, from sysfs, from the links that udev creates, and from what `lsblk` and `blkid` know.
//! A partition's disk is another device here. It does not ask whether others have the same name.

use super::inventory::Inventory;
use super::types::{Identity, IdentityKind};
use crate::machine::disk_names;
use crate::machine::{Machine, Node, logical_volume};
use crate::tools::Lsblk;
use rdsk_sys::files::{is_numbered, names_in, read_number, read_text};
use std::fs;
use std::path::Path;

/// Directories within one of links; datasets of ZFS lie in others.
const MAX_LEVELS: usize = 16;

/// Every name of `node` itself that does not change with the order of disks, the easiest to type first. `lsblk` is what
/// the program reported when it was asked about this device alone.
pub(crate) fn of_node(node: &Node, inventory: &Inventory<'_>, lsblk: Option<&Lsblk>) -> Vec<Identity> {
    let machine = inventory.machine;
    let mut list = List::default();
    // For a loop device over a block device the backing file would be a kernel name, which is not an identity.
    if let Some(file) = &node.backing_file
        && machine.device_below_loop(node).is_none()
    {
        list.add(IdentityKind::BackingFile, &file.to_string_lossy());
    }
    if node.parent.is_none() {
        hardware(node, inventory, lsblk, &mut list);
    } else if let Some(uuid) = partition_uuid(node, inventory, lsblk) {
        list.add(IdentityKind::PartitionUuid, &uuid);
    }
    mapped(node, &mut list);
    array(node, inventory, &mut list);
    if let Some(uuid) = bcache_uuid(node) {
        list.add(IdentityKind::BcacheUuid, &uuid);
    }
    if let Some(image) = rbd_image(machine, node) {
        list.add(IdentityKind::RbdImage, &image);
    }
    let whole = &machine.tree.whole(node).name;
    for (driver, directory, kind) in
        [("drbd", "drbd/by-res", IdentityKind::DrbdVolume), ("zd", "zvol", IdentityKind::Zvol)]
    {
        if is_numbered(whole, driver) {
            linked_below(machine, node, directory, MAX_LEVELS, &mut |link: &str| {
                list.add(kind, link.strip_prefix(directory).unwrap_or(link).trim_start_matches('/'));
            });
        }
    }
    linked(machine, node, "disk/by-id", |name| list.add(IdentityKind::ById, name));
    list.0
}

/// Name and UUID of an array; empty for everything else.
pub(super) fn of_array(node: &Node, inventory: &Inventory<'_>) -> Vec<Identity> {
    let mut list = List::default();
    array(node, inventory, &mut list);
    list.0
}

#[derive(Default)]
struct List(Vec<Identity>);

impl List {
    fn add(&mut self, kind: IdentityKind, text: &str) {
        // Blanks around a serial number come from the kernel; those of a file belong to its name, and another file
        // may have the name without them. A name that is not text cannot be distinguished from others that are not
        // text either.
        let text = if kind == IdentityKind::BackingFile { text } else { text.trim() };
        let is_lossy = text.contains(char::REPLACEMENT_CHARACTER);
        if !text.is_empty() && !is_lossy && self.0.iter().all(|other| other.text != text) {
            self.0.push(Identity { kind, text: text.to_owned() });
        }
    }
}

fn hardware(node: &Node, inventory: &Inventory<'_>, lsblk: Option<&Lsblk>, list: &mut List) {
    let told = || lsblk.into_iter().chain(inventory.row(node));
    let serials = disk_names::serial(&node.directory).into_iter();
    for serial in serials.chain(told().filter_map(|row| row.serial.clone())) {
        list.add(IdentityKind::Serial, &serial);
    }
    for wwn in disk_names::wwns(node).into_iter().chain(told().filter_map(|row| row.wwn.clone())) {
        list.add(IdentityKind::Wwn, &wwn);
    }
    for (file, kind) in [("uuid", IdentityKind::NamespaceUuid), ("nguid", IdentityKind::NamespaceNguid)] {
        if let Some(text) = read_text(&node.directory.join(file)) {
            list.add(kind, &text);
        }
    }
    // The kernel puts a blank between bytes.
    if let Some(text) = read_text(&node.directory.join("eui")) {
        list.add(IdentityKind::NamespaceEui, &text.replace(' ', ""));
    }
}

/// From the partition's uevent (newer kernels), from udev if it runs, else from the partition table.
pub(super) fn partition_uuid(
    node: &Node,
    inventory: &Inventory<'_>,
    lsblk: Option<&Lsblk>,
) -> Option<String> {
    let event = read_text(&node.directory.join("uevent")).unwrap_or_default();
    let told = event.lines().find_map(|line| line.strip_prefix("PARTUUID=")).map(str::to_owned);
    let linked = || {
        let mut link = None;
        linked(inventory.machine, node, "disk/by-partuuid", |name| link = Some(name.to_owned()));
        link
    };
    told.or_else(|| lsblk.and_then(|row| row.partuuid.clone()))
        .or_else(|| inventory.row(node).and_then(|row| row.partuuid.clone()))
        .or_else(linked)
        .or_else(|| inventory.content(node).partuuid)
}

fn mapped(node: &Node, list: &mut List) {
    let Some(name) = &node.mapped_name else { return };
    if let Some(volume) = logical_volume(node) {
        list.add(IdentityKind::Volume, &volume);
    }
    list.add(IdentityKind::MapperName, name);
    list.add(IdentityKind::MapperUuid, &node.dm_uuid());
}

/// The UUID of the device behind a bcache (drivers/md/bcache/sysfs.c, `backing_dev_uuid`). That device shows it, too, and is another one.
pub(super) fn bcache_uuid(node: &Node) -> Option<String> {
    let uuid = read_text(&node.directory.join("bcache/backing_dev_uuid"))?;
    is_numbered(&node.name, "bcache").then(|| uuid.trim().to_owned()).filter(|uuid| !uuid.is_empty())
}

/// `pool/image`, `pool/namespace/image` or `pool/image@snapshot` of an rbd (Documentation/ABI/testing/sysfs-bus-rbd).
pub(super) fn rbd_image(machine: &Machine<'_>, node: &Node) -> Option<String> {
    let id = node.name.strip_prefix("rbd").filter(|_| is_numbered(&node.name, "rbd"))?;
    let directory = machine.roots.sys.join("bus/rbd/devices").join(id);
    let number = |file: &str| read_number::<u32>(&directory.join(file));
    if (number("major")?, number("minor")?) != (node.number.major, node.number.minor) {
        return None;
    }
    let word = |file: &str| read_text(&directory.join(file)).filter(|word| !word.is_empty());
    let namespace = word("pool_ns").map_or_else(String::new, |namespace| format!("{namespace}/"));
    let snapshot = word("current_snap").filter(|snapshot| snapshot != "-");
    let snapshot = snapshot.map_or_else(String::new, |snapshot| format!("@{snapshot}"));
    Some(format!("{}/{namespace}{}{snapshot}", word("pool")?, word("name")?))
}

/// Name and UUID of an array. Its name is in no file of sysfs: it comes from a link, or from the label of any member.
fn array(node: &Node, inventory: &Inventory<'_>, list: &mut List) {
    let machine = inventory.machine;
    if !node.directory.join("md").is_dir() {
        return;
    }
    let mut add_name = |name: &str| {
        // The name of an array that was created without one is the number that the kernel gave it at the time.
        let own = name.rsplit(':').next().unwrap_or(name);
        if own.chars().any(|letter| !letter.is_ascii_digit()) {
            list.add(IdentityKind::ArrayName, name);
        }
    };
    linked(machine, node, "md", &mut add_name);
    let member = node.slaves.first().and_then(|name| machine.tree.get(name));
    let content = member.map(|member| inventory.content(member)).unwrap_or_default();
    if let (Some("linux_raid_member"), Some(label)) = (content.fstype.as_deref(), &content.label) {
        add_name(label);
    }
    if let Some(uuid) = read_text(&node.directory.join("md/uuid")) {
        list.add(IdentityKind::ArrayUuid, &as_mdadm_writes(&uuid));
    }
}

/// `e86d0cbf-5890-89d5-95b8-8c7d998c76ef` in sysfs is `e86d0cbf:589089d5:95b88c7d:998c76ef` to mdadm.
fn as_mdadm_writes(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let words: Vec<String> = digits.chunks(8).map(|word| word.iter().collect()).collect();
    words.join(":")
}

/// Calls `take` with the name of every link in a directory of `/dev` that leads to `node`.
fn linked(machine: &Machine<'_>, node: &Node, directory: &str, mut take: impl FnMut(&str)) {
    for name in names_in(&machine.roots.dev.join(directory)) {
        if leads_to(machine, node, &Path::new(directory).join(&name)) {
            take(&name);
        }
    }
}

/// The same with the names below `/dev` of every link in a directory and those in it, so many levels deep.
fn linked_below(
    machine: &Machine<'_>,
    node: &Node,
    directory: &str,
    levels: usize,
    take: &mut dyn FnMut(&str),
) {
    let place = machine.roots.dev.join(directory);
    for name in names_in(&place) {
        let link = format!("{directory}/{name}");
        let is_directory = fs::symlink_metadata(place.join(&name)).is_ok_and(|meta| meta.is_dir());
        if is_directory && levels > 0 {
            linked_below(machine, node, &link, levels - 1, take);
        } else if !is_directory && leads_to(machine, node, Path::new(&link)) {
            take(&link);
        }
    }
}

/// Whether a link below `/dev` leads to `node`.
fn leads_to(machine: &Machine<'_>, node: &Node, link: &Path) -> bool {
    let path = Path::new("/dev").join(link);
    let target = machine.tree.by_path(&path, &machine.roots.dev).or_else(|| {
        let target = fs::read_link(machine.roots.dev.join(link)).ok()?;
        machine.tree.get(&target.file_name()?.to_string_lossy())
    });
    target.is_some_and(|target| target.name == node.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_of_arrays_are_written_as_mdadm_does() {
        let written = "e86d0cbf:589089d5:95b88c7d:998c76ef";
        assert_eq!(as_mdadm_writes("e86d0cbf-5890-89d5-95b8-8c7d998c76ef"), written);
        assert_eq!(as_mdadm_writes(written), written);
    }
}
