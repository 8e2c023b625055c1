//! The figure of jobs that fio measured: what its document has enough of to be drawn, the latencies.

use super::{Subject, percentiles, rows};
use crate::figure::Figure;
use rdsk_model::Experiment;

pub(super) fn figures(subjects: &[Subject<'_, '_>]) -> Vec<Figure> {
    let mut jobs = rows::rows(subjects, Experiment::Fio, |cell| cell.id.clone());
    jobs.retain(|row| rdsk_analysis::metrics::ran(row.cell));
    percentiles::figure("fio-latency", "Latency by percentile", &jobs).into_iter().collect()
}
