//! Visits that go on until their rate has settled, in virtual time: when they end, and what the analysis makes of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::scripted::{SECOND, Scripted, cell, plan, run};
use rdsk_analysis::lasting::{Lasting, lasting};
use rdsk_model::{CellRecord, Endurance, Extent, Plan};

const BLOCK: u64 = 4096;

fn went_on(runtime_s: u64, iops: f64, shape: impl Fn(&mut Scripted)) -> CellRecord {
    let endurance = Endurance {
        least_bytes: 0,
        least_ns: u64::MAX,
        least_ops: u64::MAX,
        most_ops: u64::MAX,
        expected_bytes_per_s: 0,
    };
    let base = plan(vec![cell(BLOCK, Extent::Sustained(endurance))], runtime_s * SECOND);
    let plan = Plan { rounds: 1, runtime_ns: Some(runtime_s * SECOND), ..base };
    let mut ran = run(&plan, iops * BLOCK as f64, |disk, _| shape(disk));
    ran.outcome.cells.remove(0)
}

fn rounds(iops: f64) -> CellRecord {
    let short = plan(vec![cell(BLOCK, Extent::Timed)], 2 * SECOND);
    run(&short, iops * BLOCK as f64, |_, _| ()).outcome.cells.remove(0)
}

fn lasting_of(visit: &CellRecord) -> Lasting {
    lasting(&rounds(3000.0), visit).unwrap()
}

/// 3,000 I/Os per second for 30,000 I/Os, then 500: the bucket of a cloud volume.
#[test]
fn a_bucket_of_tokens_is_emptied_and_its_refill_is_what_lasts() {
    let visit = went_on(600, 3000.0, |disk| disk.stall = Some((30_000, 2_000_000)));
    let lasting = lasting_of(&visit);
    assert!(lasting.is_burst && lasting.is_settled, "{lasting:?}");
    assert!((lasting.bytes_per_s / (500.0 * BLOCK as f64) - 1.0).abs() < 0.01, "{lasting:?}");
    assert!(
        (lasting.fall_bytes.unwrap() as f64 / (30_000.0 * BLOCK as f64) - 1.0).abs() < 0.05,
        "{lasting:?}"
    );
    // As long again as the burst took, and no longer.
    let elapsed_s = visit.result.elapsed_ns.unwrap() / SECOND;
    assert!((20..=22).contains(&elapsed_s), "{elapsed_s}");
    assert_eq!(visit.result.why, "it went on until its rate had settled");
}

/// With too little time, the page says that it has not settled.
#[test]
fn a_fall_near_the_end_has_not_settled() {
    let lasting = lasting_of(&went_on(14, 3000.0, |disk| disk.stall = Some((30_000, 2_000_000))));
    assert!(!lasting.is_settled && lasting.is_burst, "{lasting:?}");
}

/// Steady disks of several speeds, and disks that stall now and then, have no burst; they are followed to the end of the time.
#[test]
fn none_of_twenty_steady_disks_has_a_burst() {
    for step in 0..20_u64 {
        let iops = 200.0 * 1.4_f64.powi(i32::try_from(step).unwrap());
        let pauses: Vec<(u64, u64)> = (0..step)
            .map(|at| (at * 3 * SECOND + step * 77_000_000, at * 3 * SECOND + step * 80_000_000))
            .collect();
        let visit = went_on(60, iops, |disk| disk.pauses.clone_from(&pauses));
        let lasting = lasting(&rounds(iops), &visit).unwrap();
        assert!(!lasting.is_burst && lasting.fall_bytes.is_none(), "{step}: {lasting:?}");
        assert_eq!(visit.result.elapsed_ns.unwrap() / SECOND, 60);
        assert_eq!(visit.result.why, "it went on for as long as there was time");
    }
}
