//! One stream, watched by iostat: queue depth and rate over time, with the rows of `iostat -x` as the table, and the latencies. Of
//! several Records a figure for each mode has a line for each of them.

use super::parts::{Group, on_target, shortened, slug, targets_slug};
use super::rows::{NamedCell, bars, by_label, evidence_of_rows, labels, rows};
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::iostat::{COLUMNS, iostat_row};
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Experiment};
use rdsk_report::{MISSING, Unit, mode, plus_minus, significant, verdict_word, which_device};
use rdsk_units::Bytes;

const NS_PER_S: f64 = 1e9;
/// Values of a rate over time; more do not fit on a screen.
const MAX_RATES: usize = 1500;
/// Values of a depth over time. Samples jump between whole numbers, and many of them would fill the drawing.
const MAX_DEPTHS: usize = 300;

/// The figures of one block size in one direction.
fn request(cell: &CellRecord) -> Group {
    let block = cell.workload.block_bytes;
    Group { op: cell.workload.op, slug: format!("-{block}"), of: format!(" of {}", Bytes(block)) }
}

pub(super) fn figures(subject: &Subject<'_, '_>) -> Vec<Figure> {
    let record = subject.analysis;
    let cells = rows(&[*subject], Experiment::Stream, mode);
    let key =
        |cell: &CellRecord| (cell.workload.targets.clone(), cell.workload.op, cell.workload.block_bytes);
    let groups =
        by_key(cells.into_iter().map(|row| (key(row.cell), NamedCell { owner: String::new(), ..row })));
    let of_group = |(_, rows): (_, Vec<NamedCell<'_>>)| {
        let first = rows[0].cell;
        let Group { op, slug, of } = request(first);
        let slug = slug + &targets_slug(record, first);
        let group = Group { op, slug, of: of + &on_target(record, first) };
        let mut figures = vec![depth(&group, &rows), rate(&group, &rows)];
        figures.extend(latency(&group, &rows));
        figures
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The figures of several Records: the rates of all modes, then each mode over time.
pub(super) fn overlay(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let key = |cell: &CellRecord| (cell.workload.op, cell.workload.block_bytes);
    let requests =
        by_key(rows(subjects, Experiment::Stream, mode).into_iter().map(|row| (key(row.cell), row)));
    let of_request = |(_, rows): (_, Vec<NamedCell<'_>>)| {
        let group = request(rows[0].cell);
        let mut figures = vec![means(&group, &rows)];
        figures.extend(latency(&group, &rows));
        // The evidence of the first figure says why a mode ran nowhere.
        let modes = by_label(rows).into_iter();
        for (mode, rows) in modes.filter(|(_, rows)| rows.iter().any(|row| metrics::ran(row.cell))) {
            let slug = format!("{}-{}", group.slug, slug(&mode));
            let group = Group { op: group.op, slug, of: format!("{}, {mode}", group.of) };
            figures.extend([depth(&group, &rows), rate(&group, &rows)]);
        }
        figures
    };
    requests.into_iter().flat_map(of_request).collect()
}

/// The mean rates of all modes, a bar for each Record.
fn means(group: &Group, rows: &[NamedCell<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let ran: Vec<NamedCell<'_>> = rows.iter().filter(|row| metrics::ran(row.cell)).cloned().collect();
    let series = bars(&ran, "mean rate", unit, |row| row.cell.result.bytes_per_s);
    let plot = Plot::new(Axis::from_zero("rate", unit.name), Axis::rows(labels(&ran)), series);
    Figure {
        id: group.id("stream-means"),
        title: format!("Mean rate, {}", group.what()),
        shows: "The rate over the measured time as the program sees it, with its 95% interval. Buffered writes return before the \
                device has them; the table has the rate until stable."
            .into(),
        drawing: Drawing::of(plot, "No stream completed anything."),
        table: rates(rows),
        evidence: evidence_of_rows(rows),
    }
}

fn latency(group: &Group, rows: &[NamedCell<'_>]) -> Option<Figure> {
    percentiles::figure(
        &group.id("stream-latency"),
        &format!("Latency by percentile, {}", group.what()),
        rows,
    )
}

fn depth(group: &Group, rows: &[NamedCell<'_>]) -> Figure {
    let line = |row: &NamedCell<'_>| {
        let device = *metrics::devices(row.cell)?.first()?;
        let width_ns = device.series_width_ns.filter(|&width| width > 0)? as f64;
        Some(over_time(row.name(), (&device.in_flight_series, MAX_DEPTHS), width_ns, 1.0))
    };
    let plot = Plot::new(
        Axis::from_zero("time of I/O, visits one after the other", "s"),
        Axis::from_zero("requests in flight", ""),
        rows.iter().filter_map(line),
    );
    Figure {
        id: group.id("stream-depth"),
        title: format!("Queue depth over time, {}", group.what()),
        shows: format!(
            "Requests in flight at the device, as the kernel counts them, over the time of the I/O{}. The rows below are \
             those of iostat -x over the same time.",
            of_means(&plot)
        ),
        drawing: Drawing::of(plot, "The queue depth of this device was not sampled."),
        table: iostat(rows),
        evidence: evidence_of_rows(rows),
    }
}

fn rate(group: &Group, rows: &[NamedCell<'_>]) -> Figure {
    let line = |row: &NamedCell<'_>| {
        let windows = row.cell.result.windows.as_ref().filter(|windows| windows.width_ns > 0)?;
        let width_ns = windows.width_ns as f64;
        Some(over_time(
            row.name(),
            (&windows.bytes, MAX_RATES),
            width_ns,
            Unit::MIB_PER_S.of(NS_PER_S / width_ns),
        ))
    };
    let plot = Plot::new(
        Axis::from_zero("time of I/O, visits one after the other", "s"),
        Axis::from_zero("rate", Unit::MIB_PER_S.name),
        rows.iter().filter_map(line),
    );
    Figure {
        id: group.id("stream-rate"),
        title: format!("Rate over time, {}", group.what()),
        shows: format!(
            "Bytes completed in each window of time, as the program sees them{}.",
            of_means(&plot)
        ),
        drawing: Drawing::of(
            plot,
            "The Record has no rate by time: it was saved with --json-compact, or nothing completed.",
        ),
        table: rates(rows),
        evidence: evidence_of_rows(rows),
    }
}

/// One value per sample, each at its end; several samples together where there are very many.
fn over_time(name: String, (values, most): (&[u64], usize), width_ns: f64, factor: f64) -> Series {
    let (values, each) = shortened(values, most);
    let width_s = width_ns * each as f64 / NS_PER_S;
    let points =
        (1_u32..).zip(values).map(|(index, value)| Point::at(f64::from(index) * width_s, value * factor));
    Series::new(name, Shape::Line, points.collect())
}

/// ` (each value is the mean of 20 ms)`, by the width of the first series.
fn of_means(plot: &Plot) -> String {
    let widths = plot.series.iter().filter_map(|series| Some(series.points.first()?.x));
    let widest = widths.fold(0.0, f64::max);
    if widest == 0.0 {
        return String::new();
    }
    format!(", a value for each {} ms at most", significant(widest * 1e3))
}

/// The rows of `iostat -x`; columns that are 0 in every row are left out.
fn iostat(cells: &[NamedCell<'_>]) -> Table {
    let row = |row: &NamedCell<'_>| Some((row.name(), iostat_row(metrics::devices(row.cell)?.first()?)?));
    let rows: Vec<_> = cells.iter().filter_map(row).collect();
    let shown: Vec<_> =
        COLUMNS.iter().filter(|(_, figure)| rows.iter().any(|(_, row)| figure(row) != 0.0)).collect();
    let heads = std::iter::once("iostat -x").chain(shown.iter().map(|(name, _)| *name));
    Table {
        heads: heads.map(String::from).collect(),
        rows: rows
            .iter()
            .map(|(name, row)| {
                std::iter::once(name.clone())
                    .chain(shown.iter().map(|(_, figure)| significant(figure(row))))
                    .collect()
            })
            .collect(),
        left_out: if rows.is_empty() {
            "There are no device counters, so there is no row of iostat.".into()
        } else {
            let names = distinct(cells.iter().filter_map(|row| which_device(row.cell)));
            let of_one = names.into_iter().map(|name| format!(" The row is {name}."));
            format!("Columns that are 0 in every row are left out.{}", of_one.collect::<String>())
        },
        is_open: true,
    }
}

fn rates(rows: &[NamedCell<'_>]) -> Table {
    let row = |row: &NamedCell<'_>| {
        let cell = row.cell;
        let rate = cell.result.bytes_per_s;
        let stable = metrics::stable_rate(cell);
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean);
        vec![
            row.name(),
            rate.map_or_else(|| MISSING.into(), |rate| Unit::MIB_PER_S.figure(rate.mean)),
            plus_minus(rate),
            Unit::MIB_PER_S.figure_or_missing(stable),
            Unit::MICROSECONDS.figure_or_missing(mean_ns),
            verdict_word(cell),
        ]
    };
    let heads = ["", "rate, MiB/s", "±95%", "until stable, MiB/s", "mean latency, µs", "verdict"];
    Table::new(heads, rows.iter().map(row))
}
