//! `latency-bands`: the latencies at one position fall into bands, and what causes them. It names a cause only when a test
//! shows it.

use super::common::{cite, zones};
use super::{Needs, Rule};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::zones::{Cause, LatencyBands};
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{CellRecord, Confidence, Finding, Severity};

pub(super) const RULE: Rule = Rule::new("latency-bands", Severity::Cause, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let by_cause = by_key(zones(analysis).into_iter().filter_map(|(cell, zones)| {
        let latency_bands = zones.latency_bands.as_ref()?;
        Some((latency_bands.cause, (cell, latency_bands)))
    }));
    by_cause.iter().map(|(cause, seen)| finding(*cause, seen)).collect()
}

fn finding(cause: Cause, seen: &[(&CellRecord, &LatencyBands)]) -> Finding {
    let (first, latency_bands) = &seen[0];
    let late: f64 = latency_bands.bands.iter().map(|band| band.share).sum();
    let largest = latency_bands.bands.iter().max_by_key(|band| band.count);
    let offset = largest.map_or_else(String::new, |band| nanos(band.offset_ns));
    let text = format!(
        "{} of the I/Os of {} are slower than the main mode, in {}{offset} later. {}",
        rdsk_units::percent(late),
        first.id,
        match latency_bands.bands.len() {
            1 => "one band, ".to_owned(),
            many => format!("{many} bands, most of them "),
        },
        why(cause)
    );
    // The main mode is the fastest, however few I/Os are in it.
    let title = if late > 0.5 {
        format!(
            "only {} of the I/Os are not {offset} late: {}",
            rdsk_units::percent(1.0 - late),
            cause.word()
        )
    } else {
        format!("{} of the I/Os are {offset} late: {}", rdsk_units::percent(late), cause.word())
    };
    RULE.finding(title, text)
        .evidence(seen.iter().take(6).map(|(cell, latency_bands)| cited(cell, latency_bands)))
        .confidence(match cause {
            Cause::Unknown => Confidence::Measured,
            _ => Confidence::Inferred,
        })
        .advice(advice(cause))
        .cells(seen.iter().map(|(cell, _)| *cell))
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
    words::nanos(metrics::whole(ns.round()))
}

fn why(cause: Cause) -> String {
    match cause {
        Cause::Clock { resolution_ns } => format!(
            "They are an artefact of the clock, not of the disk: it advances in steps of {}, and adding noise of that size \
             removes the bands.",
            words::nanos(resolution_ns)
        ),
        Cause::OtherIo => "The device served other I/O at the same time, and these I/Os had to wait for it.".into(),
        Cause::StartOfPass { share } => format!(
            "{} of the late I/Os are among the first of a pass: an idle device takes time to resume.",
            rdsk_units::percent(share)
        ),
        Cause::MissedRevolution { revolution_ns } => format!(
            "That is one revolution of the disk, {} at {:.0} rpm: the next block had already passed under the head when it was \
             requested.",
            nanos(revolution_ns),
            60e9 / revolution_ns
        ),
        Cause::Periodic { every } => format!(
            "Every {} I/O is late, at any offset: something counts I/Os, such as a cache that is flushed or a table that is \
             written.",
            ordinal(every)
        ),
        Cause::Unknown => {
            "Neither the resolution of the clock, nor other I/O, nor the start of a pass, nor a revolution of a disk explains \
             them.".into()
        }
    }
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::Clock { .. } => "trust the mean of many I/Os, not the bands; use larger blocks",
        Cause::OtherIo => "repeat the run when the device is idle",
        Cause::StartOfPass { .. } => "measure longer passes, or leave out the first I/Os of each",
        Cause::MissedRevolution { .. } => {
            "use larger blocks or several I/Os in flight, so that the disk always has the next request"
        }
        Cause::Periodic { .. } | Cause::Unknown => {
            "look at the points in the Record (result.points) by position and over time"
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
