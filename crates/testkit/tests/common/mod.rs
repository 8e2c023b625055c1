//! What the tests of the disk of known behaviour share: reading it, and how long that takes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_testkit::{Behaviour, FuseDisk};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn open(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

pub(crate) fn read(file: &File, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, offset)?;
    Ok(buffer)
}

pub(crate) fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

pub(crate) fn median_ns(mut work: impl FnMut(u64)) -> u64 {
    let once = |index| {
        let start = Instant::now();
        work(index);
        u64::try_from(start.elapsed().as_nanos()).unwrap()
    };
    middle((0..41).map(once).collect())
}

/// Seconds that `threads` readers take for `each` reads of 5 ms.
pub(crate) fn seconds_of_readers(disk: &FuseDisk, threads: u64, each: u64) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let file = open(disk.file());
                (0..each).for_each(|index| drop(read(&file, (thread * each + index) * 4096, 4096).unwrap()));
            });
        }
    });
    start.elapsed().as_secs_f64()
}

/// Calls `check` with the time of each kind of request, as seen and as programmed, in ns.
pub(crate) fn check_programmed_times(check: impl Fn(u64, u64)) {
    let behaviour = Behaviour { flush_ns: 6 * MS, ..Behaviour::single(2 * MS) }
        .zone_latency(MIB..2 * MIB, 5 * MS)
        .zone_rate(2 * MIB..4 * MIB, 16.0 * 1_048_576.0);
    let disk = FuseDisk::builder().device(behaviour).mount().unwrap();
    let file = open(disk.file());
    check(median_ns(|_| drop(read(&file, 0, 4096).unwrap())), 2 * MS);
    check(median_ns(|_| drop(read(&file, MIB, 4096).unwrap())), 5 * MS);
    check(median_ns(|_| drop(read(&file, 2 * MIB, 65536).unwrap())), 1_000_000_000 / 256);
    check(median_ns(|_| file.write_all_at(&[1; 4096], 8192).unwrap()), 2 * MS);
    check(median_ns(|_| file.sync_all().unwrap()), 6 * MS);
    disk.set_behaviour(Behaviour::single(4 * MS));
    check(median_ns(|_| drop(read(&file, MIB, 4096).unwrap())), 4 * MS);
}
