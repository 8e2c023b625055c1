//! Whether several series drift together: the cells of a run share the moments at which they are visited, so that all of them
//! together show a steady change that each of them alone leaves open; and which of them do. It does not say why.

use crate::pass_change::two_sided;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

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
/// Slopes differ from each other when chance alone makes them differ as much in fewer than this share of the runs.
const DIFFER: f64 = 0.01;
/// Then the chance that a steady series is said to drift, in any of them.
const OWN: f64 = 0.05;
/// No level is known better than by this share: series that lie on their lines exactly have an error, too.
const FINEST: f64 = 1e-6;

/// One visit of a series: when it was, its level, which is above 0, and what it weighs.
pub type VisitLevel = (f64, f64, f64);

/// A steady change that series share.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonDrift {
    /// Change of the logarithm of the level from the first visit of any series to the last, in the mean over all series.
    pub change: f64,
    /// When these were.
    pub from: f64,
    /// The last one.
    pub to: f64,
    /// Visits of all series.
    pub visits: usize,
    /// For each series, in their order, what it does if it drifts with the others; at least one does.
    pub followers: Vec<Option<Follower>>,
}

/// A series that drifts with others, by the line through its own visits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follower {
    /// Its level at the first visit of any series.
    pub early: f64,
    /// The same at the last.
    pub late: f64,
    /// Probability of a change as marked as this by chance: of that of all series, or of its own where they differ.
    pub p_value: f64,
    /// Its visits.
    pub visits: usize,
}

/// The straight line through the logarithms of the levels of one series.
struct Line {
    /// Weighted mean of its times and of its logarithms.
    middle: f64,
    level: f64,
    slope: f64,
    /// Standard error of the slope.
    error: f64,
    /// Visits less the two figures of the line.
    freedom: f64,
    visits: usize,
}

/// The change of all series together.
struct Common {
    change: f64,
    from: f64,
    to: f64,
    /// Standard deviation of what is left beside it in the spans.
    deviation: f64,
    p_value: f64,
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
///
/// What the series differ by cancels in these means, so each must follow by itself: it changes in the same direction by at least 10 %
/// along a line of its own, and, where the slopes of these lines differ by more than chance (Welch 1951), its own slope alone is no
/// chance and as clear of what is left as that of all is.
pub fn common_drift(series: &[Vec<VisitLevel>], false_alarm: f64) -> Option<CommonDrift> {
    let is_long = |visits: &Vec<VisitLevel>| visits.len() >= MIN_VISITS;
    let most = series.iter().filter(|visits| is_long(visits)).map(Vec::len).max()?;
    let offs: Vec<Off> =
        series.iter().filter(|visits| is_long(visits)).flat_map(|visits| beside_middle(visits)).collect();
    let from = offs.iter().map(|off| off.at).fold(f64::INFINITY, f64::min);
    let to = offs.iter().map(|off| off.at).fold(f64::NEG_INFINITY, f64::max);
    let squares: f64 = offs.iter().map(|off| off.weight * off.along * off.along).sum();
    if squares <= 0.0 || to <= from {
        return None;
    }
    let slope = offs.iter().map(|off| off.weight * off.along * off.level).sum::<f64>() / squares;
    let change = slope * (to - from);
    let left = left_in_spans(&offs, slope, (from, to), SPANS.min(most));
    let count = left.len() as f64;
    if left.len() < MIN_SPANS {
        return None;
    }
    let deviation = (left.iter().map(|(_, off)| off * off).sum::<f64>() / (count - 2.0)).sqrt();
    // The error of the change along a line through samples at these times, which lie closer together than the first and the last visit.
    let middle = left.iter().map(|(at, _)| at).sum::<f64>() / count;
    let apart: f64 = left.iter().map(|(at, _)| (at - middle).powi(2)).sum();
    let error = deviation * (to - from) / apart.sqrt();
    let p_value = two_sided(change / error.max(f64::MIN_POSITIVE), count - 2.0);
    if !is_worth(change) || change.abs() < CLEAR * deviation || p_value > false_alarm {
        return None;
    }
    let lines: Vec<Option<Line>> =
        series.iter().map(|visits| if is_long(visits) { line(visits) } else { None }).collect();
    let followers = followers(&lines, &Common { change, from, to, deviation, p_value });
    let drift = CommonDrift { change, from, to, visits: offs.len(), followers };
    drift.followers.iter().any(Option::is_some).then_some(drift)
}

/// What is left beside the common slope, averaged over spans of equal length, each with the mean time of its visits; spans without
/// visits are left out.
fn left_in_spans(offs: &[Off], slope: f64, (from, to): (f64, f64), spans: usize) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0, 0.0); spans];
    for off in offs {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to the number of spans"
        )]
        let span = ((off.at - from) / (to - from) * spans as f64) as usize;
        let (time, sum, weight) = &mut sums[span.min(spans - 1)];
        *time += off.weight * off.at;
        *sum += off.weight * (off.level - slope * off.along);
        *weight += off.weight;
    }
    let visited = sums.iter().filter(|(.., weight)| *weight > 0.0);
    visited.map(|(time, sum, weight)| (time / weight, sum / weight)).collect()
}

fn is_worth(change: f64) -> bool {
    change.abs() >= -(1.0 - MIN_DRIFT).ln()
}

/// Which of the lines drift as all together do.
fn followers(lines: &[Option<Line>], common: &Common) -> Vec<Option<Follower>> {
    let present: Vec<&Line> = lines.iter().flatten().collect();
    let differ = chance_of_slopes(&present) < DIFFER;
    let follower = |line: &Line| {
        let change = line.slope * (common.to - common.from);
        let own_p_value = two_sided(line.slope / line.error, line.freedom);
        // What lasts for several visits may look like a slope of each series, so that it must be clear of that, too.
        let is_own = || own_p_value <= OWN / present.len() as f64 && change.abs() >= CLEAR * common.deviation;
        let at = |time: f64| (line.level + line.slope * (time - line.middle)).exp();
        (change * common.change > 0.0 && is_worth(change) && (!differ || is_own())).then(|| Follower {
            early: at(common.from),
            late: at(common.to),
            p_value: if differ { own_p_value } else { common.p_value },
            visits: line.visits,
        })
    };
    lines.iter().map(|line| line.as_ref().and_then(follower)).collect()
}

/// Chance that slopes which are the same come out as different as these: Welch's test of several means (1951), which allows
/// each series its own scatter. 1 for a single one.
fn chance_of_slopes(lines: &[&Line]) -> f64 {
    let count = lines.len() as f64;
    let weight = |line: &Line| 1.0 / (line.error * line.error);
    let weights: f64 = lines.iter().map(|line| weight(line)).sum();
    let mean = lines.iter().map(|line| weight(line) * line.slope).sum::<f64>() / weights;
    let between = lines.iter().map(|line| weight(line) * (line.slope - mean).powi(2)).sum::<f64>();
    let spread: f64 = lines.iter().map(|line| (1.0 - weight(line) / weights).powi(2) / line.freedom).sum();
    let wide = 1.0 + 2.0 * (count - 2.0) / (count * count - 1.0) * spread;
    let freedom = (count * count - 1.0) / (3.0 * spread);
    FisherSnedecor::new(count - 1.0, freedom).map_or(1.0, |fisher| fisher.sf(between / (count - 1.0) / wide))
}

/// The line of a series; `None` if all its visits were at one moment.
fn line(visits: &[VisitLevel]) -> Option<Line> {
    let (middle, level) = centre(visits);
    let offs = beside_middle(visits);
    let squares: f64 = offs.iter().map(|off| off.weight * off.along * off.along).sum();
    let slope = offs.iter().map(|off| off.weight * off.along * off.level).sum::<f64>() / squares;
    let freedom = visits.len() as f64 - 2.0;
    let left: f64 = offs.iter().map(|off| off.weight * (off.level - slope * off.along).powi(2)).sum();
    let weight = offs.iter().map(|off| off.weight).sum::<f64>() / visits.len() as f64;
    let variance = (left / freedom).max(weight * FINEST * FINEST);
    let error = (variance / squares).sqrt();
    (squares > 0.0).then_some(Line { middle, level, slope, error, freedom, visits: visits.len() })
}

/// The weighted means of the times and of the logarithms of the levels.
fn centre(visits: &[VisitLevel]) -> (f64, f64) {
    let weights: f64 = visits.iter().map(|(_, _, weight)| weight).sum();
    let mean = |figure: fn(&VisitLevel) -> f64| {
        visits.iter().map(|visit| visit.2 * figure(visit)).sum::<f64>() / weights.max(f64::MIN_POSITIVE)
    };
    (mean(|visit| visit.0), mean(|visit| visit.1.ln()))
}

fn beside_middle(visits: &[VisitLevel]) -> Vec<Off> {
    let (middle, level) = centre(visits);
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
                common_drift(&[(0..6).map(visit).collect()], 0.0025).is_some()
            };
            let found = (0..200).filter(is_found).count();
            assert!(found >= 180, "{rho}: {found}");
        }
    }

    /// Twenty series of which the first eight fall by 30 %, as in `found`; how often each kind is reported as falling, in 200 runs.
    fn of_each_kind(rounds: usize, noise: impl Fn(&mut SplitMix64) -> Vec<f64>) -> (usize, usize) {
        let told = (0..200_u64).filter_map(|seed| {
            let mut series = run(&noise(&mut seeded(seed)), rounds);
            for (at, level, _) in series[..8].iter_mut().flatten() {
                *level *= 1.0 - 0.3 * *at / 600.0;
            }
            let found = common_drift(&series, 0.003)?.followers;
            let early = found.iter().flatten().map(|one| one.early / one.late);
            assert!(early.clone().all(|fall| fall > 1.1), "{:?}", early.collect::<Vec<f64>>());
            Some([&found[..8], &found[8..]].map(|kind| kind.iter().flatten().count()))
        });
        told.fold((0, 0), |sum, kinds| (sum.0 + kinds[0], sum.1 + kinds[1]))
    }

    #[test]
    fn series_that_hold_their_level_do_not_follow_those_that_fall() {
        for rounds in [6, 8, 9] {
            let (fallen, steady) = of_each_kind(rounds, |noise| noise.series(600, 1.0, 0.02));
            assert!(fallen == 1600 && steady == 0, "{rounds}: {fallen} {steady}");
            // In a noise of 10 % fewer are reported, and of the 2400 that hold their level hardly any.
            let (fallen, steady) = of_each_kind(rounds, |noise| noise.series(600, 1.0, 0.1));
            assert!(fallen >= 200 && steady <= 5, "{rounds}: {fallen} {steady}");
            let (_, steady) = of_each_kind(rounds, |noise| noise.autoregressive(600, 1.0, 0.1, 0.99));
            assert!(steady <= 48, "{rounds}: {steady}");
        }
    }

    #[test]
    fn a_follower_has_the_levels_of_its_own_line() {
        let exact = |level: f64, fall: f64| -> Vec<VisitLevel> {
            (0..8).map(|at| (f64::from(at), level * (-fall * f64::from(at) / 7.0).exp(), 1.0)).collect()
        };
        let found = common_drift(&[exact(2.0, 0.5), exact(5.0, 0.0), exact(3.0, -0.2)], 0.003);
        assert_eq!(found, None, "less than 10% in the mean of the three");
        let drift = common_drift(&[exact(2.0, 0.5), exact(5.0, 0.0), exact(3.0, 0.2)], 0.003).unwrap();
        let ends = |at: usize| drift.followers[at].map(|one| (one.early, one.late, one.visits));
        let near = |at: usize, level: f64, fall: f64| {
            let (early, late, visits) = ends(at).unwrap();
            assert!(
                (early - level).abs() < 1e-9 && (late - level * (-fall).exp()).abs() < 1e-9 && visits == 8
            );
        };
        near(0, 2.0, 0.5);
        near(2, 3.0, 0.2);
        assert_eq!(ends(1), None);
        // One series alone, and several that are the same, need no more than the drift itself.
        for same in [vec![exact(2.0, 0.3)], vec![exact(2.0, 0.3), exact(9.0, 0.3)], vec![exact(1.0, 0.2); 7]]
        {
            let drift = common_drift(&same, 0.003).unwrap();
            assert!(drift.followers.iter().all(Option::is_some), "{drift:?}");
        }
    }

    /// Eighty visits in eight spans, whose centres lie an eighth of the run apart and not a seventh.
    #[test]
    fn the_chance_is_that_of_a_line_through_the_centres_of_the_spans() {
        // A curve, which has no slope; a span is ten visits.
        let off: [f64; 8] = [7.0, 1.0, -3.0, -5.0, -5.0, -3.0, 1.0, 7.0];
        let (change, size) = (-0.3, 0.003);
        let visit = |at: usize| {
            let level = f64::exp(change * at as f64 / 79.0 + size * off[at / 10]);
            (at as f64, level, 1.0)
        };
        let drift = common_drift(&[(0..80).map(visit).collect()], 0.0025).unwrap();
        assert!((drift.change - change).abs() < 1e-9, "{drift:?}");
        let deviation = size * (168.0_f64 / 6.0).sqrt();
        // Centres at 4.5, 14.5 … 74.5: a sum of squares of 42 times that of their distance.
        let error = deviation * 79.0 / (10.0 * 42.0_f64.sqrt());
        let p_value = two_sided(change / error, 6.0);
        let found = drift.followers[0].unwrap().p_value;
        assert!((found / p_value - 1.0).abs() < 1e-6, "{found} and {p_value}");
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
