//! Devices and files that the kernel has open under a name which they have lost, or never had here.

use rdsk_testkit::guest::Tier;

use crate::refusal::{Allow, ROW, Refusal};

/// Volumes of a group on `$A`. `volume NAME` makes one, `nvmet NAME` and `fileio NAME` export by that name, `ended` ends both.
macro_rules! set_up {
    ($rest:literal) => {
        concat!(
            "volume() { lvcreate -q -Wn -Zn -L 12M -n $1 vg; }
            nvmet() { n=/sys/kernel/config/nvmet/subsystems/nqn.test; mkdir $n; mkdir $n/namespaces/1
                echo -n $1 > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable; }
            fileio() { t=/sys/kernel/config/target/core/$1; mkdir -p $t/disk; echo $2 > $t/disk/control; echo 1 > $t/disk/enable; }
            numbered() { by_id $1 /dev/dm-$(dmsetup info -c --noheadings -o minor $2); }
            group() { pvcreate -q $A; vgcreate -q vg $A; volume data; }
            ",
            $rest
        )
    };
}

const END_NVMET: &str = "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n";

pub(crate) const DEVICES: &[Refusal] = &[
    Refusal {
        name: "volume that nvmet exports, renamed, with another in its place",
        set_up: set_up!("group; nvmet /dev/vg/data; lvrename -q vg data data_old; volume data; numbered dm-old vg-data_old"),
        target: "/dev/mapper/vg-data_old",
        identity: "dm-old",
        hashed: "/dev/mapper/vg-data_old",
        code: "cannot-prove-unused",
        says: &["(vg-data_old) open once more than can be seen", "nqn.test exports /dev/vg/data"],
        tear_down: END_NVMET,
        tier: Tier::Core,
        ..ROW
    },
    Refusal {
        name: "volume that nvmet exports, renamed",
        set_up: set_up!("group; nvmet /dev/mapper/vg-data; lvrename -q vg data data_old; numbered dm-old vg-data_old"),
        target: "/dev/mapper/vg-data_old",
        identity: "dm-old",
        hashed: "/dev/mapper/vg-data_old",
        code: "cannot-prove-unused",
        says: &["(vg-data_old) open once more than can be seen"],
        tear_down: END_NVMET,
        ..ROW
    },
    Refusal {
        name: "volume that LIO exports through fileio, renamed",
        set_up: set_up!("group; fileio fileio_0 fd_dev_name=/dev/vg/data,fd_dev_size=$((12 << 20))
            lvrename -q vg data data_old; volume data; numbered dm-old vg-data_old"),
        target: "/dev/mapper/vg-data_old",
        identity: "dm-old",
        hashed: "/dev/mapper/vg-data_old",
        code: "cannot-prove-unused",
        says: &["(vg-data_old) open once more than can be seen"],
        tear_down: "rmdir $t/disk $t",
        ..ROW
    },
    Refusal {
        name: "volume that LIO exports through iblock, renamed",
        set_up: set_up!("group; fileio iblock_0 udev_path=/dev/vg/data
            lvrename -q vg data data_old; volume data; numbered dm-old vg-data_old"),
        target: "/dev/mapper/vg-data_old",
        identity: "dm-old",
        hashed: "/dev/mapper/vg-data_old",
        code: "exported",
        says: &["the SCSI target iblock_0/disk"],
        tear_down: "rmdir $t/disk $t",
        ..ROW
    },
    Refusal {
        name: "volume that nvmet exports by the name of a disk, in a mount namespace that has gone",
        set_up: set_up!("group; unshare -m busybox sh -ec 'mount --bind /dev/mapper/vg-data $0; n=/sys/kernel/config/nvmet/subsystems/nqn.test
                mkdir $n; mkdir $n/namespaces/1; echo -n $0 > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable' $B
            n=/sys/kernel/config/nvmet/subsystems/nqn.test; numbered dm-data vg-data"),
        target: "/dev/mapper/vg-data",
        identity: "dm-data",
        hashed: "/dev/mapper/vg-data",
        code: "cannot-prove-unused",
        says: &["(vg-data) open once more than can be seen"],
        tear_down: END_NVMET,
        ..ROW
    },
    Refusal {
        name: "disk that nvmet exports by a link that leads to another one now",
        set_up: set_up!("ln -s $A /tmp/link; nvmet /tmp/link; ln -sfn $B /tmp/link"),
        code: "cannot-prove-unused",
        says: &["nqn.test exports /tmp/link, a name that may have led here"],
        tear_down: END_NVMET,
        ..ROW
    },
    Refusal {
        name: "disk that LIO exports through fileio by a link that leads to another one now",
        set_up: set_up!("ln -s $A /tmp/link; fileio fileio_0 fd_dev_name=/tmp/link,fd_dev_size=$((48 << 20)); ln -sfn $B /tmp/link"),
        code: "cannot-prove-unused",
        says: &["fileio_0/disk exports /tmp/link, a name that may have led here"],
        tear_down: "rmdir $t/disk $t",
        ..ROW
    },
    Refusal {
        name: "disk that nvmet exports by a link that leads nowhere now",
        set_up: set_up!("ln -s $A /tmp/link; nvmet /tmp/link; rm /tmp/link"),
        code: "cannot-prove-unused",
        says: &["nqn.test exports /tmp/link, which cannot be found here"],
        tear_down: END_NVMET,
        ..ROW
    },
    Refusal {
        name: "disk that nvmet exports under another disk's name, in another mount namespace",
        set_up: set_up!("mkfifo /tmp/go; unshare -m busybox sh -ec 'mount --bind $0 $1; n=/sys/kernel/config/nvmet/subsystems/nqn.test
                mkdir $n; mkdir $n/namespaces/1; echo -n $1 > $n/namespaces/1/device_path; echo 1 > $n/namespaces/1/enable; cat /tmp/go' $A $B & other=$!
            n=/sys/kernel/config/nvmet/subsystems/nqn.test; wait_for 60 grep -q 1 $n/namespaces/1/enable"),
        code: "exported",
        says: &["nqn.test, by the name /dev/vdb of another mount namespace"],
        tear_down: "echo 0 > $n/namespaces/1/enable; rmdir $n/namespaces/1 $n; echo > /tmp/go; wait $other",
        ..ROW
    },
    Refusal {
        name: "NVMe disk that nvmet serves to this machine, over a mounted volume that was renamed",
        set_up: set_up!("group; ext4 /dev/vg/data; nvmet /dev/vg/data; echo 1 > $n/attr_allow_any_host; p=/sys/kernel/config/nvmet/ports/1; mkdir $p
            ifconfig lo up 127.0.0.1; echo tcp > $p/addr_trtype; echo ipv4 > $p/addr_adrfam; echo 127.0.0.1 > $p/addr_traddr
            echo 4420 > $p/addr_trsvcid; ln -s $n $p/subsystems/nqn.test
            echo transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=nqn.test > /dev/nvme-fabrics
            wait_for 60 test -b /dev/nvme0n1; by_id nvme-own /dev/nvme0n1
            lvrename -q vg data data_old; volume data; at=$(mounted /dev/mapper/vg-data_old); settle $at"),
        target: "/dev/nvme0n1",
        identity: "nvme-own",
        hashed: "/dev/mapper/vg-data_old",
        code: "cannot-prove-unused",
        says: &["nvme0n1 keeps its data on what /dev/vg/data led to, and that may be something else now"],
        tear_down: "umount $at; lvremove -q -f vg/data; lvrename -q vg data_old data",
        ..ROW
    },
];

/// Files on a filesystem of `$B`.
const FILE: Refusal = Refusal { target: "$file", hashed: "$file", allow: Allow::Overwrite, ..ROW };

pub(crate) const FILES: &[Refusal] = &[
    Refusal {
        name: "file that nvmet exports, renamed, with another in its place",
        set_up: set_up!("ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$at/name bs=1M count=8 status=none; sync
            nvmet $at/name; mv $at/name $file; cp $file $at/name; sync"),
        code: "in-use",
        says: &["the kernel says that it is open for writing"],
        tear_down: END_NVMET,
        ..FILE
    },
    Refusal {
        name: "loop device over a file that nvmet exports, renamed, with another in its place",
        set_up: set_up!("ext4 $B; at=$(mounted $B); file=$at/file; dd if=/dev/urandom of=$at/name bs=1M count=8 status=none; sync
            nvmet $at/name; mv $at/name $file; cp $file $at/name; sync; losetup /dev/loop0 $file"),
        target: "/dev/loop0",
        identity: "$file",
        allow: Allow::Destroy,
        code: "cannot-prove-unused",
        says: &["a name that may have led here"],
        tear_down: END_NVMET,
        ..FILE
    },
];

/// Files that EROFS is mounted from without a loop device, since Linux 6.12.
pub(crate) const IMAGES: &[Refusal] = &[
    Refusal {
        name: "file that EROFS is mounted from",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; cp /image $file; chmod 644 $file; sync
            mkfifo /tmp/hold; RDSK_HOLD_HOW=mounted RDSK_HOLD_WHAT=$file holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held",
        code: "mounted",
        says: &["/file.mounted"],
        tear_down: "exec 7>&-; wait $holder",
        ..FILE
    },
    Refusal {
        name: "file that EROFS is mounted from, renamed, with another in its place",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; cp /image $at/name; chmod 644 $at/name; sync
            mkfifo /tmp/hold; RDSK_HOLD_HOW=mounted RDSK_HOLD_WHAT=$at/name holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held; mv $at/name $file; cp $file $at/name; sync",
        code: "in-use",
        says: &["the kernel says that it is open for reading", "/name.mounted is mounted from it"],
        tear_down: "exec 7>&-; wait $holder",
        ..FILE
    },
    Refusal {
        name: "file that EROFS is mounted from through a bind mount of another mount namespace",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; cp /image $file; chmod 644 $file; mkdir /tmp/there; sync; mkfifo /tmp/hold
            unshare -m busybox sh -ec 'mount --bind $0 /tmp/there; RDSK_HOLD_HOW=mounted RDSK_HOLD_WHAT=/tmp/there/file exec holder --ignored --exact refusals::child_that_holds --nocapture' $at < /tmp/hold > /tmp/held & holder=$!
            exec 7> /tmp/hold; wait_for 30 grep -q holding /tmp/held",
        code: "mounted",
        says: &["/tmp/there/file.mounted, in another mount namespace"],
        tear_down: "exec 7>&-; wait $holder",
        ..FILE
    },
    Refusal {
        name: "loop device over a file that EROFS is mounted from, renamed",
        set_up: "ext4 $B; at=$(mounted $B); file=$at/file; cp /image $at/name; chmod 644 $at/name; sync
            mkfifo /tmp/hold; RDSK_HOLD_HOW=mounted RDSK_HOLD_WHAT=$at/name holder --ignored --exact refusals::child_that_holds --nocapture < /tmp/hold > /tmp/held & holder=$!; exec 7> /tmp/hold
            wait_for 30 grep -q holding /tmp/held; mv $at/name $file; losetup /dev/loop0 $file",
        target: "/dev/loop0",
        identity: "$file",
        allow: Allow::Destroy,
        code: "cannot-prove-unused",
        says: &["one was mounted on", "a name that may have led here"],
        tear_down: "exec 7>&-; wait $holder",
        ..FILE
    },
];
