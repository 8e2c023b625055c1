//! Devices that the kernel uses: filesystems, swap, arrays, volumes.

use rdsk_testkit::guest::Tier;

use crate::refusal::{ROW, Refusal};

/// In use by the kernel: filesystems, swap, arrays, volumes.
pub(crate) const ROWS: &[Refusal] = &[
    Refusal {
        name: "mounted ext4",
        set_up: "ext4 $A; at=$(mounted $A); settle $at",
        code: "mounted",
        says: &["it holds a mounted filesystem"],
        tear_down: "umount $at",
        ..ROW
    },
    Refusal {
        name: "active swap",
        set_up: "mkswap $A; swapon $A",
        code: "swap",
        tear_down: "swapoff $A",
        ..ROW
    },
    Refusal {
        name: "active member of an md RAID 1",
        set_up: "raid md0 1 $A $B",
        hashed: "$A $B",
        code: "held",
        says: &["md0"],
        tear_down: "mdadm --stop /dev/md0; mdadm --zero-superblock $A $B",
        tier: Tier::Core,
        ..ROW
    },
    Refusal {
        name: "active LVM physical volume",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -an -Zn -L 8M -n lv vg; vgchange -q -ay vg",
        code: "held",
        tear_down: "vgchange -q -an vg; vgremove -q -f vg; pvremove -q $A",
        ..ROW
    },
    Refusal {
        name: "open LUKS container",
        set_up: "head -c 64 /dev/zero > key
            cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 $A key
            cryptsetup open --key-file key $A secret",
        code: "held",
        tear_down: "cryptsetup close secret; wipefs -qa $A",
        ..ROW
    },
    Refusal {
        name: "second device of a mounted btrfs",
        set_up: "mkfs.btrfs -q -M $B $A; btrfs device scan; at=$(mounted $B btrfs); sync",
        hashed: "$A $B",
        code: "mounted",
        tear_down: "umount $at; wipefs -qa $A $B",
        tier: Tier::Core,
        ..ROW
    },
    Refusal {
        name: "loop device over a partition",
        set_up: "echo 'start=2048' | partitions $A; losetup /dev/loop0 ${A}1",
        code: "held",
        says: &["loop0"],
        tear_down: "losetup -d /dev/loop0",
        ..ROW
    },
    Refusal {
        name: "mounted read-only",
        set_up: "ext4 $A; at=$(mounted $A ext4 ro)",
        code: "mounted",
        tear_down: "umount $at",
        ..ROW
    },
    Refusal {
        name: "mounted in another mount namespace",
        set_up: "ext4 $A; mkdir -p /mnt/other
            unshare -m sh -c \"mount -t ext4 $A /mnt/other; sync; echo > /tmp/there; while ! [ -e /tmp/go ]; do sleep 0.1; done; umount /mnt/other\" & other=$!
            wait_for 20 test -e /tmp/there; sleep 1",
        code: "mounted",
        says: &["another mount namespace"],
        tear_down: "echo > /tmp/go; wait $other",
        ..ROW
    },
    Refusal {
        name: "mounted in a mount namespace without a process",
        set_up: "ext4 $A; mkdir -p /mnt/other /mnt/pins; mount -t tmpfs pins /mnt/pins; mount --make-private /mnt/pins; echo > /mnt/pins/ns
            unshare --mount=/mnt/pins/ns mount -t ext4 $A /mnt/other; sleep 1",
        code: "in-use",
        says: &["exclusively"],
        tear_down: "umount /mnt/pins/ns; umount /mnt/pins; sleep 1",
        ..ROW
    },
    Refusal {
        name: "the disk around a mounted partition",
        set_up: "echo 'start=2048' | partitions $A; ext4 ${A}1; at=$(mounted ${A}1); settle $at",
        code: "mounted",
        tear_down: "umount $at",
        ..ROW
    },
    Refusal {
        name: "the disk around a swap partition",
        set_up: "echo 'start=2048' | partitions $A; mkswap ${A}1; swapon ${A}1",
        code: "swap",
        tear_down: "swapoff ${A}1",
        ..ROW
    },
    Refusal {
        name: "a partition of the disk under the system",
        set_up: "printf 'start=2048,size=40000\\nstart=45056\\n' | partitions $A; ext4 ${A}1; mkdir -p /boot
            mount -t ext4 ${A}1 /boot; settle /boot; by_id ata-second ${A}2",
        target: "${A}2",
        identity: "ata-second",
        code: "system-disk",
        tear_down: "umount /boot",
        ..ROW
    },
    Refusal {
        name: "spare of an md array",
        set_up: "raid md0 1 $A $B; mdadm --quiet /dev/md0 --fail $A --remove $A; mdadm --zero-superblock $A
            echo frozen > /sys/block/md0/md/sync_action
            mdadm --quiet /dev/md0 --add-spare $A; wait_for 20 grep -q vda /proc/mdstat; sleep 1",
        hashed: "$B",
        code: "held",
        tear_down: "mdadm --stop /dev/md0; mdadm --zero-superblock $A $B",
        ..ROW
    },
    Refusal {
        name: "member of a mounted md array",
        set_up: "raid md0 1 $A $B; ext4 /dev/md0; at=$(mounted /dev/md0); settle $at
            wait_for 20 grep -q clean /sys/block/md0/md/array_state; sleep 1",
        hashed: "$A $B",
        code: "mounted",
        says: &["md0"],
        tear_down: "umount $at; mdadm --stop /dev/md0; mdadm --zero-superblock $A $B",
        ..ROW
    },
    Refusal {
        name: "below a mounted dm-crypt device",
        set_up: "dmsetup create secret --table \"0 $(($(blockdev --getsz $A) - 0)) crypt aes-xts-plain64 $(printf '%064d' 7) 0 $A 0\"
            ext4 /dev/mapper/secret; at=$(mounted /dev/mapper/secret); settle $at",
        code: "mounted",
        says: &["secret"],
        tear_down: "umount $at; dmsetup remove secret",
        ..ROW
    },
    Refusal {
        name: "path of a multipath device",
        set_up: "dmsetup create many --table \"0 $(blockdev --getsz $A) multipath 0 0 1 1 round-robin 0 1 1 $A 1000\"",
        code: "held",
        says: &["many"],
        tear_down: "dmsetup remove many",
        ..ROW
    },
    Refusal {
        name: "journal of a mounted ext4",
        set_up: "mke2fs -q -F -O journal_dev $A; mkfs.ext4 -q -F -J device=$A $B; at=$(mounted $B ext4 ro)",
        hashed: "$A $B",
        code: "in-use",
        says: &["exclusively"],
        tear_down: "umount $at; wipefs -qa $A $B",
        ..ROW
    },
    Refusal {
        name: "loop device over the disk",
        set_up: "losetup /dev/loop0 $A",
        code: "held",
        says: &["loop0"],
        tear_down: "losetup -d /dev/loop0",
        ..ROW
    },
    Refusal {
        name: "read-only device",
        set_up: "blockdev --setro $A",
        code: "read-only",
        tear_down: "blockdev --setrw $A",
        ..ROW
    },
    Refusal {
        name: "backing device of an active bcache",
        set_up: "make-bcache -q -B $A || make-bcache -B $A; echo $A > /sys/fs/bcache/register; wait_for 20 test -e /sys/block/bcache0",
        code: "held",
        says: &["bcache0"],
        tear_down: "echo 1 > /sys/block/bcache0/bcache/stop; wait_for 20 test ! -e /sys/block/bcache0; wipefs -qa $A",
        ..ROW
    },
];
