//! Runs for tests: cells whose rounds have chosen rates.

use rdsk_analysis::comparison::{Measure, round_rates};
use rdsk_analysis::fixtures::{self, disk, with};
use rdsk_model::{
    CellRecord, Estimate, IoPath, Op, Record, StopReason, Verdict, VerdictCode, Visit, Windows,
};

/// A cell of direct reads of 1 MiB whose verdict is `device`.
pub(crate) fn cell(id: &str) -> CellRecord {
    with(fixtures::cell(id, Op::Read, IoPath::Direct, 1 << 20, 600, 6_000_000_000), |cell| {
        cell.verdict =
            Some(Verdict { code: VerdictCode::Device, device_share: Some(1.0), text: String::new() });
        cell.result.stop = StopReason::Budget;
    })
}

/// The cell with a round of one second for each of these rates, in MiB/s, and the interval that follows.
pub(crate) fn with_rates(cell: CellRecord, rates: &[f64]) -> CellRecord {
    let visits: Vec<Visit> = (0..).zip(rates).map(|(round, rate)| visit(round, 0, mib(*rate))).collect();
    with_visits(cell, visits, None)
}

/// The cell with these rounds, each of visits of one second, of which both halves have a rate in MiB/s.
pub(crate) fn with_halves(cell: CellRecord, rounds: &[Vec<(f64, f64)>]) -> CellRecord {
    let halves = || rounds.iter().flatten().flat_map(|(first, second)| [mib(first / 2.0), mib(second / 2.0)]);
    let in_round = |(round, visits): (u32, &Vec<(f64, f64)>)| -> Vec<Visit> {
        let visits = (0..).zip(visits);
        let bytes = |(first, second): &(f64, f64)| mib(first / 2.0) + mib(second / 2.0);
        visits.map(|(place, halves)| visit(round, place, bytes(halves))).collect()
    };
    let visits = (0..).zip(rounds).flat_map(in_round).collect();
    let windows = Windows { width_ns: 500_000_000, bytes: halves().collect() };
    with_visits(cell, visits, Some(windows))
}

fn mib(count: f64) -> u64 {
    rdsk_analysis::metrics::whole(count * f64::from(1 << 20))
}

fn visit(round: u32, place: u64, bytes: u64) -> Visit {
    Visit {
        round,
        start_ns: u64::from(round) * 9_000_000_000 + place * 1_000_000_000,
        elapsed_ns: 1_000_000_000,
        bytes,
        ops: 100,
        ..Visit::default()
    }
}

fn with_visits(cell: CellRecord, visits: Vec<Visit>, windows: Option<Windows>) -> CellRecord {
    with(cell, |cell| {
        cell.result.visits = visits;
        cell.result.windows = windows;
        let timed: Vec<(f64, f64)> = round_rates(cell, Measure::Elapsed)
            .into_iter()
            .map(|(round, rate)| (f64::from(round), rate))
            .collect();
        let interval = rdsk_stats::rounds_interval(&timed, &rdsk_stats::Halves::default())
            .expect("a test has two rounds");
        cell.result.bytes_per_s =
            Some(Estimate { mean: interval.mean, low: Some(interval.low), high: Some(interval.high) });
    })
}

/// A run of a minute on the disk of the fixtures.
pub(crate) fn record(started_at: &str, cells: Vec<CellRecord>) -> Record {
    let mut record = fixtures::record(vec![disk()], cells);
    started_at.clone_into(&mut record.started_at);
    record.elapsed_ns = 60_000_000_000;
    record
}
