//! Latencies by percentile, with an axis that gives every further nine the same room. A percentile without ten I/Os above it is
//! not drawn.

use super::rows::{NamedCell, evidence_of_rows, looks};
use crate::figure::{Axis, Drawing, Figure, Plot, Point, Scale, Series, Shape, Table, Tick};
use rdsk_model::Latency;
use rdsk_report::{MISSING, Unit};
use rdsk_stats::Histogram;

/// The shares at which a line has a value.
const SHARES: [f64; 22] = [
    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998,
    0.9999, 0.99995, 0.99998, 0.99999,
];
/// The labels of the axis.
const LABELS: [(f64, &str); 7] = [
    (0.1, "10%"),
    (0.5, "50%"),
    (0.9, "90%"),
    (0.99, "99%"),
    (0.999, "99.9%"),
    (0.9999, "99.99%"),
    (0.999_99, "99.999%"),
];

/// Latencies of cells by percentile; `None` where none was recorded.
pub(super) fn figure(id: &str, title: &str, rows: &[NamedCell<'_>]) -> Option<Figure> {
    let has_latency = |row: &&NamedCell<'_>| row.cell.result.latency_ns.is_some();
    let rows: Vec<NamedCell<'_>> = rows.iter().filter(has_latency).cloned().collect();
    let latencies =
        || rows.iter().filter_map(|row| Some((row.name_with_op(), row.cell.result.latency_ns.as_ref()?)));
    let lines: Vec<(String, Vec<(f64, f64)>)> =
        latencies().map(|(name, latency)| (name, values(latency))).collect();
    let quantiles = || lines.iter().flat_map(|(_, values)| values);
    let times: Vec<f64> = quantiles().map(|&(_, ns)| ns).collect();
    let unit = Unit::fit(&Unit::TIMES, rdsk_stats::median(&times));
    let deepest = quantiles().map(|&(share, _)| share).fold(0.0, f64::max);
    if deepest == 0.0 {
        return None;
    }
    let ticks = LABELS.iter().filter(|(share, _)| *share <= deepest);
    let ticks = ticks.map(|&(share, label)| Tick { at: rarity(share), label: label.into() }).collect();
    let looks = looks(&rows.iter().collect::<Vec<_>>());
    let series = lines.iter().zip(looks).map(|((name, values), look)| {
        let points = values.iter().map(|&(share, ns)| Point::at(rarity(share), unit.scaled(ns))).collect();
        Series::new(name.as_str(), Shape::Line, points).looking(look)
    });
    let plot = Plot::new(
        Axis { scale: Scale::Share, ..Axis::log("share of I/Os that are as fast", "") }.with_ticks(ticks),
        Axis::log("latency", unit.name),
        series,
    );
    Some(Figure {
        id: id.into(),
        title: title.into(),
        shows: "How long I/Os took: at 99%, all but the slowest hundredth were done. Every step to the right leaves out a tenth \
                of the rest; a line ends where fewer than ten I/Os were slower. Both axes are logarithmic."
            .into(),
        drawing: Drawing::Plot(plot),
        table: table(latencies(), unit),
        evidence: evidence_of_rows(&rows),
    })
}

/// The place of a share on the axis: one in how many I/Os is slower.
fn rarity(share: f64) -> f64 {
    // Rounded, so that a value at a label stands exactly there.
    (1e6 / (1.0 - share)).round() / 1e6
}

/// Latency in ns at each share that has enough samples; from the histogram, or the percentiles of a compact Record.
fn values(latency: &Latency) -> Vec<(f64, f64)> {
    let histogram = latency.histogram.as_deref().and_then(|text| Histogram::from_base64(text).ok());
    let value = |share: f64| match &histogram {
        Some(histogram) => histogram.quantile(share),
        None => match share {
            0.5 => latency.p50,
            0.9 => latency.p90,
            0.99 => latency.p99,
            0.999 => latency.p999,
            0.9999 => latency.p9999,
            _ => None,
        },
    };
    SHARES.iter().filter_map(|&share| Some((share, value(share)? as f64))).collect()
}

fn table<'a>(latencies: impl Iterator<Item = (String, &'a Latency)>, unit: Unit) -> Table {
    let figure = |ns: Option<u64>| ns.map_or_else(|| MISSING.into(), |ns| unit.figure(ns as f64));
    let row = |(name, latency): (String, &Latency)| {
        let percentiles = [latency.p50, latency.p90, latency.p99, latency.p999, latency.p9999, latency.max];
        let mut row = vec![name, rdsk_units::grouped(latency.count)];
        row.extend(percentiles.map(figure));
        row
    };
    let heads = ["", "I/Os", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    let heads = heads
        .iter()
        .enumerate()
        .map(|(index, head)| if index < 2 { (*head).to_owned() } else { format!("{head}, {}", unit.name) });
    Table::new(heads, latencies.map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_analysis::fixtures;

    #[test]
    fn a_line_has_the_percentiles_of_its_histogram_and_no_more() {
        let mut histogram = Histogram::new();
        (1..=2000_u64).for_each(|ns| histogram.record(ns * 1000));
        let latency = Latency::from(&histogram);
        let seen = values(&latency);
        assert_eq!(seen.last().map(|&(share, _)| share), Some(0.995), "2000 I/Os have ten above this");
        for (share, ns) in &seen {
            assert_eq!(Some(*ns), histogram.quantile(*share).map(|ns| ns as f64));
        }
        let compact = Latency { histogram: None, ..latency.clone() };
        assert_eq!(values(&compact).len(), 3, "p50, p90 and p99");
        assert_eq!(values(&compact)[0].1, latency.p50.unwrap() as f64);
    }

    #[test]
    fn cells_without_latencies_make_no_figure() {
        let record = fixtures::run();
        let mut cell = record.cells[0].clone();
        cell.result.latency_ns = None;
        let analysis = rdsk_analysis::Analysis::of(&record);
        let subjects = [super::super::Subject { name: "", analysis: &analysis }];
        let mut row = super::super::rows::rows(&subjects, cell.experiment, |_| "one".into()).remove(0);
        assert!(figure("x", "x", std::slice::from_ref(&row)).is_some());
        row.cell = &cell;
        assert!(figure("x", "x", &[row]).is_none());
    }
}
