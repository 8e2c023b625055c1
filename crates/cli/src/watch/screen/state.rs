//! What the screen knows: each device with its last interval and its past, which one is chosen, and whether time stands still.
//! It reads no key and draws nothing.

use rdsk_analysis::columns::ColumnSet;
use rdsk_analysis::iostat::row_of;
use rdsk_model::{WatchInterval, WatchedDevice};
use rdsk_report::Charset;
use std::collections::{BTreeMap, VecDeque};

/// Intervals that are kept of each device: as many columns as a wide terminal has.
const MAX_PAST: usize = 400;
/// Devices whose past is kept, those that vanished included.
const MAX_DEVICES: usize = 1024;
/// Bands of latencies: two for each power of ten from 1 µs, and one for all that is longer than the last.
pub(super) const BANDS: usize = 16;

/// The longest latency of each band but the last, in nanoseconds: 1 µs, 3.2 µs, 10 µs, … 10 s.
pub(super) const BAND_ENDS: [u64; BANDS - 1] = [
    1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000, 31_622_777,
    100_000_000, 316_227_766, 1_000_000_000, 3_162_277_660, 10_000_000_000,
];

/// One interval of one device, as the strips show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    /// Share of the time with a request in flight, in percent.
    pub(super) busy_percent: f64,
    /// Mean number of requests in queue and device.
    pub(super) depth: f64,
    /// Requests by band of latency; `None` without BPF programs.
    pub(super) bands: Option<[u64; BANDS]>,
}

/// A device and its past.
#[derive(Clone, Debug)]
pub(super) struct History {
    pub(super) last: WatchedDevice,
    /// The oldest first.
    pub(super) past: VecDeque<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Live,
    /// The counters go on; the next interval is as long as the pause.
    Paused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lower {
    /// The chosen device.
    Device,
    /// The keys and columns.
    Help,
}

/// Everything that is on the screen.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) columns: ColumnSet,
    pub(super) charset: Charset,
    pub(super) pace: Pace,
    pub(super) lower: Lower,
    /// Length of the last interval; 0 before the first one has ended.
    pub(super) interval_ns: u64,
    /// Why nothing counts what BPF programs count.
    pub(super) why_no_bpf: Option<String>,
    /// The devices of the last interval, in its order.
    pub(super) names: Vec<String>,
    pub(super) devices: BTreeMap<String, History>,
    chosen: Option<String>,
}

impl State {
    pub(super) fn new(columns: ColumnSet, charset: Charset, why_no_bpf: Option<String>) -> Self {
        Self {
            columns,
            charset,
            pace: Pace::Live,
            lower: Lower::Device,
            interval_ns: 0,
            why_no_bpf,
            names: Vec::new(),
            devices: BTreeMap::new(),
            chosen: None,
        }
    }

    /// Takes the next interval.
    pub(super) fn add(&mut self, interval: WatchInterval) {
        self.interval_ns = interval.interval_ns;
        self.names = interval.devices.iter().map(|device| device.name.clone()).collect();
        for device in interval.devices {
            let moment = moment_of(&device, interval.interval_ns);
            if !self.devices.contains_key(&device.name) && self.devices.len() >= MAX_DEVICES {
                self.devices.retain(|name, _| self.names.contains(name));
            }
            let name = device.name.clone();
            let history = self
                .devices
                .entry(name)
                .or_insert_with(|| History { last: device.clone(), past: VecDeque::new() });
            history.last = device;
            history.past.push_back(moment);
            if history.past.len() > MAX_PAST {
                history.past.pop_front();
            }
        }
    }

    /// The place of the chosen device in the list: the first one unless another was chosen and is still there.
    pub(super) fn chosen(&self) -> usize {
        let chosen = self.chosen.as_ref();
        self.names.iter().position(|name| Some(name) == chosen).unwrap_or(0)
    }

    /// The chosen device; `None` if there is none at all.
    pub(super) fn chosen_device(&self) -> Option<&History> {
        self.devices.get(self.names.get(self.chosen())?)
    }

    /// Chooses the device so many places further down, or up.
    pub(super) fn choose(&mut self, by: isize) {
        let last = self.names.len().saturating_sub(1);
        let place = self.chosen().saturating_add_signed(by).min(last);
        self.chosen = self.names.get(place).cloned();
    }

    pub(super) fn next_columns(&mut self) {
        self.columns = match self.columns {
            ColumnSet::Iostat => ColumnSet::Old,
            ColumnSet::Old => ColumnSet::Solaris,
            ColumnSet::Solaris => ColumnSet::Iostat,
        };
    }

    pub(super) fn pause_or_go_on(&mut self) {
        self.pace = if self.pace == Pace::Live { Pace::Paused } else { Pace::Live };
    }

    pub(super) fn help_or_device(&mut self) {
        self.lower = if self.lower == Lower::Device { Lower::Help } else { Lower::Device };
    }
}

fn moment_of(device: &WatchedDevice, interval_ns: u64) -> Moment {
    let row = device.growth.as_ref().ok().map(|growth| row_of(growth, interval_ns));
    let bands = device.block.as_ref().map(|block| {
        let mut below = 0;
        let mut bands = [0; BANDS];
        for (band, end) in bands.iter_mut().zip(BAND_ENDS) {
            let up_to = block.latency.count_up_to(end);
            *band = up_to - below;
            below = up_to;
        }
        bands[BANDS - 1] = block.latency.count() - below;
        bands
    });
    let (busy_percent, depth) = row.map_or((0.0, 0.0), |row| (row.util_percent.min(100.0), row.aqu_sz));
    Moment { busy_percent, depth, bands }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{BlockActivity, DiskStat};

    fn interval(names: &[&str]) -> WatchInterval {
        let device = |name: &&str| {
            WatchedDevice::by_counters(*name, Ok(DiskStat { io_ticks_ms: 500, ..DiskStat::default() }))
        };
        WatchInterval { interval_ns: 1_000_000_000, devices: names.iter().map(device).collect() }
    }

    #[test]
    fn the_chosen_device_stays_chosen_while_others_come_and_go() {
        let mut state = State::new(ColumnSet::Iostat, Charset::Unicode, None);
        assert!(state.chosen_device().is_none());
        state.choose(1);
        state.add(interval(&["sda", "sdb"]));
        state.choose(1);
        assert_eq!(state.chosen(), 1);
        state.add(interval(&["loop0", "sda", "sdb"]));
        assert_eq!((state.chosen(), state.names[2].as_str()), (2, "sdb"));
        state.choose(5);
        assert_eq!(state.chosen(), 2);
        state.choose(-9);
        assert_eq!(state.chosen(), 0);
        state.choose(2);
        state.add(interval(&["sda"]));
        assert_eq!(state.chosen(), 0, "the chosen one is gone");
        assert_eq!(state.devices["sda"].past.len(), 3);
    }

    #[test]
    fn the_past_has_an_end() {
        let mut state = State::new(ColumnSet::Iostat, Charset::Unicode, None);
        (0..MAX_PAST + 5).for_each(|_| state.add(interval(&["sda"])));
        assert_eq!(state.devices["sda"].past.len(), MAX_PAST);
        for number in 0..MAX_DEVICES + 5 {
            state.add(interval(&[&format!("sd{number}")]));
        }
        assert!(state.devices.len() <= MAX_DEVICES);
    }

    #[test]
    fn every_latency_is_in_one_band() {
        let mut block = BlockActivity::default();
        [1, 900, 2_000, 50_000_000_000].into_iter().for_each(|ns| block.latency.record(ns));
        let device = WatchedDevice {
            block: Some(block),
            ..WatchedDevice::by_counters("sda", Ok(DiskStat::default()))
        };
        let bands = moment_of(&device, 1).bands.unwrap();
        assert_eq!((bands[0], bands[1], bands[BANDS - 1], bands.iter().sum()), (2, 1, 1, 4));
    }
}
