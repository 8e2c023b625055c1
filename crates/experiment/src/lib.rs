//! From a request to a Record. Each experiment is one file: it turns options and facts of the targets into cells of a
//! Plan. The runner visits the cells with the engine and observer that it is given and sums up what they saw. This crate
//! opens no path and prints nothing; the runner reads no clock but the one that it is given.

mod after_idle;
mod backend;
mod cell_record;
mod cell_result;
mod cell_totals;
mod claims;
mod context;
mod copy;
mod counted_part;
mod execute;
mod experiments;
mod load_search;
mod load_totals;
mod lockstep;
mod planner;
mod question;
mod request;
mod resume;
mod run_state;
mod runner;
mod schedule;
mod sequences;
mod shared_turn;
mod stopping;
mod sustained;

pub use copy::{CommandCounts, CommandPlaces, Copies, CopiesEnd, Leftovers, WaitFor, Watching};
pub use execute::{concluded, execute, execute_with, failed_record, plan_only};
pub use experiments::IN_RUN;
pub use planner::{PlanError, max_streams, plan};
pub use request::{
    BudgetSource, EvidenceChoice, LoadRuns, PlanOptions, PositionOrder, Positions, RankPlace, Request,
};
pub use run_state::RunOutcome;
pub use runner::Runner;
