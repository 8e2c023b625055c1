//! Runs for tests: cells whose rounds have chosen rates.

use rdsk_analysis::fixtures::{self, disk, with};
use rdsk_model::{CellRecord, Estimate, IoPath, Op, Record, StopReason, Verdict, VerdictCode, Visit};

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
    with(cell, |cell| {
        let visit = |(round, rate): (usize, &f64)| {
            let bytes = rdsk_analysis::metrics::whole(rate * f64::from(1 << 20));
            Visit {
                round: u32::try_from(round).expect("a test has few rounds"),
                start_ns: round as u64 * 5_000_000_000,
                elapsed_ns: 1_000_000_000,
                bytes,
                ops: 100,
                ..Visit::default()
            }
        };
        cell.result.visits = rates.iter().enumerate().map(visit).collect();
        cell.result.windows = None;
        let timed: Vec<(f64, f64)> =
            cell.result.visits.iter().map(|visit| (visit.start_ns as f64, visit.bytes as f64)).collect();
        let found = rdsk_stats::rounds_interval(&timed, &[]).expect("a test has two rounds");
        cell.result.bytes_per_s =
            Some(Estimate { mean: found.mean, low: Some(found.low), high: Some(found.high) });
    })
}

/// A run of a minute on the disk of the fixtures.
pub(crate) fn record(started_at: &str, cells: Vec<CellRecord>) -> Record {
    let mut record = fixtures::record(vec![disk()], cells);
    started_at.clone_into(&mut record.started_at);
    record.elapsed_ns = 60_000_000_000;
    record
}
