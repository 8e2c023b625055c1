//! Seeded random series for the simulated tests of this crate. Never used outside of tests.

/// A small generator (splitmix64, Steele et al. 2014): the same seed gives the same series everywhere.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// `n` independent normal values.
    pub(crate) fn series(&mut self, n: usize, mean: f64, sigma: f64) -> Vec<f64> {
        (0..n).map(|_| mean + sigma * self.normal()).collect()
    }

    /// `n` values of a stationary AR(1) process with correlation `rho` and standard deviation `sigma`.
    pub(crate) fn autoregressive(&mut self, n: usize, mean: f64, sigma: f64, rho: f64) -> Vec<f64> {
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

    /// `n` windows of a source that emits one unit every `period` windows, each gap varying by `jitter` of
    /// the period (standard deviation), from a random phase.
    pub(crate) fn pulses(&mut self, n: usize, period: f64, jitter: f64) -> Vec<f64> {
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

    /// `n` windows that are full for `on` windows of each `period`, from a random phase; edges fall within
    /// windows.
    pub(crate) fn on_off(&mut self, n: usize, period: f64, on: f64) -> Vec<f64> {
        let phase = self.uniform() * period;
        let done_until = |t: f64| {
            let t = t + phase;
            (t / period).floor() * on + (t % period).min(on)
        };
        (0..n).map(|i| done_until(i as f64 + 1.0) - done_until(i as f64)).collect()
    }
}
