//! What uses a block device: itself, its partitions, the disk it is part of, everything stacked on these through every
//! layer, and whatever shares sectors with it without being stacked on it: overlapping partitions and device-mapper
//! devices, snapshots, other paths of the same LUN. It asks sysfs, procfs, configfs and device mapper; `probe` asks the
//! kernel itself (`O_EXCL`).

use crate::facts;
use crate::machine::{Extents, Machine, Namespace, Node, Reach, Sharing, md_container};
use crate::probe;
use crate::uses::dm_openers;
use crate::uses::exports::{self, ExportQuery, Exports};
use crate::uses::file_uses;
use crate::uses::locks::{self, Locks};
use crate::uses::processes::{self, NodeNumber};
use crate::uses::served::{self, KeptOn};
use crate::uses::stored_name::{self, Moved};
use crate::uses::system_disk;
use crate::uses::{InUse, UNSEEN_OPENER, UseKind};
use rdsk_sys::files::{names_in, read_flag, read_number, read_word};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;

/// The end of a doubt about a name that was looked up too late.
const MAY_HAVE_MOVED: &str = "and that may be something else now";

/// How a device is related to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// The device itself, its partition, or the disk that it is a part of: the same blocks.
    Same,
    Holder,
    Below,
    /// One that shares some of its sectors, and neither is built on the other.
    Overlapping,
    /// One that spans the whole pool of which the target is a volume. LVM keeps an unused one for every pool.
    Pool,
    /// Another path to its LUN, or a partition seen on that path.
    OtherPath,
}

type Related<'machine> = Vec<(&'machine Node, Relation)>;

pub(crate) fn find(machine: &Machine<'_>, node: &Node) -> InUse {
    let mut usage = of_device(machine, node, Exports::Find);
    for disk in machine.tree.bottoms(node).iter().filter_map(|name| machine.tree.get(name)) {
        if let Some(kept_on) = served::kept_on(machine, disk) {
            usage.extend(of_served(machine, disk, &kept_on));
        }
    }
    usage
}

/// What uses the device or file that this machine serves to itself as `disk`, except this service. A name that need not lead to it now
/// leaves that open.
fn of_served(machine: &Machine<'_>, disk: &Node, kept_on: &KeptOn) -> InUse {
    let mut usage = InUse::default();
    let (name, below) = match kept_on {
        KeptOn::Device(number) => match machine.tree.by_number(*number) {
            Some(node) => (node.kernel_name(), of_device(machine, node, Exports::Ours)),
            None => return usage,
        },
        KeptOn::Name(path) => {
            let led = stored_name::leads_to(machine, path, &Namespace::Own);
            let why = stored_name::moved(machine, path, led);
            // An absolute name that leads nowhere is said to below.
            if why.is_some_and(|why| why != Moved::Lost || path.is_relative()) {
                let disk = disk.kernel_name();
                let path = path.display();
                usage.doubt(format_args!("{disk} keeps its data on what {path} led to, {MAY_HAVE_MOVED}"));
            }
            let below = match machine.tree.by_path(path, &machine.roots.dev) {
                Some(node) => of_device(machine, node, Exports::Ours),
                None => file_uses::below_export(machine, path),
            };
            (rdsk_units::printable(&path.to_string_lossy()), below)
        }
    };
    usage.doubts.extend(below.doubts);
    for used in below.uses {
        let text = format!("{}, through {name}, on which {} keeps its data", used.text, disk.kernel_name());
        usage.add(used.kind, &text);
    }
    usage
}

fn of_device(machine: &Machine<'_>, node: &Node, exported: Exports) -> InUse {
    let mut usage = InUse::default();
    let mut related = stacked(machine, node);
    add_overlapping(machine, node, &mut related, &mut usage);
    mounted(machine, &related, &mut usage);
    for path in &machine.swaps {
        if let Some(swap) = machine.tree.by_path(path, &machine.roots.dev)
            && let Some(relation) = relation_of(&related, swap)
        {
            usage.add(UseKind::Swap, &with_relation(&swap.shown(), relation));
        }
    }
    for (holder, relation) in &related {
        match relation {
            Relation::Holder => usage.add(UseKind::Holder, &holder.shown()),
            // An unused partition or path holds no data but that of its own disk.
            Relation::Overlapping if holder.parent.is_none() => {
                usage.add(UseKind::SharedSectors, &holder.shown());
            }
            _ => {}
        }
    }
    flash_volumes(machine, &related, &mut usage);
    held_exclusively(machine, &related, &mut usage);
    let mut nodes = BTreeMap::new();
    for (node, relation) in &related {
        nodes.insert(NodeNumber::Block(node.number), with_relation(&node.kernel_name(), *relation));
        for (name, number) in facts::command_nodes(&machine.roots.sys, node) {
            let name = format!("{name}, which takes commands for {},", node.kernel_name());
            nodes.insert(NodeNumber::Character(number), name);
        }
    }
    let members = members_in_containers(machine, node);
    processes::openers(&machine.roots.proc, &nodes, &members, &mut usage);
    for (same, _) in related.iter().filter(|(_, relation)| *relation == Relation::Same) {
        locked(machine, same, &mut usage);
    }
    if exported == Exports::Find {
        let numbers = related.iter().map(|(node, _)| node.number).collect();
        exports::find(machine, &ExportQuery::Devices(&numbers), &mut usage);
    }
    system_disk::find(machine, node, &mut usage);
    if let Some(below) = machine.device_below_loop(node) {
        usage.add(UseKind::BackingFile, &format!("it keeps its data on {}", below.shown()));
    }
    for lost in machine.lost_backings() {
        usage.doubt(format_args!("it may be what {} keeps its data in", lost.shown()));
    }
    if usage.uses.is_empty() {
        open_unseen(machine, &related, exported, &mut usage);
    }
    takes_no_writes(machine, node, &mut usage);
    usage
}

/// Adds a doubt for each device that device mapper counts as open more often than anything shows. The service of this machine that led
/// here has the first of them open.
fn open_unseen(machine: &Machine<'_>, related: &Related<'_>, exported: Exports, usage: &mut InUse) {
    let mut explained = u64::from(exported == Exports::Ours);
    for (node, relation) in related {
        if let Some(openers @ 1..) = dm_openers::unseen(machine, node, std::mem::take(&mut explained)) {
            let times = if openers == 1 { "once".to_owned() } else { format!("{openers} times") };
            let name = with_relation(&node.shown(), *relation);
            usage.doubt(format_args!("device mapper has {name} open {times} more {UNSEEN_OPENER}"));
        }
    }
}

/// The members of the arrays in containers that a device is built on.
fn members_in_containers(machine: &Machine<'_>, node: &Node) -> BTreeSet<NodeNumber> {
    let below = machine.tree.stack(node);
    let arrays = below.iter().filter_map(|name| machine.tree.get(name));
    let arrays = arrays.filter(|array| md_container::container_of(array).is_some());
    let members = arrays.flat_map(|array| &array.slaves).filter_map(|name| machine.tree.get(name));
    members.map(|member| NodeNumber::Block(member.number)).collect()
}

/// UBI keeps its volumes on flash memory without opening the block device that shows the same memory.
fn flash_volumes(machine: &Machine<'_>, related: &Related<'_>, usage: &mut InUse) {
    let volumes = machine.roots.sys.join("class/ubi");
    for volume in names_in(&volumes) {
        let Some(number) = read_number::<u32>(&volumes.join(&volume).join("mtd_num")) else { continue };
        if related.iter().any(|(node, _)| node.name == format!("mtdblock{number}")) {
            usage.add(UseKind::Holder, &volume);
        }
    }
}

/// Asks the kernel who holds the devices that share sectors with the target without being stacked on it. Devices with a
/// visible holder are reported with the holder, and what the target is built on is held by the target itself.
fn held_exclusively(machine: &Machine<'_>, related: &Related<'_>, usage: &mut InUse) {
    for (other, relation) in related {
        let is_past = matches!(relation, Relation::Overlapping | Relation::OtherPath);
        let is_held = !other.holders.is_empty() || !machine.tree.whole(other).holders.is_empty();
        let path = machine.roots.dev.join(other.kernel_name());
        let there = machine.tree.by_path(&path, &machine.roots.dev);
        if !is_past || is_held || there.is_none_or(|there| there.number != other.number) {
            continue;
        }
        let mut busy = InUse::default();
        probe::exclusive(&path, &mut busy);
        if !busy.uses.is_empty() {
            let text =
                format!("{} which the kernel reports as busy", with_relation(&other.shown(), *relation));
            usage.add(UseKind::OpenExclusive, &text);
        }
    }
}

/// A program that changes a disk locks its node, and reads its label again when it is done.
fn locked(machine: &Machine<'_>, node: &Node, usage: &mut InUse) {
    if let Ok(meta) = std::fs::metadata(machine.roots.dev.join(node.kernel_name())) {
        let mut locks = InUse::default();
        locks::find(&machine.roots.proc, (meta.dev(), meta.ino()), &[], Locks::Exclusive, &mut locks);
        for lock in locks.uses {
            usage.add(UseKind::OpenElsewhere, &format!("{} ({})", lock.text, node.kernel_name()));
        }
    }
}

fn takes_no_writes(machine: &Machine<'_>, node: &Node, usage: &mut InUse) {
    let whole = machine.tree.whole(node);
    let is_read_only = |node: &Node| read_flag(&node.directory.join("ro")) == Some(true);
    if is_read_only(node) || is_read_only(whole) {
        usage.add(UseKind::ReadOnly, &node.shown());
    }
    if read_word(&whole.directory.join("queue/zoned")).as_deref() == Some("host-managed") {
        usage.add(UseKind::HostManaged, &node.shown());
    }
}

/// Every device whose content a write to `node` would change through the stack, and every device that shares `node`'s
/// blocks through its partition table. Other partitions of the same disk are not among them.
fn stacked<'machine>(machine: &'machine Machine<'_>, node: &'machine Node) -> Related<'machine> {
    let mut list = vec![(node, Relation::Same)];
    let same = node.partitions.iter().chain(&node.parent).chain(logical_partitions(machine, node));
    list.extend(same.filter_map(|name| Some((machine.tree.get(name)?, Relation::Same))));
    let loops: Vec<(&Node, &Node)> =
        machine.tree.nodes().filter_map(|node| Some((node, machine.device_below_loop(node)?))).collect();
    let mut index = 0;
    while index < list.len() {
        let (current, relation) = list[index];
        index += 1;
        // The partitions of a holder count as the holder does.
        let parts = current.partitions.iter().filter(|_| relation == Relation::Holder);
        let stacked = current.holders.iter().chain(parts).filter_map(|name| machine.tree.get(name));
        let looped = loops.iter().filter(|(_, below)| below.name == current.name).map(|(node, _)| *node);
        for holder in stacked.chain(looped) {
            if relation_of(&list, holder).is_none() {
                list.push((holder, Relation::Holder));
            }
        }
    }
    list
}

/// An extended partition holds the table of the logical ones, but the kernel does not show it below them: a partition
/// of two sectors, or one block, among the first four, on a disk that has a fifth (block/partitions/msdos.c).
fn logical_partitions<'machine>(
    machine: &'machine Machine<'_>,
    node: &Node,
) -> impl Iterator<Item = &'machine String> {
    let index = |node: &Node| read_number::<u32>(&node.directory.join("partition"));
    let sectors = read_number::<u64>(&node.directory.join("size")).unwrap_or(0);
    let parent = node.parent.as_deref().and_then(|parent| machine.tree.get(parent));
    let block =
        parent.and_then(|parent| read_number::<u64>(&parent.directory.join("queue/logical_block_size")));
    let is_extended =
        index(node).is_some_and(|index| index <= 4) && sectors <= (block.unwrap_or(512) / 512).max(2);
    let siblings = parent.filter(|_| is_extended).map(|parent| parent.partitions.iter());
    siblings
        .into_iter()
        .flatten()
        .filter(move |name| machine.tree.get(name).and_then(index).is_some_and(|index| index > 4))
}

fn add_overlapping<'machine>(
    machine: &'machine Machine<'_>,
    node: &'machine Node,
    related: &mut Related<'machine>,
    usage: &mut InUse,
) {
    let below = machine.tree.stack(node);
    let containers: Vec<String> =
        below.iter().filter_map(|name| md_container::container_of(machine.tree.get(name)?)).collect();
    // The container of an array has the same disks, and no sectors of its own.
    let is_container = |other: &Node| containers.contains(&other.name) && other.size_bytes() == Some(0);
    let own = Extents::of(machine, node, Reach::Writes);
    for other in machine.tree.nodes() {
        if relation_of(related, other).is_some() || is_container(other) {
            continue;
        }
        let relation = if below.contains(&other.name) {
            Relation::Below
        } else if is_on_other_path(machine, node, other) {
            Relation::OtherPath
        } else {
            Relation::Overlapping
        };
        match own.share(&Extents::of(machine, other, Reach::DependsOn)) {
            Sharing::No => {}
            Sharing::ByPool if relation == Relation::Overlapping => related.push((other, Relation::Pool)),
            Sharing::Yes | Sharing::ByPool => related.push((other, relation)),
            Sharing::Perhaps(_) if relation == Relation::Below => related.push((other, relation)),
            Sharing::Perhaps(why) => {
                usage.doubt(format_args!("{} may have some of its sectors: {why}", other.shown()));
            }
        }
    }
}

fn is_on_other_path(machine: &Machine<'_>, node: &Node, other: &Node) -> bool {
    let disk = &machine.tree.whole(other).name;
    machine.tree.bottoms(node).iter().any(|own| machine.luns.are_paths(own, disk))
}

/// The name of a device, with its relation unless the name says enough.
fn with_relation(name: &str, relation: Relation) -> String {
    match relation {
        Relation::Same | Relation::Holder => name.to_owned(),
        Relation::Below => format!("{name}, which it is made of,"),
        Relation::Overlapping => format!("{name}, which has some of its sectors,"),
        Relation::Pool => format!("{name}, which spans its whole pool,"),
        Relation::OtherPath => format!("{name}, another path to the same LUN,"),
    }
}

fn relation_of(list: &Related<'_>, node: &Node) -> Option<Relation> {
    list.iter().find(|(other, _)| other.name == node.name).map(|(_, relation)| *relation)
}

fn mounted(machine: &Machine<'_>, related: &Related<'_>, usage: &mut InUse) {
    let mut reported = BTreeSet::new();
    for mount in &machine.mounts {
        for device in machine.devices_of_mount(mount) {
            let Some(relation) = relation_of(related, device) else { continue };
            reported.insert(device.name.clone());
            let text = with_relation(&mount.shown_on(device), relation);
            usage.add(UseKind::Mounted, text.trim_end_matches(','));
        }
    }
    for device in machine.btrfs_filesystems().flatten() {
        if relation_of(related, device).is_some() && reported.insert(device.name.clone()) {
            usage.add(UseKind::Mounted, &format!("a btrfs filesystem over {}", device.shown()));
        }
    }
}

#[cfg(test)]
mod tests;
