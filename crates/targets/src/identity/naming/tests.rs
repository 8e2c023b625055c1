//! Words that name devices, on fake machines; the device that is found is given by its kernel name.

use super::*;
use crate::tests::Fake;

fn fake() -> Fake {
    let lvm = format!("LVM-{}\n", "a".repeat(64));
    Fake::new()
        .disk("sda", "8:0")
        .attribute("sda/device/wwid", "naa.5000c500a1b2c3d4\n")
        .attribute("sda/device/serial", "DISK-A\n")
        .disk("sda/sda1", "8:1")
        .disk("sdb", "8:16")
        .attribute("sdb/device/serial", "DISK-B\n")
        .disk("sdc", "8:32")
        .attribute("sdc/device/serial", "DISK-B\n")
        .by_id("ata-MODEL_DISK-A", "sda")
        .disk("dm-0", "252:0")
        .attribute("dm-0/dm/name", "vg-my--lv\n")
        .attribute("dm-0/dm/uuid", &lvm)
        .disk("dm-1", "252:1")
        .attribute("dm-1/dm/name", "mpatha\n")
        .attribute("dm-1/dm/uuid", "mpath-3600\n")
        .stack("dm-1", "sdb")
        .stack("dm-1", "sdc")
        .disk("md0", "9:0")
        .attribute("md0/md/uuid", "e86d0cbf-5890-89d5-95b8-8c7d998c76ef\n")
        .answer(
            "lsblk *",
            r#"{"blockdevices":[
                {"kname":"sda1","fstype":"ext4","uuid":"u-1","label":"my home","partuuid":"p-1","partlabel":"root"},
                {"kname":"sdb","fstype":"xfs","uuid":"u-2"},{"kname":"sdc","fstype":"xfs","uuid":"u-2"},
                {"kname":"dm-1","fstype":"xfs","uuid":"u-2"},
                {"kname":"dm-0","fstype":"ext4","uuid":"u-3","label":"twin"},
                {"kname":"md0","fstype":"ext4","uuid":"u-4","label":"twin"},
                {"kname":"sda","fstype":"linux_raid_member","uuid":"u-4"}]}"#,
        )
}

/// The kernel names that a word resolves to, `-` for none, or the code of an error.
fn named(word: &str) -> String {
    named_on(&fake(), word)
}

fn named_on(fake: &Fake, word: &str) -> String {
    match resolve(word, &fake.roots()) {
        Ok(None) => "-".into(),
        Ok(Some(path)) => path.display().to_string(),
        // The nodes of a fake machine are not devices; which one was meant is in the message.
        Err(TargetError::NoNode { path }) => path.trim_start_matches("/dev/").to_owned(),
        Err(TargetError::Ambiguous { candidates, .. }) => candidates.join(" "),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn identities_name_devices() {
    for (word, wanted) in [
        ("DISK-A", "sda"),
        ("naa.5000c500a1b2c3d4", "sda"),
        ("ata-MODEL_DISK-A", "sda"),
        ("/dev/disk/by-id/ata-MODEL_DISK-A", "sda"),
        ("ID=ata-MODEL_DISK-A", "sda"),
        ("vg/my-lv", "dm-0"),
        ("vg-my--lv", "dm-0"),
        ("/dev/vg/my-lv", "dm-0"),
        ("/dev/mapper/mpatha", "dm-1"),
        ("mpath-3600", "dm-1"),
        ("e86d0cbf:589089d5:95b88c7d:998c76ef", "md0"),
    ] {
        assert_eq!(named(word), wanted, "{word}");
    }
}

#[test]
fn tags_name_devices_as_for_mount() {
    for (word, wanted) in [
        ("UUID=u-1", "sda1"),
        ("UUID=\"U-1\"", "sda1"),
        ("/dev/disk/by-uuid/u-1", "sda1"),
        ("LABEL=my home", "sda1"),
        ("PARTUUID=p-1", "sda1"),
        ("PARTLABEL=root", "sda1"),
        // The map over two paths, not one of them; the array, not its member.
        ("UUID=u-2", "dm-1"),
        ("UUID=u-4", "md0"),
        ("LABEL=twin", "/dev/dm-0 /dev/md0"),
        ("LABEL=none", "-"),
        ("UUID=", "-"),
    ] {
        assert_eq!(named(word), wanted, "{word}");
    }
    let without_udev = Fake::new()
        .disk("sda", "8:0")
        .disk("sda/sda1", "8:1")
        .answer("blkid sda1", "DEVNAME=/dev/sda1\nUUID=u-9\nTYPE=ext4\nPART_ENTRY_UUID=p-9\n");
    assert_eq!(named_on(&without_udev, "UUID=u-9"), "sda1");
    assert_eq!(named_on(&without_udev, "PARTUUID=P-9"), "sda1");
    assert_eq!(named_on(&without_udev, "p-9"), "sda1");
}

#[test]
fn nothing_is_guessed() {
    // Two disks have it, and neither is chosen.
    assert_eq!(named("DISK-B"), "/dev/sdb /dev/sdc");
    // Kernel names need their path.
    for (word, wanted) in [("sda", "not-found"), ("dm-0", "not-found"), ("sdz", "-"), ("/dev/sda", "-")] {
        assert_eq!(named(word), wanted, "{word}");
    }
    for word in
        ["", ".", "..", "./DISK-A", "../DISK-A", "/DISK-A", "/tmp/vg/my-lv", "disk-a", "DISK", "my-lv"]
    {
        assert_eq!(named(word), "-", "{word}");
    }
    let error = resolve("DISK-B", &fake().roots()).unwrap_err();
    assert_eq!(error.to_string(), "DISK-B is the name of several devices: /dev/sdb, /dev/sdc");
    assert!(error.hint().unwrap().contains("path"));
    let error = resolve("sda", &fake().roots()).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("name it by its path: /dev/sda"));
}
