//! The arrays of the programs, mapped into this process: to begin and end counting and to read what was counted is to write and
//! read memory. It makes no system call after the mapping, and draws no conclusions.

use crate::bpf::error::BpfError;
use crate::bpf::layout::{COUNTERS, Counter, LIVE_WORDS, Live, ROW, ROWS, STATE_WORDS, State};
use crate::bpf::snapshot::DeviceTotals;
use aya::Ebpf;
use aya::maps::Map;
use rdsk_sys::memory::SharedWords;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Buckets of one device in one lane.
const BUCKETS: usize = ROW * ROWS as usize;
/// At most this much memory holds latencies. Where it is not enough for a lane of each processor, processors share lanes.
const MOST_LATENCY_BYTES: usize = 32 << 20;
/// Looks at counters that change meanwhile; a change takes some ten nanoseconds.
const MAX_LOOKS: u32 = 100;

/// How many lanes the arrays have.
pub(super) fn lanes(devices: usize, processors: usize) -> usize {
    let bytes = devices.max(1).saturating_mul(BUCKETS * size_of::<u64>());
    (MOST_LATENCY_BYTES / bytes).clamp(1, processors.max(1))
}

/// The arrays.
pub(super) struct Maps {
    live: SharedWords,
    totals: SharedWords,
    latencies: SharedWords,
    state: SharedWords,
    lanes: usize,
    devices: usize,
}

impl Maps {
    /// Maps the arrays of loaded programs.
    pub(super) fn of(ebpf: &Ebpf, lanes: usize, devices: usize) -> Result<Self, BpfError> {
        let rows = lanes * devices.max(1);
        Ok(Self {
            live: mapped(ebpf, "LIVE", devices.max(1) * LIVE_WORDS)?,
            totals: mapped(ebpf, "TOTALS", rows * COUNTERS)?,
            latencies: mapped(ebpf, "LATENCIES", rows * BUCKETS)?,
            state: mapped(ebpf, "STATE", STATE_WORDS)?,
            lanes,
            devices,
        })
    }

    /// From now on, a device is counted, and what began before `since_ns` is not followed.
    pub(super) fn begin(&self, device: usize, since_ns: u64) {
        self.live(device, Live::InFlight).store(0, Relaxed);
        self.live(device, Live::Deepest).store(0, Relaxed);
        self.live(device, Live::Since).store(since_ns.max(1), Release);
    }

    /// A device is counted no more.
    pub(super) fn end(&self, device: usize) {
        self.live(device, Live::Since).store(0, Release);
    }

    /// The deepest queue is that of now.
    pub(super) fn forget_deepest(&self) {
        for device in 0..self.devices {
            let now = self.live(device, Live::InFlight).load(Relaxed);
            self.live(device, Live::Deepest).store(now, Relaxed);
        }
    }

    /// What all devices have completed so far.
    pub(super) fn completed(&self) -> u64 {
        let rows = self.totals.chunks_exact(COUNTERS);
        rows.fold(0, |sum, row| sum.wrapping_add(row[Counter::Completed as usize].load(Relaxed)))
    }

    /// Children that could not be followed.
    pub(super) fn unfollowed(&self) -> u64 {
        self.state[State::Unfollowed as usize].load(Relaxed)
    }

    /// The counters of one device, over all lanes.
    pub(super) fn totals_of(&self, device: usize) -> DeviceTotals {
        let mut counters = [0_u64; COUNTERS];
        let mut buckets = vec![0_u64; BUCKETS];
        for row in (0..self.lanes).map(|lane| lane * self.devices + device) {
            let its = self.row(row);
            counters.iter_mut().zip(its).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
            // Most processors of a large machine have seen nothing of most devices.
            if its[Counter::LatencySum as usize] > 0 {
                let its = &self.latencies[row * BUCKETS..(row + 1) * BUCKETS];
                buckets.iter_mut().zip(its).for_each(|(sum, more)| *sum += more.load(Relaxed));
            }
        }
        DeviceTotals {
            counters,
            buckets,
            in_flight: self.live(device, Live::InFlight).load(Relaxed),
            deepest: self.live(device, Live::Deepest).load(Relaxed),
        }
    }

    /// One row of counters at a moment at which no count is without its time.
    fn row(&self, row: usize) -> [u64; COUNTERS] {
        let words = &self.totals[row * COUNTERS..(row + 1) * COUNTERS];
        let mut seen = [0; COUNTERS];
        for _ in 0..MAX_LOOKS {
            let done = words[Counter::Done as usize].load(Acquire);
            seen.iter_mut().zip(words).for_each(|(seen, word)| *seen = word.load(Acquire));
            if words[Counter::Begun as usize].load(Acquire) == done {
                break;
            }
            std::hint::spin_loop();
        }
        seen
    }

    fn live(&self, device: usize, word: Live) -> &std::sync::atomic::AtomicU64 {
        &self.live[device * LIVE_WORDS + word as usize]
    }
}

fn mapped(ebpf: &Ebpf, name: &'static str, words: usize) -> Result<SharedWords, BpfError> {
    let Some(Map::Array(map)) = ebpf.map(name) else { unreachable!("a test maps every array of the object") };
    SharedWords::new(map.fd(), words).map_err(|source| BpfError::Mapping { map: name, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_those_of_the_processors_while_memory_lasts() {
        assert_eq!((lanes(1, 2), lanes(1, 128), lanes(0, 4)), (2, 128, 4));
        assert_eq!((lanes(64, 2), lanes(64, 128)), (2, 15));
        assert_eq!((lanes(4096, 128), lanes(1, 0)), (1, 1));
    }
}
