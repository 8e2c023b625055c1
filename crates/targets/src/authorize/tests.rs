//! Tables of decisions: every use refuses whatever the flags, and only the right word opens an unused device.

use super::*;
use crate::device_hold::DeviceHold;
use crate::identity::{Identity, IdentityKind};
use crate::labels::signature::Signature;
use crate::uses::{Labelled, Opener};
use rdsk_model::{Device, Problem, ProblemKind, Target, TargetKind};
use rdsk_sys::device_number::DeviceNumber;
use std::sync::Arc;

fn target(path: &str, kind: TargetKind, device: Option<&str>) -> Target {
    Target {
        index: 0,
        name: path.into(),
        kind,
        path: Some(path.into()),
        size_bytes: 1 << 30,
        filesystem: None,
        device: device.map(|name| Device { name: name.into(), ..Device::default() }),
        stack: Vec::new(),
        made_by_rdsk: false,
        other_devices: Vec::new(),
        laid_out: None,
        direct_io: None,
        direct_align_bytes: None,
        nowait: None,
        dontcache: None,
    }
}

fn disk() -> Examined {
    Examined {
        growths: Vec::new(),
        write_bytes: None,
        target: target("/dev/sdb", TargetKind::Block, Some("sdb")),
        path: "/dev/sdb".into(),
        place: Place::Block { major_minor: DeviceNumber { major: 8, minor: 16 }, attachment: None },
        identities: vec![
            Identity { kind: IdentityKind::Serial, text: "WD 1".into() },
            Identity { kind: IdentityKind::ById, text: "ata-WDC_1".into() },
        ],
        no_identities: Vec::new(),
        uses: Vec::new(),
        doubts: Vec::new(),
        signatures: vec![
            Signature::new("gpt", Some(512), None),
            Signature::new("ext4", Some(1080), Some("home")),
        ],
        labels_around: Vec::new(),
        allocation: None,
    }
}

fn file() -> Examined {
    Examined {
        target: target("/srv/a.img", TargetKind::File, None),
        path: "/srv/a.img".into(),
        place: Place::File { dev: 1, ino: 2 },
        identities: Vec::new(),
        signatures: Vec::new(),
        ..disk()
    }
}

fn directory() -> Examined {
    let place = Place::Directory {
        path: "/srv".into(),
        dev: 1,
        free_bytes: 1 << 40,
        total_bytes: 1 << 41,
        pool_spare_bytes: None,
        rewriting: crate::space::growth::Rewriting::InPlace,
    };
    Examined { path: "/srv".into(), place, ..file() }
}

fn destroy(word: &str) -> Permission {
    Permission { destroy: Some(word.into()), overwrite: Overwrite::Allowed, ..Permission::default() }
}

fn refused(examined: &Examined, permission: &Permission) -> Refusal {
    authorize(examined, Access::Read, permission).unwrap();
    authorize(examined, Access::Write, permission).unwrap_err()
}

#[test]
fn every_use_refuses_every_write_and_no_read() {
    for (kind, code) in [
        (UseKind::SystemDisk, "system-disk"),
        (UseKind::SystemFile, "system-file"),
        (UseKind::Mounted, "mounted"),
        (UseKind::Swap, "swap"),
        (UseKind::Holder, "held"),
        (UseKind::BackingFile, "backing-file"),
        (UseKind::OpenExclusive, "in-use"),
        (UseKind::OpenElsewhere, "in-use"),
        (UseKind::MultiMounted, "mounted"),
        (UseKind::Program, "program"),
        (UseKind::HardLinked, "hard-linked"),
        (UseKind::Small, "small-file"),
        (UseKind::ReadOnly, "read-only"),
        (UseKind::NotWritable, "not-writable"),
        (UseKind::InMemory, "in-memory"),
    ] {
        for mut examined in [disk(), file(), directory()] {
            examined.uses = vec![Use::new(kind, "the text")];
            for permission in [Permission::default(), destroy("WD 1"), destroy("ata-WDC_1")] {
                let refusal = refused(&examined, &permission);
                assert_eq!(refusal.code, code);
                assert!(refusal.message.contains("the text"), "{}", refusal.message);
                assert!(!refusal.hint.contains("--destroy") && !refusal.hint.contains("--overwrite"));
            }
        }
    }
}

#[test]
fn only_ranks_may_have_a_file_open_that_ranks_share() {
    let shared =
        Permission { overwrite: Overwrite::Allowed, sharing: Sharing::Ranks, ..Permission::default() };
    let alone = Permission { sharing: Sharing::Alone, ..shared.clone() };
    let with = |kind, opener, examined: Examined| {
        let used = Use { opener, ..Use::new(kind, "as the kernel says") };
        Examined { uses: vec![used], ..examined }
    };
    let process = |name: &str| Some(Opener::Process(name.into()));
    for opener in [Some(Opener::Unseen), process("rdsk-mpi")] {
        let open = with(UseKind::OpenElsewhere, opener, file());
        authorize(&open, Access::Write, &shared).unwrap();
        refused(&open, &alone);
    }
    for (kind, opener) in [
        (UseKind::OpenElsewhere, process("qemu")),
        (UseKind::OpenElsewhere, process("my (rdsk")),
        (UseKind::OpenElsewhere, None),
        (UseKind::BackingFile, None),
        (UseKind::Swap, Some(Opener::Unseen)),
    ] {
        refused(&with(kind, opener, file()), &shared);
    }
    // No device is shared like that.
    let device = with(UseKind::OpenElsewhere, process("rdsk-mpi"), disk());
    refused(&device, &Permission { destroy: Some("WD 1".into()), ..shared });
}

#[test]
fn only_ranks_that_hold_a_device_together_may_have_it_open() {
    let Place::Block { major_minor: number, .. } = disk().place else { panic!("a disk is a block device") };
    let sharing = |number| {
        Sharing::Held(Arc::new(DeviceHold::new(std::fs::File::open("/dev/null").unwrap().into(), number)))
    };
    let permission = |sharing| Permission { sharing, ..destroy("WD 1") };
    let with = |kind, opener: Option<&str>| {
        let opener = opener.map(|name| Opener::Process(name.into()));
        Examined { uses: vec![Use { opener, ..Use::new(kind, "as the kernel says") }], ..disk() }
    };
    let held = permission(sharing(number));
    let by_ranks = [
        with(UseKind::OpenExclusive, None),
        with(UseKind::OpenElsewhere, Some("rdsk-mpi")),
        with(UseKind::ReadElsewhere, Some("rdsk")),
    ];
    for examined in by_ranks {
        authorize(&examined, Access::Write, &held).unwrap();
        refused(&examined, &permission(Sharing::Alone));
        refused(&examined, &permission(Sharing::Ranks));
        // Another device is held.
        refused(&examined, &permission(sharing(DeviceNumber { minor: number.minor + 1, ..number })));
        // The hold replaces no other condition.
        refused(&examined, &Permission { destroy: Some("WD 2".into()), ..held.clone() });
    }
    for (kind, opener) in [
        (UseKind::OpenElsewhere, Some("qemu")),
        (UseKind::OpenElsewhere, None),
        (UseKind::Mounted, None),
        (UseKind::Holder, None),
        (UseKind::Exported, None),
        (UseKind::Member, Some("rdsk-mpi")),
    ] {
        refused(&with(kind, opener), &held);
    }
    let unseen =
        Use { opener: Some(Opener::Unseen), ..Use::new(UseKind::OpenElsewhere, "as the kernel says") };
    refused(&Examined { uses: vec![unseen], ..disk() }, &held);
}

#[test]
fn a_label_on_a_partition_is_removed_there() {
    let hint = |labels: &[Option<Labelled>]| {
        let label = |labelled: &Option<Labelled>| {
            let labelled = labelled.clone();
            Use { labelled, ..Use::new(UseKind::Member, "the text") }
        };
        let examined = Examined { uses: labels.iter().map(label).collect(), ..disk() };
        let refusal = refused(&examined, &destroy("WD 1"));
        assert_eq!(refusal.code, "member");
        refusal.hint
    };
    let label = |node: &str, kind: &str| Some(Labelled::Device { node: node.into(), kind: kind.into() });
    let lvm = || label("/dev/sdb2", "LVM2_member");
    let alone =
        "measure reads, or, if nothing needs it any more, remove that label alone: wipefs --backup --all";
    assert_eq!(
        hint(&[lvm(), label("/dev/sdb3", "crypto_LUKS"), lvm()]),
        format!("{alone} --types LVM2_member /dev/sdb2, wipefs --backup --all --types crypto_LUKS /dev/sdb3")
    );
    // What the disk around a partition has besides, stays, above all its table.
    assert_eq!(
        hint(&[label("/dev/sdb", "isw_raid_member")]),
        format!("{alone} --types isw_raid_member /dev/sdb")
    );
    let table = || Some(Labelled::HiddenPartition { table_on: "/dev/sdb".into() });
    assert!(hint(&[table()]).ends_with("remove their table: wipefs --backup --all /dev/sdb"));
    assert!(
        hint(&[table(), lvm()])
            .ends_with("--all --types LVM2_member /dev/sdb2, wipefs --backup --all /dev/sdb")
    );
    assert!(!hint(&[lvm(), None]).contains("wipefs"), "one of them cannot be removed without harm");
}

#[test]
fn the_first_block_of_a_disk_around_a_partition_is_not_to_be_zeroed() {
    let hint = |labelled: Option<Labelled>| {
        let used = Use { labelled, ..Use::new(UseKind::Metadata, "metadata of DRBD") };
        refused(&Examined { uses: vec![used], ..disk() }, &destroy("WD 1")).hint
    };
    let own = Labelled::Device { node: "/dev/sdb2".into(), kind: "metadata of DRBD".into() };
    assert!(hint(Some(own)).ends_with("zero the first block of /dev/sdb2 (dd if=/dev/zero bs=4096 count=1)"));
    assert_eq!(hint(None), "measure reads, or name an unused device");
}

#[test]
fn the_refusal_of_a_mounted_disk_reads_as_designed() {
    let mut examined = disk();
    examined.uses = vec![Use::new(UseKind::Mounted, "/home on sdb3"), Use::new(UseKind::Swap, "sdb2")];
    let refusal = refused(&examined, &destroy("WD 1"));
    assert_eq!(
        refusal.message,
        "refusing to write to /dev/sdb: it holds a mounted filesystem (/home on sdb3)"
    );
    assert_eq!(refusal.hint, "measure reads, or name an unused device");
}

#[test]
fn without_the_word_the_content_is_named_and_the_word_told() {
    let refusal = refused(&disk(), &Permission::default());
    assert_eq!(refusal.code, "needs-destroy");
    assert_eq!(refusal.message, "refusing to write to /dev/sdb: it holds gpt, ext4 \"home\"");
    assert_eq!(refusal.hint, "measure reads, or add --destroy 'WD 1' to lose everything on it");
    let overwrite = Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() };
    assert_eq!(refused(&disk(), &overwrite).code, "needs-destroy", "--overwrite is for files");
    let blank = Examined { signatures: Vec::new(), ..disk() };
    assert_eq!(
        refused(&blank, &Permission::default()).message,
        "refusing to write to /dev/sdb: writing would destroy its content"
    );
}

#[test]
fn wrong_words_are_refused() {
    for word in ["", "wd 1", "WD", "WD 1 ", "sdb", "/dev/sdb", "8:16", "ext4", "home", "*"] {
        let refusal = refused(&disk(), &destroy(word));
        assert_eq!(refusal.code, "wrong-identity", "{word}");
        assert!(refusal.message.contains("it holds gpt"), "{}", refusal.message);
    }
    assert_eq!(
        refused(&disk(), &destroy("/dev/sdb")).message,
        "refusing to write to /dev/sdb: \"/dev/sdb\" is not one of its identities \
         (kernel names change when disks are added or moved), and it holds gpt, ext4 \"home\""
    );
    let hostile = refused(&disk(), &destroy("\u{1b}[2J"));
    assert!(hostile.message.contains("\"\\x1b[2J\""), "{}", hostile.message);
}

#[test]
fn right_words_open_an_unused_device() {
    for word in ["WD 1", "ata-WDC_1", "/dev/disk/by-id/ata-WDC_1"] {
        authorize(&disk(), Access::Write, &destroy(word)).unwrap();
    }
}

#[test]
fn without_an_identity_or_a_proof_nothing_opens() {
    let nameless = Examined { identities: Vec::new(), ..disk() };
    assert_eq!(refused(&nameless, &destroy("sdb")).code, "no-identity");
    let doubtful = Examined { doubts: vec!["wipefs is not installed".into()], ..disk() };
    let refusal = refused(&doubtful, &destroy("WD 1"));
    assert_eq!(refusal.code, "cannot-prove-unused");
    assert_eq!(
        refusal.message,
        "refusing to write to /dev/sdb: it cannot be proven to be unused: wipefs is not installed"
    );
    assert!(refusal.hint.contains("util-linux"), "{}", refusal.hint);
    // More rights find no file that was deleted.
    let gone = "its backing file /srv/disk (deleted) cannot be examined (No such file or directory)".into();
    let hint = refused(&Examined { doubts: vec![gone], ..disk() }, &destroy("WD 1")).hint;
    assert!(hint.contains("attach the device again") && !hint.contains("root"), "{hint}");
}

#[test]
fn whose_file_it_is_helps_only_where_the_kernel_tells_its_owner() {
    let hint = |doubt: &str| {
        let doubtful = Examined { doubts: vec![doubt.into()], ..file() };
        refused(
            &doubtful,
            &Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() },
        )
        .hint
    };
    let of_another =
        hint("the kernel shows only its owner whether it is open for writing, and procfs hides some");
    assert_eq!(
        of_another,
        "measure reads, or run as the owner of the file, or as root outside of containers"
    );
    let silent = hint("its filesystem does not show whether it is open for writing, and procfs hides some");
    assert!(
        silent.ends_with("or run as root outside of containers") && !silent.contains("owner"),
        "{silent}"
    );
}

#[test]
fn an_export_of_what_is_gone_is_to_be_ended() {
    let lost = "the SCSI target fileio_0/image exports /gone/image, which cannot be found here";
    for examined in [disk(), file()] {
        let doubtful = |doubts: &[&str]| {
            let doubts = doubts.iter().map(|&doubt| doubt.into()).collect();
            refused(&Examined { doubts, ..examined.clone() }, &destroy("WD 1"))
        };
        let refusal = doubtful(&[lost]);
        assert_eq!(refusal.code, "cannot-prove-unused");
        assert!(refusal.message.ends_with(lost), "{}", refusal.message);
        assert!(refusal.hint.contains("targetcli") && !refusal.hint.contains("root"), "{}", refusal.hint);
        // What else is not known comes first: that may need another user, or a program.
        assert!(!doubtful(&[lost, "wipefs is not installed"]).hint.contains("targetcli"));
        let moved =
            "namespace 1 exports /dev/disk/by-id/x, a name that may have led here when it was exported";
        for doubts in [&[moved][..], &[lost, moved]] {
            let hint = doubtful(doubts).hint;
            assert!(hint.contains("targetcli") && hint.contains("the kernel's name of its device"), "{hint}");
        }
        let unseen = "device mapper has dm-3 (vg-old) open once more than can be seen";
        assert!(doubtful(&[unseen, moved]).hint.contains("under an older name of it"));
    }
}

#[test]
fn files_need_overwrite_and_directories_do_not() {
    let refusal = refused(&file(), &Permission::default());
    assert_eq!(refusal.code, "needs-overwrite");
    assert_eq!(
        refusal.message,
        "refusing to write to /srv/a.img: rdsk did not create this file, and writing would destroy its content"
    );
    let only_destroy =
        Permission { destroy: Some("WD 1".into()), overwrite: Overwrite::Refused, ..Permission::default() };
    assert_eq!(refused(&file(), &only_destroy).code, "needs-overwrite");
    let allowed = Permission { destroy: None, overwrite: Overwrite::Allowed, ..Permission::default() };
    authorize(&file(), Access::Write, &allowed).unwrap();
    authorize(&directory(), Access::Write, &Permission::default()).unwrap();
}

#[test]
fn a_refusal_is_a_problem_of_the_environment() {
    let problem = Problem::from(refused(&disk(), &Permission::default()));
    assert_eq!((problem.kind, problem.code.as_str()), (ProblemKind::Refused, "needs-destroy"));
    assert!(problem.hint.is_some());
}
