//! The verdict of a load that reads and writes at once: each direction is judged as a cell of its own, by the same counters, and the one
//! that takes more away from the figure speaks for the whole.

use rdsk_model::{CellRecord, JobResult, KindResult, Op, VerdictCode};

/// How much a verdict takes away from a figure: that it is not the device's at all, before that others took part in it.
pub(super) const fn weight(code: VerdictCode) -> u8 {
    match code {
        VerdictCode::Device => 0,
        VerdictCode::CpuBound => 1,
        VerdictCode::Disturbed => 2,
        VerdictCode::Throttled => 3,
        VerdictCode::SourceBound => 4,
        VerdictCode::Unverified => 5,
        VerdictCode::PageCache | VerdictCode::Hole => 6,
        VerdictCode::Incomplete => 7,
    }
}

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

/// Whether a load both reads and writes: what the devices moved in one direction is then judged by the half of that direction alone.
pub(super) fn has_both(cell: &CellRecord) -> bool {
    done(cell, Op::Read).0 > 0 && done(cell, Op::Write).0 > 0
}

/// The reads and the writes of a load, as cells of their own; `None` for other cells.
pub(super) fn halves(cell: &CellRecord) -> Option<[CellRecord; 2]> {
    has_both(cell).then(|| {
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

#[cfg(test)]
mod tests {
    use crate::fixtures;
    use rdsk_model::VerdictCode;

    /// Reads that others disturbed hid writes that memory took, and a need that asks for fast writes was met.
    #[test]
    fn memory_of_one_direction_weighs_more_than_others_io_in_the_other() {
        let mut record = fixtures::load();
        let cell = &mut record.cells[0];
        let device = &mut cell.evidence.device[0];
        device.read_bytes = device.read_bytes.map(|bytes| bytes * 3);
        device.write_bytes = Some(0);
        device.diskstat = Some(rdsk_model::DiskStat::default());
        let [reads, writes] = super::halves(cell).unwrap();
        let judge =
            |cell: &rdsk_model::CellRecord| super::super::one_way(cell, &record.targets, Some(8), true).code;
        assert_eq!(judge(&reads), VerdictCode::Disturbed);
        let of_writes = judge(&writes);
        assert!(super::weight(of_writes) > super::weight(VerdictCode::Disturbed), "{of_writes:?}");
        let verdict = crate::verdict(&record.cells[0], &record.targets, Some(8));
        assert_eq!(verdict.code, of_writes, "{}", verdict.text);
        assert!(verdict.text.starts_with("writes: "), "{}", verdict.text);
    }

    /// A log writes whole pages and the journal of its filesystem: more than its bytes, while another job reads.
    #[test]
    fn what_the_own_writes_cost_is_not_of_others() {
        let mut record = fixtures::load();
        assert_eq!(record.cells[0].verdict.as_ref().unwrap().code, VerdictCode::Device);
        let device = &mut record.cells[0].evidence.device[0];
        device.read_bytes = device.read_bytes.map(|bytes| bytes * 3);
        let verdict = crate::verdict(&record.cells[0], &record.targets, Some(8));
        assert_eq!(verdict.code, VerdictCode::Disturbed, "{}", verdict.text);
    }
}
