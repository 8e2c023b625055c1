//! The figures of a simulated system: what stands in its TOML file, and which of them are possible. It computes nothing.

mod check;
mod device;
mod host;

pub(crate) use check::{Checker, Wrong};
pub use device::{
    ArrayParams, DestageOrder, DeviceParams, DiskParams, ErrorRange, FaultParams, RaidLevel, RamParams,
    SlowDown, SsdParams, StallParams, WriteCacheParams, ZoneParams,
};
pub use host::{CloseAction, CostParams, HostParams, Partial};
use serde::{Deserialize, Serialize};

/// A whole system: a host, its paths and its LUNs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemParams {
    /// What it is, in a sentence.
    pub about: String,
    /// Where it comes from.
    pub report: String,
    /// The host.
    pub host: HostParams,
    /// Controllers and buses; a LUN may also hang directly on the host.
    #[serde(default)]
    pub controllers: Vec<ControllerParams>,
    /// The LUNs, at least one.
    pub luns: Vec<LunParams>,
}

/// A controller with its bus: one request after the other, each for its command and its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerParams {
    /// Time that a command occupies it, in ns.
    pub command_ns: u64,
    /// Bytes per second to the host.
    pub read_bytes_per_s: f64,
    /// Bytes per second from the host.
    pub write_bytes_per_s: f64,
    /// Time that each command travels besides, without occupying anything, in ns.
    #[serde(default)]
    pub latency_ns: u64,
}

/// A LUN: a device and the way to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunParams {
    /// Index of its controller; without one it hangs on the host.
    #[serde(default)]
    pub controller: Option<usize>,
    /// The device.
    pub device: DeviceParams,
    /// What goes wrong with it.
    #[serde(default)]
    pub faults: Option<FaultParams>,
}

impl SystemParams {
    /// Finds the first figure that cannot be.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        let mut checker = Checker::default();
        checker.within("host", |c| self.host.check(c))?;
        for (index, controller) in self.controllers.iter().enumerate() {
            checker.within(&format!("controllers[{index}]"), |c| {
                c.rate("read_bytes_per_s", controller.read_bytes_per_s)?;
                c.rate("write_bytes_per_s", controller.write_bytes_per_s)
            })?;
        }
        if self.luns.is_empty() {
            return Err(checker.wrong("luns", "there must be at least one LUN"));
        }
        for (index, lun) in self.luns.iter().enumerate() {
            checker.within(&format!("luns[{index}]"), |c| {
                if let Some(controller) = lun.controller.filter(|&n| n >= self.controllers.len()) {
                    return Err(c.wrong("controller", &format!("there is no controller {controller}")));
                }
                c.within("device", |c| lun.device.check(c))?;
                lun.faults.as_ref().map_or(Ok(()), |faults| c.within("faults", |c| faults.check(c)))
            })?;
        }
        Ok(())
    }
}
