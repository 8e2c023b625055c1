//! Who issued the I/O, in one sentence for the top of a page: the engines, and why one stands in for another. It draws no
//! figure of a cell.

use rdsk_analysis::groups::{by_key, distinct};
use rdsk_model::{CellRecord, EngineKind, Issuing, Record, Trial};
use rdsk_units::grouped;

/// The name that people know an engine by.
fn name(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Sync => "sync",
        EngineKind::Threads => "threads",
        EngineKind::Aio => "aio",
        EngineKind::Uring => "io_uring",
        EngineKind::Sim => "simulated",
    }
}

/// `sync; aio in place of io_uring (io_uring is forbidden here (Operation not permitted))`; `None` where nothing ran or
/// the host is simulated.
pub(crate) fn text(record: &Record) -> Option<String> {
    // One cell stands for all that came about in the same way; the document has the trials of each.
    let way = |cell: &CellRecord| {
        let why = cell.result.issuing.as_ref().and_then(|issuing| issuing.why.clone());
        (cell.result.engine, cell.workload.engine, why)
    };
    let ways = by_key(record.cells.iter().map(|cell| (way(cell), cell)));
    let parts = distinct(ways.iter().filter_map(|(_, cells)| part(cells[0])));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn part(cell: &CellRecord) -> Option<String> {
    let engine = cell.result.engine.filter(|&engine| engine != EngineKind::Sim)?;
    let wanted = cell.workload.engine;
    if engine == wanted {
        return Some(name(engine).into());
    }
    let reason =
        cell.result.issuing.as_ref().and_then(reason).map_or(String::new(), |why| format!(" ({why})"));
    Some(format!("{} in place of {}{reason}", name(engine), name(wanted)))
}

/// The reason without who issues the I/O instead, which stands before it, and with the trials that it rests on.
fn reason(issuing: &Issuing) -> Option<String> {
    let why = issuing.why.as_deref()?;
    let why = why.rsplit_once(": ").map_or(why, |(reason, _)| reason);
    let trials: Vec<String> = issuing.trials.iter().map(trial).collect();
    Some(if trials.is_empty() { why.into() } else { format!("{why}: {}", trials.join(", ")) })
}

/// `aio 512,000/s`.
fn trial(trial: &Trial) -> String {
    let rate = u128::from(trial.ops) * 1_000_000_000 / u128::from(trial.elapsed_ns.max(1));
    // No more digits than a few milliseconds show.
    let rate = u64::try_from(rate).unwrap_or(u64::MAX);
    let rounded = match rate {
        0..10_000 => rate,
        _ => rate / 1000 * 1000,
    };
    format!("{} {}/s", name(trial.engine), grouped(rounded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures::{cell, deepen, disk, record, with};
    use rdsk_model::{IoPath, Op};

    fn on(engine: EngineKind, issuing: Option<Issuing>) -> CellRecord {
        with(cell("q", Op::Read, IoPath::Direct, 4096, 10_000, 500_000_000), |cell| {
            deepen(cell, 32, 32.0);
            cell.result.engine = Some(engine);
            cell.result.issuing = issuing;
        })
    }

    #[test]
    fn each_engine_is_named_once_and_a_stand_in_has_its_reason() {
        let sync = cell("s", Op::Read, IoPath::Direct, 4096, 10_000, 500_000_000);
        let why = "io_uring is forbidden here (Operation not permitted): Linux AIO issues the I/O";
        let forbidden = Issuing { why: Some(why.into()), ..Issuing::default() };
        let ring = || on(EngineKind::Uring, None);
        let aio = || on(EngineKind::Aio, Some(forbidden.clone()));
        let noted =
            || on(EngineKind::Uring, Some(Issuing { why: Some("few threads".into()), ..Issuing::default() }));
        for (cells, expected) in [
            (vec![sync.clone(), ring(), ring()], Some("sync; io_uring")),
            (vec![ring(), sync.clone(), noted()], Some("io_uring; sync")),
            (
                vec![sync, aio(), aio()],
                Some("sync; aio in place of io_uring (io_uring is forbidden here (Operation not permitted))"),
            ),
            (Vec::new(), None),
        ] {
            assert_eq!(text(&record(vec![disk()], cells)).as_deref(), expected);
        }
    }

    #[test]
    fn a_choice_shows_its_trials() {
        let trial =
            |engine, ops| Trial { engine, ops, elapsed_ns: 4_000_000, cpu_ns: 1, within_submit: None };
        let issuing = Issuing {
            why: Some("no NOWAIT: Linux AIO issues the I/O".into()),
            within_submit: None,
            trials: vec![trial(EngineKind::Aio, 2049), trial(EngineKind::Uring, 30)],
        };
        let record = record(vec![disk()], vec![on(EngineKind::Aio, Some(issuing))]);
        let expected = "aio in place of io_uring (no NOWAIT: aio 512,000/s, io_uring 7,500/s)";
        assert_eq!(text(&record).as_deref(), Some(expected));
    }
}
