//! Turns the totals of one cell into its result: the figures, and in words why the cell ended. It measures nothing.

use crate::cell_totals::CellTotals;
use crate::load_totals::job_results;
use rdsk_engine::Ended;
use rdsk_model::{
    Cell, CellResult, EngineKind, Extent, IoPath, Latency, LoadJob, NEEDS_OF_DONTCACHE, StopReason, Visit,
    Workload,
};
use rdsk_units::{Bytes, Nanos, percent};

/// What a result depends on besides the totals.
pub(crate) struct ResultContext {
    pub(crate) precision: f64,
    /// Time that the cell was given.
    pub(crate) slice_ns: u64,
    /// Whether a signal cut it short.
    pub(crate) interrupted: bool,
    /// What direct I/O on the target takes multiples of.
    pub(crate) align_bytes: Option<u64>,
}

impl CellTotals {
    pub(crate) fn result(&self, cell: &Cell, context: &ResultContext) -> CellResult {
        let (stop, mut why) = self.reason(cell, context);
        if self.goes_on_after_errors(&cell.workload) && !self.errors.is_empty() {
            why.push_str(&format!("; {} of its positions failed", self.errors.len()));
        }
        let errors = if stop == StopReason::NotApplicable { Vec::new() } else { self.errors.clone() };
        let ended = CellResult { stop, why, errors, ..CellResult::default() };
        if self.visits.is_empty() || stop == StopReason::NotApplicable {
            return ended;
        }
        let sum = |figure: fn(&Visit) -> u64| self.visits.iter().map(figure).sum::<u64>();
        let elapsed_ns = sum(|visit| visit.elapsed_ns);
        // Requests of different sizes have no common rate.
        let is_mixed = cell.workload.points.as_ref().is_some_and(|points| !points.block_bytes.is_empty());
        let block_bytes = cell.workload.block_bytes;
        let (bytes, ops) = (sum(|visit| visit.bytes), sum(|visit| visit.ops));
        // Of jobs with requests of several sizes, those that ran at another time than the rate is of have none in common with it.
        let request_bytes = match cell.workload.jobs.len() {
            0 => Some(block_bytes as f64),
            _ if ops.checked_mul(block_bytes) == Some(bytes) => Some(block_bytes as f64),
            1 => Some(bytes as f64 / ops.max(1) as f64),
            _ => None,
        };
        let bytes_per_s = if is_mixed { None } else { self.estimate_of(cell) };
        CellResult {
            elapsed_ns: Some(elapsed_ns),
            engine: self.engine,
            issuing: self.issuing.clone(),
            asked_bytes: Some(self.asked_bytes),
            pass_bytes: cell.extent.pass_bytes().filter(|_| !is_mixed),
            bytes: Some(bytes),
            ops: Some(ops),
            bytes_per_s,
            ops_per_s: bytes_per_s.zip(request_bytes).map(|(rate, bytes)| rate.over(bytes)),
            latency_ns: Some(Latency::from(&self.histogram).with_rounds(&self.round_histograms)),
            to_return_ns: self.sum_of(|visit| visit.to_return_ns),
            to_close_ns: self.sum_of(|visit| visit.to_close_ns),
            to_stable_ns: self.sum_of(|visit| visit.to_stable_ns),
            windows: Some(self.windows.clone()),
            streams: self.streams.clone(),
            cpu_ns: Some(self.cpu),
            in_flight_mean: (elapsed_ns > 0).then(|| self.latency_sum_ns as f64 / elapsed_ns as f64),
            warmup_ns: Some(self.warm_up.ns),
            warmup_bytes: Some(self.warm_up.bytes),
            warmup_ops: Some(self.warm_up.ops),
            interrupted_calls: Some(self.interrupted_calls),
            content: self.content,
            after_idle: self.after_idle.clone(),
            visits: self.visits.clone(),
            points: self.positions.clone(),
            jobs: job_results(&self.jobs, &cell.workload.jobs),
            ..ended
        }
    }

    fn reason(&self, cell: &Cell, context: &ResultContext) -> (StopReason, String) {
        let ResultContext { precision, slice_ns, interrupted, align_bytes } = *context;
        if let Some(why) = &cell.not_applicable {
            return (StopReason::NotApplicable, why.clone());
        }
        if self.is_refused_by_kernel(&cell.workload) {
            return (StopReason::NotApplicable, refusal(&cell.workload, align_bytes));
        }
        if let Some(failure) = &self.failure {
            return (StopReason::Error, failure.message.clone());
        }
        if let Some(error) = self.errors.first().filter(|_| !self.goes_on_after_errors(&cell.workload)) {
            return (StopReason::Error, error.message.clone());
        }
        if interrupted {
            return (StopReason::Interrupted, "a signal ended the run".into());
        }
        if self.visits.is_empty() {
            return (StopReason::Budget, "the time was used up before this test's turn".into());
        }
        if let Extent::Sustained(_) = cell.extent {
            return match self.ended {
                Some(Ended::Stopped) => {
                    (StopReason::Complete, "it went on until its rate had settled".into())
                }
                _ => (StopReason::Budget, "it went on for as long as there was time".into()),
            };
        }
        if self.has_no_overlap && self.measured_ns == 0 {
            return (
                StopReason::Complete,
                "its streams never all ran at once, so there is no common rate; more bytes or a shorter --stagger help"
                    .into(),
            );
        }
        if let Extent::Once { .. } = cell.extent {
            return self.reason_once(cell);
        }
        let width = self.margin(cell);
        let precise = width.is_some_and(|width| width <= precision);
        if let Some(bytes) = cell.extent.pass_bytes()
            && !(precise && matches!(cell.extent, Extent::Passes { .. }))
            && self.visits.iter().all(|visit| visit.bytes >= bytes)
        {
            let passes = self.visits.len();
            return (StopReason::Complete, format!("{passes} sweeps of {} are complete", Bytes(bytes)));
        }
        if let Some(why) = self.why_no_whole_pass(cell) {
            return (StopReason::Budget, why);
        }
        match width {
            Some(width) if width <= precision => (
                StopReason::Precision,
                format!("the 95% interval is ±{}, asked for ±{}", percent(width), percent(precision)),
            ),
            Some(width) => (
                StopReason::Budget,
                format!("its {} of the time were used up at ±{}", Nanos(slice_ns), percent(width)),
            ),
            None => (
                StopReason::Budget,
                format!("its {} of the time were too short for an interval", Nanos(slice_ns)),
            ),
        }
    }

    /// Jobs with a time of their own end by it; what the others have to do is done, or the time of the run was over.
    fn reason_once(&self, cell: &Cell) -> (StopReason, String) {
        let elapsed_ns = self.sum_of(|visit| Some(visit.elapsed_ns)).unwrap_or(0);
        let of_job = |job: &LoadJob| job.lasts_ns.map(|ns| ns.saturating_add(job.delay_ns));
        let longest_ns = cell.workload.jobs.iter().filter_map(of_job).max();
        let has_ended = longest_ns.is_some_and(|ns| elapsed_ns >= ns / 100 * 99);
        if has_ended || self.ended == Some(Ended::Complete) {
            (StopReason::Complete, "its jobs ran once, to their end".into())
        } else {
            (StopReason::Budget, "its jobs ran once, and the time was over before their end".into())
        }
    }

    /// Why a cell that transfers passes has no whole one; `None` if it has one, or needs none.
    fn why_no_whole_pass(&self, cell: &Cell) -> Option<String> {
        let bytes = cell.extent.pass_bytes()?;
        let longest = self.visits.iter().map(|visit| visit.bytes).max()?;
        if longest >= bytes {
            return None;
        }
        let more = match self.ended {
            Some(Ended::OutOfTime | Ended::Stopped) => "; a longer --budget or --runtime gives whole ones",
            _ => "",
        };
        let (longest, bytes) = (Bytes(longest).approx(), Bytes(bytes).approx());
        Some(format!("no sweep of {bytes} is complete: the longest has {longest}{more}"))
    }
}

/// The words for a path that the kernel refused.
fn refusal(workload: &Workload, align_bytes: Option<u64>) -> String {
    if workload.path == IoPath::DontCache {
        return format!("the kernel refused it (EOPNOTSUPP): {NEEDS_OF_DONTCACHE}");
    }
    let multiple = align_bytes.map_or_else(|| "the device's block".into(), |bytes| format!("{bytes} bytes"));
    let system = if workload.engine == EngineKind::Sim { "host" } else { "kernel" };
    format!(
        "the {system} refused it (EINVAL): direct I/O here takes sizes and offsets in multiples of {multiple}"
    )
}
