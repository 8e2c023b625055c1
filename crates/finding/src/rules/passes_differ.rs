//! `passes-differ`: the same positions take longer from pass to pass, or from one pass on. It does not know what changed, and
//! leaves passes that only scatter to the page.

use super::prelude::*;
use rdsk_analysis::zones::{Drift, PassShape};

pub(super) const RULE: Rule = Rule::new("passes-differ", Severity::Uncertain, Needs::OwnTimes, check);

fn check(analysis: &Analysis<'_>) -> Vec<Finding> {
    let drifts: Vec<(&CellRecord, Drift)> = zones(analysis)
        .into_iter()
        .filter_map(|(cell, zones)| Some((cell, zones.drift?)))
        .filter(|(_, drift)| factor(drift) >= MIN_EFFECT)
        .collect();
    let most = drifts.iter().max_by(|left, right| size(&left.1).total_cmp(&size(&right.1)));
    let Some((cell, drift)) = most else { return Vec::new() };
    let how = match drift.shape {
        PassShape::Trend => "from the first to the last".to_owned(),
        PassShape::Step(pass) => format!("from sweep {} on", pass + 1),
    };
    vec![RULE
            .finding(
                format!("sweeps over the same positions get {}", by(drift)),
                format!(
                    "Of {} sweeps of {}, the same positions get {} {how}. Heat, a cache that filled or emptied, or other I/O on the \
                     device can cause this.",
                    drift.passes,
                    words::test(cell),
                    by(drift),
                ),
            )
            .effect(
                Stake::Figure,
                Some(factor(drift)),
                format!("sweeps over the same positions get {} {how}", by(drift)),
            )
            .evidence(drifts.iter().take(6).map(|(cell, drift)| cited(cell, drift)))
            .advice("repeat with more sweeps (--runs) and check whether the later ones agree")
            .cells(drifts.iter().map(|(cell, _)| *cell))]
}

/// How many times as long the slower passes take.
fn factor(drift: &Drift) -> f64 {
    let times = 1.0 + drift.slower_by;
    times.max(1.0 / times)
}

fn size(drift: &Drift) -> f64 {
    drift.slower_by.abs()
}

/// `12 % slower`, by their time; `3.00 × as slow` or `as fast` from twice or half the time on.
fn by(drift: &Drift) -> String {
    let factor = 1.0 + drift.slower_by;
    let share = rdsk_units::percent(size(drift));
    match drift.slower_by {
        by if by >= 1.0 => format!("{} as slow", words::times(factor)),
        by if by > 0.0 => format!("{share} slower"),
        by if by > -0.5 => format!("{share} faster"),
        _ => format!("{} as fast", words::times(1.0 / factor)),
    }
}

fn cited(cell: &CellRecord, drift: &Drift) -> String {
    let (name, test) = match drift.shape {
        PassShape::Trend => ("trend over the sweeps".to_owned(), "Mann-Kendall"),
        PassShape::Step(pass) => (format!("step before sweep {}", pass + 1), "Student's t"),
    };
    let chance = words::chance(drift.p_value);
    let rounds = match drift.rounds {
        rounds if rounds < drift.passes => format!(" in {rounds} repeats"),
        _ => String::new(),
    };
    cite(cell, &name, format_args!("{} ({test}, {} sweeps{rounds}, {chance})", by(drift), drift.passes))
}

#[cfg(test)]
mod tests {
    use super::super::prelude::testing::{fires, silent};
    use super::*;
    use rdsk_analysis::fixtures::rates::{NOISES, RUN_WINDOWS};
    use rdsk_analysis::fixtures::zones::made;
    use rdsk_stats::rng::SplitMix64;

    #[test]
    fn a_large_change_is_a_factor() {
        let title = |late: u64, early: u64| {
            let late_ns = |pass: u32| if pass >= 4 { late } else { early };
            let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
            fires(RULE, &made(60, 8, |place, pass, _| late_ns(pass) + wobble(place, pass)).0).title
        };
        let get = |words: &str| format!("sweeps over the same positions get {words}");
        assert_eq!(title(12_000_000, 10_000_000), get("19.9% slower"));
        assert_eq!(title(320_000_000, 10_000_000), get("31.8x as slow"));
        assert_eq!(title(10_000_000, 12_000_000), get("16.6% faster"));
        assert_eq!(title(10_000_000, 320_000_000), get("31.8x as fast"));
    }

    #[test]
    fn fires_on_passes_that_become_slower_and_not_on_a_slow_one_equal_ones_or_few() {
        let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
        let slow = |pass: u32| if pass >= 4 { 2_000_000 } else { 0 };
        let of = |passes: u32, late: &dyn Fn(u32) -> u64| {
            made(60, passes, |place, pass, _| 10_000_000 + wobble(place, pass) + late(pass)).0
        };
        let finding = fires(RULE, &of(8, &slow));
        assert!(
            finding
                .text
                .starts_with("Of 8 sweeps of 1M reads, the same positions get 19.9% slower from sweep 5 on."),
            "{}",
            finding.text
        );
        assert!(finding.evidence[0].contains("p < 1e-4"), "{:?}", finding.evidence);
        let finding = fires(RULE, &of(10, &|pass| u64::from(pass) * 200_000));
        assert!(finding.text.contains("from the first to the last"), "{}", finding.text);
        silent(RULE, &of(8, &|pass| if pass == 1 { 2_000_000 } else { 0 }));
        silent(RULE, &of(8, &|_| 0));
        silent(RULE, &of(7, &slow));
    }

    /// Eight passes of 60 I/Os each, at the slower of two speeds from the fifth one on. If the speed comes and goes within passes
    /// too, their order is chance.
    #[test]
    fn a_state_that_comes_and_goes_within_passes_is_no_difference_of_passes() {
        let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
        let of = |is_slow: &dyn Fn(u32, u32) -> bool| {
            made(60, 8, |place, pass, number| {
                let late = if is_slow(pass, (number - 1) % 60) { 4_000_000 } else { 0 };
                10_000_000 + wobble(place, pass) + late
            })
            .0
        };
        let step = |pass: u32, _: u32| pass >= 4;
        fires(RULE, &of(&step));
        // The step may fall into a pass.
        fires(RULE, &of(&|pass, at| pass > 4 || (pass == 4 && at >= 20)));
        // One of the passes before it met the other speed for 25 of its I/Os, which its median does not show.
        silent(RULE, &of(&|pass, at| step(pass, at) || (pass == 1 && at >= 35)));
        silent(RULE, &of(&|pass, at| step(pass, at) && !(pass == 6 && at < 22)));
    }

    /// Passes of one round share their moment: 24 passes of six rounds are six samples, and those of eight rounds eight.
    #[test]
    fn the_passes_of_a_round_are_one_sample() {
        let of = |rounds: u32| {
            let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
            let slow = |pass: u32| if pass / 4 >= rounds / 2 { 2_000_000 } else { 0 };
            let (mut record, _) =
                made(60, 4 * rounds, |place, pass, _| 10_000_000 + wobble(place, pass) + slow(pass));
            let visit = |pass: u32| rdsk_model::Visit { round: pass / 4, ..rdsk_model::Visit::default() };
            record.cells[0].result.visits = (0..4 * rounds).map(visit).collect();
            record
        };
        silent(RULE, &of(6));
        let finding = fires(RULE, &of(8));
        assert!(finding.text.contains("slower from sweep 17 on."), "{}", finding.text);
        assert!(finding.evidence[0].contains("32 sweeps in 8 repeats"), "{:?}", finding.evidence);
    }

    /// Ten passes with one clean step. If they came two and two, right after each other, they are of six moments, and chance orders
    /// six states of two kinds often; a trend of so many steps is none of chance.
    #[test]
    fn passes_right_after_each_other_are_one_moment_of_a_step() {
        let wobble = |place: u32, pass: u32| u64::from((place * 5 + pass * 3) % 11) * 10_000;
        let of = |begin_s: &dyn Fn(u32) -> u32, late: &dyn Fn(u32) -> u32| {
            let late_ns = |pass: u32| u64::from(late(pass)) * 100_000;
            let (mut record, _) =
                made(60, 10, |place, pass, _| 10_000_000 + wobble(place, pass) + late_ns(pass));
            let visit = |pass: u32| rdsk_model::Visit {
                round: pass,
                start_ns: u64::from(begin_s(pass)) * 1_000_000_000,
                ..rdsk_model::Visit::default()
            };
            record.cells[0].result.visits = (0..10).map(visit).collect();
            record
        };
        let (evenly, in_pairs) = (|pass: u32| 45 * pass, |pass: u32| 90 * pass.div_ceil(2) + (pass + 1) % 2);
        let step = |pass: u32| if pass >= 7 { 40 } else { 0 };
        fires(RULE, &of(&evenly, &step));
        silent(RULE, &of(&in_pairs, &step));
        fires(RULE, &of(&in_pairs, &|pass| 4 * pass));
    }

    /// Two hundred runs of ten passes over each kind of noise in time, all positions of a moment alike.
    #[test]
    fn stationary_noise_is_no_difference_and_a_drift_of_a_fifth_is_found() {
        let run = |noise: &[f64], drift: f64| {
            made(40, 10, |_, pass, number| {
                let at = (number as usize - 1) * noise.len() / 400;
                let late = 1.0 + drift * f64::from(pass) / 9.0;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive and small"
                )]
                let ns = (1e7 * late / noise[at].max(0.2)) as u64;
                ns
            })
            .0
        };
        let told = |record: &rdsk_model::Record| !(RULE.check)(&Analysis::of(record)).is_empty();
        let of = |seed: u64, kind: rdsk_analysis::fixtures::rates::Noise, sigma: f64| {
            kind.windows(&mut SplitMix64::new(seed), RUN_WINDOWS, sigma)
        };
        for kind in NOISES {
            let alarms = (0..200).filter(|&seed| told(&run(&of(seed, kind, 0.1), 0.0))).count();
            assert!(alarms <= 4, "{kind:?}: {alarms} of 200");
        }
        let found = (0..200).filter(|&seed| told(&run(&of(seed, NOISES[1], 0.05), 0.2))).count();
        assert!(found >= 180, "{found} of 200");
    }
}
