//! The jobs of a load as tests of their own: of each job its reads, its writes, its trims and its flushes, which together are what is
//! compared of a load. A log whose flushes got slower is not seen in the rate of all requests of its load.

use crate::figure::around;
use rdsk_analysis::{metrics, verdicts_by_direction};
use rdsk_model::{
    CellRecord, CellResult, Estimate, JobResult, KindResult, LoadJob, Op, Overlap, Pattern, Record, Requests,
    Verdict, VerdictCode, Visit,
};
use rdsk_stats::Histogram;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The kinds of request, as parts end with them: `load/1/log/flushes`.
const KINDS: [&str; 4] = ["reads", "writes", "trims", "flushes"];

/// The Records with the parts of their loads in the place of these. A load of one kind of request stays as it is, and so does one that is
/// not taken apart in all of them: where they ask for other kinds, or one does not keep the latencies of its repeats. Beside parts of
/// which one is writes that memory takes, the whole load stays, for its rate until all is on stable storage. The rates that `--p99` tried
/// are left out: each run chooses its own.
pub fn with_parts<'a>(records: &[&'a Record]) -> Vec<Cow<'a, Record>> {
    let taken_apart = |id: &str| {
        let cells = || {
            records.iter().flat_map(|record| &record.cells).filter(|cell| cell.id == id && metrics::ran(cell))
        };
        let first = cells().next().map(kinds_asked);
        cells().all(|cell| has_parts(cell) && first.as_ref() == Some(&kinds_asked(cell)))
    };
    let expanded = |record: &&'a Record| -> Cow<'a, Record> {
        let is_searched =
            |cell: &CellRecord| record.promise.is_some() && cell.name().matches('/').count() > 1;
        let is_apart = |cell: &CellRecord| has_parts(cell) && taken_apart(&cell.id);
        if !record.cells.iter().any(|cell| is_searched(cell) || is_apart(cell)) {
            return Cow::Borrowed(record);
        }
        let cells = record.cells.iter().filter(|cell| !is_searched(cell)).flat_map(|cell| {
            if !is_apart(cell) {
                return vec![cell.clone()];
            }
            let mut parts = parts(record, cell);
            if cell.workload.jobs.iter().any(is_written_behind) {
                parts.insert(0, cell.clone());
            }
            parts
        });
        Cow::Owned(Record { cells: cells.collect(), ..(*record).clone() })
    };
    records.iter().map(expanded).collect()
}

/// Which kind of which job a part of a load is; `None` for a whole cell.
pub(crate) fn job_and_kind(cell: &CellRecord) -> Option<(usize, &str)> {
    let kind = cell.name().rsplit('/').next().filter(|word| KINDS.contains(word))?;
    let name = &cell.result.jobs.first()?.name;
    Some((cell.workload.jobs.iter().position(|job| &job.name == name)?, kind))
}

/// Whether memory takes the writes of a job, and nothing waits for the device.
const fn is_written_behind(job: &LoadJob) -> bool {
    job.writes.is_some() && job.path.uses_page_cache() && !job.dsync && job.flush.is_none()
}

/// What each job asks for.
fn kinds_asked(cell: &CellRecord) -> Vec<Vec<&'static str>> {
    let of_job = |job: &LoadJob| -> Vec<&'static str> {
        let has_trims = job.trims.is_some() || job.trims_before_writes;
        let asked = [job.reads.is_some(), job.writes.is_some(), has_trims, job.flush.is_some()];
        KINDS.into_iter().zip(asked).filter_map(|(kind, is_asked)| is_asked.then_some(kind)).collect()
    };
    cell.workload.jobs.iter().map(of_job).collect()
}

/// Whether a load has several kinds of request, and knows what each did in each of its repeats.
fn has_parts(cell: &CellRecord) -> bool {
    let results = &cell.result.jobs;
    cell.workload.jobs.len() == results.len()
        && kinds_asked(cell).iter().map(Vec::len).sum::<usize>() > 1
        && results.iter().flat_map(JobResult::kinds).all(|(_, kind)| !kind.latency_ns.rounds.is_empty())
}

fn parts(record: &Record, cell: &CellRecord) -> Vec<CellRecord> {
    let verdicts = Verdicts::of(record, cell);
    // A name may come twice, and one with an @ would look like a target.
    let mut whole = cell.clone();
    for place in 0..whole.workload.jobs.len() {
        let is_again = |job: &LoadJob| job.name == cell.workload.jobs[place].name;
        let again = cell.workload.jobs[..place].iter().any(is_again);
        let number = if again { format!("-{}", place + 1) } else { String::new() };
        let name = format!("{}{number}", cell.workload.jobs[place].name.replace('@', "_"));
        whole.result.jobs[place].name.clone_from(&name);
        whole.workload.jobs[place].name = name;
    }
    let jobs = whole.workload.jobs.iter().zip(&whole.result.jobs).enumerate();
    let of_job = |(place, (job, result)): (usize, (&LoadJob, &JobResult))| -> Vec<CellRecord> {
        let part = |(word, kind): (&'static str, &KindResult)| {
            let visits = visits(&whole, place, kind);
            part(&whole, word, (job, result, kind), visits, verdicts.of_kind(job, word))
        };
        result.kinds().map(part).collect()
    };
    jobs.flat_map(of_job).collect()
}

/// What the counters say of a load, direction by direction.
struct Verdicts {
    whole: Option<Verdict>,
    directions: Option<[Verdict; 2]>,
    /// Whether jobs of the load go through the page cache, and past it.
    is_buffered: bool,
    is_direct: bool,
}

impl Verdicts {
    fn of(record: &Record, cell: &CellRecord) -> Self {
        let cpus = record.host.as_ref().map(|host| host.cpu_count);
        let jobs = &cell.workload.jobs;
        Self {
            whole: cell.verdict.clone(),
            directions: verdicts_by_direction(cell, &record.targets, cpus),
            is_buffered: jobs.iter().any(|job| job.path.uses_page_cache()),
            is_direct: jobs.iter().any(|job| !job.path.uses_page_cache()),
        }
    }

    /// That of the requests of one kind of a job: what the counters say of their direction, as far as it is of them.
    fn of_kind(&self, job: &LoadJob, word: &str) -> Option<Verdict> {
        let whole = self.whole.clone()?;
        let own = match &self.directions {
            Some([reads, writes]) => if word == "reads" { reads } else { writes }.clone(),
            None => whole,
        };
        let is_of_memory = matches!(own.code, VerdictCode::PageCache | VerdictCode::Hole);
        let unknown =
            |text: &str| Verdict { code: VerdictCode::Unverified, device_share: None, text: text.into() };
        Some(match word {
            "flushes" if is_of_memory => unknown("no counter of bytes shows what a flush had to move"),
            "writes" if is_written_behind(job) => Verdict {
                code: VerdictCode::PageCache,
                text: "memory takes these writes, and no flush of the job waits for them".into(),
                ..own
            },
            _ if is_of_memory && self.is_buffered && self.is_direct && !job.path.uses_page_cache() => {
                unknown("other jobs of the load go through the page cache, and the counters are of all")
            }
            _ => own,
        })
    }
}

/// The requests of one kind of a job, as a cell.
fn part(
    whole: &CellRecord,
    word: &'static str,
    (job, of_job, kind): (&LoadJob, &JobResult, &KindResult),
    visits: Vec<Visit>,
    verdict: Option<Verdict>,
) -> CellRecord {
    let target = whole.id.split_once('@').map_or_else(String::new, |(_, target)| format!("@{target}"));
    let (is_flush, is_read) = (word == "flushes", word == "reads");
    let requests = match word {
        "reads" => &job.reads,
        "trims" => &job.trims,
        _ => &job.writes,
    };
    let mut workload = whole.workload.clone();
    workload.op = if is_read { Op::Read } else { Op::Write };
    workload.path = job.path;
    (workload.queue_depth, workload.streams) = (job.queue_depth, job.streams);
    if let Some(requests) = requests {
        workload.block_bytes = mean_bytes(requests);
        workload.align_bytes = requests.min_bytes();
        workload.pattern = if requests.is_in_order() { Pattern::Sequential } else { Pattern::Random };
    }
    let has_rate = !is_flush && (is_read || !is_written_behind(job));
    let rate = if has_rate { rate(&visits, of_job, kind) } else { None };
    let only = |wanted: &str| (wanted == word).then(|| kind.clone());
    let result = CellResult {
        bytes: Some(kind.bytes),
        asked_bytes: Some(kind.bytes),
        ops: Some(kind.ops),
        elapsed_ns: Some(of_job.elapsed_ns),
        bytes_per_s: rate,
        ops_per_s: rate.map(|rate| rate.over(kind.bytes as f64 / kind.ops.max(1) as f64)),
        latency_ns: Some(kind.latency_ns.clone()),
        visits,
        jobs: vec![JobResult {
            reads: only("reads"),
            writes: only("writes"),
            trims: only("trims"),
            flushes: only("flushes"),
            ..of_job.clone()
        }],
        stop: whole.result.stop,
        why: whole.result.why.clone(),
        engine: whole.result.engine,
        ..CellResult::default()
    };
    CellRecord {
        id: format!("{}/{}/{word}{target}", whole.name(), job.name),
        workload,
        result,
        verdict,
        ..whole.clone()
    }
}

/// Bytes of a request as they are asked for, in the mean of their shares.
fn mean_bytes(requests: &Requests) -> u64 {
    let weights: f64 = requests.blocks.iter().map(|share| share.weight).sum();
    let sum = |share: &rdsk_model::BlockShare| {
        share.weight * f64::midpoint(share.min_bytes as f64, share.max_bytes as f64)
    };
    metrics::whole(requests.blocks.iter().map(sum).sum::<f64>() / weights.max(f64::MIN_POSITIVE)).max(1)
}

/// One visit for each repeat, with the requests of this kind that completed in it: as many as their latencies. The time of the job is
/// shared out among the repeats as its streams ran in them: one that ends by its bytes takes as long as the target lets it.
fn visits(whole: &CellRecord, place: usize, kind: &KindResult) -> Vec<Visit> {
    let job = &whole.workload.jobs[place];
    let first: u32 = whole.workload.jobs[..place].iter().map(|job| job.streams).sum();
    let request_bytes = kind.bytes as f64 / kind.ops.max(1) as f64;
    let mut rounds: BTreeMap<u32, Visit> = BTreeMap::new();
    for (number, visit) in whole.result.visits.iter().enumerate() {
        let merged = rounds.entry(visit.round).or_insert_with(|| Visit {
            round: visit.round,
            start_ns: visit.start_ns,
            sitting: visit.sitting,
            ..Visit::default()
        });
        let ramp_ns = if number == 0 { job.ramp_ns } else { 0 };
        merged.elapsed_ns += ran_ns(visit, job, first).saturating_sub(ramp_ns);
    }
    for latencies in &kind.latency_ns.rounds {
        let count = Histogram::from_base64(&latencies.histogram).map_or(0, |histogram| histogram.count());
        if let Some(visit) = rounds.get_mut(&latencies.round) {
            (visit.ops, visit.bytes) = (count, metrics::whole(count as f64 * request_bytes));
        }
    }
    let all_ns: u64 = rounds.values().map(|visit| visit.elapsed_ns).sum();
    let share = whole.result.jobs[place].elapsed_ns as f64 / all_ns.max(1) as f64;
    let timed = |visit: Visit| {
        let elapsed_ns = metrics::whole(visit.elapsed_ns as f64 * share);
        let overlap = Overlap { bytes: visit.bytes, covered_ns: elapsed_ns, ..Overlap::default() };
        Visit { elapsed_ns, overlap: Some(overlap), ..visit }
    };
    rounds.into_values().filter(|visit| visit.ops > 0).map(timed).collect()
}

/// How long a job ran in a visit, its ramp included: of one that ends itself, from the start of the first of its streams to the end of the
/// last; else for as long as the load did.
fn ran_ns(visit: &Visit, job: &LoadJob, first: u32) -> u64 {
    let own = || visit.streams.iter().filter(|stream| (first..first + job.streams).contains(&stream.index));
    let ends_itself = job.max_bytes.is_some() || job.lasts_ns.is_some();
    match (own().map(|stream| stream.start_ns).min(), own().map(|stream| stream.end_ns).max()) {
        (Some(start_ns), Some(end_ns)) if ends_itself => end_ns.saturating_sub(start_ns),
        _ => visit.elapsed_ns.saturating_sub(job.delay_ns),
    }
}

/// Bytes of this kind over the time of the job, as unsure as its repeats differ.
fn rate(visits: &[Visit], job: &JobResult, kind: &KindResult) -> Option<Estimate> {
    let per_s = |bytes: u64, ns: u64| (ns > 0).then(|| bytes as f64 / (ns as f64 / 1e9));
    let mean = per_s(kind.bytes, job.elapsed_ns).filter(|&rate| rate > 0.0)?;
    let timed = |visit: &Visit| Some((visit.start_ns as f64, per_s(visit.bytes, visit.elapsed_ns)?));
    let samples: Vec<(f64, f64)> = visits.iter().filter_map(timed).collect();
    Some(around(mean, &samples))
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

    /// Loads of other jobs ask something else, however alike one of them is; and flushes are no trims.
    #[test]
    fn a_part_is_compared_with_the_same_part_of_the_same_load() {
        let base = load(2400);
        let mut other = base.clone();
        other.cells[0].workload.jobs[0].read_percent = 50;
        let runs = with_parts(&[&base, &other]);
        assert!(crate::matching(&runs[0], &runs[1]).pairs.is_empty());
        let same = with_parts(&[&base, &base]);
        let matched = crate::matching(&same[0], &same[1]);
        assert!(matched.pairs.len() == 4 && matched.pairs.iter().all(|(base, other)| base.id == other.id));
        // Swapped names: the place of a job counts.
        let mut swapped = base.clone();
        let cell = &mut swapped.cells[0];
        for (place, name) in ["log", "database"].into_iter().enumerate() {
            cell.workload.jobs[place].name = name.into();
            cell.result.jobs[place].name = name.into();
        }
        let runs = with_parts(&[&base, &swapped]);
        let pairs = crate::matching(&runs[0], &runs[1]).pairs;
        let ids = |(base, other): &(&CellRecord, &CellRecord)| (base.id.clone(), other.id.clone());
        let flushes = ("load/1/log/flushes".to_owned(), "load/1/database/flushes".to_owned());
        assert!(pairs.iter().any(|pair| ids(pair) == flushes));
    }

    /// Found by a user: a job that ends by its bytes had the same time in every repeat, however long it took.
    #[test]
    fn a_job_that_ends_itself_has_the_time_that_it_took_in_each_repeat() {
        let mut record = load(2400);
        let cell = &mut record.cells[0];
        cell.workload.jobs[0].max_bytes = Some(1 << 20);
        cell.workload.jobs[1].ramp_ns = 2_000_000_000;
        for (visit, s) in cell.result.visits.iter_mut().zip([1, 2, 1, 2, 1, 2]) {
            let stream = |index: u32, end_ns: u64| rdsk_model::StreamResult {
                index,
                target: 0,
                start_ns: 0,
                end_ns,
                bytes: 1,
                ops: 1,
                active_ns: None,
            };
            visit.streams = vec![stream(0, s * 1_000_000_000), stream(1, 5_000_000_000)];
        }
        cell.result.jobs[0].elapsed_ns = 9_000_000_000;
        cell.result.jobs[1].elapsed_ns = 28_000_000_000;
        let parts = parts_of(&record);
        let times = |place: usize| -> Vec<u64> {
            parts.cells[place].result.visits.iter().map(|visit| visit.elapsed_ns / 1_000_000).collect()
        };
        assert_eq!(times(0), [1000, 2000, 1000, 2000, 1000, 2000]);
        assert_eq!(times(2), [3000, 5000, 5000, 5000, 5000, 5000], "the ramp is in the first alone");
        let size = |place: usize| parts.cells[place].workload.block_bytes;
        assert_eq!((size(0), size(2)), (8192, 2300));
    }

    fn ids(record: &Record) -> Vec<&str> {
        record.cells.iter().map(|cell| cell.id.as_str()).collect()
    }

    #[test]
    fn a_load_is_compared_by_the_requests_of_its_jobs() {
        let record = load(2400);
        let parts = parts_of(&record);
        let expected =
            ["load/1/database/reads", "load/1/database/writes", "load/1/log/writes", "load/1/log/flushes"];
        assert_eq!(ids(&parts), expected);
        let rate = |place: usize| parts.cells[place].result.bytes_per_s;
        let reads = rate(0).unwrap();
        assert!((reads.mean - 10_500.0 * 8192.0 / 30.0).abs() < 1.0, "{reads:?}");
        assert!(reads.low.unwrap() <= reads.mean && rate(3).is_none(), "flushes move nothing");
        let plain = fixtures::record(vec![fixtures::disk()], vec![crate::testing::cell("a")]);
        assert!(matches!(with_parts(&[&plain])[0], Cow::Borrowed(_)));
    }

    /// Found by a user: the flushes of a log took twice as long, and no test was slower.
    #[test]
    fn slower_flushes_of_one_job_are_found_and_nothing_else_is() {
        let (base, slower) = (load(2400), load(4600));
        let runs = with_parts(&[&base, &slower]);
        let (base, slower) = (&*runs[0], &*runs[1]);
        let compared = compare(base, &[slower]);
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
        for (job, result) in cell.workload.jobs.iter_mut().zip(&mut cell.result.jobs) {
            (job.name, result.name) = ("a@b".into(), "a@b".into());
        }
        let parts = parts_of(&record);
        let expected = [
            "load/1/a_b/reads@sdb", "load/1/a_b/writes@sdb", "load/1/a_b-2/writes@sdb",
            "load/1/a_b-2/flushes@sdb",
        ];
        assert_eq!(ids(&parts), expected);
        let compact = Record { cells: vec![compacted(&record.cells[0])], ..record.clone() };
        assert_eq!(ids(&parts_of(&compact)), ["load/1@sdb"], "without the latencies of repeats");
        let both = with_parts(&[&record, &compact]);
        assert!(both.iter().all(|record| record.cells.len() == 1), "alike in both");
    }

    fn parts_of(record: &Record) -> Record {
        with_parts(&[record]).remove(0).into_owned()
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
