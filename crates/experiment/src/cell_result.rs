//! Turns the totals of one cell into its result: the figures, and in words why the cell ended. It measures nothing.

use crate::cell_totals::CellTotals;
use rdsk_engine::Ended;
use rdsk_model::{
    Cell, CellResult, EngineKind, Estimate, Extent, IoPath, Latency, NEEDS_OF_DONTCACHE, StopReason, Workload,
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
        let ran = !self.visits.is_empty() && stop != StopReason::NotApplicable;
        let elapsed_ns: u64 = self.visits.iter().map(|visit| visit.elapsed_ns).sum();
        // Requests of different sizes have no common rate.
        let mixed = cell.workload.points.as_ref().is_some_and(|points| !points.block_bytes.is_empty());
        let bytes_per_s =
            if ran && !mixed { self.estimate(cell.extent, cell.workload.block_bytes) } else { None };
        let block_bytes = cell.workload.block_bytes as f64;
        CellResult {
            stop,
            why,
            elapsed_ns: ran.then_some(elapsed_ns),
            engine: if ran { self.engine } else { None },
            issuing: if ran { self.issuing.clone() } else { None },
            asked_bytes: ran.then_some(self.asked_bytes),
            pass_bytes: cell.extent.pass_bytes().filter(|_| ran && !mixed),
            bytes: ran.then(|| self.visits.iter().map(|visit| visit.bytes).sum()),
            ops: ran.then(|| self.visits.iter().map(|visit| visit.ops).sum()),
            bytes_per_s,
            ops_per_s: bytes_per_s.map(|rate| Estimate {
                mean: rate.mean / block_bytes,
                low: rate.low.map(|low| low / block_bytes),
                high: rate.high.map(|high| high / block_bytes),
            }),
            samples: None,
            sync_latency_ns: None,
            latency_ns: ran.then(|| Latency::from(&self.histogram).with_rounds(&self.round_histograms)),
            to_return_ns: ran.then(|| self.sum_of(|visit| visit.to_return_ns)).flatten(),
            to_close_ns: ran.then(|| self.sum_of(|visit| visit.to_close_ns)).flatten(),
            to_stable_ns: ran.then(|| self.sum_of(|visit| visit.to_stable_ns)).flatten(),
            windows: ran.then(|| self.windows.clone()),
            streams: if ran { self.streams.clone() } else { Vec::new() },
            cpu_ns: ran.then_some(self.cpu),
            errors: if stop == StopReason::NotApplicable { Vec::new() } else { self.errors.clone() },
            in_flight_mean: (ran && elapsed_ns > 0).then(|| self.latency_sum_ns as f64 / elapsed_ns as f64),
            warmup_ns: ran.then_some(self.warm_up.ns),
            warmup_bytes: ran.then_some(self.warm_up.bytes),
            warmup_ops: ran.then_some(self.warm_up.ops),
            stalls: None,
            interrupted_calls: ran.then_some(self.interrupted_calls),
            content: self.content.filter(|_| ran),
            after_idle: if ran { self.after_idle.clone() } else { Vec::new() },
            visits: if ran { self.visits.clone() } else { Vec::new() },
            points: if ran { self.positions.clone() } else { Vec::new() },
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
