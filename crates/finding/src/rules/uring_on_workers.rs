//! `uring-on-workers`: the target does not support non-blocking I/O, so `io_uring` passes it to worker threads.

use super::common::cells;
use super::{Needs, Rule};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, EngineKind, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("uring-on-workers", Severity::Cause, Needs::Facts, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let cells = cells(analysis, |cell| {
        // The engine that issued the I/O: another one may have taken over, or been faster.
        cell.result.engine == Some(EngineKind::Uring)
            && metrics::first_target(analysis, cell).is_some_and(|target| target.nowait == Some(false))
    });
    let cited = |cell: &CellRecord| {
        let per_io =
            cell.result.cpu_ns.map(|cpu| (cpu.user + cpu.system) / cell.result.ops.unwrap_or(1).max(1));
        let cpu = per_io.map_or(String::new(), |ns| format!(", cpu per I/O = {}", words::nanos(ns)));
        let tried = tried(cell).map_or(String::new(), |tried| format!("; tried beforehand: {tried}"));
        super::common::cite(cell, "RWF_NOWAIT supported", format_args!("no{cpu}{tried}"))
    };
    let text = "The target does not support non-blocking I/O (RWF_NOWAIT), so io_uring passes every request to a worker \
                thread, which costs a context switch each.";
    let advice = "compare with --engine aio for direct I/O, and with --engine threads";
    RULE.about_any(&cells, "io_uring works through kernel threads here", text, cited, advice)
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
    use super::super::common::testing::{fires, silent};
    use super::*;
    use crate::fixtures::{cell, deepen, disk, record, with};
    use rdsk_model::{IoPath, Op};

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
