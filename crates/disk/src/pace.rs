//! The pace of a device's own time: stretches of constant pace, drawn as far as the time has come. It knows no request.

use crate::params::{DriftParams, NoiseParams, PaceParams};
use rdsk_stats::rng::SplitMix64;

/// Length of a step where nothing else says one.
const STEP_NS: f64 = 1e8;
/// Parts of a step of a noise that goes on without jumps.
const PARTS: u32 = 8;
/// Slowest pace of a noise whose values have no bound.
const LEAST: f64 = 0.01;
/// Periods of stalls that are drawn and thrown away, so that time 0 lies anywhere in one.
const PERIODS_BEFORE: usize = 20;

/// A stretch of constant pace.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// When it begins, in ns.
    begin_ns: f64,
    /// The device's own time then.
    own_ns: f64,
    pace: f64,
}

/// A device's own time.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    process: Process,
    drift: Option<DriftParams>,
    rng: SplitMix64,
    /// By rising time, the first from 0 on.
    stretches: Vec<Stretch>,
    /// End of the last one, in ns and in own time.
    end_ns: f64,
    end_own_ns: f64,
}

/// A random process and its state.
#[derive(Clone, Debug)]
enum Process {
    Steady,
    /// Values with their correlation from step to step, each of this size. The pace goes in a straight line from one sum to the
    /// next, in some parts: a jump after every step would be a speed of its own.
    Sum {
        values: Vec<(f64, f64)>,
        sigma: f64,
        step_ns: f64,
        /// The sums at the beginning and at the end of the step, and the part that comes next.
        from: f64,
        to: f64,
        part: u32,
    },
    Levels {
        level: f64,
        dwell_ns: f64,
    },
    Sine {
        size: f64,
        phase: f64,
        period_ns: f64,
    },
    Stalls {
        share: f64,
        least_ns: f64,
        most_ns: f64,
        /// What is left of the present part, and whether that is the stall; the length of the stall that follows.
        left_ns: f64,
        is_stalled: bool,
        next_stall_ns: f64,
    },
}

impl Pace {
    /// The pace of a device with checked parameters.
    pub(crate) fn new(params: &PaceParams, seed: u64) -> Pace {
        let mut rng = SplitMix64::new(seed ^ 0x7061_6365);
        // Neighbouring seeds are the states of one generator a few numbers apart: a drawn one is not.
        rng = SplitMix64::new(rng.next_u64());
        let process = params.noise.map_or(Process::Steady, |noise| Process::new(noise, &mut rng));
        Pace { process, drift: params.drift, rng, stretches: Vec::new(), end_ns: 0.0, end_own_ns: 0.0 }
    }

    /// The device's own time at `ns`.
    pub(crate) fn own_ns(&mut self, ns: f64) -> f64 {
        while self.end_ns <= ns {
            self.add();
        }
        let next = self.stretches.partition_point(|stretch| stretch.begin_ns <= ns);
        let stretch = &self.stretches[next - 1];
        stretch.own_ns + (ns - stretch.begin_ns) * stretch.pace
    }

    /// The time at which the device's own time passes `own_ns`.
    pub(crate) fn at_ns(&mut self, own_ns: f64) -> f64 {
        while self.end_own_ns <= own_ns {
            self.add();
        }
        // Of several that begin at the same own time the last one moves.
        let next = self.stretches.partition_point(|stretch| stretch.own_ns <= own_ns);
        let stretch = &self.stretches[next - 1];
        stretch.begin_ns + (own_ns - stretch.own_ns) / stretch.pace
    }

    fn add(&mut self) {
        let begin_ns = self.end_ns;
        let (mut lasts_ns, mut pace) = self.process.next(begin_ns, &mut self.rng);
        if let Some(drift) = self.drift.filter(|drift| begin_ns < drift.over_ns as f64) {
            lasts_ns = lasts_ns.min(STEP_NS);
            self.process.keep(lasts_ns);
            pace *= 1.0 + (drift.to - 1.0) * (begin_ns + lasts_ns / 2.0) / drift.over_ns as f64;
        } else {
            self.process.keep(lasts_ns);
            pace *= self.drift.map_or(1.0, |drift| drift.to);
        }
        self.stretches.push(Stretch { begin_ns, own_ns: self.end_own_ns, pace });
        self.end_ns += lasts_ns;
        self.end_own_ns += lasts_ns * pace;
    }
}

impl Process {
    fn new(noise: NoiseParams, rng: &mut SplitMix64) -> Process {
        match noise {
            NoiseParams::Autoregressive { sigma, rho, step_ns } => {
                Process::sum(vec![(rng.normal(), rho)], sigma, step_ns)
            }
            NoiseParams::Flicker { sigma, octaves, step_ns } => {
                let octave = |octave: u32| (rng.normal(), (-1.0 / f64::from(octave).exp2()).exp());
                let values: Vec<(f64, f64)> = (0..octaves).map(octave).collect();
                Process::sum(values, sigma / f64::from(octaves).sqrt(), step_ns)
            }
            NoiseParams::Levels { size, dwell_ns } => {
                let level = if rng.uniform() < 0.5 { size } else { -size };
                Process::Levels { level, dwell_ns: dwell_ns as f64 }
            }
            NoiseParams::Sine { size, period_ns } => {
                Process::Sine { size, phase: rng.uniform(), period_ns: period_ns as f64 }
            }
            NoiseParams::Stalls { share, least_ns, most_ns } => {
                let (least_ns, most_ns) = (least_ns as f64, most_ns as f64);
                let mut stalls = Process::Stalls {
                    share,
                    least_ns,
                    most_ns,
                    left_ns: 0.0,
                    is_stalled: true,
                    next_stall_ns: 0.0,
                };
                let mut skip_ns = (PERIODS_BEFORE as f64 + rng.uniform()) * most_ns;
                while skip_ns > 0.0 {
                    let lasts_ns = stalls.next(0.0, rng).0.min(skip_ns);
                    stalls.keep(lasts_ns);
                    skip_ns -= lasts_ns;
                }
                stalls
            }
        }
    }

    fn sum(values: Vec<(f64, f64)>, sigma: f64, step_ns: u64) -> Process {
        let from = values.iter().map(|(value, _)| value).sum();
        Process::Sum { values, sigma, step_ns: step_ns as f64, from, to: from, part: PARTS }
    }

    /// Length and pace of the stretch that begins at `at_ns`.
    fn next(&mut self, at_ns: f64, rng: &mut SplitMix64) -> (f64, f64) {
        match self {
            Process::Steady => (STEP_NS * 1e3, 1.0),
            Process::Sum { values, sigma, step_ns, from, to, part } => {
                if *part == PARTS {
                    for (value, rho) in values.iter_mut() {
                        *value = *rho * *value + (1.0 - *rho * *rho).sqrt() * rng.normal();
                    }
                    (*from, *to, *part) = (*to, values.iter().map(|(value, _)| value).sum(), 0);
                }
                let along = (f64::from(*part) + 0.5) / f64::from(PARTS);
                *part += 1;
                let value = *from + (*to - *from) * along;
                (*step_ns / f64::from(PARTS), (1.0 + *sigma * value).max(LEAST))
            }
            Process::Levels { level, dwell_ns } => {
                *level = -*level;
                (1.0 - *dwell_ns * (1.0 - rng.uniform()).ln(), 1.0 + *level)
            }
            Process::Sine { size, phase, period_ns } => {
                let step_ns = STEP_NS.min(*period_ns / 100.0);
                let turns = *phase + (at_ns + step_ns / 2.0) / *period_ns;
                (step_ns, 1.0 + *size * (turns * std::f64::consts::TAU).sin())
            }
            Process::Stalls { share, least_ns, most_ns, left_ns, is_stalled, next_stall_ns } => {
                if *left_ns <= 0.0 && *is_stalled {
                    let period_ns = *least_ns + rng.uniform() * (*most_ns - *least_ns);
                    *next_stall_ns = *share * period_ns;
                    (*left_ns, *is_stalled) = (period_ns - *next_stall_ns, false);
                } else if *left_ns <= 0.0 {
                    (*left_ns, *is_stalled) = (*next_stall_ns, true);
                }
                (*left_ns, if *is_stalled { 0.0 } else { 1.0 })
            }
        }
    }

    /// Notes how long the stretch really is, which the others than stalls need not know.
    fn keep(&mut self, lasts_ns: f64) {
        if let Process::Stalls { left_ns, .. } = self {
            *left_ns -= lasts_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f64 = 1e9;

    fn of(noise: NoiseParams, seed: u64) -> Pace {
        Pace::new(&PaceParams { noise: Some(noise), ..PaceParams::default() }, seed)
    }

    fn kinds() -> [NoiseParams; 5] {
        let step_ns = 100_000_000;
        [
            NoiseParams::Autoregressive { sigma: 0.1, rho: 0.9, step_ns },
            NoiseParams::Flicker { sigma: 0.1, octaves: 6, step_ns },
            NoiseParams::Levels { size: 0.2, dwell_ns: 5_000_000_000 },
            NoiseParams::Sine { size: 0.1, period_ns: 60_000_000_000 },
            NoiseParams::Stalls { share: 0.1, least_ns: 1_000_000_000, most_ns: 5_000_000_000 },
        ]
    }

    #[test]
    fn own_time_and_time_are_inverse_and_never_go_back() {
        for kind in kinds() {
            let mut pace = of(kind, 3);
            let mut last = (0.0, 0.0);
            for at in 0..5000 {
                let own_ns = f64::from(at) * 7e6;
                let ns = pace.at_ns(own_ns);
                assert!(ns >= last.1 && (pace.own_ns(ns) - own_ns).abs() < 1.0, "{kind:?}: {own_ns} {ns}");
                last = (own_ns, ns);
            }
        }
    }

    #[test]
    fn the_mean_pace_over_a_long_time_is_known() {
        for kind in kinds() {
            let params = PaceParams { noise: Some(kind), ..PaceParams::default() };
            let hours = 20.0 * 3600.0 * S;
            let mean = Pace::new(&params, 5).own_ns(hours) / hours;
            assert!((mean - params.mean()).abs() < 0.003, "{kind:?}: {mean}");
        }
    }

    #[test]
    fn levels_stay_and_values_scatter_as_asked() {
        let steps = |kind: NoiseParams| -> Vec<f64> {
            let mut pace = of(kind, 7);
            (0..100_000)
                .map(|at| {
                    (pace.own_ns(f64::from(at + 1) * 0.1 * S) - pace.own_ns(f64::from(at) * 0.1 * S))
                        / 0.1
                        / S
                })
                .collect()
        };
        let [ar, flicker, levels, _, _] = kinds();
        // Means of two neighbouring values: sigma² (1 + rho) / 2 for their variance, nearly; 1/f has the mean of its octaves.
        for (kind, expected, rho) in [(ar, 0.097, 0.92), (flicker, 0.094, 0.87)] {
            let values = steps(kind);
            let sigma = rdsk_stats::stddev(&values).unwrap();
            assert!((sigma - expected).abs() < 0.004, "{kind:?}: {sigma}");
            assert!(
                (rdsk_stats::lag1(&values) - rho).abs() < 0.05,
                "{kind:?}: {}",
                rdsk_stats::lag1(&values)
            );
        }
        let values = steps(levels);
        let whole = values.iter().filter(|x| (*x - 0.8).abs() < 1e-6 || (*x - 1.2).abs() < 1e-6).count();
        assert!(whole > 97_000, "{whole}");
        // Of means over a step of x = 0.04 mean times: (1 - e^-x)² / (2 (x - 1 + e^-x)).
        assert!((rdsk_stats::lag1(&values) - 0.9735).abs() < 0.004, "{}", rdsk_stats::lag1(&values));
    }

    #[test]
    fn the_seed_decides_and_a_drift_multiplies() {
        let [ar, ..] = kinds();
        let at = 1000.0 * S;
        assert!((of(ar, 1).own_ns(at) - of(ar, 1).own_ns(at)).abs() < 1e-9);
        assert!((of(ar, 1).own_ns(at) - of(ar, 2).own_ns(at)).abs() > 1e6);
        let drift = Some(DriftParams { to: 0.8, over_ns: 60_000_000_000 });
        let mut pace = Pace::new(&PaceParams { drift, ..PaceParams::default() }, 1);
        assert!((pace.own_ns(60.0 * S) / S - 54.0).abs() < 1e-6);
        assert!(((pace.own_ns(100.0 * S) - pace.own_ns(60.0 * S)) / S - 32.0).abs() < 1e-6);
    }
}
