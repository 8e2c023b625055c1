//! What a campaign on block stacks found, once it is mended (xtask/records/field-trials.md): disks that are memory, and paths that failed.

use rdsk_testkit::guest::{Call, Disk, Scenario, Tier};
use rdsk_testkit::{Need, requires};
use std::time::Duration;

use crate::guest;

const MIB: u64 = 1 << 20;

/// Files on a filesystem mounted with dax, and the disk itself, whose counters are on; the verdicts are those of stream's reads.
const PMEM: &str = "echo 1 > /sys/block/pmem0/queue/iostats
ext4 /dev/pmem0 -b 4096; at=$(mounted /dev/pmem0 ext4 dax=always)
call dax rdsk stream $at --rw read --size 16M --bs 64k --budget 20s --quiet --json - --json-compact
umount $at; dd if=/dev/urandom of=/dev/pmem0 bs=1M count=64 oflag=direct status=none || :
call whole rdsk paths /dev/pmem0 --rw read --bs 64k --bytes 16M --budget 20s --quiet --json - --json-compact";

/// Two paths to two disks, one of which is made to fail.
const PATHS: &str = "dd if=/dev/urandom of=$A bs=1M count=16 oflag=direct status=none
table=\"0 131072 multipath 0 0 2 1 round-robin 0 1 1 $A 10 round-robin 0 1 1 $B 10\"
echo \"$table\" | dmsetup create mp
call whole rdsk run /dev/mapper/mp --only headline --rw read --budget 4s --quiet --json - --json-compact
dmsetup message mp 0 fail_path $B
call failed rdsk run /dev/mapper/mp --only headline --rw read --budget 4s --quiet --json - --json-compact
dmsetup remove mp";

/// A disk is deleted while it is copied. The last one: scenarios after it would lack the disk.
const COPY: &str = "name=${S#/dev/}; dd if=/dev/urandom of=$S bs=1M count=64 oflag=direct status=none || :
before=$(awk '{print $3}' /sys/block/$name/stat)
(wait_for 60 awk -v least=$((before + 2048)) '$3 < least { exit 1 }' /sys/block/$name/stat; echo 1 > /sys/block/$name/device/delete) &
fact disk $name; call rdsk rdsk dd if=$S of=/dev/null bs=512 iflag=direct";

/// The partition of a namespace that the kernel reaches by paths: it counts nothing there, and on 6.1 nothing of the whole device either.
const NAMESPACE: &str = "dd if=/dev/urandom of=/dev/nvme0n1 bs=1M count=64 oflag=direct status=none || :
echo 2048,65536 | sfdisk -q /dev/nvme0n1; wait_for 20 test -b /dev/nvme0n1p1
fact paths $(cd /sys/class/block; echo nvme0c*n1)
call read rdsk run /dev/nvme0n1p1 --only headline --rw read --budget 4s --quiet --json - --json-compact
ext4 /dev/nvme0n1p1; at=$(mounted /dev/nvme0n1p1 ext4)
call write rdsk dd if=/dev/urandom of=$at/f bs=1M count=8 conv=fsync; umount $at";

#[test]
fn what_stacks_taught() {
    if !Tier::Extended.is_wanted() || !requires(&[Need::Root, Need::Guest]) {
        return;
    }
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(64 * MIB).unwrap();
    let drive = format!("file={},if=none,id=shared,format=raw,cache=unsafe", image.path().display());
    let mut guest = guest()
        .modules(&[
            "ext4", "dm_mod", "dm_multipath", "dm_round_robin", "nd_e820", "nd_pmem", "nvme", "sd_mod",
        ])
        .qemu(&["-drive", &drive, "-device", "nvme-subsys,id=subsystem,nqn=subsystem"])
        .qemu(&["-device", "nvme,id=controller,serial=NV-PATHS,subsys=subsystem"])
        .qemu(&["-device", "nvme-ns,drive=shared,bus=controller,nsid=1,shared=on"])
        .programs(&["mkfs.ext4", "dmsetup"])
        .memory(1024)
        .append("memmap=128M!768M")
        .disk(Disk::virtio("A", 64 * MIB))
        .disk(Disk::virtio("B", 64 * MIB))
        .disk(Disk::scsi("S", 64 * MIB))
        .boot();
    let limit = Duration::from_secs(600);
    let pmem = guest.run(&Scenario::new("pmem", PMEM).limit(limit)).expect_done();
    let dax = verdicts(&pmem.call("dax"));
    assert!(!dax.is_empty() && dax.iter().all(|(_, code)| code == "unverified"), "{dax:?}");
    let whole = verdicts(&pmem.call("whole"));
    let is_believed = |(id, code): &&(String, String)| id.ends_with("/buffered") && code == "page-cache";
    assert_eq!(whole.iter().find(is_believed), None, "{whole:?}");
    let paths = guest.run(&Scenario::new("failed path", PATHS).limit(limit)).expect_done();
    let unsettled = |call: &str| {
        let record = paths.call(call).json();
        let findings = record["findings"].as_array().into_iter().flatten();
        findings
            .filter(|finding| finding["code"] == "array-unsettled")
            .map(ToString::to_string)
            .collect::<String>()
    };
    assert_eq!(unsettled("whole"), "");
    assert!(unsettled("failed").contains("a path of dm-0 has failed"), "{}", unsettled("failed"));
    let namespace = guest.run(&Scenario::new("namespace", NAMESPACE).limit(limit)).expect_done();
    assert_eq!(namespace.fact("paths"), "nvme0c0n1", "a multipath device");
    let read = verdicts(&namespace.call("read"));
    let is_counted =
        |(_, code): &(String, String)| !["unverified", "page-cache", "disturbed"].contains(&code.as_str());
    assert!(!read.is_empty() && read.iter().all(is_counted), "{read:?}");
    let written = namespace.call("write").said();
    let is_counted = written.contains("writes of 1 MiB became") && !written.contains("unverified");
    assert!(is_counted && !written.contains("page-cache"), "{written}");
    let copied = guest.run(&Scenario::new("copy", COPY).limit(limit)).expect_done();
    let call = copied.call("rdsk");
    let said = call.said().split_whitespace().collect::<Vec<_>>().join(" ");
    // dd takes the end for the end of the content and ends with 0; while the disk is removed, a read may also fail.
    let is_told = said.contains(&format!("Not all was copied: {} is gone", copied.fact("disk")));
    assert!(is_told || (call.code == 1 && said.contains("error reading")), "exit {}: {said}", call.code);
}

/// Id and code of the verdict of each cell that ran.
fn verdicts(call: &Call) -> Vec<(String, String)> {
    assert_eq!(call.code, 0, "{}", call.said());
    let record = call.json();
    let cells = record["cells"].as_array().cloned().unwrap_or_default();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let ran = cells.iter().filter(|cell| cell["result"]["ops"].as_u64().is_some_and(|ops| ops > 0));
    ran.map(|cell| (word(&cell["id"]), word(&cell["verdict"]["code"]))).collect()
}
