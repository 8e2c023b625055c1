//! Change points: where the level of a series steps. Ranks only, so that outliers and the shape of the scatter do not
//! matter; it knows nothing of what the numbers are.

use crate::ranks::{RankSums, strongest};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A step in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Position of the first sample after the step.
    pub index: usize,
    /// Median of the segment before it, in the series' own unit.
    pub before: f64,
    /// Median of the segment after it.
    pub after: f64,
}

/// How steps are searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeOptions {
    /// Probability of finding a step in a series of independent samples that has none; between 0 and 1.
    pub false_alarm: f64,
    /// Fewest samples between two steps, at least 2.
    pub min_samples: usize,
    /// Most steps; the strongest are found first.
    pub most: usize,
}

impl Default for ChangeOptions {
    /// One false alarm in a hundred series, five samples, 32 steps.
    fn default() -> Self {
        Self { false_alarm: 0.01, min_samples: 5, most: 32 }
    }
}

/// The steps of a series, by position.
///
/// Binary segmentation (Scott and Knott 1974) with the rank sum of Wilcoxon, Mann and Whitney: a segment is split where the
/// ranks of its two parts differ most, if Student's t of these ranks (Conover and Iman 1981) is less likely by chance than
/// the bound of Bonferroni over all splits allows, and its parts are searched in turn. A level that returns, a slow part in
/// the middle of a disk for one, leaves no split whose two sides differ enough; if no split is found, the part in the
/// middle that differs most from the rest is looked for (circular segmentation, Olshen and others 2004), and its start is the
/// split. Each step is then moved to where the
/// absolute deviations from the medians of its two neighbours are least. A slope is no step; it comes out as a staircase of
/// at most `most` steps. Samples must be finite; equal ones share their rank.
pub fn change_points(samples: &[f64], options: &ChangeOptions) -> Vec<ChangePoint> {
    let least = options.min_samples.max(2);
    // Searching the parts again makes about as many tests once more for every step, of which there are a few.
    let bound = options.false_alarm / (4 * samples.len().max(2)) as f64;
    let mut steps: Vec<usize> = Vec::new();
    let split = |from: usize, to: usize| {
        let segment = &samples[from..to];
        let (at, score) = strongest_split(segment, least)?;
        let p_single = p_value(score, to - from);
        if p_single <= bound {
            return Some(Split { from, at: from + at, to, p_value: p_single, score });
        }
        let (at, score) = strongest_arc(segment, least)?;
        let p_value = p_value(score, to - from);
        // There are about as many times more arcs as there are samples.
        let is_sure = p_value <= bound / (to - from) as f64;
        is_sure.then_some(Split { from, at: from + at, to, p_value, score })
    };
    let mut splits: Vec<Split> = split(0, samples.len()).into_iter().collect();
    while steps.len() < options.most {
        // The strongest of all, so that `most` cuts off the weakest.
        let best = (0..splits.len()).min_by(|&left, &right| splits[left].order(&splits[right]));
        let Some(best) = best else { break };
        let Split { from, at, to, .. } = splits.swap_remove(best);
        splits.extend([split(from, at), split(at, to)].into_iter().flatten());
        steps.push(at);
    }
    steps.sort_unstable();
    refine(samples, &mut steps, least);
    levels(samples, &steps)
}

/// A segment of the series, from `from` up to before `to`, and where it splits best.
struct Split {
    from: usize,
    at: usize,
    to: usize,
    p_value: f64,
    score: f64,
}

impl Split {
    /// The less likely one first; if neither differs from 0, the larger rank sum.
    fn order(&self, other: &Split) -> std::cmp::Ordering {
        self.p_value.total_cmp(&other.p_value).then(other.score.total_cmp(&self.score))
    }
}

/// Probability of ranks that differ as much by chance, from their standardized sum.
fn p_value(score: f64, samples: usize) -> f64 {
    let freedom = samples as f64 - 2.0;
    let left = (freedom + 1.0 - score * score).max(1e-12);
    let t = score * (freedom / left).sqrt();
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| 2.0 * student.sf(t))
}

/// The split of a segment with the largest standardized rank sum, and that sum; `None` if it is too short.
fn strongest_split(segment: &[f64], least: usize) -> Option<(usize, f64)> {
    if segment.len() < 2 * least {
        return None;
    }
    let sums = RankSums::count(segment)?;
    strongest((least..=segment.len() - least).map(|at| (at, sums.score(0, at).abs())))
}

/// Where arcs may begin and end at most; longer segments are looked at in steps, and each step of the series is moved to its
/// place later.
const MAX_ENDS: usize = 512;

/// The start of the part in the middle of a segment whose ranks differ most from those of all the rest, and its standardized
/// rank sum; `None` if the segment is too short for three parts.
fn strongest_arc(segment: &[f64], least: usize) -> Option<(usize, f64)> {
    if segment.len() < 3 * least {
        return None;
    }
    let sums = RankSums::count(segment)?;
    let ends: Vec<usize> =
        (least..=segment.len() - least).step_by(segment.len().div_ceil(MAX_ENDS)).collect();
    strongest(ends.iter().enumerate().flat_map(|(place, &from)| {
        let (ends, sums) = (&ends, &sums);
        let long_enough = ends[place..].iter().filter(move |&&to| to - from >= least);
        long_enough.map(move |&to| (from, sums.score(from, to).abs()))
    }))
}

/// Moves each step to where its two neighbouring segments fit best.
fn refine(samples: &[f64], steps: &mut [usize], least: usize) {
    for place in 0..steps.len() {
        let from = if place == 0 { 0 } else { steps[place - 1] };
        let to = steps.get(place + 1).copied().unwrap_or(samples.len());
        let (before, after) = (middle(&samples[from..steps[place]]), middle(&samples[steps[place]..to]));
        // The cost of a step at each place, counted on from the first.
        let mut cost = 0.0;
        let mut best: Option<(f64, usize)> = None;
        for (index, &sample) in samples.iter().enumerate().take(to).skip(from) {
            let is_allowed = (from + least..=to - least).contains(&index);
            if is_allowed && best.is_none_or(|(lowest, _)| cost < lowest) {
                best = Some((cost, index));
            }
            cost += (sample - before).abs() - (sample - after).abs();
        }
        steps[place] = best.map_or(steps[place], |(_, index)| index);
    }
}

fn middle(samples: &[f64]) -> f64 {
    crate::median(samples).unwrap_or(0.0)
}

fn levels(samples: &[f64], steps: &[usize]) -> Vec<ChangePoint> {
    let ends: Vec<usize> = [0].into_iter().chain(steps.iter().copied()).chain([samples.len()]).collect();
    ends.windows(3)
        .map(|three| ChangePoint {
            index: three[1],
            before: middle(&samples[three[0]..three[1]]),
            after: middle(&samples[three[1]..three[2]]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::seeded;
    use crate::rng::SplitMix64;

    fn series(levels: &[(usize, f64)], relative_noise: f64, seed: u64) -> Vec<f64> {
        let mut noise = seeded(seed);
        levels
            .iter()
            .flat_map(|&(count, level)| std::iter::repeat_n(level, count))
            .map(|level| level * (1.0 + relative_noise * noise.normal()))
            .collect()
    }

    #[test]
    fn a_level_that_returns_is_found() {
        for seed in 0..50 {
            let bump = series(&[(16, 20.0), (16, 80.0), (16, 20.0)], 0.02, seed);
            let options = ChangeOptions { min_samples: 3, ..ChangeOptions::default() };
            let seen: Vec<usize> = change_points(&bump, &options).iter().map(|step| step.index).collect();
            assert_eq!(seen, [16, 32], "seed {seed}");
        }
        // Longer than what is looked at sample by sample.
        let long = series(&[(2000, 20.0), (2000, 80.0), (2000, 20.0)], 0.02, 1);
        let seen: Vec<usize> =
            change_points(&long, &ChangeOptions::default()).iter().map(|step| step.index).collect();
        assert_eq!(seen, [2000, 4000]);
    }

    #[test]
    fn three_levels_are_found_within_one_sample() {
        let (mut exact, mut more) = (0, 0);
        for seed in 0..200 {
            let seen = change_points(
                &series(&[(30, 100.0), (25, 94.0), (20, 88.0)], 0.01, seed),
                &ChangeOptions::default(),
            );
            let near = |index: usize, truth: usize| index.abs_diff(truth) <= 1;
            let has = |truth: usize| seen.iter().any(|step| near(step.index, truth));
            exact += usize::from(has(30) && has(55));
            more += usize::from(seen.len() > 2);
            if let [first, second] = seen[..] {
                assert!((first.before - 100.0).abs() < 1.5 && (second.after - 88.0).abs() < 1.5);
            }
        }
        assert!(exact >= 198, "{exact} of 200");
        // The stated rate of false alarms is one series in a hundred; as for noise alone, three in a hundred are bad luck.
        assert!(more <= 6, "{more} of 200 have a step more");
    }

    /// Independent samples of any shape: normal, skewed, two clusters.
    #[test]
    fn noise_has_no_steps() {
        let shapes: [fn(&mut SplitMix64) -> f64; 3] = [
            |noise| 100.0 + noise.normal(),
            |noise| 100.0 + noise.normal().powi(2) * 5.0,
            |noise| if noise.normal() > 1.0 { 130.0 } else { 100.0 } + noise.normal(),
        ];
        for shape in shapes {
            for count in [40, 200, 2000] {
                let mut alarms = 0;
                for seed in 0..100 {
                    let mut noise = seeded(seed * 7919 + count as u64);
                    let samples: Vec<f64> = (0..count).map(|_| shape(&mut noise)).collect();
                    alarms += usize::from(!change_points(&samples, &ChangeOptions::default()).is_empty());
                }
                assert!(alarms <= 3, "{alarms} of 100 alarms in {count} samples");
            }
        }
    }

    #[test]
    fn outliers_move_no_step_and_equal_samples_have_none() {
        let mut samples = series(&[(40, 100.0), (40, 90.0)], 0.005, 3);
        for index in (5..80).step_by(10) {
            samples[index] = 500.0;
        }
        let seen = change_points(&samples, &ChangeOptions::default());
        assert_eq!(seen.iter().map(|step| step.index).collect::<Vec<_>>(), [40]);
        assert!(change_points(&[7.0; 500], &ChangeOptions::default()).is_empty());
        assert!(change_points(&[], &ChangeOptions::default()).is_empty());
        assert!(change_points(&[1.0, 9.0], &ChangeOptions::default()).is_empty());
    }

    #[test]
    fn a_slope_is_a_staircase_with_an_end() {
        let slope: Vec<f64> = (0..80_000).map(f64::from).collect();
        let seen = change_points(&slope, &ChangeOptions::default());
        assert_eq!(seen.len(), 32);
        assert!(seen.windows(2).all(|pair| pair[0].index < pair[1].index));
        // How long that takes is in tests/timing.rs.
    }
}
