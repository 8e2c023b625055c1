//! `uring-on-workers`: `io_uring` passes I/O to worker threads, because the target does not support non-blocking I/O or would have
//! had to wait.

use super::prelude::*;
use rdsk_model::Target;

pub(super) const RULE: Rule = Rule::new("uring-on-workers", Severity::Cause, Needs::Facts, check);

/// Share of a cell's bytes that workers must have submitted for a target that supports non-blocking I/O.
const PUNTED: f64 = 0.1;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        // The engine that issued the I/O: another one may have taken over, or been faster.
        cell.result.engine == Some(EngineKind::Uring)
            && (is_unsupported(analysis, cell)
                || by_workers(analysis, cell).is_some_and(|share| share >= PUNTED))
    });
    let cited = |cell: &CellRecord| {
        let per_io =
            cell.result.cpu_ns.map(|cpu| (cpu.user + cpu.system) / cell.result.ops.unwrap_or(1).max(1));
        let cpu = per_io.map_or(String::new(), |ns| format!(", cpu per I/O = {}", words::nanos(ns)));
        let tried = tried(cell).map_or(String::new(), |tried| format!("; tried before: {tried}"));
        let workers = by_workers(analysis, cell).map_or(String::new(), |share| {
            format!(", submitted by workers = {}{}", percent(share), part_in_words(cell))
        });
        let supported = if is_unsupported(analysis, cell) { "no" } else { "yes" };
        let at_a_time =
            if is_one_at_a_time(analysis, cell) { ", writes of a stream at a time = 1" } else { "" };
        cite(cell, "RWF_NOWAIT supported", format_args!("{supported}{workers}{at_a_time}{cpu}{tried}"))
    };
    let mut text = String::from(if cells.iter().any(|cell| is_unsupported(analysis, cell)) {
        "The target does not support non-blocking I/O (RWF_NOWAIT). io_uring hands every request to a worker thread, a context switch \
         each."
    } else {
        "Many requests would have had to wait for a free place in the driver's queue or for a lock of the filesystem. io_uring handed \
         these to worker threads, a context switch each."
    });
    if cells.iter().any(|cell| is_one_at_a_time(analysis, cell)) {
        text += " On this filesystem they write a file one request at a time, so the disk has fewer in flight than the queue depth says.";
    }
    let advice = "compare with --engine aio for direct I/O, and with --engine threads";
    RULE.about_any(&cells, "io_uring works through kernel threads", text, cited, advice)
}

fn is_unsupported(record: &Record, cell: &CellRecord) -> bool {
    metrics::first_target(record, cell).is_some_and(|target| target.nowait == Some(false))
}

/// Whether the workers did the writes of this cell one after the other, whatever depth was requested.
fn is_one_at_a_time(record: &Record, cell: &CellRecord) -> bool {
    cell.workload.op == Op::Write
        && cell.workload.path == IoPath::Direct
        && cell.workload.queue_depth > 1
        && metrics::first_target(record, cell).is_some_and(Target::may_be_written_one_at_a_time)
}

/// Share of the cell's bytes that workers submitted; `None` without BPF.
fn by_workers(analysis: &Analysis<'_>, cell: &CellRecord) -> Option<f64> {
    let (block_io, op) = (analysis.block_io(cell)?, cell.workload.op);
    let own = block_io.own(op).bytes;
    (own > 0).then(|| metrics::ratio(block_io.by(op, |origin| origin == Origin::Worker).bytes, own).min(1.0))
}

/// The trials that led to this engine: `aio 512000/s, uring 498000/s`.
fn tried(cell: &CellRecord) -> Option<String> {
    let trials = &cell.result.issuing.as_ref()?.trials;
    let words: Vec<String> = trials
        .iter()
        .map(|trial| {
            let rate = trial.ops as f64 / metrics::seconds(trial.elapsed_ns.max(1));
            format!("{} {rate:.0}/s", trial.engine)
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{cell, deepen, disk, file, record, with};

    #[test]
    fn bios_show_what_workers_submitted() {
        let with_workers = |nowait, workers| {
            let uring = with(cell("u", Op::Read, IoPath::Direct, 4096, 1000, 500_000_000), |cell| {
                deepen(cell, 32, 32.0);
            });
            let bios = vec![
                bio(Op::Read, "this", Some("io_uring_enter"), 1000 - workers, 4096),
                bio(Op::Read, "this", None, workers, 4096),
            ];
            let cell = counted(uring, bios, vec![request(Op::Read, 4096, 1000)]);
            let target = rdsk_model::Target { nowait: Some(nowait), ..disk() };
            record(vec![target], vec![cell])
        };
        let finding = fires(RULE, &with_workers(false, 1000));
        assert!(finding.evidence[0].contains("no, submitted by workers = 100%"), "{:?}", finding.evidence);
        let punted = fires(RULE, &with_workers(true, 100));
        assert!(punted.evidence[0].contains("yes, submitted by workers = 10.0%"), "{:?}", punted.evidence);
        assert!(punted.text.contains("would have had to wait"), "{}", punted.text);
        silent(RULE, &with_workers(true, 99));
    }

    #[test]
    fn says_that_workers_write_to_a_file_one_at_a_time() {
        let on = |op, filesystem: &str| {
            let mut target = rdsk_model::Target { nowait: Some(false), ..file() };
            target.filesystem.as_mut().unwrap().kind = filesystem.into();
            let deep = |cell: &mut CellRecord| deepen(cell, 32, 32.0);
            let uring = with(cell("u", op, IoPath::Direct, 4096, 1000, 500_000_000), deep);
            fires(RULE, &record(vec![target], vec![uring]))
        };
        let finding = on(Op::Write, "fuse");
        assert!(finding.text.contains("one request at a time"), "{}", finding.text);
        assert!(finding.evidence[0].contains("writes of a stream at a time = 1"), "{:?}", finding.evidence);
        for other in [on(Op::Read, "fuse"), on(Op::Write, "ext4")] {
            assert!(!other.text.contains("one request at a time"), "{}", other.text);
        }
    }

    #[test]
    fn fires_on_uring_without_nowait_only() {
        let uring =
            with(cell("u", Op::Read, IoPath::Direct, 4096, 1000, 500_000_000), |cell| deepen(cell, 32, 32.0));
        for (nowait, engine, expected) in [
            (Some(false), EngineKind::Uring, true),
            (Some(true), EngineKind::Uring, false),
            (None, EngineKind::Uring, false),
            (Some(false), EngineKind::Sync, false),
            (Some(false), EngineKind::Aio, false),
            (Some(false), EngineKind::Threads, false),
        ] {
            let mut target = disk();
            target.nowait = nowait;
            let cell = with(uring.clone(), |cell| cell.result.engine = Some(engine));
            let record = record(vec![target], vec![cell]);
            if expected { drop(fires(RULE, &record)) } else { silent(RULE, &record) }
        }
    }
}
