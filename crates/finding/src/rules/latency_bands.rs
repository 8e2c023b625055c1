//! `latency-bands`: the latencies at one position fall into bands, and what causes them; or they have two speeds in time. It
//! names a cause only when a test shows it.

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
    let bands = &latency_bands.bands;
    let beside: f64 = bands.iter().map(|band| band.share).sum();
    let largest = bands.iter().max_by_key(|band| band.count);
    let offset = largest.map_or_else(String::new, |band| by(band.offset_ns));
    let share = rdsk_units::percent(beside);
    let text = format!(
        "The main mode has {} of the I/Os of {}; {share} are in {}{offset}. {}",
        rdsk_units::percent(1.0 - beside),
        first.id,
        match bands.len() {
            1 => "one band, ".to_owned(),
            many => format!("{many} other bands, most of them "),
        },
        why(cause, latency_bands)
    );
    let title = match cause {
        Cause::TwoSpeeds => format!("two speeds in time: {share} of the I/Os are {offset}"),
        _ => format!("{share} of the I/Os are {offset}: {}", cause.word()),
    };
    RULE.finding(title, text)
        .evidence(seen.iter().take(6).map(|(cell, latency_bands)| cited(cell, latency_bands)))
        .confidence(match cause {
            Cause::Unknown | Cause::TwoSpeeds => Confidence::Measured,
            _ => Confidence::Inferred,
        })
        .advice(advice(cause))
        .cells(seen.iter().map(|(cell, _)| *cell))
}

fn cited(cell: &CellRecord, latency_bands: &LatencyBands) -> String {
    let bands: Vec<String> = latency_bands
        .bands
        .iter()
        .map(|band| format!("{} {}", rdsk_units::percent(band.share), by(band.offset_ns)))
        .collect();
    cite(cell, "bands", format_args!("{} ({})", bands.join(", "), words::chance(latency_bands.p_value)))
}

/// `8.33 ms later`, `90.0 µs faster`.
fn by(offset_ns: f64) -> String {
    format!("{} {}", nanos(offset_ns.abs()), if offset_ns > 0.0 { "later" } else { "faster" })
}

fn nanos(ns: f64) -> String {
    words::nanos(metrics::whole(ns.round()))
}

fn why(cause: Cause, latency_bands: &LatencyBands) -> String {
    match cause {
        Cause::Clock { resolution_ns } => format!(
            "They are an artefact of the clock, not of the disk: it advances in steps of {}, and adding noise of that size \
             removes the bands.",
            words::nanos(resolution_ns)
        ),
        Cause::TwoSpeeds => latency_bands.when.map_or_else(String::new, |when| {
            format!(
                "The others came in {}, the longest from {} to {} of the I/O time. Neighbours in the order of issue have the same \
                 speed more often than chance has it.",
                words::plural(when.count as u64, "stretch").replace("stretchs", "stretches"),
                words::nanos(when.longest_ns.0),
                words::nanos(when.longest_ns.1)
            )
        }),
        Cause::Limit => "The control group that rdsk runs in limits the I/O of this device: it lets some I/Os pass at once and holds \
                         others back until the limit has room for them. They say nothing of the disk."
            .into(),
        Cause::OtherIo => "The device served other I/O at the same time, and these I/Os had to wait for it.".into(),
        Cause::StartOfPass { share } => format!(
            "{} of the late I/Os are among the first of a pass: an idle device takes time to resume.",
            rdsk_units::percent(share)
        ),
        Cause::MissedRevolution { revolution_ns } => format!(
            "That is one revolution of the disk, {} at {:.0} rpm: for the slower ones, the next block had already passed under \
             the head when it was requested.",
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
        Cause::TwoSpeeds => {
            "look for what came and went at these times (iostat -x 1, temperature, a neighbour on the same host); quote both speeds"
        }
        Cause::Limit => "run outside the limited group (container, slice), or raise the limit",
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
    use rdsk_analysis::fixtures::rates::Noise;
    use rdsk_analysis::fixtures::zones::{ascending, made};
    use rdsk_model::{Verdict, VerdictCode};
    use rdsk_stats::rng::SplitMix64;

    #[test]
    fn fires_on_a_band_and_not_on_one_line() {
        let late = |number: u32| if number.is_multiple_of(10) { 3_000_000 } else { 0 };
        let banded = made(60, 10, |_, pass, number| 10_000_000 + u64::from(pass) * 9_000 + late(number));
        let finding = fires(RULE, &banded.0);
        assert!(finding.title.contains("10.0 %") || finding.title.contains("10 %"), "{}", finding.title);
        assert!(finding.title.contains("are 3.00 ms later: periodic"), "{}", finding.title);
        assert!(finding.text.contains("Every 10th I/O"), "{}", finding.text);
        assert!(finding.evidence[0].contains("p < 1e-4"), "{:?}", finding.evidence);
        silent(
            RULE,
            &made(60, 10, |place, pass, _| 10_000_000 + u64::from((place * 3 + pass) % 7) * 9_000).0,
        );
    }

    #[test]
    fn the_largest_band_is_the_main_mode_even_if_it_is_slower() {
        let mut rng = SplitMix64::new(2);
        let fast = made(60, 10, |_, pass, _| {
            10_000_000 + u64::from(pass) * 9_000 - if rng.uniform() < 0.2 { 3_000_000 } else { 0 }
        });
        let finding = fires(RULE, &fast.0);
        assert!(finding.title.contains("2.99 ms faster: cause unknown"), "{}", finding.title);
        assert!(finding.text.starts_with("The main mode has 8"), "{}", finding.text);
    }

    /// Latencies that change between two speeds a few times are not bands, and the page says when.
    #[test]
    fn two_speeds_in_time_are_called_so() {
        let slow = |number: u32| (200..260).contains(&number) || (400..470).contains(&number);
        let mut rng = SplitMix64::new(4);
        let two = made(60, 10, |_, _, number| noisy(&mut rng, 10e6 + if slow(number) { 3e6 } else { 0.0 }));
        let finding = fires(RULE, &two.0);
        assert!(
            finding.title.starts_with("two speeds in time: 21.7 % of the I/Os are 2.98 ms later"),
            "{}",
            finding.title
        );
        assert!(finding.text.contains("came in 2 stretches, the longest from 4."), "{}", finding.text);
    }

    /// In ascending order the late I/Os of a part of the disk are neighbours in time in every pass, and of no moment.
    #[test]
    fn a_part_of_the_disk_that_is_often_late_is_not_two_speeds_in_time() {
        let mut rng = SplitMix64::new(8);
        let starts: Vec<u32> = (0..10).map(|pass| pass * 7 % 40).collect();
        let of_place = ascending(40, &starts, |place, _, _| {
            let often = if place < 16 { 0.45 } else { 0.05 };
            let late = rng.uniform() < often;
            noisy(&mut rng, 10e6 + if late { 3e6 } else { 0.0 })
        });
        assert!(!fires(RULE, &of_place.0).title.contains("two speeds"));
        let mut rng = SplitMix64::new(9);
        let of_time = ascending(40, &starts, |_, _, number| {
            let late = (100..160).contains(&number) || (300..340).contains(&number);
            noisy(&mut rng, 10e6 + if late { 3e6 } else { 0.0 })
        });
        assert!(fires(RULE, &of_time.0).title.contains("two speeds in time"));
    }

    /// Three ascending passes over a disk whose speed swings by a tenth either way, each I/O 500th of a swing. The curve over the positions
    /// has steps then, and where the main mode steps, what an I/O is late by jumps although nothing else does.
    #[test]
    fn a_swing_is_not_two_speeds_in_time() {
        let told = (0..200_u64).flat_map(|seed| {
            let mut rng = SplitMix64::new(seed);
            let begin = rng.uniform();
            let starts: Vec<u32> =
                (0..3).map(|_| u32::try_from(rng.below(400)).expect("less than 400")).collect();
            let swing = |number: u32| ((f64::from(number) / 500.0 + begin) * std::f64::consts::TAU).sin();
            let record = ascending(400, &starts, |_, _, number| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
                let ns = (1e8 / (1.0 + 0.1 * swing(number))) as u64;
                ns
            });
            (RULE.check)(&Analysis::of(&record.0)).into_iter().map(|finding| finding.title)
        });
        assert_eq!(told.collect::<Vec<String>>(), Vec::<String>::new());
    }

    #[test]
    fn passes_and_positions_of_their_own_speed_are_no_bands() {
        let mut rng = SplitMix64::new(6);
        let passes = made(40, 6, |_, pass, _| noisy(&mut rng, 10e6 + if pass < 4 { 0.0 } else { 3e6 }));
        silent(RULE, &passes.0);
        // One late I/O that begins a pass of the main mode makes no second speed of them.
        let late = made(40, 6, |_, pass, number| match (pass, number) {
            (4, 161) => 13_500_000,
            (pass, _) => noisy(&mut rng, 10e6 + if pass < 4 { 3e6 } else { 0.0 }),
        });
        silent(RULE, &late.0);
        let positions = made(60, 6, |place, _, _| noisy(&mut rng, if place % 7 < 2 { 9e6 } else { 12e6 }));
        silent(RULE, &positions.0);
        // One pass cannot tell positions from chance.
        let one = made(600, 1, |place, _, _| noisy(&mut rng, if place % 7 < 2 { 9e6 } else { 12e6 }));
        fires(RULE, &one.0);
    }

    /// A group that lets two I/Os pass in a slice of its time and holds the third one back until the next.
    #[test]
    fn what_a_limit_holds_back_is_not_of_an_unknown_cause() {
        let held = |number: u32| if number.is_multiple_of(3) { 99_700_000 } else { 0 };
        let mut record = made(60, 10, |_, pass, number| 400_000 + u64::from(pass) * 500 + held(number)).0;
        record.cells[0].verdict =
            Some(Verdict { code: VerdictCode::Throttled, text: "a limit".into(), device_share: None });
        let finding = fires(RULE, &record);
        assert!(finding.title.contains("later: a control group's limit"), "{}", finding.title);
        assert!(finding.text.contains("holds others back"), "{}", finding.text);
        assert_eq!(finding.confidence, Confidence::Inferred);
        assert!(finding.advice.as_deref().unwrap_or_default().contains("raise the limit"), "{finding:?}");
    }

    fn noisy(rng: &mut SplitMix64, ns: f64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
        let ns = (ns * (1.0 + 0.02 * rng.normal()).max(0.2)) as u64;
        ns
    }

    /// Ten passes over 40 positions, 200 times with each kind of noise in time that is no speed of its own.
    #[test]
    fn noise_has_no_bands_and_a_tenth_that_is_late_has() {
        for kind in
            [Noise::Independent, Noise::Autoregressive(0.9), Noise::Autoregressive(0.99), Noise::Flicker]
        {
            let alarms = (0..200).filter(|&seed| {
                let noise = kind.windows(&mut SplitMix64::new(seed), 400, 0.1);
                let record = made(40, 10, |_, _, number| {
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
                    let ns = (1e7 / noise[number as usize - 1].max(0.2)) as u64;
                    ns
                });
                !(RULE.check)(&Analysis::of(&record.0)).is_empty()
            });
            let alarms = alarms.count();
            assert!(alarms <= 4, "{kind:?}: {alarms} of 200");
        }
        let found = (0..200).filter(|&seed| {
            let mut rng = SplitMix64::new(seed);
            let record = made(40, 10, |_, _, _| {
                let late = if rng.uniform() < 0.1 { 3e6 } else { 0.0 };
                noisy(&mut rng, 10e6 + late)
            });
            let found = (RULE.check)(&Analysis::of(&record.0));
            found.len() == 1 && found[0].title.contains("later: cause unknown")
        });
        let found = found.count();
        assert!(found >= 180, "{found} of 200");
    }

    #[test]
    fn ordinals() {
        let words: Vec<String> = [2, 3, 10, 11, 21, 112].into_iter().map(ordinal).collect();
        assert_eq!(words, ["2nd", "3rd", "10th", "11th", "21st", "112th"]);
    }
}
