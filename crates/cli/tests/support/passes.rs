//! The command lines of the tests of rates: passes of a limited device, read or written, direct and buffered.

use super::{identity, rdsk};
use rdsk_testkit::{BlkioThrottle, Limits, LoopDevice, Need};
use std::ffi::OsStr;
use std::process::Command;

/// What a throttled device needs.
pub(crate) const NEEDS: [Need; 3] = [Need::Root, Need::Loop, Need::BlkioThrottle];

pub(crate) fn throttle(disk: &LoopDevice, limits: Limits) -> BlkioThrottle {
    BlkioThrottle::new(disk.major_minor(), limits).expect("requires() found throttles")
}

/// `stream` reads so many bytes in blocks of 16 KiB.
pub(crate) fn read_passes(disk: &LoopDevice, bytes: &str, budget: &str) -> Command {
    reads(disk, &["--bs", "16k", "--bytes", bytes, "--budget", budget])
}

/// `stream` reads so many bytes in blocks of 64 KiB, eight in flight on the direct path.
pub(crate) fn deep_reads(disk: &LoopDevice, bytes: &str, budget: &str) -> Command {
    reads(disk, &["--bs", "64k", "--iodepth", "8", "--bytes", bytes, "--budget", budget])
}

fn reads(disk: &LoopDevice, flags: &[&str]) -> Command {
    let mut words: Vec<&dyn AsRef<OsStr>> = vec![&"stream"];
    let path = disk.path();
    words.extend::<[&dyn AsRef<OsStr>; 3]>([&path, &"--rw", &"read"]);
    words.extend(flags.iter().map(|flag| flag as &dyn AsRef<OsStr>));
    rdsk(&words)
}

/// `paths` writes so many bytes in blocks of 16 KiB.
pub(crate) fn write_passes(disk: &LoopDevice, bytes: &str, budget: &str) -> Command {
    rdsk(&[
        &"paths",
        &disk.path(),
        &"--rw",
        &"write",
        &"--bs",
        &"16k",
        &"--bytes",
        &bytes,
        &"--budget",
        &budget,
        &"--destroy",
        &identity(disk),
    ])
}
