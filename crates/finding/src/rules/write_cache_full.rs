//! `write-cache-full`: writes fell to the rate of the medium once a cache inside the device was full. It claims that only
//! when reads, repetition or the kind of device support it.

use super::level_shifts::{Shifted, SupportingEvidence, cited, shifted};
use super::prelude::*;
use rdsk_analysis::rate_series::{self, LevelShift};

pub(super) const RULE: Rule = Rule::new("write-cache-full", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let full: Vec<(Shifted<'_>, SupportingEvidence)> = shifted(analysis)
        .into_iter()
        .filter_map(|mut shifted| shifted.support.take().map(|support| (shifted, support)))
        .collect();
    // Before the first fall of the run, the least data that may be in the cache was written.
    let falls = full
        .iter()
        .flat_map(|(shifted, support)| shifted.falls.iter().map(move |fall| (shifted.cell, *fall, support)));
    let first =
        falls.min_by_key(|(_, fall, _)| (!fall.within_visit, fall.run_ns, u64::MAX - fall.visit_bytes));
    let Some((first, fall, support)) = first else { return Vec::new() };
    let cells: Vec<&CellRecord> = full.iter().map(|(shifted, _)| shifted.cell).collect();
    let mut evidence: Vec<String> =
        full.iter().take(MAX_CITED).map(|(shifted, _)| cited(shifted.cell, &shifted.falls[0])).collect();
    if let SupportingEvidence::ReadsHeld { test, before, after } = support {
        let (before, after) = (words::rate(*before), words::rate(*after));
        evidence.push(format!("{test}: rate before the fall = {before}, after it = {after}"));
    }
    let written = written_before(analysis, first, &fall);
    if written > 0 {
        evidence.push(cite(first, "written by earlier repeats", words::bytes(written)));
    }
    let (fast, slow) = (words::rate(fall.fast), words::rate(fall.slow));
    // What earlier visits wrote belongs to the size when it is most of what was written.
    let size = if fall.visit_bytes >= written { fall.visit_bytes } else { fall.visit_bytes + written };
    let (title, fell, advice) = if fall.within_visit {
        (
            format!("write cache full after {}", words::bytes(size)),
            format!(
                "{} were written at {fast}, then the rate fell to {slow} and stayed there",
                words::bytes(fall.visit_bytes)
            ),
            format!("measure past the cache: write {} or more", words::bytes(size.saturating_mul(4))),
        )
    } else {
        (
            "write cache full".into(),
            format!("An earlier repeat wrote at {fast}, a later one at {slow}"),
            "measure past the cache: write several times its size".into(),
        )
    };
    let fallen = format!("{title}, then the rate falls from {fast} to {slow}");
    let text = format!("{fell}: that is the sustained rate. {} {}", capacity(&fall, written), why(support));
    vec![
        RULE.finding(format!("{title}: {}", how_many(&cells)), text)
            .evidence(evidence)
            .inferred()
            .effect(Stake::Figure, Some(fall.fast / fall.slow), fallen)
            .advice(format!(
                "{advice}, and quote the sustained rate; the fast one returns after the device has been idle"
            ))
            .cells(cells),
    ]
}

/// How much the cache holds: at most all that the run had written, if the cache was empty at its start; at least what the
/// visit that fell wrote, less what drains meanwhile if it drains at the lower rate while it fills, which cannot be seen.
fn capacity(fall: &LevelShift, written: u64) -> String {
    if !fall.within_visit {
        return format!(
            "The cache was full when {} had been written in this run; its size is not known.",
            words::bytes(written.max(fall.bytes))
        );
    }
    let least = metrics::whole(fall.visit_bytes as f64 * (1.0 - fall.slow / fall.fast));
    let (least, most) = (words::bytes(least), words::bytes(fall.visit_bytes));
    if written == 0 {
        return format!(
            "The cache holds {most} if it drains only when idle, and {least} if it also drains at the lower rate while it fills."
        );
    }
    format!(
        "After {} of earlier writes, the cache holds {} if it still contained all of them, and {least} to {most} if none.",
        words::bytes(written),
        words::bytes(written + fall.visit_bytes),
    )
}

fn why(support: &SupportingEvidence) -> String {
    match support {
        SupportingEvidence::ReadsHeld { .. } => {
            "Reads kept their rate, so an SLC cache, the memory of a disk or an array or the media cache of a shingled disk is full, or a \
             limit on writes has no burst credit left."
                .into()
        }
        SupportingEvidence::SameBytes { repeats } => format!(
            "{repeats} repeats fell after the same number of bytes: an SLC cache, the memory of a disk or an array, the media cache of a \
             shingled disk, or the burst of a limit on writes that refilled before each."
        ),
        SupportingEvidence::Flash => "On flash an SLC cache is the most likely cause; too few reads ran before and after to rule out heat or spent burst \
             credit."
            .into(),
    }
}

/// Bytes that visits before the one that fell had written to the same targets; 0 if visits have no start times.
fn written_before(analysis: &Analysis<'_>, cell: &CellRecord, fall: &LevelShift) -> u64 {
    if !rate_series::has_times(analysis) {
        return fall.bytes - fall.visit_bytes;
    }
    let begin_ns = analysis.rate_series(cell).map_or(0, |course| course.segments[fall.segment].start_ns);
    let is_before = |other: &CellRecord| {
        other.workload.op == Op::Write
            && other.workload.targets == cell.workload.targets
            && other.sitting() == cell.sitting()
    };
    cells(analysis, is_before)
        .iter()
        .flat_map(|other| &other.result.visits)
        .filter(|visit| visit.start_ns < begin_ns)
        .map(|visit| visit.bytes)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::super::slows_down;
    use super::*;
    use crate::fixtures::{disk, record, with};
    use rdsk_analysis::fixtures::rates::{falling, laid_out, steady};
    use rdsk_model::{Record, Target};

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
        assert!(finding.advice.is_some_and(|advice| advice.contains("write 31")));
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
        assert!(finding.text.contains("too few reads ran"), "{}", finding.text);
        // Reads that fell by a seventh are neither held nor fallen: heat looks like that.
        let warm = begun(laid_out("r", Op::Read, &[steady(200, 500.0), steady(200, 425.0)]), &[5, 60]);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![warm, write()]));
        let mut cloud = record(vec![flash()], vec![once()]);
        cloud.host.as_mut().unwrap().virtualization = Some("kvm".into());
        only(slows_down::RULE, RULE, &cloud);
        only(slows_down::RULE, RULE, &record(vec![disk()], vec![once()]));
        let visits = [falling(200, 300, 800.0, 200.0), falling(190, 300, 800.0, 200.0)];
        let twice = laid_out("w", Op::Write, &visits);
        let finding = only(RULE, slows_down::RULE, &record(vec![disk()], vec![twice]));
        assert!(finding.text.contains("2 repeats fell after the same number of bytes"), "{}", finding.text);
        let visits = [falling(200, 300, 800.0, 200.0), falling(100, 300, 800.0, 200.0)];
        only(slows_down::RULE, RULE, &record(vec![disk()], vec![laid_out("w", Op::Write, &visits)]));
    }

    #[test]
    fn earlier_writes_are_reported() {
        let earlier = begun(laid_out("e", Op::Write, &[steady(40, 800.0)]), &[10]);
        let finding = only(RULE, slows_down::RULE, &record(vec![flash()], vec![earlier, write()]));
        assert!(finding.title.starts_with("write cache full after 7.8"), "{}", finding.title);
        assert!(finding.text.contains("holds 9.3"), "{}", finding.text);
        let much = begun(laid_out("e", Op::Write, &[steady(400, 800.0)]), &[0]);
        let most = only(RULE, slows_down::RULE, &record(vec![flash()], vec![much, write()]));
        assert!(most.title.starts_with("write cache full after 23.4"), "{}", most.title);
        assert!(
            finding.evidence.iter().any(|line| line.contains("earlier repeats = 1.5")),
            "{:?}",
            finding.evidence
        );
        assert_eq!(
            {
                let record = record(vec![flash()], vec![write()]);
                let analysis = Analysis::of(&record);
                written_before(&analysis, &record.cells[0], &analysis.level_shifts(&record.cells[0])[0])
            },
            0
        );
    }

    /// What was measured in an earlier run was neither before nor after anything of this one.
    #[test]
    fn cells_of_another_sitting_say_nothing_of_the_time_of_a_fall() {
        let taken_over = |cell: CellRecord| {
            with(cell, |cell| cell.result.visits.iter_mut().for_each(|visit| visit.sitting = 1))
        };
        let earlier = || begun(laid_out("e", Op::Write, &[steady(40, 800.0)]), &[10]);
        let finding = fires(RULE, &record(vec![flash()], vec![taken_over(earlier()), write()]));
        assert!(finding.text.contains("holds 7.8"), "{}", finding.text);
        let both = record(vec![flash()], vec![taken_over(earlier()), taken_over(write())]);
        assert!(fires(RULE, &both).text.contains("holds 9.3"));
        let reads = || begun(laid_out("r", Op::Read, &[steady(200, 500.0), steady(200, 510.0)]), &[5, 60]);
        only(slows_down::RULE, RULE, &record(vec![disk()], vec![taken_over(reads()), write()]));
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
        assert_eq!(finding.title, "write cache full: sequential direct 64K writes");
        assert!(finding.text.contains("full when 2.3"), "{}", finding.text);
        assert!(finding.text.contains("its size is not known"), "{}", finding.text);
        let few = with(reads, |cell| cell.result.visits[1].ops = 40);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![few, write()]));
    }

    #[test]
    fn reads_never_fill_a_write_cache() {
        let read = laid_out("r", Op::Read, &[falling(200, 400, 800.0, 200.0)]);
        only(slows_down::RULE, RULE, &record(vec![flash()], vec![read]));
    }
}
