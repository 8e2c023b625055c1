//! Whether a rate changes within its visits, in all of them alike. A visit is one sample: what it shows within itself may be a
//! moment's chance, and only its return in the others is news. It explains nothing.

use crate::order::{mean, stddev};
use crate::pass_change::two_sided;

/// Fewest visits that can show a change within each.
const MIN_VISITS: usize = 4;
/// Fewest samples of a visit that is judged.
const MIN_SAMPLES: usize = 12;
/// A drift of less than this share from the first third to the last, or a start that is lower by less than that, is not
/// reported even if it is significant. A high start is at least half as much again, since its length differs from visit to visit.
const MIN_DRIFT: f64 = 0.1;
const MIN_START: f64 = 0.2;
const MIN_BURST: f64 = 1.0 / 3.0;
/// What follows a start is steady when it changes by at most this share of the start's distance. In a steady fall the second half
/// still changes by two fifths of it.
const STEADY: f64 = 0.5;
const STEADY_AFTER_BURST: f64 = 0.25;
/// Share of the visits that change like the mean of all in a drift within visits, by half of its least change or more. A disk with a
/// rate limit falls in those visits that find it with some credit left, and in no others.
const ALIKE: f64 = 2.0 / 3.0;
/// Tests of one series: a low start, a high one, and a drift within the visits; the fourth is the drift that all series share.
const TESTS: f64 = 4.0;

/// How a series of visits changes. Rates are means over the visits, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitTrend {
    /// What it looks like.
    pub shape: Trend,
    /// The rate of the earlier part.
    pub early: f64,
    /// The rate of the later one.
    pub late: f64,
    /// Probability of a change as marked as this by chance, in one series.
    pub p_value: f64,
    /// Visits that were judged.
    pub visits: usize,
}

/// The shapes of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The first quarter of each visit is lower than its rest, which holds steady.
    LowStart,
    /// The first eighth of each visit is higher than its second half, which holds steady.
    HighStart,
    /// The last third of each visit differs from its first third.
    WithinVisits,
    /// The visits rise or fall with those of other series, as [`crate::common_drift`] sees it; early and late are the ends of
    /// the line through its own.
    OverVisits,
}

/// Whether these visits can be judged: four of at least twelve samples each.
pub fn has_visits(visits: &[Vec<f64>]) -> bool {
    visits.iter().filter(|visit| visit.len() >= MIN_SAMPLES).count() >= MIN_VISITS
}

/// The change of a series of visits with samples above 0, in the order of time: of at least 10 %, a low start of at least
/// 20 %, a high one of half as much again, and more marked than chance gives in `false_alarm` of all series. Student's t over the visits' own log ratios
/// decides.
pub fn trend(visits: &[Vec<f64>], false_alarm: f64) -> Option<VisitTrend> {
    if !has_visits(visits) {
        return None;
    }
    let long: Vec<&Vec<f64>> = visits.iter().filter(|visit| visit.len() >= MIN_SAMPLES).collect();
    let sure = |trend: &VisitTrend| trend.p_value <= false_alarm;
    low_start(&long)
        .filter(sure)
        .or_else(|| high_start(&long).filter(sure))
        .or_else(|| within(&long).filter(sure))
}

fn low_start(visits: &[&Vec<f64>]) -> Option<VisitTrend> {
    let quarter = |visit: &Vec<f64>| visit.len() / 4;
    let shape = compared(visits, Trend::LowStart, |visit| visit.split_at(quarter(visit)), MIN_START)?;
    let is_low = shape.late > shape.early;
    (is_low && is_steady(visits, |visit| &visit[quarter(visit)..], &shape, STEADY)).then_some(shape)
}

fn high_start(visits: &[&Vec<f64>]) -> Option<VisitTrend> {
    let eighth = |visit: &Vec<f64>| visit.len().div_ceil(8);
    let second_half = |visit: &Vec<f64>| visit.len() / 2;
    let shape = compared(
        visits,
        Trend::HighStart,
        |visit| (&visit[..eighth(visit)], &visit[second_half(visit)..]),
        MIN_BURST,
    )?;
    let is_high = shape.late < shape.early;
    (is_high && is_steady(visits, |visit| &visit[second_half(visit)..], &shape, STEADY_AFTER_BURST))
        .then_some(shape)
}

/// Whether this part of the visits changes little beside the start that was found.
fn is_steady(
    visits: &[&Vec<f64>],
    part: impl Fn(&Vec<f64>) -> &[f64],
    start: &VisitTrend,
    most: f64,
) -> bool {
    let change = |visit: &&Vec<f64>| {
        let (first, last) = part(visit).split_at(part(visit).len() / 2);
        log_ratio(first, last)
    };
    let changes: Vec<f64> = visits.iter().filter_map(change).collect();
    mean(&changes).is_some_and(|change| change.abs() <= most * (start.late / start.early).ln().abs())
}

fn within(visits: &[&Vec<f64>]) -> Option<VisitTrend> {
    fn outer_thirds(visit: &[f64]) -> (&[f64], &[f64]) {
        let third = visit.len() / 3;
        (&visit[..third], &visit[visit.len() - third..])
    }
    let shape = compared(visits, Trend::WithinVisits, |visit| outer_thirds(visit), MIN_DRIFT)?;
    let direction = (shape.late - shape.early).signum();
    let change = |visit: &&Vec<f64>| {
        let (early, late) = outer_thirds(visit);
        log_ratio(early, late)
    };
    let changes: Vec<f64> = visits.iter().filter_map(change).collect();
    let alike = changes.iter().filter(|&&change| change * direction >= MIN_DRIFT / 2.0).count();
    (alike as f64 >= ALIKE * changes.len() as f64).then_some(shape)
}

/// An earlier and a later part of every visit.
fn compared(
    visits: &[&Vec<f64>],
    shape: Trend,
    parts: impl for<'a> Fn(&'a Vec<f64>) -> (&'a [f64], &'a [f64]),
    min_change: f64,
) -> Option<VisitTrend> {
    let pairs: Vec<(&[f64], &[f64])> = visits.iter().map(|visit| parts(visit)).collect();
    let ratios: Vec<f64> = pairs.iter().filter_map(|(early, late)| log_ratio(early, late)).collect();
    let (change, count) = (mean(&ratios)?, ratios.len() as f64);
    if ratios.len() < MIN_VISITS || change.abs() < -(1.0 - min_change).ln() {
        return None;
    }
    let error = stddev(&ratios)? / count.sqrt();
    let p_value = (two_sided(change / error.max(f64::MIN_POSITIVE), count - 1.0) * TESTS).min(1.0);
    let side_mean = |side: fn(&(&[f64], &[f64])) -> f64| mean(&pairs.iter().map(side).collect::<Vec<f64>>());
    let early = side_mean(|pair| mean(pair.0).unwrap_or(0.0))?;
    let late = side_mean(|pair| mean(pair.1).unwrap_or(0.0))?;
    // The rates that are shown say the same as the ratios.
    let agrees = (late > early) == (change > 0.0);
    agrees.then_some(VisitTrend { shape, early, late, p_value, visits: ratios.len() })
}

fn log_ratio(early: &[f64], late: &[f64]) -> Option<f64> {
    let (early, late) = (mean(early)?, mean(late)?);
    (early > 0.0 && late > 0.0).then(|| (late / early).ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};
    use crate::rng::SplitMix64;

    /// Windows of 50 ms: six visits of 3 s, one every 10 s.
    const VISITS: usize = 6;
    const LENGTH: usize = 60;
    const EVERY: usize = 200;

    /// A rate, a window at a time.
    type Course = fn(&mut SplitMix64) -> Vec<f64>;

    /// Visits cut out of a rate that goes on between them.
    fn cut(course: &[f64]) -> Vec<Vec<f64>> {
        (0..VISITS).map(|visit| course[visit * EVERY..visit * EVERY + LENGTH].to_vec()).collect()
    }

    fn seen(shapes: &[Trend], visits: impl Fn(&mut SplitMix64) -> Vec<Vec<f64>>) -> usize {
        let is_seen = |&seed: &u64| {
            trend(&visits(&mut seeded(seed)), 0.01).is_some_and(|found| shapes.contains(&found.shape))
        };
        (0..200).filter(is_seen).count()
    }

    const ANY: [Trend; 3] = [Trend::LowStart, Trend::HighStart, Trend::WithinVisits];
    const TOTAL: usize = VISITS * EVERY;

    #[test]
    fn stationary_noise_has_no_trend() {
        let kinds: [(&str, Course); 6] = [
            ("independent", |noise| noise.series(TOTAL, 1.0, 0.1)),
            ("AR 0.9", |noise| noise.autoregressive(TOTAL, 1.0, 0.15, 0.9)),
            ("AR 0.99", |noise| noise.autoregressive(TOTAL, 1.0, 0.15, 0.99)),
            ("1/f", |noise| noise.flicker(TOTAL, 0.15).iter().map(|x| 1.0 + x).collect()),
            ("two levels", |noise| noise.two_levels(TOTAL, 0.2, 100.0).iter().map(|x| 1.0 + x).collect()),
            ("pulses", |noise| noise.pulses(TOTAL, 1.7, 0.5)),
        ];
        for (name, kind) in kinds {
            let alarms = seen(&ANY, |noise| cut(&kind(noise)));
            assert!(alarms <= 4, "{name}: {alarms} of 200");
        }
    }

    #[test]
    fn a_drift_of_a_fifth_and_a_low_start_are_found() {
        let shaped = |noise: &mut SplitMix64, rho: f64, shape: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
            let course = noise.autoregressive(TOTAL, 1.0, 0.05, rho);
            cut(&course.iter().enumerate().map(|(at, x)| x * shape(at)).collect::<Vec<f64>>())
        };
        let part = |at: usize| (at % EVERY) as f64 / LENGTH as f64;
        for rho in [0.0, 0.5] {
            let within = seen(&[Trend::WithinVisits], |noise| shaped(noise, rho, &|at| 1.0 - 0.2 * part(at)));
            let low = seen(&[Trend::LowStart], |noise| {
                shaped(noise, rho, &|at| if part(at) < 0.25 { 0.6 } else { 1.0 })
            });
            assert!(within >= 180 && low >= 180, "{rho}: {within} {low}");
        }
    }

    /// A rate limiter that saves credit: visits begin with bursts of different lengths.
    #[test]
    fn bursts_of_any_length_at_the_start_of_visits_are_found_and_are_no_drift() {
        let found = seen(&[Trend::HighStart], |noise| {
            let lengths = noise.series(VISITS, 12.0, 0.3);
            let level = |at: usize, length: f64| if (at as f64) < length { 6.0 } else { 1.0 };
            let visit = |length: &f64| (0..LENGTH).map(|at| level(at, *length)).collect::<Vec<f64>>();
            let visits: Vec<Vec<f64>> = lengths.iter().map(visit).collect();
            let course = noise.autoregressive(TOTAL, 1.0, 0.05, 0.5);
            let noisy = |(index, visit): (usize, &Vec<f64>)| -> Vec<f64> {
                visit.iter().zip(&course[index * EVERY..]).map(|(level, noise)| level * noise).collect()
            };
            visits.iter().enumerate().map(noisy).collect()
        });
        assert!(found >= 180, "{found} of 200");
    }

    /// The limiter has credit left at the start of some visits only: each is at one of two speeds, and none drifts.
    #[test]
    fn visits_of_which_some_fall_to_a_limit_do_not_drift() {
        let found = seen(&[Trend::WithinVisits], |noise| {
            let visit = |index: usize, noise: &mut SplitMix64| -> Vec<f64> {
                let fast = match index % 3 {
                    0 => 10 + index % 40,
                    _ => LENGTH,
                };
                let level = |at: usize| if at < fast { 2.9 } else { 0.5 };
                let rates = noise.series(LENGTH, 1.0, 0.1);
                rates.iter().enumerate().map(|(at, rate)| rate * level(at)).collect()
            };
            (0..48).map(|index| visit(index, noise)).collect()
        });
        assert_eq!(found, 0);
    }

    #[test]
    fn one_visit_that_changes_is_none_and_few_cannot_tell() {
        let fallen = |visits: usize, falls: usize| -> Vec<Vec<f64>> {
            let visit = |falls: bool| {
                (0..60).map(|at| 100.0 - if falls { f64::from(at) } else { f64::from(at % 3) }).collect()
            };
            (0..visits).map(|index| visit(index < falls)).collect()
        };
        assert!(matches!(trend(&fallen(6, 6), 0.001), Some(VisitTrend { shape: Trend::WithinVisits, .. })));
        assert_eq!(trend(&fallen(6, 1), 0.001), None);
        assert_eq!(trend(&fallen(3, 3), 0.001), None);
    }
}
