//! `latency-bands`: the latencies at one position fall into bands, and what causes them; or they have two speeds in time. It
//! names a cause only when a test shows it.

use super::prelude::*;
use rdsk_analysis::zones::{Cause, LatencyBand, LatencyBands};

pub(super) const RULE: Rule = Rule::new("latency-bands", Severity::Cause, Needs::OwnTimes, check);

/// Most bands that the text names one by one.
const MAX_NAMED: usize = 3;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let by_cause = by_key(zones(analysis).into_iter().filter_map(|(cell, zones)| {
        let latency_bands = zones.latency_bands.as_ref()?;
        Some((latency_bands.cause, (cell, latency_bands)))
    }));
    by_cause.iter().map(|(cause, banded_cells)| finding(*cause, banded_cells)).collect()
}

fn finding(cause: Cause, banded_cells: &[(&CellRecord, &LatencyBands)]) -> Finding {
    let (first, latency_bands) = &banded_cells[0];
    let bands = by_size(latency_bands);
    let beside: f64 = bands.iter().map(|band| band.share).sum();
    let text = format!(
        "{} of the {} take the usual time; {} are in {}. {}",
        rdsk_units::percent(1.0 - beside),
        words::test(first),
        rdsk_units::percent(beside),
        match &bands[..] {
            [band] => format!("one band, {}", by(band.offset_ns)),
            many if many.len() <= MAX_NAMED =>
                format!("{} other bands: {}", many.len(), words::list(&named(many))),
            many => format!(
                "{} other bands, the largest of them {}",
                many.len(),
                words::list(&named(&many[..MAX_NAMED]))
            ),
        },
        why(cause, first, latency_bands)
    );
    let largest =
        format!("{} of the I/Os are {}", rdsk_units::percent(bands[0].share), by(bands[0].offset_ns));
    let title = match cause {
        Cause::TwoSpeeds => format!("two speeds in time: {largest}"),
        _ => format!("{largest}: {}", cause.word()),
    };
    RULE.finding(title, text)
        .evidence(banded_cells.iter().take(6).map(|(cell, latency_bands)| cited(cell, latency_bands)))
        .confidence(match cause {
            Cause::Unknown | Cause::TwoSpeeds => Confidence::Measured,
            _ => Confidence::Inferred,
        })
        .advice(advice(cause))
        .cells(banded_cells.iter().map(|(cell, _)| *cell))
}

/// The bands, the largest first.
fn by_size(latency_bands: &LatencyBands) -> Vec<&LatencyBand> {
    let mut bands: Vec<&LatencyBand> = latency_bands.bands.iter().collect();
    bands.sort_by_key(|band| std::cmp::Reverse(band.count));
    bands
}

/// `6.0 % 3.00 ms later`, for each band.
fn named(bands: &[&LatencyBand]) -> Vec<String> {
    bands.iter().map(|band| format!("{} {}", rdsk_units::percent(band.share), by(band.offset_ns))).collect()
}

fn cited(cell: &CellRecord, latency_bands: &LatencyBands) -> String {
    let bands: Vec<&LatencyBand> = latency_bands.bands.iter().collect();
    let chance = words::chance(latency_bands.p_value);
    cite(cell, "bands", format_args!("{} ({chance})", named(&bands).join(", ")))
}

/// `8.33 ms later`, `90.0 µs faster`.
fn by(offset_ns: f64) -> String {
    format!("{} {}", nanos(offset_ns.abs()), if offset_ns > 0.0 { "later" } else { "faster" })
}

fn nanos(ns: f64) -> String {
    words::mean_nanos(ns.round())
}

fn why(cause: Cause, cell: &CellRecord, latency_bands: &LatencyBands) -> String {
    match cause {
        Cause::Clock { resolution_ns } => format!(
            "They come from the clock, not from the disk: it advances in steps of {}, and adding noise of that size removes the \
             bands.",
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
        Cause::Limit => "A cgroup limits the I/O of this device: some I/Os go through at once, others wait for the limit. The bands are not \
                         the disk's."
            .into(),
        Cause::OtherIo => format!(
            "The device served other I/O at the same time, and {} I/Os had to wait for it.",
            if all_lie(latency_bands, |offset_ns| offset_ns > 0.0) { "these" } else { "the later" }
        ),
        Cause::StartOfPass { share } => format!(
            "{} of the late I/Os are among the first of a sweep: an idle device takes time to resume.",
            rdsk_units::percent(share)
        ),
        Cause::MissedRevolution { revolution_ns } => format!(
            "That is one revolution of the disk, {} at {:.0} rpm: the next block had already gone by under the head when it was \
             requested.",
            nanos(revolution_ns),
            60e9 / revolution_ns
        ),
        Cause::Periodic { every } => format!(
            "Every {} I/O is {}, at any offset. A cache that is flushed or a table that is written after so many I/Os does this.",
            ordinal(every),
            if all_lie(latency_bands, |offset_ns| offset_ns > 0.0) {
                "late"
            } else if all_lie(latency_bands, |offset_ns| offset_ns < 0.0) {
                "faster"
            } else {
                "beside the usual time"
            }
        ),
        Cause::Unknown if has_verdict(cell, VerdictCode::Disturbed) => {
            "Neither the resolution of the clock nor a revolution of a disk explains them. The device served other I/O at the \
             same time, for which the slower I/Os may have waited.".into()
        }
        Cause::Unknown => {
            "Neither the resolution of the clock, nor other I/O, nor the start of a sweep, nor a revolution of a disk explains \
             them.".into()
        }
    }
}

/// Whether the offsets of all bands are on this side of the main mode.
fn all_lie(latency_bands: &LatencyBands, side: fn(f64) -> bool) -> bool {
    latency_bands.bands.iter().all(|band| side(band.offset_ns))
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::Clock { .. } => "trust the mean of many I/Os, not the bands; use larger blocks",
        Cause::TwoSpeeds => {
            "look for what came and went at these times (iostat -x 1, temperature, other virtual machines on the host); quote both speeds"
        }
        Cause::Limit => "run outside the limited cgroup (container, slice), or raise the limit",
        Cause::OtherIo => "repeat the run when the device is idle",
        Cause::StartOfPass { .. } => "measure longer sweeps, or leave out the first I/Os of each",
        Cause::MissedRevolution { .. } => {
            "use larger blocks or several I/Os in flight, so that the disk always has the next request"
        }
        Cause::Periodic { .. } | Cause::Unknown => {
            "look at the latencies by position and over time in the result (--json: result.points)"
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
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::Noise;
    use rdsk_analysis::fixtures::zones::{ascending, made};
    use rdsk_model::{Record, Verdict};
    use rdsk_stats::rng::SplitMix64;

    #[test]
    fn fires_on_a_band_and_not_on_one_line() {
        let late = |number: u32| if number.is_multiple_of(10) { 3_000_000 } else { 0 };
        let banded = made(60, 10, |_, pass, number| 10_000_000 + u64::from(pass) * 9_000 + late(number));
        let finding = fires(RULE, &banded.0);
        assert!(finding.title.contains("10.0%") || finding.title.contains("10%"), "{}", finding.title);
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
        assert!(finding.text.starts_with("81.7% of the 1M reads take the usual time"), "{}", finding.text);
    }

    /// I/Os whose place in a row of 100, shuffled, is within these shares of it are off by so much.
    fn shares(of: &[(u64, i64)]) -> Record {
        let mut rng = SplitMix64::new(12);
        let mut row: Vec<u64> = (0..100).collect();
        made(100, 10, |_, pass, number| {
            if number % 100 == 1 {
                (1..100)
                    .rev()
                    .for_each(|at| row.swap(at, usize::try_from(rng.below(at as u64 + 1)).unwrap()));
            }
            let (mut place, mut off_ns) = (row[number as usize % 100], 0);
            for &(share, by_ns) in of {
                if place < share {
                    off_ns = by_ns;
                    break;
                }
                place -= share;
            }
            (10_000_000 + u64::from(pass) * 9_000).saturating_add_signed(off_ns)
        })
        .0
    }

    #[test]
    fn each_share_is_that_of_its_own_band() {
        let both = fires(RULE, &shares(&[(6, 3_000_000), (5, -1_100_000)]));
        assert_eq!(both.title, "6.0% of the I/Os are 3.00 ms later: cause unknown");
        let text = "; 11.0% are in 2 other bands: 6.0% 3.00 ms later and 5.0% 1.10 ms faster. ";
        assert!(both.text.contains(text), "{}", both.text);
        let three = fires(RULE, &shares(&[(5, 3_000_000), (4, 6_000_000), (4, 9_000_000)]));
        assert_eq!(three.title, "5.0% of the I/Os are 3.00 ms later: cause unknown");
        let text =
            "; 13.0% are in 3 other bands: 5.0% 3.00 ms later, 4.0% 6.00 ms later and 4.0% 9.00 ms later. ";
        assert!(three.text.contains(text), "{}", three.text);
    }

    #[test]
    fn what_is_faster_is_not_called_late_and_did_not_wait() {
        let fourth = |sign: i64| {
            let off = move |number: u32| if number.is_multiple_of(4) { sign * 3_000_000 } else { 0 };
            made(60, 10, move |_, pass, number| {
                (10_000_000 + u64::from(pass) * 9_000).saturating_add_signed(off(number))
            })
            .0
        };
        let faster = fires(RULE, &fourth(-1));
        assert_eq!(faster.title, "25.0% of the I/Os are 3.00 ms faster: periodic");
        assert!(faster.text.contains("Every 4th I/O is faster, at any offset"), "{}", faster.text);
        assert!(fires(RULE, &fourth(1)).text.contains("Every 4th I/O is late, at any offset"));

        let disturbed = |of: &[(u64, i64)]| {
            let mut record = shares(of);
            let text = "others".into();
            record.cells[0].verdict =
                Some(Verdict { code: VerdictCode::Disturbed, text, device_share: None });
            fires(RULE, &record)
        };
        let faster = disturbed(&[(20, -3_000_000)]);
        assert_eq!(faster.title, "20.0% of the I/Os are 3.00 ms faster: cause unknown");
        assert!(
            faster.text.contains("other I/O at the same time, for which the slower I/Os may have waited"),
            "{}",
            faster.text
        );
        assert!(!faster.text.contains("nor other I/O"), "{}", faster.text);
        let later = disturbed(&[(20, 3_000_000)]);
        assert!(later.text.contains("and these I/Os had to wait for it"), "{}", later.text);
        let both = disturbed(&[(6, 3_000_000), (5, -1_100_000)]);
        assert!(both.text.contains("and the later I/Os had to wait for it"), "{}", both.text);
    }

    /// Latencies that change between two speeds a few times are not bands, and the page says when.
    #[test]
    fn two_speeds_in_time_are_called_so() {
        let slow = |number: u32| (200..260).contains(&number) || (400..470).contains(&number);
        let mut rng = SplitMix64::new(4);
        let two = made(60, 10, |_, _, number| noisy(&mut rng, 10e6 + if slow(number) { 3e6 } else { 0.0 }));
        let finding = fires(RULE, &two.0);
        assert!(
            finding.title.starts_with("two speeds in time: 21.7% of the I/Os are 2.98 ms later"),
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
        // One pass cannot separate positions from chance.
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
        assert!(finding.title.contains("later: a cgroup's limit"), "{}", finding.title);
        assert!(finding.text.contains("others wait for the limit"), "{}", finding.text);
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
