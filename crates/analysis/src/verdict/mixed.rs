//! The verdict of a load that reads and writes at once: each direction is judged as a cell of its own, by the same counters, and the first
//! that is not the device's speaks for the whole.

use rdsk_model::{CellRecord, JobResult, KindResult, Op};

/// What the jobs of a cell did in one direction: I/Os and bytes.
fn done(cell: &CellRecord, op: Op) -> (u64, u64) {
    let kind = |job: &JobResult| -> Option<KindResult> {
        match op {
            Op::Read => job.reads.clone(),
            Op::Write => job.writes.clone(),
        }
    };
    let kinds = cell.result.jobs.iter().filter_map(kind);
    kinds.fold((0, 0), |(ops, bytes), kind| (ops + kind.ops, bytes + kind.bytes))
}

/// The bytes of the direction that the cell is not of, in a load that has both; 0 for other cells.
pub(super) fn own_opposite_bytes(cell: &CellRecord) -> u64 {
    let other = if cell.workload.op == Op::Read { Op::Write } else { Op::Read };
    done(cell, other).1
}

/// The reads and the writes of a load, as cells of their own; `None` for other cells.
pub(super) fn halves(cell: &CellRecord) -> Option<[CellRecord; 2]> {
    let ran = |op| done(cell, op).0 > 0;
    (ran(Op::Read) && ran(Op::Write)).then(|| {
        [Op::Read, Op::Write].map(|op| {
            let mut half = cell.clone();
            let (ops, bytes) = done(cell, op);
            half.workload.op = op;
            (half.result.ops, half.result.bytes, half.result.asked_bytes) =
                (Some(ops), Some(bytes), Some(bytes));
            half
        })
    })
}
