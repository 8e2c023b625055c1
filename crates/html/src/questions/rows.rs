//! The cells of a figure, of one or several Records: what each is called, whose it is, and series with one of each owner.

use super::Subject;
use super::parts::{along_row, evidence, joined, owner};
use crate::figure::{Series, Shape};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_model::{CellRecord, Estimate, Experiment};
use rdsk_report::Unit;

/// A cell of a figure.
#[derive(Clone, Debug)]
pub(super) struct NamedCell<'a> {
    /// Record and targets, if there are others on the page; otherwise empty.
    pub(super) owner: String,
    /// What it is called among the cells of its owner; empty where all cells of the figure are called the same.
    pub(super) label: String,
    pub(super) cell: &'a CellRecord,
}

impl NamedCell<'_> {
    /// What distinguishes it from all others of the figure.
    pub(super) fn name(&self) -> String {
        joined(&self.owner, &self.label)
    }
}

/// The cells of one experiment, Record by Record, whether they ran or not.
pub(super) fn rows<'s>(
    subjects: &[Subject<'s, '_>],
    experiment: Experiment,
    label: impl Fn(&CellRecord) -> String,
) -> Vec<NamedCell<'s>> {
    let mut rows = Vec::new();
    for subject in subjects {
        let analysis = subject.analysis;
        for cell in analysis.cells.iter().filter(|cell| cell.experiment == experiment) {
            rows.push(NamedCell { owner: owner(subjects, subject, cell), label: label(cell), cell });
        }
    }
    rows
}

/// The same cells label by label, each with one cell of every owner: what is compared stands together.
pub(super) fn by_label(rows: Vec<NamedCell<'_>>) -> Vec<(String, Vec<NamedCell<'_>>)> {
    let unlabelled = |row| NamedCell { label: String::new(), ..row };
    by_key(rows.into_iter().map(|row| (row.label.clone(), unlabelled(row))))
}

/// The evidence of all of them.
pub(super) fn evidence_of_rows(rows: &[NamedCell<'_>]) -> Vec<String> {
    evidence(rows.iter().map(|row| (row.name(), row.cell)))
}

/// The labels, each once: the rows of an axis.
pub(super) fn labels(rows: &[NamedCell<'_>]) -> Vec<String> {
    distinct(rows.iter().map(|row| row.label.clone()))
}

/// A series for each owner, with an estimate in the row of its label; `what` names the only one where there is no other owner.
pub(super) fn of_owners(
    rows: &[NamedCell<'_>],
    what: &str,
    unit: Unit,
    of: impl Fn(&NamedCell<'_>) -> Option<Estimate>,
    shape: impl Fn(usize) -> Shape,
) -> Vec<Series> {
    let labels = labels(rows);
    let owners = by_key(rows.iter().map(|row| (row.owner.as_str(), row)));
    let one = |(slot, (owner, own)): (usize, (&str, Vec<&NamedCell<'_>>))| {
        let point = |row: &&NamedCell<'_>| {
            let place = labels.iter().position(|label| *label == row.label)?;
            Some(along_row(place, of(row)?, unit))
        };
        let name = if owner.is_empty() { what } else { owner };
        Series::new(name, shape(slot), own.iter().filter_map(point).collect())
    };
    owners.into_iter().enumerate().map(one).filter(|series| !series.points.is_empty()).collect()
}

/// Bars for each owner side by side.
pub(super) fn bars(
    rows: &[NamedCell<'_>],
    what: &str,
    unit: Unit,
    of: impl Fn(&NamedCell<'_>) -> Option<Estimate>,
) -> Vec<Series> {
    let slots = distinct(rows.iter().map(|row| row.owner.as_str())).len();
    of_owners(rows, what, unit, of, |slot| Shape::Bar { slot, slots })
}
