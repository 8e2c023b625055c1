//! The life of a test file: written with real data, removed on every exit, found again after a kill, and never a file
//! of the user's. One test removes all files of the process, so the tests that have files take turns.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{MIB, Mounted, layers, look, run, turn, write_mode};
use rdsk_model::{Filesystem, IoPath, StopFlag};
use rdsk_targets::{
    Access, Claim, CreatedTestFile, OpenMode, Orphans, RemovedOrphan, Roots, SharedFile, TargetError,
    TestFileLeft, TestFileOptions, TestFileProgress, TestFileSize, await_laid_out, create_test_file,
    may_be_laid_out, remove_after, remove_all_test_files_now, remove_orphans,
};
use rdsk_testkit::{LoopDevice, Need, requires};
use rustix::fs::{FlockOperation, XattrFlags};
use std::fs;
use std::path::{Path, PathBuf};

fn options(size: TestFileSize) -> TestFileOptions {
    TestFileOptions { size, seed: 1, is_rewritten: true, stop: StopFlag::new() }
}

fn fixed(bytes: u64) -> TestFileOptions {
    options(TestFileSize::Fixed(bytes))
}

fn make(directory: &Path, options: &TestFileOptions) -> Result<(Claim, CreatedTestFile), TargetError> {
    create_test_file(&look(directory), options, &Roots::default(), &mut |_| {})
}

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn orphans(directory: &Path) -> Orphans {
    remove_orphans(directory, None).unwrap()
}

#[test]
fn it_is_written_really_and_goes_with_its_claim() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let mut seen: Vec<TestFileProgress> = Vec::new();
    let odd = 3 * MIB + 12_345;
    let (claim, made) =
        create_test_file(&look(directory.path()), &fixed(odd), &Roots::default(), &mut |progress| {
            seen.push(progress);
        })
        .unwrap();
    assert_eq!((made.bytes, claim.size_bytes()), (odd, odd));
    assert!(made.elapsed_ns > 0 && made.write_bytes_per_s > 0.0);
    assert_eq!(seen.last().unwrap().done_bytes, odd);
    assert_eq!(names(directory.path()), [claim.path()]);
    let meta = fs::metadata(claim.path()).unwrap();
    assert_eq!(meta.len(), odd);
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&meta) & 0o7777, 0o600);
    let content = fs::read(claim.path()).unwrap();
    let blocks: std::collections::HashSet<&[u8]> = content.chunks(512).collect();
    assert_eq!(blocks.len(), content.len().div_ceil(512), "a block occurs twice");
    assert!(!content.chunks(512).any(|block| block.iter().all(|&byte| byte == 0)));
    if let Some(lies) = claim.allocation(0, odd) {
        assert_eq!((lies.mapped_bytes, lies.hole_bytes, lies.unwritten_bytes), (odd, 0, 0));
    }
    assert!(claim.target.made_by_rdsk && claim.access() == Access::Write);
    if claim.target.direct_io == Some(true) {
        claim.open(write_mode()).unwrap();
        claim.open(write_mode()).unwrap();
    }
    drop(claim);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_file_that_is_laid_out_for_others_takes_no_place_and_goes() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    let lay_out =
        || SharedFile::lay_out(&path, &fixed(2 * MIB), &Roots::default(), &mut std::io::sink(), &mut |_| {});
    assert!(may_be_laid_out(&path) && !may_be_laid_out(&directory.path().join("no/shared")));
    let file = lay_out().unwrap();
    assert_eq!((file.path(), file.bytes()), (path.as_path(), 2 * MIB));
    await_laid_out(&path, 2 * MIB, &fixed(2 * MIB)).unwrap();
    let mut mark = [0; 8];
    let marked = rustix::fs::getxattr(&path, "user.rdsk.test-file", &mut mark);
    assert!(matches!(marked, Ok(1) | Err(rustix::io::Errno::OPNOTSUPP)), "{marked:?}");
    // Other processes find no lock, which would be that of a user.
    let open = fs::File::open(&path).unwrap();
    rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive).unwrap();
    drop((file, open));
    assert!(names(directory.path()).is_empty());
    // A file of the user's stays, and so does one that took the name meanwhile.
    fs::write(&path, "letters").unwrap();
    assert!(!may_be_laid_out(&path));
    assert_eq!(lay_out().unwrap_err().code(), "changed");
    assert_eq!(fs::read(&path).unwrap(), b"letters");
    fs::remove_file(&path).unwrap();
    let file = lay_out().unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "letters").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"letters");
    // So does what a link of this name leads to, whether or not it is there.
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(!may_be_laid_out(&path) && lay_out().is_err());
    assert_eq!(names(directory.path()), [path]);
}

#[test]
fn a_guard_removes_what_a_killed_process_has_laid_out() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    // What happens to the file while its guard waits, and whether something has the name afterwards.
    type Meanwhile = fn(&Path);
    let cases: [(Meanwhile, bool); 3] = [
        (|_| {}, false),
        (|path| fs::remove_file(path).unwrap(), false),
        (
            |path| {
                fs::remove_file(path).unwrap();
                fs::write(path, "letters").unwrap();
            },
            true,
        ),
    ];
    for (meanwhile, stays) in cases {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let guard = std::thread::spawn(|| remove_after(reader));
        let file =
            SharedFile::lay_out(&path, &fixed(MIB), &Roots::default(), &mut writer, &mut |_| {}).unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let is_held = || {
            let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
            links.filter(|link| fs::read_link(link.path()).is_ok_and(|target| target == path)).count() == 2
        };
        assert!(rdsk_testkit::wait_until(crate::support::LONG, is_held), "the guard has no hold of it");
        let before = inode(&path);
        // The process is gone without a chance to remove it.
        std::mem::forget(file);
        meanwhile(&path);
        drop(writer);
        guard.join().unwrap().unwrap();
        assert_eq!(path.exists(), stays);
        if stays {
            assert!(inode(&path) != before && fs::read(&path).unwrap() == b"letters");
            fs::remove_file(&path).unwrap();
        }
    }
    // A process that ends before it made one has told nothing.
    assert!(remove_after(std::io::empty()).is_err());
}

#[test]
fn the_seed_decides_the_content() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let content = |seed| {
        let (claim, _) = make(directory.path(), &TestFileOptions { seed, ..fixed(MIB) }).unwrap();
        fs::read(claim.path()).unwrap()
    };
    assert_eq!(content(1), content(1));
    assert_ne!(content(1), content(2));
}

#[test]
fn a_panic_removes_it() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let panicked = std::thread::spawn(move || {
        let (claim, _) = make(&path, &fixed(MIB)).unwrap();
        assert!(claim.path().exists());
        panic!("on purpose, to see what stays behind");
    })
    .join();
    assert!(panicked.is_err());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn the_watchdog_removes_it_from_another_thread() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let (claim, _) = make(directory.path(), &fixed(MIB)).unwrap();
    std::thread::spawn(remove_all_test_files_now).join().unwrap();
    assert!(names(directory.path()).is_empty());
    remove_all_test_files_now();
    // A measurement in progress goes on undisturbed, and a new file of that name is not ours to remove.
    claim.open(OpenMode::READ).unwrap();
    let path = claim.path().to_owned();
    fs::write(&path, "of somebody else").unwrap();
    drop(claim);
    assert!(path.exists());
}

#[test]
fn a_file_put_in_its_place_stays() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let (claim, _) = make(directory.path(), &fixed(MIB)).unwrap();
    let path = claim.path().to_owned();
    fs::rename(&path, directory.path().join("moved")).unwrap();
    fs::write(&path, "of somebody else").unwrap();
    drop(claim);
    assert_eq!(fs::read_to_string(&path).unwrap(), "of somebody else");
}

#[test]
fn stopping_in_the_middle_removes_it() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let options = fixed(1 << 30);
    let stop = options.stop.clone();
    let mut calls = 0;
    let error = create_test_file(&look(directory.path()), &options, &Roots::default(), &mut |_| {
        calls += 1;
        stop.raise();
    })
    .unwrap_err();
    assert!(matches!(error, TargetError::Interrupted), "{error}");
    assert_eq!((calls, names(directory.path()).len()), (1, 0));
    assert!(matches!(make(directory.path(), &options), Err(TargetError::Interrupted)));
}

#[test]
fn an_adaptive_file_ends_with_its_time_and_is_whole() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let wish = |max_elapsed_ns| options(TestFileSize::Adaptive { max_bytes: 1 << 30, max_elapsed_ns });
    let (claim, made) = make(directory.path(), &wish(1)).unwrap();
    assert_eq!(made.bytes, MIB, "no time at all still gives a file");
    drop(claim);
    let max_elapsed_ns = 300_000_000;
    let (claim, made) = make(directory.path(), &wish(max_elapsed_ns)).unwrap();
    assert_eq!(made.bytes % MIB, 0);
    assert_eq!(fs::metadata(claim.path()).unwrap().len(), made.bytes);
    // How long a busy disk takes for the last flush is not promised: timing.rs sees to it on a quiet one.
    assert!(made.bytes >= MIB && made.bytes <= 1 << 30, "{made:?}");
    if let Some(lies) = claim.allocation(0, made.bytes) {
        assert_eq!(lies.mapped_bytes, made.bytes);
    }
    let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(claim.path()).unwrap());
    assert!(
        blocks * 512 < made.bytes + 4 * MIB,
        "the reserve behind the end is given back: {blocks} sectors"
    );
    eprintln!("made {} MiB at {:.0} MiB/s", made.bytes >> 20, made.write_bytes_per_s / 1_048_576.0);
}

#[test]
fn an_orphan_goes_and_a_file_in_use_stays() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let (claim, _) = make(directory.path(), &fixed(MIB)).unwrap();
    assert_eq!(orphans(directory.path()).removed, [], "the lock is held");
    assert!(claim.path().exists());
    // What SIGKILL leaves: the file with its mark, and no lock. A copy of everything but the lock is the same.
    let orphan = directory.path().join(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    fs::copy(claim.path(), &orphan).unwrap();
    let unmarked = orphans(directory.path()).removed;
    let file = fs::File::open(&orphan);
    if unmarked.is_empty() {
        let file = file.unwrap();
        rustix::fs::fsetxattr(&file, "user.rdsk.test-file", b"1", XattrFlags::empty()).unwrap();
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        assert_eq!(orphans(directory.path()).removed, [], "somebody else's lock is held");
        drop(file);
        let removed = orphans(directory.path()).removed;
        assert_eq!((removed[0].path.as_path(), removed[0].bytes, removed.len()), (orphan.as_path(), MIB, 1));
    }
    assert!(!orphan.exists());
    assert_eq!(names(directory.path()), [claim.path()]);
}

/// Names the directory in which a copy of this test program creates a test file and waits to be killed.
const CHILD_VARIABLE: &str = "RDSK_TEST_KILLED_CHILD";

#[test]
fn child_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD_VARIABLE) else { return };
    let _made = make(Path::new(&directory), &fixed(MIB)).unwrap();
    fs::write(Path::new(&directory).join("ready"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn what_a_kill_leaves_is_removed_by_the_next_run() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "testfile::child_that_is_killed"])
        .env(CHILD_VARIABLE, directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ready = directory.path().join("ready");
    for _ in 0..30_000 {
        if ready.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let while_alive = remove_orphans(directory.path(), None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ready.exists());
    assert_eq!(while_alive.unwrap(), Orphans::default(), "it is in use");
    assert_eq!(names(directory.path()).len(), 2);
    let removed = orphans(directory.path()).removed;
    assert_eq!((removed.len(), removed[0].bytes), (1, MIB));
    assert_eq!(names(directory.path()), [ready]);
}

#[test]
fn what_a_user_has_named_alike_survives() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let name = |last: char| at(&format!(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FA{last}.tmp"));
    let marked = |path: &Path| {
        let file = fs::File::open(path).unwrap();
        rustix::fs::fsetxattr(&file, "user.rdsk.test-file", b"1", XattrFlags::empty()).is_ok()
    };
    fs::write(at(".rdsk-test-notes.tmp"), "my notes").unwrap();
    let has_marks = marked(&at(".rdsk-test-notes.tmp"));
    fs::create_dir(name('0')).unwrap();
    std::os::unix::fs::symlink(at(".rdsk-test-notes.tmp"), name('1')).unwrap();
    fs::write(name('2'), "linked twice").unwrap();
    marked(&name('2'));
    fs::hard_link(name('2'), at("second name")).unwrap();
    run("mkfifo", &[name('3').to_str().unwrap()]);
    if has_marks {
        fs::write(name('4'), "a name like ours, and no mark").unwrap();
    }
    let before = names(directory.path()).len();
    let found = orphans(directory.path());
    let mut left: Vec<_> = found.left.into_iter().map(|left| (left.path, left.reason)).collect();
    left.sort();
    let mut told = vec![(name('2'), "it has another name, too".to_owned())];
    if has_marks {
        told.push((name('4'), "it lacks the mark of a test file".to_owned()));
    }
    assert_eq!((found.removed, left), (Vec::new(), told));
    assert_eq!(names(directory.path()).len(), before);
    if requires(&[Need::Root]) {
        fs::write(name('5'), "of another user").unwrap();
        marked(&name('5'));
        std::os::unix::fs::chown(name('5'), Some(65_534), None).unwrap();
        let found = orphans(directory.path());
        let told = TestFileLeft { path: name('5'), reason: "it belongs to user 65534".to_owned() };
        assert!(found.removed.is_empty() && found.left.contains(&told), "{found:?}");
        assert_eq!(names(directory.path()).len(), before + 1, "what shows the owner of new files is gone");
    }
    assert!(remove_orphans(&at(".rdsk-test-notes.tmp"), None).is_err());
}

/// A mount that ends with its test.
struct Unmount<'path>(&'path Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0).status();
    }
}

/// FAT, exFAT and CIFS do so with `uid=`; a server of NFS that maps root to `nobody` gives new files another owner, too.
#[test]
fn an_orphan_goes_where_the_mount_gives_all_files_one_owner() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Fuse, Need::Tool("bindfs")]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (below, point) = (directory.path().join("below"), directory.path().join("point"));
    fs::create_dir(&below).unwrap();
    fs::create_dir(&point).unwrap();
    // The names of marks go nowhere, so that the name of the file decides, as on FAT.
    let options = ["-u", "65534", "--xattr-none", below.to_str().unwrap(), point.to_str().unwrap()];
    run("bindfs", &options);
    let mounted = Unmount(&point);
    let orphan = point.join(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    fs::write(&orphan, "left by a kill").unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&orphan).unwrap());
    let held = fs::File::open(&orphan).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    let in_use = orphans(&point);
    drop(held);
    let (found, rest) = (orphans(&point), names(&point));
    drop(mounted);
    assert_eq!((owner, in_use), (65_534, Orphans::default()));
    let removed = RemovedOrphan { path: orphan, bytes: 14 };
    assert_eq!((found, rest), (Orphans { removed: vec![removed], left: Vec::new() }, Vec::new()));
}

#[test]
fn an_orphan_stays_where_another_host_may_hold_it() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let orphan = directory.path().join(".rdsk-test-01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    fs::write(&orphan, "").unwrap();
    let on = |options: &str| Filesystem { kind: "nfs".to_owned(), options: options.to_owned() };
    let found = remove_orphans(directory.path(), Some(&on("rw,nolock,local_lock=all"))).unwrap();
    let reason = "its filesystem does not show whether another host uses it".to_owned();
    assert_eq!(
        found,
        Orphans { removed: Vec::new(), left: vec![TestFileLeft { path: orphan.clone(), reason }] }
    );
    let found = remove_orphans(directory.path(), Some(&on("rw,local_lock=none"))).unwrap();
    assert_eq!(found.removed, [RemovedOrphan { path: orphan, bytes: 0 }]);
}

#[test]
fn a_full_filesystem_is_an_error_and_left_clean() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let _turn = turn();
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("small").unwrap();
    let mount = device.mount().unwrap();
    let (claim, made) =
        make(mount.path(), &options(TestFileSize::Adaptive { max_bytes: 1 << 30, max_elapsed_ns: u64::MAX }))
            .unwrap();
    let space = rustix::fs::statvfs(mount.path()).unwrap();
    assert!(space.f_bavail * 10 >= space.f_blocks, "{} of {} blocks free", space.f_bavail, space.f_blocks);
    assert!(made.bytes >= 16 * MIB && made.bytes < 64 * MIB, "{made:?}");
    assert!(claim.target.device.as_ref().is_some_and(|facts| facts.name == device.name()));
    assert_eq!(claim.target.filesystem.as_ref().unwrap().kind, "ext4");
    drop(claim);

    let error = make(mount.path(), &fixed(60 * MIB)).unwrap_err();
    assert!(matches!(error, TargetError::TooLarge { .. }), "{error}");
    assert!(error.hint().unwrap().contains("ask for at most "));

    assert_eq!(error.problem().kind, rdsk_model::ProblemKind::Refused);
    let left: Vec<PathBuf> = names(mount.path())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(".rdsk-test-"))
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn a_directory_that_takes_no_file_says_why() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let _turn = turn();
    let device = LoopDevice::builder().size(32 * MIB).create().unwrap();
    device.mkfs_ext4("fixed").unwrap();
    let mount = device.mount().unwrap();
    run("mount", &["-o", "remount,ro", mount.path().to_str().unwrap()]);
    let error = make(mount.path(), &fixed(MIB)).unwrap_err();
    assert_eq!(error.code(), "read-only");
    assert!(error.to_string().contains("is mounted read-only"), "{error}");
    assert_eq!(error.hint().unwrap(), "name a directory that you may write to");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "x").unwrap();
    assert!(matches!(make(file.path(), &fixed(MIB)), Err(TargetError::NotDirectory { .. })));
}

#[test]
fn direct_writes_are_used_where_the_filesystem_takes_them() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let (claim, made) = make(directory.path(), &fixed(2 * MIB)).unwrap();
    let expected = if claim.target.direct_io == Some(true) { IoPath::Direct } else { IoPath::Buffered };
    assert_eq!(made.path, expected);
}

/// Live and rescue systems have an overlay over memory as their root, whose upper directory can be seen or not.
#[test]
fn an_overlay_over_memory_is_no_disk() {
    if !requires(&[Need::Root, Need::Overlay]) {
        return;
    }
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let memory = Mounted::tmpfs(place.path());
    layers(&memory.point);
    let refused = |result: Result<(Claim, CreatedTestFile), TargetError>| match result {
        Err(TargetError::Refused(refusal)) => (refusal.code, refusal.message),
        other => panic!("{other:?}"),
    };
    let overlay = Mounted::overlay(&memory.point, "");
    let (code, message) = refused(make(&overlay.point, &fixed(4 * MIB)));
    assert_eq!(code, "in-memory");
    let upper = memory.point.join("upper");
    assert!(
        message.contains(&format!("what is written there in {}, in memory", upper.display())),
        "{message}"
    );
    assert!(
        rdsk_targets::authorize(&look(&overlay.point), Access::Write, &rdsk_targets::Permission::default())
            .is_err()
    );
    drop(overlay);
    let overlay = Mounted::overlay_from_elsewhere(&memory.point);
    let mut shown = Vec::new();
    let made = create_test_file(&look(&overlay.point), &fixed(4 * MIB), &Roots::default(), &mut |progress| {
        shown.push(progress);
    });
    assert_eq!(refused(made).0, "in-memory");
    assert_eq!(shown, [], "it is refused before it grows");
    assert!(names(&overlay.point).is_empty());
}

/// A container's, whose upper directory cannot be seen there, and one whose name leads to something else.
#[test]
fn an_overlay_over_a_disk_stays_allowed() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::Overlay]) {
        return;
    }
    let _turn = turn();
    let device = LoopDevice::builder().size(64 * MIB).create().unwrap();
    device.mkfs_ext4("overlay").unwrap();
    let mount = device.mount().unwrap();
    layers(mount.path());
    for is_seen in [true, false] {
        let overlay = if is_seen {
            Mounted::overlay(mount.path(), "")
        } else {
            Mounted::overlay_from_elsewhere(mount.path())
        };
        let (claim, made) = make(&overlay.point, &fixed(4 * MIB)).unwrap();
        assert_eq!((made.bytes, claim.size_bytes()), (4 * MIB, 4 * MIB), "{is_seen}");
    }
    let overlay = Mounted::overlay(mount.path(), "");
    // What has the name of the upper directory now is another filesystem.
    let hiding = Mounted::tmpfs(&mount.path().join("upper"));
    drop(make(&overlay.point, &fixed(4 * MIB)).unwrap());
    drop(hiding);
}
