//! Any model of a device, behind one call: a request and its arrival in, its completion out.

use crate::array::{Array, MemberCounts};
use crate::disk::Disk;
use crate::fault::Faulty;
use crate::params::{DeviceParams, LunParams};
use crate::ram::Ram;
use crate::request::{Completion, Fault, Op, Request};
use crate::ssd::Ssd;

/// A device of known behaviour.
#[derive(Clone, Debug)]
pub struct Device {
    model: Model,
    capacity_bytes: u64,
    last_arrival_ns: u64,
}

#[derive(Clone, Debug)]
enum Model {
    Disk(Box<Disk>),
    Ram(Ram),
    Ssd(Box<Ssd>),
    Array(Box<Array>),
    Faulty(Box<Faulty>),
}

impl Device {
    /// Builds the device of a LUN; `seed` decides what is random in real devices (the angle of the platter at time 0).
    pub fn of_lun(params: &LunParams, seed: u64) -> Device {
        Device::of_lun_in(params, seed, seed)
    }

    /// The same with a seed of its own for the faults, so that several LUNs can share their noise.
    pub(crate) fn of_lun_in(params: &LunParams, seed: u64, faults_seed: u64) -> Device {
        let device = Device::new(&params.device, seed);
        match &params.faults {
            Some(faults) => Device {
                capacity_bytes: device.capacity_bytes,
                model: Model::Faulty(Box::new(Faulty::new(device, faults, faults_seed))),
                last_arrival_ns: 0,
            },
            None => device,
        }
    }

    /// Builds a device without faults.
    pub fn new(params: &DeviceParams, seed: u64) -> Device {
        let model = match params {
            DeviceParams::Disk(params) => Model::Disk(Box::new(Disk::new(params, seed))),
            DeviceParams::Ram(params) => Model::Ram(Ram::new(params)),
            DeviceParams::Ssd(params) => Model::Ssd(Box::new(Ssd::new(params))),
            DeviceParams::Array(params) => Model::Array(Box::new(Array::new(params, seed))),
        };
        Device { model, capacity_bytes: params.capacity_bytes(), last_arrival_ns: 0 }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Takes a request at `now_ns` and returns its completion. Arrivals must not go back in time; one that does is treated as
    /// arriving together with the previous one.
    pub fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        let capacity_bytes = self.capacity_bytes;
        if request.op != Op::Flush && request.end_bytes() > capacity_bytes {
            let outcome = Err(Fault::PastEnd { end_bytes: request.end_bytes(), capacity_bytes });
            return Completion { start_ns: now_ns, end_ns: now_ns, outcome };
        }
        self.last_arrival_ns = now_ns.max(self.last_arrival_ns);
        let arrival_ns = self.last_arrival_ns;
        match &mut self.model {
            Model::Disk(disk) => disk.submit(arrival_ns, request),
            Model::Ram(ram) => ram.submit(arrival_ns, request),
            Model::Ssd(ssd) => ssd.submit(arrival_ns, request),
            Model::Array(array) => array.submit(arrival_ns, request),
            // The device inside orders the arrivals in its own time.
            Model::Faulty(faulty) => faulty.submit(now_ns, request),
        }
    }

    /// The requests that each member of an array received; empty for a single device.
    pub fn member_counts(&self) -> Vec<MemberCounts> {
        match &self.model {
            Model::Array(array) => array.counts().to_vec(),
            Model::Faulty(faulty) => faulty.inner().member_counts(),
            _ => Vec::new(),
        }
    }
}
