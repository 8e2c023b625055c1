//! `stripe`: the chunk and the full stripe of an array, from the cost of requests of chosen sizes at chosen offsets.
//! [`rdsk_analysis::stripe`] chooses them. It plans cells and issues nothing.

use crate::context::{PlanContext, size_word};
use crate::options::Positions;
use crate::question::Question;
use rdsk_analysis::stripe::{AdaptiveProbes, MAX_ADAPTIVE_PROBES, SweepOptions, sweep};
use rdsk_model::{
    BufferPages, Cell, ChosenFirst, EngineKind, Experiment, Extent, IoPath, Op, Points, PositionChooser,
    Sync, TargetKind, Workload,
};
use rdsk_units::Bytes;

/// Largest request if the kernel does not say which sizes it does not split.
const DEFAULT_MAX_REQUEST_BYTES: u64 = 1 << 20;
/// Units that a span must have for requests that are chosen one by one.
const MIN_UNITS: u64 = 16;
/// The largest chunk that the sweep looks for.
const MAX_CHUNK_BYTES: u64 = 4 << 20;

/// One cell per direction: writes if they are allowed, else reads; both if both are requested. On an array whose members
/// are visible, reads of chosen positions accompany the writes: it takes both to tell which member holds data and which
/// holds parity.
pub(crate) struct Stripe;

impl Question for Stripe {
    fn cells(&self, context: &PlanContext<'_>, _all: &[PlanContext<'_>]) -> Vec<Cell> {
        let ops = match &context.options.ops {
            Some(_) => context.ops.clone(),
            None => context.ops.iter().copied().max().into_iter().collect(),
        };
        let has_members = context.target.device.as_ref().is_some_and(|device| device.array.is_some());
        let is_companion = has_members && !ops.contains(&Op::Read);
        let mut cells: Vec<Cell> =
            ops.into_iter().map(|op| cell(context, op, Requests::Listed, has_members)).collect();
        if is_companion {
            cells.push(cell(context, Op::Read, Requests::Chosen, has_members));
        }
        cells
    }

    // The order of the requests is part of the question, and one pass answers it.
    fn rounds(&self, _all: &[PlanContext<'_>]) -> u32 {
        1
    }

    fn reads_members(&self) -> bool {
        true
    }

    fn chooser(&self, workload: &Workload) -> Option<Box<dyn PositionChooser>> {
        Some(Box::new(AdaptiveProbes::of(workload)))
    }
}

/// Which requests a cell issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// Those that the members' counters call for, if they are visible, then those of the sweep.
    Listed,
    /// Only those that the members' counters call for.
    Chosen,
}

fn cell(context: &PlanContext<'_>, op: Op, requests: Requests, has_members: bool) -> Cell {
    // From a multiple of the largest chunk, so that boundaries lie at multiples.
    let begin = context.options.offset_bytes.next_multiple_of(MAX_CHUNK_BYTES);
    let room_bytes = context.target.size_bytes.saturating_sub(begin);
    let wish = sweep_options(context, room_bytes);
    let probes = if requests == Requests::Listed { sweep(&wish) } else { Vec::new() };
    let is_virtual = context.target.kind == TargetKind::Sim;
    let points = Points {
        offset_bytes: probes.iter().map(|probe| begin + probe.offset_bytes).collect(),
        block_bytes: probes.iter().map(|probe| probe.bytes).collect(),
        // Virtual time allows both, and a model's latencies verify what is counted.
        chosen_first: has_members.then_some(if is_virtual {
            ChosenFirst::Besides
        } else {
            ChosenFirst::Enough
        }),
        ..Points::default()
    };
    let largest = probes.iter().map(|probe| probe.bytes).max().unwrap_or(wish.unit_bytes());
    // Direct: the page cache would hide where a request goes.
    let mut workload = context.workload(op, IoPath::Direct, largest, room_bytes);
    workload.offset_bytes = begin;
    workload.engine = if is_virtual { EngineKind::Sim } else { EngineKind::Sync };
    workload.align_bytes = wish.unit_bytes();
    // Durable writes: a write cache would hide the members.
    workload.sync = if op == Op::Write { Sync::Dsync } else { Sync::None };
    let chosen = if has_members { MAX_ADAPTIVE_PROBES as u64 * wish.unit_bytes() } else { 0 };
    let bytes = points.pass_bytes(largest) + chosen;
    // Requests are to reach the members as they were chosen, not cut where the memory of a buffer is.
    workload.buffers = workload.buffers.map(|_| BufferPages::Huge);
    let has_positions = !points.is_empty() || (has_members && room_bytes >= MIN_UNITS * wish.unit_bytes());
    workload.points = has_positions.then_some(points);
    let id = format!("stripe/{op}");
    let mut cell = context.cell(id, Experiment::Stripe, workload, Extent::Pass { bytes }, 1.0);
    if !has_positions {
        let why = format!(
            "{} have no room for a sweep with requests of up to {}",
            Bytes(room_bytes),
            size_word(wish.largest_bytes)
        );
        cell.not_applicable = cell.not_applicable.or(Some(why));
    }
    cell
}

/// The sweep for a target: requests that the kernel does not split, because the parts of a split one run in parallel.
fn sweep_options(context: &PlanContext<'_>, room_bytes: u64) -> SweepOptions {
    let align_bytes = context.target.direct_align_bytes.unwrap_or(512);
    let usual = SweepOptions::new(room_bytes, align_bytes, context.options.seed());
    let device = context.target.device.as_ref();
    let whole = device.and_then(|device| device.max_request_bytes).unwrap_or(DEFAULT_MAX_REQUEST_BYTES);
    // md splits at its chunks and reports the chunk as the largest request; larger requests go to several members, which is
    // what the sweep needs.
    let is_cut_by_md =
        device.and_then(|device| device.array.as_ref()).is_some_and(|array| array.source == "md");
    let whole = if is_cut_by_md { whole.max(DEFAULT_MAX_REQUEST_BYTES) } else { whole };
    let largest_bytes = usual.largest_bytes.min(whole);
    let probes = match context.options.positions {
        Positions::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        Positions::Default | Positions::Full => usual.probes,
    };
    SweepOptions { largest_bytes, probes, ..usual }
}
