//! One stream, watched by iostat: queue depth and rate over time, with the rows of `iostat -x` as the table, and the latencies.

use super::parts::{evidence, groups, on_target, shortened, targets_slug};
use super::percentiles;
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::iostat::{COLUMNS, iostat_row};
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Experiment, Record};
use rdsk_report::words::{mode, plus_minus, verdict_word};
use rdsk_report::{MISSING, Unit, significant};
use rdsk_units::Bytes;

const NS_PER_S: f64 = 1e9;

pub(super) fn figures(record: &Record) -> Vec<Figure> {
    let key =
        |cell: &CellRecord| (cell.workload.targets.clone(), cell.workload.op, cell.workload.block_bytes);
    let groups = groups(record, Experiment::Stream, key);
    groups.iter().flat_map(|(_, cells)| of_group(record, cells)).collect()
}

fn of_group(record: &Record, cells: &[&CellRecord]) -> Vec<Figure> {
    let Some(first) = cells.first() else { return Vec::new() };
    let (op, block) = (first.workload.op, first.workload.block_bytes);
    let what = format!("{op}s of {}{}", Bytes(block), on_target(record, first));
    let id = |name: &str| format!("stream-{name}-{op}-{block}{}", targets_slug(record, first));
    let named = cells.iter().map(|cell| (mode(cell), *cell));
    let mut figures = vec![depth(id("depth"), &what, cells), rate(id("rate"), &what, cells)];
    figures.extend(percentiles::figure(&id("latency"), &format!("Latency by percentile, {what}"), named));
    figures
}

fn depth(id: String, what: &str, cells: &[&CellRecord]) -> Figure {
    let line = |cell: &&CellRecord| {
        let device = *metrics::devices(cell)?.first()?;
        let width_ns = device.series_width_ns.filter(|&width| width > 0)? as f64;
        Some(over_time(mode(cell), &device.in_flight_series, width_ns, 1.0))
    };
    let plot = Plot {
        x: Axis::from_zero("time of I/O, visits one after the other", "s"),
        y: Axis::from_zero("requests in flight", ""),
        series: cells.iter().filter_map(line).filter(|series| !series.points.is_empty()).collect(),
    };
    Figure {
        id,
        title: format!("Queue depth over time, {what}"),
        shows: format!(
            "Requests in flight at the device, as the kernel counts them, over the time of the I/O{}. The table has the \
             columns of iostat -x over the same time.",
            of_means(&plot)
        ),
        drawing: Drawing::of(plot, "The queue depth of this device was not sampled."),
        table: iostat(cells),
        evidence: evidence(cells.iter().copied(), mode),
    }
}

fn rate(id: String, what: &str, cells: &[&CellRecord]) -> Figure {
    let line = |cell: &&CellRecord| {
        let windows = cell.result.windows.as_ref().filter(|windows| windows.width_ns > 0)?;
        let width_ns = windows.width_ns as f64;
        Some(over_time(mode(cell), &windows.bytes, width_ns, Unit::MIB_PER_S.of(NS_PER_S / width_ns)))
    };
    let plot = Plot {
        x: Axis::from_zero("time of I/O, visits one after the other", "s"),
        y: Axis::from_zero("rate", Unit::MIB_PER_S.name),
        series: cells.iter().filter_map(line).filter(|series| !series.points.is_empty()).collect(),
    };
    Figure {
        id,
        title: format!("Rate over time, {what}"),
        shows: format!(
            "Bytes completed in each window of time, as the program sees them{}.",
            of_means(&plot)
        ),
        drawing: Drawing::of(
            plot,
            "The Record has no rate by time: it was saved with --json-compact, or nothing completed.",
        ),
        table: rates(cells),
        evidence: evidence(cells.iter().copied(), mode),
    }
}

/// One value per sample, each at its end; several samples together where there are very many.
fn over_time(name: String, values: &[u64], width_ns: f64, factor: f64) -> Series {
    let (values, each) = shortened(values);
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
fn iostat(cells: &[&CellRecord]) -> Table {
    let row = |cell: &&CellRecord| Some((mode(cell), iostat_row(metrics::devices(cell)?.first()?)?));
    let rows: Vec<_> = cells.iter().filter_map(row).collect();
    let shown: Vec<_> =
        COLUMNS.iter().filter(|(_, figure)| rows.iter().any(|(_, row)| figure(row) != 0.0)).collect();
    let heads = std::iter::once("iostat -x").chain(shown.iter().map(|(name, _)| *name));
    Table {
        heads: heads.map(String::from).collect(),
        rows: rows
            .iter()
            .map(|(mode, row)| {
                std::iter::once(mode.clone())
                    .chain(shown.iter().map(|(_, figure)| significant(figure(row))))
                    .collect()
            })
            .collect(),
        left_out: if rows.is_empty() {
            "There are no device counters, so there is no row of iostat.".into()
        } else {
            "Columns that are 0 in every row are left out.".into()
        },
    }
}

fn rates(cells: &[&CellRecord]) -> Table {
    let row = |cell: &&CellRecord| {
        let rate = cell.result.bytes_per_s;
        let stable = metrics::stable_rate(cell);
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean);
        vec![
            mode(cell),
            rate.map_or_else(|| MISSING.into(), |rate| Unit::MIB_PER_S.figure(rate.mean)),
            plus_minus(rate),
            Unit::MIB_PER_S.figure_or_missing(stable),
            Unit::MICROSECONDS.figure_or_missing(mean_ns),
            verdict_word(cell),
        ]
    };
    let heads = ["", "rate, MiB/s", "±95 %", "until stable, MiB/s", "mean latency, µs", "verdict"];
    Table {
        heads: heads.map(String::from).to_vec(),
        rows: cells.iter().map(row).collect(),
        ..Table::default()
    }
}
