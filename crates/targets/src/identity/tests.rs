//! Identities on fake trees whose attributes are laid out as those of a Debian 6.1 kernel (QEMU, 2026-11-21).

use super::*;
use crate::tests::Fake;

/// The identities of a device as `kind: text`, and its names that are not identities.
fn names(fake: &Fake, name: &str) -> (Vec<String>, Vec<String>) {
    fake.with(|machine, _| {
        let names = find(&Inventory::read(machine), machine.tree.get(name).unwrap(), None);
        let good = names.identities.iter().map(|known| format!("{:?}: {}", known.kind, known.text)).collect();
        let bad =
            names.no_identities.iter().map(|none| format!("{}: {}", none.identity.text, none.why)).collect();
        (good, bad)
    })
}

const TOLD: &str = r#"{"blockdevices":[]}"#;

fn nvme(fake: Fake, name: &str, number: &str, serial: &str) -> Fake {
    fake.disk(name, number)
        .attribute(&format!("{name}/device/serial"), &format!("{serial:<20}\n"))
        .attribute(&format!("{name}/device/model"), "QEMU NVMe Ctrl                          \n")
}

#[test]
fn a_short_serial_of_the_only_namespace_is_an_identity() {
    let wwid = "nvme.1b36-4e5631-51454d55204e564d65204374726c-00000001";
    let fake = nvme(Fake::new(), "nvme0n1", "259:1", "NV1").attribute("nvme0n1/wwid", &format!("{wwid}\n"));
    let wanted = (vec!["Serial: NV1".to_owned(), format!("Wwn: {wwid}")], Vec::new());
    assert_eq!(names(&fake, "nvme0n1"), wanted);
    // udev knows nothing else, with its blanks.
    let list = r#"{"blockdevices":[{"kname":"nvme0n1","serial":"NV1                 "}]}"#;
    assert_eq!(names(&fake.answer("lsblk *", list), "nvme0n1"), wanted);
}

#[test]
fn two_namespaces_have_their_own_names_and_not_the_serial() {
    let wwid = |nsid: u32| format!("nvme.1b36-4e5654574f-51454d55204e564d65204374726c-{nsid:08}");
    let mut fake = nvme(Fake::new(), "nvme1n1", "259:0", "NVTWO").attribute("nvme1n1/wwid", &wwid(1));
    fake = nvme(fake, "nvme1n2", "259:2", "NVTWO")
        .attribute("nvme1n2/wwid", "eui.5649415054440001\n")
        .attribute("nvme1n2/eui", "56 49 41 50 54 44 00 01\n")
        .attribute("nvme1n2/uuid", "7d444840-9dc0-11d1-b245-5ffdce74fad2\n")
        .attribute("nvme1n2/nguid", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\n")
        .by_id("nvme-QEMU_NVMe_Ctrl_NVTWO", "nvme1n2")
        .by_id("nvme-eui.5649415054440001", "nvme1n2");
    let shared = |other: &str| format!("NVTWO: {other} has it too");
    assert_eq!(names(&fake, "nvme1n1"), (vec![format!("Wwn: {}", wwid(1))], vec![shared("nvme1n2")]));
    let (good, bad) = names(&fake, "nvme1n2");
    assert_eq!(
        good,
        [
            "Wwn: eui.5649415054440001",
            "NamespaceUuid: 7d444840-9dc0-11d1-b245-5ffdce74fad2",
            "NamespaceNguid: aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            "NamespaceEui: 5649415054440001",
            "ById: nvme-eui.5649415054440001",
        ]
    );
    let made = "nvme-QEMU_NVMe_Ctrl_NVTWO: it is built from what several devices have";
    assert_eq!(bad, [shared("nvme1n1"), made.to_owned()]);
}

fn path_of_a_lun(fake: Fake, name: &str, number: &str) -> Fake {
    fake.disk(name, number)
        .attribute(&format!("{name}/device/vpd_pg80"), "\0\u{0}\0\u{4}2000")
        .attribute(&format!("{name}/device/wwid"), "naa.33333330000007d0\n")
}

#[test]
fn what_two_paths_of_a_lun_share_names_neither() {
    let both = path_of_a_lun(path_of_a_lun(Fake::new(), "sda", "8:0"), "sdb", "8:16")
        .by_id("wwn-0x33333330000007d0", "sdb")
        .by_id("scsi-33333333000000fa0", "sda");
    let (good, bad) = names(&both, "sdb");
    assert_eq!(good, Vec::<String>::new());
    assert_eq!(
        bad,
        [
            "2000: sda has it too",
            "naa.33333330000007d0: sda has it too",
            "wwn-0x33333330000007d0: it is built from what several devices have"
        ]
    );
    // A name that leads to one of them names the LUN.
    let (good, bad) = names(&both, "sda");
    assert_eq!((good.len(), bad.len()), (0, 3), "{bad:?}");
    // A partition inherits the names of its disk, and what they are worth.
    let both = both.disk("sdb/sdb1", "8:17").by_id("wwn-0x33333330000007d0-part1", "sdb1");
    let (good, bad) = names(&both, "sdb1");
    assert_eq!(good, Vec::<String>::new());
    assert_eq!(bad.len(), 3, "{bad:?}");
    // A single path is the LUN.
    let one = path_of_a_lun(Fake::new(), "sda", "8:0");
    assert_eq!(names(&one, "sda").0, ["Serial: 2000", "Wwn: naa.33333330000007d0"]);
}

#[test]
fn three_disks_with_a_serial_that_only_udev_knows_share_it_too() {
    let row =
        |name: &str| format!(r#"{{"kname":"{name}","serial":"AA-77","wwn":"0x5000c500a1b2c3d{name}"}}"#);
    let rows = ["sda", "sdb", "sdc"].map(row).join(",");
    let fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16").disk("sdc", "8:32");
    let told = fake.answer("lsblk *", &format!(r#"{{"blockdevices":[{rows}]}}"#));
    let (good, bad) = names(&told, "sdc");
    assert_eq!(good, ["Wwn: 0x5000c500a1b2c3dsdc"]);
    assert_eq!(bad, ["AA-77: sda, sdb have it too"]);
}

#[test]
fn what_only_udev_knows_of_one_device_may_be_anybodys() {
    let fake = Fake::new().disk("sda", "8:0");
    let alone = Lsblk { serial: Some("AA-77".into()), ..Lsblk::default() };
    let find = |fake: &Fake| {
        fake.with(|machine, _| {
            super::find(&Inventory::read(machine), machine.tree.get("sda").unwrap(), Some(&alone))
        })
    };
    assert_eq!(find(&fake).no_identities[0].why, "lsblk cannot say whether others have it too");
    assert_eq!(find(&fake.answer("lsblk *", TOLD)).identities[0].text, "AA-77");
}

fn dm(fake: Fake, number: u32, name: &str, uuid: &str) -> Fake {
    fake.disk(&format!("dm-{number}"), &format!("252:{number}"))
        .attribute(&format!("dm-{number}/dm/name"), &format!("{name}\n"))
        .attribute(&format!("dm-{number}/dm/uuid"), &format!("{uuid}\n"))
}

#[test]
fn mapped_devices_are_called_as_their_makers_call_them() {
    let lvm = "LVM-vXB1x8EI3nR8TCIf9n4bU9eXqABLTglnsxeUyd8UDcJQltPVEnrMOYRtjdMyCe5O";
    let mut fake = dm(Fake::new(), 0, "v--g-l--v", lvm);
    fake = dm(fake, 1, "secret", "CRYPT-LUKS2-0123456789abcdef0123456789abcdef-secret");
    fake = dm(dm(fake, 2, "plain", ""), 3, "sdx", "");
    assert_eq!(
        names(&fake, "dm-0").0,
        ["Volume: v-g/l-v".to_owned(), "MapperName: v--g-l--v".to_owned(), format!("MapperUuid: {lvm}")]
    );
    assert_eq!(
        names(&fake, "dm-1").0,
        ["MapperName: secret", "MapperUuid: CRYPT-LUKS2-0123456789abcdef0123456789abcdef-secret"]
    );
    assert_eq!(names(&fake, "dm-2").0, ["MapperName: plain"]);
    let why = "sdx: the kernel may give this name to any device".to_owned();
    assert_eq!(names(&fake, "dm-3"), (Vec::new(), vec![why]));
}

fn array(fake: Fake, name: &str, number: &str, uuid: &str) -> Fake {
    fake.disk(name, number)
        .attribute(&format!("{name}/md/level"), "raid1\n")
        .attribute(&format!("{name}/md/uuid"), &format!("{uuid}\n"))
}

#[test]
fn arrays_have_a_uuid_and_a_name() {
    let uuid = "e86d0cbf-5890-89d5-95b8-8c7d998c76ef";
    let shown = "e86d0cbf:589089d5:95b88c7d:998c76ef";
    let fake = || array(Fake::new().disk("vda", "254:0"), "md0", "9:0", uuid).stack("md0", "vda");
    assert_eq!(names(&fake(), "md0").0, [format!("ArrayUuid: {shown}")]);
    // The name is that of the members' superblocks, read from one of them if udev does not run.
    let named = fake().answer("blkid vda", "TYPE=linux_raid_member\nLABEL=box:arr0\n");
    assert_eq!(names(&named, "md0").0, ["ArrayName: box:arr0".to_owned(), format!("ArrayUuid: {shown}")]);
    for label in ["box:0", "127"] {
        let unnamed = fake().answer("blkid vda", &format!("TYPE=linux_raid_member\nLABEL={label}\n"));
        assert_eq!(names(&unnamed, "md0").0.len(), 1, "{label}");
    }
    // A filesystem's label on a member without metadata is not a name of the array.
    assert_eq!(names(&fake().answer("blkid vda", "TYPE=ext4\nLABEL=home\n"), "md0").0.len(), 1);
    let identity = Identity { kind: IdentityKind::ArrayUuid, text: shown.into() };
    for word in [shown, uuid, "E86D0CBF:589089D5:95B88C7D:998C76EF"] {
        assert!(identity.is_named_by(word), "{word}");
    }
    for word in ["", "e86d0cbf", "md0", "e86d0cbf:589089d5:95b88c7d:998c76ee"] {
        assert!(!identity.is_named_by(word), "{word}");
    }
    // Two halves of one mirror, assembled apart.
    let twice = array(fake(), "md1", "9:1", uuid);
    assert_eq!(names(&twice, "md0"), (Vec::new(), vec![format!("{shown}: md1 has it too")]));
}

#[test]
fn a_partition_has_its_own_uuid_beside_its_disks_names() {
    let uuid = "4a42fe38-c994-5045-8e99-5698dcf16ec0";
    let fake = || {
        nvme(Fake::new(), "nvme0n1", "259:0", "S5GXNX0T")
            .disk("nvme0n1/nvme0n1p1", "259:1")
            .answer("lsblk *", TOLD)
    };
    let wanted = vec!["Serial: S5GXNX0T".to_owned(), format!("PartitionUuid: {uuid}")];
    let event = format!("MAJOR=259\nPARTN=1\nPARTUUID={uuid}\n");
    let by_kernel = fake().attribute("nvme0n1/nvme0n1p1/uevent", &event);
    let by_udev = fake()
        .answer("lsblk *", &format!(r#"{{"blockdevices":[{{"kname":"nvme0n1p1","partuuid":"{uuid}"}}]}}"#));
    let by_table = fake().answer("blkid nvme0n1p1", &format!("PART_ENTRY_UUID={uuid}\n"));
    for fake in [&by_kernel, &by_udev, &by_table] {
        assert_eq!(names(fake, "nvme0n1p1").0, wanted);
        assert_eq!(names(fake, "nvme0n1").0, ["Serial: S5GXNX0T"]);
    }
    // A disk that was copied with its table.
    let copied = by_kernel
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .attribute("sdb/sdb1/uevent", &event.to_uppercase());
    let (good, bad) = names(&copied, "nvme0n1p1");
    assert_eq!((good, bad), (wanted[..1].to_vec(), vec![format!("{uuid}: sdb1 has it too")]));
    let identity = Identity { kind: IdentityKind::PartitionUuid, text: uuid.into() };
    let words = [uuid.to_owned(), uuid.to_uppercase(), format!("PARTUUID={uuid}")];
    assert!(words.iter().all(|word| identity.is_named_by(word)));
    assert!(!identity.is_named_by("PARTUUID=") && !identity.is_named_by(&uuid[1..]));
}

#[test]
fn a_bcache_is_named_by_what_is_behind_it() {
    let uuid = "5f0d7a1e-0b3c-4d57-9f6a-1c2d3e4f5a6b";
    let file = "bcache/backing_dev_uuid";
    let fake = Fake::new().disk("sda", "8:0").disk("bcache0", "252:0").stack("bcache0", "sda");
    let fake = fake.attribute(&format!("bcache0/{file}"), &format!("{uuid}\n"));
    // The same directory, seen at the device behind it.
    let fake = fake.attribute(&format!("sda/{file}"), &format!("{uuid}\n"));
    assert_eq!(names(&fake, "bcache0").0, [format!("BcacheUuid: {uuid}")]);
    assert_eq!(names(&fake, "sda"), (Vec::new(), Vec::new()));
    // A copy of that device, registered as well.
    let copied = fake.disk("bcache1", "252:16").attribute(&format!("bcache1/{file}"), &uuid.to_uppercase());
    assert_eq!(names(&copied, "bcache0"), (Vec::new(), vec![format!("{uuid}: bcache1 has it too")]));
    let identity = Identity { kind: IdentityKind::BcacheUuid, text: uuid.into() };
    assert!(identity.is_named_by(&uuid.to_uppercase()) && !identity.is_named_by(&uuid[1..]));
}

#[test]
fn an_image_of_rbd_is_named_by_its_pool_unless_it_is_mapped_twice() {
    let mapped = |fake: Fake, id: u32, texts: [&str; 4]| {
        let fake = fake.disk(&format!("rbd{id}"), &format!("251:{id}"));
        let place = format!("sys/bus/rbd/devices/{id}");
        for (file, text) in ["pool", "pool_ns", "name", "current_snap"].into_iter().zip(texts) {
            fake.file(&format!("{place}/{file}"), &format!("{text}\n"));
        }
        fake.file(&format!("{place}/major"), "251\n");
        fake.file(&format!("{place}/minor"), &format!("{id}\n"));
        fake
    };
    let fake = mapped(Fake::new(), 0, ["ssd", "", "vm-1", "-"]);
    let fake = mapped(mapped(fake, 1, ["ssd", "team", "vm-1", "-"]), 2, ["ssd", "", "vm-1", "old"]);
    for (name, text) in [("rbd0", "ssd/vm-1"), ("rbd1", "ssd/team/vm-1"), ("rbd2", "ssd/vm-1@old")] {
        assert_eq!(names(&fake, name), (vec![format!("RbdImage: {text}")], Vec::new()));
    }
    let fake = mapped(fake, 3, ["ssd", "", "vm-1", "-"]);
    for (name, other) in [("rbd0", "rbd3"), ("rbd3", "rbd0")] {
        assert_eq!(names(&fake, name), (Vec::new(), vec![format!("ssd/vm-1: {other} has it too")]));
    }
    // What sysfs says is of a device with another number.
    fake.file("sys/bus/rbd/devices/1/major", "250\n");
    assert_eq!(names(&fake, "rbd1"), (Vec::new(), Vec::new()));
    let identity = Identity { kind: IdentityKind::RbdImage, text: "ssd/vm-1".into() };
    assert!(identity.is_named_by("ssd/vm-1") && identity.is_named_by("/dev/rbd/ssd/vm-1"));
    assert!(!identity.is_named_by("vm-1") && !identity.is_named_by("ssd/vm-1@old"));
}

#[test]
fn volumes_of_drbd_and_zfs_are_named_by_their_links() {
    let fake = Fake::new()
        .disk("drbd0", "147:0")
        .disk("drbd1", "147:1")
        .disk("zd0", "230:0")
        .disk("zd0/zd0p1", "230:1")
        .disk("sda", "8:0");
    let link = |name: &str, target: &str| {
        let place = fake.path("dev").join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, place).unwrap();
    };
    link("drbd/by-res/r0/0", "../../../drbd0");
    link("drbd/by-res/old", "../../drbd1");
    link("zvol/tank/vm/disk", "../../../zd0");
    link("zvol/tank/vm/disk-part1", "../../../zd0p1");
    // Who links something else there names nothing.
    link("zvol/tank/odd", "../../sda");
    for (name, wanted) in [
        ("drbd0", "DrbdVolume: r0/0"),
        ("drbd1", "DrbdVolume: old"),
        ("zd0", "Zvol: tank/vm/disk"),
        ("zd0p1", "Zvol: tank/vm/disk-part1"),
    ] {
        assert_eq!(names(&fake, name), (vec![wanted.to_owned()], Vec::new()));
    }
    assert_eq!(names(&fake, "sda"), (Vec::new(), Vec::new()));
    let zvol = Identity { kind: IdentityKind::Zvol, text: "tank/vm/disk".into() };
    assert!(zvol.is_named_by("tank/vm/disk") && zvol.is_named_by("/dev/zvol/tank/vm/disk"));
    assert!(!zvol.is_named_by("disk") && !zvol.is_named_by("/dev/tank/vm/disk"));
    let drbd = Identity { kind: IdentityKind::DrbdVolume, text: "r0/0".into() };
    assert!(drbd.is_named_by("/dev/drbd/by-res/r0/0") && !drbd.is_named_by("r0"));
}

#[test]
fn only_the_whole_word_names_a_device() {
    let serial = Identity { kind: IdentityKind::Serial, text: "S3Z9".into() };
    assert!(serial.is_named_by("S3Z9"));
    for word in ["", "S3Z", "S3Z99", "s3z9", " S3Z9", "/dev/disk/by-id/S3Z9"] {
        assert!(!serial.is_named_by(word), "{word}");
    }
    let link = Identity { kind: IdentityKind::ById, text: "ata-WDC_1".into() };
    assert!(link.is_named_by("ata-WDC_1") && link.is_named_by("/dev/disk/by-id/ata-WDC_1"));
    for word in ["/tmp/ata-WDC_1", "/dev/disk/by-idata-WDC_1", "/dev/disk/by-id//ata-WDC_1"] {
        assert!(!link.is_named_by(word), "{word}");
    }
    let volume = Identity { kind: IdentityKind::Volume, text: "vg/lv".into() };
    assert!(volume.is_named_by("vg/lv") && volume.is_named_by("/dev/vg/lv"));
    assert!(!volume.is_named_by("lv") && !volume.is_named_by("vg-lv") && !volume.is_named_by("/vg/lv"));
    let mapped = Identity { kind: IdentityKind::MapperName, text: "secret".into() };
    assert!(mapped.is_named_by("secret") && mapped.is_named_by("/dev/mapper/secret"));
    assert!(!mapped.is_named_by("/dev/secret"));
}

#[test]
fn serials_that_everybody_has_are_none() {
    for word in [
        "",
        "0",
        "AB",
        "00000000",
        "0000-0000",
        ".....",
        "0123456789ABCDEF",
        "123456789012",
        "1234567890",
        "naa.0000000000000000",
        "eui.00000000000000000000000000000000",
        "0xffffffffffffffff",
        "00000000-0000-0000-0000-000000000000",
    ] {
        assert!(!is_distinctive(word), "{word}");
    }
    for word in ["NV1", "AB1", "0001", "WD-WCANK1234567", "naa.33333330000007d0", "2000"] {
        assert!(is_distinctive(word), "{word}");
    }
    assert!(has_serial_inside("nvme.1b36-4e5631-51454d55-00000001") && has_serial_inside("naa.1"));
    assert!(!has_serial_inside("nvme.1b36-30303030-51454d55-00000001"));
}

#[test]
fn names_that_the_kernel_gives_are_none() {
    Fake::new().disk("cciss!c0d0", "104:0").disk("odd", "240:0").with(|machine, _| {
        for word in [
            "sda", "sdaa1", "/dev/vdb", "nvme0n1", "nvme0n1p2", "dm-3", "md127", "loop7", "cciss/c0d0", "odd",
        ] {
            assert!(is_kernel_name(machine, word), "{word}");
        }
        for word in
            ["", "sd", "sdcard", "data", "md-arr", "NV1", "vg/lv", "nvme-eui.1", "loopy", "sdabc", "md0a"]
        {
            assert!(!is_kernel_name(machine, word), "{word}");
        }
    });
}

/// To the kernel the boot areas of an eMMC are disks of their own, with the serial number of the whole device.
#[test]
fn the_boot_areas_of_an_emmc_do_not_take_its_name() {
    let fake = crate::tests::Fake::new().disk("mmcblk0", "179:0");
    let fake = fake.disk("mmcblk0boot0", "179:8").disk("mmcblk0boot1", "179:16").disk("mmcblk1", "179:32");
    fake.file("sys/bus/mmc0/serial", "0x1a2b3c4d\n");
    for name in ["mmcblk0", "mmcblk0boot0", "mmcblk0boot1"] {
        let link = fake.path(&format!("sys/block/{name}/device"));
        std::os::unix::fs::symlink("../../bus/mmc0", link).unwrap();
    }
    let serial_of = |fake: &crate::tests::Fake, name: &str| {
        fake.with(|machine, _| {
            let names = super::find(&Inventory::read(machine), machine.tree.get(name).unwrap(), None);
            names.identities.iter().any(|identity| identity.text == "0x1a2b3c4d")
        })
    };
    assert!(serial_of(&fake, "mmcblk0"));
    assert!(!serial_of(&fake, "mmcblk0boot0"), "the name of the whole is none of a boot area");
    fake.with(|machine, _| assert!(!machine.luns.are_paths("mmcblk0boot0", "mmcblk0boot1")));
    let twin = fake.attribute("mmcblk1/device/serial", "0x1a2b3c4d\n");
    assert!(!serial_of(&twin, "mmcblk0"), "two cards of one number");
}
