//! Refusals and claims on real loop devices. After every refusal the content of the device is unchanged.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{
    LONG, MIB, claimed, destroy, look, overwrite, refusal, run, turn, write_lvm_label, write_mode,
};
use rdsk_model::{IoPath, Sync};
use rdsk_targets::{Access, OpenMode, Permission, Roots, TargetError, UseKind, authorize, claim, examine};
use rdsk_testkit::loopdev::{attach_file, mkfs_ext4};
use rdsk_testkit::{LoopDevice, Need, Swap, requires, wait_until};
use rustix::fs::{Mode, OFlags};
use std::path::Path;

fn loops() -> bool {
    requires(&[Need::Root, Need::Loop, Need::Tool("lsblk"), Need::Tool("wipefs")])
}

fn device(mib: u64) -> LoopDevice {
    LoopDevice::builder().size(mib * MIB).create().unwrap()
}

fn backing(device: &LoopDevice) -> Permission {
    destroy(device.backing_path().to_str().unwrap())
}

/// Every way to write is refused with this code, and the content stays.
#[track_caller]
fn refused(device: &LoopDevice, path: &Path, code: &str) -> String {
    let before = device.content_hash().unwrap();
    let message = every_way_refused(device, path, code);
    assert_eq!(device.content_hash().unwrap(), before);
    message
}

#[track_caller]
fn every_way_refused(device: &LoopDevice, path: &Path, code: &str) -> String {
    for permission in [Permission::default(), overwrite()] {
        assert_eq!(refusal(path, &permission).code, code, "{permission:?}");
    }
    let refusal = refusal(path, &backing(device));
    assert_eq!(refusal.code, code);
    assert!(!refusal.hint.contains("--destroy"), "{}", refusal.hint);
    refusal.message
}

#[test]
fn a_mounted_device_is_refused_under_every_name() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4]) {
        return;
    }
    let device = device(32);
    device.mkfs_ext4("home").unwrap();
    let mount = device.mount().unwrap();
    run("sync", &[]);
    let shown = format!("{} ({})", device.name(), device.backing_path().display());
    let told = format!(
        "refusing to write to {}: it holds a mounted filesystem ({} on {shown})",
        device.path().display(),
        mount.path().display()
    );
    // Another test's mount namespace may have a copy of the mount for a while, and is reported behind this one.
    let assert_told = |name: &Path| {
        wait_until(LONG, || refused(&device, name, "mounted") == told);
        assert_eq!(refused(&device, name, "mounted"), told);
    };
    assert_told(device.path());
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("by-id-like");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    let second = directory.path().join("link-to-link");
    std::os::unix::fs::symlink("by-id-like", &second).unwrap();
    for name in [&link, &second] {
        assert_told(name);
        assert_eq!(look(name).target.path.unwrap(), device.path().to_str().unwrap());
    }
    assert_eq!(look(device.path()).uses[0].kind, UseKind::Mounted);
}

#[test]
fn a_mounted_partition_holds_itself_and_its_disk_but_not_its_neighbour() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4, Need::Tool("partx")]) {
        return;
    }
    let device = device(32);
    let nodes = device.partition_gpt().unwrap();
    mkfs_ext4(&nodes[1], "home").unwrap();
    let mount = device.mount_node(&nodes[1]).unwrap();
    run("sync", &[]);
    for path in [device.path(), &nodes[1]] {
        let message = refused(&device, path, "mounted");
        assert!(message.contains(&format!("{} on {}p2", mount.path().display(), device.name())), "{message}");
    }
    let claim = claimed(&nodes[0], Access::Write, &backing(&device));
    assert_eq!(claim.target.stack, [format!("{}p1", device.name()), device.name().to_owned()]);
    let fd = claim.open(write_mode()).unwrap();
    assert_eq!(rdsk_sys::device::block_device_size(&fd).unwrap(), claim.size_bytes());
}

#[test]
fn swap_is_refused() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("mkswap"), Need::Tool("swapon")]) {
        return;
    }
    let device = device(8);
    let swap = Swap::on(&device).unwrap();
    let message = every_way_refused(&device, device.path(), "swap");
    assert_eq!(swap.sectors_of_others().unwrap(), 0);
    assert!(message.contains("it is active swap space (loop"));
}

#[test]
fn a_blank_at_the_end_makes_another_backing_file() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (plain, blank) = (directory.path().join("disk"), directory.path().join("disk "));
    std::fs::write(&blank, vec![0; 1 << 20]).unwrap();
    let node = attach_file(&blank).unwrap();
    let examined = look(&node);
    let authorized = |name: &Path| authorize(&examined, Access::Write, &destroy(name.to_str().unwrap()));
    let (wrong, right) = (authorized(&plain), authorized(&blank));
    run("losetup", &["--detach", node.to_str().unwrap()]);
    assert_eq!(wrong.unwrap_err().code, "wrong-identity");
    right.unwrap();
}

#[test]
fn a_device_held_exclusively_is_refused() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    let holder =
        rustix::fs::open(device.path(), OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty())
            .unwrap();
    let message = refused(&device, device.path(), "in-use");
    assert!(message.contains("another program holds it exclusively"), "{message}");
    drop(holder);
    claimed(device.path(), Access::Write, &backing(&device));
}

/// A mount hides the backing file, and another file lies in its place: what uses the right one is not known.
#[test]
fn a_backing_file_whose_name_leads_to_another_is_refused() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (place, file) = (directory.path().to_str().unwrap(), directory.path().join("image"));
    std::fs::write(&file, vec![7; 16 << 20]).unwrap();
    let device = LoopDevice::builder().over(&file).create().unwrap();
    let permission = destroy(file.to_str().unwrap());
    run("mount", &["-t", "tmpfs", "none", place]);
    std::fs::write(&file, "another").unwrap();
    let authorized = authorize(&look(device.path()), Access::Write, &permission);
    run("umount", &[place]);
    let refusal = authorized.unwrap_err();
    assert_eq!(refusal.code, "cannot-prove-unused");
    assert!(refusal.message.contains("another file is in the place"), "{}", refusal.message);
    claimed(device.path(), Access::Write, &permission);
}

#[test]
fn a_backing_file_open_elsewhere_is_refused() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    // The shell opens the file as its descriptor 3 and executes a program that only waits.
    let script = "exec 3<>\"$1\"; echo ready; exec sleep 600";
    let mut other = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(device.backing_path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(other.stdout.take().unwrap()), &mut line)
        .unwrap();
    let question = std::panic::AssertUnwindSafe(|| refused(&device, device.path(), "in-use"));
    let message = std::panic::catch_unwind(question);
    other.kill().unwrap();
    other.wait().unwrap();
    let message = message.unwrap();
    assert!(message.contains(&format!("it is open elsewhere (process {} (", other.id())), "{message}");
    claimed(device.path(), Access::Write, &backing(&device));
}

#[test]
fn two_loop_devices_over_one_file_refuse_each_other() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let first = device(8);
    let second = LoopDevice::builder().over(first.backing_path()).create().unwrap();
    let message = refused(&first, first.path(), "backing-file");
    assert!(message.contains(&format!("{} keeps its data in", second.name())), "{message}");
    assert_eq!(refusal(first.backing_path(), &overwrite()).code, "backing-file");
}

#[test]
fn a_loop_over_a_loop_holds_the_lower_and_is_not_written() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let lower = device(8);
    let upper = LoopDevice::builder().over(lower.path()).create().unwrap();
    let message = refused(&lower, lower.path(), "held");
    assert!(message.contains(upper.name()), "{message}");
    assert_eq!(refusal(upper.path(), &destroy(lower.path().to_str().unwrap())).code, "backing-file");
}

#[test]
fn a_read_only_device_is_refused() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = LoopDevice::builder().size(8 * MIB).read_only().create().unwrap();
    refused(&device, device.path(), "read-only");
}

/// A member of LVM keeps its label until a program wipes it, on the disk, on a partition of it and on the disk around it.
#[test]
fn members_are_refused_even_with_the_right_word() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("partx")]) {
        return;
    }
    let device = device(16);
    write_lvm_label(device.backing_path());
    let message = refused(&device, device.path(), "member");
    assert!(message.contains("part of something larger, or encrypted (LVM2_member)"), "{message}");
    let hint = refusal(device.path(), &backing(&device)).hint;
    let only = |node: &Path| format!("wipefs --backup --all --types LVM2_member {}", node.display());
    assert!(hint.ends_with(&only(device.path())), "{hint}");
    run("wipefs", &["--quiet", "--all", device.path().to_str().unwrap()]);
    claimed(device.path(), Access::Write, &backing(&device));

    let nodes = device.partition_gpt().unwrap();
    write_lvm_label(&nodes[0]);
    let message = refused(&device, device.path(), "member");
    assert!(message.contains(&format!("(LVM2_member on {}p1)", device.name())), "{message}");
    let hint = refusal(device.path(), &backing(&device)).hint;
    assert!(hint.ends_with(&only(&nodes[0])), "{hint}");
    refused(&device, &nodes[0], "member");
    claimed(&nodes[1], Access::Write, &backing(&device));

    // The kernel shows no partitions any more, and the table has them as before. One that another program reads is busy.
    let mut delete = std::process::Command::new("partx");
    delete.arg("--delete").arg(device.path());
    assert!(wait_until(LONG, || delete.output().unwrap().status.success()));
    let message = refused(&device, device.path(), "member");
    assert!(message.contains("(LVM2_member in partition 1 of its table)"), "{message}");
    run("wipefs", &["--quiet", "--all", device.path().to_str().unwrap()]);
    claimed(device.path(), Access::Write, &backing(&device));
}

/// Each signature is named when the word is missing or wrong, and the right word opens the device.
#[test]
fn signatures_need_the_right_word() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4, Need::Tool("partx")]) {
        return;
    }
    let (ext4, gpt) = (device(16), device(16));
    ext4.mkfs_ext4("ho\"me").unwrap();
    gpt.partition_gpt().unwrap();
    for (device, signature) in [(&ext4, "ext4 \"ho\"me\""), (&gpt, "gpt")] {
        let before = device.content_hash().unwrap();
        let path = device.path().display();
        let missing = refusal(device.path(), &Permission::default());
        assert_eq!(missing.code, "needs-destroy");
        assert!(missing.message.starts_with(&format!("refusing to write to {path}: it holds {signature}")));
        let word = device.backing_path().display();
        assert_eq!(missing.hint, format!("measure reads, or add --destroy {word} to lose everything on it"));
        for wrong in [device.path().to_str().unwrap(), device.name(), "", "/etc/passwd", "ext4"] {
            let refusal = refusal(device.path(), &destroy(wrong));
            assert_eq!(refusal.code, "wrong-identity", "{wrong}");
            assert!(refusal.message.contains(&format!("it holds {signature}")), "{}", refusal.message);
        }
        assert_eq!(device.content_hash().unwrap(), before);
        let claim = claimed(device.path(), Access::Write, &backing(device));
        rustix::io::pwrite(
            claim.open(OpenMode { path: IoPath::Buffered, ..write_mode() }).unwrap(),
            &[7; 512],
            4096,
        )
        .unwrap();
        assert_ne!(device.content_hash().unwrap(), before);
    }
}

#[test]
fn a_mount_between_claim_and_open_is_refused_by_the_kernel() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4]) {
        return;
    }
    let device = device(16);
    device.mkfs_ext4("late").unwrap();
    let claim = claimed(device.path(), Access::Write, &backing(&device));
    let examined = look(device.path());
    let mount = device.mount().unwrap();
    match claim.open(write_mode()).unwrap_err() {
        TargetError::Refused(refusal) => assert_eq!(refusal.code, "in-use"),
        other => panic!("{other}"),
    }
    // A Claim taken only now examines the device again, whatever was examined before.
    match super_claim(examined, &device) {
        TargetError::Refused(refusal) => assert_eq!(refusal.code, "mounted"),
        other => panic!("{other}"),
    }
    drop(mount);
    // A program elsewhere may have begun a mount namespace meanwhile, which keeps the mount until it ends.
    let mut last = Ok(());
    assert!(
        wait_until(LONG, || {
            last = claim.open(write_mode()).map(drop);
            last.is_ok()
        }),
        "{last:?}"
    );
}

fn super_claim(examined: rdsk_targets::Examined, device: &LoopDevice) -> TargetError {
    claim(examined, Access::Write, &backing(device), &Roots::default()).unwrap_err()
}

#[test]
fn an_exclusive_writer_keeps_mounts_out() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Ext4]) {
        return;
    }
    let device = device(16);
    device.mkfs_ext4("x").unwrap();
    let claim = claimed(device.path(), Access::Write, &backing(&device));
    let fd = claim.open(write_mode()).unwrap();
    assert!(device.mount().is_err());
    assert!(matches!(claim.open(write_mode()), Err(TargetError::Refused(_))), "one writer at a time");
    claim.open(OpenMode::READ).unwrap();
    drop(fd);
    drop(device.mount().unwrap());
}

#[test]
fn another_file_under_the_same_device_is_noticed() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let first = device(8);
    let examined = look(first.path());
    let permission = backing(&first);
    let claim_before = claimed(first.path(), Access::Write, &permission);
    let number = first.path().to_str().unwrap().to_owned();
    let other = tempfile::NamedTempFile::new().unwrap();
    other.as_file().set_len(8 * MIB).unwrap();
    run("losetup", &["--detach", &number]);
    // Another test may have taken the number in the meantime, and gives it back when it ends.
    let attached = (0..12_000).any(|_| {
        let mut losetup = std::process::Command::new("losetup");
        let output = losetup.arg(&number).arg(other.path()).output().unwrap();
        output.status.success() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    });
    assert!(attached);
    let opened = claim_before.open(OpenMode::READ);
    let written = claim_before.open(write_mode());
    let again = claim(examined, Access::Write, &permission, &Roots::default());
    run("losetup", &["--detach", &number]);
    assert!(matches!(opened, Err(TargetError::Changed { .. })), "{opened:?}");
    assert!(matches!(written, Err(TargetError::Changed { .. })), "{written:?}");
    assert!(matches!(again, Err(TargetError::Changed { .. })), "{again:?}");
}

#[test]
fn a_claim_is_no_opener() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    let claim = claimed(device.path(), Access::Write, &backing(&device));
    assert!(claim.open(write_mode()).is_ok());
    // With any opener left, the kernel would only mark the device and detach it at the last close.
    run("losetup", &["--detach", device.path().to_str().unwrap()]);
    // A program that another test starts may have the descriptor above for a moment; a Claim would keep it.
    let detached = (0..3000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        device.sysfs("loop/backing_file").ok().as_deref() != device.backing_path().to_str()
    });
    assert!(detached);
    let gone = claim.open(OpenMode::READ).unwrap_err();
    assert!(matches!(gone, TargetError::Changed { .. } | TargetError::Io { .. }), "{gone}");
}

#[test]
fn a_claim_for_reading_never_writes() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    let claim = claimed(device.path(), Access::Read, &Permission::default());
    assert_eq!(claim.access(), Access::Read);
    assert!(matches!(claim.open(write_mode()), Err(TargetError::ReadOnlyClaim { .. })));
    for path in [IoPath::Direct, IoPath::Buffered] {
        for sync in [Sync::None, Sync::Dsync, Sync::FsyncAtEnd] {
            let fd = claim.open(OpenMode { access: Access::Read, path, sync }).unwrap();
            let flags = rustix::fs::fcntl_getfl(&fd).unwrap();
            assert!(!flags.intersects(OFlags::WRONLY | OFlags::RDWR), "{flags:?}");
            assert_eq!(flags.contains(OFlags::DIRECT), path == IoPath::Direct);
            assert_eq!(flags.contains(OFlags::DSYNC), sync == Sync::Dsync);
            assert!(rustix::io::fcntl_getfd(&fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
            assert_eq!(rustix::io::pwrite(&fd, &[1; 512], 0), Err(rustix::io::Errno::BADF));
        }
    }
}

/// Examines the disk of this machine, for reading only, and does not claim it.
#[test]
fn the_disk_under_this_system_is_refused() {
    use std::os::unix::fs::MetadataExt as _;
    let _turn = turn();
    let root = rdsk_targets::DeviceNumber::from_raw(std::fs::metadata("/").unwrap().dev());
    let Ok(sysfs) = std::fs::read_link(format!("/sys/dev/block/{root}")) else {
        eprintln!("SKIPPED the_disk_under_this_system_is_refused: / is on no block device of its own");
        return;
    };
    let node = Path::new("/dev").join(sysfs.file_name().unwrap());
    let Ok(examined) = examine(node.to_str().unwrap(), &Roots::default()) else {
        eprintln!("SKIPPED the_disk_under_this_system_is_refused: {} is not there", node.display());
        return;
    };
    let refusal = authorize(&examined, Access::Write, &destroy("anything")).unwrap_err();
    assert_eq!(refusal.code, "system-disk", "{}", refusal.message);
    assert!(
        refusal.message.contains("it is the disk under the running system (/ on "),
        "{}",
        refusal.message
    );
}

#[test]
fn facts_of_a_loop_device_are_real() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = LoopDevice::builder().size(8 * MIB).sector_size(4096).create().unwrap();
    let claim = claimed(device.path(), Access::Read, &Permission::default());
    let target = &claim.target;
    let facts = target.device.as_ref().unwrap();
    assert_eq!(claim.size_bytes(), 8 * MIB);
    assert_eq!((facts.name.as_str(), facts.major_minor.as_str()), (device.name(), device.major_minor()));
    assert_eq!(facts.logical_block_bytes, Some(4096));
    assert_eq!(facts.size_bytes, Some(8 * MIB));
    assert_eq!(facts.backing_file.as_deref(), device.backing_path().to_str());
    assert_eq!(facts.loop_direct_io, Some(false));
    assert_eq!((target.direct_io, target.direct_align_bytes), (Some(true), Some(4096)));
    assert!(target.nowait.is_some());
    assert_eq!(target.stack, [device.name()]);
    assert_eq!(claim.allocation(0, MIB), None);
}

#[test]
fn a_device_without_a_byte_is_said_to_be_empty() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    let path = device.path().to_owned();
    run("losetup", &["--detach", path.to_str().unwrap()]);
    match examine(path.to_str().unwrap(), &Roots::default()) {
        Err(TargetError::Empty { .. } | TargetError::NotFound { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(other) => {
            let file = other.target.device.and_then(|device| device.backing_file);
            assert_ne!(file.as_deref(), device.backing_path().to_str(), "another test took the number");
        }
    }
}

#[test]
fn a_loop_over_a_node_that_is_gone_holds_the_device() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let lower = device(4);
    let directory = tempfile::tempdir().unwrap();
    let node = directory.path().join("node");
    let numbers = lower.sysfs("dev").unwrap();
    let (major, minor) = numbers.trim().split_once(':').unwrap();
    run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
    let upper = attach_file(&node).unwrap();
    std::fs::remove_file(&node).unwrap();
    let authorized = authorize(&look(lower.path()), Access::Write, &backing(&lower));
    run("losetup", &["--detach", upper.to_str().unwrap()]);
    assert_eq!(authorized.unwrap_err().code, "held");
}

#[test]
fn a_partition_is_found_and_written_by_its_own_uuid_only() {
    let _turn = turn();
    if !loops() || !requires(&[Need::Tool("partx"), Need::Tool("blkid")]) {
        return;
    }
    let device = device(32);
    let nodes = device.partition_gpt().unwrap();
    let uuid = |node: &Path| {
        let names = look(node).identities;
        let own = names.into_iter().find(|name| name.kind == rdsk_targets::IdentityKind::PartitionUuid);
        own.unwrap_or_else(|| panic!("{} has no UUID", node.display())).text
    };
    let (own, other) = (uuid(&nodes[0]), uuid(&nodes[1]));
    assert_ne!(own, other);
    // A copy of the disk has partitions of the same name, which then identifies none of them.
    let copy = self::device(32);
    std::fs::copy(device.backing_path(), copy.backing_path()).unwrap();
    copy.add_partition_nodes().unwrap();
    assert_eq!(refusal(&nodes[0], &destroy(&own)).code, "wrong-identity");
    assert_eq!(examine(&format!("PARTUUID={own}"), &Roots::default()).unwrap_err().code(), "ambiguous");
    drop(copy);
    for word in [format!("PARTUUID={own}"), own.to_uppercase(), format!("/dev/disk/by-partuuid/{own}")] {
        let examined = examine(&word, &Roots::default()).unwrap();
        assert_eq!(examined.path, nodes[0]);
        assert_eq!(examined.target.name, word);
        assert_eq!(examined.target.stack, [format!("{}p1", device.name()), device.name().to_owned()]);
        assert_eq!(authorize(&examined, Access::Write, &destroy(&other)).unwrap_err().code, "wrong-identity");
        authorize(&examined, Access::Write, &destroy(&own)).unwrap();
    }
    // The disk around it is another device.
    assert_eq!(refusal(device.path(), &destroy(&own)).code, "wrong-identity");
    let missing = examine(&format!("PARTUUID={}x", &own[1..]), &Roots::default()).unwrap_err();
    assert_eq!(missing.code(), "not-found");
}

#[test]
fn a_path_that_exists_wins_over_a_name_and_kernel_names_need_their_path() {
    let _turn = turn();
    if !loops() {
        return;
    }
    let device = device(8);
    let error = examine(device.name(), &Roots::default()).unwrap_err();
    assert_eq!(error.hint().unwrap(), format!("name it by its path: {}", device.path().display()));
    // The backing file is an identity of the loop device, and a file in its own right.
    let examined = examine(device.backing_path().to_str().unwrap(), &Roots::default()).unwrap();
    assert_eq!(examined.target.kind, rdsk_model::TargetKind::File);
}
