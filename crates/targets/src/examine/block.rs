//! Examines a block device: what sysfs and the programs of util-linux know of it, what uses it, and which signatures
//! are on it. It opens devices for reading only.

use super::Hold;
use crate::display::shown;
use crate::error::TargetError;
use crate::examined::{Examined, Place};
use crate::identity::{self, Inventory, Names};
use crate::labels::Label;
use crate::labels::signature::Signature;
use crate::labels::{hidden_parts, mmp, unlabelled};
use crate::machine::{Attachment, Machine, Node};
use crate::roots::Roots;
use crate::space::growth::{Growth, Taking};
use crate::space::{growing, thin_pool};
use crate::tools::{self, Lsblk};
use crate::uses::{InUse, UseKind};
use crate::uses::{block_uses, file_uses, system_disk};
use crate::{facts, labels, probe};
use rdsk_model::{Device, Target, TargetKind};
use rdsk_sys::device_number::DeviceNumber;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(super) fn examine_block(
    name: &str,
    path: PathBuf,
    meta: &Metadata,
    roots: &Roots,
    hold: Hold,
) -> Result<Examined, TargetError> {
    let mut usage = InUse::default();
    let machine = Machine::read(roots, &mut usage);
    let number = DeviceNumber::from_raw(meta.rdev());
    let node = machine.tree.by_number(number);
    let mut parts = BlockParts::default();
    if let Some(device) = node.and_then(|node| growing::suspended(&machine, node)) {
        let device = rdsk_units::printable(&device);
        return Err(TargetError::Suspended { path: shown(&path), device });
    }
    match node {
        Some(node) => parts = examine_node(&machine, node, &path, hold, &mut usage),
        None => usage.doubt(format_args!("sysfs does not know the device {number}")),
    }
    let size_bytes = parts.device.size_bytes.or_else(|| probe::block_size(&path)).unwrap_or(0);
    if size_bytes == 0 {
        return Err(TargetError::Empty { path: shown(&path) });
    }
    // A more serious use says more than the kernel's "busy".
    if hold == Hold::NotYet && usage.uses.iter().all(|used| used.kind > UseKind::OpenExclusive) {
        probe::exclusive(&path, &mut usage);
    }
    usage.sort_uses();
    let place =
        Place::Block { major_minor: number, attachment: node.and_then(|node| attachment(&machine, node)) };
    let zones = parts.device.zoned.as_deref().filter(|zoned| *zoned != "none");
    parts.device.zone_written_bytes = zones.and_then(|_| probe::zone_written_bytes(&path));
    let align = probe::direct_align(&path).or(parts.device.logical_block_bytes);
    let target = Target {
        name: name.to_owned(),
        kind: TargetKind::Block,
        path: Some(path.to_string_lossy().into_owned()),
        size_bytes,
        device: Some(Device { major_minor: number.to_string(), ..parts.device }),
        stack: parts.stack,
        direct_io: probe::direct_io(&path),
        dontcache: probe::dontcache(&path, size_bytes),
        direct_align_bytes: align,
        ..Target::default()
    };
    Ok(Examined {
        identities: parts.names.identities,
        no_identities: parts.names.no_identities,
        signatures: parts.signatures,
        labels_around: parts.labels_around,
        growths: parts.growths,
        ..Examined::new(target, path, place, usage)
    })
}

fn attachment(machine: &Machine<'_>, node: &Node) -> Option<Attachment> {
    let disk = &machine.tree.whole(node).name;
    let partition = node.parent.is_some().then_some(node.name.as_str());
    Attachment::now(&machine.roots.sys, disk, partition)
}

#[derive(Debug, Default)]
pub(crate) struct BlockParts {
    pub(crate) device: Device,
    pub(crate) stack: Vec<String>,
    pub(crate) names: Names,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) labels_around: Vec<(String, Signature)>,
    pub(crate) growths: Vec<Growth>,
}

/// Everything about a device that can be found without a descriptor of our own.
pub(crate) fn examine_node(
    machine: &Machine<'_>,
    node: &Node,
    path: &Path,
    hold: Hold,
    usage: &mut InUse,
) -> BlockParts {
    usage.extend(block_uses::find(machine, node));
    usage.extend(file_uses::find_below(machine, node));
    system_disk::find_pooled(machine, node, |other| node_path(machine, node, other, path), usage);
    let mut device = facts::device(&machine.tree, node, &machine.mapper);
    let tools = &machine.roots.tools;
    let lsblk = tools::lsblk(tools, path, &node.name).map_err(|reason| usage.doubt(reason)).ok();
    if let Some(lsblk) = &lsblk {
        second_opinion(lsblk, usage);
        device.model = device.model.or_else(|| lsblk.model.clone());
        device.serial = device.serial.or_else(|| lsblk.serial.clone());
    }
    let signatures = tools::wipefs(tools, path, &node.name).unwrap_or_else(|reason| {
        usage.doubt(reason);
        lsblk.as_ref().and_then(signature_of).into_iter().collect()
    });
    hidden_parts::find(machine, node, &signatures, path, usage);
    let labels = labels_around(machine, node, &signatures, path, usage);
    for (labelled, signature) in &labels {
        if let Some(why) = labels::why_kept(machine, labelled, signature) {
            let label =
                Label { device: labelled, place: node_path(machine, node, labelled, path), signature };
            labels::add(machine, node, label, &why, usage);
        }
        if signature.kind.starts_with("ext") {
            let what = format!("{}{}", signature.text, labels::on(node, labelled));
            mmp::find(machine, &node_path(machine, node, labelled, path), &labelled.name, &what, usage);
        }
    }
    let inventory = Inventory::read(machine);
    // This reads the device and others, and leaves pages in the cache: only before it is written, while no other program can take it.
    if hold == Hold::Ours {
        unlabelled::find(&inventory, node, &labels, usage);
    }
    let mut growths = thin_pool::of_device(machine, node, usage);
    let size_bytes = node.size_bytes().unwrap_or(u64::MAX);
    growths.extend(growing::below_device(machine, node, Taking::Written, size_bytes));
    let names = identity::find(&inventory, node, lsblk.as_ref());
    let around = labels.into_iter().filter(|(labelled, _)| labelled.name != node.name);
    let labels_around = around.map(|(labelled, signature)| (labelled.name.clone(), signature)).collect();
    let stack = machine.tree.kernel_names(node);
    BlockParts { stack, device, names, signatures, labels_around, growths }
}

/// Where the node of a partition of the device `node`, of its disk, or of itself is, if that of `node` is `path`.
pub(super) fn node_path(machine: &Machine<'_>, node: &Node, labelled: &Node, path: &Path) -> PathBuf {
    if labelled.name == node.name {
        return path.to_owned();
    }
    let place = machine.roots.dev.join(labelled.kernel_name());
    if place.exists() { place } else { path.with_file_name(labelled.kernel_name()) }
}

/// The labels on the device, its partitions and its disk, whose other sectors may hold some.
pub(super) fn labels_around<'machine>(
    machine: &'machine Machine<'_>,
    node: &'machine Node,
    own: &[Signature],
    path: &Path,
    usage: &mut InUse,
) -> Vec<(&'machine Node, Signature)> {
    let mut labels: Vec<(&Node, Signature)> = own.iter().map(|signature| (node, signature.clone())).collect();
    for other in node.partitions.iter().chain(&node.parent).filter_map(|name| machine.tree.get(name)) {
        // An extended partition is too short for signatures, and a node may be missing: a missing node holds none.
        let place = node_path(machine, node, other, path);
        match tools::wipefs(&machine.roots.tools, &place, &other.name) {
            Ok(signatures) => labels.extend(signatures.into_iter().map(|signature| (other, signature))),
            Err(reason) => usage.doubt(format_args!("{}: {reason}", other.kernel_name())),
        }
    }
    labels
}

/// `lsblk` walks the same stack with other code: a mount that it sees and we did not is still a use.
fn second_opinion(lsblk: &Lsblk, usage: &mut InUse) {
    if usage.uses.iter().any(|used| matches!(used.kind, UseKind::Mounted | UseKind::Swap)) {
        return;
    }
    for node in lsblk.flat() {
        if let Some(point) = node.mountpoint.as_deref().filter(|point| !point.is_empty()) {
            let name = node.name.as_deref().unwrap_or("it");
            match point {
                "[SWAP]" => usage.add(UseKind::Swap, name),
                point => usage.add(UseKind::Mounted, &format!("{point} on {name}")),
            }
        }
    }
}

fn signature_of(lsblk: &Lsblk) -> Option<Signature> {
    Some(Signature::new(lsblk.fstype.as_deref()?, None, lsblk.label.as_deref()))
}
