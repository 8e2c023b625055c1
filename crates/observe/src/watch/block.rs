//! What BPF programs counted of the watched devices between two looks. They stay attached in between; a look reads their maps.

use crate::bpf::{
    BlockDevice, BlockOp, BpfError, Counted, DeviceCounted, DeviceTotals, Programs, Snapshot, Unavailable,
    bios_of, requests_of,
};
use crate::sysfs::block_path;
use rdsk_model::{BlockGrowth, DiskStat};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs that count some devices.
pub(super) struct BlockCounts {
    programs: Programs,
    /// Kernel names, in the order of the programs.
    names: Vec<String>,
    last: Snapshot,
    /// Requests of each device that only seem to be in flight, because their completion was passed over.
    phantoms: Vec<u64>,
    sys: PathBuf,
}

impl BlockCounts {
    /// Counts these devices from now on.
    ///
    /// # Errors
    /// In words, why that is not possible.
    pub(super) fn of(names: &[String], sys: &Path) -> Result<Self, String> {
        let (mut counted, mut devices) = (Vec::new(), Vec::new());
        for name in names {
            if let Some(device) = BlockDevice::of(&block_path(sys, name)) {
                counted.push(name.clone());
                devices.push(device);
            }
        }
        if devices.is_empty() {
            return Err("there is no device to count".into());
        }
        let started = || {
            let programs = Programs::load_with_children(&devices)?;
            programs.start(|_| {});
            let last = programs.snapshot()?;
            Ok::<_, BpfError>((programs, last))
        };
        let (programs, last) = started().map_err(|error| Unavailable::from(error).words())?;
        Ok(Self { programs, phantoms: vec![0; counted.len()], names: counted, last, sys: sys.to_owned() })
    }

    /// What was counted since the last call, by device. `stats` are the kernel's counters just before.
    ///
    /// # Errors
    /// In words, why the maps cannot be read any more.
    pub(super) fn growth(
        &mut self,
        stats: &BTreeMap<String, Result<DiskStat, String>>,
    ) -> Result<Vec<(String, BlockGrowth)>, String> {
        let now = self.programs.snapshot().map_err(|error| Unavailable::from(error).words())?;
        self.programs.forget_deepest();
        let counted = self.last.until(&now);
        let before = std::mem::replace(&mut self.last, now);
        let mut found = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            let its = &counted.devices[index];
            let mut growth = growth_of(&counted, index, name, self.phantoms[index]);
            growth.depth_ns =
                depth_ns(&before.devices[index], its, self.phantoms[index], counted.interval_ns);
            // If nothing was in flight on either side of the look, whatever the programs have in flight is none.
            let idle_before = stats.get(name).and_then(|stat| stat.as_ref().ok().copied());
            let idle_after = super::read(name, &self.sys).and_then(Result::ok);
            if let (Some(before), Some(after)) = (idle_before, idle_after)
                && before == after
                && after.in_flight == 0
            {
                let new = its.in_flight_at_end.saturating_sub(self.phantoms[index]);
                self.phantoms[index] = its.in_flight_at_end;
                growth.lost = growth.lost.saturating_add(new);
            }
            growth.deepest = growth.deepest.filter(|_| growth.lost == 0);
            found.push((name.clone(), growth));
        }
        Ok(found)
    }

    /// Processes of ours that could not be followed, so that theirs counts as others' I/O.
    pub(super) fn unfollowed(&self) -> u64 {
        self.last.unfollowed
    }
}

/// Requests × time in flight. What was in flight at the beginning was so from there on, and the sum of the interval is modulo 2^64
/// until it has it; what only seems to be in flight was so for the whole interval.
fn depth_ns(before: &DeviceTotals, counted: &DeviceCounted, phantoms: u64, interval_ns: u64) -> u64 {
    let began_with = before.begun_and_not_ended().wrapping_sub(phantoms);
    let sum = counted.depth_ns.wrapping_add(began_with.wrapping_mul(interval_ns));
    // The lanes are not read at one moment: where nothing was in flight, that leaves some microseconds on either side of 0.
    if sum.cast_signed() < 0 { 0 } else { sum }
}

fn growth_of(counted: &Counted, index: usize, name: &str, phantoms: u64) -> BlockGrowth {
    let its: &DeviceCounted = &counted.devices[index];
    let durable = counted.requests.iter().filter(|(kind, _)| kind.device == index && kind.flags.is_fua());
    let lost = its.lost.saturating_add(its.unseen).saturating_add(its.overflowed);
    BlockGrowth {
        interval_ns: counted.interval_ns,
        requests: requests_of(counted, index, 0, name),
        flushes: counted.issued(index, BlockOp::Flush),
        discards: counted.issued(index, BlockOp::Discard),
        write_zeroes: counted.issued(index, BlockOp::WriteZeroes),
        fua: durable.map(|(_, count)| count).sum(),
        latency: its.latency.clone(),
        depth_ns: its.depth_ns,
        deepest: (lost == 0).then(|| its.deepest.saturating_sub(phantoms)),
        splits: its.splits,
        merges: its.merged_bios.saturating_add(its.merged_requests),
        bios: bios_of(counted, index, 0, name),
        lost,
    }
}
