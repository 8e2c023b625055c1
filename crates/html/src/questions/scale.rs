//! Rate over block size: a line for each number of streams, on each set of targets, of one or several Records, and what each target
//! of a set gave of it.

use super::Subject;
use super::parts::{evidence, interval, joined, names_of, record_name, size_ticks};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::scale::{Grid, Line, TargetShare};
use rdsk_analysis::words::{few, list, plural};
use rdsk_model::{CellRecord, Op};
use rdsk_report::{MISSING, Unit, or_missing, plus_minus, significant, verdict_word};
use rdsk_units::{Bytes, percent};

/// Clauses about knees, and runs and targets that are named in each.
const MAX_CLAUSES: usize = 4;
const MAX_NAMED: usize = 3;

/// A grid and whose it is.
type Owned<'s, 'r> = (&'s Subject<'s, 'r>, &'s Grid<'r>);

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let grids =
        subjects.iter().flat_map(|subject| subject.analysis.scale().iter().map(move |grid| (subject, grid)));
    let by_op = by_key(grids.map(|owned| (owned.1.op, owned)));
    let of_op = |(op, grids): (Op, Vec<Owned<'_, '_>>)| {
        [Some(figure(subjects, op, &grids)), by_target(subjects, op, &grids)].into_iter().flatten()
    };
    by_op.into_iter().flat_map(of_op).collect()
}

/// What distinguishes a grid from the others of the figure.
fn owner(subjects: &[Subject<'_, '_>], (subject, grid): &Owned<'_, '_>) -> String {
    let record = record_name(subjects, subject);
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
    let plot = Plot::new(
        Axis::log("block size", "").with_ticks(size_ticks(lines().map(|line| line.block_bytes))),
        Axis::from_zero("total rate", unit.name),
        series,
    );
    let cells = grids.iter().flat_map(|owned| {
        let whose = owner(subjects, owned);
        let points = owned.1.lines.iter().flat_map(|line| &line.points);
        points.map(|point| (joined(&whose, &point.cell.id), point.cell)).collect::<Vec<_>>()
    });
    Figure {
        id: format!("scale-{op}"),
        title: format!("Rate over block size, {op}"),
        shows: format!(
            "The rate of all streams together while all of them ran, with its 95% interval, one line for each number of \
             streams. {}",
            knees(subjects, grids)
        )
        .trim()
        .to_owned(),
        drawing: Drawing::of(plot, "No cell completed."),
        table: table(subjects, grids, unit),
        evidence: evidence(cells),
    }
}

fn value(line: &Line<'_>, streams: u32, unit: Unit) -> Option<Point> {
    let rate = line.point(streams)?.cell.result.bytes_per_s?;
    let point = Point::at(line.block_bytes as f64, unit.of(rate.mean));
    Some(Point { interval: interval(rate, unit), ..point })
}

/// Where more streams stop helping: one clause for all runs and targets that show the same.
fn knees(subjects: &[Subject<'_, '_>], grids: &[Owned<'_, '_>]) -> String {
    let shown = grids.iter().flat_map(|owned| {
        let knees =
            owned.1.lines.iter().filter_map(|line| Some((line.knee.as_ref()?.streams, line.block_bytes)));
        by_key(knees).into_iter().map(|knee| (knee, owner(subjects, owned)))
    });
    let alike = by_key(shown);
    let clauses = alike.iter().take(MAX_CLAUSES).map(|((streams, blocks), owners)| {
        let size = |&block: &u64| Bytes(block).to_string();
        let blocks = match blocks.as_slice() {
            [first, _, .., last] => format!("{} sizes from {} to {}", blocks.len(), size(first), size(last)),
            few => list(&few.iter().map(size).collect::<Vec<_>>()),
        };
        let whose = if owners.len() == grids.len() {
            String::new()
        } else {
            format!(" ({})", few(owners, MAX_NAMED, "other"))
        };
        format!("beyond {} with blocks of {blocks}{whose}", plural(u64::from(*streams), "stream"))
    });
    let mut clauses: Vec<String> = clauses.collect();
    if alike.len() > MAX_CLAUSES {
        clauses.push(format!(
            "and {} that rdsk show tells",
            plural((alike.len() - MAX_CLAUSES) as u64, "other case")
        ));
    }
    if clauses.is_empty() {
        String::new()
    } else {
        format!("More streams gain little {}.", clauses.join("; "))
    }
}

/// A target's share of a cell: its name with that of its Record, the block size, and the number of streams of all targets.
struct Share<'s> {
    name: String,
    block_bytes: u64,
    streams: u32,
    share: &'s TargetShare,
    /// The cell with its name.
    cell: (String, &'s CellRecord),
}

/// What each target gave with the most streams; `None` where no cell has several targets.
fn by_target(subjects: &[Subject<'_, '_>], op: Op, grids: &[Owned<'_, '_>]) -> Option<Figure> {
    let mut shares: Vec<Share<'_>> = Vec::new();
    for (subject, grid) in grids.iter().filter(|(_, grid)| grid.targets.len() > 1) {
        let Some(streams) = grid.counts().last().copied() else { continue };
        let record = record_name(subjects, subject).unwrap_or_default();
        // A target of several sets has a line for each.
        let is_of_set = |other: &&Grid<'_>| other.op == op && other.targets.len() > 1;
        let of_set = match subject.analysis.scale().iter().filter(is_of_set).count() {
            1 => String::new(),
            _ => format!(" of {} targets", grid.targets.len()),
        };
        for (line, point) in grid.lines.iter().filter_map(|line| Some((line, line.point(streams)?))) {
            let ran = point.targets.iter().filter(|_| point.bytes_per_s().is_some());
            shares.extend(ran.map(|share| Share {
                name: joined(&record, &format!("{}{of_set}", names_of(subject.analysis, &[share.target]))),
                block_bytes: line.block_bytes,
                streams,
                share,
                cell: (joined(&record, &point.cell.id), point.cell),
            }));
        }
    }
    if shares.is_empty() {
        return None;
    }
    let unit = Unit::MIB_PER_S;
    let point = |one: &&Share<'_>| Point::at(one.block_bytes as f64, unit.of(one.share.bytes_per_s));
    let named = by_key(shares.iter().map(|one| (one.name.clone(), one)));
    let line = |(name, own): (String, Vec<&Share<'_>>)| {
        Series::new(name, Shape::Line, own.iter().map(point).collect())
    };
    let row = |one: &Share<'_>| {
        vec![
            one.name.clone(),
            Bytes(one.block_bytes).to_string(),
            format!("{} of {}", one.share.streams, one.streams),
            unit.figure(one.share.bytes_per_s),
            or_missing(one.share.busy_share.map(percent)),
        ]
    };
    let rate = format!("rate, {}", unit.name);
    let heads = ["target", "block size", "streams", &rate, "device busy"];
    Some(Figure {
        id: format!("scale-{op}-targets"),
        title: format!("Rate of each target, {op}"),
        shows: "A line for each target with the most streams that were measured: the bytes of its streams from their first start \
                to their last end, ramps included."
            .into(),
        drawing: Drawing::Plot(Plot::new(
Axis::log("block size", "").with_ticks(size_ticks(shares.iter().map(|one| one.block_bytes))),
Axis::from_zero("rate of the target", unit.name),
named.into_iter().map(line),
)),
        table: Table::new(heads, shares.iter().map(row)),
        evidence: evidence(distinct(shares.iter().map(|one| one.cell.clone()))),
    })
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
                or_missing(point.speed_up.map(|factor| format!("{}x", significant(factor)))),
                or_missing(point.fairness.map(|fairness| significant(fairness.jain))),
                verdict_word(point.cell),
            ]
        };
        points.map(row).collect::<Vec<_>>()
    });
    let rate = format!("rate, {}", unit.name);
    let heads = ["block size", "streams", &rate, "±95%", "over one stream", "fairness (Jain)", "verdict"];
    Table::new(heads, rows)
}
