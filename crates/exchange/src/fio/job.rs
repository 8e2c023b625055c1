//! One direction of one job as a cell: the workload from the options, the figures from fio's sums, and a verdict that says what
//! fio cannot know.

use super::document::{Direction, Job, Syncs};
use super::latency;
use super::notes::Notes;
use super::options::Options;
use super::version::{Version, is_about};
use rdsk_model::{
    CacheState, CellRecord, CellResult, EngineKind, Estimate, Evidence, Experiment, IoPath, Op, Pattern,
    RateSamples, Samples, StopReason, StreamRange, Sync, UNKNOWN_OFFSET, Untold, Verdict, VerdictCode,
    Workload,
};

const NS_PER_MS: u64 = 1_000_000;

/// Percent of a processor from which a job had no time to wait for the storage.
const BUSY_PERCENT: f64 = 90.0;
/// Shorter jobs may have spent a large part of that on starting.
const MIN_BUSY_MS: u64 = 100;

/// One direction of a job.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    /// The job in notes.
    pub(super) name: String,
    pub(super) version: Option<Version>,
    pub(super) job: &'a Job,
    pub(super) options: Options<'a>,
    pub(super) op: Op,
    pub(super) direction: &'a Direction,
    /// The syncs of the job, at the direction that they belong to.
    pub(super) syncs: Option<&'a Syncs>,
    /// Jobs that the figures are of together, where that is known.
    pub(super) streams: Option<u32>,
    /// Whether the job has another direction, which takes its part of the queue.
    pub(super) is_mixed: bool,
    /// Whether it is a sum of jobs that have parts of their own, which explain themselves.
    pub(super) is_sum: bool,
}

impl Part<'_> {
    /// The cell with this id, on these targets of the Record.
    pub(super) fn cell(&self, id: String, targets: Vec<u32>, notes: &mut Notes) -> CellRecord {
        let workload = self.workload(targets);
        let mut of_sum = Notes::default();
        let notes = if self.is_sum { &mut of_sum } else { notes };
        let result = self.result(notes);
        self.explain(result.sync_latency_ns.as_ref(), notes);
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
        let (pattern, path) = (options.pattern(), options.path());
        let (sync, engine) = (options.sync(self.op), options.engine());
        let untold = [
            (Untold::Pattern, pattern.is_none()),
            (Untold::Path, path.is_none()),
            (Untold::Sync, sync.is_none()),
            (Untold::Engine, engine.is_none()),
        ];
        Workload {
            op: self.op,
            pattern: pattern.unwrap_or(Pattern::Sequential),
            path: path.unwrap_or(IoPath::Buffered),
            sync: sync.unwrap_or(Sync::None),
            cache: CacheState::Any,
            block_bytes,
            align_bytes: options.align_bytes().unwrap_or(block_bytes),
            shift_bytes: 0,
            queue_depth: options.queue_depth().unwrap_or(0),
            streams: self.streams.unwrap_or(0),
            at_once: None,
            stagger_ns: 0,
            engine: engine.unwrap_or(EngineKind::Sync),
            targets,
            offset_bytes: options.offset_bytes().unwrap_or(UNKNOWN_OFFSET),
            span_bytes: options.span_bytes().unwrap_or(0),
            range: StreamRange::Shared,
            points: None,
            buffers: None,
            jobs: Vec::new(),
            seed: options.seed(),
            untold: untold.into_iter().filter(|(_, is_untold)| *is_untold).map(|(word, _)| word).collect(),
        }
    }

    fn result(&self, notes: &mut Notes) -> CellResult {
        let Direction { io_bytes, total_ios, runtime, bw, iops, .. } = *self.direction;
        let (stop, why) = self.stop();
        let latency = latency::of_direction(self.direction).map(|(latency, clock)| {
            self.explain_clock(clock, notes);
            latency
        });
        CellResult {
            stop,
            why,
            elapsed_ns: (runtime > 0).then(|| runtime.saturating_mul(NS_PER_MS)),
            engine: self.options.engine(),
            bytes: Some(io_bytes),
            ops: Some(total_ios),
            bytes_per_s: self.rate(io_bytes, bw, 1024.0, notes),
            ops_per_s: self.rate(total_ios, iops, 1.0, notes),
            samples: self.samples(notes),
            latency_ns: latency,
            sync_latency_ns: self.syncs.and_then(latency::of_syncs),
            in_flight_mean: self.in_flight_mean(),
            ..CellResult::default()
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

    /// What was done over the time, unless fio's own rate, in so many units, is another one: then one of the figures is wrong, and
    /// which one is not known.
    fn rate(&self, count: u64, said: Option<f64>, unit: f64, notes: &mut Notes) -> Option<Estimate> {
        let runtime = self.direction.runtime;
        // fio counts whole milliseconds; of a run that took none there is no rate.
        let mean = (runtime > 0).then(|| count as f64 * 1000.0 / runtime as f64)?;
        if said.is_some_and(|said| !is_about(mean / unit, said)) {
            let text = "its bytes or I/Os over its time are not the rate that fio gives: the figures contradict each other, so that rate is left out";
            notes.add(&self.name, text);
            return None;
        }
        Some(Estimate { mean, low: None, high: None })
    }

    /// The sum of all total latencies over the time: what one job had in flight. Of several jobs fio gives the time of the longest
    /// one, and of a mixed job each direction has but a part of the queue.
    fn in_flight_mean(&self) -> Option<f64> {
        let runtime_ns = self.direction.runtime.checked_mul(NS_PER_MS).filter(|&ns| ns > 0)?;
        let latencies_ns = self.latencies_ns()?;
        let is_single = self.streams == Some(1) && !self.is_mixed && !self.is_of_unlike_jobs();
        is_single.then(|| latencies_ns / runtime_ns as f64).filter(|mean| mean.is_finite())
    }

    /// The sum of all total latencies, if fio took any.
    fn latencies_ns(&self) -> Option<f64> {
        let total = &self.direction.lat_ns;
        let count = latency::count(total, self.direction);
        total.mean.filter(|_| count > 0).map(|mean| mean * count as f64)
    }

    /// Whether no job with these options can have these figures: with `group_reporting` fio gives the sums of all jobs of a group
    /// with the options of the first one.
    pub(super) fn is_of_unlike_jobs(&self) -> bool {
        self.has_other_sizes() || self.has_more_in_flight()
    }

    /// Whether the mean size is not the only one that was asked for. An I/O that failed counts without its bytes, and after a ramp the bytes
    /// of what was in flight count without their I/Os: fio counts these when it gives them to the engine.
    fn has_other_sizes(&self) -> bool {
        let Direction { io_bytes, total_ios, short_ios, drop_ios, .. } = *self.direction;
        let is_sure = self.job.error == 0 && self.job.total_err == 0 && short_ios == 0 && drop_ios == 0;
        let Some(size) = self.options.block_bytes(self.op).filter(|_| is_sure) else { return false };
        let Some((depth, streams)) = self.options.queue_depth().zip(self.streams) else { return false };
        let in_queues = size.saturating_mul(depth.into()).saturating_mul(streams.into());
        size.checked_mul(total_ios).is_some_and(|asked| asked.abs_diff(io_bytes) > in_queues)
    }

    /// Whether more was in flight than the queues hold, though the time, whose milliseconds are cut, was a whole one longer, and of
    /// each queue the longest latencies lay before or behind it.
    fn has_more_in_flight(&self) -> bool {
        let Direction { runtime, lat_ns, .. } = self.direction;
        let Some((depth, streams)) = self.options.queue_depth().zip(self.streams) else { return false };
        let most = f64::from(depth) * f64::from(streams);
        let longest_ns =
            (runtime.saturating_add(1) as f64) * NS_PER_MS as f64 + 2.0 * lat_ns.max.unwrap_or(0) as f64;
        *runtime > 0 && self.latencies_ns().is_some_and(|sum_ns| sum_ns > most * longest_ns)
    }

    fn verdict(&self, workload: &Workload) -> Verdict {
        // fio counts an I/O that failed among the others, without bytes.
        if self.direction.io_bytes == 0 {
            let text = "no I/O completed".into();
            return Verdict { code: VerdictCode::Incomplete, device_share: None, text };
        }
        let memory = match workload.path {
            _ if !workload.tells(Untold::Path) => {
                "; whether the job was direct is not known, so memory may have served some or all of it"
            }
            IoPath::Direct => "",
            IoPath::Buffered | IoPath::DontCache => {
                "; the job was buffered (no direct=1), so memory may have served some or all of it"
            }
        };
        let limit = if self.was_limit() { "; fio itself was the limit, not the storage" } else { "" };
        let text = format!(
            "fio counts no bytes of the device for a job, so nothing shows who moved these{memory}{limit}"
        );
        Verdict { code: VerdictCode::Unverified, device_share: None, text }
    }

    /// The share of a processor that each process of the job used, user and kernel, in percent.
    pub(super) fn processor_percent(&self) -> Option<(f64, f64)> {
        self.job.usr_cpu.zip(self.job.sys_cpu)
    }

    /// Whether the job was busy nearly all of the time, so that it could not have been faster on any storage.
    pub(super) fn was_limit(&self) -> bool {
        let is_busy = self.processor_percent().is_some_and(|(user, kernel)| user + kernel >= BUSY_PERCENT);
        is_busy && !self.is_sum && self.direction.runtime >= MIN_BUSY_MS && !self.options.polls()
    }
}

const BYTES_PER_KIB: f64 = 1024.0;
/// fio takes a sample each 500 ms unless it is asked for others; more often than this for each ms, and as many as there are
/// I/Os, they are those of the I/Os.
const OFTEN_PER_MS: f64 = 0.05;
/// How far the numbers of samples and I/Os may lie apart: fio also samples the I/Os that it does not count, at the end.
const ALIKE: f64 = 0.02;
/// How far the mean of samples may be from the rate where all jobs are in them.
const WHOLE: f64 = 0.25;

impl Part<'_> {
    /// The samples that are rates over time, and notes on those that are not.
    fn samples(&self, notes: &mut Notes) -> Option<Samples> {
        let from = self.direction;
        let bandwidth = [from.bw_mean, from.bw_dev, from.bw_min, from.bw_max];
        let ios = [from.iops_mean, from.iops_stddev, from.iops_min, from.iops_max];
        let given = [
            ("bandwidth", "write_bw_log", from.bw_samples, bandwidth, BYTES_PER_KIB),
            ("IOPS", "write_iops_log", from.iops_samples, ios, 1.0),
        ];
        let [bytes_per_s, ops_per_s] = given.map(|(what, log, count, figures, unit)| {
            let count = count.filter(|&count| count > 0)?;
            let [mean, stddev, min, max] = figures;
            if self.are_of_single_ios(log, count, min == Some(1.0) && max == Some(1.0)) {
                let text = format!(
                    "fio's samples of {what} are those of single I/Os (a log without log_avg_msec): no rate over time, and left out"
                );
                notes.add(&self.name, text);
                return None;
            }
            let jobs = self.jobs_beside(mean?, unit, notes)?;
            Some(RateSamples { count, mean: mean? * unit, stddev: stddev? * unit, min: min? * unit, max: max? * unit, jobs })
        });
        (bytes_per_s.is_some() || ops_per_s.is_some()).then_some(Samples { bytes_per_s, ops_per_s })
    }

    fn are_of_single_ios(&self, log: &str, count: u64, are_ones: bool) -> bool {
        let ios = self.direction.total_ios as f64;
        let are_as_many = (count as f64 - ios).abs() <= ALIKE * ios;
        let are_many = count as f64 > OFTEN_PER_MS * self.direction.runtime as f64;
        self.options.logs_single_ios(log) || (are_as_many && (are_many || are_ones))
    }

    /// Of how many jobs each sample is that of one; `None`, with a note, where that is not known.
    fn jobs_beside(&self, mean: f64, unit: f64, notes: &mut Notes) -> Option<u32> {
        if !self.version.is_some_and(Version::samples_single_jobs) {
            return Some(1);
        }
        let rate = if unit > 1.0 { self.direction.bw } else { self.direction.iops };
        let is_whole = rate.is_some_and(|rate| is_about(mean, rate) || (mean - rate).abs() <= WHOLE * rate);
        let jobs = self.streams.or_else(|| is_whole.then_some(1));
        if jobs.is_none() {
            let text = "fio before 3.14 samples each job of a group alone, and how many there were is not known: its samples are left out";
            notes.add(&self.name, text);
        }
        if let Some(jobs) = jobs.filter(|&jobs| jobs > 1 && unit > 1.0) {
            let mib = |kib: f64| rdsk_analysis::words::figure(kib / 1024.0);
            let text = format!(
                "fio before 3.14 samples each job of a group alone: the {jobs} jobs have {jobs} × {} = {} MiB/s by its samples",
                mib(mean),
                mib(mean * f64::from(jobs))
            );
            notes.add(&self.name, text);
        }
        jobs
    }
}
