//! The jobs of a load as tests of their own: of each job its reads, its writes, its trims and its flushes, which together are what is
//! compared of a load. A log whose flushes got slower is not seen in the rate of all requests of its load.

use rdsk_analysis::verdicts_by_direction;
use rdsk_model::{
    CellRecord, CellResult, Estimate, JobResult, KindResult, LoadJob, Op, Overlap, Record, Verdict, Visit,
};
use rdsk_stats::{Histogram, rounds_interval};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The Record with the parts of its loads in their place: `load/1` becomes `load/1/log/writes` and `load/1/log/flushes`. A load of one job
/// and one kind of request stays as it is.
pub fn with_parts(record: &Record) -> Cow<'_, Record> {
    if !record.cells.iter().any(has_parts) {
        return Cow::Borrowed(record);
    }
    let cells = record
        .cells
        .iter()
        .flat_map(|cell| if has_parts(cell) { parts(record, cell) } else { vec![cell.clone()] });
    Cow::Owned(Record { cells: cells.collect(), ..record.clone() })
}

fn has_parts(cell: &CellRecord) -> bool {
    cell.result.jobs.iter().flat_map(JobResult::kinds).count() > 1
}

fn parts(record: &Record, cell: &CellRecord) -> Vec<CellRecord> {
    let halves = verdicts_by_direction(cell, &record.targets, None);
    let verdict_of = |kind: &str| match (&cell.verdict, &halves) {
        (Some(_), Some([reads, writes])) => Some(if kind == "reads" { reads } else { writes }.clone()),
        (verdict, _) => verdict.clone(),
    };
    let jobs = cell.workload.jobs.iter().zip(&cell.result.jobs).enumerate();
    let of_job = |(place, (job, result)): (usize, (&LoadJob, &JobResult))| -> Vec<CellRecord> {
        // A name may come twice.
        let is_again = cell.result.jobs[..place].iter().any(|other| other.name == result.name);
        let number = if is_again { format!("-{}", place + 1) } else { String::new() };
        let name = format!("{}{number}", result.name.replace('@', "_"));
        let part = |(word, kind): (&'static str, &KindResult)| {
            part(cell, (&format!("{name}/{word}"), word), job, (result, kind), verdict_of(word))
        };
        result.kinds().map(part).collect()
    };
    jobs.flat_map(of_job).collect()
}

/// The requests of one kind of a job, as a cell.
fn part(
    cell: &CellRecord,
    (name, word): (&str, &str),
    job: &LoadJob,
    (of_job, kind): (&JobResult, &KindResult),
    verdict: Option<Verdict>,
) -> CellRecord {
    let target = cell.id.split_once('@').map_or_else(String::new, |(_, target)| format!("@{target}"));
    let mut workload = cell.workload.clone();
    workload.op = if word == "reads" { Op::Read } else { Op::Write };
    workload.jobs = vec![job.clone()];
    let is_flush = word == "flushes";
    // What memory takes without a flush has no rate of a device.
    let is_behind = workload.op == Op::Write
        && !is_flush
        && job.path.uses_page_cache()
        && !job.dsync
        && job.flush.is_none();
    let visits = visits(&cell.result.visits, of_job, kind);
    let rate = if is_flush || is_behind { None } else { rate(&visits, of_job, kind) };
    let result = CellResult {
        bytes: Some(kind.bytes),
        asked_bytes: Some(kind.bytes),
        ops: Some(kind.ops),
        elapsed_ns: Some(of_job.elapsed_ns),
        bytes_per_s: rate,
        ops_per_s: rate.map(|rate| rate.over(kind.bytes as f64 / kind.ops.max(1) as f64)),
        latency_ns: Some(kind.latency_ns.clone()),
        visits,
        jobs: vec![of_job.clone()],
        stop: cell.result.stop,
        why: cell.result.why.clone(),
        engine: cell.result.engine,
        ..CellResult::default()
    };
    CellRecord { id: format!("{}/{name}{target}", cell.name()), workload, result, verdict, ..cell.clone() }
}

/// One visit for each repeat, with the requests of this kind that completed in it: as many as their latencies. The job has its share of
/// the time of each, since it may begin later and end earlier than the load.
fn visits(of_load: &[Visit], job: &JobResult, kind: &KindResult) -> Vec<Visit> {
    let whole_ns: u64 = of_load.iter().map(|visit| visit.elapsed_ns).sum();
    let share = job.elapsed_ns as f64 / whole_ns.max(1) as f64;
    let request_bytes = kind.bytes as f64 / kind.ops.max(1) as f64;
    let mut rounds: BTreeMap<u32, Visit> = BTreeMap::new();
    for visit in of_load {
        let merged = rounds.entry(visit.round).or_insert_with(|| Visit {
            round: visit.round,
            start_ns: visit.start_ns,
            sitting: visit.sitting,
            ..Visit::default()
        });
        merged.elapsed_ns += visit.elapsed_ns;
    }
    for latencies in &kind.latency_ns.rounds {
        let count = Histogram::from_base64(&latencies.histogram).map_or(0, |histogram| histogram.count());
        if let Some(visit) = rounds.get_mut(&latencies.round) {
            (visit.ops, visit.bytes) = (count, rdsk_analysis::metrics::whole(count as f64 * request_bytes));
        }
    }
    let timed = |visit: Visit| {
        let elapsed_ns = rdsk_analysis::metrics::whole(visit.elapsed_ns as f64 * share);
        let overlap = Overlap { bytes: visit.bytes, covered_ns: elapsed_ns, ..Overlap::default() };
        Visit { elapsed_ns, overlap: Some(overlap), ..visit }
    };
    rounds.into_values().filter(|visit| visit.ops > 0).map(timed).collect()
}

/// Bytes of this kind over the time of the job, as unsure as its repeats differ.
fn rate(visits: &[Visit], job: &JobResult, kind: &KindResult) -> Option<Estimate> {
    let per_s = |bytes: u64, ns: u64| (ns > 0).then(|| bytes as f64 / (ns as f64 / 1e9));
    let mean = per_s(kind.bytes, job.elapsed_ns).filter(|&rate| rate > 0.0)?;
    let timed = |visit: &Visit| Some((visit.start_ns as f64, per_s(visit.bytes, visit.elapsed_ns)?));
    let samples: Vec<(f64, f64)> = visits.iter().filter_map(timed).collect();
    let interval = rounds_interval(&samples, &[]);
    let half_width =
        interval.map(|interval| ((interval.high - interval.low) / 2.0).max((interval.mean - mean).abs()));
    Some(Estimate::around(mean, half_width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Metric, compare};
    use rdsk_analysis::fixtures;
    use rdsk_model::{Latency, RoundLatency};
    use rdsk_stats::SparseHistogram;

    /// The load of the fixtures in six repeats of 5 s; each flush of its log takes `flush_us`, a little more or less in each repeat.
    fn load(flush_us: u64) -> Record {
        let mut record = fixtures::load();
        let cell = &mut record.cells[0];
        cell.result.visits = (0..6)
            .map(|round| Visit {
                round,
                start_ns: u64::from(round) * 5_000_000_000,
                elapsed_ns: 5_000_000_000,
                bytes: 1 << 20,
                ops: 4500,
                ..Visit::default()
            })
            .collect();
        for job in &mut cell.result.jobs {
            for kind in [&mut job.reads, &mut job.writes].into_iter().flatten() {
                kind.latency_ns = latency(kind.ops / 6, 500);
            }
            if let Some(flushes) = &mut job.flushes {
                flushes.latency_ns = latency(flushes.ops / 6, flush_us);
            }
        }
        record
    }

    fn latency(per_round: u64, us: u64) -> Latency {
        let mut all = Histogram::new();
        let mut rounds = BTreeMap::new();
        for round in 0..6_u32 {
            let mut own = Histogram::new();
            for request in 0..per_round {
                own.record(us * 1000 + u64::from(round) * us / 8 + request * 7919 % 1000 * us / 150);
            }
            all.merge(&own);
            rounds.insert(round, SparseHistogram::from(&own));
        }
        Latency::from(&all).with_rounds(&rounds)
    }

    fn ids(record: &Record) -> Vec<&str> {
        record.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    #[test]
    fn a_load_is_compared_by_the_requests_of_its_jobs() {
        let record = load(2400);
        let parts = with_parts(&record);
        let expected =
            ["load/1/database/reads", "load/1/database/writes", "load/1/log/writes", "load/1/log/flushes"];
        assert_eq!(ids(&parts), expected);
        let rate = |place: usize| parts.cells[place].result.bytes_per_s;
        let reads = rate(0).unwrap();
        assert!((reads.mean - 10_500.0 * 8192.0 / 30.0).abs() < 1.0, "{reads:?}");
        assert!(reads.low.unwrap() <= reads.mean && rate(3).is_none(), "flushes move nothing");
        let plain = fixtures::record(vec![fixtures::disk()], vec![crate::testing::cell("a")]);
        assert!(matches!(with_parts(&plain), Cow::Borrowed(_)));
    }

    /// Found by a user: the flushes of a log took twice as long, and no test was slower.
    #[test]
    fn slower_flushes_of_one_job_are_found_and_nothing_else_is() {
        let (base, slower) = (load(2400), load(4600));
        let (base, slower) = (with_parts(&base), with_parts(&slower));
        let compared = compare(&base, &[&slower]);
        for cell in &compared.pairs[0].cells {
            let expected =
                if cell.base.id.ends_with("flushes") { Answer::Slower } else { Answer::NoDifferenceSeen };
            for metric in [Metric::P50, Metric::P99] {
                let change = cell.change(metric).unwrap();
                assert_eq!(change.answer(), expected, "{} {metric:?}: {:?}", cell.base.id, change.certainty);
            }
        }
    }

    #[test]
    fn jobs_of_one_name_and_targets_have_ids_of_their_own() {
        let mut record = load(2400);
        let cell = &mut record.cells[0];
        cell.id = "load/1@sdb".into();
        for job in &mut cell.result.jobs {
            job.name = "a@b".into();
        }
        let parts = with_parts(&record);
        let expected = [
            "load/1/a_b/reads@sdb",
            "load/1/a_b/writes@sdb",
            "load/1/a_b-2/writes@sdb",
            "load/1/a_b-2/flushes@sdb",
        ];
        assert_eq!(ids(&parts), expected);
        let record = Record { cells: vec![compacted(&record.cells[0])], ..record };
        let parts = with_parts(&record);
        assert!(parts.cells.iter().all(|cell| cell.result.visits.is_empty()), "no histograms, no repeats");
    }

    fn compacted(cell: &CellRecord) -> CellRecord {
        let mut cell = cell.clone();
        for job in &mut cell.result.jobs {
            let kinds = [&mut job.reads, &mut job.writes, &mut job.flushes];
            kinds.into_iter().flatten().for_each(|kind| kind.latency_ns.rounds = Vec::<RoundLatency>::new());
        }
        cell
    }
}
