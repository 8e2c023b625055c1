//! `write-cache-full`: writes fell to the rate of the medium once a cache inside the device was full. It claims that only
//! where reads, repetition or the kind of device speak for it.

use super::Rule;
use super::common::{cells, cite, how_many, ids, target};
use super::slows_down::cited;
use rdsk_analysis::rate_series::{self, LevelShift};
use rdsk_analysis::{metrics, words};
use rdsk_model::{CellRecord, Confidence, Finding, Op, Record, Visit};

pub(super) const RULE: Rule = Rule { code: "write-cache-full", check };

/// Citations of one finding at most.
const MAX_CITED: usize = 8;
/// Reads after the fall of at least this share of the reads before it held.
const HELD: f64 = 0.9;
/// Reads of at most this share fell, too.
const FELL: f64 = 0.8;
/// Windows of reads on each side of the fall from which they are compared; whole visits where there are fewer, from so many
/// I/Os on each side.
const LEAST_WINDOWS: usize = 10;
const LEAST_OPS: u64 = 50;
/// Falls of several visits after the same bytes: the largest is at most so much more than the least.
const SAME_BYTES: f64 = 1.2;

/// What speaks for a cache.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Grounds {
    /// The reads of this cell held their rate: before and after, in bytes per second.
    ReadsHeld { cell: String, before: f64, after: f64 },
    /// So many visits fell after the same bytes.
    SameBytes { visits: usize },
    /// The device does not turn, and nothing speaks against it.
    Flash,
}

/// What speaks for a full write cache as the cause of these falls; `None` where nothing does, or where reads fell, too.
pub(super) fn grounds(record: &Record, cell: &CellRecord, falls: &[LevelShift]) -> Option<Grounds> {
    if cell.workload.op != Op::Write {
        return None;
    }
    let fall = falls.first()?;
    let mut held = None;
    let reads = cells(record, |read| {
        read.workload.op == Op::Read && read.workload.targets == cell.workload.targets && read.id != cell.id
    });
    for read in reads {
        if !rate_series::level_shifts(read).is_empty() {
            return None;
        }
        let Some((before, after)) = levels(record, read, fall.run_ns) else { continue };
        if after <= FELL * before {
            return None;
        }
        if after >= HELD * before {
            held = held.or(Some(Grounds::ReadsHeld { cell: read.id.clone(), before, after }));
        }
    }
    let in_visits: Vec<u64> =
        falls.iter().filter(|fall| fall.within_visit).map(|fall| fall.visit_bytes).collect();
    held.or_else(|| same_bytes(&in_visits)).or_else(|| {
        let device = target(record, cell).and_then(|target| target.device.as_ref());
        let is_flash = device.is_some_and(|device| device.rotational == Some(false));
        (is_flash && !in_visits.is_empty()).then_some(Grounds::Flash)
    })
}

fn check(record: &Record) -> Vec<Finding> {
    let full: Vec<(&CellRecord, Vec<LevelShift>, Grounds)> =
        cells(record, |cell| cell.workload.op == Op::Write)
            .into_iter()
            .filter_map(|cell| {
                let falls = rate_series::level_shifts(cell);
                let grounds = grounds(record, cell, &falls)?;
                Some((cell, falls, grounds))
            })
            .collect();
    // The first fall of the run has the least written before it that may be in the cache.
    let all =
        full.iter().flat_map(|(cell, falls, grounds)| falls.iter().map(move |fall| (*cell, *fall, grounds)));
    let first = all.min_by_key(|(_, fall, _)| (!fall.within_visit, fall.run_ns, u64::MAX - fall.visit_bytes));
    let Some((first, fall, grounds)) = first else { return Vec::new() };
    let cells: Vec<&CellRecord> = full.iter().map(|(cell, ..)| *cell).collect();
    let mut evidence: Vec<String> =
        full.iter().take(MAX_CITED).map(|(cell, falls, _)| cited(cell, &falls[0])).collect();
    if let Grounds::ReadsHeld { cell, before, after } = grounds {
        let (before, after) = (words::rate(*before), words::rate(*after));
        evidence.push(format!("{cell}: reads before the fall = {before}, after it = {after}"));
    }
    let written = written_before(record, first, &fall);
    if written > 0 {
        evidence.push(cite(first, "written by earlier visits of the run", words::bytes(written)));
    }
    let mixed = first
        .result
        .bytes_per_s
        .map_or(String::new(), |rate| format!(" The mean, {}, mixes the two.", words::rate(rate.mean)));
    let (fast, slow) = (words::rate(fall.fast), words::rate(fall.slow));
    // What earlier visits wrote is part of the size where it is most of what was written.
    let size = if fall.visit_bytes >= written { fall.visit_bytes } else { fall.visit_bytes + written };
    let (title, fell, advice) = if fall.within_visit {
        (
            format!("write cache full after {}", words::bytes(size)),
            format!(
                "{} were written at {fast}, then the rate fell to {slow} and stayed there",
                words::bytes(fall.visit_bytes)
            ),
            format!("measure past the cache: --bytes {} or more", words::bytes(size.saturating_mul(4))),
        )
    } else {
        (
            "write cache full".into(),
            format!("An earlier visit wrote at {fast}, a later one at {slow}"),
            "measure past the cache, with --bytes of several times its size".into(),
        )
    };
    vec![Finding {
        code: RULE.code.into(),
        title: format!("{title}: {}", how_many(&cells)),
        text: format!(
            "{fell}: that is the rate that lasts.{mixed} {} {}",
            capacity(&fall, written),
            why(grounds)
        ),
        evidence,
        confidence: Confidence::Inferred,
        advice: Some(format!("{advice}, and quote the rate that lasts; the fast one returns after a rest")),
        cells: ids(&cells),
    }]
}

/// How much the cache holds: at most all that the run had written, if the cache was empty when it began; at least what the
/// visit that fell wrote, less what drains meanwhile if it drains at the lower rate while it fills, which is not seen.
fn capacity(fall: &LevelShift, written: u64) -> String {
    if !fall.within_visit {
        return format!(
            "It was full when {} had been written in this run; how much it holds was not seen.",
            words::bytes(written.max(fall.bytes))
        );
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1 of a count of bytes"
    )]
    let least = (fall.visit_bytes as f64 * (1.0 - fall.slow / fall.fast)) as u64;
    let (least, most) = (words::bytes(least), words::bytes(fall.visit_bytes));
    if written == 0 {
        return format!(
            "The cache holds {most} if it only empties at rest, and {least} if it empties at the lower rate meanwhile."
        );
    }
    format!(
        "Earlier visits of the run had written {}: the cache holds {} if nothing of that had left it, and {least} to {most} if \
         all had.",
        words::bytes(written),
        words::bytes(written + fall.visit_bytes),
    )
}

fn why(grounds: &Grounds) -> String {
    match grounds {
        Grounds::ReadsHeld { .. } => {
            "Reads kept their rate, so it is not the whole device that became slower: the SLC cache of a flash drive or \
             the memory of a disk or an array is full."
                .into()
        }
        Grounds::SameBytes { visits } => format!(
            "{visits} visits fell after the same bytes, which is the mark of a size: an SLC cache, or the memory of a disk \
             or an array."
        ),
        Grounds::Flash => "On a device that does not turn an SLC cache is the likeliest cause; no reads ran before and \
                           after to rule out heat or spent credits."
            .into(),
    }
}

/// Rates of a read cell before and after a time of the run: levels where both sides have enough windows, else those of
/// whole visits with enough I/Os.
fn levels(record: &Record, read: &CellRecord, (earliest_ns, latest_ns): (u64, u64)) -> Option<(f64, f64)> {
    if !rate_series::has_times(record) {
        return None;
    }
    let course = rate_series::rate_series(read)?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for segment in &course.segments {
        for (index, &bytes) in segment.bytes.iter().enumerate() {
            let begin_ns = segment.start_ns + course.width_ns * index as u64;
            let rate = bytes as f64 / metrics::seconds(course.width_ns);
            if begin_ns + course.width_ns <= earliest_ns {
                before.push(rate);
            } else if begin_ns >= latest_ns {
                after.push(rate);
            }
        }
    }
    if before.len() >= LEAST_WINDOWS && after.len() >= LEAST_WINDOWS {
        return Some((rate_series::level(&before), rate_series::level(&after)));
    }
    let rate = |is_on_side: &dyn Fn(&Visit) -> bool| {
        let visits = || read.result.visits.iter().filter(|visit| is_on_side(visit));
        let elapsed_ns: u64 = visits().map(|visit| visit.elapsed_ns).sum();
        let bytes: u64 = visits().map(|visit| visit.bytes).sum();
        let is_enough = visits().map(|visit| visit.ops).sum::<u64>() >= LEAST_OPS && elapsed_ns > 0;
        is_enough.then(|| bytes as f64 / metrics::seconds(elapsed_ns))
    };
    Some((
        rate(&|visit| visit.start_ns + visit.elapsed_ns <= earliest_ns)?,
        rate(&|visit| visit.start_ns >= latest_ns)?,
    ))
}

fn same_bytes(bytes: &[u64]) -> Option<Grounds> {
    let (least, most) = (*bytes.iter().min()?, *bytes.iter().max()?);
    let is_same = bytes.len() >= 2 && most as f64 <= SAME_BYTES * least as f64;
    is_same.then_some(Grounds::SameBytes { visits: bytes.len() })
}

/// Bytes that visits before the one that fell had written to the same targets; 0 where visits do not tell when they were.
fn written_before(record: &Record, cell: &CellRecord, fall: &LevelShift) -> u64 {
    if !rate_series::has_times(record) {
        return fall.bytes - fall.visit_bytes;
    }
    let begin_ns = rate_series::rate_series(cell).map_or(0, |course| course.segments[fall.segment].start_ns);
    cells(record, |other| other.workload.op == Op::Write && other.workload.targets == cell.workload.targets)
        .iter()
        .flat_map(|other| &other.result.visits)
        .filter(|visit| visit.start_ns < begin_ns)
        .map(|visit| visit.bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::super::slows_down;
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{falling, laid_out, steady};
    use rdsk_model::Target;

    const S: u64 = 1_000_000_000;

    fn flash() -> Target {
        let mut target = disk();
        if let Some(device) = &mut target.device {
            device.rotational = Some(false);
        }
        target
    }

    fn begun(cell: CellRecord, starts_s: &[u64]) -> CellRecord {
        with(cell, |cell| {
            for (visit, start_s) in cell.result.visits.iter_mut().zip(starts_s) {
                visit.start_ns = start_s * S;
            }
        })
    }

    fn write() -> CellRecord {
        begun(laid_out("w", Op::Write, &[falling(200, 400, 800.0, 200.0)]), &[20])
    }

    fn only(rule: Rule, other: Rule, record: &Record) -> Finding {
        silent(other, record);
        fires(rule, record)
    }

    #[test]
    fn fires_where_reads_hold_and_names_the_size() {
        let reads = begun(laid_out("r", Op::Read, &[steady(200, 500.0), steady(200, 510.0)]), &[5, 60]);
        let finding = only(RULE, slows_down::RULE, &record(vec![disk()], vec![reads, write()]));
        assert_eq!(finding.cells, ["w"]);
        assert!(finding.title.starts_with("write cache full after 7.8"), "{}", finding.title);
        // 10 s at 800 MiB/s; emptied at 200 MiB/s meanwhile it holds three quarters.
        assert!(finding.text.contains("holds 7.8"), "{}", finding.text);
        assert!(finding.text.contains("and 5.8"), "{}", finding.text);
        assert!(finding.text.contains("Reads kept their rate"), "{}", finding.text);
        assert!(finding.advice.is_some_and(|advice| advice.contains("--bytes 31")));
    }

    #[test]
    fn is_left_to_slows_down_where_reads_fall_too() {
        let later = begun(laid_out("r", Op::Read, &[steady(200, 500.0), steady(200, 350.0)]), &[5, 60]);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![later, write()]));
        let falls = begun(laid_out("r", Op::Read, &[falling(200, 200, 500.0, 125.0)]), &[60]);
        let both = record(vec![flash()], vec![falls, write()]);
        silent(RULE, &both);
        assert_eq!(fires(slows_down::RULE, &both).cells, ["r", "w"]);
    }

    #[test]
    fn fires_on_flash_or_the_same_bytes_again_and_not_on_a_disk_that_fell_once() {
        let once = || laid_out("w", Op::Write, &[falling(200, 400, 800.0, 200.0)]);
        let finding = only(RULE, slows_down::RULE, &record(vec![flash()], vec![once()]));
        assert!(finding.text.contains("no reads ran"), "{}", finding.text);
        only(slows_down::RULE, RULE, &record(vec![disk()], vec![once()]));
        let visits = [falling(200, 300, 800.0, 200.0), falling(190, 300, 800.0, 200.0)];
        let twice = laid_out("w", Op::Write, &visits);
        let finding = only(RULE, slows_down::RULE, &record(vec![disk()], vec![twice]));
        assert!(finding.text.contains("2 visits fell after the same bytes"), "{}", finding.text);
        let visits = [falling(200, 300, 800.0, 200.0), falling(100, 300, 800.0, 200.0)];
        only(slows_down::RULE, RULE, &record(vec![disk()], vec![laid_out("w", Op::Write, &visits)]));
    }

    #[test]
    fn earlier_writes_are_told() {
        let earlier = begun(laid_out("e", Op::Write, &[steady(40, 800.0)]), &[10]);
        let finding = only(RULE, slows_down::RULE, &record(vec![flash()], vec![earlier, write()]));
        assert!(finding.title.starts_with("write cache full after 7.8"), "{}", finding.title);
        assert!(finding.text.contains("holds 9.3"), "{}", finding.text);
        let much = begun(laid_out("e", Op::Write, &[steady(400, 800.0)]), &[0]);
        let most = only(RULE, slows_down::RULE, &record(vec![flash()], vec![much, write()]));
        assert!(most.title.starts_with("write cache full after 23.4"), "{}", most.title);
        assert!(
            finding.evidence.iter().any(|line| line.contains("earlier visits of the run = 1.5")),
            "{:?}",
            finding.evidence
        );
        assert_eq!(
            written_before(
                &record(vec![flash()], vec![write()]),
                &write(),
                &rate_series::level_shifts(&write())[0]
            ),
            0
        );
    }

    #[test]
    fn a_fall_between_visits_shows_no_size_and_short_reads_may_speak_for_it() {
        let reads =
            with(begun(laid_out("r", Op::Read, &[steady(3, 500.0), steady(3, 500.0)]), &[1, 90]), |cell| {
                for visit in &mut cell.result.visits {
                    visit.ops = 60;
                }
            });
        let write = || begun(laid_out("w", Op::Write, &[steady(60, 800.0), steady(60, 200.0)]), &[20, 60]);
        let finding = only(RULE, slows_down::RULE, &record(vec![disk()], vec![reads.clone(), write()]));
        assert_eq!(finding.title, "write cache full: w");
        assert!(finding.text.contains("full when 2.3"), "{}", finding.text);
        assert!(finding.text.contains("how much it holds was not seen"), "{}", finding.text);
        let few = with(reads, |cell| cell.result.visits[1].ops = 40);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![few, write()]));
    }

    #[test]
    fn reads_never_fill_a_write_cache() {
        let read = laid_out("r", Op::Read, &[falling(200, 400, 800.0, 200.0)]);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![read]));
    }
}
