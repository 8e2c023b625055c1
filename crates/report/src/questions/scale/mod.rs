//! The scale page: what more streams, larger blocks and more targets give, in all and for each stream, where that ends and why. Every
//! rate is that of the time in which all streams ran, without the ramp before it. It draws what `rdsk_analysis::scale` derives.

mod answer;
mod rates;
mod targets;

pub(super) use answer::answer;
use rates::{EVEN, Summary, UNCLEAR, is_unclear, most};

use super::Plots;
use crate::cells;
use crate::chart::{self, Axes, Series};
use crate::figures::{Unit, compared, significant};
use crate::page::{Page, Tone};
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{Measure, NoRatio, Ratio, ratio_of};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::scale::{Grid, Line, Point};
use rdsk_analysis::words::{few, issuers, list, plural};
use rdsk_model::{CellRecord, Op};
use rdsk_units::{Bytes, Nanos};

/// Stream counts beside each other on a line of 80 columns.
const COLUMNS: usize = 4;
/// Up to so many, the summary of a block size stands on the same line.
const COLUMNS_WITH_SUMMARY: usize = 3;
/// Targets beside each other.
const TARGETS: usize = 3;
/// I/Os in a ramp that make a rate of it.
const MIN_RAMP_IOS: u64 = 10;

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>, plots: Plots) {
    let grids = analysis.scale();
    let noun = grids.first().map_or("stream", Grid::noun);
    page.heading(format!("SCALE: MiB/s of all {noun}s together, while all run (each {noun})"));
    for (_, grids) in by_key(grids.iter().map(|grid| (&grid.targets, grid))) {
        for grid in &grids {
            draw_grid(page, analysis, grid);
        }
        if plots == Plots::Drawn {
            draw_chart(page, &grids);
        }
    }
    draw_directions(page, analysis, grids);
}

/// One direction over the same targets.
fn draw_grid(page: &mut Page, analysis: &Analysis<'_>, grid: &Grid<'_>) {
    let cells: Vec<&CellRecord> = grid
        .lines
        .iter()
        .flat_map(|line| line.points.iter().chain(&line.alone))
        .map(|point| point.cell)
        .collect();
    let Some(first) = cells.first() else { return };
    if let Some(names) = cells::target_name(analysis, first) {
        page.sentence(Tone::Heading, "  ", names);
    }
    let counts = grid.counts();
    if counts.len() <= COLUMNS_WITH_SUMMARY {
        rates::draw(page, grid, &counts, Summary::Beside);
    } else {
        for some in counts.chunks(COLUMNS) {
            rates::draw(page, grid, some, Summary::None);
            page.blank();
        }
        rates::draw(page, grid, &[], Summary::Beside);
    }
    cells::draw_whys(page, analysis, &cells, label);
    draw_speed_ups(page, grid);
    draw_limits(page, grid);
    draw_failures(page, grid);
    targets::draw(page, analysis, grid);
    draw_starts(page, grid);
    page.blank();
}

/// `4 streams`; of several ranks `4 hosts`.
fn counted(count: u32, grid: &Grid<'_>) -> String {
    plural(u64::from(count), grid.noun())
}

/// `64 KiB, 3 streams`.
fn label(cell: &CellRecord) -> String {
    format!("{}, {}", Bytes(cell.workload.block_bytes), issuers(&cell.workload))
}

/// The intervals of the speed-ups in the table, what they are over, and why there is none where nothing can be compared.
fn draw_speed_ups(page: &mut Page, grid: &Grid<'_>) {
    let has_alone = grid.lines.iter().any(|line| line.sum_alone().is_some());
    let single = counted(1, grid);
    let over =
        if has_alone { "over each target alone, added up".to_owned() } else { format!("over {single}") };
    let intervals = grid.lines.iter().filter_map(|line| {
        let (low, high) = most(line)?.speed_up_interval?;
        let (low, high) = (significant(low), significant(high));
        // An interval without width is the factor of the table.
        (low != high).then(|| format!("{low}–{high} at {}", Bytes(line.block_bytes)))
    });
    let intervals: Vec<String> = intervals.collect();
    if !intervals.is_empty() {
        page.sentence(Tone::Plain, format!("  Speed-up {over}, 95%: "), format!("{}.", intervals.join(", ")));
    } else if has_alone {
        page.sentence(Tone::Plain, "  Speed-up: ", format!("{over}."));
    }
    if grid.lines.iter().filter_map(most).any(is_unclear) {
        page.line(format!("  {UNCLEAR} = no clear difference"));
    }
    let no_ratio = distinct(grid.lines.iter().filter_map(|line| line.no_ratio).map(NoRatio::words));
    if !no_ratio.is_empty() {
        page.sentence(
            Tone::Plain,
            format!("  Numbers of {}s: ", grid.noun()),
            format!("not compared: {}.", no_ratio.join("; ")),
        );
    }
}

/// Where more streams stop helping and what limits there: the sizes for which both are the same together, with the words of the first.
fn draw_limits(page: &mut Page, grid: &Grid<'_>) {
    let knees = grid.lines.iter().filter_map(|line| {
        let stop = line.knee.as_ref()?;
        Some(((stop.streams, stop.limit.word()), (Bytes(line.block_bytes), stop.limit.cause())))
    });
    let knees = by_key(knees);
    let is_only = |lines: usize| lines == grid.lines.len();
    let mut said: Vec<&str> = Vec::new();
    for ((count, word), lines) in &knees {
        let sizes = match &lines[..] {
            [] => continue,
            lines if is_only(lines.len()) => String::new(),
            [(size, _)] => format!(", {size}"),
            [(size, _), (other, _)] => format!(", {size} and {other}"),
            [(size, _), .., (last, _)] => format!(", {} sizes from {size} to {last}", lines.len()),
        };
        let cause = match lines[0].1 {
            None => "no counter shows the limit".to_owned(),
            Some(_) if said.contains(word) => (*word).to_owned(),
            Some(cause) => format!("{word}; {}", cause.text),
        };
        said.push(word);
        let text = format!("Stops scaling at {}{sizes}: {cause}.", counted(*count, grid));
        page.sentence(Tone::Plain, "  ", text);
    }
    if grid
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .any(|point| point.fairness.is_some_and(|fairness| fairness.has_ramp && fairness.jain < EVEN))
    {
        page.sentence(
            Tone::Plain,
            "  ^ ",
            format!(
                "{}s that started early had the targets to themselves for part of the time, so shares differ for that reason alone.",
                grid.noun()
            ),
        );
    }
}

/// Which streams failed, by number, while the others continued; and the cells whose streams never ran together.
fn draw_failures(page: &mut Page, grid: &Grid<'_>) {
    let has_no_rate = |point: &&Point<'_>| {
        point.count() > 1 && point.bytes_per_s().is_none() && point.cell.result.ops.is_some_and(|ops| ops > 0)
    };
    for point in grid.lines.iter().flat_map(|line| &line.points).filter(has_no_rate) {
        let why = format!("{}.", point.cell.result.why);
        page.sentence(Tone::Warning, format!("  {}: ", label(point.cell)), why);
    }
    for point in grid.lines.iter().flat_map(|line| &line.points).filter(|point| !point.failed.is_empty()) {
        let numbers: Vec<String> = point.failed.iter().map(u32::to_string).collect();
        let what = if numbers.len() == 1 { "stream" } else { "streams" };
        let ended = point
            .cell
            .result
            .errors
            .iter()
            .find(|error| error.stream == point.failed.first().copied())
            .map_or(String::new(), |error| {
                let place = format!(" at byte {}", error.offset_bytes);
                let place = if error.message.ends_with(&place) { "" } else { &place };
                format!(" ({}{place})", error.message)
            });
        let rest = (point.count() as usize).saturating_sub(numbers.len());
        page.sentence(
            Tone::Error,
            format!("  {}: ", label(point.cell)),
            match rest {
                0 => format!("{what} {} failed{ended}, and with it all.", numbers.join(", ")),
                _ => format!("{what} {} failed{ended}; the other {rest} went on.", numbers.join(", ")),
            },
        );
    }
}

/// How the streams started, as asked for and really, and what the ramp gave.
fn draw_starts(page: &mut Page, grid: &Grid<'_>) {
    let points = || grid.lines.iter().flat_map(|line| &line.points);
    let Some(skew_ns) = points().filter_map(|point| point.skew_ns).max() else { return };
    let stagger_ns = points().map(|point| point.cell.workload.stagger_ns).max().unwrap_or(0);
    let text = match (stagger_ns, skew_ns) {
        (0, 0) => "together.".into(),
        (0, skew) => format!("together, within {}.", Nanos(skew)),
        (asked, 0) => format!("{} apart.", Nanos(asked)),
        (asked, skew) => format!("{} apart, each within {} of its planned time.", Nanos(asked), Nanos(skew)),
    };
    let start = match grid.noun() {
        "stream" => "  Streams start ",
        "host" => "  Hosts start ",
        _ => "  Ranks start ",
    };
    page.sentence(Tone::Plain, start, text);
    let ramps = points().filter_map(|point| Some((point, point.ramp?)));
    if let Some((point, ramp)) = ramps.max_by_key(|(_, ramp)| ramp.elapsed_ns) {
        // A rate of a few I/Os would be that of the moments at which they happened to end.
        let has_many = ramp.bytes >= MIN_RAMP_IOS * point.cell.workload.block_bytes;
        let rate = ramp.bytes_per_s.filter(|_| has_many).map_or(String::new(), |rate| {
            let with_all = point.bytes_per_s().map_or_else(String::new, |rate| {
                format!(", {} with all streams", Unit::MIB_PER_S.figure(rate))
            });
            format!("; {} MiB/s on average{with_all}", Unit::MIB_PER_S.figure(rate))
        });
        let text = format!(
            "{} until the last stream started ({}){rate}. The rates leave it out.",
            Nanos(ramp.elapsed_ns),
            label(point.cell)
        );
        page.sentence(Tone::Plain, "  Ramp: up to ", text);
    }
}

/// Both directions over the same targets, on the same axes.
fn draw_chart(page: &mut Page, grids: &[&Grid<'_>]) {
    let series = |grid: &Grid<'_>, count: u32| {
        let op = if grids.len() > 1 { format!("{} ", grid.op) } else { String::new() };
        let points = grid.lines.iter().filter_map(|line| {
            let rate = line.point(count).and_then(Point::bytes_per_s)?;
            Some(((line.block_bytes as f64).log2(), rate / 1_048_576.0))
        });
        Series { label: format!("{op}{}", counted(count, grid)), points: points.collect() }
    };
    let curves =
        grids.iter().flat_map(|grid| grid.counts().into_iter().map(move |count| series(grid, count)));
    let curves: Vec<Series> = curves.filter(|series| !series.points.is_empty()).collect();
    page.blank();
    chart::draw(
        page,
        &curves,
        &Axes { top: chart::Top::Largest, unit: "MiB/s", along: "block size", at: &chart::size_of_log2 },
    );
    page.blank();
}

fn draw_directions(page: &mut Page, analysis: &Analysis<'_>, grids: &[Grid<'_>]) {
    let (sentences, no_ratio) = directions(analysis, grids);
    for text in sentences {
        page.sentence(Tone::Plain, "  ", text);
    }
    for why in no_ratio {
        let text = format!("not compared: {why}.");
        page.sentence(Tone::Plain, "  Writes against reads of the same size: ", text);
    }
}

/// How much faster or slower writes are than reads, where both were measured in the same cells: one sentence for all numbers of
/// streams and targets that show the same.
pub fn writes_against_reads(analysis: &Analysis<'_>) -> Vec<String> {
    directions(analysis, analysis.scale()).0
}

/// These sentences, and why some cells are not compared.
fn directions(analysis: &Analysis<'_>, grids: &[Grid<'_>]) -> (Vec<String>, Vec<String>) {
    let mut sentences = Vec::new();
    let mut said = Vec::new();
    let mut no_ratio = Vec::new();
    for reads in grids.iter().filter(|grid| grid.op == Op::Read) {
        let is_twin = |grid: &&Grid<'_>| grid.op == Op::Write && grid.targets == reads.targets;
        let Some(writes) = grids.iter().find(is_twin) else { continue };
        let first = reads.lines.iter().flat_map(|line| &line.points).map(|point| point.cell).next();
        let targets = first.and_then(|cell| cells::target_name(analysis, cell)).unwrap_or_default();
        let noun = reads.noun();
        for count in reads.counts() {
            let results: Vec<Result<Ratio, NoRatio>> = reads
                .lines
                .iter()
                .filter_map(|line| against(line.point(count)?, writes.line(line.block_bytes)?))
                .collect();
            no_ratio.extend(results.iter().filter_map(|ratio| ratio.err()).map(NoRatio::words));
            let ratios: Vec<Ratio> = results.into_iter().flatten().collect();
            said.extend(direction(&ratios).map(|text| (text, (count, noun, targets.clone()))));
        }
    }
    let sets = distinct(said.iter().map(|(_, (_, _, targets))| targets.clone())).len();
    for (text, subjects) in by_key(said) {
        let counts = distinct(subjects.iter().map(|(count, ..)| *count));
        let names: Vec<String> = counts.iter().map(u32::to_string).collect();
        let noun = subjects.first().map_or("stream", |(_, noun, _)| noun);
        let ending = if counts.iter().all(|&count| count == 1) { "" } else { "s" };
        let targets = distinct(subjects.into_iter().map(|(_, _, targets)| targets));
        let on = if targets.len() == sets { String::new() } else { format!(" on {}", named(&targets)) };
        sentences.push(format!("With {} {noun}{ending}{on}, {text}", list(&names)));
    }
    (sentences, distinct(no_ratio))
}

/// The first few names, and how many others there are.
fn named(names: &[String]) -> String {
    let most = if names.len() > TARGETS + 1 { TARGETS } else { names.len() };
    few(names, most, "other")
}

/// The writes of the same number of streams against the reads.
fn against(read: &Point<'_>, writes: &Line<'_>) -> Option<Result<Ratio, NoRatio>> {
    let write = writes.point(read.count())?;
    (read.is_whole() && write.is_whole()).then(|| ratio_of(write.cell, read.cell, Measure::Together))
}

/// `writes are 9 to 12 % slower than reads of the same size (95 % intervals: 6 to 14 % slower).`
fn direction(ratios: &[Ratio]) -> Option<String> {
    let percent = |figure: fn(&Ratio) -> f64| ratios.iter().map(move |ratio| (figure(ratio) - 1.0) * 100.0);
    let range = |low: fn(&Ratio) -> f64, high: fn(&Ratio) -> f64| {
        let (low, high) = (percent(low).reduce(f64::min)?, percent(high).reduce(f64::max)?);
        Some(compared(low, high))
    };
    let means = range(|ratio| ratio.mean, |ratio| ratio.mean)?;
    let intervals = range(|ratio| ratio.low, |ratio| ratio.high)?;
    Some(format!(
        "writes are {means} reads of the same size (95% interval{}: {}).",
        if ratios.len() == 1 { "" } else { "s" },
        intervals.trim_end_matches(" than").trim_end_matches(" as")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use rdsk_finding::fixtures::{self, with};
    use rdsk_model::{Experiment, IoError, StopReason};

    fn text(record: &rdsk_model::Record) -> String {
        let mut page = Page::default();
        draw(&mut page, &Analysis::of(record), Plots::Drawn);
        page.render(Style::default())
    }

    fn scale_cells() -> Vec<CellRecord> {
        fixtures::run().cells.into_iter().filter(|cell| cell.experiment == Experiment::Scale).collect()
    }

    #[test]
    fn failed_streams_are_named_by_number() {
        let failed = scale_cells().into_iter().take(2).map(|cell| {
            with(cell, |cell| {
                if cell.workload.streams > 1 {
                    cell.result.stop = StopReason::Error;
                    cell.result.errors = vec![IoError {
                        target: 0,
                        stream: Some(2),
                        offset_bytes: 4096,
                        errno: 5,
                        message: "Input/output error".into(),
                    }];
                }
            })
        });
        let text = text(&fixtures::record(vec![fixtures::disk()], failed.collect()));
        let words: Vec<&str> = text.split_whitespace().collect();
        let expected = "stream 2 failed (Input/output error at byte 4096); the other 3 went on.";
        assert!(words.join(" ").contains(expected), "{text}");
        let row =
            text.lines().find(|line| line.trim_start().starts_with("64 KiB ")).expect("the only block size");
        assert!(row.ends_with(crate::figures::MISSING), "no speed-up of a cell with fewer streams: {row}");
    }

    /// Four streams are twice as fast as one in some rounds and half as fast in others.
    #[test]
    fn a_speed_up_that_may_be_none_is_unclear() {
        let cells = scale_cells().into_iter().take(2).collect();
        let mut record = fixtures::all_in_rounds(&fixtures::record(vec![fixtures::disk()], cells));
        assert!(text(&record).contains("1.15x") && !text(&record).contains("unclear"), "{}", text(&record));
        let many = record.cells.iter_mut().find(|cell| cell.workload.streams > 1).unwrap();
        for (place, visit) in many.result.visits.iter_mut().enumerate() {
            let factor = if place % 2 == 0 { 4 } else { 1 };
            if let Some(overlap) = &mut visit.overlap {
                overlap.bytes = overlap.bytes * factor / 2;
            }
        }
        let text = text(&record);
        assert!(!text.contains("1.15x") && text.contains("unclear = no clear difference"), "{text}");
    }

    #[test]
    fn targets_and_streams_that_show_the_same_share_a_sentence() {
        let of_targets = |count: u32| {
            let cells = (0..count).flat_map(|target| {
                let on = move |cell: CellRecord| {
                    with(cell, |cell| {
                        cell.id = format!("{}/t{target}", cell.id);
                        cell.workload.targets = vec![target];
                        for stream in cell.result.visits.iter_mut().flat_map(|visit| &mut visit.streams) {
                            stream.target = target;
                        }
                    })
                };
                scale_cells().into_iter().map(on)
            });
            let named = |index| rdsk_model::Target { index, name: format!("sd{index}"), ..fixtures::disk() };
            text(&fixtures::record((0..count).map(named).collect(), cells.collect()))
        };
        let sentences = |text: &str| text.matches("reads of the same size").count();
        let one = sentences(&of_targets(1));
        assert!(one > 0);
        assert_eq!(sentences(&of_targets(16)), one, "{}", of_targets(16));
    }

    #[test]
    fn many_counts_and_targets_fit_the_page() {
        let base = scale_cells().remove(1);
        let cells = (1..=12_u32).map(|streams| {
            with(base.clone(), |cell| {
                cell.id = format!("scale/read/64k/{streams}");
                cell.workload.streams = streams;
                cell.workload.targets = (0..6).collect();
                cell.workload.stagger_ns = 100_000_000;
                let visit = &mut cell.result.visits[0];
                let one = visit.streams[0].clone();
                visit.streams = (0..streams)
                    .map(|index| rdsk_model::StreamResult {
                        index,
                        target: index % 6,
                        start_ns: u64::from(index) * 100_000_000,
                        ..one.clone()
                    })
                    .collect();
            })
        });
        let targets = (0..6).map(|index| rdsk_model::Target {
            index,
            name: format!("/dev/disk/by-id/a-long-name-{index}"),
            ..fixtures::disk()
        });
        let text = text(&fixtures::record(targets.collect(), cells.collect()));
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.ends_with('…'), "{line}\n{text}");
        }
        for part in
            ["12 streams", "…d/a-long-name-5", "Ramp: up to", "^ streams that started early", "evenness"]
        {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }
}
