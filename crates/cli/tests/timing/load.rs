//! The whole series of what crate::load_fuse has a short form of.

use crate::load_fuse::{etcd_with, stalled};
use rdsk_testkit::attempts::first_right;
use rdsk_testkit::fusedisk::Stall;
use rdsk_testkit::{Need, requires};

const S: u64 = 1_000_000_000;

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_stall_of_a_second_in_thirty_is_counted_from_the_intended_arrivals() {
    if requires(&[Need::Root, Need::Fuse, Need::Loop]) {
        first_right(2, || {
            // Six repeats of 10 s: a stall each 30 s of the disk's own time falls into the midst of one.
            let latencies = stalled(Stall { every_ns: 30 * S, lasts_ns: S }, 60, 5)?;
            latencies.iter().try_for_each(|latency| latency.agrees(0.02))
        });
    }
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn etcd_is_judged_right_three_times_of_three() {
    if requires(&[Need::Root, Need::Fuse, Need::Loop, Need::Ext4]) {
        for p99_ms in [9, 11, 9, 11, 9, 11] {
            let judged = etcd_with(p99_ms).unwrap_or_else(|why| panic!("{p99_ms} ms: {why}"));
            judged.p99.agrees(0.05).unwrap_or_else(|why| panic!("{p99_ms} ms: {why}"));
            assert_eq!(judged.code, i32::from(p99_ms > 10), "{p99_ms} ms: {}", judged.p99);
        }
    }
}
