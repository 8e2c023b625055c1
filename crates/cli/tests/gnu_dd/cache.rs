//! `nocache` drops from the page cache what GNU dd drops, and nothing else.

use super::has_gnu_dd;
use rdsk_sys::cache::cachestat;
use std::fs::File;
use std::path::Path;
use std::process::Command;

const BYTES: usize = 700_000;
/// The cache is compared in parts of this size.
const PART_BYTES: u64 = 16 << 10;
/// The kernel may take pages back at any time, and then another attempt counts.
const ATTEMPTS: usize = 10;

/// Pages in memory of each part of a file.
fn cached(path: &Path) -> Vec<u64> {
    let file = File::open(path).expect("a file");
    let parts = (0..BYTES as u64 * 2).step_by(usize::try_from(PART_BYTES).expect("small"));
    parts.map(|at| cachestat(&file, at, PART_BYTES).expect("the kernel tells").cached).collect()
}

/// What one program leaves of both files, which are in memory and on the disk before.
fn left_by(words: &[&str], line: &str) -> [Vec<u64>; 2] {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for name in ["in", "out"] {
        std::fs::write(place.path().join(name), vec![7; BYTES]).expect("a file");
        File::open(place.path().join(name)).and_then(|file| file.sync_all()).expect("on the disk");
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["if=in", "of=out"]).args(line.split(' ')).current_dir(place.path());
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{line}: {output:?}");
    ["in", "out"].map(|name| cached(&place.path().join(name)))
}

#[test]
fn nocache_drops_the_same_ranges() {
    if !has_gnu_dd() || cachestat(File::open("/proc/self/exe").expect("a file"), 0, 0).is_err() {
        return;
    }
    for line in [
        "bs=50000 iflag=nocache",
        "bs=50000 iflag=nocache skip=1 count=9",
        "bs=1000 iflag=nocache skip=3 count=2",
        "bs=64k iflag=nocache count=3",
        "bs=64k iflag=nocache count=0 skip=3",
        // Only what is on the disk can be dropped.
        "bs=64k oflag=nocache,dsync conv=notrunc seek=3 count=3",
        "bs=64k oflag=nocache,dsync",
        "bs=64k oflag=nocache count=0 conv=notrunc",
    ] {
        let rdsk = [env!("CARGO_BIN_EXE_rdsk"), "dd", "--explain=off"];
        let mut last = None;
        let is_same = (0..ATTEMPTS).any(|_| {
            let both = (left_by(&["dd"], line), left_by(&rdsk, line));
            let is_same = both.0 == both.1;
            last = Some(both);
            is_same
        });
        assert!(is_same, "{line}: {last:?}");
    }
}
