//! Cells on a disk that stalls now and then, in virtual time: what their intervals and Records say of it.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use crate::scripted::{SECOND, Seen, cell, plan, run};
use rdsk_model::{Cell, CellRecord, Experiment, Extent, Plan};
use rdsk_stats::rng::SplitMix64;

/// Bytes per second between the stalls.
const RATE: f64 = 1e8;
const RUNS: u64 = 200;

/// Stalls for a tenth of the time: every period, as long as `period_s` says, ends with its stall.
fn a_tenth(seed: u64, period_s: impl Fn(&mut SplitMix64) -> f64) -> Vec<(u64, u64)> {
    let mut rng = SplitMix64::new(seed);
    let mut begin_s = -period_s(&mut rng) * rng.uniform();
    let mut pauses = Vec::new();
    while begin_s < 200.0 {
        let period_s = period_s(&mut rng);
        let at = |s: f64| rdsk_analysis::metrics::whole(s.max(0.0) * 1e9);
        pauses.push((at(begin_s + 0.9 * period_s), at(begin_s + period_s)));
        begin_s += period_s;
    }
    pauses
}

/// Four cells of blocks that take about a millisecond, in 60 s.
fn four_cells(pauses: Vec<(u64, u64)>) -> Seen {
    let cells = (0..4).map(|n| cell(98_304 + 4096 * n, Extent::Timed)).collect();
    let plan = Plan { rounds: 6, ..plan(cells, 60 * SECOND) };
    run(&plan, RATE, |disk, _| disk.pauses = pauses)
}

/// The share of cells in seeded runs whose interval holds the true rate, and the median of their margins.
fn coverage(period_s: impl Fn(&mut SplitMix64) -> f64) -> (f64, f64) {
    let (mut covered, mut widths) = (0.0, Vec::new());
    for seed in 0..RUNS {
        for cell in four_cells(a_tenth(seed, &period_s)).outcome.cells {
            let rate = cell.result.bytes_per_s.unwrap();
            let (low, high) = rate.low.zip(rate.high).unwrap();
            covered += f64::from(u8::from((low..=high).contains(&(0.9 * RATE))));
            widths.push(rate.margin().unwrap());
        }
    }
    (covered / widths.len() as f64, rdsk_stats::median(&widths).unwrap())
}

#[test]
fn stalls_for_a_tenth_of_the_time_are_in_the_interval() {
    let between = |least: f64, most: f64| move |rng: &mut SplitMix64| least + (most - least) * rng.uniform();
    let by_chance = |mean: f64| move |rng: &mut SplitMix64| -mean * (1.0 - rng.uniform()).ln();
    let short = coverage(between(1.0, 5.0));
    assert!(short.0 >= 0.93 && short.1 < 0.13, "every 1 to 5 s: {short:?}");
    let long = coverage(between(5.0, 20.0));
    assert!(long.0 >= 0.93 && long.1 < 0.3, "every 5 to 20 s: {long:?}");
    let random = coverage(by_chance(10.0));
    assert!(random.0 >= 0.93 && random.1 < 0.3, "every 10 s in the mean, by chance: {random:?}");
}

fn margin(cell: &CellRecord) -> f64 {
    cell.result.bytes_per_s.unwrap().margin().unwrap()
}

#[test]
fn the_record_says_what_was_seen() {
    let stalled = four_cells(vec![(20 * SECOND, 22 * SECOND)]);
    let with_one: Vec<_> =
        stalled.outcome.cells.iter().filter_map(|cell| cell.result.stalls.as_ref()).collect();
    assert_eq!(with_one.len(), 4, "no cell knows that the stall of another is not its own");
    let own: Vec<_> = with_one.iter().flat_map(|stalls| &stalls.seen).collect();
    assert!(own.len() == 1 && own[0].lasts_ns.abs_diff(2 * SECOND) < SECOND / 10, "{own:?}");
    assert!(own[0].start_ns.abs_diff(20 * SECOND) < SECOND / 10, "{own:?}");
    for cell in stalled.outcome.cells.iter().filter(|cell| margin(cell) < 0.2) {
        assert!(cell.result.why.contains("; with what stalls leave unsure it is ±"), "{}", cell.result.why);
    }
    // The windows of the one that met it scatter more than that.
    assert_eq!(stalled.outcome.cells.iter().filter(|cell| margin(cell) < 0.2).count(), 3);
    assert!(stalled.outcome.cells.iter().all(|cell| margin(cell) > 0.05));
    let steady = four_cells(Vec::new());
    assert!(steady.outcome.cells.iter().all(|cell| cell.result.stalls.is_none()));
}

/// Some cells in a budget of 10 s, on a disk that stalls at these times and for so long.
fn short_run(stalls_s: &[(f64, f64)], cells: u32) -> Seen {
    let at = |s: f64| rdsk_analysis::metrics::whole(s * 1e9);
    let pauses: Vec<(u64, u64)> =
        stalls_s.iter().map(|&(begin, lasts)| (at(begin), at(begin + lasts))).collect();
    let mut cells: Vec<Cell> =
        (0..cells).map(|n| cell(98_304 + 4096 * u64::from(n), Extent::Timed)).collect();
    // The first one is a question of its own.
    cells[0].experiment = Experiment::Paths;
    let plan = Plan { rounds: 6, precision: 1e-9, ..plan(cells, 10 * SECOND) };
    run(&plan, RATE, |disk, _| disk.pauses = pauses)
}

/// An I/O that waits cannot be cut: what waited once in a cell may wait again, and a quarter longer, so that cell ends that much
/// earlier.
#[test]
fn a_wait_that_was_seen_does_not_end_beyond_the_budget() {
    let stalled = short_run(&[(2.0, 2.5), (8.5, 2.5)], 1);
    assert!((6 * SECOND..=10 * SECOND).contains(&stalled.elapsed_ns), "{} ns", stalled.elapsed_ns);
}

/// A disk that took half of the budget to wake up: the cells of other questions, which did not wait for it, are repeated.
#[test]
fn one_wait_does_not_end_the_other_cells() {
    let stalled = short_run(&[(0.1, 5.0)], 4);
    assert!((6 * SECOND..=10 * SECOND).contains(&stalled.elapsed_ns), "{} ns", stalled.elapsed_ns);
    let visits = stalled.outcome.cells[3].result.visits.len();
    assert!(visits >= 2, "{visits} visits");
}
