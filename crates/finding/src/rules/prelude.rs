//! What every rule takes from here with one `use`: the types of a Record, what is derived from it, words for figures, choosing cells
//! and citing counters. It decides nothing.

pub(super) use super::{Needs, Rule};
pub(super) use rdsk_analysis::block_io::{BlockIo, part_in_words};
pub(super) use rdsk_analysis::comparison::{Comparison, Kind, NoRatio, Outcome, Ratio};
pub(super) use rdsk_analysis::groups::by_key;
pub(super) use rdsk_analysis::metrics::{has_verdict, reached_device};
pub(super) use rdsk_analysis::{Analysis, is_of_loop_file, metrics, words};
pub(super) use rdsk_model::{
    CacheState, CellRecord, Confidence, Device, EngineKind, Experiment, Finding, IoPath, Op, Origin, Pattern,
    Record, Severity, Stake, Sync, VerdictCode,
};
pub(super) use rdsk_units::{Bytes, grouped, percent, printable};

use rdsk_analysis::stripe::StripeResult;
use rdsk_analysis::zones::Zones;
use rdsk_model::{EvidenceSource, TargetKind};

/// A factor below this is too small to decide anything, so it is no finding.
pub(super) const MIN_EFFECT: f64 = 1.15;
/// Maximum number of citations per finding, so that one over a hundred cells stays readable.
pub(super) const MAX_CITED: usize = 8;
/// From so many flushes per write on, each write waited for one; from so many writes with FUA per write on, each was one.
pub(super) const EACH_WRITE: f64 = 0.5;

/// The cells that completed something and satisfy a condition.
pub(super) fn cells(record: &Record, condition: impl Fn(&CellRecord) -> bool) -> Vec<&CellRecord> {
    record.cells.iter().filter(|cell| metrics::ran(cell) && condition(cell)).collect()
}

/// The cells of `zones` that the device answered, and what they show.
pub(super) fn zones<'a>(analysis: &'a Analysis<'_>) -> Vec<(&'a CellRecord, &'a Zones)> {
    let cells = cells(analysis, |cell| cell.experiment == Experiment::Zones && !metrics::is_of_memory(cell));
    cells.into_iter().filter_map(|cell| Some((cell, analysis.zones(cell)?))).collect()
}

/// The cells of `stripe`, and what they show.
pub(super) fn stripes<'a>(analysis: &'a Analysis<'_>) -> Vec<(&'a CellRecord, &'a StripeResult)> {
    let cells = cells(analysis, |cell| cell.experiment == Experiment::Stripe);
    cells.into_iter().filter_map(|cell| Some((cell, analysis.stripe(cell)?))).collect()
}

/// How to fill a device that holds nothing: rdsk writes no zones, which take writes in order only.
pub(super) fn write_first(record: &Record, cells: &[&CellRecord]) -> &'static str {
    let is_zoned = |cell: &&CellRecord| {
        let device = metrics::first_device(record, cell);
        device.is_some_and(|device| device.zoned.as_deref().is_some_and(|zoned| zoned != "none"))
    };
    if cells.iter().any(is_zoned) {
        "write its zones first, in order (fio --zonemode=zbd --rw=write), if nothing on it is needed"
    } else {
        "write the device first if nothing on it is needed"
    }
}

/// One citation: `sequential direct 1M reads: aqu-sz = 0.98`. Tests of several targets have the same words, so theirs say which target
/// of the command line it was.
pub(super) fn cite(cell: &CellRecord, name: &str, value: impl std::fmt::Display) -> String {
    let is_of_several = cell.id.contains('@');
    let target = cell.workload.targets.first().filter(|_| is_of_several);
    let target = target.map_or_else(String::new, |index| format!(" on target {}", index + 1));
    format!("{}{target}: {name} = {value}", words::test(cell))
}

/// The sentence of a cell's verdict.
pub(super) fn cite_verdict(cell: &CellRecord) -> String {
    cite(cell, "counted", cell.verdict.as_ref().map_or("", |verdict| verdict.text.as_str()))
}

/// The citations of the first cells.
pub(super) fn cite_all(cells: &[&CellRecord], citation: impl Fn(&CellRecord) -> String) -> Vec<String> {
    cells.iter().take(MAX_CITED).map(|cell| citation(cell)).collect()
}

/// Whether a model of a host and a disk was measured, without a kernel, its logs and its files.
pub(super) fn is_simulated(record: &Record, cell: &CellRecord) -> bool {
    cell.evidence.source == EvidenceSource::Sim
        || metrics::first_target(record, cell).is_some_and(|target| target.kind == TargetKind::Sim)
}

/// The system that reads, writes and merges for the program.
pub(super) fn system(record: &Record, cell: &CellRecord) -> &'static str {
    if is_simulated(record, cell) { "host" } else { "kernel" }
}

/// `3 tests`, or what the only one does: `random 4K reads at QD32`.
pub(super) fn how_many(cells: &[&CellRecord]) -> String {
    match cells {
        [cell] => words::test(cell),
        many => format!("{} tests", many.len()),
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! What every rule's tests assert.
    use crate::rules::Rule;
    use rdsk_analysis::Analysis;
    use rdsk_model::{Finding, Record};

    /// The rule's only finding over a Record, after the checks that hold for every finding.
    #[track_caller]
    pub(crate) fn fires(rule: Rule, record: &Record) -> Finding {
        let mut found = (rule.check)(&Analysis::of(record));
        assert_eq!(found.len(), 1, "{found:#?}");
        let finding = found.remove(0);
        assert_eq!(finding.code, rule.code);
        assert!(!finding.evidence.is_empty(), "a claim without evidence");
        assert!(finding.evidence.iter().all(|line| line.contains(" = ")), "{:#?}", finding.evidence);
        assert!(!finding.cells.is_empty());
        assert!(finding.cells.iter().all(|id| record.cell(id).is_some()));
        assert!(!finding.title.contains('\n') && finding.title.chars().count() <= 72, "{}", finding.title);
        finding
    }

    /// The rule says nothing.
    #[track_caller]
    pub(crate) fn silent(rule: Rule, record: &Record) {
        assert_eq!((rule.check)(&Analysis::of(record)), Vec::new());
    }
}
