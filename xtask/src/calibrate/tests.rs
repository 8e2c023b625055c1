//! The short form of the campaign: few runs on simulated time, with seeds, so that the outcome is the same everywhere. Its
//! bounds leave room for few runs; those of the campaign are what is wanted.

use super::compare;
use super::coverage;
use super::equal;
use super::findings::{self, codes};
use super::systems::{AR_90, INDEPENDENT, LEVELS, Luns, Noise, SHORT_STALLS, SINE, STEADY};
use super::trials::{Campaign, Trial};
use rdsk_analysis::comparison::Ratio;
use rdsk_testkit::{Need, requires};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn campaign() -> Campaign {
    Campaign::new(Arc::new(AtomicBool::new(false))).unwrap()
}

/// Ten intervals of each run.
fn covered(noise: &Noise, runs: u64) -> f64 {
    let cells = coverage::trial(&campaign(), noise, &(0..runs)).unwrap();
    coverage::share_held(&cells.into_values().flatten().collect::<Vec<_>>())
}

#[test]
fn intervals_of_a_noisy_device_hold_its_true_rate() {
    if !requires(&[Need::Ci]) {
        return;
    }
    for (noise, least) in [(INDEPENDENT, 0.9), (AR_90, 0.9), (LEVELS, 0.85)] {
        let share = covered(&noise, 4);
        assert!(share >= least, "{}: {share}", noise.name);
    }
}

#[test]
fn an_interval_that_misses_the_truth_of_a_stalling_device_is_beside_a_finding() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let cells = coverage::trial(&campaign(), &SHORT_STALLS, &(0..4)).unwrap();
    let runs: Vec<_> = cells.into_values().flatten().collect();
    assert!(coverage::share_held_or_told(&runs) >= 0.95, "{runs:?}");
}

#[test]
fn equal_luns_are_not_called_different_and_unequal_ones_are() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    let different = |ratios: &[Ratio]| ratios.iter().filter(|ratio| ratio.is_different()).count();
    let pairs = |noise: &Noise, is_common: bool, factor: f64| {
        equal::trial(&campaign, &Luns::pair(noise, is_common, factor), &(0..10)).unwrap()
    };
    for (noise, is_common) in [(AR_90, true), (AR_90, false), (LEVELS, true)] {
        let equal = pairs(&noise, is_common, 1.0);
        assert!(equal.len() == 30 && different(&equal) <= 2, "{}: {equal:?}", noise.name);
    }
    let slower = pairs(&INDEPENDENT, true, 1.1);
    assert!(different(&slower) >= 25, "{slower:?}");
}

#[test]
fn steady_and_noisy_devices_have_no_findings_about_time_and_position() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    for noise in [STEADY, INDEPENDENT, AR_90] {
        let target = campaign.system("stationary", &Luns::memory(&noise)).unwrap();
        let runs = Trial::run(&target).each(&campaign, &(0..3), codes).unwrap();
        assert!(runs.len() == 3 && runs.iter().all(Vec::is_empty), "{}: {runs:?}", noise.name);
    }
}

#[test]
fn what_is_there_is_found() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    for system in findings::true_ones() {
        let runs = system.is_found(&campaign, &(0..2)).unwrap();
        assert!(runs.contains(&true), "{} by {}: {runs:?}", system.what, system.command);
    }
}

#[test]
fn two_runs_of_one_device_are_not_called_different_and_one_of_a_slower_device_is() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    for noise in [STEADY, AR_90, LEVELS] {
        let factors: &[f64] = if noise == STEADY { &[1.0, compare::SLOWER] } else { &[1.0] };
        let trials = compare::trials(&campaign, &noise, factors, &(0..2)).unwrap();
        assert!(trials[0].len() == 2 && compare::wrong(&trials[0]) == 0, "{}: {trials:?}", noise.name);
        assert!(trials.get(1).is_none_or(|slower| compare::slower(slower) == 2), "{trials:?}");
    }
}

/// A steady device has the same figures in every run; a noisy one has others, which differ by chance.
#[test]
fn one_device_as_both_command_lines_is_not_called_different() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    for noise in [STEADY, INDEPENDENT] {
        let trials = compare::repeated_trials(&campaign, &noise, 3, &(0..2)).unwrap();
        let ratios: usize = trials.iter().map(|outcome| outcome.ratios).sum();
        assert!(compare::wrong(&trials) == 0 && ratios >= 12, "{}: {trials:?}", noise.name);
    }
}

/// Runs that reported what was not there: a step between passes that came two and two, each pair in one of two levels, and two
/// speeds of a sine.
#[test]
fn levels_are_no_step_between_passes_and_a_sine_is_not_two_speeds() {
    if !requires(&[Need::Ci]) {
        return;
    }
    let campaign = campaign();
    let cases = [
        (LEVELS, "zones --runs 10", [91, 107, 140], "passes-differ"),
        (SINE, "zones", [81, 83, 100], "latency-bands"),
    ];
    for (noise, command, seeds, code) in cases {
        let target = campaign.system("stationary", &Luns::memory(&noise)).unwrap();
        for seed in seeds {
            let record = findings::trial(command, &target).record(seed).unwrap();
            let found = record.findings.iter().find(|finding| finding.code == code);
            assert!(found.is_none(), "{}, seed {seed}: {found:?}", noise.name);
        }
    }
}
