//! Whether series over the same places of a circle agree because of the places: each was measured round the circle from a
//! random start, so that what time does lies at other places in each. The starts are the chance that the test counts, and
//! nothing is assumed of the noise: it may last, drift or swing. It knows nothing of what was measured.

use crate::order::{mean, stddev};
use crate::ranks::ranks;
use crate::rng::SplitMix64;

/// Every combination of starts is tried up to this many, else so many that are drawn at random.
const MOST_TRIED: usize = 300_000;
const DRAWN: u32 = 9_999;
/// A sum nearer to that of the true starts than this is equal to it.
const ROUNDING: f64 = 1e-9;

/// How well series over the same places agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Chance that they would agree as much from other starts, if places made no difference.
    pub p_value: f64,
    /// The smallest chance that so many series of so many places can show.
    pub least_p_value: f64,
    /// The series whose ranks go with those of all others together, rather than against them.
    pub agreeing: usize,
}

/// The agreement of at least two finite series of the same number of places, by the sum of Spearman's correlations of all pairs;
/// `None` if there are fewer, or their lengths differ.
///
/// Each series must have been measured round the circle from a start that was drawn at random, every place as likely as any
/// other (the first one's may be fixed, since only the differences count). Then the starts are independent of whatever time did to it,
/// and all turns of a series against the others are equally likely (a randomization test; Edgington 1980).
pub fn agreement(series: &[Vec<f64>]) -> Option<Agreement> {
    let places = series.first()?.len();
    if series.len() < 2 || places < 2 || series.iter().any(|values| values.len() != places) {
        return None;
    }
    let scores: Vec<Vec<f64>> = series.iter().map(|values| standard_ranks(values)).collect();
    let table = Correlations::new(&scores);
    let unturned = table.sum(&vec![0; series.len()]);
    let enough = unturned - ROUNDING * unturned.abs().max(1.0);
    let combinations = (1..series.len()).try_fold(1, |count: usize, _| count.checked_mul(places));
    let tried = combinations.filter(|&count| count <= MOST_TRIED);
    let p_value = match tried {
        Some(count) => {
            let as_good =
                (0..count).filter(|&number| table.sum(&turns_of(number, series.len(), places)) >= enough);
            as_good.count() as f64 / count as f64
        }
        None => {
            let mut rng = SplitMix64::new(series.len() as u64);
            let as_good = (0..DRAWN).filter(|_| table.sum(&drawn(&mut rng, series.len(), places)) >= enough);
            (as_good.count() + 1) as f64 / f64::from(DRAWN + 1)
        }
    };
    let least_p_value = tried.map_or(1.0 / f64::from(DRAWN + 1), |count| 1.0 / count as f64);
    let agreeing = (0..series.len()).filter(|&index| table.with_others(index) > 0.0).count();
    Some(Agreement { p_value, least_p_value, agreeing })
}

/// The ranks with mean 0 and the sum of their squares 1; all 0 where they are all equal.
fn standard_ranks(series: &[f64]) -> Vec<f64> {
    let ranks = ranks(series);
    let (middle, deviation) = (mean(&ranks).unwrap_or(0.0), stddev(&ranks).unwrap_or(0.0));
    let size = deviation * (ranks.len() as f64 - 1.0).sqrt();
    ranks.into_iter().map(|rank| if size > 0.0 { (rank - middle) / size } else { 0.0 }).collect()
}

/// The turns with this number among all combinations; the first series stays.
fn turns_of(mut number: usize, series: usize, places: usize) -> Vec<usize> {
    let mut turns = vec![0; series];
    for turn in &mut turns[1..] {
        *turn = number % places;
        number /= places;
    }
    turns
}

fn drawn(rng: &mut SplitMix64, series: usize, places: usize) -> Vec<usize> {
    let below = places as u64;
    let turn = |index: usize| if index == 0 { 0 } else { usize::try_from(rng.below(below)).unwrap_or(0) };
    (0..series).map(turn).collect()
}

/// The correlation of every pair of series for every turn of one against the other.
struct Correlations {
    places: usize,
    series: usize,
    /// By pair, first the one with the smaller index, then by turn.
    by_pair: Vec<Vec<f64>>,
}

impl Correlations {
    fn new(scores: &[Vec<f64>]) -> Self {
        let places = scores.first().map_or(0, Vec::len);
        let mut by_pair = Vec::new();
        for (at, ranks) in scores.iter().enumerate() {
            for other in &scores[at + 1..] {
                let round = || other.iter().chain(other);
                let at_turn = |turn: usize| ranks.iter().zip(round().skip(turn)).map(|(a, b)| a * b).sum();
                by_pair.push((0..places).map(at_turn).collect());
            }
        }
        Self { places, series: scores.len(), by_pair }
    }

    /// The sum over all pairs, each series turned by so many places.
    fn sum(&self, turns: &[usize]) -> f64 {
        let mut pairs = self.by_pair.iter();
        let mut sum = 0.0;
        for (at, turn) in turns.iter().enumerate() {
            for (other, of_pair) in turns[at + 1..].iter().zip(&mut pairs) {
                sum += of_pair[(other + self.places - turn) % self.places];
            }
        }
        sum
    }

    /// The correlations of one series with all others as they are.
    fn with_others(&self, series: usize) -> f64 {
        let pairs = (0..self.series).flat_map(|at| (at + 1..self.series).map(move |other| (at, other)));
        let own = pairs.zip(&self.by_pair).filter(|((at, other), _)| *at == series || *other == series);
        own.map(|(_, of_pair)| of_pair[0]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    const PLACES: usize = 24;

    /// Series of a circle of places, each measured from a random start while a noise goes on.
    fn measured(
        seed: u64,
        count: usize,
        step: f64,
        noise: &dyn Fn(&mut SplitMix64) -> Vec<f64>,
    ) -> Vec<Vec<f64>> {
        let mut rng = seeded(seed);
        let course = noise(&mut rng);
        let one = |number: usize| {
            let start = usize::try_from(rng.below(PLACES as u64)).unwrap();
            let mut series = vec![0.0; PLACES];
            for at in 0..PLACES {
                let place = (start + at) % PLACES;
                let of_place = if place >= PLACES / 2 { step } else { 0.0 };
                series[place] = of_place + course[number * PLACES + at];
            }
            series
        };
        (0..count).map(one).collect()
    }

    /// A course in time, a value at a time.
    type Noise<'a> = dyn Fn(&mut SplitMix64) -> Vec<f64> + 'a;

    fn seen(count: usize, step: f64, noise: &Noise<'_>) -> usize {
        let is_seen = |seed| agreement(&measured(seed, count, step, noise)).unwrap().p_value <= 0.01;
        (0..300).filter(|&seed| is_seen(seed)).count()
    }

    /// Whatever time does, one in a hundred agrees by chance; 3 of 300 are expected, 9 are 3.5 deviations more.
    #[test]
    fn noise_in_time_of_any_kind_agrees_by_chance_only() {
        let length = 4 * PLACES;
        let independent = |rng: &mut SplitMix64| rng.series(length, 0.0, 0.1);
        let lasting = |rng: &mut SplitMix64| rng.autoregressive(length, 0.0, 0.1, 0.95);
        let wave = |rng: &mut SplitMix64| {
            let phase = rng.uniform();
            let at = |index: usize| ((index as f64 / 26.0 + phase) * std::f64::consts::TAU).sin();
            (0..length).map(at).collect()
        };
        // Slower with every pass, and at the end of each: it comes back with the time since the pass began.
        let since = |_: &mut SplitMix64| (0..length).map(|index| (index % PLACES) as f64).collect();
        let kinds: [&Noise<'_>; 4] = [&independent, &lasting, &wave, &since];
        for (kind, noise) in kinds.into_iter().enumerate() {
            for count in [3, 4] {
                let alarms = seen(count, 0.0, noise);
                assert!(alarms <= 9, "kind {kind}, {count} series: {alarms} of 300");
            }
        }
    }

    #[test]
    fn a_step_of_the_places_is_found_in_noise_of_time() {
        let independent = |rng: &mut SplitMix64| rng.series(3 * PLACES, 0.0, 0.03);
        let lasting = |rng: &mut SplitMix64| rng.autoregressive(3 * PLACES, 0.0, 0.03, 0.5);
        let found = (seen(3, 0.1, &independent), seen(3, 0.1, &lasting));
        assert!(found.0 >= 285 && found.1 >= 240, "{found:?} of 300");
    }

    #[test]
    fn two_series_show_no_less_than_one_in_their_places() {
        let steps: Vec<f64> = (0..40).map(|place| f64::from(u8::from(place >= 20))).collect();
        let two = agreement(&[steps.clone(), steps.clone()]).unwrap();
        assert_eq!((two.p_value, two.least_p_value, two.agreeing), (1.0 / 40.0, 1.0 / 40.0, 2));
        let against: Vec<f64> = steps.iter().map(|level| -level).collect();
        let three = agreement(&[steps.clone(), steps.clone(), against]).unwrap();
        assert!(three.agreeing < 3 && three.p_value > 0.1, "{three:?}");
        let equal = agreement(&[vec![3.0; 40], vec![3.0; 40]]).unwrap();
        assert_eq!((equal.p_value, equal.agreeing), (1.0, 0));
        assert_eq!(agreement(std::slice::from_ref(&steps)), None);
        assert_eq!(agreement(&[steps, vec![1.0; 39]]), None);
    }
}
