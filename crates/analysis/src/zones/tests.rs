//! What is read out of invented cells whose truth is known.

use super::*;
use crate::fixtures::zones::{MS, made};
use rdsk_model::VerdictCode;
use rdsk_stats::rng::SplitMix64;

fn zones_of(made: &(Record, CellRecord)) -> Zones {
    zones(&made.0, &made.1).unwrap()
}

fn noisy(noise: &mut SplitMix64, ns: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
    let ns = (ns as f64 * (1.0 + 0.02 * (noise.uniform() + noise.uniform() - 1.0))) as u64;
    ns
}

#[test]
fn the_curve_is_that_of_the_medians() {
    let two_zones = made(
        4,
        3,
        |place, pass, _| if place < 2 { 10 + 80 * u64::from(pass == 2 && place == 1) } else { 20 } * MS,
    );
    let zones = zones_of(&two_zones);
    assert_eq!(
        (zones.outer_bytes_per_s, zones.inner_bytes_per_s),
        (Some(1_048_576e2), Some(1_048_576e2 / 2.0))
    );
    assert_eq!((zones.positions[1].median_ns, zones.positions[1].max_ns), (1e7, 90 * MS));
    assert_eq!(zones.passes, 3);
    let scatter = zones.scatter.expect("three passes");
    assert!(scatter < 1e-5, "no more than the steps of the clock: {scatter}");
    assert!((zones.outside_ns - 1000.0).abs() < 1e-6);
    assert!(zones.is_tight());
}

/// The median of two or three samples lies near each of them, and the scatter round it would be half of the true one.
#[test]
fn a_few_passes_have_the_scatter_of_many() {
    for passes in [2, 3, 8] {
        let mut noise = SplitMix64::new(11);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
        let noisy_disk = made(499, passes, |_, _, _| (1e7 * (1.0 + 0.07 * noise.normal())) as u64);
        let zones = zones_of(&noisy_disk);
        let scatter = zones.scatter.unwrap();
        assert!((0.06..0.08).contains(&scatter) && !zones.is_tight(), "{passes} passes: {scatter}");
    }
}

/// Two speeds that take turns: both ends may be the same, and the places are not.
#[test]
fn places_that_take_turns_are_not_level_and_noisy_ones_are() {
    for (places, expected) in [(40, (1_048_576e2 / 2.0, 1_048_576e2)), (7, (1_048_576e2 / 2.0, 1_048_576e2))]
    {
        let in_turns = zones_of(&made(places, 3, |place, _, _| if place % 2 == 0 { 10 } else { 20 } * MS));
        assert_eq!(in_turns.usual_bytes_per_s(), Some(expected));
        assert!(!in_turns.is_level());
    }
    // A single slow place of many is not usual.
    let single = zones_of(&made(60, 3, |place, _, _| if place == 30 { 900 } else { 10 } * MS));
    assert_eq!(single.usual_bytes_per_s(), Some((1_048_576e2, 1_048_576e2)));
    assert!(single.is_level());
    for (passes, seed) in [(2, 3), (4, 5), (9, 7)] {
        let mut noise = SplitMix64::new(seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
        let noisy_disk = made(400, passes, |_, _, _| (1e7 * (1.0 + 0.05 * noise.normal())) as u64);
        assert!(zones_of(&noisy_disk).is_level(), "{passes} passes of one speed");
    }
}

#[test]
fn one_pass_has_no_scatter_and_an_interrupted_one_is_not_complete() {
    let mut cut_short = made(5, 2, |_, _, _| MS);
    cut_short.1.result.points[1].order.pop();
    cut_short.1.result.points[1].latency_ns.pop();
    assert_eq!(zones_of(&cut_short).passes, 1);
    assert_eq!(zones_of(&made(5, 1, |_, _, _| MS)).scatter, None);
}

#[test]
fn three_zones_are_found_with_their_rates_and_none_where_there_is_one() {
    let (mut exact, mut alarms) = (0, 0);
    for seed in 0..40 {
        let mut noise = SplitMix64::new(seed);
        let seen_three = zones_of(&made(61, 3, |place, _, _| {
            noisy(
                &mut noise,
                if place < 20 {
                    10
                } else if place < 45 {
                    11
                } else {
                    14
                } * MS,
            )
        }));
        let ends: Vec<usize> = seen_three.zones.iter().map(|zone| zone.first).collect();
        exact += usize::from(ends == [0, 20, 45]);
        for (zone, ms) in seen_three.zones.iter().zip([10.0, 11.0, 14.0]) {
            assert!((zone.bytes_per_s * ms / 1000.0 / 1_048_576.0 - 1.0).abs() < 0.01, "{zone:?}");
        }
        let flat = zones_of(&made(61, 3, |_, _, _| noisy(&mut noise, 10 * MS)));
        alarms += usize::from(flat.zones.len() > 1);
        assert_eq!((flat.latency_bands, flat.drift), (None, None), "seed {seed}");
    }
    assert!(exact >= 39 && alarms <= 1, "{exact} exact, {alarms} false alarms");
}

/// A dozen positions are too few for the medians, and the passes show the step all the same; noise that lasts shows none.
#[test]
fn a_step_among_a_dozen_positions_is_one_of_position() {
    let lasting = |seed: u64, count: u32, step: f64| {
        let mut noise = SplitMix64::new(seed);
        let mut level = 0.0;
        made(count, 6, |place, _, _| {
            level = 0.9 * level + 0.03 * (noise.uniform() + noise.uniform() - 1.0);
            let slower = if place >= count / 2 { 1.0 + step } else { 1.0 };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
            let ns = (1e7 * slower * f64::exp(level)) as u64;
            ns
        })
    };
    for count in [10, 11, 12, 20] {
        let (mut detected, mut alarms) = (0, 0);
        for seed in 0..200 {
            let with = zones_of(&lasting(seed, count, 0.5));
            let ends: Vec<usize> = with.zones.iter().map(|zone| zone.first).collect();
            let is_found = with.steps == Steps::Shown && ends == [0, count as usize / 2];
            detected += usize::from(is_found && with.latency_bands.is_none());
            alarms += usize::from(zones_of(&lasting(seed, count, 0.0)).zones.len() > 1);
        }
        assert!(detected >= 190 && alarms <= 4, "{count} positions: {detected} found, {alarms} false of 200");
    }
}

/// One boundary that every pass has, and one that a slow stretch of one pass puts into the medians of two.
#[test]
fn a_boundary_that_not_all_passes_have_is_none() {
    let mut noise = SplitMix64::new(8);
    let mut seen_with = |slow: u64| {
        zones_of(&made(60, 2, |place, pass, _| {
            let late = if pass == 1 && place < 20 { slow } else { 0 };
            noisy(&mut noise, if place < 40 { 10 * MS + late } else { 14 * MS })
        }))
    };
    let ends = |zones: Zones| zones.zones.iter().map(|zone| zone.first).collect::<Vec<usize>>();
    assert_eq!(ends(seen_with(0)), [0, 40]);
    assert_eq!(ends(seen_with(MS)), [0, 40]);
}

#[test]
fn a_step_of_less_than_a_hundredth_is_no_zone() {
    let zones = zones_of(&made(61, 3, |place, _, _| if place < 30 { 10_000_000 } else { 10_050_000 }));
    assert_eq!(zones.zones.len(), 1);
}

/// The band of the only cause that is made here, at several places of a curve that falls.
fn banded(late: impl Fn(u32, u32, u32, f64) -> bool) -> LatencyBands {
    let mut noise = SplitMix64::new(3);
    let drifting = made(101, 20, |place, pass, number| {
        let chance = noise.uniform();
        let base = noisy(&mut noise, (10 + u64::from(place / 26)) * MS);
        base + if late(place, pass, number, chance) { 3 * MS } else { 0 }
    });
    let zones = zones_of(&drifting);
    assert_eq!(zones.zones.len(), 4, "{:?}", zones.zones);
    assert!(!zones.is_tight());
    zones.latency_bands.expect("there is a band")
}

#[test]
fn a_band_has_its_share_and_its_offset_and_what_it_comes_with() {
    let by_chance = banded(|_, _, _, chance| chance < 0.1);
    let band = by_chance.bands[0];
    assert_eq!(by_chance.bands.len(), 1, "{by_chance:?}");
    assert!((band.share - 0.1).abs() < 0.02 && (band.offset_ns / 3e6 - 1.0).abs() < 0.05, "{band:?}");
    assert!(by_chance.p_value < FALSE_ALARM);
    assert_eq!(by_chance.cause, Cause::Unknown);
    assert_eq!(banded(|_, _, number, _| number % 10 == 0).cause, Cause::Periodic { every: 10 });
    let first = banded(|place, pass, _, _| (place + 101 - pass % 101) * 29 % 101 < 5);
    assert!(matches!(first.cause, Cause::StartOfPass { share } if share > 0.8), "{first:?}");
}

#[test]
fn a_revolution_of_a_rotational_disk_is_named_and_other_io_and_limits_first() {
    let turn = |rotational, code: Option<VerdictCode>| {
        let mut noise = SplitMix64::new(9);
        let mut late = made(101, 8, |_, _, _| {
            let late = noise.uniform() < 0.3;
            noisy(&mut noise, 14 * MS) + if late { 8_333_333 } else { 0 }
        });
        late.0.targets[0].device.as_mut().unwrap().rotational = Some(rotational);
        let text = "others".to_owned();
        late.1.verdict = code.map(|code| rdsk_model::Verdict { code, text, device_share: None });
        zones_of(&late).latency_bands.unwrap().cause
    };
    assert!(
        matches!(turn(true, None), Cause::MissedRevolution { revolution_ns } if (revolution_ns - 8.333e6).abs() < 1e4)
    );
    assert_eq!(turn(false, None), Cause::Unknown);
    assert_eq!(turn(true, Some(VerdictCode::Disturbed)), Cause::OtherIo);
    // What a control group holds back waits as long as its limit says, whatever the disk does.
    for rotational in [false, true] {
        assert_eq!(turn(rotational, Some(VerdictCode::Throttled)), Cause::Limit);
    }
}

#[test]
fn steps_of_a_coarse_clock_are_called_so() {
    let mut noise = SplitMix64::new(4);
    let read = |ns: f64| (ns / 1e6).floor();
    let mut late = made(101, 8, |place, _, _| {
        let begin = noise.uniform() * 1e6;
        let end = begin + (3.0 + f64::from(place) / 500.0 + 0.2 * noise.uniform()) * 1e6;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some ms")]
        let ms = (read(end) - read(begin)) as u64;
        ms * MS
    });
    late.0.host.as_mut().unwrap().clock.resolution_ns = MS;
    let bands = zones_of(&late).latency_bands.unwrap();
    assert_eq!(bands.cause, Cause::Clock { resolution_ns: MS });
    // The same times from a clock that is said to be fine are bands of an unknown cause.
    late.0.host.as_mut().unwrap().clock.resolution_ns = 1;
    assert_eq!(zones_of(&late).latency_bands.unwrap().cause, Cause::Unknown);
}

#[test]
fn a_change_over_the_passes_is_drift_and_one_slow_pass_is_scatter() {
    let mut noise = SplitMix64::new(5);
    let steps = made(61, 8, |_, pass, _| noisy(&mut noise, if pass >= 4 { 13 } else { 10 } * MS));
    let drift = zones_of(&steps).drift.unwrap();
    assert_eq!((drift.shape, drift.passes), (PassShape::Step(4), 8));
    assert!((drift.slower_by - 0.3).abs() < 0.03 && drift.p_value < DRIFT_FALSE_ALARM, "{drift:?}");
    let rises = made(61, 10, |_, pass, _| noisy(&mut noise, 10 * MS + u64::from(pass) * 222_222));
    let drift = zones_of(&rises).drift.unwrap();
    assert!(drift.shape == PassShape::Trend && (drift.slower_by - 0.2).abs() < 0.02, "{drift:?}");
    let slow_pass =
        zones_of(&made(61, 8, |_, pass, _| noisy(&mut noise, if pass == 2 { 13 } else { 10 } * MS)));
    assert_eq!(slow_pass.drift, None);
    assert!(
        (slow_pass.pass_scatter.unwrap() - 0.3 / 8_f64.sqrt()).abs() < 0.02,
        "{:?}",
        slow_pass.pass_scatter
    );
    let few = made(61, 7, |_, pass, _| noisy(&mut noise, if pass >= 4 { 13 } else { 10 } * MS));
    assert_eq!(zones_of(&few).drift, None, "seven passes");
}
