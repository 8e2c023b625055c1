//! Several runs of a copy: mean, interval and spread of their times, and what repeating changed; and two copies compared by
//! pairs of their runs.

use super::{line, nanos};
use crate::page::{Page, Tone};
use rdsk_analysis::copy::{Runs, Until, cell, speed_up, until_done, until_stable};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CellRecord, Copy, IoPath, Op, Record, VerdictCode};
use rdsk_stats::PairedRatio;

/// From this share of its bytes on, an input counts as cached.
const CACHED_SHARE: f64 = 0.5;

pub(super) fn draw(page: &mut Page, record: &Record, copy: &Copy) {
    let bytes: u64 = copy.runs.iter().map(|run| run.written_bytes).sum();
    let each = metrics::ratio(bytes, copy.runs.len() as u64);
    if let Some(runs) = until_done(copy) {
        line(page, Tone::Plain, "runs", format!("{}: {}", runs.count, times(&runs, each)));
    }
    if let Some(runs) = until_stable(copy) {
        line(page, Tone::Plain, "stable", times(&runs, each));
    }
    if let Some(text) = cell(record, copy, Op::Read).and_then(|cell| warmed(copy, cell)) {
        line(page, Tone::Warning, "beware", text);
    }
}

/// `1.20 s ±2 % on average (σ 20 ms, 1.18 to 1.25 s), 850 MiB/s`.
fn times(runs: &Runs, bytes: f64) -> String {
    let interval = runs.half_width.map_or_else(String::new, |half| format!(" {}", words::plus_minus(half)));
    let sigma = runs.sigma_ns.map_or_else(String::new, |sigma| format!("σ {}, ", nanos(sigma)));
    let rate = words::rate(bytes / (runs.mean_ns / 1e9));
    let (mean, least, most) = (nanos(runs.mean_ns), nanos(runs.min_ns), nanos(runs.max_ns));
    format!("{mean}{interval} on average ({sigma}{least} to {most}), {rate}")
}

/// An input that the first run brought into the page cache is another input for the next.
fn warmed(copy: &Copy, cell: &CellRecord) -> Option<String> {
    let runs = u64::try_from(copy.runs.len()).ok()?;
    let is_cached = cell.verdict.as_ref().is_some_and(|verdict| verdict.code == VerdictCode::PageCache);
    let before = cell.evidence.page_cache?.before.cached_bytes?;
    let of_one = cell.result.bytes? / runs.max(1);
    // Summed over the runs: all but the first found the whole input.
    let found = metrics::ratio(before, of_one.max(1) * (runs - 1).max(1));
    (cell.workload.path == IoPath::Buffered && (is_cached || found >= CACHED_SHARE)).then(|| {
        "from the second run on the input was in the page cache, so that the runs are not alike; add iflag=direct, or drop it \
         before each run"
            .into()
    })
}

pub(super) fn draw_comparison(page: &mut Page, record: &Record, first: &Copy, second: &Copy) {
    page.heading("1 against 2");
    for (until, name) in [(Until::Done, "done"), (Until::Stable, "stable")] {
        if let Some(ratio) = speed_up(first, second, until) {
            line(page, Tone::Plain, name, compared(&ratio));
        }
    }
    line(page, Tone::Plain, "why", why(record, first, second));
}

fn compared(ratio: &PairedRatio) -> String {
    let pairs = words::plural(ratio.pairs as u64, "pair");
    let Some((low, high)) = ratio.interval else {
        return format!(
            "2 took {} as long as 1 in {pairs}, too few for an interval; use --repeat",
            words::times(1.0 / ratio.ratio)
        );
    };
    let interval = words::interval(low.min(high), high.max(low));
    if low <= 1.0 && 1.0 <= high {
        return format!(
            "no difference was found in {pairs}: 2 is {} as fast as 1. {interval}",
            words::times(ratio.ratio)
        );
    }
    format!("2 is {} as fast as 1 in {pairs}. {interval}", words::times(ratio.ratio))
}

/// What the evidence of the two says about the difference.
fn why(record: &Record, first: &Copy, second: &Copy) -> String {
    let of = |op: Op| {
        let (one, other) = (cell(record, first, op)?, cell(record, second, op)?);
        let (was, is) = (one.verdict.as_ref()?.code, other.verdict.as_ref()?.code);
        let size = |cell: &CellRecord| {
            metrics::mean_request_bytes(cell, op).map(|mean| words::bytes(metrics::whole(mean)))
        };
        let sizes = match (size(one), size(other)) {
            (Some(was), Some(is)) if was != is => format!(", requests of {was} against {is}"),
            _ => String::new(),
        };
        Some(format!("the {op}s of 1 are {was}, those of 2 {is}{sizes}"))
    };
    let parts: Vec<String> = [Op::Read, Op::Write].into_iter().filter_map(of).collect();
    if parts.is_empty() {
        "neither end is storage whose counters could tell".into()
    } else {
        parts.join("; ")
    }
}
