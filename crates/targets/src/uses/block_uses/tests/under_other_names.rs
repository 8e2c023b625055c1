//! What the kernel has open by a name that it has lost, or serves to this machine itself.

use crate::tests::Fake;
use crate::uses::block_uses::find;

const NONE: [&str; 0] = [];

/// The disk is served by this machine's own target, and what it keeps its data on is mounted.
#[test]
fn what_a_disk_keeps_its_data_on_is_followed_through_the_own_target() {
    let fake = Fake::new()
        .disk("vda", "254:0")
        .disk("nvme0n1", "259:0")
        .attribute("nvme0n1/device/subsysnqn", "nqn.test\n")
        .attribute("nvme0n1/nsid", "1\n");
    let namespace = "sys/kernel/config/nvmet/subsystems/nqn.test/namespaces/1";
    fake.file(&format!("{namespace}/device_path"), "/dev/vda\n");
    fake.file(&format!("{namespace}/enable"), "1\n");
    assert_eq!(fake.uses("nvme0n1"), NONE);
    assert_eq!(fake.uses("vda"), ["Exported: namespace 1 of the NVMe subsystem nqn.test"]);
    let fake = fake.mount("254:0", "/srv", "ext4", "/dev/vda");
    assert_eq!(
        fake.uses("nvme0n1"),
        ["Mounted: /srv on vda, through /dev/vda, on which nvme0n1 keeps its data"]
    );
}

fn doubts(fake: &Fake, name: &str) -> Vec<String> {
    fake.with(|machine, _| {
        let usage = find(machine, machine.tree.get(name).unwrap());
        assert_eq!(usage.uses, [], "{name}");
        usage.doubts
    })
}

/// The name of what it keeps its data on leads to another volume by now.
#[test]
fn what_a_disk_keeps_its_data_on_may_have_another_name() {
    let fake = Fake::new()
        .disk("dm-0", "253:0")
        .disk("dm-1", "253:1")
        .attribute("dm-0/dm/name", "vg-data\n")
        .answer("table dm-0", "")
        .answer("table dm-1", "")
        .answer("open dm-0", "1")
        .disk("nvme0n1", "259:0")
        .attribute("nvme0n1/device/subsysnqn", "nqn.test\n")
        .attribute("nvme0n1/nsid", "1\n");
    let namespace = "sys/kernel/config/nvmet/subsystems/nqn.test/namespaces/1";
    fake.file(&format!("{namespace}/device_path"), "/dev/mapper/vg-data\n");
    fake.file(&format!("{namespace}/enable"), "1\n");
    assert_eq!(doubts(&fake, "nvme0n1"), NONE, "the service itself has it open");
    let fake = fake.answer("open dm-0", "2");
    assert_eq!(
        doubts(&fake, "nvme0n1"),
        ["device mapper has dm-0 (vg-data) open once more than can be seen"],
        "and somebody else"
    );
    let fake = fake.answer("open dm-0", "0").answer("open dm-1", "1");
    let said =
        "nvme0n1 keeps its data on what /dev/mapper/vg-data led to, and that may be something else now";
    assert_eq!(doubts(&fake, "nvme0n1"), [said]);
}

/// Something of the kernel has a volume open by a name that it no longer has.
#[test]
fn a_device_that_is_open_more_often_than_can_be_seen_is_not_proven_to_be_free() {
    let fake = Fake::new()
        .disk("sda", "8:0")
        .disk("dm-0", "253:0")
        .disk("dm-1", "253:1")
        .stack("dm-0", "sda")
        .stack("dm-1", "dm-0")
        .answer("open dm-0", "1")
        .answer("open dm-1", "0");
    assert_eq!(doubts(&fake, "dm-1"), NONE);
    let fake = fake.answer("open dm-0", "3");
    assert_eq!(
        doubts(&fake, "dm-1"),
        ["device mapper has dm-0, which it is made of, open 2 times more than can be seen"]
    );
    let fake = fake.answer("open dm-0", "1").answer("open dm-1", "1");
    assert_eq!(doubts(&fake, "dm-1"), ["device mapper has dm-1 open once more than can be seen"]);
}
