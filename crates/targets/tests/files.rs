//! Regular files of the user, and everything that is not a file.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{self, MIB, claimed, look, look_error, overwrite, refusal, run, turn, write_mode};
use rdsk_model::ProblemKind;
use rdsk_targets::{Access, OpenMode, Permission, Place, Roots, TargetError, authorize, claim};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::loopdev::attach_file;
use rdsk_testkit::{LoopDevice, Need, requires};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

fn code(name: &Path) -> String {
    let problem = look_error(name.to_str().unwrap()).problem();
    assert_eq!(problem.kind, ProblemKind::Refused);
    assert!(problem.hint.is_some());
    problem.code
}

#[test]
fn a_users_file_is_read_and_not_written_without_the_flag() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    fs::write(&path, vec![9; 1 << 20]).unwrap();
    let claim = claimed(&path, Access::Read, &Permission::default());
    assert_eq!((claim.size_bytes(), claim.target.made_by_rdsk), (MIB, false));
    claim.open(OpenMode::READ).unwrap();
    assert!(matches!(claim.open(write_mode()), Err(TargetError::ReadOnlyClaim { .. })));
    assert_eq!(refusal(&path, &Permission::default()).code, "needs-overwrite");
    assert_eq!(fs::read(&path).unwrap(), vec![9; 1 << 20]);
    let claim = claimed(&path, Access::Write, &overwrite());
    let fd = claim.open(OpenMode { path: rdsk_model::IoPath::Buffered, ..write_mode() }).unwrap();
    rustix::io::pwrite(&fd, &[1], 0).unwrap();
    drop((fd, claim));
    assert!(path.exists(), "a user's file is never removed");
    assert_eq!(fs::read(&path).unwrap()[..2], [1, 9]);
}

#[test]
fn a_file_replaced_after_the_look_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    fs::write(&path, "one ".repeat(1 << 18)).unwrap();
    let examined = look(&path);
    let claimed_before = claimed(&path, Access::Write, &overwrite());
    fs::write(directory.path().join("other"), "two").unwrap();
    fs::rename(directory.path().join("other"), &path).unwrap();
    for access in [Access::Read, Access::Write] {
        let error = claim(examined.clone(), access, &overwrite(), &Roots::default()).unwrap_err();
        assert!(matches!(error, TargetError::Changed { .. }), "{error}");
    }
    // The Claim holds the file itself, which no longer has a name.
    let mut text = [0; 3];
    rustix::io::pread(claimed_before.open(OpenMode::READ).unwrap(), &mut text, 0).unwrap();
    assert_eq!(&text, b"one");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    let error = claim(examined, Access::Write, &overwrite(), &Roots::default()).unwrap_err();
    assert!(matches!(error, TargetError::NotMeasurable { .. } | TargetError::Changed { .. }), "{error}");
}

/// Its owner may cut it short meanwhile; a write would give it the old length again.
#[test]
fn a_file_that_has_become_shorter_is_written_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine");
    fs::write(&path, vec![7; 2 << 20]).unwrap();
    let claims = [claimed(&path, Access::Read, &overwrite()), claimed(&path, Access::Write, &overwrite())];
    let length = |bytes: u64| fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    // A log that grows is the same file.
    for (bytes, may_open) in [(3 << 20, true), (2 << 20, true), ((2 << 20) - 1, false), (0, false)] {
        length(bytes);
        for (claim, mode) in claims
            .iter()
            .zip([OpenMode::READ, OpenMode { path: rdsk_model::IoPath::Buffered, ..write_mode() }])
        {
            let opened = claim.open(mode);
            // A read behind the end says so itself.
            assert_eq!(opened.is_ok(), may_open || mode == OpenMode::READ, "{bytes}");
            let refused = opened.err().is_none_or(|error| matches!(error, TargetError::Changed { .. }));
            assert!(refused, "{bytes}");
        }
    }
}

#[test]
fn a_file_open_under_another_name_is_open() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    fs::write(&first, vec![7; 8192]).unwrap();
    fs::hard_link(&first, &second).unwrap();
    let mut writer = std::process::Command::new("sh");
    writer.args(["-c", "exec 3<>\"$0\"; echo; read x"]).arg(&second);
    writer.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    std::io::Read::read_exact(&mut writer.stdout.take().unwrap(), &mut [0]).unwrap();
    let authorized = authorize(&look(&first), Access::Write, &overwrite());
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert_eq!(authorized.unwrap_err().code, "in-use");
}

#[test]
fn what_is_no_file_is_said() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("empty"), "").unwrap();
    run("mkfifo", &[at("fifo").to_str().unwrap()]);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    std::os::unix::fs::symlink("ring", at("ring")).unwrap();
    for (path, expected) in [
        (at("empty"), "empty"),
        (at("fifo"), "not-measurable"),
        (at("socket"), "not-measurable"),
        (at("dangling"), "not-found"),
        (at("ring"), "denied"),
        (at("missing"), "not-found"),
        (at("empty/x"), "denied"),
        ("/dev/null".into(), "not-measurable"),
        ("/proc/version".into(), "not-measurable"),
        ("/sys/kernel/mm/ksm/run".into(), "not-measurable"),
        ("/proc".into(), "not-measurable"),
        ("".into(), "not-found"),
    ] {
        if path.starts_with("/sys") && !path.exists() {
            continue;
        }
        assert_eq!(code(&path), expected, "{}", path.display());
    }
    let error = look_error("sim:tms-ramsat");
    assert_eq!(error.code(), "unknown-sim");
    assert!(error.to_string().contains("tms-ramsat"), "{error}");
    let error =
        claim(look(directory.path()), Access::Read, &Permission::default(), &Roots::default()).unwrap_err();
    assert!(matches!(error, TargetError::IsDirectory { .. }));
}

#[test]
fn holes_and_reservations_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sparse");
    let file = fs::File::create(&path).unwrap();
    file.set_len(4 * MIB).unwrap();
    file.write_all_at(&[1; 4096], MIB).unwrap();
    // Blocks that are on their way out count as unwritten.
    file.sync_all().unwrap();
    drop(file);
    let Some(lies) = look(&path).allocation else {
        eprintln!("SKIPPED: the temporary directory's filesystem has no FIEMAP");
        return;
    };
    assert_eq!((lies.mapped_bytes, lies.hole_bytes), (4096, 4 * MIB - 4096));
    let claim = claimed(&path, Access::Read, &Permission::default());
    assert_eq!(claim.allocation(0, MIB).unwrap().hole_bytes, MIB);
    assert_eq!(claim.allocation(MIB, 4096).unwrap().mapped_bytes, 4096);
}

#[test]
fn a_backing_file_and_a_swap_file_are_never_overwritten() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(8 * MIB).create().unwrap();
    let before = device.content_hash().unwrap();
    let link = device.backing_path().with_file_name("hard-link");
    fs::hard_link(device.backing_path(), &link).unwrap();
    for path in [device.backing_path(), &link] {
        let refusal = refusal(path, &overwrite());
        assert_eq!(refusal.code, "backing-file");
        assert!(
            refusal.message.contains(&format!("{} keeps its data in", device.name())),
            "{}",
            refusal.message
        );
    }
    assert_eq!(device.content_hash().unwrap(), before);
    authorize(&look(device.backing_path()), Access::Read, &Permission::default()).unwrap();
    drop(device);

    if !requires(&[Need::Tool("mkswap"), Need::Tool("swapon"), Need::Tool("dd")]) {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let swap = directory.path().join("swap");
    let path = swap.to_str().unwrap();
    run("dd", &["if=/dev/zero", &format!("of={path}"), "bs=1M", "count=2", "status=none"]);
    run("chmod", &["600", path]);
    run("mkswap", &[path]);
    run("swapon", &[path]);
    let refused = std::panic::catch_unwind(|| refusal(&swap, &overwrite()).code);
    run("swapoff", &[path]);
    assert_eq!(refused.unwrap(), "swap");
}

#[test]
fn a_file_that_another_writes_is_refused() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let script = "exec 3>>\"$1\"; echo ready; exec sleep 600";
    let mut other = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(other.stdout.take().unwrap()), &mut line)
        .unwrap();
    let refused = std::panic::catch_unwind(|| refusal(&path, &overwrite()));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(refused.unwrap().code, "in-use");
    claimed(&path, Access::Write, &overwrite());
}

#[test]
fn directories_tell_their_space_and_their_disk() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let examined = look(directory.path());
    let Place::Directory { path, free_bytes, total_bytes, .. } = &examined.place else {
        panic!("no directory")
    };
    assert_eq!(path, &directory.path().canonicalize().unwrap());
    assert!(free_bytes < total_bytes && *total_bytes > 0);
    let filesystem = examined.target.filesystem.as_ref().unwrap();
    assert!(!filesystem.kind.is_empty() && filesystem.options.contains("rw"));
    let shm = Path::new("/dev/shm");
    if shm.is_dir() && run("stat", &["-f", "-c", "%T", "/dev/shm"]) == "tmpfs" {
        let refusal = authorize(&look(shm), Access::Write, &Permission::default()).unwrap_err();
        assert_eq!(refusal.code, "in-memory");
        assert_eq!(
            refusal.message,
            "refusing to create a test file in /dev/shm: its filesystem is in memory, so there is no disk to measure"
        );
    }
}

/// Nothing uses them, and no flag allows it: `rdsk run /etc/passwd --overwrite` did it.
#[test]
fn files_of_the_system_programs_and_small_files_are_never_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, begin: &[u8], bytes: u64, mode: u32| {
        let path = directory.path().join(name);
        let file = fs::File::create(&path).unwrap();
        file.write_all_at(begin, 0).unwrap();
        file.set_len(bytes).unwrap();
        file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let passwd = fs::read("/etc/passwd").unwrap();
    for (path, code, words) in [
        ("/etc/passwd".into(), "system-file", "it belongs to the operating system (it lies in /etc)"),
        (at("script", b"#!/bin/sh\n", 2 * MIB, 0o600), "program", "it begins with #!"),
        (at("library", b"\x7fELF", 2 * MIB, 0o600), "program", "it begins as an ELF file"),
        (at("tool", b"text", 2 * MIB, 0o610), "program", "its mode says that it may be executed"),
        (at("key", b"text", MIB - 1, 0o600), "small-file", "it is smaller than 1 MiB"),
    ] {
        let refusal = refusal(&path, &overwrite());
        assert_eq!(refusal.code, code, "{}", refusal.message);
        assert!(refusal.message.contains(words), "{}", refusal.message);
        assert!(refusal.hint.contains("name a directory to have a test file"), "{}", refusal.hint);
        claimed(&path, Access::Read, &Permission::default());
    }
    assert_eq!(fs::read("/etc/passwd").unwrap(), passwd);
    claimed(&at("data", b"text", MIB, 0o600), Access::Write, &overwrite());
}

/// A copy of a filesystem that another host had mounted when it was taken.
#[test]
fn an_image_that_another_host_has_mounted() {
    let _turn = turn();
    if !requires(&[Need::Ext4, Need::Tool("dumpe2fs")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    fs::File::create(&image).unwrap().set_len(16 * MIB).unwrap();
    let name = image.to_str().unwrap();
    // Without checksums, so that the number that a host counts up can be set here.
    run("mkfs.ext4", &["-q", "-O", "mmp,^metadata_csum", name]);
    claimed(&image, Access::Write, &overwrite());
    let said = run("dumpe2fs", &["-h", name]);
    let number = |key: &str| -> u64 {
        said.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().parse().unwrap()
    };
    let at = number("MMP block number:") * number("Block size:") + 4;
    fs::File::options().write(true).open(&image).unwrap().write_all_at(&[0x34, 0x12, 0, 0], at).unwrap();
    let refusal = refusal(&image, &overwrite());
    assert_eq!(refusal.code, "mounted", "{}", refusal.message);
    assert!(
        refusal.message.contains("multi-mount protection says that a host has it mounted"),
        "{}",
        refusal.message
    );
    assert!(refusal.hint.contains(&format!("tune2fs -f -E clear_mmp {name}")), "{}", refusal.hint);
    claimed(&image, Access::Read, &Permission::default());
    run("tune2fs", &["-f", "-E", "clear_mmp", name]);
    claimed(&image, Access::Write, &overwrite());
}

/// Under a bind mount the path says nothing of where the file lies.
#[test]
fn a_file_of_the_system_is_known_under_a_bind_mount() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (tree, alone) = (directory.path().join("tree"), directory.path().join("alone"));
    fs::create_dir(&tree).unwrap();
    fs::write(&alone, "").unwrap();
    let mount = |what: &str, place: &Path| {
        run("mount", &["--bind", what, place.to_str().unwrap()]);
        support::Mounted { point: place.to_owned() }
    };
    let mounted = [mount("/etc", &tree), mount("/etc/passwd", &alone)];
    for path in [tree.join("passwd"), alone] {
        // Who resolves no bind mount sees a small file, which is said after it.
        let refusal = refusal(&path, &overwrite());
        assert_eq!(refusal.code, "system-file", "{}", refusal.message);
        assert!(refusal.message.contains("it lies in /etc, under another name"), "{}", refusal.message);
    }
    drop(mounted);
}

/// The name that sysfs shows is gone; the file has another, and the loop device still writes to it.
#[test]
fn a_backing_file_is_known_by_more_than_its_name() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    fs::write(&first, vec![7; 1 << 20]).unwrap();
    fs::hard_link(&first, &second).unwrap();
    let node = attach_file(&first).unwrap();
    fs::remove_file(&first).unwrap();
    let authorized = authorize(&look(&second), Access::Write, &overwrite());
    run("losetup", &["--detach", node.to_str().unwrap()]);
    assert_eq!(authorized.unwrap_err().code, "backing-file");
    assert_eq!(fs::read(&second).unwrap(), vec![7; 1 << 20]);
}

/// A plan that is only shown examines its files, too. The kernel may write the pages out by itself, and then another attempt counts.
#[test]
fn examining_a_file_leaves_its_dirty_pages_to_their_owner() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Cachestat]) {
        return;
    }
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("dirty").unwrap();
    let mount = device.mount().unwrap();
    first_right(20, || {
        let path = mount.path().join("mine");
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        let lies = look(&path).allocation.unwrap();
        assert_eq!(lies.hole_bytes, 0, "what has no place yet is data");
        let state = rdsk_sys::cache::cachestat(fs::File::open(&path).unwrap(), 0, 0).unwrap();
        fs::remove_file(&path).unwrap();
        // Blocks that are on their way out count as unwritten.
        let is_right = lies.mapped_bytes == MIB && state.dirty_bytes() == Some(MIB);
        ensure(is_right, || format!("{lies:?} {state:?}"))
    });
}

/// A library is mapped privately and its file closed: the kernel would let it be overwritten under the program that runs it.
#[test]
fn a_library_that_a_program_runs() {
    let _turn = turn();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let is_library = |path: &&str| path.contains("/libgcc_s.so") || path.contains("/libc.so");
    let Some(library) = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(is_library)
    else {
        eprintln!("SKIPPED: this test is linked statically");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("library.so");
    std::fs::copy(library, &copy).unwrap();
    let mut program =
        std::process::Command::new("sleep").arg("600").env("LD_PRELOAD", &copy).spawn().unwrap();
    let shown = copy.to_string_lossy().into_owned();
    let has_it = || {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.id())).unwrap_or_default();
        maps.lines().any(|line| line.ends_with(&shown))
    };
    let question = || {
        assert!(rdsk_testkit::wait_until(std::time::Duration::from_secs(60), has_it));
        refusal(&copy, &overwrite())
    };
    let refusal = std::panic::catch_unwind(question);
    program.kill().and_then(|()| program.wait()).unwrap();
    let refusal = refusal.unwrap();
    assert_eq!(refusal.code, "in-use");
    assert!(refusal.message.contains("(sleep) has it mapped"), "{}", refusal.message);
    let is_free = || look(&copy).uses.iter().all(|used| used.kind == rdsk_targets::UseKind::Program);
    assert!(rdsk_testkit::wait_until(std::time::Duration::from_secs(60), is_free), "{:?}", look(&copy).uses);
}
