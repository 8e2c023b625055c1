//! A pass over chosen positions goes on after a bad one and reports it, and gives up if the device fails everywhere.

#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::common::{job, ops, reading, visit};
use rdsk_engine::Ended;
use rdsk_model::{EngineKind, Pattern, Points, Workload};
use rdsk_testkit::fusedisk::{Behaviour, FuseDisk};
use rdsk_testkit::{Need, requires};
use std::ops::Range;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 64 << 10;
const POSITIONS: u64 = 64;

/// One pass over positions a quarter of a MiB apart, on a disk that cannot read these bytes.
fn pass(bad: &[Range<u64>]) -> rdsk_engine::Run {
    let behaviour = Behaviour { errors: bad.to_vec(), ..Behaviour::single(10_000) };
    let disk = FuseDisk::builder().capacity(16 * MIB).device(behaviour).mount().unwrap();
    let device = disk.loop_device().unwrap();
    let claims = [reading(device.path())];
    let points = Points {
        offset_bytes: (0..POSITIONS).map(|position| position * MIB / 4).collect(),
        ..Points::default()
    };
    let workload = Workload {
        pattern: Pattern::Random,
        block_bytes: BLOCK,
        align_bytes: 4096,
        engine: EngineKind::Sync,
        queue_depth: 1,
        points: Some(points),
        ..Workload::sequential_read(16 * MIB)
    };
    visit(&job(&workload, &claims, ops(POSITIONS))).1
}

#[test]
fn the_other_positions_go_on() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    // Two bad ranges; the second lies between two positions and affects neither.
    let run = pass(&[5 * MIB..5 * MIB + 4096, 9 * MIB + BLOCK..9 * MIB + 2 * BLOCK]);
    assert_eq!(run.ended, Ended::Complete);
    let [error] = run.errors.as_slice() else { panic!("{:?}", run.errors) };
    assert_eq!((error.errno, error.offset_bytes, error.stream), (libc::EIO, 5 * MIB, Some(0)));
    let seen = run.positions.unwrap();
    assert_eq!(seen.failed, [20]);
    assert_eq!((seen.order.len() as u64, seen.latency_ns.len() as u64), (POSITIONS - 1, POSITIONS - 1));
    assert!(!seen.order.contains(&20));
    assert_eq!((run.ops, run.bytes), (POSITIONS - 1, (POSITIONS - 1) * BLOCK));
}

#[test]
fn a_device_that_fails_everywhere_ends_the_pass() {
    if !requires(&[Need::Root, Need::Loop, Need::Fuse]) {
        return;
    }
    let everything = 0..16 * MIB;
    let run = pass(std::slice::from_ref(&everything));
    assert_eq!((run.ended, run.ops), (Ended::Failed, 0));
    assert_eq!(run.errors.len(), 4, "{:?}", run.errors);
    assert_eq!(run.positions.unwrap().failed.len(), 3, "the last one ended the pass");
}
