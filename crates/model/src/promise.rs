//! A promise on latency: the percentile that `rdsk load` holds while it looks for the highest rate.

use serde::{Deserialize, Serialize};

/// A percentile of the latencies and the most that it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Promise {
    /// Percent of the requests, above 0 and below 100: 99 for the p99.
    pub percent: f64,
    /// The latency that they do not exceed, in ns; counted from the arrival.
    pub at_most_ns: u64,
}

impl Promise {
    /// Its name: `p99`, `p99.9`.
    pub fn name(&self) -> String {
        format!("p{}", self.percent)
    }
}
