//! The evidence of two parts of a cell as that of both: of two visits, or of two runs of which the later one resumed the other. Counters
//! add, and what one of the parts does not know is unknown of both.

use crate::evidence::{DeviceEvidence, Evidence, LoopFile, ProcessIo};
use crate::latency::Latency;

fn sum(earlier: Option<u64>, later: Option<u64>) -> Option<u64> {
    earlier?.checked_add(later?)
}

/// Adds what is not listed yet.
fn add_new<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

impl ProcessIo {
    /// The charges of both parts.
    #[must_use]
    pub fn plus(self, later: Self) -> Self {
        Self {
            read_bytes: sum(self.read_bytes, later.read_bytes),
            write_bytes: sum(self.write_bytes, later.write_bytes),
        }
    }
}

impl DeviceEvidence {
    /// Both parts of one device. Their series over time are left out: whether a pause lies between them is not known here.
    #[must_use]
    pub fn plus(self, later: Self) -> Self {
        let diskstat = self.diskstat.zip(later.diskstat).map(|(mut sum, more)| {
            sum.add(&more);
            sum
        });
        let reads = sum(self.reads, later.reads);
        Self {
            reads,
            read_bytes: sum(self.read_bytes, later.read_bytes),
            writes: sum(self.writes, later.writes),
            write_bytes: sum(self.write_bytes, later.write_bytes),
            read_merges: sum(self.read_merges, later.read_merges),
            write_merges: sum(self.write_merges, later.write_merges),
            splits: sum(self.splits, later.splits),
            flushes: sum(self.flushes, later.flushes),
            discards: sum(self.discards, later.discards),
            reads_caused_by_writes: sum(self.reads_caused_by_writes, later.reads_caused_by_writes),
            in_flight_max: reads.and(self.in_flight_max.max(later.in_flight_max)),
            busy_ns: sum(self.busy_ns, later.busy_ns),
            // The visits of both, unless those of one part are unknown.
            visits: diskstat.map_or_else(Vec::new, |_| [self.visits, later.visits].concat()),
            interval_ns: sum(self.interval_ns, later.interval_ns),
            diskstat,
            waiting_ns: sum(self.waiting_ns, later.waiting_ns),
            in_flight_series: Vec::new(),
            bytes_series: Vec::new(),
            series_width_ns: None,
            ..self
        }
    }

    /// A device of which nothing is known.
    fn unknown(&self) -> Self {
        Self { target: self.target, name: self.name.clone(), ..Self::default() }
    }
}

impl Evidence {
    /// Both parts together, from the weaker of their two sources.
    #[must_use]
    pub fn plus(mut self, later: Self) -> Self {
        later.requests.into_iter().for_each(|request| request.add_to(&mut self.requests));
        later.bios.into_iter().for_each(|bio| bio.add_to(&mut self.bios));
        later.loops.into_iter().for_each(|file| add_loop(&mut self.loops, file));
        add_new(&mut self.limits, later.limits);
        add_new(&mut self.controls, later.controls);
        let timed = self.device_latency_ns.zip(later.device_latency_ns);
        let processor = self.processor.zip(later.processor).map(|(mut sum, more)| {
            sum.add(&more);
            sum
        });
        Self {
            source: self.source.max(later.source),
            device: both(self.device, later.device),
            counted: if later.counted.is_empty() { self.counted } else { later.counted },
            device_latency_ns: timed.and_then(|(earlier, later)| Latency::of_both(&earlier, &later)),
            bpf: self.bpf.zip(later.bpf).map(|(mut sum, more)| {
                sum.add(more);
                sum
            }),
            page_cache: self.page_cache.zip(later.page_cache).map(|(earlier, later)| earlier.plus(later)),
            process: self.process.plus(later.process),
            extents: later.extents,
            processor_visits: processor
                .map_or_else(Vec::new, |_| [self.processor_visits, later.processor_visits].concat()),
            processor,
            ..self
        }
    }
}

/// Each device once; one that a part does not list is unknown.
fn both(earlier: Vec<DeviceEvidence>, mut later: Vec<DeviceEvidence>) -> Vec<DeviceEvidence> {
    let is = |device: &DeviceEvidence, other: &DeviceEvidence| {
        (device.target, &device.name) == (other.target, &other.name)
    };
    let mut devices: Vec<DeviceEvidence> = Vec::with_capacity(earlier.len());
    for device in earlier {
        let index = later.iter().position(|other| is(&device, other));
        devices.push(match index {
            Some(index) => device.plus(later.remove(index)),
            None => device.unknown(),
        });
    }
    devices.extend(later.iter().map(DeviceEvidence::unknown));
    devices
}

/// Adds what the later part saw of a backing file: its facts are those of the later one, the page cache is summed.
fn add_loop(loops: &mut Vec<LoopFile>, more: LoopFile) {
    let is_same = |file: &&mut LoopFile| (file.target, &file.device) == (more.target, &more.device);
    let Some(sum) = loops.iter_mut().find(is_same) else {
        loops.push(more);
        return;
    };
    let page_cache = sum.page_cache.zip(more.page_cache).map(|(sum, more)| sum.plus(more));
    *sum = LoopFile { page_cache, ..more };
}
