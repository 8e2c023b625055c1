//! Rate over block size: a line for each number of streams, on each set of targets, of one or several Records, and what each target
//! of a set gave of it.

use super::parts::{evidence, interval, joined, names_of, record_name, size_ticks};
use super::rows::{NamedCell, Whose, rows};
use super::{Subject, sweep};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::scale::{Grid, Line, TargetShare};
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_report::{MISSING, Unit, or_missing, plus_minus, remark_of, significant, writes_against_reads};
use rdsk_units::{Bytes, percent};

/// The unit of all rates.
const UNIT: Unit = Unit::MIB_PER_S;

/// A grid and whose it is.
struct OwnedGrid<'s, 'r> {
    subject: &'s Subject<'s, 'r>,
    grid: &'s Grid<'r>,
    /// What distinguishes it from the others of the figure; empty where there is none.
    owner: String,
    whose: Whose,
}

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let grids = owned(subjects);
    if grids.is_empty() {
        return Vec::new();
    }
    let mut figures = vec![most_streams(&grids)];
    let rows = rows(subjects, Experiment::Scale, |_| String::new());
    let smallest = rows.iter().map(|row| row.cell.workload.block_bytes).min();
    let smallest: Vec<NamedCell<'_>> =
        rows.into_iter().filter(|row| Some(row.cell.workload.block_bytes) == smallest).collect();
    figures.extend(sweep::figures("scale", &smallest));
    for (op, grids) in by_key(grids.iter().map(|owned| (owned.grid.op, owned))) {
        figures.push(by_streams(op, &grids));
        figures.extend(by_target(subjects, op, &grids));
    }
    figures
}

fn owned<'s, 'r>(subjects: &'s [Subject<'s, 'r>]) -> Vec<OwnedGrid<'s, 'r>> {
    let of_subject = |(result, subject): (usize, &'s Subject<'s, 'r>)| {
        let sets = distinct(subject.analysis.scale().iter().map(|grid| grid.targets.as_slice()));
        subject.analysis.scale().iter().map(move |grid| {
            let targets = (sets.len() > 1).then(|| names_of(subject.analysis, &grid.targets));
            let parts = [record_name(subjects, subject), targets];
            OwnedGrid {
                subject,
                grid,
                owner: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
                whose: Whose::new(subjects, result, &grid.targets, &sets),
            }
        })
    };
    subjects.iter().enumerate().flat_map(of_subject).collect()
}

/// Reads and writes with the most streams, and of a single result with one.
fn most_streams(grids: &[OwnedGrid<'_, '_>]) -> Figure {
    let is_alone = distinct(grids.iter().map(|owned| owned.whose.result())).len() == 1;
    let series = grids.iter().flat_map(|owned| {
        let counts = owned.grid.counts();
        let most = counts.last().copied();
        let single = most.filter(|&most| is_alone && most > 1 && counts.contains(&1)).map(|_| 1);
        let line = |(style, streams): (usize, u32)| {
            let look = owned.whose.look(owned.grid.op);
            let points = points_of(owned.grid, streams);
            let what = format!("{}, {}", owned.grid.op, plural(u64::from(streams), owned.grid.noun()));
            let look = Look { style: look.style + style, ..look };
            Series::new(joined(&owned.owner, &what), Shape::Line, points).looking(Some(look))
        };
        most.map(|most| (0, most))
            .into_iter()
            .chain(single.map(|single| (2, single)))
            .map(line)
            .collect::<Vec<_>>()
    });
    let grid_refs: Vec<&OwnedGrid<'_, '_>> = grids.iter().collect();
    let directions =
        if is_alone { writes_against_reads(grids[0].subject.analysis).join(" ") } else { String::new() };
    let noun = noun(&grid_refs);
    let shows = format!(
        "All {noun}s together while all of them ran, with the 95% interval, for the most {noun}s that were measured."
    );
    Figure {
        id: "scale-rate".into(),
        title: "Rate over block size, reads and writes".into(),
        shows: format!("{shows} {directions}").trim().to_owned(),
        drawing: Drawing::of(rate_plot(&grid_refs, series), "No I/O completed."),
        table: table(&grid_refs),
        evidence: evidence(cells_of(&grid_refs)),
    }
}

/// What the numbers of all of these count.
fn noun(grids: &[&OwnedGrid<'_, '_>]) -> &'static str {
    let nouns = distinct(grids.iter().map(|owned| owned.grid.noun()));
    if let [noun] = nouns[..] { noun } else { "stream" }
}

fn rate_plot(grids: &[&OwnedGrid<'_, '_>], series: impl IntoIterator<Item = Series>) -> Plot {
    let sizes = grids.iter().flat_map(|owned| &owned.grid.lines).map(|line| line.block_bytes);
    Plot::new(
        Axis::log("block size", "").with_ticks(size_ticks(sizes)),
        Axis::from_zero("total rate", UNIT.name),
        series,
    )
}

fn points_of(grid: &Grid<'_>, streams: u32) -> Vec<Point> {
    grid.lines.iter().filter_map(|line| value(line, streams)).collect()
}

/// A line for each number of streams of one direction.
fn by_streams(op: Op, grids: &[&OwnedGrid<'_, '_>]) -> Figure {
    let (counts, noun) = (distinct(grids.iter().flat_map(|owned| owned.grid.counts())), noun(grids));
    let series = grids.iter().flat_map(|owned| {
        let line = |(kind, &streams): (usize, &u32)| {
            let name = joined(&owned.owner, &plural(u64::from(streams), owned.grid.noun()));
            Series::new(name, Shape::Line, points_of(owned.grid, streams)).looking(owned.whose.kind(kind))
        };
        counts.iter().enumerate().map(line).collect::<Vec<_>>()
    });
    Figure {
        id: format!("scale-{op}"),
        title: format!("Rate over block size, {op}s, by number of {noun}s"),
        shows: format!(
            "The rate of all {noun}s together while all of them ran, with its 95% interval, one line for each number of \
             {noun}s."
        ),
        drawing: Drawing::of(rate_plot(grids, series), "No I/O completed."),
        table: table(grids),
        evidence: evidence(cells_of(grids)),
    }
}

/// Every cell with its name.
fn cells_of<'g>(grids: &[&'g OwnedGrid<'_, '_>]) -> Vec<(String, &'g CellRecord)> {
    let of_grid = |owned: &&'g OwnedGrid<'_, '_>| {
        let points = owned.grid.lines.iter().flat_map(|line| &line.points);
        points.map(|point| (joined(&owned.owner, point.cell.name()), point.cell)).collect::<Vec<_>>()
    };
    grids.iter().flat_map(of_grid).collect()
}

fn value(line: &Line<'_>, streams: u32) -> Option<Point> {
    let rate = line.point(streams)?.cell.result.bytes_per_s?;
    let point = Point::at(line.block_bytes as f64, UNIT.scaled(rate.mean));
    Some(Point { interval: interval(rate, UNIT), ..point })
}

/// A target's share of a cell: its name with that of its Record, the block size, and the number of streams of all targets.
struct Share<'s> {
    name: String,
    look: Option<Look>,
    block_bytes: u64,
    streams: u32,
    share: &'s TargetShare,
    /// The cell with its name.
    cell: (String, &'s CellRecord),
}

/// What each target gave with the most streams; `None` where no cell has several targets.
fn by_target(subjects: &[Subject<'_, '_>], op: Op, grids: &[&OwnedGrid<'_, '_>]) -> Option<Figure> {
    let mut shares: Vec<Share<'_>> = Vec::new();
    for OwnedGrid { subject, grid, whose, .. } in grids.iter().filter(|owned| owned.grid.targets.len() > 1) {
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
            shares.extend(ran.enumerate().map(|(kind, share)| Share {
                look: whose.kind(kind),
                name: joined(&record, &format!("{}{of_set}", names_of(subject.analysis, &[share.target]))),
                block_bytes: line.block_bytes,
                streams,
                share,
                cell: (joined(&record, point.cell.name()), point.cell),
            }));
        }
    }
    if shares.is_empty() {
        return None;
    }
    let point =
        |share: &&Share<'_>| Point::at(share.block_bytes as f64, UNIT.scaled(share.share.bytes_per_s));
    let named = by_key(shares.iter().map(|share| (share.name.clone(), share)));
    let line = |(name, own): (String, Vec<&Share<'_>>)| {
        Series::new(name, Shape::Line, own.iter().map(point).collect()).looking(own[0].look)
    };
    let row = |share: &Share<'_>| {
        vec![
            share.name.clone(),
            Bytes(share.block_bytes).to_string(),
            format!("{} of {}", share.share.streams, share.streams),
            UNIT.figure(share.share.bytes_per_s),
            or_missing(share.share.busy_share.map(percent)),
        ]
    };
    let rate = format!("rate, {}", UNIT.name);
    let heads = ["target", "block size", "streams", &rate, "device busy"];
    Some(Figure {
        id: format!("scale-{op}-targets"),
        title: format!("Rate of each target, {op}"),
        shows: "A line for each target with the most streams that were measured: the bytes of its streams from their first start \
                to their last end, ramps included."
            .into(),
        drawing: Drawing::Plot(Plot::new(
Axis::log("block size", "").with_ticks(size_ticks(shares.iter().map(|share| share.block_bytes))),
Axis::from_zero("rate of the target", UNIT.name),
named.into_iter().map(line),
)),
        table: Table::new(heads, shares.iter().map(row)),
        evidence: evidence(distinct(shares.iter().map(|share| share.cell.clone()))),
    })
}

fn table(grids: &[&OwnedGrid<'_, '_>]) -> Table {
    let has_both = distinct(grids.iter().map(|owned| owned.grid.op)).len() > 1;
    let rows = grids.iter().flat_map(|owned| {
        let lines = owned.grid.lines.iter();
        let points = lines.flat_map(|line| line.points.iter().map(|point| (line.block_bytes, point)));
        let row = |(block, point): (u64, &rdsk_analysis::scale::Point<'_>)| {
            let rate = point.cell.result.bytes_per_s;
            let direction = if has_both { format!("{} ", owned.grid.op) } else { String::new() };
            vec![
                joined(&owned.owner, &format!("{direction}{}", Bytes(block))),
                point.count().to_string(),
                rate.map_or_else(|| MISSING.into(), |rate| UNIT.figure(rate.mean)),
                plus_minus(rate),
                or_missing(point.speed_up.map(|factor| format!("{}x", significant(factor)))),
                or_missing(point.fairness.map(|fairness| significant(fairness.jain))),
                remark_of(owned.subject.analysis, point.cell),
            ]
        };
        points.map(row).collect::<Vec<_>>()
    });
    let rate = format!("rate, {}", UNIT.name);
    let noun = noun(grids);
    let (counts, over) = (format!("{noun}s"), format!("over one {noun}"));
    Table::new(["block size", &counts, &rate, "±95%", &over, "evenness (Jain)", "remark"], rows)
}
