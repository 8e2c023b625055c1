//! `stripe`: the chunk and the full stripe of an array. Where the kernel describes it, what whole stripes and parts of them cost; else the
//! requests of a sweep, from whose latencies [`rdsk_analysis::stripe`] infers the geometry. It plans cells and issues nothing.

use crate::context::{PlanContext, size_word};
use crate::question::{Question, ROUNDS};
use crate::request::Positions;
use rdsk_analysis::stripe::{Described, StripeRequest, SweepOptions, requests, sweep};
use rdsk_model::{
    BufferPages, Cell, EngineKind, Experiment, Extent, IoPath, Op, Pattern, Points, Sync, TargetKind,
    Workload,
};
use rdsk_units::Bytes;

/// Largest request if the kernel does not say which sizes it does not split.
const DEFAULT_MAX_REQUEST_BYTES: u64 = 1 << 20;
/// The largest chunk that the sweep looks for.
const MAX_CHUNK_BYTES: u64 = 4 << 20;
/// Requests of each kind in a round where the kernel describes the array: fewer of large ones, whose rounds have about so many bytes.
const ROUND_REQUESTS: u64 = 32;
const MIN_ROUND_REQUESTS: u64 = 8;
const ROUND_BYTES: u64 = 16 << 20;

/// Writes if they are allowed, else reads; both if both are requested.
pub(crate) struct Stripe;

impl Question for Stripe {
    fn cells(&self, context: &PlanContext<'_>, _contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let ops = match &context.options.ops {
            Some(_) => context.ops.clone(),
            None => context.ops.iter().copied().max().into_iter().collect(),
        };
        let described = Described::new(context.target);
        let of_op = |op: Op| match &described {
            Some(described) => {
                let requests = requests(described, context.target);
                requests.iter().map(|&request| cost_cell(context, op, request, requests.len())).collect()
            }
            None => vec![sweep_cell(context, op)],
        };
        ops.into_iter().flat_map(of_op).collect()
    }

    // The order of the requests of a sweep is part of the question, and one pass answers it.
    fn rounds(&self, contexts: &[PlanContext<'_>]) -> u32 {
        let has_words = |context: &PlanContext<'_>| Described::new(context.target).is_some();
        if contexts.iter().all(has_words) { ROUNDS } else { 1 }
    }
}

/// Requests of one of several kinds at random places where the words put them.
fn cost_cell(context: &PlanContext<'_>, op: Op, request: StripeRequest, kinds: usize) -> Cell {
    let (begin, room_bytes) = span(context);
    let mut workload = workload(context, op, request.bytes, room_bytes);
    workload.offset_bytes = begin;
    workload.pattern = Pattern::Random;
    (workload.align_bytes, workload.shift_bytes) = (request.align_bytes, request.shift_bytes);
    if let Some(engine) = context.options.engine {
        workload.engine = engine;
    }
    let count = match context.options.positions {
        Positions::Count(count) => count.div_ceil(u64::from(ROUNDS) * kinds as u64).max(1),
        Positions::Default | Positions::Full => {
            (ROUND_BYTES / request.bytes).clamp(MIN_ROUND_REQUESTS, ROUND_REQUESTS)
        }
    };
    let extent = Extent::Pass { bytes: request.bytes.saturating_mul(count) };
    let id = format!("stripe/{op}/{}", request.kind.word());
    let mut cell = context.cell(id, Experiment::Stripe, workload, extent, 1.0);
    // One of them lies within any span of this length, wherever that begins.
    if room_bytes < request.bytes.saturating_add(request.align_bytes) {
        let why = format!("{} have no room for requests of {}", Bytes(room_bytes), Bytes(request.bytes));
        cell.not_applicable = cell.not_applicable.or(Some(why));
    }
    cell
}

/// All requests of a sweep, in their order.
fn sweep_cell(context: &PlanContext<'_>, op: Op) -> Cell {
    let (begin, room_bytes) = span(context);
    let wish = sweep_options(context, room_bytes);
    let probes = sweep(&wish);
    let points = Points {
        offset_bytes: probes.iter().map(|probe| begin + probe.offset_bytes).collect(),
        block_bytes: probes.iter().map(|probe| probe.bytes).collect(),
        ..Points::default()
    };
    let largest = probes.iter().map(|probe| probe.bytes).max().unwrap_or(wish.unit_bytes());
    let bytes = points.pass_bytes(largest);
    let mut workload = workload(context, op, largest, room_bytes);
    workload.offset_bytes = begin;
    workload.align_bytes = wish.unit_bytes();
    let has_positions = !points.is_empty();
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

/// Where the requests begin, at a multiple of the largest chunk, so that boundaries lie at multiples; and the bytes from there on.
fn span(context: &PlanContext<'_>) -> (u64, u64) {
    let begin = context.options.offset_bytes.next_multiple_of(MAX_CHUNK_BYTES);
    (begin, context.target.size_bytes.saturating_sub(begin))
}

/// Direct requests, since the page cache would hide where they go, and durable writes, since a write cache would hide the members. They
/// reach the members as they were chosen, not cut where the memory of a buffer is.
fn workload(context: &PlanContext<'_>, op: Op, block_bytes: u64, room_bytes: u64) -> Workload {
    let mut workload = context.workload(op, IoPath::Direct, block_bytes, room_bytes);
    workload.engine = if context.target.kind == TargetKind::Sim { EngineKind::Sim } else { EngineKind::Sync };
    workload.sync = if op == Op::Write { Sync::Dsync } else { Sync::None };
    workload.buffers = workload.buffers.map(|_| BufferPages::Huge);
    workload
}

/// The sweep for a target: requests that the kernel does not split, because the parts of a split one run in parallel.
fn sweep_options(context: &PlanContext<'_>, room_bytes: u64) -> SweepOptions {
    let align_bytes = context.target.direct_align_bytes.unwrap_or(512);
    let usual = SweepOptions::new(room_bytes, align_bytes, context.options.seed());
    let device = context.target.device.as_ref();
    let whole = device.and_then(|device| device.max_request_bytes).unwrap_or(DEFAULT_MAX_REQUEST_BYTES);
    let probes = match context.options.positions {
        Positions::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        Positions::Default | Positions::Full => usual.probes,
    };
    SweepOptions { largest_bytes: usual.largest_bytes.min(whole), probes, ..usual }
}
