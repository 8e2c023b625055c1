//! Puts the cells of all experiments on all targets into one Plan and shares out the budget. Pure: facts in, Plan out.

use crate::options::{BudgetSource, PlanOptions, Positions};
use crate::{align, headline, paths, scale, stream, stripe, zones};
use rdsk_model::{
    CacheState, Cell, EngineKind, Experiment, Extent, IoPath, Op, Pattern, Plan, StreamRange, Sync, Target,
    TargetKind, UNLIMITED_NS, Workload,
};
use rdsk_units::Nanos;

/// Rounds over the cells: there and back, so that drift hits both sides of a comparison alike.
const ROUNDS: u32 = 2;

/// Page size that plans reckon with where a size must be "whole pages"; the engine asks the kernel for the real one.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Why no plan can be made; usage errors all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The target holds less than one block.
    #[error("{target} has {size_bytes} bytes, less than one block of {block_bytes} bytes")]
    TooSmall {
        /// Name of the target.
        target: String,
        /// Its size.
        size_bytes: u64,
        /// The smallest block that was to be used.
        block_bytes: u64,
    },
    /// The offset leaves nothing to measure.
    #[error("--offset {offset_bytes} is beyond the end of {target}, which has {size_bytes} bytes")]
    OffsetBeyondEnd {
        /// Name of the target.
        target: String,
        /// Its size.
        size_bytes: u64,
        /// The offset asked for.
        offset_bytes: u64,
    },
    /// An engine was asked for on a target that has its own.
    #[error("{target} is simulated: the engine {engine} cannot issue its I/O")]
    SimulatedEngine {
        /// Name of the target.
        target: String,
        /// The engine asked for.
        engine: EngineKind,
    },
    /// The options leave no cell.
    #[error("nothing to do: {0}")]
    Nothing(String),
}

/// What is known of one target when its cells are planned.
pub(crate) struct PlanContext<'a> {
    pub(crate) target: &'a Target,
    /// Directions to measure, reads first.
    pub(crate) ops: Vec<Op>,
    /// Rate at which the test file was written; `None` for targets that were there before.
    pub(crate) made_bytes_per_s: Option<f64>,
    pub(crate) options: &'a PlanOptions,
}

impl PlanContext<'_> {
    /// Bytes from the offset to the end.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.target.size_bytes.saturating_sub(self.options.offset_bytes)
    }

    /// The most that a span may have, in whole blocks.
    pub(crate) fn span_bytes(&self, wish_bytes: u64, block_bytes: u64) -> u64 {
        let room_bytes = self.room_bytes().min(wish_bytes.max(block_bytes));
        room_bytes - room_bytes % block_bytes
    }

    /// A workload on this target, by one synchronous stream unless the depth says otherwise.
    pub(crate) fn workload(&self, op: Op, path: IoPath, block_bytes: u64, span_bytes: u64) -> Workload {
        Workload {
            op,
            pattern: Pattern::Sequential,
            path,
            sync: Sync::None,
            cache: CacheState::Any,
            block_bytes,
            align_bytes: block_bytes,
            shift_bytes: 0,
            queue_depth: 1,
            streams: 1,
            stagger_ns: 0,
            engine: match self.target.kind {
                TargetKind::Sim => EngineKind::Sim,
                _ => self.options.engine.unwrap_or(EngineKind::Sync),
            },
            targets: vec![self.target.index],
            offset_bytes: self.options.offset_bytes,
            span_bytes,
            range: StreamRange::Disjoint,
            points: None,
            seed: self.options.seed,
        }
    }

    /// A cell; direct cells on a target without direct I/O, and deep ones on the sync engine, become "n/a".
    pub(crate) fn cell(
        &self,
        id: String,
        experiment: Experiment,
        mut workload: Workload,
        extent: Extent,
        weight: f64,
    ) -> Cell {
        if workload.queue_depth > 1 && self.options.engine.is_none() && workload.engine != EngineKind::Sim {
            workload.engine = EngineKind::Uring;
        }
        let not_applicable = if workload.path == IoPath::Direct && self.target.direct_io == Some(false) {
            Some("direct I/O is not supported on this filesystem".to_owned())
        } else if workload.queue_depth > 1 && workload.engine == EngineKind::Sync {
            Some("the sync engine has one I/O in flight per stream".to_owned())
        } else if workload.span_bytes == 0 {
            Some(format!("the target is smaller than one block of {} bytes", workload.block_bytes))
        } else {
            None
        };
        Cell { id, experiment, workload, extent, weight, not_applicable }
    }
}

/// The direct path where the target has one, else the buffered one: for cells that want the device, not the path.
pub(crate) fn device_path(target: &Target) -> IoPath {
    if target.direct_io == Some(false) { IoPath::Buffered } else { IoPath::Direct }
}

/// A block size in the spelling used in cell ids: `4k`, `1M`, `512`.
pub(crate) fn size_word(bytes: u64) -> String {
    for (unit_bytes, unit) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")] {
        if bytes >= unit_bytes && bytes.is_multiple_of(unit_bytes) {
            return format!("{}{unit}", bytes / unit_bytes);
        }
    }
    bytes.to_string()
}

/// Plans the experiments on the targets. `writable[i]` says whether target i may be written; `made_bytes_per_s` is the
/// rate at which the test file was written, where there is one; `budget_ns` is what is left of the time.
///
/// # Errors
/// When a target has no room for one block behind the offset, or when the options leave no cell.
pub fn plan(
    experiments: &[Experiment],
    targets: &[Target],
    writable: &[bool],
    made_bytes_per_s: Option<f64>,
    options: &PlanOptions,
    budget_ns: u64,
) -> Result<Plan, PlanError> {
    let mut contexts = Vec::new();
    for (target, &may_write) in targets.iter().zip(writable) {
        check_room(target, options)?;
        let ops = Op::ALL
            .iter()
            .copied()
            .filter(|&op| op == Op::Read || may_write)
            .filter(|op| options.ops.as_ref().is_none_or(|wanted| wanted.contains(op)))
            .collect();
        contexts.push(PlanContext { target, ops, made_bytes_per_s, options });
    }
    let in_run = experiments.len() > 1;
    let shape = zones::shape(&contexts, in_run, budget_ns);
    let mut cells = Vec::new();
    for context in &contexts {
        let first = cells.len();
        for experiment in experiments {
            cells.extend(match experiment {
                Experiment::Headline => headline::cells(context),
                Experiment::Paths => paths::cells(context, in_run, budget_ns),
                Experiment::Stream => stream::cells(context),
                Experiment::Align => align::cells(context, in_run, budget_ns),
                Experiment::Zones => zones::cells(context, &shape, in_run),
                Experiment::Stripe => stripe::cells(context),
                // One question to all targets together.
                Experiment::Scale => Vec::new(),
            });
        }
        if targets.len() > 1 {
            for cell in &mut cells[first..] {
                cell.id = format!("{}@{}", cell.id, context.target.index);
            }
        }
    }
    let mut notes = Vec::new();
    if experiments.contains(&Experiment::Zones) {
        notes.extend(shape.note);
    }
    let mut ramps_ns = 0;
    let mut rounds = match experiments {
        [Experiment::Zones] => shape.runs,
        // The order of the requests is a part of the question, and one pass answers it.
        [Experiment::Stripe] => 1,
        _ => ROUNDS,
    };
    if experiments.contains(&Experiment::Scale)
        && let Some(first) = contexts.first()
    {
        let grid = scale::grid(first, in_run, budget_ns);
        cells.extend(scale::cells(&contexts, &grid, in_run));
        // Every visit has its ramp, so a question with ramps is asked once.
        if !in_run && grid.stagger_ns > 0 {
            rounds = 1;
        }
        ramps_ns = grid.ramps_ns(first.ops.len()).saturating_mul(u64::from(rounds));
        notes.extend(grid.note);
        if ramps_ns >= budget_ns {
            notes.push(format!(
                "starting the streams of scale one after the other takes {} in all, more than the budget of {}: a shorter \
                 --stagger takes less",
                Nanos(ramps_ns),
                Nanos(budget_ns)
            ));
        }
    }
    if cells.is_empty() {
        return Err(PlanError::Nothing("the options leave no cell on these targets".into()));
    }
    let budget_ns = time_of(&mut cells, &contexts, in_run, ramps_ns, budget_ns);
    Ok(Plan { cells, budget_ns, runtime_ns: options.runtime_ns, precision: options.precision, rounds, notes })
}

/// The time that the cells get together: what was asked for per cell, else the budget; none to speak of for complete
/// passes that were asked for by number, or whose time is virtual.
fn time_of(
    cells: &mut [Cell],
    contexts: &[PlanContext<'_>],
    in_run: bool,
    ramps_ns: u64,
    budget_ns: u64,
) -> u64 {
    let Some(options) = contexts.first().map(|context| context.options) else { return budget_ns };
    if let Some(runtime_ns) = options.runtime_ns {
        cells.iter_mut().for_each(|cell| cell.weight = 1.0);
        let running = cells.iter().filter(|cell| cell.not_applicable.is_none()).count() as u64;
        return runtime_ns.saturating_mul(running.max(1)).saturating_add(ramps_ns);
    }
    if in_run || options.budget_source == BudgetSource::Requested {
        return budget_ns;
    }
    let all_passes = cells.iter().all(|cell| matches!(cell.extent, Extent::Pass { .. }));
    let is_virtual = contexts.iter().all(|context| context.target.kind == TargetKind::Sim);
    let by_number = options.runs.is_some() || options.positions != Positions::Default;
    let is_zones = cells.iter().all(|cell| cell.experiment == Experiment::Zones);
    if all_passes && (is_virtual || (is_zones && by_number)) { UNLIMITED_NS } else { budget_ns }
}

fn check_room(target: &Target, options: &PlanOptions) -> Result<(), PlanError> {
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
    if target.size_bytes - options.offset_bytes.min(target.size_bytes) < block_bytes {
        return Err(PlanError::TooSmall {
            target: target.name.clone(),
            size_bytes: target.size_bytes,
            block_bytes,
        });
    }
    Ok(())
}
