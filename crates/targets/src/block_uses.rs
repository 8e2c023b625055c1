//! What uses a block device: itself, its partitions, the disk it is a part of, and everything stacked on these, through
//! every layer. It asks sysfs and procfs only; the kernel's own word (`O_EXCL`) is asked for by `probe`.

use crate::mounts::{Mount, Namespace};
use crate::sysfs::{Node, names_in, read_number};
use crate::uses::{Found, UseKind};
use crate::world::World;
use std::collections::BTreeSet;

/// Mount points whose disk carries the running system.
const SYSTEM_POINTS: [&str; 5] = ["/", "/usr", "/boot", "/boot/efi", "/efi"];

/// How a device is tied to the one that was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// The device itself, its partition, or the disk that it is a part of: the same blocks.
    Same,
    /// Made of one of these.
    Holder,
}

/// Finds the uses of `node`.
pub(crate) fn find(world: &World<'_>, node: &Node) -> Found {
    let mut found = Found::default();
    let touched = touched(world, node);
    mounted(world, &touched, &mut found);
    for path in &world.swaps {
        if let Some(swap) = world.device_of_swap(path).filter(|swap| has(&touched, swap)) {
            found.add(UseKind::Swap, &swap.shown());
        }
    }
    for (holder, _) in touched.iter().filter(|(_, tie)| *tie == Tie::Holder) {
        found.add(UseKind::Holder, &holder.shown());
    }
    system_disk(world, node, &mut found);
    if let Some(below) = world.device_below_loop(node) {
        found.add(UseKind::BackingFile, &format!("it keeps its data on {}", below.shown()));
    }
    for lost in world.lost_backings() {
        found.doubt(&format!("it may be what {} keeps its data in", lost.shown()));
    }
    let is_read_only =
        |node: &Node| read_number::<u8>(&node.directory.join("ro")).is_some_and(|value| value != 0);
    if is_read_only(node) || is_read_only(world.tree.whole(node)) {
        found.add(UseKind::ReadOnly, &node.shown());
    }
    found
}

/// Every device whose content a write to `node` would change, and every device that shares `node`'s blocks. Other
/// partitions of the same disk are not among them.
fn touched<'world>(world: &'world World<'_>, node: &'world Node) -> Vec<(&'world Node, Tie)> {
    let mut list = vec![(node, Tie::Same)];
    let same = node.partitions.iter().chain(&node.parent);
    list.extend(same.filter_map(|name| Some((world.tree.get(name)?, Tie::Same))));
    let loops: Vec<(&Node, &Node)> =
        world.tree.nodes().filter_map(|node| Some((node, world.device_below_loop(node)?))).collect();
    let mut index = 0;
    while index < list.len() {
        let (current, tie) = list[index];
        index += 1;
        // The partitions of a holder hold as much as the holder.
        let parts = current.partitions.iter().filter(|_| tie == Tie::Holder);
        let stacked = current.holders.iter().chain(parts).filter_map(|name| world.tree.get(name));
        let looped = loops.iter().filter(|(_, below)| below.name == current.name).map(|(node, _)| *node);
        for holder in stacked.chain(looped) {
            if !has(&list, holder) {
                list.push((holder, Tie::Holder));
            }
        }
    }
    list
}

fn has(list: &[(&Node, Tie)], node: &Node) -> bool {
    list.iter().any(|(other, _)| other.name == node.name)
}

fn mounted(world: &World<'_>, touched: &[(&Node, Tie)], found: &mut Found) {
    let mut seen = BTreeSet::new();
    for mount in &world.mounts {
        let Some(device) = world.device_of_mount(mount).filter(|device| has(touched, device)) else {
            continue;
        };
        seen.insert(device.name.clone());
        found.add(UseKind::Mounted, &shown(mount, device));
    }
    // mountinfo names one device of a btrfs filesystem; sysfs has them all, as long as it is mounted anywhere.
    let registered = world.roots.sys.join("fs/btrfs");
    for filesystem in names_in(&registered) {
        for member in names_in(&registered.join(&filesystem).join("devices")) {
            if let Some(device) = world.tree.get(&member).filter(|device| has(touched, device))
                && seen.insert(member.clone())
            {
                found.add(UseKind::Mounted, &format!("a btrfs filesystem over {}", device.shown()));
            }
        }
    }
}

fn shown(mount: &Mount, device: &Node) -> String {
    let place = format!("{} on {}", mount.point.display(), device.shown());
    match mount.namespace {
        Namespace::Own => place,
        Namespace::Other => format!("{place}, in another mount namespace"),
    }
}

/// Any device, a partition not in use included, that shares a whole disk with the running system.
fn system_disk(world: &World<'_>, node: &Node, found: &mut Found) {
    let own = world.tree.bottoms(node);
    for mount in &world.mounts {
        let is_system = SYSTEM_POINTS.iter().any(|point| mount.point == std::path::Path::new(point));
        if !is_system || mount.namespace == Namespace::Other {
            continue;
        }
        if let Some(device) = world.device_of_mount(mount)
            && !world.tree.bottoms(device).is_disjoint(&own)
        {
            found.add(UseKind::SystemDisk, &shown(mount, device));
        }
    }
}

#[cfg(test)]
mod tests;
