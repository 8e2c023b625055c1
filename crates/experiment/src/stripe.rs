//! `stripe`: the chunk and the full stripe of an array, from what single requests of chosen sizes and offsets cost. It
//! plans cells and runs nothing.

use crate::assemble::{Ground, device_path};
use rdsk_model::{Cell, Experiment, Extent, Op, Pattern, Points, Sync, TargetKind};

/// Requests unless `--points` says otherwise.
const PROBES: u64 = 6000;
const WEIGHT: f64 = 3.0;

/// The cells of one target; none in a run of everything, because the question needs thousands of requests.
pub(crate) fn cells(ground: &Ground<'_>, in_run: bool) -> Vec<Cell> {
    if in_run {
        return Vec::new();
    }
    // Writes tell more than reads: parity shows only in them.
    let op = if ground.ops.contains(&Op::Write) { Op::Write } else { Op::Read };
    let path = device_path(ground.target);
    let align_bytes = ground.target.direct_align_bytes.unwrap_or(512).max(4096);
    let room_bytes = ground.room_bytes();
    let count = ground.options.probes.unwrap_or(PROBES);
    let probes = rdsk_finding::stripe::sweep(room_bytes, align_bytes, ground.options.seed, count);
    let largest = probes.iter().map(|probe| probe.bytes).max().unwrap_or(align_bytes);
    let mut workload = ground.workload(op, path, largest, room_bytes);
    workload.align_bytes = align_bytes;
    if ground.target.kind != TargetKind::Sim {
        workload.engine = rdsk_model::EngineKind::Sync;
    }
    // The order was made at random when the probes were chosen.
    workload.pattern = Pattern::Sequential;
    workload.sync = if op == Op::Write { Sync::Dsync } else { Sync::None };
    let begin = ground.options.offset_bytes;
    workload.points = Some(Points {
        offset_bytes: probes.iter().map(|probe| begin + probe.offset_bytes).collect(),
        block_bytes: probes.iter().map(|probe| probe.bytes).collect(),
    });
    let bytes = probes.iter().map(|probe| probe.bytes).sum();
    let mut cell =
        ground.cell(format!("stripe/{op}"), Experiment::Stripe, workload, Extent::Pass { bytes }, WEIGHT);
    if probes.is_empty() {
        cell.not_applicable = Some("the target is too small to hold a stripe".into());
    }
    vec![cell]
}
