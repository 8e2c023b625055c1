//! `stripe`: the chunk and the full stripe of an array, from what requests of chosen sizes at chosen offsets take. Which
//! ones those are decides [`rdsk_finding::stripe::sweep`]. It plans cells and runs nothing.

use crate::assemble::{Ground, size_word};
use crate::options::Places;
use rdsk_finding::stripe::{SweepOptions, sweep};
use rdsk_model::{Cell, EngineKind, Experiment, Extent, IoPath, Op, Points, Sync, TargetKind};
use rdsk_units::Bytes;

/// What a request may have at most where the kernel does not say what it leaves whole.
const LARGEST_UNKNOWN_BYTES: u64 = 1 << 20;
/// The largest chunk that the sweep looks for.
const LARGEST_CHUNK_BYTES: u64 = 4 << 20;

/// One cell per direction: writes where they are allowed, else reads; both where both are asked for.
pub(crate) fn cells(ground: &Ground<'_>) -> Vec<Cell> {
    let ops = match &ground.options.ops {
        Some(_) => ground.ops.clone(),
        None => ground.ops.iter().copied().max().into_iter().collect(),
    };
    ops.into_iter().map(|op| cell(ground, op)).collect()
}

fn cell(ground: &Ground<'_>, op: Op) -> Cell {
    // From a multiple of every chunk that is looked for, so that boundaries lie at multiples.
    let begin = ground.options.offset_bytes.next_multiple_of(LARGEST_CHUNK_BYTES);
    let room_bytes = ground.target.size_bytes.saturating_sub(begin);
    let wish = sweep_options(ground, room_bytes);
    let probes = sweep(&wish);
    let points = Points {
        offset_bytes: probes.iter().map(|probe| begin + probe.offset_bytes).collect(),
        block_bytes: probes.iter().map(|probe| probe.bytes).collect(),
    };
    let largest = probes.iter().map(|probe| probe.bytes).max().unwrap_or(wish.unit_bytes());
    // Past the page cache: it would hide where a request goes.
    let mut workload = ground.workload(op, IoPath::Direct, largest, room_bytes);
    workload.offset_bytes = begin;
    workload.engine = match ground.target.kind {
        TargetKind::Sim => EngineKind::Sim,
        _ => EngineKind::Sync,
    };
    workload.align_bytes = wish.unit_bytes();
    // Else a write cache would answer for the members.
    workload.sync = if op == Op::Write { Sync::Dsync } else { Sync::None };
    let bytes = points.pass_bytes(largest);
    let has_points = !points.is_empty();
    workload.points = has_points.then_some(points);
    let id = format!("stripe/{op}");
    let mut cell = ground.cell(id, Experiment::Stripe, workload, Extent::Pass { bytes }, 1.0);
    if !has_points {
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
fn sweep_options(ground: &Ground<'_>, room_bytes: u64) -> SweepOptions {
    let align_bytes = ground.target.direct_align_bytes.unwrap_or(512);
    let usual = SweepOptions::new(room_bytes, align_bytes, ground.options.seed);
    let whole = ground.target.device.as_ref().and_then(|device| device.max_request_bytes);
    let largest_bytes = usual.largest_bytes.min(whole.unwrap_or(LARGEST_UNKNOWN_BYTES));
    let probes = match ground.options.places {
        Places::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        Places::Default | Places::Full => usual.probes,
    };
    SweepOptions { largest_bytes, probes, ..usual }
}
