//! Cells that have a figure in the baseline and none in the other run: a disk that became so slow that too few I/Os were left for a
//! percentile, a cell that failed or was not measured. It judges nothing.

use crate::compared::RunPair;
use crate::figure::{Metric, figure};
use crate::matching::is_alike;
use rdsk_analysis::words::plural;
use rdsk_model::CellRecord;
use rdsk_stats::Histogram;

/// A figure of the baseline that the other run does not have.
#[derive(Clone, Debug)]
pub struct Missing<'a> {
    /// The number of the pair of runs.
    pub pair: usize,
    /// The cell of the baseline.
    pub cell: &'a CellRecord,
    /// Why there is none.
    pub why: WhyMissing,
}

/// Why a figure is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyMissing {
    /// The cell has fewer I/Os than a percentile needs.
    FewIos {
        /// I/Os with a latency.
        count: u64,
        /// So many are needed.
        needed: u64,
    },
    /// The cell ran and does not have the figure.
    NoFigure,
    /// No cell of the other run did what this one asks; with the reason where the run gives one.
    NotMeasured(Option<String>),
}

impl WhyMissing {
    /// What stands behind the name of the cell.
    pub fn words(&self) -> String {
        match self {
            Self::FewIos { count, needed } => format!("{}, {needed} are needed", plural(*count, "I/O")),
            Self::NoFigure => "no figure".into(),
            Self::NotMeasured(None) => "not measured".into(),
            Self::NotMeasured(Some(why)) => format!("not measured: {why}"),
        }
    }
}

/// The figures of the baseline that the other run of a pair does not have.
pub(crate) fn missing<'a>(number: usize, pair: &RunPair<'a>, metric: Metric) -> Vec<Missing<'a>> {
    let has_figure = |cell: &CellRecord| figure(cell, metric).is_some();
    let compared = pair.cells.iter().filter(|cell| cell.of(metric).is_none() && has_figure(cell.base));
    let alone = pair.only_base.iter().filter(|cell| has_figure(cell));
    let without = compared.map(|cell| (cell.base, why_without(cell.other, metric)));
    let unmeasured = alone.map(|&cell| (cell, WhyMissing::NotMeasured(why_not_run(pair, cell))));
    without.chain(unmeasured).map(|(cell, why)| Missing { pair: number, cell, why }).collect()
}

fn why_without(cell: &CellRecord, metric: Metric) -> WhyMissing {
    let Some(p) = metric.share() else { return WhyMissing::NoFigure };
    let count = cell.result.latency_ns.as_ref().map_or(0, |latency| latency.count);
    if Histogram::has_enough(count, p) {
        return WhyMissing::NoFigure;
    }
    WhyMissing::FewIos { count, needed: rdsk_analysis::metrics::whole((10.0 / (1.0 - p)).round()) }
}

/// What the other run says of the cell that it did not run.
fn why_not_run(pair: &RunPair<'_>, cell: &CellRecord) -> Option<String> {
    let is_same =
        |other: &&CellRecord| other.id == cell.id && is_alike((pair.base, cell), (pair.other, other));
    pair.other.cells.iter().find(is_same).map(|other| other.result.why.clone()).filter(|why| !why.is_empty())
}
