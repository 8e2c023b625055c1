//! `speed-by-position`: the rate changes along the target, and the passes show it again at the same positions, each in an order of
//! its own. It is silent on a target that is equally fast everywhere, or whose zones do not come back.

use super::prelude::*;
use rdsk_analysis::read_some_zeros;
use rdsk_analysis::zones::{Steps, TIGHT, Zones};
use rdsk_model::ReadContent;

pub(super) const RULE: Rule = Rule::new("speed-by-position", Severity::Cause, Needs::OwnTimes, check);

/// The factor between the fastest and the slowest zone, all of its interval, from which data is worth moving.
const MIN_ADVISED: f64 = 1.1;

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let read: Vec<(&CellRecord, &Zones)> = super::prelude::zones(analysis)
        .into_iter()
        .filter(|(_, zones)| zones.differ() && zones.factor() >= MIN_EFFECT)
        // With small blocks on a rotational disk, seeks differ more than the tracks do.
        .filter(|(cell, zones)| is_steady(zones) || !rdsk_analysis::zones::rotates(analysis, cell))
        .collect();
    let targets = by_key(read.into_iter().map(|reading| (&reading.0.workload.targets, reading)));
    targets.into_iter().filter_map(|(_, of_target)| of_disk(analysis, &of_target)).collect()
}

/// The finding of one target, by the block size that shows it best.
fn of_disk(analysis: &Analysis<'_>, read: &[(&CellRecord, &Zones)]) -> Option<Finding> {
    let (cell, zones) = read.iter().min_by(|left, right| left.1.by_clearness(right.1))?;
    let (fast, slow) = (zones.fastest(), zones.slowest());
    let rotates = rdsk_analysis::zones::rotates(analysis, cell);
    // The outer tracks of a disk are those of its first blocks, and explain it whatever it holds.
    let by_tracks = rotates && fast.first < slow.first;
    let zeros = read_some_zeros(cell, &analysis.targets).filter(|_| !by_tracks);
    let text = format!(
        "{} zones have different rates, from {} at {} to {} at {}. {}{}",
        zones.zones.len(),
        words::rate(fast.bytes_per_s),
        words::bytes(fast.begin_bytes),
        words::rate(slow.bytes_per_s),
        words::bytes(slow.begin_bytes),
        match zones.steps {
            Steps::OfOnePass => "With one sweep only, a change with time looks the same. ",
            _ => "",
        },
        why(zeros, by_tracks, rotates),
    );
    let again = if zones.steps == Steps::OfOnePass {
        "; repeat with --runs 4 to exclude a change with time"
    } else {
        ""
    };
    let finding = RULE
        .finding(
            format!("speed depends on the position: {} between zones", words::times(zones.factor())),
            text,
        )
        .effect(
            Stake::Cost,
            Some(zones.factor()),
            format!(
                "speed depends on the position, {} between zones: {} at {}, {} at {}",
                words::times(zones.factor()),
                words::rate(fast.bytes_per_s),
                words::bytes(fast.begin_bytes),
                words::rate(slow.bytes_per_s),
                words::bytes(slow.begin_bytes)
            ),
        )
        .evidence(read.iter().take(4).map(|(cell, zones)| cited(cell, zones)))
        .advice(match fast.first {
            _ if zeros.is_some() => {
                format!("measure again where data is stored, or once the device has been written{again}")
            }
            _ if zones.factor_range.is_none_or(|(low, _)| low < MIN_ADVISED) => {
                format!("quote the rate with its position{again}")
            }
            0 => format!(
                "quote the rate with its position; put data that must be fast into the first {}{again}",
                words::bytes(fast.end_bytes)
            ),
            _ => format!(
                "quote the rate with its position; put data that must be fast between {} and {}{again}",
                words::bytes(fast.begin_bytes),
                words::bytes(fast.end_bytes)
            ),
        })
        .cells(read.iter().map(|(cell, _)| *cell));
    Some(finding)
}

/// What may cause zones.
fn why(zeros: Option<ReadContent>, by_tracks: bool, rotates: bool) -> String {
    match zeros {
        Some(content) => format!(
            "{} of {} places that were checked held only zeros, which a device may return without reading its medium, and fast.",
            content.zero_pages, content.pages
        ),
        None if by_tracks => {
            "A rotational disk has more sectors on its outer tracks, and every track takes the same time.".into()
        }
        None if rotates => "A rotating disk is fastest at its start, and this one is not: caches, the members of an array or unallocated blocks can \
                            cause this."
            .into(),
        None => "The device does not rotate: caches, the members of an array, unallocated blocks or another medium can cause this."
            .into(),
    }
}

fn is_steady(zones: &Zones) -> bool {
    // Where a part of the I/Os loses a revolution, the size of that part moves the median.
    zones.latency_bands.is_none() && zones.scatter.is_none_or(|scatter| scatter <= TIGHT)
}

fn cited(cell: &CellRecord, zones: &Zones) -> String {
    let rate = |bytes_per_s: Option<f64>| bytes_per_s.map_or_else(|| "not measured".into(), words::rate);
    let outer_inner = format!(
        "{}, inner = {}, zones = {}",
        rate(zones.outer_bytes_per_s),
        rate(zones.inner_bytes_per_s),
        zones.zones.len()
    );
    let range = zones.factor_range.map_or_else(String::new, |(low, high)| {
        format!(", fastest over slowest = {} to {}", words::times(low), words::times(high))
    });
    cite(cell, "outer", outer_inner + &range)
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::{NOISES, Noise, RUN_WINDOWS};
    use rdsk_analysis::fixtures::zones::{ascending, made};
    use rdsk_model::{Record, TargetKind};
    use rdsk_stats::rng::SplitMix64;

    /// A step of 10 % among 40 positions, and none, in 200 runs each of six passes over noise in time.
    #[test]
    fn noise_of_time_has_no_zones_and_a_step_of_a_fifth_is_found() {
        let run = |noise: &[f64], step: f64, passes: u32| {
            made(40, passes, |place, _, number| {
                let at = (number as usize - 1) * noise.len() / (40 * passes as usize);
                let slower = if place >= 20 { 1.0 + step } else { 1.0 };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive and small"
                )]
                let ns = (1e7 * slower / noise[at].max(0.2)) as u64;
                ns
            })
            .0
        };
        let told = |record: &Record| !(RULE.check)(&Analysis::of(record)).is_empty();
        for (index, kind) in NOISES.into_iter().enumerate() {
            let of = |seed: u64, sigma: f64| kind.windows(&mut SplitMix64::new(seed), RUN_WINDOWS, sigma);
            let alarms = (0..200).filter(|&seed| told(&run(&of(seed, 0.1), 0.0, 6))).count();
            assert!(alarms <= 4, "{kind:?}: {alarms} of 200");
            if index < 2 {
                // More scatter than 5 % is that of seeks, on a disk with platters.
                let found = (0..200).filter(|&seed| told(&run(&of(seed, 0.04), 0.2, 6))).count();
                assert!(found >= 180, "{kind:?}: {found} of 200");
            }
        }
    }

    /// The same in ascending order, where neighbours on the disk are neighbours in time.
    #[test]
    fn noise_of_time_has_no_zones_in_ascending_order_and_a_step_of_a_fifth_is_found() {
        let run = |seed: u64, kind: Noise, sigma: f64, step: f64| {
            let mut rng = SplitMix64::new(seed);
            let noise = kind.windows(&mut rng, 300, sigma);
            let starts =
                [0, 1, 2].map(|pass| if pass == 0 { 0 } else { u32::try_from(rng.below(100)).unwrap() });
            let latency = |place: u32, _: u32, number: u32| {
                let slower = if place >= 50 { 1.0 + step } else { 1.0 };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive and small"
                )]
                let ns = (1e7 * slower / noise[number as usize - 1].max(0.2)) as u64;
                ns
            };
            !(RULE.check)(&Analysis::of(&ascending(100, &starts, latency).0)).is_empty()
        };
        for (index, kind) in NOISES.into_iter().enumerate() {
            let alarms = (0..200).filter(|&seed| run(seed, kind, 0.1, 0.0)).count();
            assert!(alarms <= 2, "{kind:?}: {alarms} of 200");
            if index == 0 {
                let found = (0..200).filter(|&seed| run(seed, kind, 0.03, 0.2)).count();
                assert!(found >= 180, "{kind:?}: {found} of 200");
            }
        }
    }

    /// Ascending passes that all begin at the first position, as in older Records, or too few of them, show no position.
    #[test]
    fn passes_in_the_same_order_cannot_tell_positions_from_time() {
        let steps = |place: u32, _: u32, _: u32| 10_000_000 + 5_000_000 * u64::from(place / 20);
        fires(RULE, &ascending(60, &[0, 17, 41], steps).0);
        silent(RULE, &ascending(60, &[0, 17], steps).0);
        let (mut same, _) = ascending(60, &[0, 0, 0], steps);
        same.cells[0].workload.points.as_mut().unwrap().moves_start = false;
        silent(RULE, &same);
        let seen = Analysis::of(&same).zones(&same.cells[0]).cloned().unwrap();
        assert_eq!((seen.steps, seen.zones.len()), (Steps::Untold, 1));
    }

    #[test]
    fn one_pass_is_not_told_from_time_and_a_pattern_of_one_half_is_none() {
        let steps = |place: u32| 10_000_000 + 5_000_000 * u64::from(place / 20);
        let one = fires(RULE, &made(60, 1, |place, _, _| steps(place)).0);
        assert!(one.text.contains("one sweep only, a change"), "{}", one.text);
        silent(RULE, &made(60, 4, |place, pass, _| if pass < 3 { 10_000_000 } else { steps(place) }).0);
        silent(RULE, &made(60, 2, |place, pass, _| steps(if pass == 0 { place } else { 59 - place })).0);
    }

    #[test]
    fn fires_where_the_rate_steps_and_not_where_it_is_the_same() {
        let steps = made(60, 3, |place, _, _| 10_000_000 + 5_000_000 * u64::from(place / 20));
        let finding = fires(RULE, &steps.0);
        assert!(finding.title.contains("2.00x"), "{}", finding.title);
        assert!(finding.text.contains("3 zones"), "{}", finding.text);
        silent(RULE, &made(60, 3, |place, pass, _| 10_000_000 + u64::from((place + pass) % 7) * 9_000).0);
    }

    /// A VM disk of 13% scatter (2026-11): three zones, hardly apart, and the advice to put data into one of them.
    #[test]
    fn a_place_is_advised_only_where_all_of_the_interval_is_worth_it() {
        let stepped = |by: u64, wobble: u64| {
            let latency = |place: u32, pass: u32, _: u32| {
                let slower = if place >= 30 { by } else { 0 };
                100_000 * (100 + slower)
                    + 1_000 * ((u64::from(pass) * 37) % 11) * wobble * u64::from(place / 30)
            };
            let mut record = made(60, 6, latency).0;
            record.targets[0].device.as_mut().unwrap().rotational = Some(false);
            record
        };
        let advice = |by: u64, wobble: u64| fires(RULE, &stepped(by, wobble)).advice.unwrap();
        assert!(advice(20, 0).contains("put data that must be fast into the first"));
        assert!(!advice(8, 180).contains("put data"), "{}", advice(8, 180));
        let seen = |record: &Record| Analysis::of(record).zones(&record.cells[0]).cloned().unwrap();
        let exact = seen(&stepped(20, 0));
        assert!(exact.factor_range.is_some_and(|(low, high)| low > 1.199 && high < 1.201), "{exact:?}");
        silent(RULE, &stepped(4, 0));
        // Sure, and too small to matter.
        silent(RULE, &stepped(13, 0));
    }

    /// What other programs do meanwhile may be at the same positions in each pass.
    #[test]
    fn no_position_is_told_beside_other_programs() {
        let (mut record, _) = made(60, 3, |place, _, _| 10_000_000 + 5_000_000 * u64::from(place / 20));
        fires(RULE, &record);
        rdsk_analysis::fixtures::rates::shared_in_the_last_visit(&mut record.cells[0]);
        silent(RULE, &record);
        let zones = Analysis::of(&record).zones(&record.cells[0]).cloned().unwrap();
        assert_eq!((zones.steps, zones.zones.len(), zones.factor_range), (Steps::Shared, 1, None));
    }

    /// A rotational disk in small blocks: the share of the I/Os that lose a revolution changes with the position, and moves
    /// the medians. Larger blocks without bands show it; by themselves the small ones say nothing.
    #[test]
    fn a_changing_share_of_late_ios_is_no_change_of_speed() {
        let late = |place: u32, _: u32, number: u32| {
            let every = if (20..40).contains(&place) { 5 } else { 2 };
            10_000_000 + u64::from(place) * 1_000 + if number.is_multiple_of(every) { 8_000_000 } else { 0 }
        };
        let (mut record, _) = made(60, 1, late);
        record.targets[0].device.as_mut().unwrap().rotational = Some(true);
        let zones = Analysis::of(&record).zones(&record.cells[0]).cloned().expect("positions were visited");
        assert!(zones.latency_bands.is_some() && zones.scatter.is_none(), "{zones:?}");
        silent(RULE, &record);
        let (_, mut large) = made(60, 1, |place, _, _| 20_000_000 + 10_000_000 * u64::from(place / 20));
        (large.id, large.workload.block_bytes) = ("zones/read/5M".into(), 5 << 20);
        record.cells.push(large);
        let finding = fires(RULE, &record);
        assert_eq!(finding.cells, ["zones/read/5M"]);
        assert!(finding.advice.unwrap().contains("into the first"));
    }

    /// What may be the reason is said only where it fits what was seen.
    #[test]
    fn tracks_are_named_only_of_platters_and_unwritten_parts_where_zeros_were_seen() {
        let slow_first = |place: u32, _: u32, _: u32| 30_000_000 - 10_000_000 * u64::from(place / 20);
        let fast_first = |place: u32, _: u32, _: u32| 10_000_000 + 5_000_000 * u64::from(place / 20);
        let told = |steps: &dyn Fn(u32, u32, u32) -> u64, rotational: bool, zero_pages: u64| {
            let (mut record, _) = made(60, 3, steps);
            record.targets[0].kind = TargetKind::Block;
            let device = record.targets[0].device.as_mut().unwrap();
            (device.rotational, device.discards) = (Some(rotational), Some(!rotational));
            record.cells[0].result.content = Some(ReadContent { pages: 64, zero_pages });
            fires(RULE, &record)
        };
        let tracks = "more sectors on its outer tracks";
        assert!(told(&fast_first, true, 0).text.contains(tracks));
        assert!(told(&slow_first, true, 0).text.contains("A rotating disk is fastest at its start"));
        assert!(told(&fast_first, false, 0).text.contains("The device does not rotate"));
        let thin = told(&slow_first, false, 32);
        assert!(thin.text.contains("32 of 64 places that were checked held only zeros"), "{}", thin.text);
        assert!(thin.advice.as_ref().unwrap().starts_with("measure again where data"), "{:?}", thin.advice);
    }

    #[test]
    fn every_disk_has_a_finding_of_its_own() {
        let (mut record, cell) = made(60, 3, |place, _, _| 10_000_000 + 5_000_000 * u64::from(place / 20));
        record.targets.push(rdsk_model::Target {
            index: 1,
            name: "other".into(),
            ..record.targets[0].clone()
        });
        let mut other = CellRecord { id: "zones/read/1M@1".into(), ..cell };
        other.workload.targets = vec![1];
        record.cells.push(other);
        let found = check(&Analysis::of(&record));
        let cells: Vec<&[String]> = found.iter().map(|finding| finding.cells.as_slice()).collect();
        assert_eq!(cells, [["zones/read/1M"], ["zones/read/1M@1"]]);
    }
}
