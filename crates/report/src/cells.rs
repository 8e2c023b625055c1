//! Reading cells for the pages: choosing them, their verdict word, why one has no figure. It judges nothing; verdicts
//! stand in the Record.

use rdsk_model::{CellRecord, DeviceEvidence, Experiment, Op, Record, StopReason, VerdictCode};

/// The cells of one experiment, in the order of the Record.
pub(crate) fn of(record: &Record, experiment: Experiment) -> impl Iterator<Item = &CellRecord> {
    record.cells.iter().filter(move |cell| cell.experiment == experiment)
}

/// The cells of one experiment that belong side by side: same direction, target and block size, in the order in which
/// the first of each group stands in the Record.
pub(crate) fn groups(record: &Record, experiment: Experiment) -> Vec<Vec<&CellRecord>> {
    let mut groups: Vec<Vec<&CellRecord>> = Vec::new();
    let key = |cell: &CellRecord| (cell.workload.op, cell.workload.targets.clone(), cell.workload.block_bytes);
    for cell in of(record, experiment) {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| key(first) == key(cell))) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

/// What tells a group from the others of its experiment: the direction, and the block size and the target where the
/// Record has several.
pub(crate) fn group_title(record: &Record, cell: &CellRecord) -> String {
    let mut title = cell.workload.op.to_string();
    let several_sizes = of(record, cell.experiment).any(|other| other.workload.block_bytes != cell.workload.block_bytes);
    if several_sizes {
        title.push_str(&format!(" {}", rdsk_units::Bytes(cell.workload.block_bytes).approx()));
    }
    if record.targets.len() > 1 {
        let target = cell.workload.targets.first().and_then(|&index| record.targets.get(index as usize));
        title.push_str(&format!(" {}", target.map_or("?", |target| target.name.as_str())));
    }
    title
}

/// The verdict in one word; what has no verdict says why: `n/a`, `failed`, `interrupted`.
pub(crate) fn verdict_word(cell: &CellRecord) -> String {
    match (&cell.verdict, cell.result.stop) {
        (_, StopReason::NotApplicable) => "n/a".into(),
        (Some(verdict), StopReason::Error) if verdict.code == VerdictCode::Incomplete => "failed".into(),
        (Some(verdict), StopReason::Error) => format!("{}, failed", verdict.code),
        (Some(verdict), StopReason::Interrupted) if verdict.code != VerdictCode::Incomplete => {
            format!("{}, cut short", verdict.code)
        }
        (Some(verdict), _) => verdict.code.to_string(),
        (None, stop) => stop.to_string(),
    }
}

/// Whether the figure is simply the device's.
pub(crate) fn is_device(cell: &CellRecord) -> bool {
    cell.verdict.as_ref().is_some_and(|verdict| verdict.code == VerdictCode::Device)
        && !matches!(cell.result.stop, StopReason::Error | StopReason::Interrupted)
}

/// The sentence behind the verdict word: the verdict's text, or why the cell has no figure.
pub(crate) fn why(cell: &CellRecord) -> &str {
    match &cell.verdict {
        Some(verdict) if cell.result.stop != StopReason::NotApplicable => &verdict.text,
        _ => &cell.result.why,
    }
}

/// The counters of the device under the cell's first target.
pub(crate) fn device(cell: &CellRecord) -> Option<&DeviceEvidence> {
    cell.evidence.device_of(*cell.workload.targets.first()?)
}

/// Requests in the cell's direction, until stable.
pub(crate) fn requests(cell: &CellRecord) -> Option<u64> {
    let device = device(cell)?;
    match cell.workload.op {
        Op::Read => device.reads,
        Op::Write => device.writes,
    }
}

/// Mean bytes of those requests.
pub(crate) fn request_bytes(cell: &CellRecord) -> Option<f64> {
    let bytes = match cell.workload.op {
        Op::Read => device(cell)?.read_bytes,
        Op::Write => device(cell)?.write_bytes,
    }?;
    let requests = requests(cell).filter(|&requests| requests > 0)?;
    Some(bytes as f64 / requests as f64)
}

/// Merges in the cell's direction.
pub(crate) fn merges(cell: &CellRecord) -> Option<u64> {
    match cell.workload.op {
        Op::Read => device(cell)?.read_merges,
        Op::Write => device(cell)?.write_merges,
    }
}

/// Bytes per second until everything was stable; `None` for reads.
pub(crate) fn stable_rate(cell: &CellRecord) -> Option<f64> {
    let ns = cell.result.to_stable_ns.filter(|&ns| ns > 0)?;
    Some(cell.result.bytes? as f64 / (ns as f64 / 1e9))
}

/// Bytes that the kernel read for this process, per I/O: the reads that writes cause.
pub(crate) fn read_per_io(cell: &CellRecord) -> Option<f64> {
    let ops = cell.result.ops.filter(|&ops| ops > 0)?;
    Some(cell.evidence.process.read_bytes? as f64 / ops as f64)
}
