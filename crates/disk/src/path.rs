//! The paths from a host to its LUNs: controllers and their buses, each one transfer after the other. It merges nothing and
//! queues without limit; limits belong to the host.

use crate::device::Device;
use crate::disk::whole_ns;
use crate::params::{ControllerParams, Hold, LunParams, SystemParams};
use crate::request::{Completion, Op, Request};

/// A host's LUNs and the controllers that they are attached to.
#[derive(Clone, Debug)]
pub struct Paths {
    controllers: Vec<Controller>,
    luns: Vec<Lun>,
}

#[derive(Clone, Debug)]
struct Controller {
    params: ControllerParams,
    free_ns: f64,
}

#[derive(Clone, Debug)]
struct Lun {
    controller: Option<usize>,
    device: Device,
}

impl Paths {
    /// The paths of a system with checked parameters.
    pub fn new(system: &SystemParams, seed: u64) -> Paths {
        let controllers = system.controllers.iter();
        let luns = system.luns.iter().zip(0..);
        let device = |params: &LunParams, number: u64| {
            let pace = params.faults.as_ref().and_then(|faults| faults.pace.as_ref());
            let noise_of = pace.and_then(|pace| pace.same_as).unwrap_or(number);
            Device::of_lun_in(params, seed.wrapping_add(number), seed.wrapping_add(noise_of))
        };
        Paths {
            controllers: controllers
                .map(|params| Controller { params: params.clone(), free_ns: 0.0 })
                .collect(),
            luns: luns
                .map(|(params, number)| Lun { controller: params.controller, device: device(params, number) })
                .collect(),
        }
    }

    /// Number of LUNs.
    pub fn luns(&self) -> usize {
        self.luns.len()
    }

    /// The device behind a LUN.
    ///
    /// # Panics
    /// When there is no such LUN.
    pub fn device(&self, lun: usize) -> &Device {
        &self.luns[lun].device
    }

    /// Takes a request for a LUN at `now_ns`. Written data crosses the bus before the device receives it, read data
    /// after the device returned it.
    ///
    /// # Panics
    /// When there is no such LUN.
    pub fn submit(&mut self, now_ns: u64, lun: usize, request: Request) -> Completion {
        let lun = &mut self.luns[lun];
        let Some(controller) = lun.controller.map(|index| &mut self.controllers[index]) else {
            return lun.device.submit(now_ns, request);
        };
        let latency_ns = controller.params.latency_ns;
        match request.op {
            Op::Read => {
                let now_ns = match controller.params.hold {
                    Hold::Transfer => now_ns,
                    Hold::Command => now_ns.max(whole_ns(controller.free_ns)),
                };
                let done = lun.device.submit(now_ns, request);
                let (_, crossed_ns) = controller.cross(done.end_ns, &request);
                Completion { end_ns: crossed_ns.saturating_add(latency_ns), ..done }
            }
            Op::Write | Op::Flush => {
                let (start_ns, crossed_ns) = controller.cross(now_ns, &request);
                let done = lun.device.submit(crossed_ns, request);
                if controller.params.hold == Hold::Command {
                    controller.free_ns = controller.free_ns.max(done.end_ns as f64);
                }
                Completion { start_ns, end_ns: done.end_ns.saturating_add(latency_ns), outcome: done.outcome }
            }
        }
    }
}

impl Controller {
    /// Start and end of the transfer.
    fn cross(&mut self, now_ns: u64, request: &Request) -> (u64, u64) {
        let bytes_per_s = match request.op {
            Op::Read => self.params.read_bytes_per_s,
            Op::Write | Op::Flush => self.params.write_bytes_per_s,
        };
        let start_ns = self.free_ns.max(now_ns as f64);
        self.free_ns = start_ns + self.params.command_ns as f64 + request.bytes as f64 / bytes_per_s * 1e9;
        (whole_ns(start_ns), whole_ns(self.free_ns))
    }
}
