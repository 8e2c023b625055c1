//! Cells on a disk that stalls now and then, in virtual time: what their intervals and Records say of it.

mod scripted;

use rdsk_model::{Extent, Plan};
use rdsk_stats::rng::SplitMix64;
use scripted::{SECOND, Seen, cell, plan, run};

/// Bytes per second between the stalls.
const RATE: f64 = 1e8;
const RUNS: u64 = 200;

/// Stalls for a tenth of the time: every period lasts so many seconds, evenly distributed, and ends with its stall.
fn a_tenth(seed: u64, least_s: f64, most_s: f64) -> Vec<(u64, u64)> {
    let mut rng = SplitMix64::new(seed);
    let mut begin_s = -most_s * rng.uniform();
    let mut pauses = Vec::new();
    while begin_s < 200.0 {
        let period_s = least_s + (most_s - least_s) * rng.uniform();
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

#[test]
fn stalls_for_a_tenth_of_the_time_are_in_the_interval_or_told() {
    for (least_s, most_s) in [(1.0, 5.0), (5.0, 20.0)] {
        let (mut covered, mut cells, mut told, mut widths) = (0, 0, 0, Vec::new());
        for seed in 0..RUNS {
            for cell in four_cells(a_tenth(seed, least_s, most_s)).outcome.cells {
                let rate = cell.result.bytes_per_s.unwrap();
                let is_in =
                    rate.low.zip(rate.high).is_some_and(|(low, high)| (low..=high).contains(&(0.9 * RATE)));
                covered += u64::from(is_in);
                cells += 1;
                widths.push(rate.half_width().unwrap_or(f64::INFINITY));
            }
        }
        widths.sort_by(f64::total_cmp);
        println!("{least_s}: {covered} of {cells}, median width {}", widths[widths.len() / 2]);
    }
}
