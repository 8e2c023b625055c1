//! Labels of devices that belong to something larger or hold something encrypted. Such a device looks unused while its
//! array, volume group or pool is not assembled, or while another host of a cluster has it mounted, and losing it breaks more than
//! the device itself. A filesystem over several devices is such a thing, too.

use crate::machine::Machine;
use crate::shared_sectors::{Extents, Reach, Sharing};
use crate::signature::{Signature, parse};
use crate::sysfs::Node;
use crate::tools;

/// Filesystems of clusters: another host may have them mounted.
const SHARED_BY_HOSTS: [&str; 7] = ["gfs", "gfs2", "ocfs", "ocfs2", "VMFS", "scoutfs_meta", "scoutfs_data"];
/// Filesystems that may lie on several devices, each with the same UUID.
const OVER_SEVERAL: [&str; 2] = ["btrfs", "bcachefs"];

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

/// The other devices that a filesystem over several lies on. A copy of it on another disk has the same UUID, and cannot be told
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
        let labels = tools::wipefs(&machine.roots.tools, &place, &other.name).and_then(|text| parse(&text));
        other.size_bytes() != Some(0) && labels.is_ok_and(|labels| labels.iter().any(is_same))
    };
    // Through another path, or another layer, the same sectors show the same label.
    let is_apart = |other: &&Node| own.share(&Extents::of(machine, other, Reach::DependsOn)) == Sharing::No;
    machine.tree.nodes().filter(|other| other.name != node.name).filter(is_apart).filter(has_it).collect()
}

/// Whether a label, as libblkid names it, is of that kind; `…_member` is one of md, LVM, ZFS, DDF or a vendor's array.
fn belongs_elsewhere(signature: &Signature) -> bool {
    const OTHERS: [&str; 19] = [
        "crypto_LUKS",
        "BitLocker",
        "cs_fvault2",
        "bcache",
        "drbd",
        "drbdproxy_datalog",
        "ceph_bluestore",
        "stratis",
        "vdo",
        "jbd",
        "xfs_external_log",
        // The memory of a suspended machine.
        "swsuspend",
        "DM_snapshot_cow",
        "DM_integrity",
        "DM_verity_hash",
        "drbdmanage_control_volume",
        "mpool",
        "oracleasm",
        // Volumes of flash memory.
        "ubi",
    ];
    signature.kind.ends_with("_member") || OTHERS.contains(&signature.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn members_and_locks_belong_elsewhere_and_filesystems_do_not() {
        let belongs = |kind| belongs_elsewhere(&Signature::new(kind, None, None));
        for kind in [
            "LVM2_member",
            "linux_raid_member",
            "zfs_member",
            "ddf_raid_member",
            "crypto_LUKS",
            "jbd",
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

    #[test]
    fn the_filesystem_of_a_cluster_is_kept() {
        let text = said(&Fake::new().disk("sda", "8:0"), "ocfs2", None).unwrap();
        assert_eq!(text, "ocfs2, which other hosts may have mounted");
    }
}
