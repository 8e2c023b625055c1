//! The headline: bandwidth as bars, I/Os per second on a logarithmic axis, and the latencies behind them, of one or several
//! Records.

use super::parts::with_unit;
use super::rows::{NamedCell, bars, evidence_of_rows, labels, of_owners, rows};
use super::{Subject, percentiles};
use crate::figure::{Axis, Drawing, Figure, Plot, Shape, Table};
use rdsk_analysis::metrics;
use rdsk_model::{Estimate, Experiment};
use rdsk_report::{MISSING, Unit, headline_row, is_bandwidth, plus_minus, significant, verdict_word};

/// What the series of a single Record is called.
const MEAN: &str = "mean rate";

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let mut rows = rows(subjects, Experiment::Headline, headline_row);
    rows.retain(|row| metrics::ran(row.cell));
    let (bandwidth, rates): (Vec<NamedCell<'_>>, Vec<NamedCell<'_>>) =
        rows.into_iter().partition(|row| is_bandwidth(row.cell));
    let mut figures = Vec::new();
    if !bandwidth.is_empty() {
        figures.push(means(&bandwidth));
    }
    if !rates.is_empty() {
        figures.push(marks(&rates));
        figures.extend(percentiles::figure("headline-latency", "Latency by percentile", &rates));
    }
    figures
}

fn means(rows: &[NamedCell<'_>]) -> Figure {
    let unit = Unit::MIB_PER_S;
    let of = |row: &NamedCell<'_>| row.cell.result.bytes_per_s;
    let series = bars(rows, MEAN, unit, of);
    let plot = Plot::new(Axis::from_zero("bandwidth", unit.name), Axis::rows(labels(rows)), series);
    Figure {
        id: "headline-bandwidth".into(),
        title: "Bandwidth".into(),
        shows: "Sequential I/O: each bar is the mean rate over the measured time, the line on it its 95% interval. \
                A figure that is not the device's has its verdict in the table."
            .into(),
        drawing: Drawing::of(plot, "No sequential I/O completed."),
        table: table(rows, unit, "bandwidth", of),
        evidence: evidence_of_rows(rows),
    }
}

fn marks(rows: &[NamedCell<'_>]) -> Figure {
    let of = |row: &NamedCell<'_>| row.cell.result.ops_per_s;
    let series = of_owners(rows, MEAN, Unit::ONE, of, |_| Shape::Mark);
    let plot = Plot::new(Axis::log("I/Os per second", ""), Axis::rows(labels(rows)), series);
    Figure {
        id: "headline-iops".into(),
        title: "I/Os per second".into(),
        shows: "Random and durable I/O: each mark is the mean rate, the line through it its 95% interval. The axis is \
                logarithmic, because the rates differ by powers of ten."
            .into(),
        drawing: Drawing::of(plot, "No random or durable I/O completed."),
        table: table(rows, Unit::ONE, "I/Os per second", of),
        evidence: evidence_of_rows(rows),
    }
}

fn table(
    rows: &[NamedCell<'_>],
    unit: Unit,
    what: &str,
    of: impl Fn(&NamedCell<'_>) -> Option<Estimate>,
) -> Table {
    let percentile = |ns: Option<u64>| with_unit(Unit::MICROSECONDS, ns.map(|ns| ns as f64));
    let row = |row: &NamedCell<'_>| {
        let estimate = of(row);
        let latency = row.cell.result.latency_ns.as_ref();
        let mean = estimate.map_or_else(|| MISSING.into(), |one| significant(unit.of(one.mean)));
        vec![
            row.name(),
            mean,
            plus_minus(estimate),
            percentile(latency.and_then(|latency| latency.p50)),
            percentile(latency.and_then(|latency| latency.p99)),
            verdict_word(row.cell),
        ]
    };
    let what = if unit.name.is_empty() { what.to_owned() } else { format!("{what}, {}", unit.name) };
    Table::new(["", &what, "±95%", "p50", "p99", "verdict"], rows.iter().map(row))
}
