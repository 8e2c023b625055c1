//! Machines as people have them: what uses a disk must be found through every layer, and nothing else may be reported.

mod under_other_names;

use crate::examine::{Hold, examine_node};
use crate::machine::Machine;
use crate::roots::Roots;
use crate::tests::Fake;
use crate::uses::InUse;
use rdsk_testkit::attempts::{first_right, same};
use rdsk_testkit::{LoopDevice, Need, requires};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const NONE: [&str; 0] = [];

/// sda: sda1 is /boot/efi, sda2 is /, sda3 is free. sdb: sdb1 is /home, sdb2 is free. sdc is free.
fn desktop() -> Fake {
    Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .disk("sda/sda2", "8:2")
        .disk("sda/sda3", "8:3")
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("sdb/sdb2", "8:18")
        .disk("sdc", "8:32")
        .mount("8:2", "/", "ext4", "/dev/sda2")
        .mount("8:1", "/boot/efi", "vfat", "/dev/sda1")
        .mount("8:17", "/home", "xfs", "/dev/sdb1")
}

#[test]
fn partitions_hold_their_disk_and_not_each_other() {
    let fake = desktop();
    assert_eq!(fake.uses("sdb1"), ["Mounted: /home on sdb1"]);
    assert_eq!(fake.uses("sdb"), ["Mounted: /home on sdb1"]);
    assert_eq!(fake.uses("sdb2"), NONE);
    assert_eq!(fake.uses("sdc"), NONE);
}

#[test]
fn the_disk_under_the_system_is_never_free() {
    let fake = desktop();
    let system = ["SystemDisk: / on sda2", "SystemDisk: /boot/efi on sda1"];
    assert_eq!(fake.uses("sda3"), system);
    assert_eq!(fake.uses("sda")[..2], system);
    assert!(fake.uses("sda2").contains(&"Mounted: / on sda2".to_owned()));
}

#[test]
fn the_disk_under_an_overlay_of_the_system_is_never_free() {
    for point in ["/sysroot", "/run/live/medium", "/run/initramfs/live", "/cdrom", "/run/archiso/bootmnt"] {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sda/sda1", "8:1")
            .disk("sda/sda2", "8:2")
            .mount("0:30", "/", "overlay", "overlay")
            .mount("8:1", point, "ext4", "/dev/sda1");
        assert_eq!(fake.uses("sda2"), [format!("SystemDisk: {point} on sda1")]);
    }
}

#[test]
fn a_filesystem_on_the_whole_disk_holds_its_stale_partitions() {
    let fake =
        Fake::new().disk("sdd", "8:48").disk("sdd/sdd1", "8:49").mount("8:48", "/data", "ext4", "/dev/sdd");
    assert_eq!(fake.uses("sdd1"), ["Mounted: /data on sdd"]);
}

#[test]
fn lvm_on_a_partition_holds_it_and_its_disk() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("sdb/sdb2", "8:18")
        .disk("dm-0", "253:0")
        .attribute("dm-0/dm/name", "vg-home\n")
        .stack("dm-0", "sdb/sdb1")
        .mount("253:0", "/home", "ext4", "/dev/mapper/vg-home");
    let expected = ["Mounted: /home on dm-0 (vg-home)", "Holder: dm-0 (vg-home)"];
    assert_eq!(fake.uses("sdb1"), expected);
    assert_eq!(fake.uses("sdb"), expected);
    assert_eq!(fake.uses("dm-0"), ["Mounted: /home on dm-0 (vg-home)"]);
    assert_eq!(fake.uses("sdb2"), NONE);
}

#[test]
fn a_holder_is_a_use_when_nothing_is_mounted() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("sdc", "8:32")
        .disk("md127", "9:127")
        .stack("md127", "sdb")
        .stack("md127", "sdc");
    assert_eq!(fake.uses("sdb"), ["Holder: md127"]);
    assert_eq!(fake.uses("md127"), NONE);
}

#[test]
fn partitions_of_an_array_hold_its_members() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("md0", "9:0")
        .disk("md0/md0p1", "259:0")
        .stack("md0", "sdb")
        .mount("259:0", "/srv", "xfs", "/dev/md0p1");
    assert_eq!(fake.uses("sdb"), ["Mounted: /srv on md0p1", "Holder: md0", "Holder: md0p1"]);
}

#[test]
fn encrypted_swap_holds_through_three_layers() {
    let fake = Fake::new()
        .disk("nvme0n1", "259:0")
        .disk("nvme0n1/nvme0n1p3", "259:3")
        .disk("dm-0", "253:0")
        .disk("dm-1", "253:1")
        .attribute("dm-0/dm/name", "luks")
        .attribute("dm-1/dm/name", "vg-swap")
        .stack("dm-0", "nvme0n1/nvme0n1p3")
        .stack("dm-1", "dm-0")
        .swap("/dev/mapper/vg-swap");
    let expected = ["Swap: dm-1 (vg-swap)", "Holder: dm-0 (luks)", "Holder: dm-1 (vg-swap)"];
    assert_eq!(fake.uses("nvme0n1"), expected);
    assert_eq!(fake.uses("nvme0n1p3"), expected);
    assert_eq!(fake.uses("dm-1"), ["Swap: dm-1 (vg-swap)"]);
}

#[test]
fn the_system_is_found_below_lvm_and_raid() {
    let fake = Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("sdb/sdb2", "8:18")
        .disk("md0", "9:0")
        .disk("dm-0", "253:0")
        .stack("md0", "sda/sda1")
        .stack("md0", "sdb/sdb1")
        .stack("dm-0", "md0")
        .mount("253:0", "/", "ext4", "/dev/mapper/root");
    assert_eq!(fake.uses("sdb2"), ["SystemDisk: / on dm-0"]);
    assert_eq!(fake.uses("sda")[0], "SystemDisk: / on dm-0");
}

#[test]
fn btrfs_is_found_by_its_source_and_all_its_members_by_sysfs() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("sdc", "8:32")
        .disk("sdd", "8:48")
        .mount("0:45", "/pool\\040one", "btrfs", "/dev/sdb");
    fake.file("sys/fs/btrfs/f00-1/devices/sdb/x", "");
    fake.file("sys/fs/btrfs/f00-1/devices/sdc/x", "");
    fake.file("sys/fs/btrfs/features/x", "");
    assert_eq!(fake.uses("sdb"), ["Mounted: /pool one on sdb"]);
    assert_eq!(fake.uses("sdc"), ["Mounted: a btrfs filesystem over sdc"]);
    assert_eq!(fake.uses("sdd"), NONE);
}

#[test]
fn other_mount_namespaces_count() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .process(77, "1 1 8:16 / /var/lib/db rw - ext4 /dev/sdb rw\n")
        .process(78, "1 1 8:99 / / rw - ext4 /dev/other rw\n");
    assert_eq!(fake.uses("sdb"), ["Mounted: /var/lib/db on sdb, in another mount namespace"]);
}

#[test]
fn loops_over_devices_hold_them_both_ways() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("loop0", "7:0")
        .attribute("loop0/loop/backing_file", "/dev/sdb\n")
        .mount("7:0", "/mnt", "ext4", "/dev/loop0");
    assert_eq!(fake.uses("sdb"), ["Mounted: /mnt on loop0 (/dev/sdb)", "Holder: loop0 (/dev/sdb)"]);
    assert_eq!(fake.uses("loop0")[1], "BackingFile: it keeps its data on sdb");
}

/// What is reported to use sdb beside a loop device whose file has lost its name, with or without its node in `dev`.
fn doubts_beside(name: &str, number: &str, dev: Option<&str>) -> Vec<String> {
    doubts_beside_with(["       0        0\n", "1\n"], name, number, dev)
}

/// The same, where sysfs shows this in flight, and whether it counts that.
fn doubts_beside_with(
    [inflight, iostats]: [&str; 2],
    name: &str,
    number: &str,
    dev: Option<&str>,
) -> Vec<String> {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk(name, number)
        .attribute(&format!("{name}/inflight"), inflight)
        .attribute(&format!("{name}/queue/iostats"), iostats)
        .attribute(&format!("{name}/loop/backing_file"), "/gone/disk (deleted)\n");
    let fake = fake.roots();
    let roots = Roots { dev: dev.map_or_else(|| fake.dev.clone(), Into::into), ..fake };
    let mut usage = InUse::default();
    let machine = Machine::read(&roots, &mut usage);
    super::find(&machine, machine.tree.get("sdb").unwrap()).doubts
}

#[test]
fn a_lost_backing_file_may_be_anything_until_its_device_is_detached() {
    let doubts = doubts_beside("loop0", "7:0", None);
    assert_eq!(doubts, ["it may be what loop0 (/gone/disk (deleted)) keeps its data in"]);
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    // A device that was detached after sysfs was read. Should another test take the number, it reports its own file.
    let gone = LoopDevice::builder().size(1 << 20).create().unwrap();
    let (name, number) = (gone.name().to_owned(), gone.major_minor().to_owned());
    drop(gone);
    assert_eq!(doubts_beside(&name, &number, Some("/dev")), NONE);
}

/// As where a service is kept from devices, or a node of another one stands in its place.
#[test]
fn what_is_no_node_of_the_device_does_not_answer_for_it() {
    let dev = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dev.path().join("loop0")).unwrap();
    let doubt = "it may be what loop0 (/gone/disk (deleted)) keeps its data in";
    assert_eq!(doubts_beside("loop0", "7:0", dev.path().to_str()), [doubt]);
    if !requires(&[Need::Root, Need::Tool("mknod")]) {
        return;
    }
    // A number that no device has, on a filesystem that lets nodes be opened.
    let dev = tempfile::tempdir_in("/dev/shm").unwrap();
    let node = dev.path().join("loop0");
    let made = Command::new("mknod").arg(&node).args(["b", "239", "1048575"]).status().unwrap();
    // Root of a container may not make one.
    if made.success() {
        assert_eq!(doubts_beside("loop0", "7:0", dev.path().to_str()), [doubt]);
    }
}

/// LOOP_CLR_FD by the only one who has the device open: since 6.11 it cannot be opened any more, and sysfs shows its file until it is closed.
const DETACH_AND_HOLD: &str =
    "$| = 1; open F, '<', $ARGV[0] or die; ioctl F, 0x4C01, 0 or die; print \"detached\n\"; <STDIN>";

#[test]
fn a_device_that_is_being_detached_keeps_nothing() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("perl")]) {
        return;
    }
    // Another who opens the device in this moment leaves it attached until that one closes it.
    first_right(10, || {
        let seen = detached_and_held();
        same(
            "what it says, doubts, and doubts while it does something",
            &seen,
            &(String::from("detached\n"), 0, [1; 3]),
        )
    });
}

fn detached_and_held() -> (String, usize, [usize; 3]) {
    let device = LoopDevice::builder().size(1 << 20).create().unwrap();
    let mut holder = Command::new("perl")
        .args(["-e", DETACH_AND_HOLD])
        .arg(device.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let doubts = doubts_beside(device.name(), device.major_minor(), Some("/dev")).len();
    // It still does what it has begun, or nothing counts that.
    let busy = [["0 1", "1"], ["1 0", "1"], ["0 0", "0"]]
        .map(|shown| doubts_beside_with(shown, device.name(), device.major_minor(), Some("/dev")).len());
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    (said, doubts, busy)
}

#[test]
fn read_only_devices_and_disks_are_said() {
    let fake = Fake::new().disk("sdb", "8:16").disk("sdb/sdb1", "8:17").attribute("sdb/ro", "1\n");
    assert_eq!(fake.uses("sdb"), ["ReadOnly: sdb"]);
    assert_eq!(fake.uses("sdb1"), ["ReadOnly: sdb1"]);
}

#[test]
fn names_of_others_cannot_reach_the_terminal() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("dm-0", "253:0")
        .attribute("dm-0/dm/name", "\u{1b}[2Jevil")
        .stack("dm-0", "sdb");
    assert_eq!(fake.uses("sdb"), ["Holder: dm-0 (\\x1b[2Jevil)"]);
}

#[test]
fn facts_identities_and_stack_are_read() {
    let fake = Fake::new()
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("dm-0", "253:0")
        .stack("dm-0", "sdb/sdb1")
        .attribute("sdb/queue/logical_block_size", "512\n")
        .attribute("sdb/queue/physical_block_size", "4096\n")
        .attribute("sdb/queue/optimal_io_size", "0\n")
        .attribute("sdb/queue/max_sectors_kb", "1280\n")
        .attribute("sdb/queue/rotational", "1\n")
        .attribute("sdb/queue/scheduler", "none [mq-deadline]\n")
        .attribute("sdb/queue/write_cache", "write back\n")
        .attribute("sdb/queue/fua", "0\n")
        .attribute("sdb/queue/iostats", "1\n")
        .attribute("sdb/sdb1/alignment_offset", "512\n")
        .attribute("sdb/device/model", "WDC WD2500JS\n")
        .attribute("sdb/device/vpd_pg80", "\0\u{0}\0\u{8}WD-WCAN1")
        .attribute("sdb/device/wwid", "naa.50014ee0ac1b2c3d\n")
        .by_id("ata-WDC_WD2500JS_WD-WCAN1", "sdb")
        .by_id("ata-WDC_WD2500JS_WD-WCAN1-part1", "sdb1")
        .answer(
            "lsblk sdb1",
            r#"{"blockdevices":[{"name":"sdb1","wwn":"0x50014ee0ac1b2c3d","mountpoint":null}]}"#,
        )
        .answer("wipefs sdb1", "")
        .answer("wipefs sdb", "");
    fake.with(|machine, usage| {
        let node = machine.tree.get("sdb1").unwrap();
        let parts = examine_node(machine, node, Path::new("/dev/sdb1"), Hold::NotYet, usage);
        assert_eq!(usage.doubts, NONE);
        let device = &parts.device;
        assert_eq!((device.name.as_str(), device.major_minor.as_str()), ("sdb1", "8:17"));
        assert_eq!(device.model.as_deref(), Some("WDC WD2500JS"));
        assert_eq!(device.serial.as_deref(), Some("WD-WCAN1"));
        assert_eq!(device.size_bytes, Some(1 << 30));
        assert_eq!((device.logical_block_bytes, device.physical_block_bytes), (Some(512), Some(4096)));
        assert_eq!(device.alignment_offset_bytes, Some(512));
        assert_eq!((device.optimal_io_bytes, device.minimum_io_bytes), (None, None));
        assert_eq!(device.max_request_bytes, Some(1280 << 10));
        assert_eq!((device.rotational, device.fua, device.iostats), (Some(true), Some(false), Some(true)));
        assert_eq!(device.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(device.write_cache.as_deref(), Some("write back"));
        assert_eq!(parts.stack, ["sdb1", "sdb"]);
        let texts: Vec<&str> = parts.names.identities.iter().map(|identity| identity.text.as_str()).collect();
        let by_id = "ata-WDC_WD2500JS_WD-WCAN1-part1";
        assert_eq!(texts, ["WD-WCAN1", "naa.50014ee0ac1b2c3d", "0x50014ee0ac1b2c3d", by_id]);
        assert_eq!(machine.tree.stack(machine.tree.get("dm-0").unwrap()), ["dm-0", "sdb1", "sdb"]);
    });
}

#[test]
fn what_only_lsblk_sees_is_a_use_and_missing_programs_are_doubts() {
    let fake = Fake::new().disk("sdb", "8:16").answer(
        "lsblk sdb",
        r#"{"blockdevices":[{"name":"sdb","fstype":"zfs_member","label":"tank","mountpoint":null,
            "children":[{"name":"sdb9","mountpoint":"/tank"}]}]}"#,
    );
    fake.with(|machine, usage| {
        let node = machine.tree.get("sdb").unwrap();
        let parts = examine_node(machine, node, Path::new("/dev/sdb"), Hold::NotYet, usage);
        assert_eq!(usage.uses[0].text, "/tank on sdb9");
        assert_eq!(usage.doubts, ["wipefs is not installed"]);
        assert_eq!(parts.signatures[0].text, "zfs_member \"tank\"");
    });
}

/// The second path of a LUN, an overlapping partition, an overlapping device-mapper device, a snapshot, and a table of
/// logical partitions: none of them is above or below what is in use.
#[test]
fn what_shares_sectors_sideways_is_in_use_too() {
    let paths = Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("sdb/sdb2", "8:18")
        .attribute("sda/device/wwid", "naa.5000c500a1b2c3d4\n")
        .attribute("sdb/device/wwid", "naa.5000c500a1b2c3d4\n")
        .mount("8:1", "/data", "ext4", "/dev/sda1");
    let expected = ["Mounted: /data on sda1, another path to the same LUN"];
    assert_eq!(paths.uses("sdb"), expected);
    assert_eq!(paths.uses("sdb1"), expected);
    assert_eq!(paths.uses("sdb2"), NONE, "another partition of the same LUN");

    let partitions = Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .disk("sda/sda2", "8:2")
        .attribute("sda/sda2/start", "2097151\n")
        .mount("8:1", "/data", "ext4", "/dev/sda1");
    assert_eq!(partitions.uses("sda2"), ["Mounted: /data on sda1, which has some of its sectors"]);

    let mapped = Fake::new()
        .disk("sda", "8:0")
        .disk("dm-0", "253:0")
        .disk("dm-1", "253:1")
        .stack("dm-0", "sda")
        .stack("dm-1", "sda");
    assert_eq!(mapped.uses("dm-1"), ["SharedSectors: dm-0"]);
    let mapped = mapped.mount("253:0", "/data", "ext4", "/dev/mapper/a");
    let expected = ["Mounted: /data on dm-0, which has some of its sectors", "SharedSectors: dm-0"];
    assert_eq!(mapped.uses("dm-1"), expected);
    let apart = mapped.answer("table dm-1", "0 1024 linear 8:0 2097152");
    assert_eq!(apart.uses("dm-1"), NONE);
}

#[test]
fn an_origin_is_in_use_while_its_snapshot_is() {
    let mut fake = Fake::new().disk("sda", "8:0");
    for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2"), ("dm-3", "253:3")] {
        fake = fake.disk(name, number);
    }
    let fake = fake
        .stack("dm-0", "sda")
        .stack("dm-1", "sda")
        .stack("dm-2", "dm-0")
        .stack("dm-3", "dm-0")
        .stack("dm-3", "dm-1")
        .answer("table dm-1", "0 1024 linear 8:0 2097152")
        .answer("table dm-2", "0 1024 snapshot-origin 253:0")
        .answer("table dm-3", "0 1024 snapshot 253:0 253:1 P 8")
        .mount("253:3", "/snap", "ext4", "/dev/mapper/snap");
    let expected = ["Mounted: /snap on dm-3, which has some of its sectors", "SharedSectors: dm-3"];
    assert_eq!(fake.uses("dm-2"), expected);
    let unmounted = Fake::new().disk("sda", "8:0");
    assert_eq!(unmounted.uses("sda"), NONE);
}

/// One cache for two disks, and two arrays in the container of a controller: what the one is used for says nothing of the other.
#[test]
fn devices_that_share_a_cache_or_a_container_are_kept_apart() {
    let cache = Fake::new()
        .disk("sda", "8:0")
        .disk("sdb", "8:16")
        .disk("sdc", "8:32")
        .disk("bcache0", "252:0")
        .disk("bcache1", "252:16")
        .stack("bcache0", "sda")
        .stack("bcache0", "sdc")
        .stack("bcache1", "sdb")
        .stack("bcache1", "sdc")
        .mount("252:16", "/data", "ext4", "/dev/bcache1");
    assert_eq!(cache.uses("bcache0"), NONE);
    assert_eq!(cache.uses("bcache1"), ["Mounted: /data on bcache1"]);
    assert_eq!(
        cache.uses("sdc"),
        ["Mounted: /data on bcache1", "Holder: bcache0", "Holder: bcache1"],
        "the cache itself"
    );
    let mut container = Fake::new().disk("sda", "8:0").disk("md127", "9:127").stack("md127", "sda");
    container =
        container.attribute("md127/size", "0\n").attribute("md127/md/metadata_version", "external:imsm\n");
    for (name, number, offset) in [("md126", "9:126", "0\n"), ("md125", "9:125", "2048\n")] {
        container = container
            .disk(name, number)
            .stack(name, "sda")
            .attribute(&format!("{name}/md/metadata_version"), "external:/md127/0\n")
            .attribute(&format!("{name}/md/reshape_position"), "none\n")
            .attribute(&format!("{name}/md/dev-sda/offset"), offset)
            .attribute(&format!("{name}/md/dev-sda/size"), "1024\n");
    }
    let container = container.mount("9:125", "/data", "ext4", "/dev/md125");
    assert_eq!(container.uses("md126"), NONE);
    assert_eq!(container.uses("sda").len(), 4, "{:?}", container.uses("sda"));
    let silent = container.attribute("md125/md/dev-sda/size", "\n");
    assert_eq!(
        silent.uses("md126"),
        ["Mounted: /data on md125, which has some of its sectors", "SharedSectors: md125"]
    );
}

/// As LVM makes a thin pool: dm-0 is the pool, dm-1 a linear device over it that has the pool's name, dm-2 a volume.
#[test]
fn a_pool_is_in_use_while_it_has_volumes_and_not_the_other_way_round() {
    let mut fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16");
    for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1"), ("dm-2", "253:2")] {
        fake = fake.disk(name, number);
    }
    let fake = fake
        .stack("dm-0", "sda")
        .stack("dm-0", "sdb")
        .stack("dm-1", "dm-0")
        .stack("dm-2", "dm-0")
        .answer("table dm-0", "0 2097152 thin-pool 8:16 8:0 128 0 0")
        .answer("table dm-2", "0 2097152 thin 253:0 1");
    assert_eq!(fake.uses("dm-1"), ["SharedSectors: dm-2"]);
    assert_eq!(fake.uses("dm-2"), NONE, "LVM keeps dm-1 for every pool");
    let fake = fake.mount("253:2", "/data", "ext4", "/dev/mapper/vg-lv");
    let expected = ["Mounted: /data on dm-2, which has some of its sectors", "SharedSectors: dm-2"];
    assert_eq!(fake.uses("dm-1"), expected);
    let fake = fake.mount("253:1", "/raw", "ext4", "/dev/mapper/vg-pool");
    let expected = ["Mounted: /data on dm-2", "Mounted: /raw on dm-1, which spans its whole pool"];
    assert_eq!(fake.uses("dm-2"), expected);
}

#[test]
fn an_extended_partition_holds_its_logical_ones() {
    let fake = Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .disk("sda/sda2", "8:2")
        .disk("sda/sda5", "8:5")
        .attribute("sda/sda2/size", "2\n")
        .mount("8:5", "/data", "ext4", "/dev/sda5");
    assert_eq!(fake.uses("sda2"), ["Mounted: /data on sda5"]);
    assert_eq!(fake.uses("sda1"), NONE);
}

#[test]
fn exports_and_host_managed_zones_are_uses() {
    let fake = Fake::new().disk("sdb", "8:16").disk("sdb/sdb1", "8:17");
    let fake = fake.attribute("sdb/queue/zoned", "host-managed\n");
    fake.file("sys/kernel/config/nvmet/subsystems/nqn.a/namespaces/1/device_path", "/dev/sdb\n");
    let export = "Exported: namespace 1 of the NVMe subsystem nqn.a";
    for name in ["sdb", "sdb1"] {
        assert_eq!(fake.uses(name), [export.to_owned(), format!("HostManaged: {name}")]);
    }
}

/// The kernel itself may hold a path or an overlapping partition, without a visible label, mount or holder: the
/// realtime part of XFS, a filesystem that the mount table names otherwise.
#[test]
fn another_path_that_the_kernel_calls_busy_is_a_use() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let real = LoopDevice::builder().size(1 << 20).create().unwrap();
    let wwn = "naa.5000c500a1b2c3d4\n";
    let fake = Fake::new()
        .disk("sda", "8:0")
        .disk("sdb", real.major_minor())
        .disk("sdc", "8:32")
        .attribute("sda/device/wwid", wwn)
        .attribute("sdb/device/wwid", wwn);
    std::os::unix::fs::symlink(real.path(), fake.path("dev/sdb")).unwrap();
    assert_eq!(fake.uses("sda"), NONE);
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
    let held = rustix::fs::open(real.path(), flags, rustix::fs::Mode::empty()).unwrap();
    assert_eq!(
        fake.uses("sda"),
        ["OpenExclusive: sdb, another path to the same LUN, which the kernel reports as busy"]
    );
    assert_eq!(fake.uses("sdc"), NONE);
    // A map over the paths holds them in its own right, and is what would be written.
    let mapped = fake.disk("dm-0", "253:0").stack("dm-0", "sdb");
    assert_eq!(mapped.uses("dm-0"), NONE);
    drop(held);
}

#[test]
fn volumes_of_flash_memory_hold_its_block_device() {
    let fake = Fake::new().disk("mtdblock0", "31:0").disk("mtdblock1", "31:1");
    fake.file("sys/class/ubi/ubi0/mtd_num", "1\n");
    fake.file("sys/class/ubi/ubi0_0/reserved_ebs", "1\n");
    assert_eq!(fake.uses("mtdblock0"), NONE);
    assert_eq!(fake.uses("mtdblock1"), ["Holder: ubi0"]);
}
