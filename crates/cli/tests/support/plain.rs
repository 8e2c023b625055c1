//! A loop of plain pread(2), independent of rdsk: it measures the kernel's overhead on the way to a disk of known behaviour,
//! so that the disk can subtract it.

use rdsk_testkit::{Behaviour, FuseDisk, LoopDevice};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::time::Instant;

/// How long the way is measured, in ns of the disk's own time.
const MEASURED_NS: u64 = 100_000_000;

/// Lets plain pread of blocks of this size see what is programmed: one server that takes `latency_ns`.
pub(crate) fn calibrate(disk: &FuseDisk, device: &LoopDevice, latency_ns: u64, block_bytes: usize) {
    disk.set_path_ns(0);
    disk.set_behaviour(Behaviour::single(latency_ns));
    let reads = (MEASURED_NS / latency_ns).clamp(20, 300);
    let times_ns = plain_ns(disk, device, reads, block_bytes);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some microseconds")]
    disk.set_path_ns((times_ns[times_ns.len() / 2] as u64).saturating_sub(latency_ns));
    // The device is idle again, with the way to it known.
    disk.set_behaviour(Behaviour::single(latency_ns));
}

/// The times of plain direct reads, in ns and ascending: what any program sees now. They are made on the processor of the
/// disk where it serves on one.
fn plain_ns(disk: &FuseDisk, device: &LoopDevice, reads: u64, block_bytes: usize) -> Vec<f64> {
    // In a thread of its own, since what is started later must not be bound.
    let bound = || {
        if let Some(cpu) = disk.cpu() {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            sched_setaffinity(None, &cpus).expect("the disk chose one that is allowed");
        }
        plain_ns_here(device, reads, block_bytes)
    };
    std::thread::scope(|scope| scope.spawn(bound).join().expect("it does not panic"))
}

fn plain_ns_here(device: &LoopDevice, reads: u64, block_bytes: usize) -> Vec<f64> {
    let direct = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).expect("O_DIRECT is a small flag");
    let node = OpenOptions::new().read(true).custom_flags(direct).open(device.path()).expect("our device");
    let mut storage = vec![0_u8; block_bytes + 4096];
    let skip = storage.as_ptr().align_offset(4096);
    let buffer = &mut storage[skip..skip + block_bytes];
    let mut times: Vec<f64> = (0..reads)
        .map(|index| {
            let start = Instant::now();
            node.read_exact_at(buffer, index * 7919 % 512 * 65_536).expect("our device");
            start.elapsed().as_secs_f64() * 1e9
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}
