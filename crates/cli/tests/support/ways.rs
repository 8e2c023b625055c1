//! The ways to issue random reads: with and without io_uring, on a real device over a disk of known latency. It judges
//! nothing.

use super::{MIB, rdsk, record_of};
use rdsk_testkit::sandbox::Errno;
use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice, Need, Sysno, without};
use serde_json::Value;

/// What the tests need.
pub(crate) const NEEDS: [Need; 4] = [Need::Root, Need::Fuse, Need::Loop, Need::IoUring];
const MS: u64 = 1_000_000;
/// Requests in flight.
pub(crate) const DEPTH: u64 = 32;
/// No other program reads 12 KiB at once, so that the first and the last of this size in the log bound what the cells did.
pub(crate) const BLOCK: u64 = 12 << 10;
/// The cell.
pub(crate) const ID: &str = "stream/read/direct";

/// A way to run the program: what is forbidden, with what answer, the flags, and the engine that the Record must name.
pub(crate) struct Way {
    /// Forbidden calls.
    pub(crate) forbidden: &'static [Sysno],
    /// The answer to them.
    pub(crate) errno: Errno,
    /// Flags of the program.
    pub(crate) flags: &'static [&'static str],
    /// The engine that the Record names.
    pub(crate) engine: &'static str,
    /// Whether another engine than the planned one issues the I/O, which must be reported.
    pub(crate) is_fallback: bool,
    /// What the disk takes for a read.
    pub(crate) latency_ns: u64,
}

/// Threads have a disk of 8 ms: at 1 ms they would need more processor time for 32 000 switches per second than a busy
/// machine of two processors has beside the disk's own (measured on one, 2026-11: 24 400 against the ring's 26 700).
pub(crate) const WAYS: [Way; 5] = [
    Way {
        forbidden: &[Sysno::io_uring_setup],
        errno: Errno::PERM,
        flags: &[],
        engine: "aio",
        is_fallback: true,
        latency_ns: MS,
    },
    Way {
        forbidden: &[Sysno::io_uring_setup],
        errno: Errno::NOSYS,
        flags: &["--engine", "io_uring"],
        engine: "aio",
        is_fallback: true,
        latency_ns: MS,
    },
    Way {
        forbidden: &[Sysno::io_uring_setup, Sysno::io_setup],
        errno: Errno::PERM,
        flags: &[],
        engine: "threads",
        is_fallback: true,
        latency_ns: 8 * MS,
    },
    Way {
        forbidden: &[],
        errno: Errno::PERM,
        flags: &["--engine", "aio"],
        engine: "aio",
        is_fallback: false,
        latency_ns: MS,
    },
    Way {
        forbidden: &[],
        errno: Errno::PERM,
        flags: &["--engine", "threads"],
        engine: "threads",
        is_fallback: false,
        latency_ns: 8 * MS,
    },
];

/// The Record of random reads of [`BLOCK`].
pub(crate) fn reads(device: &LoopDevice, latency_ns: u64, way: Option<&Way>) -> Value {
    let mut command =
        rdsk(&[&"stream", &device.path(), &"--rw", &"read", &"--pattern", &"random", &"--bs", &"12k"]);
    // A thousand reads and more, so that filling and draining the queue does not count.
    let runtime = if latency_ns > MS { "1s" } else { "400ms" };
    command.args(["--iodepth", "32", "--runtime", runtime]);
    let Some(way) = way else { return record_of(command) };
    command.args(way.flags);
    match way.forbidden {
        [] => record_of(command),
        calls => without(calls, way.errno, || record_of(command)),
    }
}

impl Way {
    /// A disk with the latency of this way, and the device over it.
    pub(crate) fn disk(&self) -> (FuseDisk, LoopDevice) {
        let behaviour = Behaviour::parallel(64, self.latency_ns);
        let builder = FuseDisk::builder().capacity(64 * MIB).device(behaviour);
        let disk = builder.mount().expect("requires() found FUSE");
        let device = disk.loop_device().expect("requires() found loop devices");
        (disk, device)
    }
}
