//! Which counters of a visit prove something: those that did not move may be of a device that does not count, and those of an array may
//! lack a part. Devices below may count in its place.

use super::{Counts, KernelObserver};
use crate::CountersError;
use crate::counted::counted;
use crate::split_parts::why_partial;
use crate::stack::Stack;
use crate::visit::DeviceVisit;
use crate::watched::Watched;

impl KernelObserver {
    /// The counts of all devices, except counters that did not move although that proves nothing, and those that lack a part. Not to
    /// move proves that there was no I/O if the same counters moved before, or if the counters below did not move either.
    pub(super) fn trusted(&mut self, mut raw: Vec<Counts>) -> Vec<Counts> {
        for (device, counts) in self.devices.iter_mut().zip(&raw) {
            if counts.as_ref().is_ok_and(|counts| !counts.until_stable.is_idle()) {
                device.has_moved = true;
            }
        }
        let doubts: Vec<(usize, CountersError)> = self
            .devices
            .iter()
            .enumerate()
            .filter(|(index, _)| raw[*index].as_ref().is_ok_and(|counts| counts.until_stable.is_idle()))
            .filter_map(|(index, device)| Some((index, device.why_zero_is_unknown()?)))
            .filter(|(index, _)| !self.was_quiet_below(&self.devices[*index], &raw))
            .collect();
        for (index, why) in doubts {
            raw[index] = Err(why);
        }
        for (index, why) in self.partial(&raw) {
            raw[index] = Err(why);
        }
        raw
    }

    /// The arrays, by index, that counted a part of what they did only, and why; their members count all of it.
    fn partial(&self, raw: &[Counts]) -> Vec<(usize, CountersError)> {
        let counts_of = |target: u32, name: &str| {
            let mut each = self.devices.iter().zip(raw);
            let counts = each.find(|(device, _)| device.target == target && device.name == name)?.1;
            Some(counts.as_ref().ok()?.until_stable)
        };
        let why = |device: &Watched| {
            let stack = self.stacks.iter().find(|stack| stack.target == device.target)?;
            let lower =
                stack.below.get(&device.name).filter(|lower| lower.kind.as_deref() == Some("raid0"))?;
            let members =
                lower.names.iter().map(|name| counts_of(device.target, name)).collect::<Option<Vec<_>>>()?;
            why_partial(&device.name, &counts_of(device.target, &device.name)?, &members)
        };
        let devices = self.devices.iter().enumerate().filter(|_| self.passes_over_parts);
        devices.filter_map(|(index, device)| Some((index, why(device)?))).collect()
    }

    /// Whether the devices below one did nothing, according to counters that can be trusted.
    fn was_quiet_below(&self, device: &Watched, raw: &[Counts]) -> bool {
        let stack = self.stacks.iter().find(|stack| stack.target == device.target);
        let Some((stack, lower)) = stack.and_then(|stack| Some((stack, stack.below.get(&device.name)?)))
        else {
            return false;
        };
        let counted_at = |name: &str| {
            let mut each = self.devices.iter().zip(raw);
            each.find(|(other, _)| other.target == device.target && other.name == name)
        };
        let counts = |name: &str| {
            counted_at(name)
                .is_some_and(|(other, counts)| counts.is_ok() && other.why_zero_is_unknown().is_none())
        };
        let below = Stack { tops: lower.names.clone(), over: None, ..stack.clone() };
        counted(&below, &counts).is_some_and(|counted| {
            let mut quiet = counted.devices.iter().filter_map(|name| counted_at(name)?.1.as_ref().ok());
            quiet.all(|counts| counts.until_stable.is_idle())
        })
    }

    /// Records why devices count nothing, except those that devices below represent. Returns whether any target is counted.
    pub(super) fn note_uncounted(&mut self, devices: &[DeviceVisit]) -> bool {
        let counts = |target: u32, name: &str| {
            let mut visited = devices.iter().filter(|device| device.target == target);
            visited.any(|device| device.name == name && device.counts.is_ok())
        };
        let counted: Vec<u32> = self
            .stacks
            .iter()
            .filter(|stack| counted(stack, &|name| counts(stack.target, name)).is_some())
            .map(|stack| stack.target)
            .collect();
        for (index, device) in devices.iter().enumerate() {
            let Err(problem) = &device.counts else { continue };
            let is_replaced =
                counted.contains(&device.target) && self.devices[index].why_zero_is_unknown().is_some();
            if !is_replaced {
                self.note(problem.to_string());
            }
        }
        !counted.is_empty()
    }
}
