//! Devices as plain files of a fake `/dev`, with the first blocks that programs write.

use super::*;
use crate::tests::Fake;

/// A device whose first blocks hold these bytes at these offsets.
fn write(fake: &Fake, name: &str, parts: &[(usize, &[u8])]) {
    let mut bytes = vec![0; usize::try_from(BEGINNING_BYTES).unwrap()];
    for (at, part) in parts {
        bytes[*at..at + part.len()].copy_from_slice(part);
    }
    std::fs::write(fake.path(&format!("dev/{name}")), bytes).unwrap();
}

fn fake(kinds: &str) -> Fake {
    let rows: Vec<String> = kinds
        .split_whitespace()
        .map(|word| {
            let (name, kind) = word.split_once('=').unwrap();
            format!(r#"{{"kname":"{name}","fstype":"{kind}"}}"#)
        })
        .collect();
    let list = format!(r#"{{"blockdevices":[{}]}}"#, rows.join(","));
    Fake::new()
        .disk("sda", "8:0")
        .disk("sdb", "8:16")
        .disk("sdb/sdb1", "8:17")
        .disk("sdc", "8:32")
        .answer("lsblk *", &list)
}

fn uses(fake: &Fake, name: &str, labels: &[(&str, &str)]) -> Vec<String> {
    fake.with(|machine, usage| {
        let inventory = Inventory::read(machine);
        let node = |name: &str| machine.tree.get(name).unwrap();
        let labels: Vec<(&Node, Signature)> =
            labels.iter().map(|(of, kind)| (node(of), Signature::new(kind, None, None))).collect();
        find(&inventory, node(name), &labels, usage);
        usage.uses.iter().map(|used| format!("{:?}: {}", used.kind, used.text)).collect()
    })
}

const NONE: [&str; 0] = [];

#[test]
fn the_second_device_of_an_f2fs_is_named_by_the_first() {
    let fake = fake("sda=f2fs");
    let list = |second: &str| {
        let magic = 0xf2f5_2010_u32.to_le_bytes();
        let parts: [(usize, &[u8]); 3] =
            [(1024, &magic), (1024 + 2201, b"/dev/sda"), (1024 + 2201 + 68, second.as_bytes())];
        write(&fake, "sda", &parts);
    };
    list("/dev/sdc");
    assert_eq!(uses(&fake, "sdc", &[]), ["PartOf: f2fs on sda"]);
    assert_eq!(uses(&fake, "sdb", &[]), NONE);
    assert_eq!(uses(&fake, "sda", &[("sda", "f2fs")]), ["Member: f2fs, which lies on /dev/sdc too"]);
    assert_eq!(uses(&fake, "sda", &[]), NONE, "its label was wiped");
    list("/dev/sdb1");
    assert_eq!(uses(&fake, "sdb", &[("sdb", "dos")]), ["PartOf: f2fs on sda"], "a partition of it");
    list("");
    assert_eq!(uses(&fake, "sdc", &[]), NONE, "it lies on one device alone");
    list("/dev/sdc");
    // Without udev it is unknown what lies where; with it, only likely devices are read.
    let fake = fake.answer("lsblk *", r#"{"blockdevices":[{"kname":"sda"}]}"#);
    assert_eq!(uses(&fake, "sdc", &[]), ["PartOf: f2fs on sda"]);
    let fake =
        fake.answer("lsblk *", r#"{"blockdevices":[{"kname":"sda"},{"kname":"sdb","fstype":"ext4"}]}"#);
    assert_eq!(uses(&fake, "sdc", &[]), NONE);
}

#[test]
fn a_blank_device_of_the_size_of_a_realtime_device_is_kept() {
    let fake = fake("sda=xfs");
    let with_blocks = |blocks: u64| {
        let blocks = blocks.to_be_bytes();
        let parts: [(usize, &[u8]); 4] =
            [(0, b"XFSB\0\0\x10\0"), (16, &blocks), (80, &16_u32.to_be_bytes()), (48, &[1])];
        write(&fake, "sda", &parts);
    };
    // 1 GiB of 4 KiB; the last extent may be incomplete.
    for (blocks, is_kept) in
        [(262_144, true), (262_129, true), (262_128, false), (262_145, false), (0, false)]
    {
        with_blocks(blocks);
        assert_eq!(uses(&fake, "sdc", &[]).len(), usize::from(is_kept), "{blocks}");
    }
    with_blocks(262_144);
    assert_eq!(uses(&fake, "sdc", &[]), ["PartOf: a realtime device, of this size, of the XFS on sda"]);
    assert_eq!(uses(&fake, "sda", &[("sda", "xfs")]), ["Member: xfs, with files on a realtime device"]);
    assert_eq!(uses(&fake, "sdc", &[("sdc", "ext4")]), NONE, "it holds something else");
    let mounted = fake.mount("8:0", "/data", "xfs", "/dev/sda");
    assert_eq!(uses(&mounted, "sdc", &[]), NONE, "the kernel holds the right one");
}

#[test]
fn a_btrfs_says_how_many_devices_it_has() {
    let fake = fake("");
    let with = |devices: u8, flags: u64| {
        let at = 64 << 10;
        let parts: [(usize, &[u8]); 3] =
            [(at + 0x40, b"_BHRfS_M"), (at + 0x88, &[devices]), (at + 0x38, &flags.to_le_bytes())];
        write(&fake, "sdc", &parts);
        uses(&fake, "sdc", &[("sdc", "btrfs")])
    };
    assert_eq!(with(1, 1), NONE);
    assert_eq!(with(3, 1), ["Member: btrfs, which lies on 3 devices"]);
    assert_eq!(with(1, 1 << 32), ["Member: btrfs, a seed on which others may be built"]);
    assert_eq!(uses(&fake, "sdc", &[]), NONE, "the label was wiped");
}

#[test]
fn metadata_of_device_mapper_is_known_by_its_first_block() {
    let fake = fake("");
    for (at, number, what) in [
        (32, 27_022_010, "metadata of a thin pool"),
        (32, 1_623_043, "metadata of a cache of device mapper"),
        (32, 2_126_579_579, "metadata of dm-era"),
        (32, 0x8af2_7f64, "metadata of dm-clone"),
        (0, 0x1_2348_9321, "a cache of dm-writecache"),
    ] {
        let number: u64 = number;
        write(&fake, "sdb1", &[(at, &number.to_le_bytes())]);
        assert_eq!(uses(&fake, "sdb", &[]), [format!("Metadata: {what} on sdb1")]);
    }
    write(&fake, "sdb1", &[]);
    assert_eq!(uses(&fake, "sdb", &[]), NONE);
}

#[test]
fn the_first_block_of_the_disk_around_a_partition_is_not_said_to_be_removable() {
    let fake = fake("");
    let number: u64 = 27_022_010;
    write(&fake, "sdb", &[(32, &number.to_le_bytes())]);
    let removable = |name: &str| {
        fake.with(|machine, usage| {
            find(&Inventory::read(machine), machine.tree.get(name).unwrap(), &[], usage);
            usage.uses.iter().map(|used| used.labelled.is_some()).collect::<Vec<bool>>()
        })
    };
    assert_eq!((removable("sdb"), removable("sdb1")), (vec![true], vec![false]));
}

/// The partition never answers; all others do.
fn never(place: &Path) -> Beginning {
    if place.ends_with("sdb1") {
        loop {
            std::thread::park();
        }
    }
    read_beginning(place)
}

#[test]
fn a_device_that_does_not_answer_is_a_doubt_of_itself_and_no_word_of_others() {
    let fake = fake("sdb1=f2fs");
    write(&fake, "sdb", &[(60, &0x8374_026b_u32.to_be_bytes())]);
    write(&fake, "sdb1", &[]);
    write(&fake, "sdc", &[]);
    let reading = Reading { read: never, own: Duration::from_secs(10), others: Duration::from_millis(50) };
    let look = |name: &str| {
        fake.with(|machine, usage| {
            let inventory = Inventory::read(machine);
            find_by(&reading, &inventory, machine.tree.get(name).unwrap(), &[], usage);
            (usage.uses.len(), usage.doubts.clone())
        })
    };
    let silent = "sdb1: its first blocks gave no answer within 10 s";
    assert_eq!(look("sdb1"), (1, vec![silent.to_owned()]), "what its disk says counts all the same");
    assert_eq!(look("sdb"), (1, vec![silent.to_owned()]));
    assert_eq!(look("sdc"), (0, Vec::new()), "a device that hangs elsewhere keeps nobody from writing");
    // One that cannot be read at all is reported by the programs that look for labels.
    std::fs::remove_file(fake.path("dev/sdc")).unwrap();
    assert_eq!(look("sdc"), (0, Vec::new()));
    assert!(tools::TIMEOUT >= Duration::from_secs(20), "a busy machine needs more than 5 s");
}

/// The first 4 KiB of the partition are all that can be read; of the others, everything.
fn damaged(place: &Path) -> Beginning {
    let mut beginning = read_beginning(place);
    if place.ends_with("sdb1") {
        beginning.bytes.truncate(4096);
        beginning.failed = Some(io::Error::from_raw_os_error(libc::EIO));
    }
    beginning
}

#[test]
fn what_cannot_be_read_is_a_doubt_and_what_was_read_before_counts() {
    let fake = fake("");
    write(&fake, "sdb", &[]);
    write(&fake, "sdc", &[]);
    let reading = Reading { read: damaged, own: Duration::from_secs(20), others: Duration::from_secs(20) };
    let look = |name: &str| {
        fake.with(|machine, usage| {
            let inventory = Inventory::read(machine);
            find_by(&reading, &inventory, machine.tree.get(name).unwrap(), &[], usage);
            (usage.uses.len(), usage.doubts.clone())
        })
    };
    let words = "sdb1: its first blocks cannot be read (Input/output error (os error 5))";
    for (parts, uses) in [([].as_slice(), 0), (&[(60, 0x8374_026b_u32.to_be_bytes().as_slice())], 1)] {
        write(&fake, "sdb1", parts);
        assert_eq!(look("sdb1"), (uses, vec![words.to_owned()]));
        assert_eq!(look("sdb"), (uses, vec![words.to_owned()]));
    }
    assert_eq!(look("sdc"), (0, Vec::new()), "it is another device");
}

#[test]
fn metadata_of_drbd_on_a_device_of_their_own_are_known_by_their_first_block() {
    let fake = fake("");
    // What drbdmeta 9.22 writes (v08), and what drbd 8.4 makes of it when it attaches (2026-11, Linux 6.1).
    for number in [0x8374_026b_u32, 0x8374_026c, 0x8374_026d] {
        write(&fake, "sdb1", &[(60, &number.to_be_bytes()), (64, &[0, 3, 0, 0, 0, 0, 0, 8])]);
        assert_eq!(uses(&fake, "sdb", &[]), ["Metadata: metadata of DRBD on sdb1"]);
    }
    write(&fake, "sdb1", &[(60, &0x8374_026a_u32.to_be_bytes())]);
    assert_eq!(uses(&fake, "sdb", &[]), NONE);
}
