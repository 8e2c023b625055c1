//! Rates side by side: a row for each workload, a bar for each direction and each result, with its 95% interval and its figure in
//! words.

use super::parts::{interval, joined};
use super::rows::{NamedCell, evidence_of_rows, labels};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::metrics;
use rdsk_model::{Estimate, Op};
use rdsk_report::{Unit, is_bandwidth};

/// What the rates of a figure are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Bytes per second of sequential I/O, I/Os per second of other.
    OfItsKind,
    /// Bytes per second of all, of writes until they are on disk.
    OnDisk,
}

/// How rates become lengths of bars.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Length {
    /// In one unit: all rows are of one kind.
    Unit(Unit),
    /// In percent of the highest rate of the row: rows of different kinds have no common axis.
    OfRow,
}

/// The figure of these cells; `None` where none of them has a rate.
pub(super) fn figure(
    (id, title, shows): (&str, &str, &str),
    rows: &[NamedCell<'_>],
    measure: Measure,
) -> Option<Figure> {
    let ran: Vec<&NamedCell<'_>> =
        rows.iter().filter(|row| metrics::ran(row.cell) && rate(row, measure).is_some()).collect();
    let bandwidths = ran.iter().filter(|row| is_bytes(row, measure)).count();
    let highest = ran.iter().filter_map(|row| rate(row, measure)).map(|rate| rate.mean).reduce(f64::max)?;
    let length = match bandwidths {
        0 => Length::Unit(Unit::IOPS),
        count if count == ran.len() => Length::Unit(Unit::fit(&Unit::RATES, [highest])),
        _ => Length::OfRow,
    };
    let (axis, scale) = match length {
        Length::Unit(unit) => (Axis::from_zero("rate", unit.name), String::new()),
        Length::OfRow => (
            Axis::from_zero("rate, of the highest in its row", "%"),
            " The lengths compare within a row; the rows are of different units.".to_owned(),
        ),
    };
    Some(Figure {
        id: id.into(),
        title: title.into(),
        shows: format!("{shows} The line on a bar is its 95% interval.{scale}{}", marks(&ran, measure)),
        drawing: Drawing::Plot(Plot::new(axis, Axis::rows(labels(&ran)), series(&ran, measure, length))),
        table: table(rows, measure),
        evidence: evidence_of_rows(rows),
    })
}

/// ` c = drive's write cache; r = RAM (page cache).`: what the letters behind the rates mean.
fn marks(rows: &[&NamedCell<'_>], measure: Measure) -> String {
    let marked = rows.iter().filter(|row| !marks_of(row, measure).is_empty());
    let meanings = distinct(marked.map(|row| format!("{} = {}", row.texts.marks, row.remark)));
    if meanings.is_empty() { String::new() } else { format!(" {}.", meanings.join("; ")) }
}

fn is_bytes(row: &NamedCell<'_>, measure: Measure) -> bool {
    measure == Measure::OnDisk || is_bandwidth(row.cell)
}

/// The rate of a cell.
fn rate(row: &NamedCell<'_>, measure: Measure) -> Option<Estimate> {
    let result = &row.cell.result;
    let own = if is_bytes(row, measure) { result.bytes_per_s } else { result.ops_per_s };
    rate_on_disk(row, measure).or(own)
}

/// The rate until on disk of writes that returned surely before, which has no interval.
fn rate_on_disk(row: &NamedCell<'_>, measure: Measure) -> Option<Estimate> {
    let returned = row.cell.result.bytes_per_s?;
    let is_asked = measure == Measure::OnDisk && row.op() == Op::Write;
    let mean = metrics::stable_rate(row.cell).filter(|_| is_asked)?;
    (mean < returned.low.unwrap_or(returned.mean)).then_some(Estimate { mean, low: None, high: None })
}

/// The letters behind a rate; they are of the rate that returned.
fn marks_of<'r>(row: &'r NamedCell<'_>, measure: Measure) -> &'r str {
    if rate_on_disk(row, measure).is_some() { "" } else { &row.texts.marks }
}

/// The rate in words with its margin: `2.62 GiB/s ±3%`.
fn rate_text(row: &NamedCell<'_>, measure: Measure) -> [String; 2] {
    let margin = row.texts.margin.clone();
    match rate(row, measure) {
        Some(rate) if measure == Measure::OnDisk => {
            let text = Unit::fit(&Unit::RATES, [rate.mean]).text(rate.mean);
            [text, if rate.low.is_some() { margin } else { String::new() }]
        }
        _ => [row.texts.rate.clone(), margin],
    }
}

/// A series for each direction of each owner, reads first, so that what is compared lies side by side.
fn series(rows: &[&NamedCell<'_>], measure: Measure, length: Length) -> Vec<Series> {
    let labels = labels(rows);
    let highest: Vec<f64> = labels
        .iter()
        .map(|label| {
            let own = rows.iter().filter(|row| row.label == *label);
            own.filter_map(|row| rate(row, measure)).map(|rate| rate.mean).fold(0.0, f64::max)
        })
        .collect();
    let mut kinds = by_key(rows.iter().map(|row| ((row.op(), row.owner.as_str()), *row)));
    kinds.sort_by_key(|((op, _), _)| *op == Op::Write);
    let slots = kinds.len();
    let bars = |(slot, ((op, owner), own)): (usize, &((Op, &str), Vec<&NamedCell<'_>>))| {
        let bar = |row: &&NamedCell<'_>| {
            let place = labels.iter().position(|label| *label == row.label)?;
            let (rate, most) = (rate(row, measure)?, highest[place].max(f64::MIN_POSITIVE));
            let scaled = |value: f64| match length {
                Length::Unit(unit) => unit.scaled(value),
                Length::OfRow => value / most * 100.0,
            };
            let ends = interval(rate, Unit::ONE).map(|(low, high)| (scaled(low), scaled(high)));
            let point = Point { x: scaled(rate.mean), y: place as f64, from: 0.0, interval: ends };
            let [rate, margin] = rate_text(row, measure);
            let words =
                [rate.as_str(), &margin, marks_of(row, measure)].into_iter().filter(|word| !word.is_empty());
            Some((point, words.collect::<Vec<_>>().join(" ")))
        };
        let (points, words) = own.iter().filter_map(bar).unzip();
        let shape = Shape::Bar { slot, slots };
        let name = joined(owner, op.as_str());
        Series { labels: words, ..Series::new(name, shape, points).looking(Some(own[0].whose.look(*op))) }
    };
    kinds.iter().enumerate().map(bars).collect()
}

fn table(rows: &[NamedCell<'_>], measure: Measure) -> Table {
    let row = |row: &NamedCell<'_>| {
        let texts = &row.texts;
        let mut cells = vec![row.name_with_op()];
        cells.extend(rate_text(row, measure));
        let remark = if marks_of(row, measure).is_empty() { String::new() } else { row.remark.clone() };
        cells.extend([texts.p50.clone(), texts.p99.clone(), remark]);
        cells
    };
    Table::new(["", "rate", "±95%", "p50", "p99", "remark"], rows.iter().map(row))
}
