//! The figures of jobs that fio measured: their rates, what depth, jobs and block size change, and the latencies.

use super::rates::{self, Measure};
use super::rows::rows;
use super::{Subject, percentiles, sweep};
use crate::figure::Figure;
use rdsk_model::{CellRecord, Experiment};

/// More would not be distinguished; a document may have tens of thousands.
const MAX_JOBS: usize = 100;

/// The name of a job, without what all of them have in common.
fn job(cell: &CellRecord) -> String {
    let name = cell.id.strip_prefix("fio/").unwrap_or(&cell.id);
    let name = name.strip_suffix(&format!("/{}", cell.workload.op)).unwrap_or(name);
    rdsk_units::printable(name)
}

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let mut jobs = rows(subjects, Experiment::Fio, job);
    jobs.retain(|row| rdsk_analysis::metrics::ran(row.cell));
    let left_out = jobs.len().saturating_sub(MAX_JOBS);
    jobs.truncate(MAX_JOBS);
    let more = if left_out == 0 { String::new() } else { format!(" {left_out} further jobs are not drawn.") };
    let shows = &format!("The mean rate of each job, as fio reports it.{more}");
    let rates = rates::figure(("fio-rates", "Rate of each job", shows), &jobs, Measure::OfItsKind);
    let mut figures = sweep::figures("fio", &jobs);
    // Documents that differ in depth or block size are one measurement, which the sweep answers.
    let place = if subjects.len() > 1 { figures.len() } else { 0 };
    figures.splice(place..place, rates);
    figures.extend(percentiles::figure("fio-latency", "Latency by percentile", &jobs));
    figures
}
