//! What the requests of one direction of a job are like: their sizes, and the offsets that they go to. Pure data; it decides nothing but
//! whether these contradict themselves.

use crate::contradiction::Contradiction;
use serde::{Deserialize, Serialize};

/// Requests of one size, or of all multiples of a step between two sizes with the same probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockShare {
    /// Smallest size in bytes, at least 1.
    pub min_bytes: u64,
    /// Largest size in bytes, at least the smallest.
    pub max_bytes: u64,
    /// Share of the requests of its direction relative to the other sizes; positive.
    pub weight: f64,
}

impl BlockShare {
    /// Requests of this size only.
    pub const fn fixed(bytes: u64) -> Self {
        Self { min_bytes: bytes, max_bytes: bytes, weight: 1.0 }
    }
}

/// A part of the span that gets a part of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// Percent of the requests.
    pub access_percent: f64,
    /// Percent of the span, behind the zone before.
    pub span_percent: f64,
}

/// Where the requests of one direction go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OffsetRule {
    /// One after the other; at the end of the span from its start again.
    Sequential,
    /// Each place with the same probability, independent of what came before.
    Uniform,
    /// Each place once, in random order, before any is used again. Reads and writes of a job with the same blocks share this order.
    Once,
    /// The k-th most popular place with a probability in proportion to `k^-theta`; popular places lie scattered.
    Zipf {
        /// Exponent; positive.
        theta: f64,
    },
    /// Self-similar: a share `1 - skew` of the requests goes to a share `skew` of the places, and so on within these (0.2: four of five
    /// requests to a fifth of the span); popular places lie scattered.
    Pareto {
        /// Between 0 and 0.5.
        skew: f64,
    },
    /// Around the middle of the span; what would lie outside is drawn again.
    Normal {
        /// Standard deviation in percent of the span; positive.
        deviation_percent: f64,
    },
    /// Parts of the span with their shares of the requests; the parts make 100 % of both.
    Zoned {
        /// The parts, in their order on the span.
        zones: Vec<Zone>,
    },
    /// As [`OffsetRule::Sequential`], with `skip_bytes` left out between two requests. A negative number goes backwards: each request begins
    /// that far before the end of the last one, and from the start of the span on that far before its end.
    Skips {
        /// From the end of a request to the start of the next.
        skip_bytes: i64,
    },
}

/// What the requests of one direction are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Their sizes; never empty.
    pub blocks: Vec<BlockShare>,
    /// Their offsets.
    pub offsets: OffsetRule,
    /// What random offsets are multiples of; `None` for the smallest size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u64>,
}

impl Requests {
    /// Requests of these sizes at offsets by this rule, where random ones are multiples of the smallest size.
    pub const fn new(blocks: Vec<BlockShare>, offsets: OffsetRule) -> Self {
        Self { blocks, offsets, align_bytes: None }
    }

    /// What random offsets are multiples of.
    pub fn step_bytes(&self) -> u64 {
        self.align_bytes.unwrap_or_else(|| self.min_bytes())
    }

    /// Whether they go through the span in order.
    pub const fn is_in_order(&self) -> bool {
        matches!(self.offsets, OffsetRule::Sequential | OffsetRule::Skips { .. })
    }

    /// The smallest size in bytes.
    pub fn min_bytes(&self) -> u64 {
        self.blocks.iter().map(|share| share.min_bytes).min().unwrap_or(1)
    }

    /// The largest size in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.blocks.iter().map(|share| share.max_bytes).max().unwrap_or(1)
    }

    /// Why their offsets contradict themselves, in words.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        if self.align_bytes == Some(0) {
            return Err("has offsets that are multiples of 0".into());
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let size_bytes = self.min_bytes();
        match &self.offsets {
            OffsetRule::Skips { .. } if self.max_bytes() != size_bytes => {
                Err("leaves something out between requests of several sizes".into())
            }
            OffsetRule::Skips { skip_bytes } if *skip_bytes < 0 && skip_bytes.unsigned_abs() < size_bytes => {
                Err("goes back by less than a request, which it would do forwards".into())
            }
            OffsetRule::Skips { .. } => Ok(()),
            OffsetRule::Sequential | OffsetRule::Uniform | OffsetRule::Once => Ok(()),
            OffsetRule::Zipf { theta } if positive(*theta) => Ok(()),
            OffsetRule::Zipf { .. } => Err("has a Zipf exponent that is not positive".into()),
            OffsetRule::Pareto { skew } if positive(*skew) && *skew < 0.5 => Ok(()),
            OffsetRule::Pareto { .. } => Err("has a Pareto skew that is not between 0 and 0.5".into()),
            OffsetRule::Normal { deviation_percent }
                if positive(*deviation_percent) && *deviation_percent <= 100.0 =>
            {
                Ok(())
            }
            OffsetRule::Normal { .. } => {
                Err("has a deviation that is not between 0 and 100% of the span".into())
            }
            OffsetRule::Zoned { zones } => {
                let sum = |part: fn(&Zone) -> f64| zones.iter().map(part).sum::<f64>();
                let is_whole = |sum: f64| (sum - 100.0).abs() < 0.01;
                let fits = zones.iter().all(|zone| zone.access_percent >= 0.0 && positive(zone.span_percent));
                if fits
                    && is_whole(sum(|zone| zone.access_percent))
                    && is_whole(sum(|zone| zone.span_percent))
                {
                    Ok(())
                } else {
                    Err("has zones that do not make 100% of requests and span".into())
                }
            }
        }
    }
}
