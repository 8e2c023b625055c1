//! Examines a simulated LUN: its facts in the terms of a real device. Writing touches nothing real: it has no uses.

use crate::error::TargetError;
use crate::examined::{Examined, Place};
use crate::sim::{Simulated, load_system, split};
use crate::uses::InUse;
use rdsk_disk::{DeviceParams, DiskParams, Host, System};
use rdsk_model::{ArrayFacts, Device, Target, TargetKind};
use std::path::PathBuf;
use std::sync::Arc;

/// Examines the simulated target `name`, of which `rest` follows the prefix.
pub(super) fn examine(name: &str, rest: &str) -> Result<Examined, TargetError> {
    let (system, lun) = split(rest);
    let system = load_system(system)?;
    let luns = system.params.luns.len();
    let lun = lun.unwrap_or(0);
    if lun >= luns {
        return Err(TargetError::NoLun { name: rdsk_units::printable(name), lun, luns });
    }
    let target = target(name, &system, lun);
    let place = Place::Sim(Simulated { system: Arc::new(system), lun });
    Ok(Examined::new(target, PathBuf::from(name), place, InUse::default()))
}

fn target(name: &str, system: &System, lun: usize) -> Target {
    let host = &system.params.host;
    let device = &system.params.luns[lun].device;
    let size_bytes = Host::new(&system.params, 0).capacity_bytes(lun);
    let kernel_name = rdsk_units::printable(&rdsk_disk::device_name(&system.name, lun));
    let disk = disk_of(device);
    let has_direct = host.direct_request_bytes > 0;
    let cached = device.has_volatile_cache();
    let array = match device {
        DeviceParams::Array(array) => Some(ArrayFacts {
            device: kernel_name.clone(),
            source: "sim".into(),
            members: Some(array.members as u64),
            ..ArrayFacts::default()
        }),
        DeviceParams::Disk(_) | DeviceParams::Ram(_) | DeviceParams::Ssd(_) => None,
    };
    Target {
        name: name.to_owned(),
        kind: TargetKind::Sim,
        size_bytes,
        stack: vec![kernel_name.clone()],
        device: Some(Device {
            name: kernel_name,
            model: Some(rdsk_units::printable(&system.params.about)),
            size_bytes: Some(size_bytes),
            logical_block_bytes: Some(host.sector_bytes),
            physical_block_bytes: Some(host.sector_bytes),
            alignment_offset_bytes: Some(0),
            max_request_bytes: Some(if has_direct { host.direct_request_bytes } else { host.merge_bytes }),
            rotational: Some(disk.is_some()),
            write_cache: Some(if cached { "write back" } else { "write through" }.to_owned()),
            fua: Some(false),
            iostats: Some(true),
            array,
            ..Device::default()
        }),
        direct_io: Some(has_direct),
        direct_align_bytes: has_direct.then_some(host.sector_bytes),
        dontcache: Some(false),
        ..Target::default()
    }
}

/// The disk at the bottom of a device, if it has one.
fn disk_of(device: &DeviceParams) -> Option<&DiskParams> {
    match device {
        DeviceParams::Disk(disk) => Some(disk),
        DeviceParams::Array(array) => disk_of(&array.member),
        DeviceParams::Ram(_) | DeviceParams::Ssd(_) => None,
    }
}
