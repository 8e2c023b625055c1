//! The figure that a threshold is about, with its 95 % interval.

use crate::metrics;
use crate::steady::Course;
use rdsk_model::{
    CellRecord, JobResult, KindResult, Latency, Need, PercentileRange, Record, Statistic, Subject, Threshold,
};
use rdsk_stats::{Histogram, SparseHistogram, mean_interval};
use std::collections::BTreeMap;

/// A figure with its interval; an end is `None` where so few requests show none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// In the unit of the statistic: ns, per second, or a share.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Requests that it rests on.
    pub ops: u64,
}

/// The figure of a threshold.
pub(super) fn figure_of(
    need: &Need,
    threshold: &Threshold,
    cell: &CellRecord,
    result: &JobResult,
) -> Option<Figure> {
    let of_both;
    let kind = match threshold.of {
        Subject::Reads => result.reads.as_ref(),
        Subject::Writes => result.writes.as_ref(),
        Subject::Flushes => result.flushes.as_ref(),
        Subject::Requests => {
            of_both = both(result);
            of_both.as_ref()
        }
    }?;
    let latency = &kind.latency_ns;
    let ranges = latency.ranges.unwrap_or_default();
    let percentile = |value: Option<u64>, range: Option<PercentileRange>| {
        let end = |end: Option<u64>| end.map(|ns| ns as f64);
        Some(Figure {
            value: value? as f64,
            low: end(range.and_then(|range| range.low)),
            high: end(range.and_then(|range| range.high)),
            ops: latency.count,
        })
    };
    match threshold.statistic {
        Statistic::P50 => percentile(latency.p50, ranges.p50),
        Statistic::P99 => percentile(latency.p99, ranges.p99),
        Statistic::P999 => percentile(latency.p999, ranges.p999),
        Statistic::Max => percentile(latency.max, None),
        Statistic::Mean => of_rounds(kind, latency.mean?, Histogram::mean),
        Statistic::ShareOver => {
            let over_ns = threshold.over_ns?;
            let share = |histogram: &Histogram| {
                let count = histogram.count();
                (count > 0).then(|| 1.0 - metrics::ratio(histogram.count_up_to(over_ns), count))
            };
            if let Some(periods) = threshold.each_ns.and_then(|each_ns| periods(cell, kind, each_ns)) {
                let value = periods.iter().filter_map(|period| share(&period.latencies)).reduce(f64::max)?;
                return Some(Figure { value, low: Some(value), high: Some(value), ops: kind.ops });
            }
            let histogram = Histogram::from_base64(latency.histogram.as_deref()?).ok()?;
            of_rounds(kind, share(&histogram)?, share)
        }
        Statistic::TimeOver => time_over(cell, &threshold.job, kind, threshold.over_ns?, threshold.each_ns),
        Statistic::OpsPerS => rate(need, cell, result, kind, kind.ops),
        Statistic::BytesPerS => rate(need, cell, result, kind, kind.bytes),
        Statistic::LowestBytesPerS => lowest(result, kind),
        // It is no figure of requests.
        Statistic::Size => None,
    }
}

/// The size of the device below a cell's target; `None` where that is not known.
pub(super) fn size(record: &Record, cell: &CellRecord) -> Option<Figure> {
    let of_cell = record.targets.iter().find(|target| cell.workload.targets.contains(&target.index))?;
    let value = of_cell.device.as_ref()?.size_bytes? as f64;
    Some(Figure { value, low: None, high: None, ops: 0 })
}

/// A figure of all latencies with the interval that those of the rounds give.
fn of_rounds(kind: &KindResult, value: f64, each: impl Fn(&Histogram) -> Option<f64>) -> Option<Figure> {
    let rounds = kind.latency_ns.rounds.iter();
    let samples: Vec<f64> =
        rounds.filter_map(|round| each(&Histogram::from_base64(&round.histogram).ok()?)).collect();
    let half = mean_interval(&samples).map(|interval| interval.high - interval.mean);
    let end = |sign: f64| half.map(|half| (value + sign * half).max(0.0));
    Some(Figure { value, low: end(-1.0), high: end(1.0), ops: kind.ops })
}

/// The reads and writes of a job together.
fn both(result: &JobResult) -> Option<KindResult> {
    let (Some(reads), Some(writes)) = (&result.reads, &result.writes) else {
        return result.reads.clone().or_else(|| result.writes.clone());
    };
    let mut rounds: BTreeMap<u32, SparseHistogram> = BTreeMap::new();
    for round in reads.latency_ns.rounds.iter().chain(&writes.latency_ns.rounds) {
        rounds.entry(round.round).or_default().merge(&Histogram::from_base64(&round.histogram).ok()?);
    }
    Some(KindResult {
        ops: reads.ops + writes.ops,
        bytes: reads.bytes + writes.bytes,
        latency_ns: Latency::of_both(&reads.latency_ns, &writes.latency_ns)?.with_rounds(&rounds),
        least_bytes_per_s: None,
        windows: Vec::new(),
    })
}

/// The latencies of successive rounds that make up a period.
struct Period {
    latencies: Histogram,
    lasts_ns: u64,
}

/// The time of a test in periods of at least this length; `None` of a shorter test, and where latencies are not known by round. What is
/// left at the end belongs to the last one.
fn periods(cell: &CellRecord, kind: &KindResult, each_ns: u64) -> Option<Vec<Period>> {
    // A repeat that was to last as long may be a little shorter.
    let enough_ns = each_ns / 100 * 95;
    let mut periods: Vec<Period> = Vec::new();
    for round in &kind.latency_ns.rounds {
        let latencies = Histogram::from_base64(&round.histogram).ok()?;
        let of_round = cell.result.visits.iter().filter(|visit| visit.round == round.round);
        let lasts_ns: u64 = of_round.map(|visit| visit.elapsed_ns).sum();
        match periods.last_mut().filter(|last| last.lasts_ns < enough_ns) {
            Some(last) => {
                last.latencies.merge(&latencies);
                last.lasts_ns += lasts_ns;
            }
            None => periods.push(Period { latencies, lasts_ns }),
        }
    }
    if let Some(last) = periods.pop_if(|last| last.lasts_ns < enough_ns) {
        let before = periods.last_mut()?;
        before.latencies.merge(&last.latencies);
        before.lasts_ns += last.lasts_ns;
    }
    (!periods.is_empty()).then_some(periods)
}

/// The sum of the latencies above a limit in the worst period. A period may be longer than asked for: then some part of it that is not has
/// at least its share of the sum, which is the figure, and none has more than all of it, nor more than its time for each request that a
/// closed loop may have in flight.
fn time_over(
    cell: &CellRecord,
    job: &str,
    kind: &KindResult,
    over_ns: u64,
    each_ns: Option<u64>,
) -> Option<Figure> {
    let job = cell.workload.jobs.iter().find(|known| known.name == job)?;
    let (low, high) = match each_ns.and_then(|each_ns| Some((each_ns, periods(cell, kind, each_ns)?))) {
        Some((each_ns, periods)) => {
            // In an open loop any number of requests may wait, and their latencies count from the arrival.
            let in_flight = f64::from(job.queue_depth) * f64::from(job.streams);
            let most_ns = if job.rate.is_none() { each_ns as f64 * in_flight } else { f64::INFINITY };
            let ends = |period: &Period| {
                let sum_ns = period.latencies.sum_above(over_ns);
                let share_ns = sum_ns * metrics::ratio(each_ns, period.lasts_ns).min(1.0);
                // A request that began before the period may count as a whole.
                (share_ns, sum_ns.min(most_ns).max(share_ns))
            };
            periods.iter().map(ends).reduce(|(low, high), (l, h)| (low.max(l), high.max(h)))?
        }
        None => {
            let histogram = Histogram::from_base64(kind.latency_ns.histogram.as_deref()?).ok()?;
            (histogram.sum_above(over_ns), histogram.sum_above(over_ns))
        }
    };
    Some(Figure { value: low, low: Some(low), high: Some(high), ops: kind.ops })
}

/// Whether a need is about a rate that lasts.
pub(super) fn is_about_lasting(need: &Need) -> bool {
    need.outlasts_bytes > 0 || need.lasts_ns > 0
}

/// A rate of so much in all. Where a need is about what lasts, it is that of the steady state; else that of the whole time, with the
/// relative interval of the cell's, of which it is a part.
fn rate(
    need: &Need,
    cell: &CellRecord,
    result: &JobResult,
    kind: &KindResult,
    amount: u64,
) -> Option<Figure> {
    if is_about_lasting(need)
        && let Some(figure) = lasting(result, kind, amount)
    {
        return Some(figure);
    }
    if cell.workload.jobs.len() > 1
        && let Some(figure) =
            Course::of_rate(result).and_then(|course| of_tenths(&course.parts, result, kind, amount))
    {
        return Some(figure);
    }
    let value = amount as f64 / metrics::seconds(result.elapsed_ns.max(1));
    let estimate = cell.result.bytes_per_s.filter(|estimate| estimate.mean > 0.0);
    let end = |end: fn(&rdsk_model::Estimate) -> Option<f64>| {
        let estimate = estimate?;
        Some(value * end(&estimate)? / estimate.mean)
    };
    Some(Figure {
        value,
        low: end(|estimate| estimate.low),
        high: end(|estimate| estimate.high),
        ops: kind.ops,
    })
}

/// The rate of the steady state; `None` without one, and where a rate was offered.
fn lasting(result: &JobResult, kind: &KindResult, amount: u64) -> Option<Figure> {
    let course = Course::of_rate(result)?;
    of_tenths(course.parts.get(course.steady_from?..)?, result, kind, amount)
}

/// The rate of these tenths of the time, with Student's interval of their mean.
fn of_tenths(tenths: &[f64], result: &JobResult, kind: &KindResult, amount: u64) -> Option<Figure> {
    let of_request = amount as f64 / result.requests().max(1) as f64;
    let rates: Vec<f64> = tenths.iter().map(|rate| rate * of_request).collect();
    let interval = mean_interval(&rates)?;
    let end = |end: f64| Some(end.max(0.0));
    Some(Figure { value: interval.mean, low: end(interval.low), high: end(interval.high), ops: kind.ops })
}

/// The lowest rate of a second, or of a tenth of the time where no repeat took a second.
fn lowest(result: &JobResult, kind: &KindResult) -> Option<Figure> {
    if let Some(bytes) = kind.least_bytes_per_s {
        return Some(Figure { value: bytes as f64, low: None, high: None, ops: kind.ops });
    }
    let rate = Course::of_rate(result)?.parts.into_iter().reduce(f64::min)?;
    let value = rate * kind.bytes as f64 / result.requests().max(1) as f64;
    Some(Figure { value, low: None, high: None, ops: kind.ops })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixtures;

    /// Writes of 1 MiB: 400 in each of the first three tenths, 90 in each of the others.
    fn bursting() -> JobResult {
        let mut job = fixtures::load().cells[0].result.jobs[1].clone();
        let writes = job.writes.as_mut().unwrap();
        for (number, window) in writes.windows.iter_mut().enumerate() {
            window.ops = if number < 9 { 400 } else { 90 };
        }
        writes.ops = writes.windows.iter().map(|window| window.ops).sum();
        writes.bytes = writes.ops << 20;
        job
    }

    #[test]
    fn what_lasts_is_the_rate_after_the_burst_and_the_lowest_is_no_mean() {
        let record = fixtures::load();
        let job = bursting();
        let writes = job.writes.as_ref().unwrap();
        let need = |outlasts_bytes| Need { outlasts_bytes, ..record_need() };
        let mib_per_s = |figure: Figure| figure.value / 1_048_576.0;
        let of = |outlasts| rate(&need(outlasts), &record.cells[0], &job, writes, writes.bytes).unwrap();
        assert_eq!(mib_per_s(of(0)), (9.0 * 400.0 + 21.0 * 90.0) / 30.0);
        let lasting = of(1 << 30);
        assert_eq!(mib_per_s(lasting), 90.0);
        assert_eq!((lasting.low, lasting.high), (Some(lasting.value), Some(lasting.value)));
        assert_eq!(mib_per_s(lowest(&job, writes).unwrap()), 90.0);
    }

    #[test]
    fn a_second_without_bytes_is_the_lowest_and_a_tenth_does_not_hide_it() {
        let mut writes = bursting().writes.unwrap();
        writes.least_bytes_per_s = Some(512 << 10);
        assert_eq!(lowest(&bursting(), &writes).unwrap().value, 524_288.0);
    }

    /// A test in rounds of `minutes`, each with 98 requests of 1 ms and two of the `slow_ms` of its round.
    fn rounds(minutes: u64, slow_ms: &[u64]) -> (CellRecord, KindResult) {
        const MS: u64 = 1_000_000;
        let mut cell = fixtures::load().cells[0].clone();
        let visit = cell.result.visits[0].clone();
        cell.result.visits.clear();
        let (mut all, mut by_round) = (Histogram::new(), BTreeMap::new());
        for (round, &slow_ms) in (0..).zip(slow_ms) {
            let elapsed_ns = minutes * 60_000 * MS;
            cell.result.visits.push(rdsk_model::Visit { round, elapsed_ns, ..visit.clone() });
            let mut latencies = Histogram::new();
            latencies.record_n(MS, 98);
            latencies.record_n(slow_ms * MS, 2);
            all.merge(&latencies);
            by_round.insert(round, SparseHistogram::from(&latencies));
        }
        let latency_ns = Latency::from(&all).with_rounds(&by_round);
        let ops = all.count();
        let kind = KindResult { ops, bytes: ops, latency_ns, least_bytes_per_s: None, windows: Vec::new() };
        (cell, kind)
    }

    #[test]
    fn the_worst_hour_counts_and_not_all_hours_together() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let over = |(cell, kind): &(CellRecord, KindResult)| {
            time_over(cell, "log", kind, 100_000_000, Some(HOUR_NS)).unwrap()
        };
        let near = |figure: Option<f64>, seconds: f64| (figure.unwrap() / 1e9 / seconds - 1.0).abs() < 0.01;
        // Half hours: 12 s in all, and 8 s in the worst hour.
        let four = over(&rounds(30, &[1000, 1000, 3000, 1000]));
        assert!(near(Some(four.value), 8.0) && near(four.low, 8.0) && near(four.high, 8.0), "{four:?}");
        // A test of 20 minutes is a part of one hour.
        let short = over(&rounds(10, &[1000, 3000]));
        assert!(near(Some(short.value), 8.0), "{short:?}");
        // Of 6 s in two hours, some hour has at least 3 s and none more than 6 s.
        let long = over(&rounds(120, &[3000, 50]));
        assert!(near(Some(long.value), 3.0) && near(long.low, 3.0) && near(long.high, 6.0), "{long:?}");
        let (cell, kind) = rounds(59, &[1000, 1, 1]);
        let hours = periods(&cell, &kind, HOUR_NS).unwrap();
        assert_eq!(hours.len(), 3, "a repeat that was to last an hour is one");
        assert!(periods(&cell, &kind, 4 * HOUR_NS).is_none());
    }

    #[test]
    fn no_period_has_more_waiting_than_its_time_for_each_request_in_flight() {
        const MIN_NS: u64 = 60_000_000_000;
        let (mut cell, kind) = rounds(2, &[50_000]);
        let mut minute = |queue_depth, rate| {
            let log = cell.workload.jobs.iter_mut().find(|job| job.name == "log").unwrap();
            (log.queue_depth, log.rate) = (queue_depth, rate);
            let figure = time_over(&cell, "log", &kind, 1_000_000, Some(MIN_NS)).unwrap();
            [figure.low, Some(figure.value), figure.high].map(|end| (end.unwrap() / 1e9).round())
        };
        // 100 s in two minutes, one request at a time: 50 s in some minute, and never more than the minute.
        assert_eq!(minute(1, None), [50.0, 50.0, 60.0]);
        assert_eq!(minute(4, None), [50.0, 50.0, 100.0]);
        let rate = rdsk_model::Rate { per_s: 10.0, arrivals: rdsk_model::Arrivals::Poisson };
        assert_eq!(minute(1, Some(rate)), [50.0, 50.0, 100.0], "requests that wait for their turn");
    }

    #[test]
    fn reads_and_writes_together_have_the_latencies_of_both() {
        let mut job = bursting();
        (job.reads, job.writes) = (Some(rounds(1, &[200, 1]).1), Some(rounds(1, &[300, 400]).1));
        let requests = both(&job).unwrap();
        assert_eq!(
            (requests.ops, requests.latency_ns.count, requests.latency_ns.rounds.len()),
            (400, 400, 2)
        );
        assert_eq!(requests.latency_ns.max, Some(400_000_000));
        job.reads = None;
        assert_eq!(both(&job).unwrap().ops, 200);
    }

    pub(in super::super) fn record_need() -> Need {
        Need {
            name: "camera".into(),
            title: String::new(),
            source: String::new(),
            strength: rdsk_model::Strength::Own,
            job_is_ours: false,
            remark: String::new(),
            only_fails: String::new(),
            lasts_ns: 0,
            outlasts_bytes: 0,
            thresholds: Vec::new(),
        }
    }
}
