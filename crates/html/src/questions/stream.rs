//! One stream, watched by iostat: the rate of each mode, then rate and queue depth over time, with the rows of `iostat -x` as a table,
//! and the latencies. Of several Records a figure over time for each mode has a line for each of them.

use super::parts::{Group, on_target, slug, targets_slug};
use super::rates::{self, Measure};
use super::rows::{NamedCell, evidence_of_rows, looks, rows};
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Series, Shape, Table};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::iostat::{COLUMNS, iostat_row};
use rdsk_analysis::metrics;
use rdsk_model::{CellRecord, Experiment};
use rdsk_report::{MISSING, Unit, mode, significant, which_device};
use rdsk_stats::median;
use rdsk_units::Bytes;

const NS_PER_S: f64 = 1e9;
/// A value over time stands for this long at least: the requests of a shorter time come in bursts, which no disk has as its rate.
const WINDOW_NS: u64 = 50_000_000;
/// Places of a line over time: of more windows each place has as many, with their median and their range.
const MAX_PLACES: usize = 150;

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let rows = rows(subjects, Experiment::Stream, mode);
    let sizes = distinct(rows.iter().map(|row| row.cell.workload.block_bytes));
    let with_size = |row: &NamedCell<'_>| match sizes.len() {
        0 | 1 => row.label.clone(),
        _ => format!("{} {}", row.label, Bytes(row.cell.workload.block_bytes)),
    };
    let sized: Vec<NamedCell<'_>> =
        rows.iter().map(|row| NamedCell { label: with_size(row), ..row.clone() }).collect();
    let shows = "One stream on each path; writes until they are on disk.";
    let means = rates::figure(("stream-rates", "Rate of one stream", shows), &sized, Measure::OnDisk);
    let mut figures: Vec<Figure> = means.into_iter().collect();
    for (group, rows) in groups(subjects, rows) {
        figures.extend([rate(&group, &rows), depth(&group, &rows)]);
    }
    figures.extend(percentiles::figure("stream-latency", "Latency by percentile", &sized));
    figures
}

/// What has figures over time of its own: each direction, block size and target, and of several Records each mode.
fn groups<'a>(subjects: &[Subject<'_, '_>], rows: Vec<NamedCell<'a>>) -> Vec<(Group, Vec<NamedCell<'a>>)> {
    let key = |row: &NamedCell<'_>| {
        let workload = &row.cell.workload;
        let (targets, mode) = if subjects.len() > 1 {
            (Vec::new(), row.label.clone())
        } else {
            (workload.targets.clone(), String::new())
        };
        (workload.op, workload.block_bytes, targets, mode)
    };
    let named = |((op, block, _, mode), rows): ((_, u64, _, String), Vec<NamedCell<'a>>)| {
        let (mut end, mut what) = (format!("-{op}-{block}"), format!("{op}s of {}", Bytes(block)));
        if mode.is_empty() {
            end += &targets_slug(subjects[0].analysis, rows[0].cell);
            what += &on_target(subjects[0].analysis, rows[0].cell);
        } else {
            end += &format!("-{}", slug(&mode));
            what += &format!(", {mode}");
        }
        (Group { slug: end, title_end: what }, rows)
    };
    // The first figure and its evidence say why a mode ran nowhere.
    let has_run = |(_, rows): &(_, Vec<NamedCell<'_>>)| rows.iter().any(|row| metrics::ran(row.cell));
    by_key(rows.into_iter().map(|row| (key(&row), row))).into_iter().map(named).filter(has_run).collect()
}

fn depth(group: &Group, rows: &[NamedCell<'_>]) -> Figure {
    let plot = over_time(rows, Axis::from_zero("requests in flight", ""), |cell| {
        let device = *metrics::devices(cell)?.first()?;
        let values: Vec<f64> = device.in_flight_series.iter().map(|&count| count as f64).collect();
        let width_ns = device.series_width_ns?;
        // A sample is of an instant: those of a window are its values.
        let each = in_window(width_ns).max(values.len().div_ceil(MAX_PLACES));
        Some(course(&values, each, width_ns))
    });
    Figure {
        id: group.id("stream-depth"),
        title: format!("Queue depth over time, {}", group.title_end),
        shows: format!(
            "Requests in flight at the device, as the kernel counts them: the line is the median of each window, the band its \
             range{}. The table has the rows of iostat -x over the same time.",
            width_in_words(&plot)
        ),
        drawing: Drawing::of(plot, "The queue depth of this device was not sampled."),
        table: iostat(rows),
        evidence: evidence_of_rows(rows),
    }
}

fn rate(group: &Group, rows: &[NamedCell<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let plot = over_time(rows, Axis::from_zero("rate", unit.name), |cell| {
        let windows = cell.result.windows.as_ref()?;
        let (rates, width_ns) = window_rates(&windows.bytes, windows.width_ns)?;
        let rates: Vec<f64> = rates.into_iter().map(|rate| unit.scaled(rate)).collect();
        Some(course(&rates, rates.len().div_ceil(MAX_PLACES).max(1), width_ns))
    });
    Figure {
        id: group.id("stream-rate"),
        title: format!("Rate over time, {}", group.title_end),
        shows: format!(
            "Bytes completed over the time of the I/O, in windows of 50 ms at least: the line is their median, the band their \
             range{}.",
            width_in_words(&plot)
        ),
        drawing: Drawing::of(
            plot,
            "The result has no rate by time: it was saved with --json-compact, or the I/O took less than 50 ms.",
        ),
        table: rates_table(rows),
        evidence: evidence_of_rows(rows),
    }
}

/// A line over the time of the I/O for each cell that has values.
fn over_time(rows: &[NamedCell<'_>], y: Axis, points: impl Fn(&CellRecord) -> Option<Vec<Point>>) -> Plot {
    let looks = looks(&rows.iter().collect::<Vec<_>>());
    let line = |(row, look): (&NamedCell<'_>, _)| {
        Some(Series::new(row.name(), Shape::Course, points(row.cell)?).looking(look))
    };
    let series = rows.iter().zip(looks).filter_map(line);
    Plot::new(Axis::from_zero("time of I/O, repeats one after the other", "s"), y, series)
}

/// The rates of windows of [`WINDOW_NS`] at least, in bytes per second, and the width of each: whole windows only, since a shorter last
/// one would scatter more than the others. `None` where there is no whole one.
///
/// Of windows of 3 ms, 17 are one of 51 ms.
fn window_rates(bytes: &[u64], width_ns: u64) -> Option<(Vec<f64>, u64)> {
    let each = in_window(width_ns);
    let wide_ns = width_ns * each as u64;
    let rate = |window: &[u64]| window.iter().sum::<u64>() as f64 * NS_PER_S / wide_ns as f64;
    let rates: Vec<f64> = bytes.chunks_exact(each).map(rate).collect();
    (!rates.is_empty() && width_ns > 0).then_some((rates, wide_ns))
}

/// How many values of a width make a window of [`WINDOW_NS`] at least.
fn in_window(width_ns: u64) -> usize {
    usize::try_from(WINDOW_NS.div_ceil(width_ns.max(1))).unwrap_or(usize::MAX).max(1)
}

/// The median and the range of each so many values, at the end of their time; a last part of fewer is left out.
fn course(values: &[f64], each: usize, width_ns: u64) -> Vec<Point> {
    let width_s = width_ns as f64 * each as f64 / NS_PER_S;
    let place = |(index, part): (u32, &[f64])| {
        let low = part.iter().copied().fold(f64::INFINITY, f64::min);
        let high = part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = Point::at(f64::from(index) * width_s, median(part)?);
        Some(Point { interval: Some((low, high)), ..middle })
    };
    (1_u32..).zip(values.chunks_exact(each.max(1))).filter_map(place).collect()
}

/// `, of 400 ms or less`, by the first value of each line.
fn width_in_words(plot: &Plot) -> String {
    let widths = plot.series.iter().filter_map(|series| Some(series.points.first()?.x));
    match widths.fold(0.0, f64::max) {
        0.0 => String::new(),
        widest => format!("; each value is of {} ms or less", significant(widest * 1e3)),
    }
}

/// The rows of `iostat -x`; columns that are 0 in every row are left out.
fn iostat(cells: &[NamedCell<'_>]) -> Table {
    let row = |row: &NamedCell<'_>| Some((row.name(), iostat_row(metrics::devices(row.cell)?.first()?)?));
    let rows: Vec<_> = cells.iter().filter_map(row).collect();
    let shown: Vec<_> =
        COLUMNS.iter().filter(|(_, figure)| rows.iter().any(|(_, row)| figure(row) != 0.0)).collect();
    let heads = std::iter::once("iostat -x").chain(shown.iter().map(|(name, _)| *name));
    let figures = rows.iter().map(|(name, row)| {
        std::iter::once(name.clone())
            .chain(shown.iter().map(|(_, figure)| significant(figure(row))))
            .collect()
    });
    let left_out = if rows.is_empty() {
        "There are no device counters, so there is no row of iostat.".into()
    } else {
        let names = distinct(cells.iter().filter_map(|row| which_device(row.cell)));
        let of_device = names.into_iter().map(|name| format!(" The row is {name}."));
        format!("Columns that are 0 in every row are left out.{}", of_device.collect::<String>())
    };
    Table { left_out, ..Table::new(heads, figures) }
}

fn rates_table(rows: &[NamedCell<'_>]) -> Table {
    let row = |row: &NamedCell<'_>| {
        let cell = row.cell;
        let rate = cell.result.bytes_per_s;
        let mean_ns = cell.result.latency_ns.as_ref().and_then(|latency| latency.mean);
        vec![
            row.name(),
            rate.map_or_else(|| MISSING.into(), |rate| Unit::MIB_PER_S.figure(rate.mean)),
            row.texts.margin.clone(),
            Unit::MIB_PER_S.figure_or_missing(metrics::stable_rate(cell)),
            Unit::MICROSECONDS.figure_or_missing(mean_ns),
            row.remark.clone(),
        ]
    };
    let heads = ["", "rate, MiB/s", "±95%", "until on disk, MiB/s", "mean latency, µs", "remark"];
    Table::new(heads, rows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_50_ms_at_least_and_keep_every_byte() {
        // 340 windows of 3 ms: 20 of 51 ms.
        let bytes: Vec<u64> = (0..340).map(|index| if index % 17 == 0 { 51_000 } else { 0 }).collect();
        let (rates, width_ns) = window_rates(&bytes, 3_000_000).unwrap();
        assert_eq!((rates.len(), width_ns), (20, 51_000_000));
        assert!(rates.iter().all(|rate| (rate - 1e6).abs() < 1e-6), "no spikes: {rates:?}");
        let (wide, width_ns) = window_rates(&[7, 9], 100_000_000).unwrap();
        assert_eq!((wide, width_ns), (vec![70.0, 90.0], 100_000_000));
        assert_eq!(window_rates(&[1, 2], 3_000_000), None, "6 ms are no window");
        assert_eq!(window_rates(&[], 3_000_000), None);
    }

    #[test]
    fn a_place_has_the_median_and_the_range_of_its_windows() {
        let points = course(&[1.0, 9.0, 2.0, 4.0, 4.0, 5.0, 8.0], 3, 50_000_000);
        let expected = [(0.15, 2.0, (1.0, 9.0)), (0.3, 4.0, (4.0, 5.0))];
        assert_eq!(points.len(), 2, "the last part is none");
        for (point, (x, y, range)) in points.iter().zip(expected) {
            assert!((point.x - x).abs() < 1e-9, "{point:?}");
            assert_eq!((point.y, point.interval), (y, Some(range)));
        }
    }
}
