//! Labels of devices that belong to something larger or hold something encrypted. Such a device looks unused while its
//! array, volume group or pool is not assembled, or while another host of a cluster has it mounted, and losing it breaks more than
//! the device itself. A filesystem over several devices is such a thing, too.
//!
//! In: a device, its partitions and its disk, and what the [programs](crate::tools) of util-linux find there (`signature`). Out: a use for each
//! that belongs to something, also where these programs see none: in partitions that the kernel does not show, in the first blocks of
//! devices without a label, in the multi-mount protection of ext4.

pub(crate) mod hidden_parts;
pub(crate) mod mmp;
pub(crate) mod signature;
pub(crate) mod unlabelled;

use crate::labels::signature::Signature;
use crate::machine::{Extents, Machine, Node, Reach, Sharing};
use crate::tools;
use crate::uses::{InUse, Labelled, UseKind};
use rdsk_model::SECTOR_BYTES;
use rdsk_sys::files::read_number;
use std::path::{Path, PathBuf};

/// Filesystems of clusters: another host may have them mounted.
const SHARED_BY_HOSTS: [&str; 7] = ["gfs", "gfs2", "ocfs", "ocfs2", "VMFS", "scoutfs_meta", "scoutfs_data"];
/// Filesystems that may lie on several devices, each with the same UUID.
const OVER_SEVERAL: [&str; 2] = ["btrfs", "bcachefs"];

/// A label that was found around a target.
pub(crate) struct Label<'look> {
    /// The device that has it: the target, a partition of it, or the disk around it.
    pub(crate) device: &'look Node,
    /// The node of that device.
    pub(crate) place: PathBuf,
    pub(crate) signature: &'look Signature,
}

/// Where a label is, after what it is: nothing if `device` is the target `node` itself.
pub(crate) fn on(node: &Node, device: &Node) -> String {
    if device.name == node.name { String::new() } else { format!(" on {}", device.kernel_name()) }
}

/// Adds the use that a label around the target `node` is, for the reason `why`. A label of the disk that stands in the sectors of
/// another partition may be that of the partition, or be in its data: it is not said to be removable.
pub(crate) fn add(machine: &Machine<'_>, node: &Node, label: Label<'_>, why: &str, usage: &mut InUse) {
    let Label { device, place, signature } = label;
    let text = format!("{why}{}", on(node, device));
    let is_around = device.name != node.name;
    match partition_at(machine, device, signature).filter(|part| is_around && part.name != node.name) {
        None => usage.add_label(Labelled::Device { node: place, kind: signature.kind.clone() }, &text),
        Some(part) => {
            let text = format!("{text}, in the sectors of {}", part.kernel_name());
            usage.add(UseKind::Member, &text);
        }
    }
}

/// Adds what a file holds that belongs to something larger or is encrypted, as the image of a disk that is not attached at the moment;
/// `name` stands for the file where answers are prepared. Without the programs of util-linux nothing is known of it.
pub(crate) fn of_file(machine: &Machine<'_>, path: &Path, name: &str, usage: &mut InUse) {
    let labels = tools::wipefs(&machine.roots.tools, path, name).unwrap_or_default();
    let is_kept =
        |label: &&Signature| SHARED_BY_HOSTS.contains(&label.kind.as_str()) || belongs_elsewhere(label);
    for label in labels.iter().filter(is_kept) {
        usage.add(UseKind::Member, &label.text);
    }
}

/// The partition of a disk in whose sectors a label of the disk begins.
fn partition_at<'machine>(
    machine: &'machine Machine<'_>,
    disk: &Node,
    signature: &Signature,
) -> Option<&'machine Node> {
    let offset = signature.offset_bytes?;
    let reaches = |part: &Node| {
        let begin = read_number::<u64>(&part.directory.join("start"))?.checked_mul(SECTOR_BYTES)?;
        Some(begin <= offset && offset < begin.checked_add(part.size_bytes()?)?)
    };
    let mut parts = disk.partitions.iter().filter_map(|name| machine.tree.get(name));
    parts.find(|part| reaches(part) == Some(true))
}

/// Why a device with this label must not be written while it has it, in words; `None` if nothing but the device is lost.
pub(crate) fn why_kept(machine: &Machine<'_>, node: &Node, signature: &Signature) -> Option<String> {
    if SHARED_BY_HOSTS.contains(&signature.kind.as_str()) {
        return Some(format!("{}, which other hosts may have mounted", signature.text));
    }
    if belongs_elsewhere(signature) {
        return Some(signature.text.clone());
    }
    let others = other_devices(machine, node, signature);
    let names: Vec<String> = others.iter().map(|other| other.shown()).collect();
    (!names.is_empty())
        .then(|| format!("{}, which lies on {} too", signature.text, crate::display::listed(&names, 3)))
}

/// The other devices that a filesystem over several lies on. A copy of it on another disk has the same UUID, and cannot be distinguished
/// apart from another part of it.
fn other_devices<'machine>(
    machine: &'machine Machine<'_>,
    node: &Node,
    signature: &Signature,
) -> Vec<&'machine Node> {
    let Some(uuid) = signature.uuid.as_deref().filter(|_| OVER_SEVERAL.contains(&signature.kind.as_str()))
    else {
        return Vec::new();
    };
    let own = Extents::of(machine, node, Reach::DependsOn);
    let has_it = |other: &&Node| {
        let place = machine.roots.dev.join(other.kernel_name());
        let is_same = |label: &Signature| {
            label.kind == signature.kind
                && label.uuid.as_deref().is_some_and(|other| other.eq_ignore_ascii_case(uuid))
        };
        // A drive without a medium, or a node that is missing, holds no part of it.
        let labels = tools::wipefs(&machine.roots.tools, &place, &other.name);
        other.size_bytes() != Some(0) && labels.is_ok_and(|labels| labels.iter().any(is_same))
    };
    // Through another path, or another layer, the same sectors show the same label.
    let is_apart = |other: &&Node| own.share(&Extents::of(machine, other, Reach::DependsOn)) == Sharing::No;
    machine.tree.nodes().filter(|other| other.name != node.name).filter(is_apart).filter(has_it).collect()
}

/// Whether a label, as libblkid names it, is of that kind; `…_member` is one of md, LVM, ZFS, DDF or a vendor's array, `swsuspend` the
/// memory of a suspended machine, `ubi` a volume of flash memory.
fn belongs_elsewhere(signature: &Signature) -> bool {
    const OTHERS: [&str; 19] = [
        "crypto_LUKS", "BitLocker", "cs_fvault2", "bcache", "drbd", "drbdproxy_datalog", "ceph_bluestore",
        "stratis", "vdo", "jbd", "xfs_external_log", "swsuspend", "DM_snapshot_cow", "DM_integrity",
        "DM_verity_hash", "drbdmanage_control_volume", "mpool", "oracleasm", "ubi",
    ];
    signature.kind.ends_with("_member") || OTHERS.contains(&signature.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn members_and_locks_belong_elsewhere_and_filesystems_do_not() {
        let belongs = |kind| belongs_elsewhere(&Signature::new(kind, None, None));
        for kind in [
            "LVM2_member", "linux_raid_member", "zfs_member", "ddf_raid_member", "crypto_LUKS", "jbd",
            "oracleasm",
        ] {
            assert!(belongs(kind), "{kind}");
        }
        for kind in ["ext4", "xfs", "gpt", "dos", "swap", "btrfs", "", "member"] {
            assert!(!belongs(kind), "{kind}");
        }
    }

    fn said(fake: &Fake, kind: &str, uuid: Option<&str>) -> Option<String> {
        let signature = Signature { uuid: uuid.map(str::to_owned), ..Signature::new(kind, None, None) };
        fake.with(|machine, _| why_kept(machine, machine.tree.get("sda").unwrap(), &signature))
    }

    #[test]
    fn one_of_several_devices_of_a_filesystem_is_kept() {
        let label = |uuid: &str| {
            format!(
                r#"{{"signatures":[{{"offset":"0x10040","type":"btrfs","uuid":"{uuid}","label":null}}]}}"#
            )
        };
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sdb", "8:16")
            .disk("sdc", "8:32")
            .disk("dm-0", "253:0")
            .stack("dm-0", "sda")
            .answer("wipefs sda", &label("u-1"))
            .answer("wipefs sdb", &label("U-1"))
            .answer("wipefs dm-0", &label("u-1"))
            .answer("wipefs sdc", &label("u-3"));
        assert_eq!(said(&fake, "btrfs", Some("u-1")).as_deref(), Some("btrfs, which lies on sdb too"));
        assert_eq!(said(&fake, "btrfs", Some("u-3")).as_deref(), Some("btrfs, which lies on sdc too"));
        assert_eq!(said(&fake, "btrfs", Some("u-2")), None, "it lies on one device alone");
        assert_eq!(said(&fake, "ext4", Some("u-1")), None);
        assert_eq!(said(&fake, "btrfs", None), None);
    }

    /// Labels around sda1 of a disk with two partitions, each as it is reported and where it could be removed.
    #[test]
    fn a_label_in_the_sectors_of_another_partition_is_not_said_to_be_removable() {
        let fake = Fake::new().disk("sda", "8:0").disk("sda/sda1", "8:1").disk("sda/sda2", "8:2");
        let fake = fake.attribute("sda/sda1/start", "2048\n").attribute("sda/sda1/size", "2048\n");
        let fake = fake.attribute("sda/sda2/start", "4096\n").attribute("sda/sda2/size", "2048\n");
        let said = |of: &str, sector: u64| {
            fake.with(|machine, usage| {
                let node = |name| machine.tree.get(name).unwrap();
                let signature = &Signature::new("zfs_member", Some(sector * 512), None);
                let label = Label { device: node(of), place: format!("/dev/{of}").into(), signature };
                add(machine, node("sda1"), label, "zfs_member", usage);
                let used = &usage.uses[0];
                let device = used.labelled.as_ref().map(|labelled| match labelled {
                    Labelled::Device { node, kind } => format!("{kind} {}", node.display()),
                    Labelled::HiddenPartition { table_on } => table_on.display().to_string(),
                });
                (used.text.clone(), device)
            })
        };
        let removable = |text: &str, device: &str| (text.to_owned(), Some(format!("zfs_member {device}")));
        assert_eq!(said("sda1", 0), removable("zfs_member", "/dev/sda1"));
        // Before the partitions, in the target itself, and behind them.
        for sector in [512, 2048, 6144] {
            assert_eq!(said("sda", sector), removable("zfs_member on sda", "/dev/sda"), "{sector}");
        }
        for sector in [4096, 6143] {
            let text = "zfs_member on sda, in the sectors of sda2".to_owned();
            assert_eq!(said("sda", sector), (text, None), "{sector}");
        }
    }

    #[test]
    fn the_filesystem_of_a_cluster_is_kept() {
        let text = said(&Fake::new().disk("sda", "8:0"), "ocfs2", None).unwrap();
        assert_eq!(text, "ocfs2, which other hosts may have mounted");
    }
}
