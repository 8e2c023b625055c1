//! Which names several present disks share: such a name identifies none of them. It compares names and opens nothing.

use super::inventory::Inventory;
use super::own;
use super::types::{Identity, IdentityKind, key};
use crate::machine::Node;
use crate::machine::disk_names;
use rdsk_sys::files::read_text;

/// Kernel names of the other devices that also have the name `identity` of `node`: whole devices for a whole device,
/// partitions for a partition. Two loop devices over one file share its bytes too; that is reported as a use.
pub(super) fn devices_sharing(node: &Node, identity: &Identity, inventory: &Inventory<'_>) -> Vec<String> {
    let is_rival = |other: &&Node| {
        other.name != node.name
            && other.parent.is_some() == node.parent.is_some()
            && !is_area_of(&other.name, &node.name)
    };
    let holds: Box<dyn Fn(&Node) -> bool> = match identity.kind {
        IdentityKind::Serial => {
            let wanted = identity.key();
            Box::new(move |other| serials(other, inventory).iter().any(|serial| key(serial) == wanted))
        }
        IdentityKind::Wwn
        | IdentityKind::NamespaceUuid
        | IdentityKind::NamespaceEui
        | IdentityKind::NamespaceNguid => {
            let wanted = identity.key();
            Box::new(move |other| wide_names(other, inventory).iter().any(|name| key(name) == wanted))
        }
        IdentityKind::ArrayUuid | IdentityKind::ArrayName => {
            Box::new(|other| own::of_array(other, inventory).contains(identity))
        }
        IdentityKind::PartitionUuid => Box::new(|other| {
            let uuid = own::partition_uuid(other, inventory, None);
            uuid.is_some_and(|uuid| uuid.eq_ignore_ascii_case(&identity.text))
        }),
        IdentityKind::BcacheUuid => Box::new(|other| {
            own::bcache_uuid(other).is_some_and(|uuid| uuid.eq_ignore_ascii_case(&identity.text))
        }),
        // Of an image that is mapped twice, each device has all of the other's bytes.
        IdentityKind::RbdImage => Box::new(|other| {
            own::rbd_image(inventory.machine, other).is_some_and(|name| name == identity.text)
        }),
        // Links lead to one device, device mapper keeps its names apart, and a file is not compared here.
        _ => return Vec::new(),
    };
    inventory
        .machine
        .tree
        .nodes()
        .filter(is_rival)
        .filter(|other| holds(other))
        .map(Node::kernel_name)
        .collect()
}

/// Whether `area` is a hardware partition of the eMMC `whole`: `mmcblk0boot0`, `mmcblk0rpmb`, `mmcblk0gp0`. They report
/// the serial number of the whole device.
fn is_area_of(area: &str, whole: &str) -> bool {
    let rest = area.strip_prefix(whole).filter(|_| whole.starts_with("mmcblk"));
    rest.is_some_and(|rest| ["boot", "rpmb", "gp"].iter().any(|kind| rest.starts_with(kind)))
}

fn serials(node: &Node, inventory: &Inventory<'_>) -> Vec<String> {
    let told = inventory.row(node).and_then(|row| row.serial.clone());
    disk_names::serial(&node.directory).into_iter().chain(told).collect()
}

fn wide_names(node: &Node, inventory: &Inventory<'_>) -> Vec<String> {
    let told = inventory.row(node).and_then(|row| row.wwn.clone());
    let files = ["uuid", "nguid", "eui"];
    let namespace = files.iter().filter_map(|file| read_text(&node.directory.join(file)));
    disk_names::wwns(node).into_iter().chain(told).chain(namespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_written_in_several_ways() {
        assert_eq!(key("naa.50014ee0ac1b2c3d"), key("0x50014EE0AC1B2C3D"));
        assert_eq!(key("00 25 38 5b 71 b0 0f 2c\n"), key("eui.0025385b71b00f2c"));
        assert_eq!(key("uuid.7d444840-9dc0-11d1"), key("7D444840-9dc0-11d1"));
        assert_ne!(key("naa.50014ee0ac1b2c3d"), key("naa.50014ee0ac1b2c3e"));
        assert_eq!(key(" WD-1 "), key("WD-1"));
    }
}
