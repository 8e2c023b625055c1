//! `stripe`: the chunk and the full stripe of an array, from what requests of chosen sizes at chosen offsets take. Which
//! ones those are decides [`rdsk_analysis::stripe::sweep`]. It plans cells and runs nothing.

use crate::context::{PlanContext, size_word};
use crate::options::Positions;
use crate::question::Question;
use rdsk_analysis::stripe::{SweepOptions, WALK_REQUESTS, Walk, sweep};
use rdsk_model::{
    Cell, ChosenFirst, EngineKind, Experiment, Extent, IoPath, Op, PlaceChooser, Points, Sync, TargetKind,
    Workload,
};
use rdsk_units::Bytes;

/// What a request may have at most where the kernel does not say what it leaves whole.
const DEFAULT_MAX_REQUEST_BYTES: u64 = 1 << 20;
/// Fewest units of a span in which places are chosen one by one.
const MIN_UNITS: u64 = 16;
/// The largest chunk that the sweep looks for.
const MAX_CHUNK_BYTES: u64 = 4 << 20;

/// One cell per direction: writes where they are allowed, else reads; both where both are asked for. On an array whose members
/// can be seen, reads of chosen places stand beside the writes, since who holds the data and who the parity takes both.
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

    fn chooser(&self, workload: &Workload) -> Option<Box<dyn PlaceChooser>> {
        Some(Box::new(Walk::of(workload)))
    }
}

/// Which places a cell visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// Those of the sweep, behind those that the members' counters ask for where they can be seen.
    Listed,
    /// Those that the members' counters ask for, only.
    Chosen,
}

fn cell(context: &PlanContext<'_>, op: Op, requests: Requests, has_members: bool) -> Cell {
    // From a multiple of every chunk that is looked for, so that boundaries lie at multiples.
    let begin = context.options.offset_bytes.next_multiple_of(MAX_CHUNK_BYTES);
    let room_bytes = context.target.size_bytes.saturating_sub(begin);
    let wish = sweep_options(context, room_bytes);
    let probes = if requests == Requests::Listed { sweep(&wish) } else { Vec::new() };
    let is_virtual = context.target.kind == TargetKind::Sim;
    let points = Points {
        offset_bytes: probes.iter().map(|probe| begin + probe.offset_bytes).collect(),
        block_bytes: probes.iter().map(|probe| probe.bytes).collect(),
        // In virtual time both can be had, and a model's latencies are a check of what is counted.
        chosen_first: has_members.then_some(if is_virtual {
            ChosenFirst::Besides
        } else {
            ChosenFirst::Enough
        }),
    };
    let largest = probes.iter().map(|probe| probe.bytes).max().unwrap_or(wish.unit_bytes());
    // Past the page cache: it would hide where a request goes.
    let mut workload = context.workload(op, IoPath::Direct, largest, room_bytes);
    workload.offset_bytes = begin;
    workload.engine = if is_virtual { EngineKind::Sim } else { EngineKind::Sync };
    workload.align_bytes = wish.unit_bytes();
    // Else a write cache would answer for the members.
    workload.sync = if op == Op::Write { Sync::Dsync } else { Sync::None };
    let chosen = if has_members { WALK_REQUESTS as u64 * wish.unit_bytes() } else { 0 };
    let bytes = points.pass_bytes(largest) + chosen;
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

/// The sweep for a target: requests that the kernel hands on whole, since the parts of a cut one run side by side.
fn sweep_options(context: &PlanContext<'_>, room_bytes: u64) -> SweepOptions {
    let align_bytes = context.target.direct_align_bytes.unwrap_or(512);
    let usual = SweepOptions::new(room_bytes, align_bytes, context.options.seed);
    let device = context.target.device.as_ref();
    let whole = device.and_then(|device| device.max_request_bytes).unwrap_or(DEFAULT_MAX_REQUEST_BYTES);
    // md cuts at its chunks and says so as if it were the largest request; what is larger goes to several members, as it should.
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
