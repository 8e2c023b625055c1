//! The Plan: an ordered list of cells, each one workload requested by one experiment. Pure data; `--dry-run` prints it.

use crate::workload::Workload;
use crate::workload_words::words;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a sequential visit of `stream` through the page cache may use: small enough to drop and check its cache quickly.
pub const STREAM_WINDOW_BYTES: u64 = 1 << 30;

words!(
    /// The question that a cell belongs to.
    Experiment {
        /// The few figures wanted first.
        Headline = "headline",
        /// Direct against buffered (report 1).
        Paths = "paths",
        /// One stream, watched by iostat (report 2).
        Stream = "stream",
        /// Write latency by size and alignment (report 5).
        Align = "align",
        /// Speed by position (report 3).
        Zones = "zones",
        /// Block size × streams × targets (report 4).
        Scale = "scale",
        /// Chunk and full stripe of an array (report 5).
        Stripe = "stripe",
        /// Jobs that the user describes, all at once.
        Load = "load",
        /// A copy as dd does it; no plan asks it.
        Dd = "dd",
        /// A job of fio, read from its own document; no plan asks it.
        Fio = "fio",
    }
);

impl Experiment {
    /// The experiments that a plan can ask: all but `dd`, whose operands say what is done, and `fio`, which was done by another
    /// program.
    pub const PLANNED: &'static [Self] = Self::ALL.split_at(Self::ALL.len() - 2).0;
}

/// How much of a workload one visit does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Extent {
    /// One complete pass per round over this many bytes in all streams together; short only when the time is used up.
    Pass {
        /// Bytes of one pass.
        bytes: u64,
    },
    /// Complete passes, one after the other, until the precision is reached or no further one fits into the time.
    Passes {
        /// Bytes of one pass.
        bytes: u64,
    },
    /// As much as the time allows, until the precision is reached.
    Timed,
    /// One visit that goes on until its rate has settled.
    Sustained(Endurance),
    /// One visit that goes on until the jobs of its load are done.
    Once {
        /// Nanoseconds after which it ends in any case.
        most_ns: u64,
    },
    /// Repeated visits of a few I/Os each, each after setting the cache state again, until time or precision ends them.
    Samples {
        /// I/Os of the first visit; the runner grows it while preparing and settling are cheap.
        first_ops: u64,
    },
}

impl Extent {
    /// Bytes of one pass, of an extent of whole passes.
    pub fn pass_bytes(&self) -> Option<u64> {
        match *self {
            Self::Pass { bytes } | Self::Passes { bytes } => Some(bytes),
            Self::Timed | Self::Samples { .. } | Self::Sustained(_) | Self::Once { .. } => None,
        }
    }
}

/// How long a visit goes on that waits for its rate to settle. One whose rate fell and has settled is over after `least_bytes`; one
/// whose rate has not fallen, after `least_ns` or `least_ops` besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endurance {
    /// Bytes that are written in any case: more than a cache that is known holds.
    pub least_bytes: u64,
    /// A level that held for so long has settled; `u64::MAX` where only the end of the time shows that it does.
    pub least_ns: u64,
    /// So has one that held for so many I/Os.
    pub least_ops: u64,
    /// I/Os after which a rate is given up that does not settle.
    pub most_ops: u64,
    /// Bytes per second that shorter visits had: a level clearly below that has fallen from there. 0 where none is known.
    pub expected_bytes_per_s: u64,
}

/// One workload requested by one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in the Record and readable: `paths/write/buffered`.
    pub id: String,
    /// Who asks.
    pub experiment: Experiment,
    /// What is asked.
    pub workload: Workload,
    /// How much of it.
    pub extent: Extent,
    /// Share of the time relative to the other cells; positive.
    pub weight: f64,
    /// Why the cell cannot be run at all (the report's "n/a"); the runner records it and issues nothing.
    pub not_applicable: Option<String>,
}

impl Cell {
    /// The id without its target: what the same cell of two targets has in common.
    pub fn name(&self) -> &str {
        self.id.split_once('@').map_or(&self.id, |(name, _)| name)
    }
}

/// What to do, in order. Every round visits all cells, group by group; see [`Plan::order`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The cells in their first order.
    pub cells: Vec<Cell>,
    /// Wall time that all cells together may take.
    pub budget_ns: u64,
    /// Time of one cell in all its visits, if requested (`--runtime`); replaces the share of the budget.
    pub runtime_ns: Option<u64>,
    /// Wanted relative half-width of the 95 % confidence interval, between 0 and 1.
    pub precision: f64,
    /// Rounds over all cells; at least 1. Time that is left goes to further rounds over the groups that need them most.
    pub rounds: u32,
    /// What was left out or shortened to fit the time, in words.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The time of a plan that ends with its passes, however long they take: a year.
pub const UNLIMITED_NS: u64 = 365 * 86_400 * 1_000_000_000;

impl Plan {
    /// Whether the plan ends with its passes and not with its time.
    pub fn is_unlimited(&self) -> bool {
        self.budget_ns >= UNLIMITED_NS
    }

    /// Whether it has tests of several questions. Only reads have further rounds then: all writes share the fast part of a flash drive, and
    /// what fills it for one test slows down the others.
    pub fn is_whole_run(&self) -> bool {
        self.cells.windows(2).any(|pair| pair[0].experiment != pair[1].experiment)
    }

    /// The cells that are compared with each other: those of one experiment and direction, the same cell of every target
    /// side by side. Indices into `cells`, in the order in which they first appear.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let key = |index: usize| (self.cells[index].experiment, self.cells[index].workload.op);
        for index in 0..self.cells.len() {
            match groups.iter_mut().find(|group| key(group[0]) == key(index)) {
                Some(group) => {
                    let name = |index: usize| self.cells[index].name();
                    let twin = group.iter().rposition(|&other| name(other) == name(index));
                    group.insert(twin.map_or(group.len(), |twin| twin + 1), index);
                }
                None => groups.push(vec![index]),
            }
        }
        groups
    }

    /// The order of visits: indices into `cells`, one list per round. The groups follow each other in the same order in
    /// every round, so that the visits of a cell are about one round apart, and every second round goes through each group
    /// backwards (ABBA), so that drift hits both sides of a comparison alike.
    pub fn order(&self) -> Vec<Vec<usize>> {
        let groups = self.groups();
        (0..self.rounds).map(|round| groups.iter().flat_map(|group| turned(group, round)).collect()).collect()
    }

    /// The part of the budget that one cell may use in all its visits, in nanoseconds.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a budget in nanoseconds stays far below 2^53"
    )]
    pub fn share_ns(&self, index: usize) -> u64 {
        let total: f64 =
            self.cells.iter().filter(|cell| cell.not_applicable.is_none()).map(|cell| cell.weight).sum();
        if total <= 0.0 {
            return self.budget_ns;
        }
        (self.budget_ns as f64 * self.cells[index].weight / total) as u64
    }
}

/// A group in the direction of a round: forwards in even ones, backwards in odd ones.
pub fn turned(group: &[usize], round: u32) -> Vec<usize> {
    let forwards = group.iter().copied();
    if round.is_multiple_of(2) { forwards.collect() } else { forwards.rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, weight: f64) -> Cell {
        Cell {
            id: id.into(),
            experiment: Experiment::Paths,
            workload: Workload::sequential_read(1 << 20),
            extent: Extent::Timed,
            weight,
            not_applicable: None,
        }
    }

    #[test]
    fn a_plan_can_ask_everything_but_a_copy_and_what_another_program_did() {
        let unplanned: Vec<_> =
            Experiment::ALL.iter().filter(|one| !Experiment::PLANNED.contains(one)).collect();
        assert_eq!(unplanned, [&Experiment::Dd, &Experiment::Fio]);
    }

    #[test]
    fn rounds_run_there_and_back() {
        let plan = Plan {
            cells: vec![cell("a", 1.0), cell("b", 1.0)],
            budget_ns: 10,
            runtime_ns: None,
            precision: 0.02,
            rounds: 2,
            notes: Vec::new(),
        };
        assert_eq!(plan.order(), vec![vec![0, 1], vec![1, 0]]);
    }

    #[test]
    fn groups_stay_in_order_and_twins_side_by_side() {
        let mut cells: Vec<Cell> = ["a@0", "b@0", "c@0", "a@1", "b@1", "c@1"].map(|id| cell(id, 1.0)).into();
        for index in [2, 5] {
            cells[index].workload.op = crate::Op::Write;
        }
        let plan =
            Plan { cells, budget_ns: 10, runtime_ns: None, precision: 0.02, rounds: 2, notes: Vec::new() };
        assert_eq!(plan.groups(), [vec![0, 3, 1, 4], vec![2, 5]]);
        assert_eq!(plan.order(), [[0, 3, 1, 4, 2, 5], [4, 1, 3, 0, 5, 2]]);
    }

    #[test]
    fn shares_leave_out_cells_that_never_run() {
        let mut plan = Plan {
            cells: vec![cell("a", 1.0), cell("b", 3.0)],
            budget_ns: 400,
            runtime_ns: None,
            precision: 0.02,
            rounds: 2,
            notes: Vec::new(),
        };
        assert_eq!((plan.share_ns(0), plan.share_ns(1)), (100, 300));
        plan.cells[1].not_applicable = Some("no".into());
        assert_eq!(plan.share_ns(0), 400);
    }
}
