//! The verdict of a load that reads and writes at once: each direction is judged as a cell of its own, by the same counters, and the one
//! that takes more away from the figure speaks for the whole.

use crate::metrics;
use rdsk_model::{CellRecord, Estimate, JobResult, KindResult, Op, VerdictCode};

/// How much a verdict takes away from a figure: that it is not the device's at all, before that others took part in it.
pub(super) const fn weight(code: VerdictCode) -> u8 {
    match code {
        VerdictCode::Device => 0,
        VerdictCode::CpuBound => 1,
        VerdictCode::Disturbed => 2,
        VerdictCode::Throttled => 3,
        VerdictCode::SourceBound => 4,
        VerdictCode::Unverified => 5,
        VerdictCode::PageCache | VerdictCode::Hole => 6,
        VerdictCode::Incomplete => 7,
    }
}

fn kind(job: &JobResult, op: Op) -> Option<&KindResult> {
    op.select(job.reads.as_ref(), job.writes.as_ref())
}

/// What the jobs of a cell did in one direction: I/Os and bytes.
fn done(cell: &CellRecord, op: Op) -> (u64, u64) {
    let kinds = cell.result.jobs.iter().filter_map(|job| kind(job, op));
    kinds.fold((0, 0), |(ops, bytes), kind| (ops + kind.ops, bytes + kind.bytes))
}

/// Bytes and I/Os per second of the jobs in one direction, each over its own time.
fn rates(cell: &CellRecord, op: Op) -> (f64, f64) {
    let timed = cell.result.jobs.iter().filter(|job| job.elapsed_ns > 0);
    let kinds = timed.filter_map(|job| Some((kind(job, op)?, metrics::seconds(job.elapsed_ns))));
    kinds.fold((0.0, 0.0), |(bytes_per_s, ops_per_s), (kind, seconds)| {
        (bytes_per_s + kind.bytes as f64 / seconds, ops_per_s + kind.ops as f64 / seconds)
    })
}

/// The part of the time of a cell in which the jobs had any I/O of its workload's direction in flight, at most: of each job its latencies
/// together, and no more than its own time.
pub(super) fn in_flight(cell: &CellRecord) -> Option<f64> {
    let whole_ns = cell.result.elapsed_ns.filter(|&ns| ns > 0)? as f64;
    let of_job = |job: &JobResult| {
        let latency = &kind(job, cell.workload.op)?.latency_ns;
        Some((latency.mean? * latency.count as f64).min(job.elapsed_ns as f64))
    };
    Some(cell.result.jobs.iter().filter_map(of_job).sum::<f64>() / whole_ns)
}

/// The shares of the I/Os and of the bytes of a cell that were of its workload's direction: less than 1 in half of a load.
pub(super) fn shares(cell: &CellRecord) -> (f64, f64) {
    if !has_both(cell) {
        return (1.0, 1.0);
    }
    let (own, reads, writes) = (done(cell, cell.workload.op), done(cell, Op::Read), done(cell, Op::Write));
    (metrics::ratio(own.0, reads.0 + writes.0), metrics::ratio(own.1, reads.1 + writes.1))
}

/// An estimate with another mean and the same relative interval; without one where there is none, since the jobs never ran all at once.
fn with_mean(estimate: Option<Estimate>, mean: f64) -> Option<Estimate> {
    let Some(whole) = estimate.filter(|whole| whole.mean > 0.0) else {
        return (mean > 0.0).then_some(Estimate { mean, low: None, high: None });
    };
    let end = |end: Option<f64>| end.map(|end| end / whole.mean * mean);
    Some(Estimate { mean, low: end(whole.low), high: end(whole.high) })
}

/// Whether a load both reads and writes: what the devices moved in one direction is then judged by the half of that direction alone.
pub(super) fn has_both(cell: &CellRecord) -> bool {
    done(cell, Op::Read).0 > 0 && done(cell, Op::Write).0 > 0
}

/// The reads and the writes of a load, as cells of their own; `None` for other cells.
pub(super) fn halves(cell: &CellRecord) -> Option<[CellRecord; 2]> {
    has_both(cell).then(|| {
        [Op::Read, Op::Write].map(|op| {
            let mut half = cell.clone();
            let (ops, bytes) = done(cell, op);
            half.workload.op = op;
            (half.result.ops, half.result.bytes, half.result.asked_bytes) =
                (Some(ops), Some(bytes), Some(bytes));
            let (bytes_per_s, ops_per_s) = rates(cell, op);
            half.result.bytes_per_s = with_mean(half.result.bytes_per_s, bytes_per_s);
            half.result.ops_per_s = with_mean(half.result.ops_per_s, ops_per_s);
            half
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::fixtures;
    use rdsk_model::{Limit, Op, VerdictCode};

    /// Reads that others disturbed hid writes that memory took, and a need that asks for fast writes was met.
    #[test]
    fn memory_of_one_direction_weighs_more_than_others_io_in_the_other() {
        let mut record = fixtures::load();
        let cell = &mut record.cells[0];
        let device = &mut cell.evidence.device[0];
        device.read_bytes = device.read_bytes.map(|bytes| bytes * 3);
        device.write_bytes = Some(0);
        device.diskstat = Some(rdsk_model::DiskStat::default());
        let [reads, writes] = super::halves(cell).unwrap();
        let judge =
            |cell: &rdsk_model::CellRecord| super::super::one_way(cell, &record.targets, Some(8), true).code;
        assert_eq!(judge(&reads), VerdictCode::Disturbed);
        let of_writes = judge(&writes);
        assert!(super::weight(of_writes) > super::weight(VerdictCode::Disturbed), "{of_writes:?}");
        let verdict = crate::verdict(&record.cells[0], &record.targets, Some(8));
        assert_eq!(verdict.code, of_writes, "{}", verdict.text);
        assert!(verdict.text.starts_with("writes: "), "{}", verdict.text);
    }

    /// Found by a user: reads at half of their limit were "throttled", since the rate of reads and writes together reached it.
    #[test]
    fn each_direction_is_held_against_its_own_limit() {
        let record = fixtures::load();
        let cell = &record.cells[0];
        let (reads, both) = (super::rates(cell, Op::Read).1, cell.result.ops_per_s.unwrap().mean);
        assert!(reads < 0.9 * both, "{reads} of {both}");
        let judged = |ops_per_s: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
            let ops_per_s = Some(ops_per_s as u64);
            let limit = Limit {
                target: 0,
                device: record.cells[0].evidence.device[0].name.clone(),
                source: "/cg/read_iops".into(),
                op: Op::Read,
                bytes_per_s: None,
                ops_per_s,
            };
            let mut cell = record.cells[0].clone();
            // What is in flight is in the device, and does not wait for a limit.
            if let Some(counted) = &mut cell.evidence.device[0].diskstat {
                (counted.read_ticks_ms, counted.io_ticks_ms) = (u64::MAX / 2, u64::MAX / 2);
            }
            cell.evidence.limits = vec![limit];
            crate::verdict(&cell, &record.targets, Some(8))
        };
        assert_eq!(judged(both).code, VerdictCode::Device, "{}", judged(both).text);
        let held = judged(reads);
        assert_eq!(held.code, VerdictCode::Throttled, "{}", held.text);
        assert!(held.text.starts_with("reads: "), "{}", held.text);
        assert!(!held.text.contains("above the limit"), "{}", held.text);
    }

    /// A log writes whole pages and the journal of its filesystem: more than its bytes, while another job reads.
    #[test]
    fn what_the_own_writes_cost_is_not_of_others() {
        let mut record = fixtures::load();
        assert_eq!(record.cells[0].verdict.as_ref().unwrap().code, VerdictCode::Device);
        let device = &mut record.cells[0].evidence.device[0];
        device.read_bytes = device.read_bytes.map(|bytes| bytes * 3);
        let verdict = crate::verdict(&record.cells[0], &record.targets, Some(8));
        assert_eq!(verdict.code, VerdictCode::Disturbed, "{}", verdict.text);
    }
}
