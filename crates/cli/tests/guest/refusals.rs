//! The table of refusals. A row says how a device comes into use, what rdsk must answer, and how it comes out of use again.

use rdsk_testkit::guest::Disk;
use rdsk_testkit::{Need, requires};

use crate::guest;
use crate::refusal::{ROW, Refusal, try_all};

const MIB: u64 = 1 << 20;

/// In use by the kernel: filesystems, swap, arrays, volumes.
const IN_USE: &[Refusal] = &[
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
];

#[test]
fn what_the_kernel_uses_is_not_written() {
    if !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let mut guest = guest()
        .modules(&["ext4", "raid1", "dm_mod", "dm_crypt", "loop", "btrfs"])
        .modules(&["xts", "aesni_intel", "aes_generic", "sha256_generic", "algif_skcipher", "algif_hash"])
        .programs(&["mkfs.ext4", "mkswap", "swapon", "swapoff", "mdadm", "lvm", "dmsetup", "cryptsetup"])
        .programs(&[
            "pvcreate",
            "vgcreate",
            "lvcreate",
            "vgchange",
            "vgremove",
            "pvremove",
            "mkfs.btrfs",
            "btrfs",
        ])
        .disk(Disk::virtio("A", 48 * MIB))
        .disk(Disk::virtio("B", 48 * MIB))
        .boot();
    try_all(&mut guest, "in use by the kernel", "$A $B", IN_USE);
}
