//! `scale`: what more streams gain at the smallest and at the largest block size, and where that ends.

use crate::cells::target_name;
use crate::figures::range;
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::scale::{Grid, Line, Point};
use rdsk_analysis::words::{plural, times};
use rdsk_units::Bytes;
use std::fmt;

/// One direction over the same targets.
struct Direction<'a> {
    name: String,
    gains: Vec<Gain>,
    grid: &'a Grid<'a>,
}

pub(crate) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let directions: Vec<Direction<'_>> = analysis
        .scale()
        .iter()
        .map(|grid| Direction { name: name(analysis, grid), gains: gains(grid), grid })
        .collect();
    let mut texts = vec![
        wording(&directions, ends, |grid| knees(grid, Reason::Told)),
        wording(&directions, largest, |grid| knees(grid, Reason::Told)),
        wording(&directions, largest, |grid| knees(grid, Reason::Untold)),
        wording(&directions, largest, |_| String::new()),
    ];
    if directions.len() > 1 {
        let first = wording(&directions[..1], largest, |_| String::new());
        texts.push(format!("{first}; {} more: --details", directions.len() - 1));
    }
    texts
}

/// `reads`; behind the name of its targets where others were measured too.
fn name(analysis: &Analysis<'_>, grid: &Grid<'_>) -> String {
    let is_alone = analysis.scale().iter().all(|other| other.targets == grid.targets);
    let first = grid.lines.iter().flat_map(|line| &line.points).next().filter(|_| !is_alone);
    let target = first.and_then(|point| target_name(analysis, point.cell));
    format!("{}{}s", target.map_or_else(String::new, |name| format!("{name} ")), grid.op)
}

/// `4 streams against 1: reads 2.03 × at 64 KiB (1.65–2.50), stops scaling at 2 streams (device busy); writes …`.
fn wording(
    directions: &[Direction<'_>],
    gained: fn(&[Gain]) -> String,
    knee: fn(&Grid<'_>) -> String,
) -> String {
    let counts = distinct(directions.iter().flat_map(|direction| &direction.gains).map(|gain| gain.streams));
    // Several targets are compared with what each gives by itself, added up.
    let has_alone =
        directions.iter().flat_map(|direction| &direction.grid.lines).any(|line| line.sum_alone().is_some());
    let base = if has_alone { "each target alone" } else { "1" };
    let noun = directions.first().map_or("stream", |direction| direction.grid.noun());
    let lead = match counts[..] {
        [] => String::new(),
        [count] => format!("{count} {noun}s against {base}"),
        _ => format!("most {noun}s against {base}"),
    };
    // What holds for all is said once, here and below.
    let is_unsure =
        directions.iter().flat_map(|direction| &direction.gains).all(|gain| gain.interval.is_none());
    let lead = match (lead.is_empty(), is_unsure) {
        (true, _) => lead,
        (false, true) => format!("{lead}, too few repeats to be sure: "),
        (false, false) => format!("{lead}: "),
    };
    let knees: Vec<String> = directions.iter().map(|direction| knee(direction.grid)).collect();
    let is_common = knees.len() > 1 && knees.iter().all(|other| *other == knees[0]);
    let each = directions.iter().zip(&knees).map(|(direction, knee)| {
        let gained =
            if direction.gains.is_empty() { without_gain(direction.grid) } else { gained(&direction.gains) };
        let gained = if is_unsure { gained.replace(UNSURE, "") } else { gained };
        format!("{} {gained}{}", direction.name, if is_common { "" } else { knee })
    });
    let common = if is_common { knees[0].as_str() } else { "" };
    format!("{lead}{}{common}", each.collect::<Vec<_>>().join("; "))
}

/// The gains of the smallest and of the largest block size.
fn ends(gains: &[Gain]) -> String {
    match gains {
        [first, .., last] => format!("{first}, {last}"),
        gains => gains.iter().map(Gain::to_string).collect(),
    }
}

/// The largest of all gains.
fn largest(gains: &[Gain]) -> String {
    let most = gains.iter().max_by(|left, right| left.factor.total_cmp(&right.factor));
    let at_most = if gains.len() > 1 { "at most " } else { "" };
    most.map_or_else(String::new, |gain| format!("{at_most}{gain}"))
}

/// Behind a gain without an interval.
const UNSURE: &str = " (too few repeats)";

/// What the most streams of a block size give over a single one.
struct Gain {
    streams: u32,
    block: Bytes,
    factor: f64,
    interval: Option<(f64, f64)>,
}

impl fmt::Display for Gain {
    /// `2.03 × at 64 KiB (1.65–2.50)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval =
            self.interval.map_or_else(|| UNSURE.into(), |(low, high)| format!(" ({})", range(low, high)));
        write!(f, "{} at {}{interval}", times(self.factor), self.block)
    }
}

/// By ascending block size.
fn gains(grid: &Grid<'_>) -> Vec<Gain> {
    let last = |line: &Line<'_>| {
        let point = line.points.iter().rfind(|point| point.count() > 1 && point.speed_up.is_some())?;
        Some(Gain {
            streams: point.count(),
            block: Bytes(line.block_bytes),
            factor: point.speed_up?,
            interval: point.speed_up_interval,
        })
    };
    grid.lines.iter().filter_map(last).collect()
}

/// What there is to say where no number of streams stands beside a single one.
fn without_gain(grid: &Grid<'_>) -> String {
    let rates = grid.lines.iter().flat_map(|line| &line.points).filter_map(Point::bytes_per_s);
    match rates.reduce(f64::max) {
        Some(most) => {
            format!("up to {}, no number of {}s to compare", rdsk_analysis::words::rate(most), grid.noun())
        }
        None => "no rate".into(),
    }
}

/// Whether a knee has its reason beside it.
#[derive(Clone, Copy, PartialEq)]
enum Reason {
    Told,
    Untold,
}

/// `, stops scaling at 2 streams (device busy)`, where more streams stop helping.
fn knees(grid: &Grid<'_>, reason: Reason) -> String {
    let stops = grid.lines.iter().filter_map(|line| {
        let stop = line.knee.as_ref()?;
        let word = match stop.limit.word() {
            _ if reason == Reason::Untold => "",
            "not known" => "limit unknown",
            word => word,
        };
        Some(((stop.streams, word), line.block_bytes))
    });
    let each = by_key(stops).into_iter().map(|((streams, word), blocks)| {
        let at = match blocks[..] {
            [block_bytes] if grid.lines.len() > 1 => format!(" for {}", Bytes(block_bytes)),
            _ if blocks.len() < grid.lines.len() => format!(" for {} sizes", blocks.len()),
            _ => String::new(),
        };
        let why = if word.is_empty() { String::new() } else { format!(" ({word})") };
        format!(", stops scaling at {}{at}{why}", plural(u64::from(streams), grid.noun()))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures::{self, with};
    use rdsk_model::{Experiment, IoError};

    /// What three streams of four gave is no gain of four.
    #[test]
    fn a_cell_with_a_failed_stream_has_no_gain() {
        let record = |failed: &[u32]| {
            let cells = fixtures::run().cells.into_iter().filter(|cell| cell.experiment == Experiment::Scale);
            let error = |&stream: &u32| IoError {
                target: 0,
                stream: Some(stream),
                offset_bytes: 4096,
                errno: 5,
                message: "Input/output error".into(),
            };
            let cells = cells.take(2).map(|cell| {
                with(cell, |cell| {
                    if cell.workload.streams > 1 {
                        cell.result.errors = failed.iter().map(error).collect();
                    }
                })
            });
            fixtures::record(vec![fixtures::disk()], cells.collect())
        };
        let first = |failed: &[u32]| answer(&Analysis::of(&record(failed))).remove(0);
        assert!(first(&[]).contains("x at 64 KiB"), "{}", first(&[]));
        assert!(!first(&[2]).contains("x at"), "{}", first(&[2]));
    }

    #[test]
    fn a_gain_without_an_interval_is_not_told_as_if_it_were_sure() {
        let gain = |interval| Gain { streams: 4, block: Bytes(65_536), factor: 0.712, interval };
        assert_eq!(gain(None).to_string(), "0.71x at 64 KiB (too few repeats)");
        assert_eq!(gain(Some((0.36, 1.42))).to_string(), "0.71x at 64 KiB (0.36–1.42)");
    }
}
