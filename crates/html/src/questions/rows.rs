//! The cells of a figure, of one or several Records: what each is called, whose it is, what is drawn of it, and its figures as the
//! short page words them.

use super::Subject;
use super::parts::{evidence, joined, owner};
use crate::figure::Look;
use rdsk_analysis::comparison::is_of_memory_alone;
use rdsk_analysis::groups::distinct;
use rdsk_model::{CellRecord, Experiment, Op};
use rdsk_report::{RateTexts, remark_of};

/// A cell of a figure.
#[derive(Clone, Debug)]
pub(super) struct NamedCell<'a> {
    /// Record and targets, if there are others on the page; otherwise empty.
    pub(super) owner: String,
    /// What it is called among the cells of its owner; empty where all cells of the figure are called the same.
    pub(super) label: String,
    pub(super) whose: Whose,
    pub(super) texts: RateTexts,
    /// What the figure is where it is not simply the device's; otherwise empty.
    pub(super) remark: String,
    pub(super) cell: &'a CellRecord,
}

/// Which result a cell is of, and which set of its targets: what its colour follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whose {
    result: usize,
    results: usize,
    set: usize,
    sets: usize,
}

impl Whose {
    /// A cell of these targets, among all sets of them.
    pub(super) fn new(subjects: &[Subject<'_, '_>], result: usize, targets: &[u32], sets: &[&[u32]]) -> Self {
        let set = sets.iter().position(|set| *set == targets).unwrap_or(0);
        Self { result, results: subjects.len(), set, sets: sets.len() }
    }

    /// The place of the result among those of the page.
    pub(super) fn result(self) -> usize {
        self.result
    }

    /// The colour is the result; of a single one the targets, and of a single set of them the direction. Writes of a colour that
    /// reads have, too, are drawn with dashes and empty bars.
    pub(super) fn look(self, op: Op) -> Look {
        let direction = usize::from(op == Op::Write);
        match self {
            Self { results: 2.., result, set, .. } => Look { color: result, style: 2 * set + direction },
            Self { sets: 2.., set, .. } => Look { color: set, style: direction },
            _ => Look { color: direction, style: 0 },
        }
    }

    /// The look of one of several kinds: of several results the colour is the result here, too.
    pub(super) fn kind(self, kind: usize) -> Option<Look> {
        (self.results > 1).then_some(Look { color: self.result, style: kind })
    }
}

impl NamedCell<'_> {
    /// What distinguishes it from all others of the figure.
    pub(super) fn name(&self) -> String {
        joined(&self.owner, &self.label)
    }

    /// Its name with its direction, which a label does not say.
    pub(super) fn name_with_op(&self) -> String {
        joined(&self.owner, &with_op(&self.label, self.op()))
    }

    pub(super) fn op(&self) -> Op {
        self.cell.workload.op
    }
}

/// `Random 4K QD32, write`; what says its direction keeps its words.
pub(super) fn with_op(label: &str, op: Op) -> String {
    match label {
        "" => op.to_string(),
        label if label.contains(op.as_str()) => label.to_owned(),
        label => format!("{label}, {op}"),
    }
}

/// The cells of one experiment, Record by Record, whether they ran or not; but for those that only compare kinds of memory.
pub(super) fn rows<'s>(
    subjects: &[Subject<'s, '_>],
    experiment: Experiment,
    label: impl Fn(&CellRecord) -> String,
) -> Vec<NamedCell<'s>> {
    let mut rows = Vec::new();
    for (result, subject) in subjects.iter().enumerate() {
        let analysis = subject.analysis;
        let is_of_memory =
            |cell: &CellRecord| experiment == Experiment::Headline && is_of_memory_alone(analysis, cell);
        let is_its = |cell: &&CellRecord| cell.experiment == experiment && !is_of_memory(cell);
        let cells: Vec<&CellRecord> = analysis.cells.iter().filter(is_its).collect();
        let sets = distinct(cells.iter().map(|cell| cell.workload.targets.as_slice()));
        rows.extend(cells.iter().map(|&cell| NamedCell {
            owner: owner(subjects, subject, cell, sets.len()),
            label: label(cell),
            whose: Whose::new(subjects, result, &cell.workload.targets, &sets),
            texts: RateTexts::of(analysis, cell),
            remark: remark_of(analysis, cell),
            cell,
        }));
    }
    rows
}

/// The look of each row of a figure whose kinds of series are its labels.
pub(super) fn looks(rows: &[&NamedCell<'_>]) -> Vec<Option<Look>> {
    let kind = |row: &&NamedCell<'_>| (row.label.clone(), row.op(), row.whose.set);
    let kinds = distinct(rows.iter().map(kind));
    let place = |row: &&NamedCell<'_>| kinds.iter().position(|other| *other == kind(row)).unwrap_or(0);
    rows.iter().map(|row| row.whose.kind(place(row))).collect()
}

/// The evidence of all of them.
pub(super) fn evidence_of_rows(rows: &[NamedCell<'_>]) -> Vec<String> {
    evidence(rows.iter().map(|row| (row.name_with_op(), row.cell)))
}

/// The labels, each once: the rows of an axis.
pub(super) fn labels(rows: &[&NamedCell<'_>]) -> Vec<String> {
    distinct(rows.iter().map(|row| row.label.clone()))
}
