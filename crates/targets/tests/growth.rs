//! What sparse files, and files that share their blocks, take of a small filesystem that they lie on, each for itself and together.
#![allow(clippy::unwrap_used, reason = "the functions beside the tests fail the test by panicking")]

use crate::support::{LONG, MIB, Mounted, layers, look, overwrite, run, turn};
use rdsk_targets::{
    Access, Examined, Refusal, Roots, TargetError, authorize, check_growth, claim, share_space,
    writable_bytes,
};
use rdsk_testkit::{LoopDevice, Need, requires, wait_until};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The device, its filesystem, and names in it. xfs takes 300 MiB at least.
fn with_filesystem(test: impl FnOnce(&Path)) {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop, Need::Xfs]) {
        return;
    }
    let device = LoopDevice::builder().size(320 * MIB).create().unwrap();
    device.mkfs_xfs("growth").unwrap();
    let mount = device.mount().unwrap();
    test(mount.path());
}

fn sparse(directory: &Path, name: &str, mib: u64) -> PathBuf {
    let path = directory.join(name);
    File::create(&path).unwrap().set_len(mib * MIB).unwrap();
    path
}

fn writing(path: &Path, write_bytes: Option<u64>) -> Examined {
    Examined { write_bytes, ..look(path) }
}

fn code(refused: Result<(), Refusal>) -> &'static str {
    refused.err().map_or("", |refusal| refusal.code)
}

#[test]
fn files_that_fit_alone_are_refused_together_and_count_with_what_is_written() {
    with_filesystem(|directory| {
        let (a, b) = (sparse(directory, "a.img", 180), sparse(directory, "b.img", 180));
        let (whole_a, whole_b) = (writing(&a, None), writing(&b, None));
        assert_eq!((code(check_growth(&[&whole_a])), code(check_growth(&[&whole_b]))), ("", ""));
        let refused = check_growth(&[&whole_a, &whole_b]).unwrap_err();
        assert_eq!(refused.code, "fills-up");
        assert!(refused.message.contains("a.img") && refused.message.contains("b.img"), "{refused}");
        assert!(
            refused.message.contains("they may together take 360 MiB more of the filesystem of"),
            "{refused}"
        );
        let (part_a, part_b) = (writing(&a, Some(32 * MIB)), writing(&b, Some(32 * MIB)));
        check_growth(&[&part_a, &part_b]).unwrap();
        // A file beyond all of it, of which little is written.
        let large = sparse(directory, "large.img", 10 << 10);
        assert_eq!(code(check_growth(&[&writing(&large, None)])), "fills-up");
        check_growth(&[&writing(&large, Some(32 * MIB))]).unwrap();
        for (write_bytes, may) in [(None, false), (Some(32 * MIB), true)] {
            let examined = writing(&large, write_bytes);
            authorize(&examined, Access::Write, &overwrite()).unwrap();
            match claim(examined, Access::Write, &overwrite(), &Roots::default()) {
                Ok(_) => assert!(may),
                Err(TargetError::Refused(refusal)) => {
                    assert!(!may && refusal.code == "fills-up", "{refusal}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        // A test file in the directory takes of the same.
        let place = look(directory);
        assert!(share_space(&place, &look(directory)));
        let place = Examined { write_bytes: Some(200 * MIB), ..place };
        check_growth(&[&place]).unwrap();
        assert_eq!(code(check_growth(&[&place, &whole_a])), "fills-up");
    });
}

#[test]
fn shared_blocks_are_allocated_anew() {
    with_filesystem(|directory| {
        let (first, second) = (directory.join("first"), directory.join("second"));
        fs::write(&first, vec![7; 160 << 20]).unwrap();
        File::open(&first).unwrap().sync_all().unwrap();
        check_growth(&[&look(&first)]).unwrap();
        run("cp", &["--reflink=always", first.to_str().unwrap(), second.to_str().unwrap()]);
        for path in [&first, &second] {
            let refused = check_growth(&[&look(path)]).unwrap_err();
            assert_eq!(refused.code, "fills-up", "all of its blocks are shared: {refused}");
            assert!(refused.message.contains("it may take 160 MiB more"), "{refused}");
        }
        fs::remove_file(&second).unwrap();
        // XFS gives the blocks of a removed file back in the background.
        assert!(wait_until(LONG, || check_growth(&[&look(&first)]).is_ok()));
    });
}

#[test]
fn an_overlay_copies_a_file_of_a_lower_layer_whole() {
    with_filesystem(|directory| {
        layers(directory);
        fs::write(directory.join("lower/large"), vec![7; 160 << 20]).unwrap();
        fs::write(directory.join("lower/small"), vec![7; 4 << 20]).unwrap();
        fs::write(directory.join("upper/own"), vec![7; 4 << 20]).unwrap();
        for options in ["", ",metacopy=on"] {
            let overlay = Mounted::overlay(directory, options);
            let at = |name: &str| overlay.point.join(name);
            if !options.is_empty() {
                // Now the upper layer has the metadata of it, and the data are where they were.
                run("chmod", &["600", at("large").to_str().unwrap()]);
                assert_eq!(fs::metadata(directory.join("upper/large")).unwrap().len(), 160 << 20);
            }
            let refused = check_growth(&[&writing(&at("large"), Some(MIB))]).unwrap_err();
            assert_eq!(refused.code, "fills-up");
            assert!(refused.message.contains("it may take 160 MiB more of the filesystem of"), "{refused}");
            assert!(refused.message.contains("copies a file whole"), "{refused}");
            assert!(
                !refused.hint.contains("less") && !refused.hint.contains("fallocate"),
                "{}",
                refused.hint
            );
            assert_eq!(writable_bytes(&look(&at("large"))), Some(0));
            check_growth(&[&writing(&at("small"), None)]).unwrap();
            let is_copied =
                |name: &str| format!("{:?}", look(&at(name)).growths).contains("copies a file whole");
            assert_eq!((is_copied("small"), is_copied("own")), (true, false));
        }
    });
}

/// As in a live system: the file of a lower layer is copied to memory when it is written.
#[test]
fn an_overlay_over_memory_takes_memory() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Overlay]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let memory = Mounted::tmpfs(place.path());
    layers(&memory.point);
    fs::write(memory.point.join("lower/large"), vec![7; 4 << 20]).unwrap();
    let overlay = Mounted::overlay(&memory.point, "");
    let growths = format!("{:?}", look(&overlay.point.join("large")).growths);
    assert!(growths.contains("the memory behind"), "{growths}");
}

/// cachestat(2) looks at the pages of the overlay itself, which has none.
#[test]
fn pages_below_an_overlay_are_seen() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Overlay]) {
        return;
    }
    const PAGES: u64 = 64;
    let place = tempfile::tempdir().unwrap();
    let memory = Mounted::tmpfs(place.path());
    layers(&memory.point);
    let overlay = Mounted::overlay(&memory.point, "");
    let cached = |directory: &Path| {
        let path = directory.join("file");
        fs::write(&path, vec![7; usize::try_from(PAGES * rdsk_sys::cache::page_size()).unwrap()]).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        // No disk is below, so nothing can be dropped.
        rdsk_sys::cache::drop_cached(&file, 0, 0).unwrap();
        let page = rdsk_sys::cache::page_size();
        [(0, 0), (page, 2 * page)].map(|(at, len)| rdsk_sys::cache::cachestat(&file, at, len).unwrap().cached)
    };
    assert_eq!(cached(&overlay.point), [PAGES, 2]);
    assert_eq!(cached(&memory.point), [PAGES, 2], "without an overlay");
}

#[test]
fn copying_on_write_takes_space_for_what_is_allocated() {
    let _turn = turn();
    if !requires(&[Need::Root, Need::Loop, Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let device = LoopDevice::builder().size(320 * MIB).create().unwrap();
    run("mkfs.btrfs", &["-q", "-f", device.path().to_str().unwrap()]);
    let mount = device.mount().unwrap();
    let file = mount.path().join("full.img");
    fs::write(&file, vec![7; 150 << 20]).unwrap();
    File::open(&file).unwrap().sync_all().unwrap();
    run("sync", &["-f", file.to_str().unwrap()]);
    let whole = look(&file);
    let refused = check_growth(&[&whole]).unwrap_err();
    assert_eq!(refused.code, "fills-up");
    assert!(refused.message.contains("it may take 150 MiB more of the filesystem of"), "{refused}");
    assert!(refused.message.contains("another place"), "{refused}");
    assert!(!refused.hint.contains("fallocate"), "{}", refused.hint);
    let most = writable_bytes(&whole).unwrap();
    assert!(most > 0 && most < 150 * MIB, "{most}");
    // Of the same look: the filesystem's own work changes the next one.
    let writing = |bytes| check_growth(&[&Examined { write_bytes: Some(bytes), ..whole.clone() }]);
    writing(most).unwrap();
    assert_eq!(code(writing(most + 1)), "fills-up");
    // A test file that is overwritten takes twice its size, one that is only read takes it once.
    fs::remove_file(&file).unwrap();
    run("sync", &["-f", mount.path().to_str().unwrap()]);
    let taking = |again_bytes| {
        let place = look(mount.path());
        let taken = place.test_file_takes(150 * MIB, again_bytes);
        code(check_growth(&[&Examined { write_bytes: Some(taken), ..place }]))
    };
    // What the removed file had comes back in the background.
    wait_until(LONG, || taking(0).is_empty() && taking(4 * MIB).is_empty());
    assert_eq!((taking(0), taking(4 * MIB), taking(150 * MIB)), ("", "", "fills-up"));
}
