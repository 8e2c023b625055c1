//! Figures that the baseline has and another run does not: a disk that became so slow that too few I/Os were left for a
//! percentile, a cell that failed or was not measured. It says why, and judges nothing.

use crate::figure::Metric;
use rdsk_analysis::words::plural;
use rdsk_model::{CellRecord, VerdictCode};
use rdsk_stats::Histogram;

/// A figure of the baseline that a run does not have.
#[derive(Clone, Debug)]
pub struct Missing<'a> {
    /// The number of the pair of runs.
    pub pair: usize,
    /// The run that lacks it, where each side has several; `None` where it is the other run of the pair.
    pub run: Option<OneRun>,
    /// The cell of the baseline.
    pub cell: &'a CellRecord,
    /// Which figure.
    pub metric: Metric,
    /// Why there is none.
    pub why: WhyMissing,
}

/// One of the runs of a side, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneRun {
    /// Of the baseline.
    Base(usize),
    /// Of the other side.
    Other(usize),
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
    /// What the cell has is the figure of nothing, for this reason.
    OfNothing(&'static str),
    /// No cell of the run did what this one asks; with the reason where the run gives one.
    NotMeasured(Option<String>),
}

impl WhyMissing {
    /// What stands behind the name of the cell.
    pub fn words(&self) -> String {
        match self {
            Self::FewIos { count, needed } => format!("{}, {needed} are needed", plural(*count, "I/O")),
            Self::NoFigure => "no figure".into(),
            Self::OfNothing(why) => (*why).into(),
            Self::NotMeasured(None) => "not measured".into(),
            Self::NotMeasured(Some(why)) => format!("not measured: {why}"),
        }
    }

    /// Of a cell that ran and has no such figure.
    pub(crate) fn of_figure(cell: &CellRecord, metric: Metric) -> Self {
        let Some(p) = metric.share() else { return Self::NoFigure };
        let count = cell.result.latency_ns.as_ref().map_or(0, |latency| latency.count);
        if Histogram::has_enough(count, p) {
            return Self::NoFigure;
        }
        Self::FewIos { count, needed: rdsk_analysis::metrics::whole((10.0 / (1.0 - p)).round()) }
    }

    /// Of a cell that did not run, if there is one.
    pub(crate) fn of_unmeasured(cell: Option<&CellRecord>) -> Self {
        Self::NotMeasured(cell.map(|cell| cell.result.why.clone()).filter(|why| !why.is_empty()))
    }
}

/// Whether the figure of a cell is that of nothing: no device moved the bytes, or the cell was cut off.
pub(crate) fn is_of_nothing(cell: &CellRecord) -> bool {
    why_of_nothing(cell).is_some()
}

/// Why the figure of a cell is that of nothing.
pub(crate) fn why_of_nothing(cell: &CellRecord) -> Option<&'static str> {
    match cell.verdict.as_ref().map(|verdict| verdict.code) {
        None => Some("the test has no judgement there"),
        Some(VerdictCode::Hole) => Some("the test read unallocated blocks there, which no device answers"),
        Some(VerdictCode::Incomplete) => Some("the test was cut off there"),
        Some(_) => None,
    }
}
