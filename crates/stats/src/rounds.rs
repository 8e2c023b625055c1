//! The interval of 95 % of the mean of a few samples in the order of time, such as the rounds of a cell: what they show of states
//! that last, what so few cannot show, and what their own halves say besides. It knows nothing of what was measured.

use crate::interval::{Interval, mean_interval, student_half_width};
use crate::lasting::{LastingMean, TimedSample};
use crate::order::{lag1, stddev};

/// Fewer samples show no correlation; they are taken as independent.
const MIN_SAMPLES: usize = 4;
/// What the correlation of a few samples comes out too small by, times their number: 1 + 4ρ (Marriott and Pope 1954), for a ρ
/// of 0.4, which six to ten samples do not show. By simulation (2026-11-22) intervals then hold the mean of a state of 10 s
/// that is visited eight times in 60 s in 89 of 100 runs instead of 82, and are a fifth wider where there is no such state.
const FEW_SAMPLES: f64 = 2.6;
/// Correlation of a few samples beyond this is not corrected further: a slow swing over all of them is not uncertain, it was
/// seen as a whole.
const MAX_CORRELATION: f64 = 0.7;
/// Samples whose halves differ by less than this share of the variance between samples are slow: their state outlasts a sample. Of
/// an autoregressive process the share is about a third of the length of a sample over the time that the state lasts, which here
/// is five times as long or more. Of independent noise the share is about two.
const SLOW: f64 = 0.07;
/// The correlation of neighbours that is allowed for in slow samples, whatever they show: that of a state of 10 s each 9 s. By simulation
/// (2026-11-23, seeds below 1000) the intervals of `rdsk run` then hold the mean of such a state in 91 of 100 runs instead of 87,
/// and are a sixth wider; those of noise that is independent from one tenth of a second to the next stay as they are.
const SLOW_CORRELATION: f64 = 0.4;
/// So many samples show by themselves how long a state lasts.
const MANY_SAMPLES: usize = 12;

/// What counting whole I/Os adds to the variance of the difference of two halves, in units of one I/O squared. The end of the sample falls
/// at random between two completions, which adds 1/12; so does the middle, but what it takes from one half it gives the other, 4/12.
const COUNTED: f64 = 5.0 / 12.0;
/// By independent noise, half of the variance of the difference of two halves is so many times the variance of the samples: halves of
/// variance 2 make samples of variance 1 and differences of variance 4.
const INDEPENDENT: f64 = 2.0;

/// What is known of the halves of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Halves {
    /// The means of the first and of the second half of each sample, as far as they are known, in the samples' unit.
    pub rates: Vec<(f64, f64)>,
    /// By how much one I/O changes the mean of a half, or as many as end together.
    pub step: f64,
}

/// The 95 % interval of the mean of a few samples in the order of time, such as rounds, whose neighbours may share a state that
/// lasts: the wider of two. Six samples hardly show such a state: Student's t, wider by the correlation that they show and the one
/// that so few cannot. Of a dozen and more, neighbours are so near that one correlation says too little: [`LastingMean`]. None for
/// fewer than two samples or ones that are not finite; two or three are taken as independent.
///
/// The halves of the samples show what the samples themselves cannot. A state that hardly changes within a sample, against what
/// changes from one to another, outlasts it and may last until the next one. So few samples cannot deny that their neighbours are
/// correlated then, so they are taken to be; and the scatter of n correlated samples, of which v say as much as one, is
/// smaller than that of the state by (n − v)/(n − 1) (Bayley and Hammersley 1946). Where on the other hand the halves of a sample differ
/// by as much as noise makes them that is new in each, it explains why the samples differ, and only what it leaves unexplained
/// can be a state that lasts: of noise that is independent, the intervals are less often much wider than Student's.
pub fn rounds_interval(samples: &[TimedSample], halves: &Halves) -> Option<Interval> {
    let values: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
    let plain = mean_interval(&values)?;
    let student = student_half_width(&values)?;
    let half_width = if values.len() < MIN_SAMPLES {
        student
    } else {
        let most = halves.unexplained(&values);
        let of_few = student * lasting(&values, most);
        let of_slow = if halves.are_slow(&values) { student * lasting_slow(values.len()) } else { 0.0 };
        LastingMean::with_share(samples, most)?.half_width().max(of_few).max(of_slow)
    };
    Some(Interval::around(plain.mean, half_width, plain.batches, plain.lag1))
}

/// How many times wider than independent ones a few samples in the order of time leave their mean, of whose variance a state that
/// lasts has at most this share.
fn lasting(samples: &[f64], most: f64) -> f64 {
    let r = lag1(samples) + FEW_SAMPLES / samples.len() as f64;
    as_one(r.clamp(0.0, MAX_CORRELATION.min(most))).sqrt()
}

/// The same of so many slow ones.
fn lasting_slow(count: usize) -> f64 {
    let (count, as_one) = (count as f64, as_one(SLOW_CORRELATION));
    (as_one * (count - 1.0) / (count - as_one)).sqrt()
}

/// How many samples with this correlation of neighbours say as much as an independent one, as of a process of order 1.
fn as_one(r: f64) -> f64 {
    (1.0 + r) / (1.0 - r)
}

impl Halves {
    /// The variance of the difference of the halves of a sample; `None` where those of most samples are not known. What all have in
    /// common, such as a fast start, is left out.
    fn variance(&self, samples: &[f64]) -> Option<f64> {
        let differences: Vec<f64> = self.rates.iter().map(|(first, second)| first - second).collect();
        let are_known = self.rates.len() * 2 > samples.len() && samples.len() < MANY_SAMPLES;
        stddev(&differences).filter(|_| are_known).map(|deviation| deviation * deviation)
    }

    /// Whether the halves of most of a few samples are known, and differ by little of what the samples differ by.
    fn are_slow(&self, samples: &[f64]) -> bool {
        let (Some(within), Some(between)) = (self.variance(samples), stddev(samples)) else { return false };
        within / 2.0 < SLOW * between * between
    }

    /// The share of the variance of a few samples that noise which is new in each half does not explain: all of it where the halves are
    /// not known. Halves that differ by more than such noise does are not independent: what recurs within a sample, such as a pause each
    /// half second, makes them differ and the samples not, and explains nothing either. Many samples show by themselves what lasts.
    ///
    /// Samples of variance 1 whose halves differ by a variance of 3 leave a quarter unexplained, of 5 also, and of 8 all of it.
    fn unexplained(&self, samples: &[f64]) -> f64 {
        let (Some(within), Some(between)) = (self.variance(samples), stddev(samples)) else { return 1.0 };
        let noise = (within - COUNTED * self.step * self.step).max(0.0) / 2.0 / INDEPENDENT;
        let ratio = noise / (between * between);
        if between > 0.0 { (1.0 - ratio).abs().min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Series as _, seeded};

    const TRIALS: u64 = 600;

    /// Samples in equal steps of time.
    fn timed(values: &[f64]) -> Vec<TimedSample> {
        values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect()
    }

    #[test]
    fn a_few_rounds_over_a_state_that_lasts_are_covered() {
        let covered = |n: usize, rho: f64| -> (f64, f64) {
            let (mut held, mut wider) = (0.0, Vec::new());
            for seed in 0..2 * TRIALS {
                let rounds = seeded(seed).autoregressive(n, 100.0, 10.0, rho);
                let interval = rounds_interval(&timed(&rounds), &Halves::default()).unwrap();
                let plain = mean_interval(&rounds).unwrap();
                held += f64::from(u8::from(interval.low <= 100.0 && 100.0 <= interval.high));
                wider.push(interval.half_width_rel() / plain.half_width_rel());
            }
            (held / (2 * TRIALS) as f64, crate::median(&wider).unwrap())
        };
        for n in [6, 8, 10] {
            let (independent, wider) = covered(n, 0.0);
            assert!((0.95..=0.99).contains(&independent), "{n}: {independent}");
            assert!(wider <= 1.4, "{n}: {wider} times as wide as Student's");
            // Rounds 7 s apart over a state of 10 s.
            let (lasting, _) = covered(n, 0.5);
            assert!(lasting >= 0.87, "{n}: {lasting}");
        }
        let interval = |values: &[f64]| rounds_interval(&timed(values), &Halves::default());
        let (three, plain) = (interval(&[1.0, 2.0, 4.0]), mean_interval(&[1.0, 2.0, 4.0]));
        assert!((three.unwrap().half_width_rel() - plain.unwrap().half_width_rel()).abs() < 1e-9);
        assert_eq!(interval(&[3.0; 6]).map(|one| one.half_width_rel()), Some(0.0));
        assert_eq!(interval(&[1.0]), None);
        assert_eq!(interval(&[1.0, f64::NAN, 2.0, 3.0]), None);
    }

    /// Visits of 0.4 s in 60 s, and their halves, of a course in steps of 0.1 s.
    fn visits(course: &[f64], count: usize) -> (Vec<TimedSample>, Halves) {
        let mean = |from: usize, steps: usize| crate::mean(&course[from..from + steps]).unwrap();
        let begins = || (0..count).map(|round| round * 600 / count);
        let rates = begins().map(|begin| (mean(begin, 2), mean(begin + 2, 2))).collect();
        let samples = begins().map(|begin| (begin as f64, mean(begin, 4))).collect();
        (samples, Halves { rates, step: 0.0 })
    }

    /// The shares of the courses whose interval holds the mean without their halves and with them, and the median of how many times as wide
    /// the halves make it.
    fn held(count: usize, course: impl Fn(&mut crate::rng::SplitMix64) -> Vec<f64>) -> (f64, f64, f64) {
        let (mut without, mut with, mut wider) = (0.0, 0.0, Vec::new());
        for seed in 0..2 * TRIALS {
            let (samples, halves) = visits(&course(&mut seeded(seed)), count);
            let (plain, more) = (
                rounds_interval(&samples, &Halves::default()).unwrap(),
                rounds_interval(&samples, &halves).unwrap(),
            );
            let holds = |one: Interval| f64::from(u8::from(one.low <= 100.0 && 100.0 <= one.high));
            without += holds(plain);
            with += holds(more);
            assert_eq!(more.mean, plain.mean);
            wider.push((more.high - more.mean) / (plain.high - plain.mean));
        }
        let share = |times: f64| times / (2 * TRIALS) as f64;
        (share(without), share(with), crate::median(&wider).unwrap())
    }

    #[test]
    fn halves_that_agree_show_a_state_that_outlasts_a_visit() {
        let (without, with, wider) = held(8, |noise| noise.autoregressive(600, 100.0, 10.0, 0.99));
        assert!(with >= 0.93 && with >= without + 0.02 && wider >= 1.0, "{without}, {with}, {wider}");
    }

    #[test]
    fn halves_that_differ_as_much_as_visits_deny_a_state_that_lasts() {
        for count in [6, 8] {
            let (without, with, wider) = held(count, |noise| noise.series(600, 100.0, 10.0));
            assert!(without >= 0.97 && (0.96..without).contains(&with), "{count}: {without}, {with}");
            assert!(wider < 0.99, "{count}: {wider}");
            // A state of 10 s has half of what visits differ by, or a third.
            for share in [1.0, 0.5] {
                let mixed = |noise: &mut crate::rng::SplitMix64| -> Vec<f64> {
                    let state = noise.autoregressive(600, 0.0, 5.0 * f64::sqrt(share), 0.99);
                    noise.series(600, 100.0, 10.0).iter().zip(state).map(|(own, state)| own + state).collect()
                };
                let (without, with, _) = held(count, mixed);
                assert!(with >= 0.92 && with >= without - 0.025, "{count}, {share}: {without}, {with}");
            }
            // A wave of about the length of a visit over such a state: halves differ, visits do not, and the state is not denied.
            let wave = |noise: &mut crate::rng::SplitMix64| -> Vec<f64> {
                let phase = noise.normal();
                let state = noise.autoregressive(600, 100.0, 4.0, 0.99);
                let at = |step: usize| 10.0 * (step as f64 * std::f64::consts::TAU / 4.3 + phase).sin();
                state.iter().enumerate().map(|(step, state)| state + at(step)).collect()
            };
            let (without, with, _) = held(count, wave);
            assert!(with >= without - 0.01, "{count}: {without}, {with}");
            // One that changes within a visit leaves the interval as it was, or nearly.
            let (without, with, _) = held(count, |noise| noise.autoregressive(600, 100.0, 10.0, 0.8));
            assert!(with >= without - 0.02, "{count}: {without}, {with}");
        }
        // A dozen visits show by themselves what lasts.
        let (without, with, wider) = held(12, |noise| noise.series(600, 100.0, 10.0));
        assert!(without == with && (wider - 1.0).abs() < 1e-9, "{without}, {with}, {wider}");
    }

    #[test]
    fn halves_of_few_ios_deny_nothing() {
        // Visits of 3 or 4 I/Os, each in one of the halves: differences of one I/O come from where the halves end.
        let rates = vec![(1.1, 1.9), (2.0, 2.0), (1.9, 1.1), (2.0, 2.0), (1.1, 1.9), (2.0, 2.0)];
        let samples = timed(&[1.5, 2.0, 1.5, 2.0, 1.5, 2.0]);
        let width = |step: f64| {
            rounds_interval(&samples, &Halves { rates: rates.clone(), step }).unwrap().half_width_rel()
        };
        let unknown = rounds_interval(&samples, &Halves::default()).unwrap().half_width_rel();
        assert!(
            width(0.0) < 0.9 * unknown && width(2.0) >= unknown,
            "{} {} {unknown}",
            width(0.0),
            width(2.0)
        );
    }

    #[test]
    fn what_all_visits_begin_with_is_no_change_and_few_halves_say_nothing() {
        let rates = [100.0, 130.0, 90.0, 110.0, 120.0, 80.0];
        let samples = timed(&rates);
        let width = |rates: &[(f64, f64)]| {
            let halves = Halves { rates: rates.to_vec(), step: 0.0 };
            rounds_interval(&samples, &halves).unwrap().half_width_rel()
        };
        let slow: Vec<(f64, f64)> = rates.iter().map(|rate| (*rate, rate + 1.0)).collect();
        let fast_start: Vec<(f64, f64)> = rates.iter().map(|rate| (rate + 50.0, rate - 50.0)).collect();
        let own: Vec<(f64, f64)> = rates
            .iter()
            .zip([9.0, -9.0, 20.0, -3.0, 8.0, -15.0])
            .map(|(rate, by)| (rate + by, rate - by))
            .collect();
        assert!(width(&slow) > 1.2 * width(&[]));
        assert_eq!(width(&fast_start), width(&slow));
        assert!(width(&own) < width(&[]));
        assert_eq!(width(&slow[..3]), width(&[]));
        // Six visits: √((1.4 / 0.6) · 5 / (6 − 1.4 / 0.6)) times as wide as Student's.
        let plain = mean_interval(&rates).unwrap().half_width_rel();
        assert!((width(&slow) / plain - (7.0_f64 / 3.0 * 5.0 / (11.0 / 3.0)).sqrt()).abs() < 1e-9);
    }
}
