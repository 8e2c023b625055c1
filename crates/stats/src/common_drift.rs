//! Whether several series drift together: the cells of a run share the moments at which they are visited, so that all of them
//! together show a steady change that each of them alone leaves open. It does not say why.

use crate::pass_change::two_sided;

/// Spans of time that the run is cut into; each is one sample of what is left beside the drift. Fewest spans with visits.
const SPANS: usize = 8;
const MIN_SPANS: usize = 6;
/// Fewest visits of a series.
const MIN_VISITS: usize = 4;
/// A drift is at least this many standard deviations of what is left beside it. By simulation (2026-11-22) at most 2 of 100 runs of 60 s
/// over a state that lasts 10 s reach it, and 95 of 100 in which an independent noise of 10 % drifts by a fifth.
const CLEAR: f64 = 9.0;
/// A drift of less than this share is not reported, clear or not.
const MIN_DRIFT: f64 = 0.1;

/// One visit of a series: when it was, its level, which is above 0, and what it weighs.
pub type VisitLevel = (f64, f64, f64);

/// A steady change that all series share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommonDrift {
    /// Change of the logarithm of the level from the first visit of any series to the last.
    pub change: f64,
    /// When these were.
    pub from: f64,
    /// The last one.
    pub to: f64,
    /// Probability of a change as marked as this by chance.
    pub p_value: f64,
    /// Visits of all series.
    pub visits: usize,
}

/// A visit beside the middle of its series.
struct Off {
    at: f64,
    /// Time from the middle of its series.
    along: f64,
    /// Logarithm of its level less that of its series.
    level: f64,
    weight: f64,
}

/// The drift of at least 10 % that the series share, each of at least four visits, when it is clear of what is left beside it and chance gives
/// one as marked in fewer than `false_alarm` of all runs. The line through all visits, each series with a level of its own; what is
/// left is averaged over eight spans of time (as many as the longest series has visits, if that is less, but at least six), and
/// these are the samples of Student's t.
pub fn common_drift(series: &[Vec<VisitLevel>], false_alarm: f64) -> Option<CommonDrift> {
    let long = series.iter().filter(|visits| visits.len() >= MIN_VISITS);
    let most = long.clone().map(Vec::len).max()?;
    let offs: Vec<Off> = long.flat_map(|visits| beside_middle(visits)).collect();
    let from = offs.iter().map(|off| off.at).fold(f64::INFINITY, f64::min);
    let to = offs.iter().map(|off| off.at).fold(f64::NEG_INFINITY, f64::max);
    let squares: f64 = offs.iter().map(|off| off.weight * off.along * off.along).sum();
    if squares <= 0.0 || to <= from {
        return None;
    }
    let slope = offs.iter().map(|off| off.weight * off.along * off.level).sum::<f64>() / squares;
    let change = slope * (to - from);
    let mut spans = vec![(0.0, 0.0); SPANS.min(most)];
    for off in &offs {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to the number of spans"
        )]
        let span = ((off.at - from) / (to - from) * spans.len() as f64) as usize;
        let last = spans.len() - 1;
        let (sum, weight) = &mut spans[span.min(last)];
        *sum += off.weight * (off.level - slope * off.along);
        *weight += off.weight;
    }
    let left: Vec<f64> =
        spans.iter().filter(|(_, weight)| *weight > 0.0).map(|(sum, weight)| sum / weight).collect();
    let count = left.len() as f64;
    if left.len() < MIN_SPANS {
        return None;
    }
    let deviation = (left.iter().map(|off| off * off).sum::<f64>() / (count - 2.0)).sqrt();
    // The error of the change over a line of so many equally spaced samples.
    let error = deviation * (12.0 * (count - 1.0) / (count * (count + 1.0))).sqrt();
    let p_value = two_sided(change / error.max(f64::MIN_POSITIVE), count - 2.0);
    let is_worth = change.abs() >= -(1.0 - MIN_DRIFT).ln();
    let is_clear = is_worth && change.abs() >= CLEAR * deviation && p_value <= false_alarm;
    is_clear.then_some(CommonDrift { change, from, to, p_value, visits: offs.len() })
}

fn beside_middle(visits: &[VisitLevel]) -> Vec<Off> {
    let weights: f64 = visits.iter().map(|(_, _, weight)| weight).sum();
    let mean = |of: fn(&VisitLevel) -> f64| {
        visits.iter().map(|visit| visit.2 * of(visit)).sum::<f64>() / weights.max(f64::MIN_POSITIVE)
    };
    let (middle, level) = (mean(|visit| visit.0), mean(|visit| visit.1.ln()));
    let off =
        |&(at, own, weight): &VisitLevel| Off { at, along: at - middle, level: own.ln() - level, weight };
    visits.iter().map(off).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    /// A run of 60 s, a value each 0.1 s, in which twenty series take turns of 0.3 s, `rounds` times.
    fn run(course: &[f64], rounds: usize) -> Vec<Vec<VisitLevel>> {
        let visit = |series: usize, round: usize| {
            let begin = round * course.len() / rounds + series * 3;
            (begin as f64, crate::mean(&course[begin..begin + 3]).unwrap() * (series + 1) as f64, 3.0)
        };
        (0..20).map(|series| (0..rounds).map(|round| visit(series, round)).collect()).collect()
    }

    fn found(rounds: usize, drift: f64, noise: impl Fn(&mut SplitMix64) -> Vec<f64>) -> usize {
        let is_found = |&seed: &u64| {
            let course = noise(&mut seeded(seed));
            let course: Vec<f64> =
                course.iter().enumerate().map(|(at, x)| x * (1.0 - drift * at as f64 / 600.0)).collect();
            common_drift(&run(&course, rounds), 0.003).is_some()
        };
        (0..200).filter(is_found).count()
    }

    #[test]
    fn a_drift_of_a_fifth_is_found_in_noise_and_stationary_noise_has_none() {
        for rounds in [6, 9] {
            assert!(found(rounds, 0.2, |noise| noise.series(600, 1.0, 0.1)) >= 180, "{rounds}");
            assert_eq!(found(rounds, 0.0, |noise| noise.series(600, 1.0, 0.1)), 0, "{rounds}");
        }
        let lasting = found(9, 0.0, |noise| noise.autoregressive(600, 1.0, 0.1, 0.99));
        let levels =
            found(9, 0.0, |noise| noise.two_levels(600, 0.2, 50.0).iter().map(|x| 1.0 + x).collect());
        assert!(lasting <= 4 && levels <= 4, "{lasting} {levels}");
    }

    /// Six visits of 3 s, one every 10 s, in windows of 50 ms.
    #[test]
    fn one_series_of_six_visits_shows_it_too() {
        for rho in [0.0, 0.5] {
            let is_found = |&seed: &u64| {
                let course = seeded(seed).autoregressive(1200, 1.0, 0.05, rho);
                let visit = |round: usize| {
                    let windows: Vec<f64> = (round * 200..round * 200 + 60)
                        .map(|at| course[at] * (1.0 - 0.2 * at as f64 / 1200.0))
                        .collect();
                    (round as f64, crate::mean(&windows).unwrap(), 1.0)
                };
                common_drift(&[(0..6).map(visit).collect()], 0.01 / 3.0).is_some()
            };
            let found = (0..200).filter(is_found).count();
            assert!(found >= 180, "{rho}: {found}");
        }
    }

    #[test]
    fn the_change_is_that_of_the_run_and_few_visits_tell_nothing() {
        let falling: Vec<f64> = (0..600).map(|at| (-0.3 * f64::from(at) / 600.0).exp()).collect();
        let all = run(&falling, 8);
        let drift = common_drift(&all, 0.003).unwrap();
        // From the first visit at 0 to the last at 525 + 57.
        assert!((drift.change + 0.3 * 582.0 / 600.0).abs() < 0.001, "{drift:?}");
        assert_eq!((drift.visits, drift.from, drift.to), (160, 0.0, 582.0));
        assert_eq!(common_drift(&run(&falling, 5), 0.003), None);
        assert_eq!(common_drift(&[], 0.003), None);
        assert_eq!(common_drift(&run(&[1.0; 600], 8), 0.003).map(|drift| drift.change.abs() > 1e-9), None);
    }
}
