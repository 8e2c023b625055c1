//! `scale`: what more streams gain at the smallest and at the largest block size, and where that ends.

use super::range;
use crate::cells::target_name;
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::scale::{Grid, Line, Point};
use rdsk_analysis::words::{plural, times};
use rdsk_units::Bytes;
use std::fmt;

pub(super) fn answer(analysis: &Analysis<'_>) -> Vec<String> {
    let grids = analysis.scale();
    let targets = distinct(grids.iter().map(|grid| &grid.targets));
    let name = |grid: &Grid<'_>| {
        let first = grid.lines.iter().flat_map(|line| &line.points).next();
        let name = first.and_then(|point| target_name(analysis, point.cell)).filter(|_| targets.len() > 1);
        format!("{}{}s", name.map_or_else(String::new, |name| format!("{name} ")), grid.op)
    };
    let all: Vec<(String, Vec<Gain>, &Grid<'_>)> =
        grids.iter().map(|grid| (name(grid), gains(grid), grid)).collect();
    let counts = distinct(all.iter().flat_map(|(_, gains, _)| gains.iter().map(|gain| gain.streams)));
    let lead = match counts[..] {
        [] => String::new(),
        [one] => format!("{one} streams over 1: "),
        _ => "most streams over 1: ".into(),
    };
    let ends = |gains: &[Gain]| match gains {
        [first, .., last] => format!("{first}, {last}"),
        all => all.iter().map(Gain::to_string).collect(),
    };
    let largest = |gains: &[Gain]| {
        let most = gains.iter().max_by(|one, other| one.factor.total_cmp(&other.factor));
        most.map_or_else(String::new, |gain| {
            format!("{}{gain}", if gains.len() > 1 { "at most " } else { "" })
        })
    };
    let wording = |gained: &dyn Fn(&[Gain]) -> String,
                   knee: &dyn Fn(&Grid<'_>) -> String,
                   some: &[(String, Vec<Gain>, &Grid<'_>)]| {
        let knees = some.iter().map(|(_, _, grid)| knee(grid)).collect::<Vec<_>>();
        // What holds for all is said once.
        let common = (knees.len() > 1 && knees.iter().all(|one| *one == knees[0])).then(|| &knees[0]);
        let each = some.iter().zip(&knees).map(|((name, gains, grid), knee)| {
            let gained = if gains.is_empty() { without_gain(grid) } else { gained(gains) };
            format!("{name} {gained}{}", if common.is_some() { "" } else { knee })
        });
        format!("{lead}{}{}", each.collect::<Vec<_>>().join("; "), common.map_or("", |knee| knee))
    };
    let none = |_: &Grid<'_>| String::new();
    let mut texts = vec![
        wording(&ends, &|grid| knees(grid, Reason::Told), &all),
        wording(&largest, &|grid| knees(grid, Reason::Told), &all),
        wording(&largest, &|grid| knees(grid, Reason::Untold), &all),
        wording(&largest, &none, &all),
    ];
    if let [_, _, ..] = &all[..] {
        texts.push(format!("{}; {} more: --details", wording(&largest, &none, &all[..1]), all.len() - 1));
    }
    texts
}

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
            self.interval.map_or_else(String::new, |(low, high)| format!(" ({})", range(low, high)));
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
        Some(most) => format!("up to {}, no number of streams to compare", rdsk_analysis::words::rate(most)),
        None => "no rate".into(),
    }
}

/// Whether a knee has its reason beside it.
#[derive(Clone, Copy, PartialEq)]
enum Reason {
    Told,
    Untold,
}

/// `, knee at 2 streams (device busy)`, where more streams stop helping.
fn knees(grid: &Grid<'_>, reason: Reason) -> String {
    let found = grid.lines.iter().filter_map(|line| {
        let stop = line.knee.as_ref()?;
        let word = match stop.limit.word() {
            _ if reason == Reason::Untold => "",
            "not known" => "limit not known",
            word => word,
        };
        Some(((stop.streams, word), line.block_bytes))
    });
    let each = by_key(found).into_iter().map(|((streams, word), blocks)| {
        let at = match blocks[..] {
            [one] if grid.lines.len() > 1 => format!(" for {}", Bytes(one)),
            _ if blocks.len() < grid.lines.len() => format!(" for {} sizes", blocks.len()),
            _ => String::new(),
        };
        let why = if word.is_empty() { String::new() } else { format!(" ({word})") };
        format!(", knee at {}{at}{why}", plural(u64::from(streams), "stream"))
    });
    each.collect()
}
