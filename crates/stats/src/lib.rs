//! Numbers only: histograms, confidence intervals, the warm-up cut, the stopping rule and order statistics.
//! This room knows nothing of storage, does no I/O and reads no clock; whoever calls it says what the numbers
//! mean.

mod change;
mod codec;
mod histogram;
mod interval;
#[cfg(test)]
mod noise;
mod order;
mod steady;
mod stopping;

pub use change::{ChangeOptions, ChangePoint, change_points};
pub use codec::HistogramError;
pub use histogram::Histogram;
pub use interval::{Interval, batch_interval, mean_interval, median_interval};
pub use order::{jain, lag1, mad, mean, median, quantile_sorted, stddev};
pub use steady::{Steadiness, Warmup, mser5};
pub use stopping::{Stop, StopRule};
