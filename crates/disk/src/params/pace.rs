//! The parameters of a device whose pace varies with time. It simulates nothing.

use super::{Checker, Wrong};
use serde::{Deserialize, Serialize};

/// The pace of a device's own time, beside a steady clock: 1 on average, unless it drifts or stalls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaceParams {
    /// A random process, the same for the same seed.
    pub noise: Option<NoiseParams>,
    /// Index of the LUN whose noise this one shares, so that both slow down at the same moment; its own if left out.
    pub same_as: Option<u64>,
    /// A steady change.
    pub drift: Option<DriftParams>,
}

/// A random process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NoiseParams {
    /// An autoregressive process of order 1; independent steps with a correlation of 0.
    Autoregressive {
        /// Standard deviation, a share of the pace.
        sigma: f64,
        /// Correlation of a step with the one before it.
        rho: f64,
        /// Length of a step, in ns.
        step_ns: u64,
    },
    /// 1/f: a sum of autoregressive processes, one per octave of time constants from one step on.
    Flicker {
        /// Standard deviation of the sum.
        sigma: f64,
        /// Number of processes.
        octaves: u32,
        /// Length of a step, in ns.
        step_ns: u64,
    },
    /// Two levels, at which it stays for exponentially distributed times.
    Levels {
        /// Distance of each from 1.
        size: f64,
        /// Mean time at a level, in ns.
        dwell_ns: u64,
    },
    /// A sine of random phase.
    Sine {
        /// Its amplitude.
        size: f64,
        /// Its period, in ns.
        period_ns: u64,
    },
    /// A stall at the end of each period; the periods are uniformly distributed.
    Stalls {
        /// The stalled part of each period.
        share: f64,
        /// Shortest period, in ns.
        least_ns: u64,
        /// Longest period, in ns.
        most_ns: u64,
    },
}

/// A pace that changes in a straight line from time 0 on, and then stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftParams {
    /// The factor at the end.
    pub to: f64,
    /// When that is, in ns.
    pub over_ns: u64,
}

/// Some requests of a device take longer, without keeping others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateParams {
    /// The part of all requests, chosen at random.
    pub share: f64,
    /// By how much, in ns.
    pub by_ns: u64,
}

/// Largest standard deviation, so that a pace below zero is never drawn.
const MOST_SIGMA: f64 = 0.2;

impl PaceParams {
    pub(super) fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        if let Some(noise) = &self.noise {
            c.within("noise", |c| noise.check(c))?;
        }
        if let Some(drift) = &self.drift {
            c.within("drift", |c| {
                c.rate("to", drift.to, (0.01, 100.0))?;
                c.positive("over_ns", drift.over_ns)?;
                c.span("over_ns", drift.over_ns)
            })?;
        }
        Ok(())
    }

    /// The mean pace over a long time, without a drift.
    pub fn mean(&self) -> f64 {
        match self.noise {
            Some(NoiseParams::Stalls { share, .. }) => 1.0 - share,
            _ => 1.0,
        }
    }
}

impl NoiseParams {
    fn check(self, c: &mut Checker) -> Result<(), Wrong> {
        let time = |c: &mut Checker, key: &str, ns: u64| {
            // A step costs memory.
            c.require(key, ns >= 1_000_000, "is less than a millisecond")?;
            c.span(key, ns)
        };
        match self {
            NoiseParams::Autoregressive { sigma, rho, step_ns } => c.within("autoregressive", |c| {
                c.rate("sigma", sigma, (1e-6, MOST_SIGMA))?;
                c.require("rho", (0.0..1.0).contains(&rho), "is not from 0 to below 1")?;
                time(c, "step_ns", step_ns)
            }),
            NoiseParams::Flicker { sigma, octaves, step_ns } => c.within("flicker", |c| {
                c.rate("sigma", sigma, (1e-6, MOST_SIGMA))?;
                c.count("octaves", u64::from(octaves), 40)?;
                time(c, "step_ns", step_ns)
            }),
            NoiseParams::Levels { size, dwell_ns } => c.within("levels", |c| {
                c.rate("size", size, (1e-6, 0.99))?;
                time(c, "dwell_ns", dwell_ns)
            }),
            NoiseParams::Sine { size, period_ns } => c.within("sine", |c| {
                c.rate("size", size, (1e-6, 0.99))?;
                time(c, "period_ns", period_ns)
            }),
            NoiseParams::Stalls { share, least_ns, most_ns } => c.within("stalls", |c| {
                c.rate("share", share, (1e-6, 0.99))?;
                time(c, "least_ns", least_ns)?;
                c.require("most_ns", most_ns >= least_ns, "is less than the shortest period")?;
                c.span("most_ns", most_ns)
            }),
        }
    }
}

impl LateParams {
    pub(super) fn check(self, c: &mut Checker) -> Result<(), Wrong> {
        c.rate("share", self.share, (1e-6, 1.0))?;
        c.time("by_ns", self.by_ns)
    }
}
