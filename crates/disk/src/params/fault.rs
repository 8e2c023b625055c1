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

/// Which accesses to a place are its first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstOf {
    /// The first read or write, as of a volume that is fetched from a snapshot.
    #[default]
    Any,
    /// The first write, as of a thin disk that allocates.
    Writes,
}

/// A device whose places cost more when they are accessed for the first time. Requests at other places go on meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstAccessParams {
    /// Size of a place, in bytes.
    pub place_bytes: u64,
    /// How much longer the request takes for each place that it is the first to reach, in ns.
    pub costs_ns: u64,
    /// Which accesses count.
    #[serde(default)]
    pub of: FirstOf,
}

/// A device that sleeps when nothing was asked of it for a while. It is asleep at time 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepParams {
    /// Time without a read or write after which it sleeps, in ns.
    pub after_ns: u64,
    /// How long it takes to wake up, in ns.
    pub wakes_in_ns: u64,
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
    /// A cost of the first access.
    pub first_access: Option<FirstAccessParams>,
    /// Sleep.
    pub sleep: Option<SleepParams>,
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
        if let Some(first) = &self.first_access {
            c.within("first_access", |c| {
                c.positive("place_bytes", first.place_bytes)?;
                c.span("costs_ns", first.costs_ns)
            })?;
        }
        if let Some(sleep) = &self.sleep {
            c.within("sleep", |c| {
                c.span("after_ns", sleep.after_ns)?;
                c.span("wakes_in_ns", sleep.wakes_in_ns)
            })?;
        }
        self.late.map_or(Ok(()), |late| c.within("late", |c| late.check(c)))
    }
}
