//! `zones`: speed by position. Every pass visits the same positions in a different order, so that read-ahead cannot turn
//! them into one stream and drift shows as a difference between passes. In ascending order every pass but the first begins
//! elsewhere, so that its time is not its position. It plans cells and issues nothing.

use crate::context::{PlanContext, Scope, device_path, size_word};
use crate::question::Question;
use crate::request::{BudgetSource, PlanOptions, PositionOrder, Positions};
use rdsk_model::{CacheState, Cell, Experiment, Extent, IoPath, Op, Pattern, Points, TargetKind};

/// The report's block sizes; it calls them MB, and they are those of dd's `bs=1m`.
const SIZES: [u64; 4] = [1 << 20, 5 << 20, 10 << 20, 20 << 20];
/// Positions on the target, unless requested or shortened.
const POSITIONS: u64 = 200;
const RUNS: u32 = 10;
/// A plan is shortened to no fewer passes and positions.
const MIN_RUNS: u32 = 3;
const MIN_POSITIONS: u64 = 40;
/// Positions in a whole run.
const POSITIONS_IN_RUN: u64 = 40;
/// Passes and most blocks of a pass, of all sizes and targets together, where every block is read because time is free.
const FREE_RUNS: u32 = 3;
const MOST_FREE_BLOCKS: u64 = 150_000;
/// Assumed rate of a device in bytes per second, if none is known: a rotational disk, any other device.
const GUESSED_DISK: f64 = 100e6;
const GUESSED_OTHER: f64 = 500e6;
/// Kernel names of virtual devices: virtio, Xen, loop.
const VIRTUAL: [&str; 3] = ["vd", "xvd", "loop"];
/// Time of one I/O besides the transfer: a seek and half a revolution.
const GUESSED_SEEK_S: f64 = 0.013;
/// The part of the budget that the passes may take.
const PLANNED_SHARE: f64 = 0.8;
/// Blocks that the target must hold at least, to separate positions.
const MIN_BLOCKS: u64 = 8;

pub(crate) struct Zones;

impl Question for Zones {
    fn cells(&self, context: &PlanContext<'_>, contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let shape = shape(contexts);
        let mut cells = Vec::new();
        // Reads unless writes are requested by name.
        let ops = if context.options.ops.is_some() { context.ops.clone() } else { vec![Op::Read] };
        for op in ops.into_iter().filter(|op| context.ops.contains(op)) {
            for &block_bytes in &shape.sizes {
                cells.push(cell(context, &shape, op, block_bytes));
            }
        }
        cells
    }

    fn rounds(&self, contexts: &[PlanContext<'_>]) -> u32 {
        shape(contexts).runs
    }

    fn notes(&self, contexts: &[PlanContext<'_>]) -> Vec<String> {
        shape(contexts).note.into_iter().collect()
    }

    fn has_fixed_passes(&self, options: &PlanOptions) -> bool {
        options.runs.is_some() || options.positions != Positions::Default
    }
}

/// The size of the measurement.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    sizes: Vec<u64>,
    positions: Option<u64>,
    runs: u32,
    order: PositionOrder,
    /// What was shortened, in words.
    note: Option<String>,
}

/// The shape for all targets: what was requested stays, the rest is shortened until it fits the time.
fn shape(contexts: &[PlanContext<'_>]) -> Shape {
    let PlanContext { options, scope, .. } = contexts[0];
    let in_run = scope == Scope::WholeRun;
    let positions = match options.positions {
        Positions::Full => None,
        Positions::Count(count) => Some(count),
        Positions::Default if in_run => Some(POSITIONS_IN_RUN),
        Positions::Default => Some(POSITIONS),
    };
    let sizes = match &options.block_bytes {
        Some(sizes) => sizes.clone(),
        None if in_run => SIZES[..1].to_vec(),
        None => SIZES.to_vec(),
    };
    let runs = options.runs.unwrap_or(if in_run { 2 } else { RUNS });
    let order = options.position_order.unwrap_or(PositionOrder::Shuffled);
    let mut shape = Shape { sizes, positions, runs, order, note: None };
    if as_in_report(&mut shape, contexts) {
        return shape;
    }
    let is_simulated = contexts.iter().all(|context| context.target.kind == TargetKind::Sim);
    // Virtual time costs nothing unless a budget is requested.
    let is_free = is_simulated && options.budget_source == BudgetSource::Default;
    if !in_run && !Zones.has_fixed_passes(options) && !is_free {
        shorten(&mut shape, contexts);
    }
    shape
}

/// Whether every block is read, one after the other, as the report did: only so do neighbouring blocks show the bands that
/// the time between two requests makes. It takes hours of a disk's time, so that only simulated disks do it unasked.
fn as_in_report(shape: &mut Shape, contexts: &[PlanContext<'_>]) -> bool {
    let options = contexts[0].options;
    let is_unasked = !Zones.has_fixed_passes(options)
        && options.block_bytes.is_none()
        && options.position_order.is_none()
        && contexts.iter().all(PlanContext::is_time_free);
    let whole = Shape {
        positions: None,
        runs: FREE_RUNS,
        order: PositionOrder::Ascending,
        note: Some(
            "zones read every block in ascending order, as time costs nothing on a simulated disk; --order shuffled samples \
             positions as on a real one"
                .to_owned(),
        ),
        ..shape.clone()
    };
    let of_target = |context| whole.sizes.iter().map(|&size| positions(&whole, context, size)).sum::<u64>();
    let fits = is_unasked && contexts.iter().map(of_target).sum::<u64>() <= MOST_FREE_BLOCKS;
    if fits {
        *shape = whole;
    }
    fits
}

fn shorten(shape: &mut Shape, contexts: &[PlanContext<'_>]) {
    let budget_s = contexts[0].budget_ns as f64 / 1e9 * PLANNED_SHARE;
    let before = shape.clone();
    let too_long =
        |shape: &Shape| contexts.iter().map(|context| seconds(shape, context)).sum::<f64>() > budget_s;
    while too_long(shape) && shape.runs > MIN_RUNS {
        shape.runs -= 1;
    }
    let is_default = contexts[0].options.block_bytes.is_none();
    while too_long(shape) && is_default && shape.sizes.len() > 2 {
        shape.sizes.pop();
    }
    while too_long(shape) && shape.positions.is_some_and(|positions| positions > MIN_POSITIONS) {
        shape.positions = shape.positions.map(|positions| (positions * 3 / 4).max(MIN_POSITIONS));
    }
    if *shape != before {
        let places = |shape: &Shape| {
            let of_target =
                |context| shape.sizes.iter().map(move |&size| positions(shape, context, size)).max();
            contexts.iter().filter_map(of_target).max().unwrap_or(0)
        };
        shape.note = Some(format!(
            "zones was shortened to fit the budget: {} sweeps, {} positions and {} block sizes instead of {}, {} and {}; --runs, \
             --points or a larger --budget give more",
            shape.runs,
            places(shape),
            shape.sizes.len(),
            before.runs,
            places(&before),
            before.sizes.len()
        ));
    }
}

/// The estimated time of the shape on one target.
fn seconds(shape: &Shape, context: &PlanContext<'_>) -> f64 {
    // What a virtual device reports as rotational says nothing about the disk below it.
    let is_virtual = |name: &str| VIRTUAL.iter().any(|prefix| name.starts_with(prefix));
    let device = context.target.device.as_ref().filter(|device| !is_virtual(&device.name));
    let rotates = device.and_then(|device| device.rotational) == Some(true);
    let rate = context.target_bytes_per_s.unwrap_or(if rotates { GUESSED_DISK } else { GUESSED_OTHER });
    let seek_s = if rotates { GUESSED_SEEK_S } else { 0.0 };
    let pass_ns = |size: &u64| {
        let positions = positions(shape, context, *size) as f64;
        positions * (*size as f64 / rate + seek_s)
    };
    shape.sizes.iter().map(pass_ns).sum::<f64>() * f64::from(shape.runs) * context.ops.len() as f64
}

fn positions(shape: &Shape, context: &PlanContext<'_>, block_bytes: u64) -> u64 {
    let most = context.room_bytes() / block_bytes.max(1);
    shape.positions.map_or(most, |positions| positions.min(most))
}

fn cell(context: &PlanContext<'_>, shape: &Shape, op: Op, block_bytes: u64) -> Cell {
    let path = device_path(context.target);
    let room_bytes = context.room_bytes();
    let mut workload = context.workload(op, path, block_bytes, room_bytes);
    workload.engine = match context.target.kind {
        TargetKind::Sim => workload.engine,
        // One position at a time: a ring has no advantage.
        _ => rdsk_model::EngineKind::Sync,
    };
    workload.pattern = match shape.order {
        PositionOrder::Shuffled => Pattern::Random,
        PositionOrder::Ascending => Pattern::Sequential,
    };
    if path == IoPath::Buffered {
        workload.cache = CacheState::Cold;
    }
    let align_bytes = context.target.direct_align_bytes.unwrap_or(512).max(4096);
    let mut points = spread(
        context.options.offset_bytes,
        room_bytes,
        block_bytes,
        align_bytes,
        positions(shape, context, block_bytes),
    );
    points.moves_start = shape.order == PositionOrder::Ascending;
    let pass_bytes = points.pass_bytes(block_bytes);
    workload.align_bytes = align_bytes;
    let too_small = (block_bytes.saturating_mul(MIN_BLOCKS) > room_bytes).then(|| {
        format!("the target holds fewer than {MIN_BLOCKS} blocks of this size, too few to separate positions")
    });
    workload.points = Some(points);
    let in_run = context.scope == Scope::WholeRun;
    let extent =
        if in_run { Extent::Passes { bytes: pass_bytes } } else { Extent::Pass { bytes: pass_bytes } };
    let id = format!("zones/{op}/{}", size_word(block_bytes));
    let weight = if in_run { 3.0 } else { pass_bytes as f64 / (1u64 << 20) as f64 };
    let mut cell = context.cell(id, Experiment::Zones, workload, extent, weight.max(0.1));
    cell.not_applicable = cell.not_applicable.or(too_small);
    cell
}

/// `count` blocks spread evenly over the room, the first at its start and the last at its end; one after the other if they
/// fill it.
fn spread(begin: u64, room_bytes: u64, block_bytes: u64, align_bytes: u64, count: u64) -> Points {
    let last = room_bytes.saturating_sub(block_bytes);
    let fills = count.saturating_mul(block_bytes) + block_bytes > room_bytes;
    let offset = |index: u64| {
        if fills {
            return begin + index * block_bytes;
        }
        let share = u128::from(last) * u128::from(index) / u128::from(count.max(2) - 1);
        let share = u64::try_from(share).unwrap_or(last);
        begin + share - share % align_bytes
    };
    Points { offset_bytes: (0..count).map(offset).collect(), ..Points::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spread_from_the_first_byte_to_the_last() {
        let points = spread(0, 1 << 30, 1 << 20, 4096, 5);
        let expected: Vec<u64> = [0u64, 268_173_312, 536_346_624, 804_519_936, 1_072_693_248].to_vec();
        assert_eq!(points.offset_bytes, expected);
        let full = spread(4096, (10 << 20) + 512, 1 << 20, 4096, 10);
        assert_eq!(full.offset_bytes[9], 4096 + (9 << 20));
        assert_eq!(spread(0, 1 << 20, 1 << 20, 4096, 1).offset_bytes, [0]);
    }
}
