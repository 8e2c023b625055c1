//! Devices whose sectors are in use through another device, of which neither contains the other.

use rdsk_testkit::guest::Tier;

use crate::refusal::{ROW, Refusal};

pub(crate) const ROWS: &[Refusal] = &[Refusal {
    name: "second path of a LUN whose first is mounted",
    set_up: "ext4 $S; at=$(mounted $S); settle $at; by_id scsi-path $P",
    target: "$P",
    identity: "scsi-path",
    hashed: "$S",
    code: "mounted",
    says: &["another path to the same LUN"],
    tear_down: "umount $at; echo 1 > /sys/block/${S#/dev/}/device/delete; wait_for 20 test ! -e /sys/block/${S#/dev/}",
    tier: Tier::Core,
    ..ROW
}];

pub(crate) const STACKED: &[Refusal] = &[
    Refusal {
        name: "dm-linear that overlaps a mounted one",
        set_up: "dmsetup create one --table \"0 40000 linear $A 0\"; dmsetup create two --table \"0 40000 linear $A 20000\"
            by_id dm-two /dev/$(basename $(ls -d /sys/block/dm-1)); ext4 /dev/mapper/one; at=$(mounted /dev/mapper/one); settle $at",
        target: "/dev/dm-1",
        identity: "dm-two",
        code: "mounted",
        says: &["one", "which has some of its sectors"],
        tear_down: "umount $at; dmsetup remove one",
        ..ROW
    },
    Refusal {
        name: "dm-linear that overlaps another, unused one",
        set_up: "dmsetup create one --table \"0 40000 linear $A 0\"; dmsetup create two --table \"0 40000 linear $A 20000\"
            by_id dm-two /dev/dm-1",
        target: "/dev/dm-1",
        identity: "dm-two",
        code: "shared-sectors",
        says: &["one"],
        tear_down: "dmsetup remove one",
        ..ROW
    },
    Refusal {
        name: "partition that overlaps a mounted one",
        set_up: "entry() { printf '\\000\\000\\000\\000\\203\\000\\000\\000'; printf \"\\\\x$1\\\\x$2\\\\x00\\\\x00\\\\x00\\\\x80\\\\x00\\\\x00\"; }
            { entry 00 08; entry 00 40; } | dd of=$A bs=1 seek=446 conv=notrunc status=none
            printf '\\125\\252' | dd of=$A bs=1 seek=510 conv=notrunc status=none; sync; blockdev --rereadpt $A
            ext4 ${A}1; at=$(mounted ${A}1); settle $at; by_id ata-second ${A}2",
        target: "${A}2",
        identity: "ata-second",
        code: "mounted",
        says: &["vda1, which has some of its sectors"],
        tear_down: "umount $at",
        ..ROW
    },
    Refusal {
        name: "extended partition whose logical one is mounted",
        set_up: "printf 'start=2048,size=80000,type=5\\nstart=4096,size=60000\\n' | partitions $A
            lv=${A}5; ext4 $lv; at=$(mounted $lv); settle $at; by_id ata-extended ${A}1",
        target: "${A}1",
        identity: "ata-extended",
        command: "stream --bs 512 --budget 1s --rw write --evidence sysfs",
        code: "mounted",
        says: &["vda5"],
        tear_down: "umount $at",
        ..ROW
    },
    Refusal {
        name: "origin of a mounted snapshot",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -Zn -L 16M -n base vg; ext4 /dev/mapper/vg-base
            lvcreate -q -s -L 8M -n snap vg/base; at=$(mounted /dev/mapper/vg-snap ext4 ro)
            by_id dm-base /dev/dm-$(dmsetup info -c --noheadings -o minor vg-base)",
        target: "/dev/mapper/vg-base",
        identity: "dm-base",
        code: "mounted",
        says: &["vg-snap"],
        tear_down: "umount $at; lvremove -q -f vg/snap",
        ..ROW
    },
    Refusal {
        name: "origin of an unused snapshot",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -Zn -L 16M -n base vg; lvcreate -q -s -L 8M -n snap vg/base
            by_id dm-base /dev/dm-$(dmsetup info -c --noheadings -o minor vg-base)",
        target: "/dev/mapper/vg-base",
        identity: "dm-base",
        code: "shared-sectors",
        says: &["vg-snap"],
        tear_down: "lvremove -q -f vg/snap",
        ..ROW
    },
    Refusal {
        name: "thin volume of a pool that it could fill",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -L 16M --poolmetadatasize 4M -Zn -T vg/pool
            lvcreate -q -V 32M -T vg/pool -n lv; by_id dm-lv /dev/dm-$(dmsetup info -c --noheadings -o minor vg-lv)",
        target: "/dev/mapper/vg-lv",
        identity: "dm-lv",
        code: "thin-pool",
        says: &["32 MiB more of the thin pool"],
        tear_down: "lvremove -q -f vg/lv; lvcreate -q -V 8M -T vg/pool -n lv
            by_id dm-lv /dev/dm-$(dmsetup info -c --noheadings -o minor vg-lv)",
        tier: Tier::Core,
        ..ROW
    },
    Refusal {
        name: "part of a thin pool with unused volumes",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -L 16M --poolmetadatasize 4M -Zn -T vg/pool
            lvcreate -q -V 8M -T vg/pool -n lv; p=$(dmsetup info -c --noheadings -o minor vg-pool-tpool)
            dmsetup create part --table \"0 20000 linear /dev/dm-$p 0\"; n=$(dmsetup info -c --noheadings -o minor part)
            by_id dm-part /dev/dm-$n",
        target: "/dev/dm-$n",
        identity: "dm-part",
        code: "shared-sectors",
        says: &["vg-lv"],
        tear_down: "dmsetup remove part; vgchange -q -an vg; dmsetup create part --table \"0 20000 linear $A 20000\"
            n=$(dmsetup info -c --noheadings -o minor part); by_id dm-part /dev/dm-$n",
        ..ROW
    },
    Refusal {
        name: "thin pool with volumes",
        set_up: "pvcreate -q $A; vgcreate -q vg $A; lvcreate -q -L 16M --poolmetadatasize 4M -Zn -T vg/pool
            lvcreate -q -V 8M -T vg/pool -n lv; n=$(dmsetup info -c --noheadings -o minor vg-pool_tdata); by_id dm-data /dev/dm-$n",
        target: "/dev/dm-$n",
        identity: "dm-data",
        code: "held",
        tear_down: "vgchange -q -an vg; dmsetup create data --table \"0 20000 linear $A 20000\"
            n=$(dmsetup info -c --noheadings -o minor data); by_id dm-data /dev/dm-$n",
        ..ROW
    },
];
