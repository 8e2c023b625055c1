//! The arrays of the programs, mapped into this process: to begin and end counting and to read what was counted is to write and
//! read memory. It makes no system call after the mapping, and draws no conclusions.

use crate::bpf::error::BpfError;
use crate::bpf::layout::{
    BRACKETS, BioKey, COUNTERS, Counter, DEVICE_WORDS, DeviceWord, KIND_ROWS, KIND_WORDS, ONLY_COUNTED,
    ORIGIN_ROWS, ORIGIN_WORDS, ROW, ROWS, RequestKey, START_ROWS, START_WORDS, STATE_WORDS, State,
};
use crate::bpf::snapshot::DeviceTotals;
use aya::Ebpf;
use aya::maps::Map;
use rdsk_sys::memory::SharedWords;
use std::sync::atomic::AtomicU64;
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

/// How large the arrays are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Observed devices, and whether one of them takes bios.
    pub(super) devices: u32,
    pub(super) takes_bios: bool,
    /// Processors that the kernel may use.
    pub(super) processors: u32,
    /// Rows of each device in TOTALS and LATENCIES.
    pub(super) lanes: u32,
}

impl Sizes {
    /// Each array and its rows; `None` where that is more than a number of the kernel holds.
    pub(super) fn rows(&self) -> Option<[(&'static str, u32); 6]> {
        let devices = self.devices.max(1);
        let rows = devices.checked_mul(self.lanes)?;
        Some([
            ("DEVICES", devices),
            ("TOTALS", rows),
            ("LATENCIES", rows.checked_mul(ROWS)?),
            ("KINDS", self.processors.checked_mul(KIND_ROWS)?),
            ("ORIGINS", self.processors.checked_mul(ORIGIN_ROWS)?),
            ("STARTS", if self.takes_bios { START_ROWS } else { 1 }),
        ])
    }
}

/// The arrays.
pub(super) struct Maps {
    devices: SharedWords,
    totals: SharedWords,
    latencies: SharedWords,
    kinds: SharedWords,
    origins: SharedWords,
    starts: SharedWords,
    state: SharedWords,
    lanes: usize,
    /// How many devices are observed.
    count: usize,
}

impl Maps {
    /// Maps the arrays of programs that were loaded with these sizes.
    pub(super) fn map(ebpf: &Ebpf, sizes: &Sizes) -> Result<Self, BpfError> {
        let rows = sizes.rows().ok_or(BpfError::TooMany)?;
        let words = [DEVICE_WORDS, COUNTERS, ROW, KIND_WORDS, ORIGIN_WORDS, START_WORDS];
        let mut arrays = Vec::with_capacity(rows.len());
        for ((name, rows), words) in rows.into_iter().zip(words) {
            arrays.push(mapped(ebpf, name, rows as usize * words)?);
        }
        let [devices, totals, latencies, kinds, origins, starts] =
            <[SharedWords; 6]>::try_from(arrays).expect("one for each name");
        let state = mapped(ebpf, "STATE", STATE_WORDS)?;
        let (lanes, count) = (sizes.lanes as usize, sizes.devices as usize);
        Ok(Self { devices, totals, latencies, kinds, origins, starts, state, lanes, count })
    }

    /// Says where a device's slots begin, how many each of its hardware queues has, how many of them are the driver's, and the queues.
    pub(super) fn describe(&self, device: usize, words: [u32; 4]) {
        let [base, tags, driver_tags, queues] = words.map(u64::from);
        self.word(device, DeviceWord::Base).store(base, Relaxed);
        self.word(device, DeviceWord::Tags).store(tags, Relaxed);
        self.word(device, DeviceWord::DriverTags).store(driver_tags, Relaxed);
        self.word(device, DeviceWord::Queues).store(queues, Relaxed);
    }

    /// Forgets bios whose completion was not counted, before any device is counted again: they would keep their places.
    pub(super) fn forget_bios(&self) {
        let is_left = |device| self.word(device, DeviceWord::InFlight).load(Relaxed) != 0;
        if (0..self.count).any(is_left) {
            self.starts.iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// From now on, a device is counted and timed, and what began before `since_ns` is not followed.
    pub(super) fn begin(&self, device: usize, since_ns: u64) {
        self.word(device, DeviceWord::InFlight).store(0, Relaxed);
        self.word(device, DeviceWord::Deepest).store(0, Relaxed);
        self.word(device, DeviceWord::Since).store((since_ns & !ONLY_COUNTED).max(2), Release);
    }

    /// From now on, a device that is counted is not timed any more.
    pub(super) fn only_count(&self, device: usize) {
        let since = self.word(device, DeviceWord::Since);
        since.store(since.load(Relaxed) | ONLY_COUNTED, Release);
    }

    /// A device is counted no more.
    pub(super) fn end(&self, device: usize) {
        self.word(device, DeviceWord::Since).store(0, Release);
    }

    /// The deepest queue is that of now.
    pub(super) fn forget_deepest(&self) {
        for device in 0..self.count {
            let now = self.word(device, DeviceWord::InFlight).load(Relaxed);
            self.word(device, DeviceWord::Deepest).store(now, Relaxed);
        }
    }

    /// What all devices have completed so far.
    pub(super) fn completed(&self) -> u64 {
        let rows = self.totals.chunks_exact(COUNTERS);
        rows.fold(0, |sum, row| sum.wrapping_add(row[Counter::Completed as usize].load(Relaxed)))
    }

    /// The kinds of requests in the rows of all processors, and how many of each were counted.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (RequestKey, [u64; 1])> {
        counted_rows::<KIND_WORDS>(&self.kinds)
            .map(|[what, bytes, count, returned]| ([what, bytes], [count.wrapping_sub(returned)]))
    }

    /// The origins of bios in the rows of all processors, and count and bytes of each.
    pub(super) fn origins(&self) -> impl Iterator<Item = (BioKey, [u64; 2])> {
        counted_rows::<ORIGIN_WORDS>(&self.origins).map(|[what, call, first, second, count, bytes, ..]| {
            ([what, call, first, second], [count, bytes])
        })
    }

    /// Whether the hash maps hold anything.
    pub(super) fn has_more(&self) -> bool {
        self.state[State::More as usize].load(Acquire) != 0
    }

    /// Children that could not be followed.
    pub(super) fn unfollowed(&self) -> u64 {
        self.state[State::Unfollowed as usize].load(Relaxed)
    }

    /// The counters of one device, over all lanes.
    pub(super) fn totals_of(&self, device: usize) -> DeviceTotals {
        let mut counters = [0_u64; COUNTERS];
        let mut buckets = vec![0_u64; BUCKETS];
        for row in (0..self.lanes).map(|lane| lane * self.count + device) {
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
            in_flight: self.word(device, DeviceWord::InFlight).load(Relaxed),
            deepest: self.word(device, DeviceWord::Deepest).load(Relaxed),
        }
    }

    /// One row of counters at a moment at which no count is without its time.
    fn row(&self, row: usize) -> [u64; COUNTERS] {
        let words = &self.totals[row * COUNTERS..(row + 1) * COUNTERS];
        let mut values = [0; COUNTERS];
        for _ in 0..MAX_LOOKS {
            // A count is done after its moments and begun before them, so it is looked at in the other order.
            let done = BRACKETS.map(|(_, count)| words[count as usize].load(Acquire));
            values.iter_mut().zip(words).for_each(|(values, word)| *values = word.load(Acquire));
            let begun = BRACKETS.map(|(begun, _)| words[begun as usize].load(Acquire));
            if begun == done {
                break;
            }
            std::hint::spin_loop();
        }
        values
    }

    fn word(&self, device: usize, word: DeviceWord) -> &AtomicU64 {
        &self.devices[device * DEVICE_WORDS + word as usize]
    }
}

/// The rows of a table that have counted something. Their keys stand before their counts, which change after them.
fn counted_rows<const WORDS: usize>(table: &[AtomicU64]) -> impl Iterator<Item = [u64; WORDS]> {
    let used = table.chunks_exact(WORDS).filter(|row| row[0].load(Relaxed) != 0);
    used.filter_map(|row| {
        let mut words = [0; WORDS];
        words.iter_mut().zip(row).rev().for_each(|(word, shared)| *word = shared.load(Acquire));
        (words[WORDS / 2..].iter().any(|count| *count != 0)).then_some(words)
    })
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

    #[test]
    fn a_row_that_has_counted_nothing_is_not_read() {
        let table = [[7, 512, 3, 1], [0, 0, 0, 0], [9, 0, 0, 0], [8, 0, 0, 2]].concat();
        let table: Vec<AtomicU64> = table.into_iter().map(AtomicU64::new).collect();
        let rows: Vec<[u64; 4]> = counted_rows(&table).collect();
        assert_eq!(rows, [[7, 512, 3, 1], [8, 0, 0, 2]]);
    }

    #[test]
    fn arrays_are_as_large_as_what_they_count() {
        let sizes = Sizes { devices: 3, takes_bios: false, processors: 4, lanes: 2 };
        let rows = sizes.rows().unwrap();
        assert_eq!(rows[..3], [("DEVICES", 3), ("TOTALS", 6), ("LATENCIES", 6 * ROWS)]);
        assert_eq!(rows[3..], [("KINDS", 4 * KIND_ROWS), ("ORIGINS", 4 * ORIGIN_ROWS), ("STARTS", 1)]);
        let nothing = Sizes { devices: 0, takes_bios: true, ..sizes };
        assert_eq!(
            (nothing.rows().unwrap()[1], nothing.rows().unwrap()[5]),
            (("TOTALS", 2), ("STARTS", START_ROWS))
        );
        assert_eq!(Sizes { devices: u32::MAX, ..sizes }.rows(), None);
    }
}
