//! Devices and files that a program has open, not exclusively, or that the kernel exports to other hosts.

use crate::refusal::{Allow, ROW, Refusal};

pub(crate) const DEVICES: &[Refusal] = &[
    Refusal {
        name: "open for writing in a process",
        set_up: "sleep 600 <> $A & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        code: "in-use",
        says: &["(sleep) has vda open for writing"],
        tear_down: "kill $holder; wait $holder || :",
        ..ROW
    },
    Refusal {
        name: "opened under another node",
        set_up: "mknod /tmp/node b $(cat /sys/block/${A#/dev/}/dev | tr : ' '); sleep 600 <> /tmp/node & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        code: "in-use",
        says: &["(sleep) has vda open for writing"],
        tear_down: "kill $holder; wait $holder || :",
        ..ROW
    },
    Refusal {
        name: "mapped for writing, its descriptor closed",
        set_up: "mkfifo /tmp/hold; RDSK_HOLD_HOW=mapped RDSK_HOLD_WHAT=$A holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held",
        code: "in-use",
        says: &["has vda mapped for writing"],
        tear_down: "exec 7>&-; wait $holder",
        ..ROW
    },
    Refusal {
        name: "held exclusively by a process",
        set_up: "mkfifo /tmp/hold; RDSK_HOLD_HOW=exclusively RDSK_HOLD_WHAT=$A holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held",
        code: "in-use",
        tear_down: "exec 7>&-; wait $holder",
        ..ROW
    },
    Refusal {
        name: "locked by a program that only reads it so far",
        set_up: "mkfifo /tmp/go; flock $A sh -c 'echo > /tmp/there; cat /tmp/go' & other=$!; wait_for 20 test -e /tmp/there",
        code: "in-use",
        says: &["(flock) has it locked (vda)"],
        tear_down: "echo > /tmp/go; wait $other",
        ..ROW
    },
    Refusal {
        name: "the disk around a partition that a process has open",
        set_up: "echo 'start=2048' | partitions $A; sleep 600 <> ${A}1 & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        code: "in-use",
        says: &["has vda1 open for writing"],
        tear_down: "kill $holder; wait $holder || :",
        ..ROW
    },
    Refusal {
        name: "a partition of a disk that a process has open",
        set_up: "echo 'start=2048' | partitions $A; by_id ata-first ${A}1; sleep 600 <> $A & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        target: "${A}1",
        identity: "ata-first",
        code: "in-use",
        says: &["has vda open for writing"],
        tear_down: "kill $holder; wait $holder || :",
        ..ROW
    },
    Refusal {
        name: "member of an array that a process has open",
        set_up: "raid md0 0 $A $B; by_id md-array /dev/md0; sleep 600 <> $B & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        target: "/dev/md0",
        identity: "md-array",
        hashed: "$A $B",
        code: "in-use",
        says: &["has vdb, which it is made of, open for writing"],
        tear_down: "kill $holder; wait $holder || :",
        ..ROW
    },
    Refusal {
        name: "served by nbd-server",
        set_up: "ifconfig lo up 127.0.0.1; printf '[generic]\\n[disk]\\nexportname = %s\\n' $A > /tmp/nbd.conf
            mkdir -p /etc; echo root:x:0:0::/:/bin/sh > /etc/passwd
            nbd-server -C /tmp/nbd.conf 127.0.0.1:10809 -d > /tmp/nbd.log 2>&1 & server=$!
            wait_for 20 nbd-client -N disk 127.0.0.1 10809 /dev/nbd0",
        code: "in-use",
        says: &["(nbd-server) has vda open for writing"],
        tear_down: "nbd-client -d /dev/nbd0; kill $server || :; wait $server || :; wait_for 20 sh -c '! pidof nbd-server'",
        ..ROW
    },
    Refusal {
        name: "exported by nvmet",
        set_up: "n=/sys/kernel/config/nvmet/subsystems/nqn.test; mkdir $n; mkdir $n/namespaces/1
            echo -n $A > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable",
        code: "exported",
        says: &["namespace 1 of the NVMe subsystem nqn.test"],
        tear_down: "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n",
        ..ROW
    },
    Refusal {
        name: "the disk around a partition that nvmet exports",
        set_up: "echo 'start=2048' | partitions $A; n=/sys/kernel/config/nvmet/subsystems/nqn.test; mkdir $n; mkdir $n/namespaces/1
            echo -n ${A}1 > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable",
        code: "exported",
        tear_down: "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n",
        ..ROW
    },
    Refusal {
        name: "exported by LIO through fileio",
        set_up: "t=/sys/kernel/config/target/core/fileio_0; mkdir -p $t/disk
            echo \"fd_dev_name=$A,fd_dev_size=$((48 << 20))\" > $t/disk/control; echo 1 > $t/disk/enable",
        code: "exported",
        says: &["the SCSI target fileio_0/disk"],
        tear_down: "rmdir $t/disk $t",
        ..ROW
    },
    Refusal {
        name: "exported by LIO through iblock",
        set_up: "t=/sys/kernel/config/target/core/iblock_0; mkdir -p $t/disk
            echo \"udev_path=$A\" > $t/disk/control; echo 1 > $t/disk/enable",
        code: "exported",
        says: &["the SCSI target iblock_0/disk"],
        tear_down: "rmdir $t/disk $t",
        ..ROW
    },
    Refusal {
        name: "a filesystem in user space on it",
        set_up: "ext4 $A; mkdir -p /mnt/fuse; fuse2fs $A /mnt/fuse -o fakeroot; wait_for 20 grep -q /mnt/fuse /proc/mounts; sync",
        code: "mounted",
        tear_down: "umount /mnt/fuse; wait_for 20 sh -c '! pidof fuse2fs'",
        ..ROW
    },
];

/// Files on a filesystem of `$B`.
const FILE: Refusal = Refusal { target: "$file", hashed: "$file", allow: Allow::Overwrite, ..ROW };

pub(crate) const FILES: &[Refusal] = &[
    Refusal {
        name: "swap file",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none
            chmod 600 $file; mkswap $file; sync; swapon $file",
        code: "swap",
        tear_down: "swapoff $file",
        ..FILE
    },
    Refusal {
        name: "file below a loop device",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none
            sync; losetup /dev/loop0 $file",
        code: "backing-file",
        tear_down: "losetup -d /dev/loop0",
        ..FILE
    },
    Refusal {
        name: "file open for writing in a process",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none
            sync; sleep 600 <> $file & holder=$!; wait_for 60 grep -q sleep /proc/$holder/comm",
        code: "in-use",
        says: &["(sleep)"],
        tear_down: "kill $holder; wait $holder || :",
        ..FILE
    },
    Refusal {
        name: "file mapped for writing, its descriptor closed",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync
            mkfifo /tmp/hold; RDSK_HOLD_HOW=mapped RDSK_HOLD_WHAT=$file holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held",
        code: "in-use",
        says: &["mapped for writing"],
        tear_down: "exec 7>&-; wait $holder",
        ..FILE
    },
    Refusal {
        name: "bitmap of an md array in a file",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file
            mdadm --quiet --create /dev/md0 --run --metadata=1.2 --level=1 --raid-devices=2 --bitmap=$file $A missing
            head -c 8388608 /dev/urandom >> $file; sync; sleep 6",
        code: "in-use",
        says: &["md0 keeps its write-intent bitmap in it"],
        tear_down: "mdadm --stop /dev/md0; mdadm --zero-superblock $A",
        ..FILE
    },
    Refusal {
        name: "file exported by nvmet",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync
            n=/sys/kernel/config/nvmet/subsystems/nqn.test; mkdir $n; mkdir $n/namespaces/1
            echo -n $file > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable",
        code: "exported",
        tear_down: "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n",
        ..FILE
    },
    Refusal {
        name: "file exported by LIO",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync
            t=/sys/kernel/config/target/core/fileio_0; mkdir -p $t/disk
            echo \"fd_dev_name=$file,fd_dev_size=$((8 << 20))\" > $t/disk/control; echo 1 > $t/disk/enable",
        code: "exported",
        tear_down: "rmdir $t/disk $t",
        ..FILE
    },
    Refusal {
        name: "loop device over a file that nvmet exports",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync
            losetup /dev/loop0 $file; n=/sys/kernel/config/nvmet/subsystems/nqn.test; mkdir $n; mkdir $n/namespaces/1
            echo -n $file > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable",
        target: "/dev/loop0",
        identity: "$file",
        allow: Allow::Destroy,
        code: "exported",
        tear_down: "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n",
        ..FILE
    },
    Refusal {
        name: "file with several names",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync; ln $file $at/other",
        code: "hard-linked",
        says: &["2 names"],
        tear_down: "rm $at/other",
        ..FILE
    },
    Refusal {
        name: "file of the system under a bind mount",
        set_up: "dd if=/dev/urandom of=/etc/image bs=1M count=8 status=none; mkdir -p /mnt/bound; mount --bind /etc /mnt/bound
            file=/mnt/bound/image",
        code: "system-file",
        says: &["it lies in /etc, under another name"],
        tear_down: "umount /mnt/bound; ext4 $B; at=$(mounted $B); mv /etc/image $at/file; file=$at/file; sync",
        ..FILE
    },
    Refusal {
        name: "file that may be executed",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1M count=8 status=none; sync; chmod 755 $file",
        code: "program",
        says: &["may be executed"],
        tear_down: "chmod 644 $file",
        ..FILE
    },
    Refusal {
        name: "library",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; (printf '\\177ELF'; dd if=/dev/urandom bs=1M count=8 status=none) > $file; sync",
        code: "program",
        says: &["begins as an ELF file"],
        tear_down: "printf text | dd of=$file conv=notrunc status=none; sync",
        ..FILE
    },
    Refusal {
        name: "script",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; (echo '#!/bin/sh'; dd if=/dev/urandom bs=1M count=8 status=none) > $file; sync",
        code: "program",
        says: &["begins with #!"],
        tear_down: "printf text | dd of=$file conv=notrunc status=none; sync",
        ..FILE
    },
    Refusal {
        name: "small file",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$file bs=1k count=1023 status=none; sync",
        code: "small-file",
        says: &["smaller than 1 MiB"],
        tear_down: "dd if=/dev/urandom bs=1M count=8 status=none >> $file; sync",
        ..FILE
    },
    Refusal {
        name: "image of an ext4 that another host has mounted",
        set_up: "mkfs.ext4 -q -O mmp $A 8M; mkdir -p /mnt/other; mount $A /mnt/other; ext4 $B; at=$(mounted $B); file=$at/file
            dd if=$A of=$file bs=1M count=8 status=none; umount /mnt/other; sync",
        code: "mounted",
        says: &["multi-mount protection"],
        tear_down: "tune2fs -f -E clear_mmp $file; sync",
        ..FILE
    },
];
