//! Where a rate stops growing with what is put in. It gets numbers and their intervals, and names the first step that
//! surely gains too little; it knows nothing of what they count.

/// A gain per doubling below this is not worth the doubling.
pub const MIN_GAIN: f64 = 0.1;

/// From one count of whatever is put in to the next larger one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How many before, at least 1.
    pub from: u32,
    /// How many after.
    pub to: u32,
    /// The rate after the step over the rate before it.
    pub ratio: f64,
    /// Its interval; `None` if there is none, and then nothing is sure of this step.
    pub interval: Option<(f64, f64)>,
}

/// The first step that gains too little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Position in the list of steps: the count before it is the one from which going on does not pay.
    pub index: usize,
    /// What the step gains per doubling of the count, as a share of the rate; negative for a loss.
    pub gain: f64,
    /// The least that it may gain per doubling, by the lower end of its interval.
    pub least_gain: f64,
    /// The most that it may gain per doubling, by the upper end of its interval.
    pub most_gain: f64,
}

/// The ratio of a step from which on it gains enough: [`MIN_GAIN`] for each doubling.
pub fn enough_ratio(from: u32, to: u32) -> f64 {
    (1.0 + MIN_GAIN).powf(doublings(from, to))
}

/// The knee of a curve: the smallest count from which the step to the next larger one gains less than [`MIN_GAIN`] per
/// doubling of the count. A step whose interval does not exclude such a gain is no knee, nor is one without an interval. `None`
/// if no step is one: then more may still help, or too little is known.
///
/// A step between equal or descending counts, and one from or to a rate that is not positive, is passed over.
///
/// ```
/// use rdsk_stats::{Step, knee};
/// let step = |from, to, ratio: f64| Step { from, to, ratio, interval: Some((ratio * 0.98, ratio * 1.02)) };
/// let found = knee(&[step(1, 2, 1.96), step(2, 4, 1.02), step(4, 8, 1.0)]).unwrap();
/// assert_eq!(found.index, 1);
/// ```
pub fn knee(steps: &[Step]) -> Option<Knee> {
    let steps = steps.iter().enumerate();
    steps.filter_map(|(index, step)| knee_at(index, step)).find(|knee| knee.most_gain < MIN_GAIN)
}

fn doublings(from: u32, to: u32) -> f64 {
    (f64::from(to) / f64::from(from)).log2()
}

fn knee_at(index: usize, step: &Step) -> Option<Knee> {
    let (low, high) = step.interval?;
    let is_step = step.from > 0 && step.to > step.from && step.ratio > 0.0 && low > 0.0;
    let doublings = doublings(step.from, step.to);
    let gain = |ratio: f64| ratio.max(0.0).powf(1.0 / doublings) - 1.0;
    let knee = Knee { index, gain: gain(step.ratio), least_gain: gain(low), most_gain: gain(high) };
    (is_step && knee.gain.is_finite() && knee.most_gain.is_finite()).then_some(knee)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The steps of a curve whose rates are each known to within this part.
    fn steps(pairs: &[(u32, f64)], half_width: f64) -> Vec<Step> {
        let wider = (1.0 + half_width) / (1.0 - half_width);
        let step = |pair: &[(u32, f64)]| {
            let ratio = pair[1].1 / pair[0].1;
            Step { from: pair[0].0, to: pair[1].0, ratio, interval: Some((ratio / wider, ratio * wider)) }
        };
        pairs.windows(2).map(step).collect()
    }

    fn index_of(pairs: &[(u32, f64)], half_width: f64) -> Option<usize> {
        knee(&steps(pairs, half_width)).map(|knee| knee.index)
    }

    #[test]
    fn curves() {
        for (pairs, half_width, expected) in [
            (&[(1, 100.0), (2, 200.0), (4, 400.0)][..], 0.0, None),
            (&[(1, 100.0), (2, 109.0)], 0.0, Some(0)),
            (&[(1, 100.0), (2, 111.0)], 0.0, None),
            // The report's counts: 1 to 3 is 1.58 doublings, so 16 % is just too much for a knee.
            (&[(1, 100.0), (3, 116.0)], 0.0, Some(0)),
            (&[(1, 100.0), (3, 117.0)], 0.0, None),
            // The intervals do not exclude a gain of 10 %.
            (&[(1, 100.0), (2, 105.0)], 0.04, None),
            (&[(1, 100.0), (2, 105.0)], 0.02, Some(0)),
            // A loss is a knee too.
            (&[(1, 50.0), (2, 100.0), (4, 80.0)], 0.01, Some(1)),
            (&[(1, 100.0)], 0.0, None),
            (&[], 0.0, None),
            (&[(1, 0.0), (2, 0.0)], 0.0, None),
        ] {
            assert_eq!(index_of(pairs, half_width), expected, "{pairs:?} ±{half_width}");
        }
    }

    #[test]
    fn what_is_gained_is_told() {
        let knee = knee(&steps(&[(1, 100.0), (4, 121.0), (8, 121.0)], 0.0)).unwrap();
        assert_eq!(knee.index, 1, "10% per doubling is no knee");
        assert!(knee.gain.abs() < 1e-12 && knee.most_gain.abs() < 1e-12);
    }

    #[test]
    fn without_an_interval_nothing_is_sure() {
        let mut all = steps(&[(1, 100.0), (2, 100.0), (4, 100.0)], 0.01);
        all[0].interval = None;
        assert_eq!(knee(&all).map(|knee| knee.index), Some(1));
        all[1].interval = None;
        assert_eq!(knee(&all), None);
    }

    fn curve() -> impl Strategy<Value = Vec<(u32, f64)>> {
        let counts = proptest::collection::btree_set(1_u32..200, 1..8);
        (counts, proptest::collection::vec(1.0..1e9_f64, 8))
            .prop_map(|(counts, means)| counts.into_iter().zip(means).collect())
    }

    proptest! {
        /// n streams of equal rate up to a limit: the knee is the largest measured count whose next step gains too little,
        /// and never lies where the rate still grows with the count.
        #[test]
        fn of_a_limit(counts in proptest::collection::btree_set(1_u32..100, 2..8), one in 1.0..1e6_f64, limit in 1_u32..100) {
            let pairs: Vec<(u32, f64)> =
                counts.iter().map(|&count| (count, one * f64::from(count.min(limit)))).collect();
            let found = index_of(&pairs, 0.001);
            if let Some(index) = found {
                prop_assert!(pairs[index + 1].0 > limit, "{pairs:?}: {index}");
            }
            if let Some(first) = pairs.iter().position(|&(count, _)| count >= limit).filter(|&first| first + 1 < pairs.len())
            {
                // Close counts need a narrow interval: 3 % between 99 and 100 would be a gain of 650 % per doubling.
                let doublings = (f64::from(pairs[first + 1].0) / f64::from(pairs[first].0)).log2();
                if 0.0021 < 0.09 * doublings {
                    prop_assert!(found.is_some_and(|index| index <= first), "{pairs:?}: {found:?}");
                }
            }
        }

        #[test]
        fn of_any_unit(pairs in curve(), factor in 1e-6..1e6_f64) {
            let other: Vec<(u32, f64)> = pairs.iter().map(|&(count, mean)| (count, mean * factor)).collect();
            let (one, two) = (knee(&steps(&pairs, 0.01)), knee(&steps(&other, 0.01)));
            // A gain at the bound itself may fall to either side by rounding.
            if let (Some(one), Some(two)) = (one, two) {
                prop_assert!(one.index == two.index || (one.most_gain - MIN_GAIN).abs() < 1e-6 || (two.most_gain - MIN_GAIN).abs() < 1e-6);
            }
        }

        /// Wider intervals make no step surer: the knee moves to larger counts or goes away.
        #[test]
        fn of_less_certainty(pairs in curve(), narrow in 0.0..0.05_f64, more in 0.0..0.2_f64) {
            let surer = index_of(&pairs, narrow);
            if let Some(unsure) = index_of(&pairs, narrow + more) {
                prop_assert!(surer.is_some_and(|index| index <= unsure));
            }
        }

        /// The claim itself: what is said of the step at the knee is so, and of no step before it.
        #[test]
        fn of_the_rule(pairs in curve(), half_width in 0.0..0.1_f64) {
            let all = steps(&pairs, half_width);
            let found = knee(&all);
            for step in &all[..found.map_or(all.len(), |knee| knee.index)] {
                prop_assert!(step.interval.unwrap().1 >= enough_ratio(step.from, step.to) * (1.0 - 1e-9));
            }
            if let Some(knee) = found {
                prop_assert!(knee.least_gain <= knee.gain && knee.gain <= knee.most_gain && knee.most_gain < MIN_GAIN);
            }
        }
    }
}
