//! Numbers only: histograms, confidence intervals, paired comparisons, order statistics, steps and bands.
//! This room knows nothing of storage, does no I/O and reads no clock; the caller says what the numbers
//! mean.

mod bands;
mod change;
mod class_counts;
mod codec;
mod common_drift;
mod deviation_within;
mod dip;
mod histogram;
mod interval;
mod knee;
mod lasting;
mod least_squares;
mod level_shift;
#[cfg(test)]
#[path = "fixtures/noise.rs"]
mod noise;
mod order;
mod paired;
mod pass_change;
mod pass_steps;
mod quantile_range;
mod ranks;
pub mod rng;
mod rotations;
mod rounds;
mod stall_share;
mod sustained;
mod trend;
mod two_samples;

pub use bands::{Band, BandOptions, Bands, bands, dithered};
pub use change::{ChangeOptions, ChangePoint, change_points};
pub use class_counts::ClassCounts;
pub use codec::HistogramError;
pub use common_drift::{CommonDrift, Follower, VisitLevel, common_drift};
pub use deviation_within::deviation_within;
pub use dip::{dip, dip_p_value};
pub use histogram::Histogram;
pub use interval::{Interval, batch_interval, mean_interval, median_interval};
pub use knee::{Knee, MIN_GAIN, Step, enough_ratio, knee};
pub use lasting::{LastingMean, TimedSample};
pub use least_squares::{Fit, LeastSquares};
pub use level_shift::{TwoLevels, interquartile_mean, level_shift};
pub use order::{jain, lag1, mad, mean, median, quantile_sorted, stddev};
pub use paired::{
    MIN_PAIRS, PairedRatio, Stepped, SteppedPair, TimedPair, holm, mean_p_value, paired_ratio,
    paired_ratio_of_steps,
};
pub use pass_change::{MIN_PASSES, PassChange, PassShape, pass_change, t_quantile, t_tail};
pub use pass_steps::pass_steps;
pub use quantile_range::{QuantileRange, SparseHistogram, quantile_range};
pub use rotations::{Agreement, agreement};
pub use rounds::{Halves, rounds_interval};
pub use stall_share::{StallsSeen, with_stalls};
pub use sustained::{Fall, Sustained, sustained};
pub use trend::{Trend, VisitTrend, has_visits, trend};
pub use two_samples::{kolmogorov_smirnov, smaller_p_value};
