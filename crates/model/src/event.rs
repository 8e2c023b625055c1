//! What measuring code says while it works. It emits events to a Watch and never prints; progress line, live screen and
//! tests are Watches.

use crate::cell::CellRecord;
use crate::record::Record;
use std::fmt;

/// Something that happened, borrowed from the code that did it.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The test file is being written.
    Creating {
        /// Bytes so far.
        done_bytes: u64,
        /// Bytes in the end; may shrink when the disk turns out slow.
        total_bytes: u64,
        /// Rate since the start of the file.
        bytes_per_s: f64,
    },
    /// The targets are claimed and the plan is made; nothing is measured yet.
    Planned {
        /// The Record without cells, and without what only the end of the run says.
        record: &'a Record,
    },
    /// Measuring begins.
    Started {
        /// Cells that will run.
        cells: usize,
        /// Time that they may take.
        budget_ns: u64,
    },
    /// A visit of a cell begins.
    VisitStarted {
        /// Id of the cell.
        id: &'a str,
        /// Visits begun so far, this one included, and visits planned.
        visit: usize,
        /// Visits planned in all.
        visits: usize,
        /// Time left of the budget.
        left_ns: u64,
    },
    /// A window of a cell ended.
    Window {
        /// Id of the cell.
        id: &'a str,
        /// Rate in the window.
        bytes_per_s: f64,
        /// I/Os in the window, per second.
        ops_per_s: f64,
        /// Time left of the budget.
        left_ns: u64,
    },
    /// The I/O of a visit is over, and what it wrote is being closed and flushed; until `Settled` nothing else is heard.
    Settling {
        /// Id of the cell.
        id: &'a str,
        /// Time left of the budget.
        left_ns: u64,
    },
    /// The visit's data is stable, or its flush failed.
    Settled,
    /// The turn of a cell is over, and no I/O is under way until the next one begins.
    TurnEnded {
        /// Position of the cell in the plan, and in the Record.
        position: usize,
        /// This cell, and every other one, as far as they are.
        cells: CellsSoFar<'a>,
    },
    /// A cell is finished, with its verdict.
    CellFinished {
        /// What it saw.
        cell: &'a CellRecord,
    },
    /// Something the user should know now.
    Warning {
        /// One line.
        text: &'a str,
    },
}

/// Cells that may have more turns, with their figures and verdicts so far; summed up only for who asks.
#[derive(Clone, Copy)]
pub struct CellsSoFar<'a>(&'a dyn Fn(usize) -> CellRecord);

impl<'a> CellsSoFar<'a> {
    /// The cells that `sum_up` gives by their positions in the plan.
    pub fn new(sum_up: &'a dyn Fn(usize) -> CellRecord) -> Self {
        Self(sum_up)
    }

    /// Sums one up, which takes longer the more was measured.
    pub fn get(self, position: usize) -> CellRecord {
        (self.0)(position)
    }
}

impl fmt::Debug for CellsSoFar<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CellsSoFar")
    }
}

/// An observer of events.
pub trait Watch {
    /// Takes one event; must return quickly, since it is called between windows.
    fn event(&mut self, event: &Event<'_>);
}
