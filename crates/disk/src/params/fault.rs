//! The parameters of a device's faults. It simulates nothing.

use super::{Checker, LateParams, PaceParams, Wrong};
use serde::{Deserialize, Serialize};

/// Bytes that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRange {
    /// First byte.
    pub offset_bytes: u64,
    /// Size.
    pub bytes: u64,
}

/// A device that stalls periodically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallParams {
    /// From the start of one stall to the next, in ns.
    pub every_ns: u64,
    /// How long each lasts, in ns; it ends the period.
    pub lasts_ns: u64,
}

/// A device that silently becomes slower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowDown {
    /// When, in ns.
    pub after_ns: u64,
    /// Factor by which everything takes longer, above 1.
    pub factor: f64,
}

/// The faults of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultParams {
    /// Bad ranges.
    pub errors: Vec<ErrorRange>,
    /// Stalls.
    pub stall: Option<StallParams>,
    /// A slow-down.
    pub slow_down: Option<SlowDown>,
    /// A pace that varies.
    pub pace: Option<PaceParams>,
    /// Requests that take longer.
    pub late: Option<LateParams>,
}

impl FaultParams {
    pub(super) fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        for (index, range) in self.errors.iter().enumerate() {
            c.within(&format!("errors[{index}]"), |c| c.positive("bytes", range.bytes))?;
        }
        if let Some(stall) = &self.stall {
            c.within("stall", |c| {
                c.positive("lasts_ns", stall.lasts_ns)?;
                c.span("every_ns", stall.every_ns)?;
                c.require("every_ns", stall.lasts_ns < stall.every_ns, "the device would stall forever")
            })?;
        }
        if let Some(slow) = &self.slow_down {
            c.within("slow_down", |c| {
                c.span("after_ns", slow.after_ns)?;
                c.rate("factor", slow.factor, (1.0, 1e6))
            })?;
        }
        if let Some(pace) = &self.pace {
            c.within("pace", |c| pace.check(c))?;
        }
        self.late.map_or(Ok(()), |late| c.within("late", |c| late.check(c)))
    }
}
