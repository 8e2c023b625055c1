//! What the number of I/Os in flight and the block size change: IOPS or bandwidth with the median latency, as fio-plot draws them, of
//! one result or of several that each measured a part.

use super::parts::size_ticks;
use super::rows::{NamedCell, evidence_of_rows};
use crate::figure::{Axis, Drawing, Figure, Look, Plot, Point, Series, Shape, Table, Tick};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::metrics;
use rdsk_model::{Op, Pattern, Sync, Workload};
use rdsk_report::Unit;
use rdsk_units::Bytes;

/// What is changed from value to value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// I/Os in flight: queue depth × streams.
    Depth,
    BlockSize,
}

/// Cells that differ in nothing else are of one figure: the pattern, whether each write is synced, and the size or the depth.
type Constant = (Pattern, Sync, u64);

impl Over {
    fn value(self, workload: &Workload) -> u64 {
        match self {
            Self::Depth => metrics::wanted_depth(workload),
            Self::BlockSize => workload.block_bytes,
        }
    }

    fn constant(self, workload: &Workload) -> Constant {
        let other = if self == Self::Depth { Self::BlockSize } else { Self::Depth };
        (workload.pattern, workload.sync, other.value(workload))
    }

    /// `random 4 KiB`, `random, 8 in flight`.
    fn constant_in_words(self, (pattern, sync, other): Constant) -> String {
        let synced = if sync == Sync::None { "" } else { ", each synced" };
        match self {
            Self::Depth => format!("{pattern} {}{synced}", Bytes(other)),
            Self::BlockSize => format!("{pattern}{synced}, {other} in flight"),
        }
    }

    fn word(self) -> &'static str {
        if self == Self::Depth { "depth" } else { "size" }
    }

    /// I/Os per second say what depth gains, bytes per second what larger blocks do.
    fn rate(self, row: &NamedCell<'_>) -> Option<f64> {
        let result = &row.cell.result;
        let estimate = if self == Self::Depth { result.ops_per_s } else { result.bytes_per_s };
        estimate.map(|estimate| estimate.mean)
    }
}

/// The figures of those cells that were measured at two depths or sizes at least.
pub(super) fn figures(id: &str, rows: &[NamedCell<'_>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for over in [Over::Depth, Over::BlockSize] {
        let is_known = |row: &&NamedCell<'_>| over.value(&row.cell.workload) > 0 && over.rate(row).is_some();
        let alike = by_key(rows.iter().filter(is_known).map(|row| (over.constant(&row.cell.workload), row)));
        for (constant, own) in alike {
            let values = distinct(own.iter().map(|row| over.value(&row.cell.workload)));
            if values.len() > 1 {
                figures.push(figure(id, over, constant, own));
            }
        }
    }
    figures
}

fn figure(id: &str, over: Over, constant: Constant, mut rows: Vec<&NamedCell<'_>>) -> Figure {
    rows.sort_by_key(|row| over.value(&row.cell.workload));
    let p50 = |row: &NamedCell<'_>| Some(row.cell.result.latency_ns.as_ref()?.p50? as f64);
    let unit = match over {
        Over::Depth => Unit::IOPS,
        Over::BlockSize => {
            Unit::fit(&Unit::RATES, rows.iter().filter_map(|row| over.rate(row)).reduce(f64::max))
        }
    };
    let times: Vec<f64> = rows.iter().filter_map(|row| p50(row)).collect();
    let time = Unit::fit(&Unit::TIMES, rdsk_stats::median(&times));
    let along = values_axis(over, &rows);
    let plot = Plot::new(
        along,
        Axis::from_zero(if over == Over::Depth { "I/Os per second" } else { "rate" }, unit.name),
        lines(over, &rows, &|row| Some(unit.scaled(over.rate(row)?)), &|row| Some(time.scaled(p50(row)?))),
    );
    let what = if over == Over::Depth {
        "IOPS and latency over queue depth"
    } else {
        "Rate and latency over block size"
    };
    let (pattern, ..) = constant;
    let (_, sync, other) = constant;
    let owned: Vec<NamedCell<'_>> = rows.iter().map(|row| (*row).clone()).collect();
    Figure {
        id: format!("{id}-{}-{pattern}-{other}{}", over.word(), if sync == Sync::None { "" } else { "-sync" }),
        title: format!("{what}, {}", over.constant_in_words(constant)),
        shows: "Solid lines are rates, on the left; dotted ones the median latency (p50), on the right. I/Os in flight are queue \
                depth times jobs or streams, as they were asked for."
            .into(),
        drawing: Drawing::Plot(plot.with_right(Axis::from_zero("p50 latency", time.name))),
        table: table(&rows),
        evidence: evidence_of_rows(&owned),
    }
}

fn values_axis(over: Over, rows: &[&NamedCell<'_>]) -> Axis {
    let values = distinct(rows.iter().map(|row| over.value(&row.cell.workload)));
    match over {
        Over::BlockSize => Axis::log("block size", "").with_ticks(size_ticks(values)),
        Over::Depth => {
            let tick = |depth: u64| Tick { at: depth as f64, label: depth.to_string() };
            Axis::log("I/Os in flight", "").with_ticks(values.into_iter().map(tick).collect())
        }
    }
}

/// What gives a cell's height in a plot.
type Height<'h> = &'h dyn Fn(&NamedCell<'_>) -> Option<f64>;

/// Two lines for each direction of each owner; of results that have one value each, one through all of them.
fn lines(over: Over, rows: &[&NamedCell<'_>], rate: Height<'_>, latency: Height<'_>) -> Vec<Series> {
    let own_values = |row: &NamedCell<'_>| {
        let own = rows.iter().filter(|other| (&other.owner, other.op()) == (&row.owner, row.op()));
        distinct(own.map(|other| over.value(&other.cell.workload))).len()
    };
    let is_joined = rows.iter().all(|row| own_values(row) < 2);
    let owner = |row: &NamedCell<'_>| if is_joined { String::new() } else { row.owner.clone() };
    let kinds = by_key(rows.iter().map(|row| ((owner(row), row.op()), *row)));
    let of_kind = |((owner, op), own): ((String, Op), Vec<&NamedCell<'_>>)| {
        let look = if is_joined {
            Look { color: usize::from(op == Op::Write), style: 0 }
        } else {
            own[0].whose.look(op)
        };
        let name = super::parts::joined(&owner, op.as_str());
        let line = |height: Height<'_>, what: &str, style: usize| {
            let point =
                |row: &&NamedCell<'_>| Some(Point::at(over.value(&row.cell.workload) as f64, height(row)?));
            let points = own.iter().filter_map(point).collect();
            let look = Look { style: look.style + style, ..look };
            Series {
                is_right: style > 0,
                ..Series::new(format!("{name} {what}"), Shape::Line, points).looking(Some(look))
            }
        };
        [line(rate, "rate", 0), line(latency, "latency", 2)]
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

fn table(rows: &[&NamedCell<'_>]) -> Table {
    let row = |row: &&NamedCell<'_>| {
        let workload = &row.cell.workload;
        let texts = &row.texts;
        let mut cells = vec![row.name_with_op(), Bytes(workload.block_bytes).to_string()];
        cells.extend([workload.queue_depth.to_string(), workload.streams.to_string()]);
        cells.extend([texts.rate.clone(), texts.margin.clone(), texts.p50.clone(), texts.p99.clone()]);
        cells.push(row.remark.clone());
        cells
    };
    let heads = ["", "block size", "queue depth", "jobs or streams", "rate", "±95%", "p50", "p99", "remark"];
    Table::new(heads, rows.iter().map(row))
}
