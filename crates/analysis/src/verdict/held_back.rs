//! A limit that holds the I/O back although the rate stays below it. A control group lets I/Os pass in portions, so that small ones, and
//! those of a copy whose ends take turns, lose a part of what they may have. The counters show it: our I/O was in flight, and the
//! device had none of it. It names a limit that may be in force otherwise, too, and claims nothing of that.

use super::facts::Facts;
use super::limit::{LIMIT_TOLERANCE, ios_of_a_call, limited, limits, of_target, own_rates};
use super::{Judgement, mixed};
use crate::words;
use rdsk_model::{DeviceEvidence, EngineKind, Estimate, JobResult, Limit, LoadJob, Op, VerdictCode};
use rdsk_units::{percent, printable};

/// Share of the limit that our I/O had while it was in flight, from which the limit may be what it waited for.
const MIN_SHARE: f64 = 0.7;
/// Less of it is enough for io_uring where I/O hardly was in the device: it tries a request twice where it would wait, first without
/// waiting and then by a worker, and a limit charges both. Of 121 MB/s, blocks of 1 MiB at QD8 had 62 MB/s (Linux 6.18), and 126 by
/// threads or libaio.
const MIN_SHARE_TWICE: f64 = 0.45;
/// Share of the time with our I/O in flight in which it hardly was in the device.
const HARDLY_IN_DEVICE: f64 = 0.2;
/// Share of the time with our I/O in flight in which the device did it, up to which it waited elsewhere.
const MOST_IN_DEVICE: f64 = 0.5;
/// Least share of the time in which our I/O was in flight.
const MIN_IN_FLIGHT: f64 = 0.2;
/// Least time for whole milliseconds of the kernel to show a share.
const MIN_NS: f64 = 100e6;
/// Share of the limit from which it is worth a word beside a rate of the device.
const WORTH_NAMING: f64 = 0.5;

/// The sentence of a limit below which the rate stays, and that holds the I/O back all the same.
pub(super) fn judge(facts: &Facts<'_>) -> Judgement {
    if has_what_it_asked_for(facts) {
        return None;
    }
    limits(facts).find_map(|limit| {
        let waited = waited_above(facts, limited(facts, limit)?, limit.op)?;
        let result = &facts.cell.result;
        // The ends of a copy take turns; a job that rests or has a rate of its own has no more to do in the rest of the time.
        let jobs = &facts.cell.workload.jobs;
        let in_flight = result.in_flight_mean.filter(|_| jobs.is_empty()).map_or(1.0, |mean| mean.min(1.0));
        let may_be_twice = result.engine == Some(EngineKind::Uring) && waited >= 1.0 - HARDLY_IN_DEVICE;
        let least = if may_be_twice { MIN_SHARE_TWICE } else { MIN_SHARE };
        let may_be = |rate: &Below| {
            let high = rate.high.unwrap_or(rate.mean);
            rate.mean / in_flight >= least * rate.most || high >= (1.0 - LIMIT_TOLERANCE) * rate.most
        };
        let rate = below(facts, limit).into_iter().find(may_be)?;
        let text = format!(
            "{}: {} of the time with {}s in flight passed before they reached {}",
            rate.words(limit),
            percent(waited),
            limit.op,
            printable(&limit.device),
        );
        Some((VerdictCode::Throttled, of_target(facts, limit.target, &text)))
    })
}

/// Whether all jobs have a rate of their own, and did what was due as soon as it was due: nothing held them back. What is left at the end
/// fits into a deep queue, so that the rate that was reached counts, too, as far as chance lets it scatter.
fn has_what_it_asked_for(facts: &Facts<'_>) -> bool {
    let (jobs, results) = (&facts.cell.workload.jobs, &facts.cell.result.jobs);
    let kept_up = |(job, result): (&LoadJob, &JobResult)| {
        let Some((rate, offered)) = result.rate.as_ref().zip(job.offered_per_s()) else { return false };
        let scatter = 2.0 / (result.requests().max(1) as f64).sqrt();
        let least = offered * (1.0 - LIMIT_TOLERANCE - scatter);
        rate.unsent as f64 <= LIMIT_TOLERANCE * rate.due as f64
            && result.requests_per_s().is_some_and(|reached| reached >= least)
    };
    !jobs.is_empty() && jobs.len() == results.len() && jobs.iter().zip(results).all(kept_up)
}

/// `8.57 MiB/s is 85.7 % of the limit of 10.0 MiB/s that … sets for writes`, for a rate that no counter shows to be held by it.
pub(super) fn in_force(facts: &Facts<'_>) -> Option<String> {
    let near = limits(facts).flat_map(|limit| below(facts, limit).into_iter().map(move |rate| (limit, rate)));
    let (limit, rate) = near.into_iter().find(|(_, rate)| rate.mean >= WORTH_NAMING * rate.most)?;
    Some(rate.words(limit))
}

/// A rate below a limit, and that limit; both of bytes, or both of I/Os.
struct Below {
    mean: f64,
    high: Option<f64>,
    most: f64,
    is_bytes: bool,
}

impl Below {
    fn words(&self, limit: &Limit) -> String {
        let in_words = |rate: f64| {
            if self.is_bytes { words::rate(rate) } else { format!("{} I/Os per second", words::figure(rate)) }
        };
        let scatter = self.high.filter(|&high| high >= (1.0 - LIMIT_TOLERANCE) * self.most);
        let scatter = scatter.map_or_else(String::new, |high| {
            format!(" (up to {} with the scatter of the runs)", in_words(high))
        });
        format!(
            "{}{scatter} is {} of the limit of {} that {} sets for {}s",
            in_words(self.mean),
            percent(self.mean / self.most),
            in_words(self.most),
            printable(&limit.source),
            limit.op
        )
    }
}

fn below(facts: &Facts<'_>, limit: &Limit) -> Vec<Below> {
    let (bytes_per_s, ops_per_s) = own_rates(facts, limit);
    let result = &facts.cell.result;
    // The interval is that of the cell, which is the target's where there is one.
    let high = |rate: Option<Estimate>| rate.filter(|_| facts.targets.len() == 1)?.high;
    let if_below = |rate: Option<f64>, most: Option<u64>, high: Option<f64>, is_bytes: bool| {
        let (mean, most) = (rate?, most.filter(|&most| most > 0)? as f64);
        (mean <= most * (1.0 + LIMIT_TOLERANCE)).then_some(Below { mean, high, most, is_bytes })
    };
    let bytes = if_below(bytes_per_s, limit.bytes_per_s, high(result.bytes_per_s), true);
    let high_ops = high(result.ops_per_s).map(|high| high * ios_of_a_call(facts, limit));
    bytes.into_iter().chain(if_below(ops_per_s, limit.ops_per_s, high_ops, false)).collect()
}

/// The share of the time with our I/O in flight in which the device did none of it; `None` where that is not most of the time, or not
/// known.
fn waited_above(facts: &Facts<'_>, device: &DeviceEvidence, op: Op) -> Option<f64> {
    let counted = device.diskstat?;
    let interval_ns = device.interval_ns? as f64;
    let is_half = mixed::has_both(facts.cell);
    let in_flight = if is_half { mixed::in_flight(facts.cell) } else { facts.cell.result.in_flight_mean };
    let in_flight = in_flight?.min(1.0);
    let ours_ns = in_flight * interval_ns;
    if in_flight < MIN_IN_FLIGHT || ours_ns < MIN_NS {
        return None;
    }
    let of_writes = (counted.write_ticks_ms, counted.flush_ticks_ms.unwrap_or(0));
    let (ticks_ms, flush_ms) = op.select((counted.read_ticks_ms, 0), of_writes);
    let in_device = ((ticks_ms.min(counted.io_ticks_ms) + flush_ms) as f64 * 1e6 / ours_ns).min(1.0);
    (in_device <= MOST_IN_DEVICE).then_some(1.0 - in_device)
}

#[cfg(test)]
mod tests {
    use super::super::verdict;
    use crate::fixtures::{self, cell, with};
    use rdsk_model::{
        Arrivals, CellRecord, DiskStat, EngineKind, Estimate, IoPath, Limit, Op, Rate, RateResult,
        VerdictCode,
    };

    const MIB: u64 = 1 << 20;

    /// What `rdsk dd bs=16k oflag=direct` did under 10 MiB/s (2026-11): 8.57 MiB/s, and the device had 3 % of the time.
    fn small_writes(most: u64, in_device_ms: u64) -> CellRecord {
        with(cell("dd/write", Op::Write, IoPath::Direct, 16 << 10, 1000, 1_823_000_000), |cell| {
            cell.experiment = rdsk_model::Experiment::Dd;
            cell.result.in_flight_mean = Some(0.997);
            let device = &mut cell.evidence.device[0];
            device.interval_ns = Some(1_823_000_000);
            let counted = device.diskstat.unwrap();
            let (io_ticks_ms, write_ticks_ms) = (in_device_ms, in_device_ms);
            device.diskstat = Some(DiskStat { io_ticks_ms, write_ticks_ms, ..counted });
            cell.evidence.limits = vec![Limit {
                target: 0,
                device: "sda".into(),
                source: "/cg/write_bps".into(),
                op: Op::Write,
                bytes_per_s: Some(most * MIB),
                ops_per_s: None,
            }];
        })
    }

    fn judged(cell: &CellRecord) -> (VerdictCode, String) {
        let verdict = verdict(cell, &[fixtures::disk()], Some(2));
        (verdict.code, verdict.text)
    }

    #[test]
    fn a_limit_that_small_writes_do_not_reach_is_named_where_they_waited_for_it() {
        let (code, text) = judged(&small_writes(10, 60));
        assert_eq!(code, VerdictCode::Throttled, "{text}");
        let expected = "8.57 MiB/s is 85.7% of the limit of 10.0 MiB/s that /cg/write_bps sets for writes: 96.7% of the time with \
                        writes in flight passed before they reached sda";
        assert_eq!(text, expected);
        // Half of it, where a request may be charged twice.
        let by_ring = |in_device_ms: u64| {
            let mut cell = small_writes(17, in_device_ms);
            cell.result.engine = Some(EngineKind::Uring);
            judged(&cell).0
        };
        assert_eq!(by_ring(60), VerdictCode::Throttled);
        assert_eq!(by_ring(600), VerdictCode::Device, "a third of the time in the device");
        assert_eq!(judged(&small_writes(17, 60)).0, VerdictCode::Device);
        // The device itself needed the time; the limit is there all the same.
        let (code, text) = judged(&small_writes(10, 1700));
        assert_eq!(code, VerdictCode::Device, "{text}");
        assert!(text.contains("8.57 MiB/s is 85.7% of the limit of 10.0 MiB/s that /cg/write_bps"), "{text}");
        // Far below a limit nothing waits for it.
        let (code, text) = judged(&small_writes(40, 60));
        assert_eq!(code, VerdictCode::Device, "{text}");
        assert!(!text.contains("limit"), "{text}");
    }

    /// Found by a user: reads that were offered at half of a limit, and were all done in time, were "throttled".
    #[test]
    fn what_was_offered_and_done_in_time_was_held_back_by_nothing() {
        let offered = |per_s: f64, unsent: u64| {
            with(small_writes(10, 60), |cell| {
                let load = &fixtures::load().cells[0];
                let (mut job, mut result) = (load.workload.jobs[1].clone(), load.result.jobs[1].clone());
                (job.streams, job.rate) = (1, Some(Rate { per_s, arrivals: Arrivals::Poisson }));
                let lag_ns = result.writes.as_ref().unwrap().latency_ns.clone();
                result.rate = Some(RateResult { due: 1000, unsent, lag_ns });
                (cell.workload.jobs, cell.result.jobs) = (vec![job], vec![result]);
            })
        };
        let reached = offered(1.0, 0).result.jobs[0].requests_per_s().unwrap();
        assert_eq!(judged(&offered(reached, 0)).0, VerdictCode::Device);
        assert_eq!(judged(&offered(reached, 200)).0, VerdictCode::Throttled, "a fifth was never sent");
        assert_eq!(
            judged(&offered(3.0 * reached, 0)).0,
            VerdictCode::Throttled,
            "a deep queue held the rest"
        );
    }

    /// Both ends of a copy are limited and take turns: each has half of the time.
    #[test]
    fn an_end_is_compared_with_its_limit_by_the_time_of_its_own_calls() {
        let half = |in_flight: f64| {
            with(small_writes(14, 60), |cell| {
                cell.result.in_flight_mean = Some(in_flight);
            })
        };
        assert_eq!(judged(&half(1.0)).0, VerdictCode::Device, "61% of it, all the time");
        assert_eq!(judged(&half(0.5)).0, VerdictCode::Throttled);
        assert_eq!(judged(&half(0.1)).0, VerdictCode::Device, "it hardly wrote");
    }

    #[test]
    fn the_scatter_of_several_runs_may_reach_the_limit() {
        let scattered = |high: f64| {
            with(small_writes(16, 60), |cell| {
                let mean = cell.result.bytes_per_s.unwrap().mean;
                cell.result.bytes_per_s =
                    Some(Estimate { mean, low: Some(0.0), high: Some(high * MIB as f64) });
            })
        };
        let (code, text) = judged(&scattered(15.5));
        assert_eq!(code, VerdictCode::Throttled, "{text}");
        assert!(text.starts_with("8.57 MiB/s (up to 15.5 MiB/s with the scatter of the runs) is"), "{text}");
        assert_eq!(judged(&scattered(9.0)).0, VerdictCode::Device);
    }
}
