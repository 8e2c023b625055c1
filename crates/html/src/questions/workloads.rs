//! The figures of an experiment that asks nothing but how fast each workload is: the rates, reads beside writes, what more I/Os in
//! flight gain, and the latencies behind them. The headline is one.

use super::rates::{self, Measure};
use super::rows::{NamedCell, rows};
use super::{Subject, percentiles, sweep};
use crate::figure::Figure;
use rdsk_analysis::metrics;
use rdsk_model::Experiment;
use rdsk_report::workload_label;

pub(super) fn figures(subjects: &[Subject<'_, '_>], experiment: Experiment) -> Vec<Figure> {
    let rows: Vec<NamedCell<'_>> =
        rows(subjects, experiment, workload_label).into_iter().filter(|row| metrics::ran(row.cell)).collect();
    let id = |figure: &str| format!("{experiment}-{figure}");
    let shows = "The mean rate of each workload, as fio would name it.";
    let mut figures: Vec<Figure> =
        rates::figure((&id("rates"), "Read and write rates", shows), &rows, Measure::OfItsKind)
            .into_iter()
            .collect();
    figures.extend(sweep::figures(experiment.as_str(), &rows));
    let timed: Vec<NamedCell<'_>> =
        rows.into_iter().filter(|row| !rdsk_report::is_bandwidth(row.cell)).collect();
    figures.extend(percentiles::figure(&id("latency"), "Latency by percentile", &timed));
    figures
}
