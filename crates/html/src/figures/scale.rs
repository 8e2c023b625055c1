//! Rate over block size: a line for each number of streams, on each set of targets, of one or several Records.

use super::Subject;
use super::parts::{evidence, interval, joined, names_of, size_ticks};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::scale::{Grid, Line};
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Op};
use rdsk_report::words::{plus_minus, verdict_word};
use rdsk_report::{MISSING, Unit, or_missing, significant};
use rdsk_units::{Bytes, printable};

/// A grid and whose it is.
type Owned<'s, 'r> = (&'s Subject<'s, 'r>, &'s Grid<'r>);

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let grids =
        subjects.iter().flat_map(|subject| subject.analysis.scale().iter().map(move |grid| (subject, grid)));
    let by_op = by_key(grids.map(|owned| (owned.1.op, owned)));
    by_op.into_iter().map(|(op, grids)| figure(subjects, op, &grids)).collect()
}

/// What tells a grid from the others of the figure.
fn owner(subjects: &[Subject<'_, '_>], (subject, grid): &Owned<'_, '_>) -> String {
    let record = (subjects.len() > 1).then(|| printable(subject.name));
    let has_others = subject.analysis.scale().iter().any(|other| other.targets != grid.targets);
    let targets = has_others.then(|| names_of(subject.analysis, &grid.targets));
    [record, targets].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn figure(subjects: &[Subject<'_, '_>], op: Op, grids: &[Owned<'_, '_>]) -> Figure {
    let lines = || grids.iter().flat_map(|(_, grid)| &grid.lines);
    let unit = Unit::MIB_PER_S;
    let name = |owned: &Owned<'_, '_>, streams: u32| {
        joined(&owner(subjects, owned), &plural(u64::from(streams), "stream"))
    };
    let series = grids.iter().flat_map(|owned| {
        let line = |streams: u32| {
            let points = owned.1.lines.iter().filter_map(|line| value(line, streams, unit)).collect();
            Series::new(name(owned, streams), Shape::Line, points)
        };
        owned.1.counts().into_iter().map(line).collect::<Vec<_>>()
    });
    let plot = Plot {
        x: Axis::log("block size", "").with_ticks(size_ticks(lines().map(|line| line.block_bytes))),
        y: Axis::from_zero("total rate", unit.name),
        series: series.filter(|series| !series.points.is_empty()).collect(),
    };
    let knees: Vec<String> = grids.iter().filter_map(|owned| knee(subjects, owned)).collect();
    let cells: Vec<&CellRecord> = lines().flat_map(|line| &line.points).map(|point| point.cell).collect();
    Figure {
        id: format!("scale-{op}"),
        title: format!("Rate over block size, {op}"),
        shows: format!(
            "The rate of all streams together while all of them ran, with its 95 % interval, one line for each number of \
             streams. {}",
            knees.join(" ")
        )
        .trim()
        .to_owned(),
        drawing: Drawing::of(plot, "No cell completed."),
        table: table(subjects, grids, unit),
        evidence: evidence(cells, |cell| cell.id.clone()),
    }
}

fn value(line: &Line<'_>, streams: u32, unit: Unit) -> Option<Point> {
    let rate = line.point(streams)?.cell.result.bytes_per_s?;
    let point = Point::at(line.block_bytes as f64, unit.of(rate.mean));
    Some(Point { interval: interval(rate, unit), ..point })
}

/// Where more streams stop helping, for the block sizes that show it.
fn knee(subjects: &[Subject<'_, '_>], owned: &Owned<'_, '_>) -> Option<String> {
    let stops = owned.1.lines.iter().filter_map(|line| Some((line.knee.as_ref()?.streams, line.block_bytes)));
    let by_streams = by_key(stops.map(|(streams, block)| (streams, Bytes(block).to_string())));
    let said: Vec<String> = by_streams
        .into_iter()
        .map(|(streams, blocks)| {
            format!(
                "beyond {} with blocks of {}",
                plural(u64::from(streams), "stream"),
                rdsk_analysis::words::list(&blocks)
            )
        })
        .collect();
    let whose = owner(subjects, owned);
    let lead = if whose.is_empty() { "More".to_owned() } else { format!("{whose}: more") };
    (!said.is_empty()).then(|| format!("{lead} streams gain little {}.", rdsk_analysis::words::list(&said)))
}

fn table(subjects: &[Subject<'_, '_>], grids: &[Owned<'_, '_>], unit: Unit) -> Table {
    let rows = grids.iter().flat_map(|owned| {
        let whose = owner(subjects, owned);
        let points =
            owned.1.lines.iter().flat_map(|line| line.points.iter().map(|point| (line.block_bytes, point)));
        let row = |(block, point): (u64, &rdsk_analysis::scale::Point<'_>)| {
            let rate = point.cell.result.bytes_per_s;
            vec![
                joined(&whose, &Bytes(block).to_string()),
                point.count().to_string(),
                rate.map_or_else(|| MISSING.into(), |rate| unit.figure(rate.mean)),
                plus_minus(rate),
                or_missing(point.speed_up.map(|factor| format!("{} ×", significant(factor)))),
                or_missing(point.fairness.map(|fairness| significant(fairness.jain))),
                verdict_word(point.cell),
            ]
        };
        points.map(row).collect::<Vec<_>>()
    });
    let rate = format!("rate, {}", unit.name);
    let heads = ["block size", "streams", &rate, "±95 %", "over one stream", "fairness (Jain)", "verdict"];
    Table { heads: heads.map(String::from).to_vec(), rows: rows.collect(), ..Table::default() }
}
