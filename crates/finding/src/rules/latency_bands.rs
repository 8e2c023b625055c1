//! `latency-bands`: the I/Os at one position fall into bands, and what makes them. It names a cause only where a test shows
//! it.

use super::Rule;
use super::common::{cells, cite};
use rdsk_analysis::metrics::is_of_memory;
use rdsk_analysis::words;
use rdsk_analysis::zones::{Cause, LatencyBands, zones};
use rdsk_model::{CellRecord, Confidence, Experiment, Finding, Record};

pub(super) const RULE: Rule = Rule { code: "latency-bands", check };

fn check(record: &Record) -> Vec<Finding> {
    let mut by_cause: Vec<(Cause, Vec<(&CellRecord, LatencyBands)>)> = Vec::new();
    for cell in cells(record, |cell| cell.experiment == Experiment::Zones && !is_of_memory(cell)) {
        let Some(latency_bands) = zones(record, cell).and_then(|zones| zones.latency_bands) else { continue };
        match by_cause.iter_mut().find(|(cause, _)| *cause == latency_bands.cause) {
            Some((_, same)) => same.push((cell, latency_bands)),
            None => by_cause.push((latency_bands.cause, vec![(cell, latency_bands)])),
        }
    }
    by_cause.iter().map(|(cause, seen)| finding(*cause, seen)).collect()
}

fn finding(cause: Cause, seen: &[(&CellRecord, LatencyBands)]) -> Finding {
    let (first, latency_bands) = &seen[0];
    let late: f64 = latency_bands.bands.iter().map(|band| band.share).sum();
    let largest = latency_bands.bands.iter().max_by_key(|band| band.count);
    let offset = largest.map_or_else(String::new, |band| nanos(band.offset_ns));
    let text = format!(
        "Behind the main line {} of the I/Os of {} lie in {}{offset} later. {}",
        rdsk_units::percent(late),
        first.id,
        match latency_bands.bands.len() {
            1 => "a band of their own, ".to_owned(),
            many => format!("{many} bands of their own, most of them "),
        },
        why(cause)
    );
    Finding {
        code: RULE.code.into(),
        // The main line is the fast one, however few are on it.
        title: if late > 0.5 {
            format!(
                "only {} of the I/Os are not {offset} late: {}",
                rdsk_units::percent(1.0 - late),
                cause.word()
            )
        } else {
            format!("{} of the I/Os are {offset} late: {}", rdsk_units::percent(late), cause.word())
        },
        text,
        evidence: seen.iter().take(6).map(|(cell, latency_bands)| cited(cell, latency_bands)).collect(),
        confidence: if cause == Cause::Unknown { Confidence::Measured } else { Confidence::Inferred },
        advice: Some(advice(cause).into()),
        cells: seen.iter().map(|(cell, _)| cell.id.clone()).collect(),
    }
}

fn cited(cell: &CellRecord, latency_bands: &LatencyBands) -> String {
    let bands: Vec<String> = latency_bands
        .bands
        .iter()
        .map(|band| format!("{} at +{}", rdsk_units::percent(band.share), nanos(band.offset_ns)))
        .collect();
    cite(cell, "bands", format_args!("{} (p = {:.0e})", bands.join(", "), latency_bands.p_value))
}

fn nanos(ns: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, not negative")]
    words::nanos(ns.max(0.0).round() as u64)
}

fn why(cause: Cause) -> String {
    match cause {
        Cause::Clock { resolution_ns } => format!(
            "They are steps of the clock, not of the disk: it moves in steps of {}, and with that much blur the bands are \
             gone.",
            words::nanos(resolution_ns)
        ),
        Cause::OtherIo => "The device moved bytes for others meanwhile, and their requests stood in the way.".into(),
        Cause::StartOfPass { share } => format!(
            "{} of the late ones are among the first of a pass: what is idle takes time to get going.",
            rdsk_units::percent(share)
        ),
        Cause::MissedRevolution { revolution_ns } => format!(
            "That is one turn of the disk, {} at {:.0} rpm: the next block had gone by under the head when it was asked for.",
            nanos(revolution_ns),
            60e9 / revolution_ns
        ),
        Cause::Periodic { every } => format!(
            "Every {} I/O is late, wherever it goes: something counts I/Os, such as a cache that is emptied or a table that \
             is written.",
            ordinal(every)
        ),
        Cause::Unknown => {
            "Neither the clock's steps, nor others' I/O, nor the start of a pass, nor a turn of a disk explains them.".into()
        }
    }
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::Clock { .. } => "believe the mean of many I/Os, not the bands; use larger blocks",
        Cause::OtherIo => "repeat it when the device is quiet",
        Cause::StartOfPass { .. } => "measure longer passes, or leave the first I/Os of each out",
        Cause::MissedRevolution { .. } => {
            "ask with larger blocks or with several I/Os at once, so that the next one waits at the disk"
        }
        Cause::Periodic { .. } | Cause::Unknown => {
            "look at the points in the Record (result.points) by position and by time"
        }
    }
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::super::common::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::zones::made;

    #[test]
    fn fires_on_a_band_and_not_on_one_line() {
        let late = |number: u32| if number.is_multiple_of(10) { 3_000_000 } else { 0 };
        let banded = made(60, 10, |_, pass, number| 10_000_000 + u64::from(pass) * 9_000 + late(number));
        let finding = fires(RULE, &banded.0);
        assert!(finding.title.contains("10.0 %") || finding.title.contains("10 %"), "{}", finding.title);
        assert!(finding.text.contains("Every 10th I/O"), "{}", finding.text);
        silent(
            RULE,
            &made(60, 10, |place, pass, _| 10_000_000 + u64::from((place * 3 + pass) % 7) * 9_000).0,
        );
    }

    #[test]
    fn ordinals() {
        let words: Vec<String> = [2, 3, 10, 11, 21, 112].into_iter().map(ordinal).collect();
        assert_eq!(words, ["2nd", "3rd", "10th", "11th", "21st", "112th"]);
    }
}
