//! Where several passes over the same few places step alike. Each pass ranks the places by itself and the ranks are summed (van
//! Elteren 1960), so that a dozen places and some passes show what the medians of a dozen places cannot. It knows nothing of what the
//! numbers are.

use crate::ranks::{RankSums, strongest};
use statrs::distribution::{ContinuousCDF as _, Normal};

/// The steps along the places that the passes share, by place: the index of the first sample after each. Binary segmentation; a split is
/// a step if chance makes as much in fewer than `false_alarm` of all series whose passes are in random orders of their own, by the bound
/// of Bonferroni over all splits.
///
/// Each pass has a sample of every place; without two passes, or without room for two segments of `min_samples`, at least 2, there is no
/// step.
pub fn pass_steps(passes: &[Vec<f64>], false_alarm: f64, min_samples: usize) -> Vec<usize> {
    let places = passes.first().map_or(0, Vec::len);
    if passes.len() < 2 || passes.iter().any(|pass| pass.len() != places) {
        return Vec::new();
    }
    let least = min_samples.max(2);
    // Searching the parts again makes about as many tests once more for every step.
    let bound = false_alarm / (4 * places.max(1)) as f64;
    let mut steps = Vec::new();
    let mut segments = vec![(0, places)];
    while let Some((from, to)) = segments.pop() {
        let split = strongest_split(passes, from, to, least).filter(|(_, score)| chance(*score) <= bound);
        if let Some((at, _)) = split {
            steps.push(at);
            segments.extend([(from, at), (at, to)]);
        }
    }
    steps.sort_unstable();
    steps
}

/// The split of a segment whose two parts differ most over all passes, and by how many standard deviations.
fn strongest_split(passes: &[Vec<f64>], from: usize, to: usize, least: usize) -> Option<(usize, f64)> {
    if to - from < 2 * least {
        return None;
    }
    let ranked: Vec<RankSums> = passes.iter().filter_map(|pass| RankSums::count(&pass[from..to])).collect();
    let score = |at: usize| {
        let (sum, variance) = ranked
            .iter()
            .map(|ranks| ranks.sum(0, at))
            .fold((0.0, 0.0), |sums, ranks| (sums.0 + ranks.0, sums.1 + ranks.1));
        if variance > 0.0 { sum.abs() / variance.sqrt() } else { 0.0 }
    };
    strongest((least..=to - from - least).map(|at| (at, score(at)))).map(|(at, score)| (from + at, score))
}

/// The probability of so many standard deviations or more, either way.
fn chance(score: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(1.0, |normal| 2.0 * normal.sf(score))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;

    /// Passes over twelve places, each pass at a level of its own.
    fn passes(seed: u64, count: usize, step: f64) -> Vec<Vec<f64>> {
        let mut noise = seeded(seed);
        let mut pass = || {
            let level = 1.0 + 0.2 * noise.normal().abs();
            (0..12).map(|place| level * (1.0 + step * f64::from(place / 7) + 0.05 * noise.normal())).collect()
        };
        (0..count).map(|_| pass()).collect()
    }

    #[test]
    fn a_step_among_twelve_places_is_found_where_it_is() {
        for count in [3, 4, 10] {
            let steps: Vec<Vec<usize>> =
                (0..200).map(|seed| pass_steps(&passes(seed, count, 0.5), 0.01, 3)).collect();
            let exact = steps.iter().filter(|steps| **steps == [7]).count();
            assert!(exact >= 194, "{exact} of 200 with {count} passes");
        }
    }

    #[test]
    fn noise_has_no_steps() {
        for count in [2, 4, 10] {
            let alarms =
                (0..1000).filter(|&seed| !pass_steps(&passes(seed, count, 0.0), 0.01, 3).is_empty()).count();
            assert!(alarms <= 15, "{alarms} of 1000 with {count} passes");
        }
    }

    #[test]
    fn a_level_that_returns_has_two_steps() {
        let pass = |number: u32| {
            (0..12).map(|place: u32| if (4..8).contains(&place) { 20.0 } else { 10.0 } + f64::from((place * 7 + number) % 12)).collect()
        };
        let all: Vec<Vec<f64>> = (0..8).map(pass).collect();
        assert_eq!(pass_steps(&all, 0.01, 3), [4, 8]);
    }

    #[test]
    fn one_pass_alone_equal_samples_and_too_few_places_show_nothing() {
        let one: Vec<f64> = (0..12).map(f64::from).collect();
        assert!(pass_steps(std::slice::from_ref(&one), 0.01, 3).is_empty());
        assert!(pass_steps(&[vec![2.0; 12], vec![2.0; 12]], 0.01, 3).is_empty());
        assert!(pass_steps(&[one[..5].to_vec(), one[..5].to_vec()], 0.5, 3).is_empty());
        assert!(pass_steps(&[one.clone(), one[..11].to_vec()], 0.01, 3).is_empty());
        let mut with_one = vec![vec![2.0; 12]; 9];
        with_one.push(one);
        assert!(pass_steps(&with_one, 0.01, 3).is_empty(), "one pass of ten is not the passes");
        assert!(pass_steps(&[], 0.01, 3).is_empty());
    }
}
