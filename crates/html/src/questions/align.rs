//! Size and alignment: the time per I/O over block size, the same for offsets that are not aligned, and the bytes that each
//! write made the kernel read. Of several Records a figure for each state of the cache and path has a line for each of them.

use super::Subject;
use super::parts::{Group, evidence, joined, noun, size_ticks, slug};
use super::rows::{NamedCell, looks, rows};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::metrics;
use rdsk_analysis::words::list;
use rdsk_model::{CacheState, CellRecord, Experiment, Op};
use rdsk_report::{MISSING, Unit, place, significant};
use rdsk_units::Bytes;

/// What the text page adds to a place.
const CROSSING: &str = ", crossing";

pub(super) fn figures(subject: &Subject<'_, '_>) -> Vec<Figure> {
    let record = subject.analysis;
    let cells = labelled(&[*subject]);
    let groups = by_key(cells.into_iter().map(|row| (row.cell.workload.targets.clone(), row)));
    let of_targets = |(_, rows): (_, Vec<NamedCell<'_>>)| {
        let rows: Vec<NamedCell<'_>> =
            rows.into_iter().map(|row| NamedCell { owner: String::new(), ..row }).collect();
        of_group(&Group::of_cell(record, rows[0].cell), &rows)
    };
    groups.into_iter().flat_map(of_targets).collect()
}

/// The figures of several Records, column by column.
pub(super) fn overlay(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let of_column = |(column, rows): (String, Vec<NamedCell<'_>>)| {
        of_group(&Group { slug: format!("-{}", slug(&column)), title_end: format!(", {column}") }, &rows)
    };
    let columns = by_key(labelled(subjects).into_iter().map(|row| (row.label.clone(), row)));
    // A path that none of the systems has would be an empty figure; the tables of each run name it.
    let has_run = |(_, rows): &(String, Vec<NamedCell<'_>>)| rows.iter().any(|row| metrics::ran(row.cell));
    columns.into_iter().filter(has_run).flat_map(of_column).collect()
}

/// The cells with their columns as labels; with the direction, where there are both.
fn labelled<'s>(subjects: &[Subject<'s, '_>]) -> Vec<NamedCell<'s>> {
    let rows = rows(subjects, Experiment::Align, column);
    let has_both = noun(rows.iter().map(|row| row.cell)) == "I/O";
    let label = |row: &NamedCell<'_>| {
        if has_both { format!("{} {}", row.op(), row.label) } else { row.label.clone() }
    };
    rows.into_iter().map(|row| NamedCell { label: label(&row), ..row }).collect()
}

fn of_group(group: &Group, rows: &[NamedCell<'_>]) -> Vec<Figure> {
    let is_aligned = |row: &&NamedCell<'_>| row.cell.workload.shift_bytes == 0;
    let (aligned, shifted): (Vec<&NamedCell<'_>>, Vec<&NamedCell<'_>>) = rows.iter().partition(is_aligned);
    let mut figures = vec![by_size(group, &aligned)];
    if !shifted.is_empty() {
        let has_twin = |row: &&&NamedCell<'_>| {
            let bytes = row.cell.workload.block_bytes;
            shifted.iter().any(|other| other.cell.workload.block_bytes == bytes)
        };
        let mut compared: Vec<&NamedCell<'_>> = aligned.iter().filter(has_twin).copied().collect();
        compared.extend(&shifted);
        figures.push(by_place(group, compared));
    }
    figures.extend(reads(group, rows));
    figures
}

/// `cached direct`, `uncached buffered`.
fn column(cell: &CellRecord) -> String {
    let cached = if cell.workload.cache == CacheState::Warm { "cached" } else { "uncached" };
    format!("{cached} {}", cell.workload.path)
}

/// `4 KiB aligned`, `4 KiB at +512 B`, as the figure by size writes sizes.
fn place_of(cell: &CellRecord) -> String {
    let (block, shift) = (cell.workload.block_bytes, cell.workload.shift_bytes);
    if shift == 0 {
        return format!("{} aligned", Bytes(block));
    }
    let crosses = if place((block, shift)).ends_with(CROSSING) { CROSSING } else { "" };
    format!("{} at +{}{crosses}", Bytes(block), Bytes(shift))
}

fn mean_ns(cell: &CellRecord) -> Option<f64> {
    cell.result.latency_ns.as_ref()?.mean.filter(|_| metrics::ran(cell))
}

/// A cell, and what its series looks like.
type LookingCell<'c> = (&'c CellRecord, Option<Look>);

/// The series of each name, of those rows that have a point.
fn series(
    rows: &[&NamedCell<'_>],
    shape: impl Fn(usize) -> Shape,
    point: impl Fn(&CellRecord) -> Option<Point>,
) -> Vec<Series> {
    let named = by_key(rows.iter().zip(looks(rows)).map(|(row, look)| (row.name(), (row.cell, look))));
    let of_name = |(slot, (name, cells)): (usize, (String, Vec<LookingCell<'_>>))| {
        let mut points: Vec<Point> = cells.iter().filter_map(|(cell, _)| point(cell)).collect();
        if shape(slot) == Shape::Line {
            points.sort_by(|left, right| left.x.total_cmp(&right.x));
        }
        Series::new(name, shape(slot), points).looking(cells[0].1)
    };
    named.into_iter().enumerate().map(of_name).filter(|series| !series.points.is_empty()).collect()
}

fn by_size(group: &Group, rows: &[&NamedCell<'_>]) -> Figure {
    let noun = noun(rows.iter().map(|row| row.cell));
    let unit = Unit::fit(&Unit::TIMES, rows.iter().filter_map(|row| mean_ns(row.cell)));
    let point =
        |cell: &CellRecord| Some(Point::at(cell.workload.block_bytes as f64, unit.scaled(mean_ns(cell)?)));
    let plot = Plot::new(
        Axis::log("block size", "")
            .with_ticks(size_ticks(rows.iter().map(|row| row.cell.workload.block_bytes))),
        Axis::log(&format!("mean time per {noun}"), unit.name),
        series(rows, |_| Shape::Line, point),
    );
    Figure {
        id: group.id("align-size"),
        title: format!("Time per {noun} by block size{}", group.title_end),
        shows: format!(
            "Aligned {noun}s, a line for each state of the page cache and path. Both axes are logarithmic. What is not possible \
             on a path has no value; the evidence says why."
        ),
        drawing: Drawing::of(plot, "No aligned I/O completed."),
        table: table(rows),
        evidence: evidence(rows.iter().map(|row| named(row))),
    }
}

/// A cell with its name and place, as evidence calls it.
fn named<'s>(row: &NamedCell<'s>) -> (String, &'s CellRecord) {
    (joined(&row.name(), &place_of(row.cell)), row.cell)
}

fn by_place(group: &Group, mut rows: Vec<&NamedCell<'_>>) -> Figure {
    let noun = noun(rows.iter().map(|row| row.cell));
    rows.sort_by_key(|row| (row.cell.workload.block_bytes, row.cell.workload.shift_bytes));
    let unit = Unit::fit(&Unit::TIMES, rows.iter().filter_map(|row| mean_ns(row.cell)));
    let places = distinct(rows.iter().map(|row| place_of(row.cell)));
    let point = |cell: &CellRecord| {
        let row = places.iter().position(|place| *place == place_of(cell))?;
        Some(Point::at(unit.scaled(mean_ns(cell)?), row as f64))
    };
    let plot = Plot::new(
        Axis::log(&format!("mean time per {noun}"), unit.name),
        Axis::rows(places.iter().cloned()),
        series(&rows, |_| Shape::Mark, point),
    );
    Figure {
        id: group.id("align-place"),
        title: format!("Time per {noun} by alignment{}", group.title_end),
        shows: format!(
            "The same {noun}s at multiples of their size and moved by some bytes, a mark each. The axis is logarithmic."
        ),
        drawing: Drawing::of(plot, "No I/O completed."),
        table: table(&rows),
        evidence: evidence(rows.iter().map(|row| named(row))),
    }
}

/// The bytes read for each write; `None` where the kernel read nothing, or did not count.
fn reads(group: &Group, rows: &[NamedCell<'_>]) -> Option<Figure> {
    let bytes_of = |cell: &CellRecord| {
        let is_asked = cell.workload.op == Op::Write && cell.workload.cache != CacheState::Warm;
        metrics::read_bytes_per_io(cell).filter(|_| is_asked && metrics::ran(cell))
    };
    let mut asked: Vec<(&NamedCell<'_>, f64)> =
        rows.iter().filter_map(|row| Some((row, bytes_of(row.cell)?))).collect();
    if asked.iter().all(|(_, bytes)| *bytes == 0.0) {
        return None;
    }
    // As in the figure of alignments: the shifts of a size from the smallest on.
    asked.sort_by_key(|(row, _)| {
        let workload = &row.cell.workload;
        (workload.shift_bytes > 0, workload.block_bytes, workload.shift_bytes)
    });
    let places = distinct(asked.iter().map(|(row, _)| place_of(row.cell)));
    let reads_nothing = |name: &str| asked.iter().all(|(row, bytes)| row.name() != name || *bytes == 0.0);
    let (without, with): (Vec<String>, Vec<String>) =
        distinct(asked.iter().map(|(row, _)| row.name())).into_iter().partition(|name| reads_nothing(name));
    let slots = with.len();
    let reading: Vec<&NamedCell<'_>> =
        asked.iter().map(|(row, _)| *row).filter(|row| with.contains(&row.name())).collect();
    let point = |cell: &CellRecord| {
        let row = places.iter().position(|place| *place == place_of(cell))?;
        Some(Point::at(bytes_of(cell)?, row as f64))
    };
    let plot = Plot::new(
        Axis::from_zero("bytes read for each write", "B"),
        Axis::rows(places.iter().cloned()),
        series(&reading, |slot| Shape::Bar { slot, slots }, point),
    );
    let without =
        if without.is_empty() { String::new() } else { format!(" Nothing was read: {}.", list(&without)) };
    let row =
        |(row, bytes): &(&NamedCell<'_>, f64)| vec![row.name(), place_of(row.cell), significant(*bytes)];
    Some(Figure {
        id: group.id("align-reads"),
        title: format!("Reads that writes caused{}", group.title_end),
        shows: format!(
            "Bytes that the kernel read for each uncached write: a write of a part of a page makes it read the page first. \
             No bar means no read.{without}"
        ),
        drawing: Drawing::Plot(plot),
        table: Table::new(["", "write of", "read, B"], asked.iter().map(row)),
        evidence: evidence(asked.iter().map(|(row, _)| named(row))),
    })
}

fn table(rows: &[&NamedCell<'_>]) -> Table {
    let row = |row: &&NamedCell<'_>| {
        let reads = metrics::read_bytes_per_io(row.cell);
        vec![
            row.name(),
            place_of(row.cell),
            Unit::MICROSECONDS.figure_or_missing(mean_ns(row.cell)),
            reads.map_or_else(|| MISSING.into(), significant),
            row.remark.clone(),
        ]
    };
    let row_head = format!("{} of", noun(rows.iter().map(|row| row.cell)));
    Table::new(["", &row_head, "mean, µs", "read for each, B", "remark"], rows.iter().map(row))
}
