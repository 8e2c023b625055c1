//! The part of a visit in which all streams ran: what they did together, apart from the ramp before it and the end after
//! it. Numbers in, numbers out.

use rdsk_engine::Run;
use rdsk_model::{Overlap, Workload};

/// Time from the first start to the last, as asked for.
pub(crate) fn ramp_ns(workload: &Workload) -> u64 {
    workload.stagger_ns.saturating_mul(u64::from(workload.streams.saturating_sub(1)))
}

/// The windows that lie wholly in the overlap, as positions in the run's list.
pub(crate) fn windows_of(run: &Run, overlap: &Overlap) -> std::ops::Range<usize> {
    let width_ns = run.window_ns.max(1);
    let position = |window: u64| usize::try_from(window).unwrap_or(usize::MAX).min(run.windows.len());
    let from = position(overlap.start_ns.div_ceil(width_ns));
    from..position(overlap.end_ns / width_ns).max(from)
}

/// The overlap of a run of several streams; streams that failed are left out of it, and without two others there is none.
pub(crate) fn overlap_of(run: &Run) -> Option<Overlap> {
    let failed = |index: u32| run.errors.iter().any(|error| error.stream == Some(index));
    let whole: Vec<_> = run.streams.iter().filter(|stream| stream.ops > 0 && !failed(stream.index)).collect();
    if whole.len() < 2 {
        return None;
    }
    let start_ns = whole.iter().map(|stream| stream.start_ns).max()?;
    let end_ns = whole.iter().map(|stream| stream.end_ns).min()?.max(start_ns);
    let mut overlap = Overlap { start_ns, end_ns, bytes: 0, covered_ns: 0 };
    let windows = windows_of(run, &overlap);
    overlap.covered_ns = run.window_ns * windows.len() as u64;
    overlap.bytes = run.windows[windows].iter().sum();
    Some(overlap)
}
