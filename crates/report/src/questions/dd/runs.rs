//! Several runs of a copy: mean, interval and spread of their times, and what repeating changed; and two copies compared by
//! pairs of their runs.

use super::{line, nanos};
use crate::page::{Page, Tone};
use rdsk_analysis::copy::{self, FirstApart, Runs, Until, cell, counted, first_apart, is_warmed, speed_up};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Copy, Op};
use rdsk_stats::PairedRatio;

/// From this share over all runs on, the first one found it cached too.
const ALWAYS_SHARE: f64 = 0.98;

pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, copy: &Copy) {
    let counted = counted(copy);
    let bytes: u64 = counted.iter().map(|run| run.written_bytes).sum();
    let each = metrics::ratio(bytes, counted.len().max(1) as u64);
    for (until, name) in [(Until::Done, "runs"), (Until::Stable, "stable")] {
        if let Some(runs) = copy::times(copy, until) {
            let count = if until == Until::Done { format!("{}: ", runs.count) } else { String::new() };
            line(page, Tone::Plain, name, count + &times(&runs, each));
        }
    }
    if let Some(apart) = first_apart(copy) {
        line(page, Tone::Warning, "first", first(analysis, copy, &apart));
    }
    if let Some(text) = cell(analysis, copy, Op::Read).and_then(|cell| warmed(copy, cell)) {
        line(page, Tone::Warning, "beware", text.into());
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

/// `run 1 took 8.51 s, 20.2 × as long, and is not in the mean: its reads took longer, the first ones of their places`.
fn first(analysis: &Analysis<'_>, copy: &Copy, apart: &FirstApart<'_>) -> String {
    let is_warmed = cell(analysis, copy, Op::Read).is_some_and(|cell| is_warmed(copy, cell));
    // An end that is no storage has no places.
    let why = match apart.longer_at.filter(|&op| cell(analysis, copy, op).is_some()) {
        Some(Op::Read) if is_warmed => "; its reads came from the device, later ones from the page cache",
        Some(Op::Read) => "; its reads took longer, which were the first of their places here",
        Some(Op::Write) => "; its writes took longer, which were the first of their places here",
        None => "",
    };
    let took = nanos(apart.first.to_close_ns as f64);
    format!("run 1 took {took}, {} as long, and is not in the mean{why}", words::times(apart.factor()))
}

/// An input that the first run brought into the page cache is another input for the next.
fn warmed(copy: &Copy, cell: &CellRecord) -> Option<&'static str> {
    let (before, bytes) = (cell.evidence.page_cache?.before.cached_bytes?, cell.result.bytes?);
    if !is_warmed(copy, cell) {
        return None;
    }
    Some(if metrics::ratio(before, bytes.max(1)) >= ALWAYS_SHARE {
        "the input was in the page cache before every run, the first one too; add iflag=direct, or drop it before"
    } else {
        "from the second run on the input was in the page cache, so that the runs are not alike; add iflag=direct, or drop it \
         before each run"
    })
}

pub(super) fn draw_comparison(page: &mut Page, analysis: &Analysis<'_>, first: &Copy, second: &Copy) {
    page.heading("1 against 2");
    for (until, name) in [(Until::Done, "done"), (Until::Stable, "stable")] {
        if let Some(ratio) = speed_up(first, second, until) {
            line(page, Tone::Plain, name, compared(&ratio));
        }
    }
    line(page, Tone::Plain, "why", why(analysis, first, second));
}

fn compared(ratio: &PairedRatio) -> String {
    let pairs = words::plural(ratio.pairs as u64, "pair");
    // The faster one comes first.
    let (quick, slow, times, interval) = if ratio.ratio >= 1.0 {
        (2, 1, ratio.ratio, ratio.interval)
    } else {
        (1, 2, 1.0 / ratio.ratio, ratio.interval.map(|(low, high)| (1.0 / high, 1.0 / low)))
    };
    let times = words::times(times);
    let Some((low, high)) = interval else {
        return format!(
            "{quick} is {times} as fast as {slow} in {pairs}, too few for an interval; use --repeat"
        );
    };
    let lead = if low <= 1.0 { "no difference was found: " } else { "" };
    format!("{lead}{quick} is {times} as fast as {slow} in {pairs}. {}", words::interval(low, high))
}

/// What the evidence of the two says about the difference.
fn why(analysis: &Analysis<'_>, first: &Copy, second: &Copy) -> String {
    let difference = |op: Op| {
        let (first_cell, second_cell) = (cell(analysis, first, op)?, cell(analysis, second, op)?);
        let (was, is) = (first_cell.verdict.as_ref()?.code, second_cell.verdict.as_ref()?.code);
        let size = |cell: &CellRecord| {
            metrics::mean_request_bytes(cell, op).map(|mean| words::bytes(metrics::whole(mean)))
        };
        let sizes = match (size(first_cell), size(second_cell)) {
            (Some(was), Some(is)) if was != is => format!(", requests of {was} against {is}"),
            _ => String::new(),
        };
        Some(format!("the {op}s of 1 are {was}, those of 2 {is}{sizes}"))
    };
    let parts: Vec<String> = [Op::Read, Op::Write].into_iter().filter_map(difference).collect();
    if parts.is_empty() {
        "neither end is storage whose counters could tell".into()
    } else {
        parts.join("; ")
    }
}
