//! Labels of devices that belong to something larger or hold something encrypted. Such a device looks unused while its
//! array, volume group or pool is not assembled, and losing it breaks more than the device itself.

use crate::signature::Signature;

/// Whether a label, as libblkid names it, is of that kind; `…_member` is one of md, LVM, ZFS, DDF or a vendor's array.
pub(crate) fn belongs_elsewhere(signature: &Signature) -> bool {
    const OTHERS: [&str; 13] = [
        "crypto_LUKS",
        "BitLocker",
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
    ];
    signature.kind.ends_with("_member") || OTHERS.contains(&signature.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_locks_belong_elsewhere_and_filesystems_do_not() {
        let belongs = |kind| belongs_elsewhere(&Signature::new(kind, None, None));
        for kind in
            ["LVM2_member", "linux_raid_member", "zfs_member", "ddf_raid_member", "crypto_LUKS", "jbd"]
        {
            assert!(belongs(kind), "{kind}");
        }
        for kind in ["ext4", "xfs", "gpt", "dos", "swap", "btrfs", "", "member"] {
            assert!(!belongs(kind), "{kind}");
        }
    }
}
