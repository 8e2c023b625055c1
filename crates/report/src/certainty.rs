//! What the figures of a page leave unsure or leave out, in words: stalls, percentiles with a wide range, warm-up, and what a
//! fixed number of I/Os in flight means. It draws no figure of its own.

use crate::cells;
use crate::figures::Unit;
use crate::page::{Page, Tone};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::words::{few, list, nanos, plural};
use rdsk_model::{CellRecord, Experiment, Latency, PercentileRange, Record, Stall, StallBasis};
use rdsk_units::percent;

/// A range that goes this far beyond its percentile is worth a word.
const WIDE: f64 = 0.1;
/// Lengths that differ by less than this are given as one.
const ALIKE: f64 = 0.1;
/// Cells that are named before the others are only counted.
const MAX_NAMED: usize = 3;

/// What a latency at a fixed depth is, said once.
const FIXED_DEPTH: &str = "Latencies are those of a fixed number of I/Os in flight: a stall delays only these, once each. \
                           Requests that arrive at a fixed rate would meet it more often.";

/// The same for the page of an experiment, but for what the pages above it said already.
pub(crate) fn draw_stalls_of(page: &mut Page, record: &Record, experiment: Experiment) {
    let said = |basis: &StallBasis| {
        let above = Experiment::ALL.iter().take_while(|&&other| other != experiment);
        above
            .flat_map(|&other| cells::of_experiment(record, other))
            .any(|cell| basis_of(cell).as_ref() == Some(basis))
    };
    let has_news = |cell: &&CellRecord| {
        cell.result.stalls.as_ref().is_some_and(|stalls| !stalls.seen.is_empty() || !said(&stalls.basis))
    };
    let cells: Vec<&CellRecord> = cells::of_experiment(record, experiment).filter(has_news).collect();
    draw_stalls(page, &cells, |cell| cell.id.clone());
}

fn basis_of(cell: &CellRecord) -> Option<StallBasis> {
    cell.result.stalls.as_ref().map(|stalls| stalls.basis)
}

/// What the width of intervals owes to stalls: one sentence for each set of stalls that counts together.
pub(crate) fn draw_stalls(page: &mut Page, cells: &[&CellRecord], name: impl Fn(&CellRecord) -> String) {
    let stalled = cells.iter().filter_map(|cell| Some((basis_of(cell)?, *cell)));
    for (basis, cells) in by_key(stalled) {
        let met: Vec<String> = cells.iter().filter_map(|cell| met(cell, &name)).collect();
        let own = if met.is_empty() {
            ", though not in these cells".into()
        } else {
            format!(" ({})", few(&met, MAX_NAMED, "other"))
        };
        let text = format!(
            "{} in {} of {}{own}, {} of that time. In the long run they may take {} to {}, which ± allows for.",
            basis.count,
            nanos(basis.elapsed_ns),
            basis.op.map_or_else(|| "I/O".into(), |op| format!("{op}s")),
            percent(basis.stalled_ns as f64 / basis.elapsed_ns.max(1) as f64),
            percent(basis.share_low),
            percent(basis.share_high),
        );
        page.sentence(Tone::Warning, "  Stalls: ", text);
    }
}

/// `random read, 4 KiB: 2 of 0.500 to 2.00 s`; `None` if the cell met none itself.
fn met(cell: &CellRecord, name: impl Fn(&CellRecord) -> String) -> Option<String> {
    let stalls =
        cell.result.stalls.as_ref().map(|stalls| &stalls.seen[..]).filter(|stalls| !stalls.is_empty())?;
    Some(format!("{}: {} of {}", name(cell), stalls.len(), lengths(stalls)))
}

/// `2 stalls of 0.500 to 2.00 s in 18.0 s`: those of the cells themselves, for a headline; `None` without any.
pub(crate) fn stalls_in_words(cells: &[&CellRecord]) -> Option<String> {
    let stalls = cells.iter().filter_map(|cell| cell.result.stalls.as_ref());
    let stalls: Vec<Stall> = stalls.flat_map(|stalls| stalls.seen.iter().copied()).collect();
    (!stalls.is_empty())
        .then(|| format!("{} of {} seen", plural(stalls.len() as u64, "stall"), lengths(&stalls)))
}

fn lengths(stalls: &[Stall]) -> String {
    let lengths_ns = || stalls.iter().map(|stall| stall.lasts_ns);
    let (least, most) = (lengths_ns().min().unwrap_or(0), lengths_ns().max().unwrap_or(0));
    if (most - least) as f64 >= ALIKE * most as f64 {
        return format!("{} to {}", nanos(least), nanos(most));
    }
    let each = if stalls.len() > 1 { " each" } else { "" };
    format!("{}{each}", nanos(lengths_ns().sum::<u64>() / stalls.len().max(1) as u64))
}

/// The percentiles whose range is wide, behind the names of their cells.
pub(crate) fn draw_ranges(page: &mut Page, cells: &[&CellRecord], name: impl Fn(&CellRecord) -> String) {
    let unsure: Vec<String> = cells
        .iter()
        .filter_map(|cell| {
            let latency = cell.result.latency_ns.as_ref()?;
            let ranges = latency.ranges?;
            let each: Vec<String> = [("p50", latency.p50, ranges.p50), ("p99", latency.p99, ranges.p99)]
                .into_iter()
                .filter_map(|(word, value, range)| Some(format!("{word} {}", wide(value?, range?)?)))
                .collect();
            (!each.is_empty()).then(|| format!("{}: {}", name(cell), list(&each)))
        })
        .collect();
    if !unsure.is_empty() {
        page.sentence(Tone::Plain, "  Ranges, 95%: ", format!("{}.", unsure.join("; ")));
    }
}

/// `7.10 to 9.40 ms`, `at least 3.00 ms`; `None` for a range that is narrow.
fn wide(value: u64, range: PercentileRange) -> Option<String> {
    let value = value as f64;
    let is_far = |end: u64| (end as f64 / value - 1.0).abs() > WIDE;
    if range.low.is_some_and(|low| !is_far(low)) && range.high.is_some_and(|high| !is_far(high)) {
        return None;
    }
    let unit = Unit::fit(&Unit::TIMES, [range.low, range.high].into_iter().flatten().map(|ns| ns as f64));
    let figure = |ns: u64| unit.figure(ns as f64);
    Some(match (range.low, range.high) {
        (Some(low), Some(high)) => format!("{} to {} {}", figure(low), figure(high), unit.name),
        (Some(low), None) => format!("at least {} {}", figure(low), unit.name),
        (None, Some(high)) => format!("at most {} {}", figure(high), unit.name),
        (None, None) => "not known: the repeats differ too much".into(),
    })
}

/// What the latencies of a page mean, and what was left out as warm-up, each said once.
pub(crate) fn draw_end(page: &mut Page, record: &Record) {
    let has_latency = |cell: &CellRecord| {
        let shows = matches!(cell.experiment, Experiment::Headline | Experiment::Stream);
        shows && cell.result.latency_ns.as_ref().and_then(|latency: &Latency| latency.mean).is_some()
    };
    if record.cells.iter().any(has_latency) {
        page.sentence(Tone::Plain, "", FIXED_DEPTH);
    }
    let left_out: Vec<String> = record
        .cells
        .iter()
        .filter_map(|cell| {
            // The ramp of a load was asked for, and is said with its jobs.
            let warmup_ns = cell.result.warmup_ns.filter(|&ns| ns > 0 && cell.workload.jobs.is_empty())?;
            Some(format!("the first {} of {}", nanos(warmup_ns), cell.id))
        })
        .collect();
    if !left_out.is_empty() {
        let which = if left_out.len() == 1 { "which differs" } else { "which differ" };
        let text = format!(
            "Warm-up, left out of rates and latencies: {}, {which} from the rest.",
            few(&left_out, MAX_NAMED, "other")
        );
        page.sentence(Tone::Plain, "", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use rdsk_finding::fixtures::{cell, disk, record, with};
    use rdsk_model::{IoPath, Op, PercentileRanges, Stalls};

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn drawn(draw: impl FnOnce(&mut Page)) -> String {
        let mut page = Page::default();
        draw(&mut page);
        page.render(Style::default()).replace("\n          ", " ")
    }

    fn read(id: &str, change: impl FnOnce(&mut CellRecord)) -> CellRecord {
        with(cell(id, Op::Read, IoPath::Direct, 4096, 20_000, 18 * S), change)
    }

    fn stalled(id: &str, lengths_ns: &[u64]) -> CellRecord {
        let basis = StallBasis {
            count: 2,
            stalled_ns: 3 * S,
            elapsed_ns: 36 * S,
            share_low: 0.01,
            share_high: 0.301,
            op: Some(Op::Read),
        };
        let seen = lengths_ns.iter().map(|&lasts_ns| Stall { start_ns: S, cell_ns: S, lasts_ns }).collect();
        read(id, |cell| cell.result.stalls = Some(Stalls { seen, basis }))
    }

    #[test]
    fn stalls_are_told_with_what_they_leave_unsure() {
        let cells = [stalled("paths/read/direct", &[S, 2 * S]), stalled("paths/read/buffered", &[])];
        let all: Vec<&CellRecord> = cells.iter().collect();
        let name = |cell: &CellRecord| cell.id.clone();
        assert_eq!(
            drawn(|page| draw_stalls(page, &all, name)),
            "  Stalls: 2 in 36.0 s of reads (paths/read/direct: 2 of 1.00 s to 2.00 s), 8.3% of \
             that time. In the long run they may take 1.0% to 30.1%, which ± allows for.\n"
        );
        let text = drawn(|page| draw_stalls(page, &all[1..], name));
        assert!(
            text.starts_with("  Stalls: 2 in 36.0 s of reads, though not in these cells, 8.3%"),
            "{text}"
        );
        assert_eq!(stalls_in_words(&all).as_deref(), Some("2 stalls of 1.00 s to 2.00 s seen"));
        assert_eq!(stalls_in_words(&all[1..]), None);
        let alike = stalled("paths/read/direct", &[S, S + 20 * MS]);
        assert_eq!(stalls_in_words(&[&alike]).as_deref(), Some("2 stalls of 1.01 s each seen"));
        assert_eq!(drawn(|page| draw_stalls(page, &[&read("a", |_| ())], name)), "");
    }

    #[test]
    fn what_a_page_above_said_is_not_repeated() {
        let of = |experiment, cell: CellRecord| with(cell, |cell| cell.experiment = experiment);
        let cells = vec![
            of(Experiment::Headline, stalled("headline/read/sequential", &[S, 2 * S])),
            of(Experiment::Paths, stalled("paths/read/direct", &[])),
            of(Experiment::Stream, stalled("stream/read/direct", &[S])),
        ];
        let record = record(vec![disk()], cells);
        assert_eq!(drawn(|page| draw_stalls_of(page, &record, Experiment::Paths)), "");
        assert!(
            drawn(|page| draw_stalls_of(page, &record, Experiment::Stream))
                .contains("stream/read/direct: 1 of 1.00 s")
        );
        let mut alone = record;
        alone.cells.remove(0);
        assert!(
            drawn(|page| draw_stalls_of(page, &alone, Experiment::Paths))
                .contains("though not in these cells")
        );
    }

    #[test]
    fn percentiles_have_their_range_only_where_it_is_wide() {
        let range = |low: Option<u64>, high: Option<u64>| Some(PercentileRange { low, high });
        let drawn_for = |p50: Option<PercentileRange>, p99: Option<PercentileRange>| {
            let cell = read("a", |cell| {
                let latency = cell.result.latency_ns.as_mut().expect("the fixture has latencies");
                (latency.p50, latency.p99) = (Some(10 * MS), Some(20 * MS));
                latency.ranges = Some(PercentileRanges { p50, p99, ..PercentileRanges::default() });
            });
            drawn(|page| draw_ranges(page, &[&cell], |cell| cell.id.clone()))
        };
        let narrow = range(Some(9_500_000), Some(10_900_000));
        assert_eq!(drawn_for(narrow, range(Some(19 * MS), Some(21 * MS))), "");
        assert_eq!(drawn_for(narrow, None), "");
        assert_eq!(
            drawn_for(range(Some(8_900_000), Some(10_900_000)), range(Some(19 * MS), None)),
            "  Ranges, 95%: a: p50 8.90 to 10.9 ms and p99 at least 19.0 ms.\n"
        );
        assert_eq!(drawn_for(range(None, Some(25 * MS)), None), "  Ranges, 95%: a: p50 at most 25.0 ms.\n");
        assert!(drawn_for(range(None, None), None).contains("p50 not known"));
    }

    #[test]
    fn latencies_and_warm_up_are_explained_once() {
        let warm = |id: &str| {
            read(id, |cell| {
                cell.experiment = Experiment::Stream;
                cell.result.warmup_ns = Some(600 * MS);
            })
        };
        let shown = |cells: Vec<CellRecord>| drawn(|page| draw_end(page, &record(vec![disk()], cells)));
        let text = shown(vec![warm("stream/read/direct"), warm("stream/read/buffered")]);
        let warm_up = "Warm-up, left out of rates and latencies: the first 600 ms of stream/read/direct\nand the first 600 ms \
                       of stream/read/buffered, which differ from the rest.\n";
        assert!(text.ends_with(warm_up), "{text}");
        assert_eq!(text.matches("fixed number of I/Os").count(), 1);
        let many: Vec<CellRecord> = (0..5).map(|n| warm(&format!("stream/read/{n}"))).collect();
        assert!(shown(many).replace('\n', " ").contains("and 2 others, which differ"));
        let paths = read("paths/read/direct", |cell| cell.experiment = Experiment::Paths);
        assert_eq!(shown(vec![paths]), "", "paths shows times, no latencies");
    }
}
