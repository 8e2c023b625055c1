//! Finds the device that a word names if no path has that name: an identity such as a World Wide Name or `vg/lv`, or a
//! tag of mount(8) (`UUID=`, `LABEL=`, `PARTUUID=`, `PARTLABEL=`, `ID=`). Kernel names are not accepted, and a word
//! that names several devices is never resolved by guessing.

use crate::error::TargetError;
use crate::identity::{self, Inventory};
use crate::machine::{Machine, Node};
use crate::roots::Roots;
use crate::tools::Lsblk;
use crate::uses::InUse;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_units::printable;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

/// The node of the one device that `word` names; `None` if it names no device.
///
/// # Errors
/// If several devices have the name, if it is a kernel name without its path, or if the node is missing.
pub(crate) fn resolve(word: &str, roots: &Roots) -> Result<Option<PathBuf>, TargetError> {
    if !can_be_a_name(word) {
        return Ok(None);
    }
    let mut usage = InUse::default();
    let machine = Machine::read(roots, &mut usage);
    if machine.tree.get(word).is_some() {
        return Err(TargetError::KernelName { name: printable(word) });
    }
    let inventory = Inventory::read(&machine);
    let named = match Tag::parse(word) {
        Some(tag) => tagged(&machine, &inventory, &tag),
        None if identity::is_kernel_name(&machine, word) => Vec::new(),
        None => machine.tree.nodes().filter(|node| has_name(node, &inventory, word)).collect(),
    };
    match topmost(&machine, &named) {
        [] => Ok(None),
        [node] => node_path(&machine, node).map(Some),
        several => Err(TargetError::Ambiguous {
            name: printable(word),
            candidates: several.iter().map(|node| device_path(node)).collect(),
        }),
    }
}

/// A relative path (`./x`, `../x`) and one outside `/dev` mean files.
fn can_be_a_name(word: &str) -> bool {
    let is_path = ["/", "./", "../"].iter().any(|start| word.starts_with(start));
    !word.is_empty() && word != "." && word != ".." && (!is_path || word.starts_with("/dev/"))
}

fn has_name(node: &Node, inventory: &Inventory<'_>, word: &str) -> bool {
    identity::of_node(node, inventory, None).iter().any(|identity| identity.is_named_by(word))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tag<'word> {
    Uuid(&'word str),
    Label(&'word str),
    PartUuid(&'word str),
    PartLabel(&'word str),
    Id(&'word str),
}

impl<'word> Tag<'word> {
    /// `UUID=…`, with or without quotation marks, or the udev link of the same meaning.
    fn parse(word: &'word str) -> Option<Self> {
        let value = |tag: &str, directory: &str| {
            let value = word.strip_prefix(tag).or_else(|| word.strip_prefix(directory))?;
            let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
            (!bare.is_empty()).then_some(bare)
        };
        value("UUID=", "/dev/disk/by-uuid/")
            .map(Tag::Uuid)
            .or_else(|| value("LABEL=", "/dev/disk/by-label/").map(Tag::Label))
            .or_else(|| value("PARTUUID=", "/dev/disk/by-partuuid/").map(Tag::PartUuid))
            .or_else(|| value("PARTLABEL=", "/dev/disk/by-partlabel/").map(Tag::PartLabel))
            .or_else(|| value("ID=", "/dev/disk/by-id/").map(Tag::Id))
    }

    fn is_of(&self, row: &Lsblk) -> bool {
        let is = |field: &Option<String>, word: &str| field.as_deref() == Some(word);
        let is_uuid = |field: &Option<String>, word: &str| {
            field.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(word))
        };
        // The UUID and the label of a member are those of its array, which is another device.
        let is_member = row.fstype.as_deref().is_some_and(|kind| kind.ends_with("_member"));
        match self {
            Self::Uuid(word) => !is_member && is_uuid(&row.uuid, word),
            Self::Label(word) => !is_member && is(&row.label, word),
            Self::PartUuid(word) => is_uuid(&row.partuuid, word),
            Self::PartLabel(word) => is(&row.partlabel, word),
            Self::Id(_) => false,
        }
    }
}

fn tagged<'machine>(
    machine: &'machine Machine<'_>,
    inventory: &Inventory<'_>,
    tag: &Tag<'_>,
) -> Vec<&'machine Node> {
    if let Tag::Id(word) = tag {
        return machine.tree.nodes().filter(|node| has_name(node, inventory, word)).collect();
    }
    let told = |node: &&Node| inventory.row(node).is_some_and(|row| tag.is_of(row));
    let by_udev: Vec<&Node> = machine.tree.nodes().filter(told).collect();
    if !by_udev.is_empty() {
        return by_udev;
    }
    machine.tree.nodes().filter(|node| tag.is_of(&inventory.content(node))).collect()
}

/// Those below no other device of the list: the map over the paths of a LUN shows the content of each, and is meant.
fn topmost<'list, 'machine>(
    machine: &Machine<'_>,
    nodes: &'list [&'machine Node],
) -> &'list [&'machine Node] {
    let is_top = |top: &&Node| {
        let stack = machine.tree.stack(top);
        nodes.iter().all(|node| stack.contains(&node.name))
    };
    match nodes.iter().position(is_top) {
        Some(index) => &nodes[index..=index],
        None => nodes,
    }
}

/// The node in `/dev` under the kernel name, if it really is this device.
fn node_path(machine: &Machine<'_>, node: &Node) -> Result<PathBuf, TargetError> {
    let path = machine.roots.dev.join(node.kernel_name());
    let is_it = fs::metadata(&path).is_ok_and(|meta| {
        meta.file_type().is_block_device() && DeviceNumber::from_raw(meta.rdev()) == node.number
    });
    if is_it { Ok(path) } else { Err(TargetError::NoNode { path: device_path(node) }) }
}

/// For messages: `/dev/sda`.
fn device_path(node: &Node) -> String {
    printable(&format!("/dev/{}", node.kernel_name()))
}

#[cfg(test)]
mod tests;
