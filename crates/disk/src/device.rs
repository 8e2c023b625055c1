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
pub enum Device {
    /// A disk with mechanics.
    Disk(Box<Disk>),
    /// Memory.
    Ram(Ram),
    /// Flash.
    Ssd(Box<Ssd>),
    /// RAID over members.
    Array(Box<Array>),
    /// Any of these, with faults.
    Faulty(Box<Faulty>),
}

impl Device {
    /// Builds the device of a LUN; `seed` decides what is random in real devices (the angle of the platter at time 0).
    pub fn of_lun(params: &LunParams, seed: u64) -> Device {
        let device = Device::new(&params.device, seed);
        match &params.faults {
            Some(faults) => Device::Faulty(Box::new(Faulty::new(device, faults))),
            None => device,
        }
    }

    /// Builds a device without faults.
    pub fn new(params: &DeviceParams, seed: u64) -> Device {
        match params {
            DeviceParams::Disk(params) => Device::Disk(Box::new(Disk::new(params, seed))),
            DeviceParams::Ram(params) => Device::Ram(Ram::new(params)),
            DeviceParams::Ssd(params) => Device::Ssd(Box::new(Ssd::new(params))),
            DeviceParams::Array(params) => Device::Array(Box::new(Array::new(params, seed))),
        }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.capacity_bytes(),
            Device::Ram(ram) => ram.capacity_bytes(),
            Device::Ssd(ssd) => ssd.capacity_bytes(),
            Device::Array(array) => array.capacity_bytes(),
            Device::Faulty(faulty) => faulty.inner().capacity_bytes(),
        }
    }

    /// Takes a request at `now_ns` and returns its completion. Arrivals must not go back in time; one that does is treated as
    /// arriving together with the previous one.
    pub fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        let capacity_bytes = self.capacity_bytes();
        if request.op != Op::Flush && request.end_bytes() > capacity_bytes {
            let outcome = Err(Fault::PastEnd { end_bytes: request.end_bytes(), capacity_bytes });
            return Completion { start_ns: now_ns, end_ns: now_ns, outcome };
        }
        match self {
            Device::Disk(disk) => disk.submit(now_ns, request),
            Device::Ram(ram) => ram.submit(now_ns, request),
            Device::Ssd(ssd) => ssd.submit(now_ns, request),
            Device::Array(array) => array.submit(now_ns, request),
            Device::Faulty(faulty) => faulty.submit(now_ns, request),
        }
    }

    /// The requests that each member of an array received; empty for a single device.
    pub fn member_counts(&self) -> Vec<MemberCounts> {
        match self {
            Device::Array(array) => array.counts().to_vec(),
            Device::Faulty(faulty) => faulty.inner().member_counts(),
            _ => Vec::new(),
        }
    }
}
