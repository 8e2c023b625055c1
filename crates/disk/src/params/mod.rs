//! The parameters of a simulated system, as its TOML file has them, and their validation. It simulates nothing.

mod check;
mod device;
mod fault;
mod host;
mod pace;

pub(crate) use check::{Checker, MAX_BYTES, MAX_PLACES, MAX_REQUEST_BYTES, Wrong};
pub use device::{
    ArrayParams, DestageOrder, DeviceParams, DiskParams, RaidLevel, RamParams, SsdParams, WriteCacheParams,
    ZoneParams,
};
pub use fault::{ErrorRange, FaultParams, FirstAccessParams, FirstOf, SleepParams, SlowDown, StallParams};
pub use host::{CloseAction, CostParams, HostParams, Partial};
pub use pace::{DriftParams, LateParams, NoiseParams, PaceParams};
use serde::{Deserialize, Serialize};

/// Most devices that are simulated at once, members of arrays included.
pub(crate) const MAX_DEVICES: u64 = 4096;

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
    /// Controllers and buses; a LUN may also be attached to the host directly.
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
    /// Transit time of each command in addition, which occupies nothing, in ns.
    #[serde(default)]
    pub latency_ns: u64,
    /// How long a command keeps it.
    #[serde(default)]
    pub hold: Hold,
}

/// How long a command keeps a controller from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// While its bytes cross; the device works on others meanwhile.
    #[default]
    Transfer,
    /// From its start to its end, including the work of the device: a port that handles one command after the other.
    Command,
}

/// A LUN: a device and the path to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LunParams {
    /// Index of its controller; without one it is attached to the host.
    pub controller: Option<usize>,
    /// The device.
    pub device: DeviceParams,
    /// Its faults.
    pub faults: Option<FaultParams>,
}

impl SystemParams {
    /// Finds the first impossible parameter.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        let mut checker = Checker::default();
        checker.within("host", |c| self.host.check(c))?;
        for (index, controller) in self.controllers.iter().enumerate() {
            checker.within(&format!("controllers[{index}]"), |c| {
                c.time("command_ns", controller.command_ns)?;
                c.time("latency_ns", controller.latency_ns)?;
                c.bytes_per_s("read_bytes_per_s", controller.read_bytes_per_s)?;
                c.bytes_per_s("write_bytes_per_s", controller.write_bytes_per_s)
            })?;
        }
        checker.require("luns", !self.luns.is_empty(), "there must be at least one LUN")?;
        let mut devices = 0_u64;
        for (index, lun) in self.luns.iter().enumerate() {
            devices = devices.saturating_add(lun.device.devices());
            let reason =
                format_args!("{devices} devices, with members of arrays, are more than {MAX_DEVICES}");
            checker.require(&format!("luns[{index}].device"), devices <= MAX_DEVICES, reason)?;
            checker.within(&format!("luns[{index}]"), |c| {
                if let Some(controller) = lun.controller.filter(|&n| n >= self.controllers.len()) {
                    return Err(c.wrong("controller", format_args!("there is no controller {controller}")));
                }
                c.within("device", |c| lun.device.check(c))?;
                lun.faults.as_ref().map_or(Ok(()), |faults| c.within("faults", |c| faults.check(c)))
            })?;
        }
        Ok(())
    }
}
