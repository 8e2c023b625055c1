//! Inactive members and locks: nothing holds them, and losing one breaks more than itself.

use crate::refusal::{ROW, Refusal};

pub(crate) const ROWS: &[Refusal] = &[
    Refusal {
        name: "member of a stopped md array",
        set_up: "raid md0 1 $A $B; mdadm --quiet --stop /dev/md0",
        hashed: "$A $B",
        code: "member",
        says: &["linux_raid_member"],
        tear_down: "mdadm --zero-superblock $A $B",
        ..ROW
    },
    Refusal {
        name: "partition that is a member of a stopped md array",
        set_up: "echo 'start=2048' | partitions $A; raid md0 1 ${A}1 $B; mdadm --quiet --stop /dev/md0",
        hashed: "$A $B",
        code: "member",
        says: &["linux_raid_member", " on vda1"],
        tear_down: "mdadm --zero-superblock ${A}1 $B",
        ..ROW
    },
    Refusal {
        name: "partition of a disk that is a member of a stopped md array",
        set_up: "echo 'start=2048,size=40000' | partitions $A
            mdadm --quiet --create /dev/md0 --run --force --metadata=1.0 --level=1 --raid-devices=1 --assume-clean $A
            mdadm --quiet --stop /dev/md0; blockdev --rereadpt $A; by_id ata-first ${A}1",
        target: "${A}1",
        identity: "ata-first",
        code: "member",
        tear_down: "mdadm --zero-superblock $A",
        ..ROW
    },
    Refusal {
        name: "LVM physical volume without a group",
        set_up: "pvcreate -q $A",
        code: "member",
        says: &["LVM2_member"],
        tear_down: "pvremove -q $A",
        ..ROW
    },
    Refusal {
        name: "LVM physical volume of an inactive group",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -an -Zn -L 8M -n lv vg",
        code: "member",
        tear_down: "vgremove -q -f vg; pvremove -q $A",
        ..ROW
    },
    Refusal {
        name: "closed LUKS container",
        set_up: "head -c 64 /dev/zero > key; cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 $A key",
        code: "member",
        says: &["crypto_LUKS"],
        tear_down: "wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "closed LUKS container on a partition",
        set_up: "echo 'start=2048' | partitions $A; head -c 64 /dev/zero > key
            cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 ${A}1 key",
        code: "member",
        says: &["crypto_LUKS on vda1"],
        tear_down: "wipefs -qa ${A}1",
        ..ROW
    },
    Refusal {
        name: "member of an exported ZFS pool",
        set_up: "for n in 0 1 2 3 4 5 6 7; do printf '\\014\\261\\272\\000\\000\\000\\000\\000' |
            dd of=$A bs=1 seek=$((131072 + 1024 * n)) conv=notrunc status=none; done; sync",
        code: "member",
        says: &["zfs_member"],
        tear_down: "wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "device of a btrfs over two that is not mounted",
        set_up: "mkfs.btrfs -q -M $A $B; sync",
        hashed: "$A $B",
        code: "member",
        says: &["btrfs, which lies on vdb too"],
        tear_down: "wipefs -qa $A $B",
        ..ROW
    },
    Refusal {
        name: "second device of an f2fs that is not mounted",
        set_up: "mkfs.f2fs -q -f -c $B $A; sync",
        target: "$B",
        identity: "$B_ID",
        hashed: "$A $B",
        code: "member",
        says: &["f2fs on vda"],
        tear_down: "wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "cache of dm-writecache that is not active",
        set_up: "dmsetup create fast --table \"0 65536 writecache s $B $A 4096 0\"; dmsetup remove fast",
        code: "member",
        says: &["a cache of dm-writecache"],
        tear_down: "dd if=/dev/zero of=$A bs=4096 count=1 status=none; sync",
        ..ROW
    },
    Refusal {
        name: "metadata of a DRBD device that is not up, on a disk of their own",
        // What drbdmeta writes there, as far as it is looked at.
        set_up: "printf '\\203\\164\\002\\153\\000\\003\\000\\000' | dd of=$A bs=1 seek=60 conv=notrunc status=none; sync",
        code: "member",
        says: &["metadata of DRBD"],
        tear_down: "dd if=/dev/zero of=$A bs=4096 count=1 status=none; sync",
        ..ROW
    },
    Refusal {
        name: "backing device of a stopped bcache",
        set_up: "make-bcache -B $A; sync",
        code: "member",
        says: &["bcache"],
        tear_down: "wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "journal of an ext4 that is not mounted",
        set_up: "mke2fs -q -F -O journal_dev $A; sync",
        code: "member",
        says: &["jbd"],
        tear_down: "wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "copy of an ext4 that another host has mounted",
        set_up: "mkfs.ext4 -q -O mmp $B 16M; mkdir -p /mnt/other; mount $B /mnt/other; dd if=$B of=$A bs=1M count=16 status=none
            umount /mnt/other; sync",
        code: "mounted",
        says: &["multi-mount protection", "had it mounted as"],
        tear_down: "tune2fs -f -E clear_mmp $A; sync",
        ..ROW
    },
];
