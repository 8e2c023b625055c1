//! One direction of one job as a cell: the workload from the options, the figures from fio's sums, and a verdict that says what
//! fio cannot know.

use super::document::{Direction, Job};
use super::latency::{self, Clock};
use super::notes::Notes;
use super::options::Options;
use rdsk_analysis::words::{list, nanos, plural};
use rdsk_model::{
    CacheState, CellRecord, CellResult, Estimate, Evidence, Experiment, IoPath, Op, RateSamples, Samples,
    StopReason, StreamRange, UNKNOWN_OFFSET, Verdict, VerdictCode, Workload,
};

const NS_PER_MS: u64 = 1_000_000;
const BYTES_PER_KIB: f64 = 1024.0;

/// One direction of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) job: &'a Job,
    pub(super) options: Options<'a>,
    pub(super) op: Op,
    pub(super) direction: &'a Direction,
    /// Jobs that the figures are of together.
    pub(super) streams: u32,
    /// Whether the job has another direction, which takes its part of the queue.
    pub(super) is_mixed: bool,
}

impl Part<'_> {
    /// The cell with this id, on these targets of the Record.
    pub(super) fn cell(&self, id: String, targets: Vec<u32>, notes: &mut Notes) -> CellRecord {
        let workload = self.workload(targets);
        let result = self.result(notes);
        self.explain(notes);
        let verdict = Some(self.verdict(&workload));
        CellRecord {
            id,
            experiment: Experiment::Fio,
            workload,
            result,
            evidence: Evidence::default(),
            verdict,
        }
    }

    fn workload(&self, targets: Vec<u32>) -> Workload {
        let options = &self.options;
        // The mean of sizes that differ; nothing was asked of a direction without I/Os.
        let mean = self.direction.io_bytes.checked_div(self.direction.total_ios);
        let size = options.block_bytes(self.op).filter(|_| !self.is_of_unlike_jobs());
        let block_bytes = size.or(mean).unwrap_or(0).max(1);
        Workload {
            op: self.op,
            pattern: options.pattern(),
            path: options.path(),
            sync: options.sync(self.op),
            cache: CacheState::Any,
            block_bytes,
            align_bytes: options.align_bytes().unwrap_or(block_bytes),
            shift_bytes: 0,
            queue_depth: options.queue_depth(),
            streams: self.streams,
            stagger_ns: 0,
            engine: options.engine().unwrap_or(rdsk_model::EngineKind::Sync),
            targets,
            offset_bytes: options.offset_bytes().unwrap_or(UNKNOWN_OFFSET),
            span_bytes: options.span_bytes().unwrap_or(0),
            range: StreamRange::Shared,
            points: None,
            buffers: None,
            seed: options.seed(),
        }
    }

    fn result(&self, notes: &mut Notes) -> CellResult {
        let Direction { io_bytes, total_ios, runtime, .. } = *self.direction;
        let (stop, why) = self.stop();
        // fio counts whole milliseconds; of a run that took none there is no rate.
        let rate = |count: u64| {
            (runtime > 0).then(|| Estimate {
                mean: count as f64 * 1000.0 / runtime as f64,
                low: None,
                high: None,
            })
        };
        let latency = latency::of(self.direction).map(|(latency, clock)| {
            self.explain_clock(clock, notes);
            latency
        });
        CellResult {
            stop,
            why,
            elapsed_ns: (runtime > 0).then(|| runtime.saturating_mul(NS_PER_MS)),
            engine: self.options.engine(),
            issuing: None,
            asked_bytes: None,
            pass_bytes: None,
            bytes: Some(io_bytes),
            ops: Some(total_ios),
            bytes_per_s: rate(io_bytes),
            ops_per_s: rate(total_ios),
            samples: self.samples(),
            latency_ns: latency,
            to_return_ns: None,
            to_close_ns: None,
            to_stable_ns: None,
            windows: None,
            streams: Vec::new(),
            cpu_ns: None,
            errors: Vec::new(),
            in_flight_mean: self.in_flight_mean(),
            warmup_ns: None,
            warmup_bytes: None,
            warmup_ops: None,
            stalls: None,
            interrupted_calls: None,
            after_idle: Vec::new(),
            content: None,
            visits: Vec::new(),
            points: Vec::new(),
        }
    }

    fn stop(&self) -> (StopReason, String) {
        match (self.job.error, self.options.runtime()) {
            (0, Some(runtime)) => (StopReason::Complete, format!("fio ended the job (runtime={runtime})")),
            (0, None) => (StopReason::Complete, "fio ended the job".into()),
            (number, _) => {
                let error = std::io::Error::from_raw_os_error(number);
                (StopReason::Error, format!("fio ended the job with an error: {error}"))
            }
        }
    }

    fn samples(&self) -> Option<Samples> {
        let from = self.direction;
        let samples = |count, [mean, stddev, min, max]: [f64; 4], unit: f64| {
            let is_known = count > 0 && [mean, stddev, min, max].iter().all(|value| value.is_finite());
            is_known.then_some(RateSamples {
                count,
                mean: mean * unit,
                stddev: stddev * unit,
                min: min * unit,
                max: max * unit,
            })
        };
        let bytes_per_s =
            samples(from.bw_samples, [from.bw_mean, from.bw_dev, from.bw_min, from.bw_max], BYTES_PER_KIB);
        let ops = [from.iops_mean, from.iops_stddev, from.iops_min, from.iops_max];
        let ops_per_s = samples(from.iops_samples, ops, 1.0);
        (bytes_per_s.is_some() || ops_per_s.is_some()).then_some(Samples { bytes_per_s, ops_per_s })
    }

    /// The sum of all total latencies over the time: what one job had in flight. Of several jobs fio gives the time of the longest
    /// one, and of a mixed job each direction has but a part of the queue.
    fn in_flight_mean(&self) -> Option<f64> {
        let runtime_ns = self.direction.runtime.checked_mul(NS_PER_MS).filter(|&ns| ns > 0)?;
        let latencies_ns = self.latencies_ns()?;
        let is_single = self.streams == 1 && !self.is_mixed && !self.is_of_unlike_jobs();
        is_single.then(|| latencies_ns / runtime_ns as f64).filter(|mean| mean.is_finite())
    }

    /// The sum of all total latencies, if fio took any.
    fn latencies_ns(&self) -> Option<f64> {
        let total = &self.direction.lat_ns;
        let count = latency::count(total, self.direction);
        (count > 0).then_some(total.mean * count as f64)
    }

    /// Whether no job with these options can have these figures: with `group_reporting` fio gives the sums of all jobs of a group
    /// with the options of the first one.
    fn is_of_unlike_jobs(&self) -> bool {
        self.has_other_sizes() || self.has_more_in_flight()
    }

    /// Whether the mean size is not the only one that was asked for. An I/O that failed counts without its bytes, and after a ramp the bytes
    /// of what was in flight count without their I/Os: fio counts these when it gives them to the engine.
    fn has_other_sizes(&self) -> bool {
        let Direction { io_bytes, total_ios, short_ios, drop_ios, .. } = *self.direction;
        let is_sure = self.job.error == 0 && self.job.total_err == 0 && short_ios == 0 && drop_ios == 0;
        let Some(size) = self.options.block_bytes(self.op).filter(|_| is_sure) else { return false };
        let in_queues =
            size.saturating_mul(self.options.queue_depth().into()).saturating_mul(self.streams.into());
        size.checked_mul(total_ios).is_some_and(|asked| asked.abs_diff(io_bytes) > in_queues)
    }

    /// Whether more was in flight than the queues hold, though the time, whose milliseconds are cut, was a whole one longer, and of
    /// each queue the longest latencies lay before or behind it.
    fn has_more_in_flight(&self) -> bool {
        let Direction { runtime, lat_ns, .. } = self.direction;
        let most = f64::from(self.options.queue_depth()) * f64::from(self.streams);
        let longest_ns = (runtime.saturating_add(1) as f64) * NS_PER_MS as f64 + 2.0 * lat_ns.max as f64;
        *runtime > 0 && self.latencies_ns().is_some_and(|sum_ns| sum_ns > most * longest_ns)
    }

    fn verdict(&self, workload: &Workload) -> Verdict {
        // fio counts an I/O that failed among the others, without bytes.
        if self.direction.io_bytes == 0 {
            let text = "no I/O completed".into();
            return Verdict { code: VerdictCode::Incomplete, device_share: None, text };
        }
        let memory = match workload.path {
            IoPath::Direct => "",
            IoPath::Buffered | IoPath::DontCache => {
                "; the job was buffered (no direct=1), so memory may have served some or all of it"
            }
        };
        let text =
            format!("fio counts no bytes of the device for a job, so nothing shows who moved these{memory}");
        Verdict { code: VerdictCode::Unverified, device_share: None, text }
    }

    fn explain_clock(&self, clock: Clock, notes: &mut Notes) {
        let has_total = latency::count(&self.direction.lat_ns, self.direction) > 0;
        if clock == Clock::Completion && has_total && !self.is_synchronous() {
            let total = nanos_of(self.direction.lat_ns.mean);
            notes.add(
                &self.name(),
                format!(
                    "latencies are fio's clat, which begins when the submission has returned; with the submission (lat) the mean \
                     is {total}; lat_percentiles=1 gives the percentiles of that"
                ),
            );
        }
    }

    fn is_synchronous(&self) -> bool {
        self.options.engine() == Some(rdsk_model::EngineKind::Sync)
    }

    /// What the figures do not say.
    fn explain(&self, notes: &mut Notes) {
        let (options, name) = (&self.options, self.name());
        if self.is_of_unlike_jobs() {
            notes.add(&name, "the sum of a group; the options are those of its first job");
        } else if options.block_bytes(self.op).is_none() {
            notes.add(&name, "its I/Os have several sizes; the block size shown is their mean");
        }
        if let Some(offset) = options.offset_without_bytes() {
            notes.add(
                &name,
                format!("offset={offset} is no number of bytes, so it is not known where its I/O began"),
            );
        }
        if options.engine().is_none() {
            let engine = options.engine_name();
            notes.add(
                &name,
                format!("rdsk has no word for the engine {engine}, and knows nothing of what it does"),
            );
        }
        if options.requested_depth() > options.queue_depth() {
            let (depth, engine) = (options.requested_depth(), options.engine_name());
            notes.add(&name, format!("{engine} does one I/O at a time, whatever iodepth={depth} says"));
        }
        let brakes = options.brakes();
        if !brakes.is_empty() {
            let what = list(&brakes);
            notes.add(&name, format!("fio held the job back ({what}); the rate is no limit of the storage"));
        }
        let syncs = options.syncs();
        if self.op == Op::Write && !syncs.is_empty() {
            let what = list(&syncs);
            notes.add(
                &name,
                format!("{what} takes time that is in the rate and not in the latencies of the writes"),
            );
        }
        if self.is_mixed {
            notes.add(&name, "reads and writes of the job share its queue, so neither had the whole depth");
        }
        let Direction { short_ios, drop_ios, .. } = *self.direction;
        for (count, what) in [(short_ios, "short"), (drop_ios, "dropped")] {
            if count > 0 {
                let ios = plural(count, "I/O");
                notes.add(&name, format!("fio counts {ios} that were {what} ({})", self.op));
            }
        }
    }

    fn name(&self) -> String {
        self.job.jobname.clone()
    }
}

fn nanos_of(mean: f64) -> String {
    nanos(rdsk_analysis::metrics::whole(mean.round()))
}
