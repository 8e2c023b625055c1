//! Seeded random series for the simulated tests of this crate. Never used outside of tests.

use crate::rng::SplitMix64;

/// A generator for a test; neighbouring seeds give unrelated sequences.
pub(crate) fn seeded(seed: u64) -> SplitMix64 {
    SplitMix64::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
}

/// Series with known properties.
pub(crate) trait Series {
    /// `n` independent normal values.
    fn series(&mut self, n: usize, mean: f64, sigma: f64) -> Vec<f64>;

    /// `n` values of a stationary AR(1) process with correlation `rho` and standard deviation `sigma`.
    fn autoregressive(&mut self, n: usize, mean: f64, sigma: f64, rho: f64) -> Vec<f64>;

    /// `n` windows of a source that emits one unit every `period` windows, each gap varying by `jitter` of
    /// the period (standard deviation), from a random phase.
    fn pulses(&mut self, n: usize, period: f64, jitter: f64) -> Vec<f64>;

    /// `n` windows that are full for `on` windows of each `period`, from a random phase; edges fall within
    /// windows.
    fn on_off(&mut self, n: usize, period: f64, on: f64) -> Vec<f64>;

    /// `n` values round 0 of 1/f noise with standard deviation `sigma`: a sum of AR(1) processes with one time constant per
    /// octave.
    fn flicker(&mut self, n: usize, sigma: f64) -> Vec<f64>;

    /// `n` values that jump between `size` and its negative; each level lasts an exponential time with this mean.
    fn two_levels(&mut self, n: usize, size: f64, dwell: f64) -> Vec<f64>;
}

impl Series for SplitMix64 {
    fn series(&mut self, n: usize, mean: f64, sigma: f64) -> Vec<f64> {
        (0..n).map(|_| mean + sigma * self.normal()).collect()
    }

    fn autoregressive(&mut self, n: usize, mean: f64, sigma: f64, rho: f64) -> Vec<f64> {
        let mut state = self.normal();
        let step = (1.0 - rho * rho).sqrt();
        (0..n)
            .map(|_| {
                let value = mean + sigma * state;
                state = rho * state + step * self.normal();
                value
            })
            .collect()
    }

    fn pulses(&mut self, n: usize, period: f64, jitter: f64) -> Vec<f64> {
        let mut series = vec![0.0; n];
        let mut next = self.uniform() * period;
        while next < n as f64 {
            #[expect(clippy::cast_possible_truncation, reason = "between 0 and n")]
            let window = next as usize;
            series[window] += 1.0;
            next += (period * (1.0 + jitter * self.normal())).max(0.0);
        }
        series
    }

    fn on_off(&mut self, n: usize, period: f64, on: f64) -> Vec<f64> {
        let phase = self.uniform() * period;
        let done_until = |t: f64| {
            let t = t + phase;
            (t / period).floor() * on + (t % period).min(on)
        };
        (0..n).map(|i| done_until(i as f64 + 1.0) - done_until(i as f64)).collect()
    }

    fn flicker(&mut self, n: usize, sigma: f64) -> Vec<f64> {
        let octaves = (n as f64).log2().ceil();
        let mut sum = vec![0.0; n];
        let mut lasts = 1.0;
        while lasts < 2.0 * n as f64 {
            let one = self.autoregressive(n, 0.0, sigma / octaves.sqrt(), (-1.0 / lasts).exp());
            sum.iter_mut().zip(one).for_each(|(sum, x)| *sum += x);
            lasts *= 2.0;
        }
        sum
    }

    fn two_levels(&mut self, n: usize, size: f64, dwell: f64) -> Vec<f64> {
        let mut level = if self.uniform() < 0.5 { size } else { -size };
        (0..n)
            .map(|_| {
                if self.uniform() < 1.0 / dwell {
                    level = -level;
                }
                level
            })
            .collect()
    }
}
