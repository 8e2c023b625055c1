//! Known falls, and series of noise, drift and zones in which there is none.

use super::*;
use crate::fixtures::rates::{MIB, NOISES, Noise, RUN_WINDOWS, WIDTH_NS};
use crate::fixtures::rates::{falling, laid_out, noisy_rates, six_visits, steady};
use crate::fixtures::with;
use rdsk_model::Op;
use rdsk_stats::rng::SplitMix64;

#[test]
fn finds_the_place_and_the_levels() {
    for (before, after) in [(20, 180), (100, 100), (180, 20), (20, 1000), (1200, 600)] {
        let shifts = level_shifts(&laid_out("w", Op::Write, &[falling(before, after, 120.0, 40.0)]));
        let [fall] = shifts.as_slice() else { panic!("{before} {after}: {shifts:?}") };
        assert_eq!(fall.at_ns, before as u64 * WIDTH_NS);
        assert!(fall.within_visit);
        assert!((fall.fast / (120.0 * MIB as f64) - 1.0).abs() < 0.01, "{fall:?}");
        assert!((fall.slow / (40.0 * MIB as f64) - 1.0).abs() < 0.01, "{fall:?}");
        let bytes: f64 = steady(before, 120.0).iter().sum::<f64>() * 0.05 * MIB as f64;
        assert!((fall.bytes as f64 - bytes).abs() < before as f64, "{} {bytes}", fall.bytes);
    }
}

#[test]
fn finds_a_fall_by_a_third_in_noise_nearly_always() {
    let mut noise = SplitMix64::new(7);
    let (mut hits, mut near) = (0, 0);
    for _ in 0..200 {
        let series = noisy_rates(&mut noise, |x| if x < 0.4 { 100.0 } else { 65.0 }, 600, 0.15, 0.3);
        if let [fall] = level_shifts(&laid_out("w", Op::Write, &[series])).as_slice() {
            hits += 1;
            near += u32::from(fall.at_ns.abs_diff(240 * WIDTH_NS) <= 6 * WIDTH_NS);
        }
    }
    assert!(hits >= 195, "{hits} of 200");
    assert!(near >= 190, "{near} of 200");
}

/// How many of 250 series with nothing to find are taken for a fall.
fn false_alarms(seed: u64, series: impl Fn(&mut SplitMix64) -> Vec<Vec<f64>>) -> usize {
    let mut noise = SplitMix64::new(seed);
    (0..250).filter(|_| !level_shifts(&laid_out("w", Op::Read, &series(&mut noise))).is_empty()).count()
}

#[test]
fn noise_is_no_fall() {
    for (sigma, rho) in [(0.05, 0.0), (0.3, 0.0), (0.5, 0.0), (0.1, 0.5), (0.3, 0.5), (0.3, 0.8), (0.4, 0.95)]
    {
        let alarms = false_alarms(1, |noise| vec![noisy_rates(noise, |_| 100.0, 400, sigma, rho)]);
        assert_eq!(alarms, 0, "sigma {sigma}, rho {rho}");
        let alarms = false_alarms(2, |noise| vec![noisy_rates(noise, |_| 100.0, 40, sigma, rho)]);
        assert_eq!(alarms, 0, "sigma {sigma}, rho {rho}, short");
    }
}

/// Two hundred runs of six visits over noise that is stationary: no fall of such a cell lasts.
#[test]
fn a_run_over_stationary_noise_has_no_fall_and_a_step_is_found() {
    for kind in NOISES {
        let falls = (0..200)
            .filter(|&seed| {
                let mut rng = SplitMix64::new(seed);
                let course: Vec<f64> =
                    kind.windows(&mut rng, RUN_WINDOWS, 0.15).iter().map(|rate| 100.0 * rate).collect();
                !level_shifts(&laid_out("r", Op::Read, &six_visits(&course))).is_empty()
            })
            .count();
        assert!(falls <= 4, "{kind:?}: {falls} of 200");
    }
    let steps = (0..200)
        .filter(|&seed| {
            let mut rng = SplitMix64::new(seed);
            // Within the third visit, or between it and the fourth.
            let at = if seed % 2 == 0 { 430 } else { 500 };
            let noise = Noise::Autoregressive(0.5).windows(&mut rng, RUN_WINDOWS, 0.1);
            let course: Vec<f64> = noise
                .iter()
                .enumerate()
                .map(|(index, rate)| rate * if index < at { 100.0 } else { 50.0 })
                .collect();
            level_shifts(&laid_out("r", Op::Read, &six_visits(&course))).len() == 1
        })
        .count();
    assert!(steps >= 180, "{steps} of 200");
}

#[test]
fn a_fall_that_one_visit_of_many_has_is_none_unless_it_lasts() {
    let cell = |visits: &[Vec<f64>]| level_shifts(&laid_out("w", Op::Write, visits));
    let (high, low, falls) = (steady(100, 100.0), steady(100, 60.0), falling(50, 50, 100.0, 60.0));
    assert_eq!(cell(&[high.clone(), falls.clone(), high.clone(), high.clone()]), []);
    assert_eq!(cell(&[high.clone(), falls.clone(), low.clone(), low]).len(), 1);
    assert_eq!(cell(&[falls.clone(), falls.clone(), falls, high]).len(), 3);
}

#[test]
fn a_slope_is_no_fall() {
    // A slow drift of 5 %, a zone curve to half the rate, smooth and in 16 zones, and an exponential one.
    let alarms =
        false_alarms(3, |noise| vec![noisy_rates(noise, |x| 100.0 * (1.0 - 0.05 * x), 400, 0.05, 0.3)]);
    assert_eq!(alarms, 0, "drift");
    for sigma in [0.0, 0.02, 0.1, 0.2] {
        let curve = |x: f64| 100.0 * (1.0 - 0.5 * x * x);
        assert_eq!(
            false_alarms(4, |noise| vec![noisy_rates(noise, curve, 600, sigma, 0.2)]),
            0,
            "curve {sigma}"
        );
        let line = |x: f64| 100.0 * (1.0 - 0.5 * x);
        // Halved within 3 s and in heavy noise a slope may pass for a fall now and then (11 of 2000 were counted).
        let most = if sigma > 0.1 { 5 } else { 0 };
        assert!(
            false_alarms(5, |noise| vec![noisy_rates(noise, line, 60, sigma, 0.2)]) <= most,
            "line {sigma}"
        );
        let zones = |x: f64| 100.0 * (1.0 - 0.5 * (x * 16.0).floor() / 16.0);
        assert_eq!(
            false_alarms(6, |noise| vec![noisy_rates(noise, zones, 800, sigma, 0.2)]),
            0,
            "zones {sigma}"
        );
        let exponential = |x: f64| 100.0 * (0.5 + 0.5 * (-3.0 * x).exp());
        assert_eq!(
            false_alarms(7, |noise| vec![noisy_rates(noise, exponential, 400, sigma, 0.2)]),
            0,
            "exp {sigma}"
        );
    }
}

#[test]
fn a_short_burst_at_the_start_a_rise_and_a_dip_are_no_fall() {
    let burst = |noise: &mut SplitMix64| {
        vec![noisy_rates(noise, |x| if x < 0.02 { 300.0 } else { 100.0 }, 400, 0.1, 0.2)]
    };
    assert_eq!(false_alarms(8, burst), 0, "0.4 s of burst");
    let ramp =
        |noise: &mut SplitMix64| vec![noisy_rates(noise, |x| 100.0 * (x * 8.0).min(1.0), 400, 0.1, 0.2)];
    assert_eq!(false_alarms(9, ramp), 0, "ramp");
    let dip = |noise: &mut SplitMix64| {
        vec![noisy_rates(noise, |x| if (0.4..0.6).contains(&x) { 30.0 } else { 100.0 }, 400, 0.1, 0.2)]
    };
    assert_eq!(false_alarms(10, dip), 0, "dip");
}

#[test]
fn visits_that_differ_by_chance_are_no_fall() {
    // Each visit of a busy machine has a level of its own.
    let visits = |noise: &mut SplitMix64| {
        let mut visit = || {
            let level = 100.0 * (1.0 + 0.1 * noise.normal());
            noisy_rates(noise, move |_| level, 100, 0.1, 0.3)
        };
        vec![visit(), visit(), visit(), visit()]
    };
    assert_eq!(false_alarms(11, visits), 0);
    let between = laid_out("r", Op::Read, &[steady(200, 100.0), steady(200, 70.0)]);
    assert_eq!(level_shifts(&between), [], "30% between two visits");
    let mut shifts = level_shifts(&laid_out("r", Op::Read, &[steady(200, 100.0), steady(200, 50.0)]));
    let fall = shifts.pop().expect("a fall to half between two visits is one");
    assert!(!fall.within_visit && shifts.is_empty());
    assert_eq!((fall.segment, fall.at_ns), (1, 200 * WIDTH_NS));
}

#[test]
fn windows_belong_to_their_visits() {
    let uneven = with(laid_out("w", Op::Write, &[steady(10, 50.0), steady(20, 50.0)]), |cell| {
        for visit in &mut cell.result.visits {
            visit.elapsed_ns -= WIDTH_NS / 2;
        }
    });
    let lengths = |series: &RateSeries| -> Vec<usize> {
        series.segments.iter().map(|segment| segment.bytes.len()).collect()
    };
    let series = rate_series(&uneven).expect("two visits with windows");
    assert_eq!(lengths(&series), [9, 19], "the last window of a visit is cut off by its end");
    assert_eq!(series.segments[1].before_ns, 10 * WIDTH_NS - WIDTH_NS / 2);
    assert_eq!(series.segments[0].rest_ns, WIDTH_NS / 2);
    // Windows that were folded after the first visit no longer add up; they are shared out by time.
    let folded = with(uneven, |cell| {
        if let Some(windows) = &mut cell.result.windows {
            windows.width_ns *= 2;
            windows.bytes = windows.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            windows.bytes.push(1);
        }
    });
    assert_eq!(lengths(&rate_series(&folded).expect("still two visits")), [4, 10]);
}

#[test]
fn only_windows_in_which_all_streams_ran_count() {
    let staggered = with(laid_out("w", Op::Write, &[steady(100, 50.0)]), |cell| {
        cell.workload.streams = 2;
        cell.workload.stagger_ns = 20 * WIDTH_NS;
        cell.result.visits[0].overlap = Some(rdsk_model::Overlap {
            start_ns: 20 * WIDTH_NS + 1,
            end_ns: 79 * WIDTH_NS,
            bytes: 0,
            covered_ns: 0,
        });
    });
    let series = rate_series(&staggered).expect("windows of both streams");
    assert_eq!(series.segments[0].bytes.len(), 58);
    assert_eq!(series.segments[0].before_ns, 21 * WIDTH_NS);
    let untold = with(staggered, |cell| cell.result.visits[0].overlap = None);
    assert_eq!(rate_series(&untold), None);
}
