//! Puts the cells of all experiments on all targets into one Plan and shares out the budget. Pure: facts in, Plan out.

use crate::context::{PlanContext, Scope};
use crate::experiments::question;
use crate::question::{MIN_ROUNDS, Question, ROUNDS, Targets};
use crate::request::{BudgetSource, LoadRuns, PlanOptions};
use crate::schedule::FIRST_ROUNDS_SHARE;
use crate::sequences::{mediums, twins_before};
use rdsk_model::{
    Cell, EngineKind, Experiment, Extent, IoPath, Op, Plan, Problem, ProblemKind, Target, TargetKind,
    UNLIMITED_NS,
};
use rdsk_units::{Bytes, grouped};
use std::collections::BTreeSet;

/// Time of a turn of the cells with most weight that makes [`ROUNDS`] worthwhile.
const MIN_TURN_NS: f64 = 250e6;
/// Turns of targets that are compared are made no shorter than this by more rounds, of which there are at most so many.
const COMPARED_TURN_NS: f64 = 200e6;
const MAX_ROUNDS: u32 = 24;

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub enum PlanError {
    /// The target holds less than one block.
    #[error("{target} has {}, less than one block of {block_bytes} bytes", left_words(*.size_bytes, *.offset_bytes))]
    TooSmall { target: String, size_bytes: u64, offset_bytes: u64, block_bytes: u64 },
    /// The offset leaves nothing to measure.
    #[error("--offset {offset_bytes} is beyond the end of {target}, which has {size_bytes} bytes")]
    OffsetBeyondEnd { target: String, size_bytes: u64, offset_bytes: u64 },
    /// The pass that was requested does not fit behind the offset.
    #[error("--bytes {} {}", Bytes(*.pass_bytes).exact(), room_words(.target, *.size_bytes, *.offset_bytes))]
    PassTooLarge { target: String, size_bytes: u64, offset_bytes: u64, pass_bytes: u64 },
    /// An engine was requested for a target that has its own.
    #[error("{target} is simulated: the engine {engine} cannot issue its I/O")]
    SimulatedEngine { target: String, engine: EngineKind },
    /// The options leave no cell.
    #[error("nothing to do: {0}")]
    Nothing(String),
}

/// Plans the experiments on the targets. `writable[i]` says whether target i may be written; `target_bytes_per_s` is the
/// rate at which the test file was written, if there is one; `budget_ns` is what is left of the time.
///
/// # Errors
/// If a target has no room for one block after the offset, or the options leave no cell.
pub fn plan(
    experiments: &[Experiment],
    targets: &[Target],
    writable: &[bool],
    target_bytes_per_s: Option<f64>,
    options: &PlanOptions,
    budget_ns: u64,
) -> Result<Plan, PlanError> {
    let scope = if experiments.len() > 1 { Scope::WholeRun } else { Scope::Alone };
    let mediums = mediums(targets);
    let mut contexts = Vec::new();
    for (position, (target, &may_write)) in targets.iter().zip(writable).enumerate() {
        check_room(experiments, target, options)?;
        let ops = Op::ALL
            .iter()
            .copied()
            .filter(|&op| op == Op::Read || may_write)
            .filter(|op| options.ops.as_ref().is_none_or(|wanted| wanted.contains(op)))
            .collect();
        let twins = twins_before(&mediums, position);
        contexts.push(PlanContext { target, twins, ops, target_bytes_per_s, options, scope, budget_ns });
    }
    let mut questions: Vec<&dyn Question> =
        experiments.iter().map(|&experiment| question(experiment)).collect();
    questions.sort_by_key(|question| question.targets());
    let mut cells = cells(&questions, &contexts);
    if cells.is_empty() {
        return Err(PlanError::Nothing("the options leave no test on these targets".into()));
    }
    let notes = questions.iter().flat_map(|question| question.notes(&contexts)).collect();
    let budget_ns = time_ns(&mut cells, &questions, &contexts);
    let wanted = if let [only] = questions[..] { only.rounds(&contexts) } else { ROUNDS };
    let rounds = if wanted == ROUNDS { rounds_that_fit(&cells, budget_ns) } else { wanted };
    // Percentiles and what happens over time want long turns, and all of the time, whatever the precision of the rate.
    let of_load =
        (experiments.contains(&Experiment::Load) && options.load_runs == LoadRuns::Repeated).then(|| {
            let running = cells.iter().filter(|cell| cell.not_applicable.is_none()).count();
            budget_ns / u64::try_from(running).unwrap_or(1).max(1)
        });
    let runtime_ns = options.runtime_ns.or(of_load);
    Ok(Plan { cells, budget_ns, runtime_ns, precision: options.precision, rounds, notes })
}

/// All rounds, or the fewest if the turns of all would be too short. Reads of several targets have more rounds of shorter turns: the
/// sooner two targets follow each other, the more of their state they share, and their difference shows. A short write would stop
/// in the cache of a disk, so that writes keep theirs.
fn rounds_that_fit(cells: &[Cell], budget_ns: u64) -> u32 {
    let running = || cells.iter().filter(|cell| cell.not_applicable.is_none()).map(|cell| cell.weight);
    let weights: f64 = running().sum();
    let largest = running().fold(0.0, f64::max);
    let turn_ns = budget_ns as f64 * FIRST_ROUNDS_SHARE * largest / weights / f64::from(ROUNDS);
    if turn_ns < MIN_TURN_NS {
        return MIN_ROUNDS;
    }
    let reads = |cell: &Cell| cell.workload.op == Op::Read && cell.extent == Extent::Timed;
    let targets: BTreeSet<&Vec<u32>> = cells.iter().map(|cell| &cell.workload.targets).collect();
    if targets.len() < 2 || !cells.iter().all(reads) {
        return ROUNDS;
    }
    (ROUNDS..=MAX_ROUNDS)
        .rev()
        .find(|&rounds| turn_ns * f64::from(ROUNDS) / f64::from(rounds) >= COMPARED_TURN_NS)
        .unwrap_or(ROUNDS)
}

/// The most streams that a cell of these experiments has.
pub fn max_streams(experiments: &[Experiment], options: &PlanOptions) -> u32 {
    experiments.iter().map(|&experiment| question(experiment).max_streams(options)).max().unwrap_or(1)
}

/// The cells of every target, then those of all targets together.
fn cells(questions: &[&dyn Question], contexts: &[PlanContext<'_>]) -> Vec<Cell> {
    let (each, together) =
        questions.split_at(questions.partition_point(|question| question.targets() == Targets::Each));
    let mut cells = Vec::new();
    for context in contexts {
        let first = cells.len();
        cells.extend(each.iter().flat_map(|question| question.cells(context, contexts)));
        if contexts.len() > 1 {
            for cell in &mut cells[first..] {
                cell.id = format!("{}@{}", cell.id, context.target.index);
            }
        }
    }
    if let Some(first) = contexts.first() {
        cells.extend(together.iter().flat_map(|question| question.cells(first, contexts)));
    }
    cells
}

/// The time that the cells get together: what was requested per cell, else the budget; no limit for complete passes whose
/// number was requested, or whose time is virtual.
fn time_ns(cells: &mut [Cell], questions: &[&dyn Question], contexts: &[PlanContext<'_>]) -> u64 {
    let PlanContext { options, scope, budget_ns, .. } = contexts[0];
    if let Some(runtime_ns) = options.runtime_ns {
        cells.iter_mut().for_each(|cell| cell.weight = 1.0);
        let running = cells.iter().filter(|cell| cell.not_applicable.is_none()).count() as u64;
        let ramps_ns = questions.iter().map(|question| question.ramps_ns(contexts)).sum();
        return runtime_ns.saturating_mul(running.max(1)).saturating_add(ramps_ns);
    }
    if let Some(most_ns) = most_of_single_runs_ns(cells) {
        return most_ns;
    }
    if scope == Scope::WholeRun || options.budget_source == BudgetSource::Requested {
        return budget_ns;
    }
    let all_passes = cells.iter().all(|cell| matches!(cell.extent, Extent::Pass { .. }));
    let is_virtual = contexts.iter().all(|context| context.target.kind == TargetKind::Sim);
    let is_fixed = questions.iter().all(|question| question.has_fixed_passes(options));
    let is_free = contexts.iter().all(PlanContext::is_time_free);
    let ramps_ns: u64 = questions.iter().map(|question| question.ramps_ns(contexts)).sum();
    match () {
        () if all_passes && (is_virtual || is_fixed) => UNLIMITED_NS,
        () if is_free => {
            let cell_ns = questions.iter().map(|question| question.free_cell_ns()).max().unwrap_or(0);
            // No simulated host has this path, so its cells are given no time.
            let timed = cells.iter().filter(|cell| cell.workload.path != IoPath::DontCache).count() as u64;
            ramps_ns.saturating_add(timed * cell_ns).max(budget_ns)
        }
        () => budget_ns,
    }
}

/// The time that cells take at most of which each runs once; `None` where others are among them.
fn most_of_single_runs_ns(cells: &[Cell]) -> Option<u64> {
    let most_ns = |cell: &Cell| match cell.extent {
        Extent::Once { most_ns } => Some(most_ns),
        _ => None,
    };
    let all_ns: Option<Vec<u64>> = cells.iter().map(most_ns).collect();
    Some(all_ns?.into_iter().fold(0, u64::saturating_add).min(UNLIMITED_NS))
}

impl PlanError {
    /// The error as a Record and the screen say it.
    pub(crate) fn problem(&self) -> Problem {
        let (kind, hint) = match self {
            Self::TooSmall { offset_bytes: 0, .. } => {
                (ProblemKind::Refused, "name a larger target, or a smaller --bs")
            }
            Self::TooSmall { .. } => {
                (ProblemKind::Refused, "name a larger target, or a smaller --offset or --bs")
            }
            Self::OffsetBeyondEnd { .. } => (ProblemKind::Usage, "name a smaller --offset"),
            Self::PassTooLarge { .. } => {
                (ProblemKind::Usage, "write fewer --bytes, or name a larger target or a smaller --offset")
            }
            Self::SimulatedEngine { .. } => (ProblemKind::Usage, "leave --engine out"),
            Self::Nothing(_) => (
                ProblemKind::Usage,
                "writing a device needs --destroy IDENTITY, a file --overwrite; or --rw read measures reads only",
            ),
        };
        Problem::new(kind, "no-plan", self, hint)
    }
}

/// That it has too little room, in words.
fn room_words(target: &str, size_bytes: u64, offset_bytes: u64) -> String {
    let size = format!("{} ({} bytes)", Bytes(size_bytes).approx(), grouped(size_bytes));
    match offset_bytes {
        0 => format!("is more than {target} holds: {size}"),
        _ => format!("from --offset {} is more than {target} holds: {size}", Bytes(offset_bytes)),
    }
}

/// How many bytes there are from the offset on, in words.
fn left_words(size_bytes: u64, offset_bytes: u64) -> String {
    match offset_bytes {
        0 => format!("{size_bytes} bytes"),
        _ => format!(
            "{} bytes behind --offset {}",
            size_bytes.saturating_sub(offset_bytes),
            Bytes(offset_bytes)
        ),
    }
}

/// Whether `--bytes` is the part of a target that these experiments use, and not only how much they transfer.
pub(crate) fn is_pass_of_target(experiments: &[Experiment]) -> bool {
    experiments.iter().any(|&experiment| !question(experiment).starts_over())
}

/// Checks that a target has room for what was requested of it.
///
/// # Errors
/// If it has not.
pub(crate) fn check_room(
    experiments: &[Experiment],
    target: &Target,
    options: &PlanOptions,
) -> Result<(), PlanError> {
    if let (TargetKind::Sim, Some(engine)) = (target.kind, options.engine) {
        return Err(PlanError::SimulatedEngine { target: target.name.clone(), engine });
    }
    if target.size_bytes > 0 && options.offset_bytes >= target.size_bytes {
        return Err(PlanError::OffsetBeyondEnd {
            target: target.name.clone(),
            size_bytes: target.size_bytes,
            offset_bytes: options.offset_bytes,
        });
    }
    let block_bytes = options.block_bytes.as_ref().and_then(|sizes| sizes.iter().min().copied()).unwrap_or(1);
    let offset_bytes = options.offset_bytes.min(target.size_bytes);
    if target.size_bytes - offset_bytes < block_bytes {
        return Err(PlanError::TooSmall {
            target: target.name.clone(),
            size_bytes: target.size_bytes,
            offset_bytes,
            block_bytes,
        });
    }
    let pass_bytes = options.pass_bytes.filter(|_| is_pass_of_target(experiments)).unwrap_or(0);
    if pass_bytes > target.size_bytes - options.offset_bytes {
        return Err(PlanError::PassTooLarge {
            target: target.name.clone(),
            size_bytes: target.size_bytes,
            offset_bytes: options.offset_bytes,
            pass_bytes,
        });
    }
    Ok(())
}
