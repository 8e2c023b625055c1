//! Evidence from BPF programs in the block layer, for the devices that the counters of sysfs are read of, too. It says what was
//! counted in one visit; what cannot be had is said in words, and the visit keeps the rest of its evidence.

mod activity;
mod check;
mod device;
mod error;
mod events;
mod layout;
mod maps;
mod programs;
mod snapshot;
mod visit;

pub(crate) use activity::activity_of;
pub use activity::system_call_name;
pub use device::BlockDevice;
pub use error::{BpfError, Denied};
pub use layout::{BioOrigin, BlockOp, Flags, RequestKind, Task};
pub use programs::{Programs, Way};
pub use snapshot::{Counted, DeviceCounted, DeviceTotals, Snapshot, Times};
pub use visit::Attachment;

use crate::diskstat::StatFile;
use crate::stack::Stack;
use crate::visit::VisitEvidence;
use crate::watched::Watched;
use check::{Takes, by_both, lost_of, unended};
use rdsk_model::{BlockActivity, BpfEvidence, CountedDevice, CrossCheck, EvidenceSource};
use rdsk_stats::Histogram;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use visit::{Ended, Shared, Stats, Visit, locked};

/// More devices than this are not counted unless it is asked for: their counts, 34 KiB each, are read twice a visit.
const MANY: usize = 256;

/// Whether the programs can be loaded and attached here and now; tries it for no device.
///
/// # Errors
/// Why not.
pub fn available() -> Result<(), BpfError> {
    Programs::load(&[]).map(drop)
}

/// The programs beside the counters of one run, and which of their devices carries which target.
pub(crate) struct BlockLayer {
    programs: Shared,
    attachment: Attachment,
    /// Kernel names, in the order of the programs.
    names: Vec<String>,
    /// Their counters in sysfs, in the same order.
    stats: Stats,
    carriers: Vec<Carrier>,
    counted: Vec<CountedDevice>,
    visit: Option<Visit>,
    /// Whether visits are to be followed from here on, and whether this one is not although it could be.
    follows: bool,
    leaves_out: bool,
    /// Whether the programs are attached for this visit.
    is_prepared: bool,
    lost: u64,
    /// What was not seen of some visits, in words, each once.
    limits: Vec<&'static str>,
}

/// What the default leaves out at high rates, and what `--evidence bpf` does.
const COUNTED_IN_PART: &str = "at more than 100 000 I/Os per second BPF counts for a part of each repeat only; --evidence bpf counts \
                               throughout";
const TIMED_IN_PART: &str = "at more than 100 000 I/Os per second BPF counts requests throughout, and takes times and follows bios to \
                             their calls for a part of each repeat only: device latencies and bios are of that part";

const LEFT_OUT: &str = "BPF follows some repeats of a test only where following all would take more than 0.5% of its time; \
                        --evidence bpf follows all";

/// A device of a target.
struct Carrier {
    target: u32,
    /// Whether it is the target's own device, not one below it.
    is_own: bool,
    /// Among the observed devices.
    index: usize,
}

impl BlockLayer {
    /// Observes these devices.
    ///
    /// # Errors
    /// Why BPF cannot be used.
    pub(crate) fn load(
        devices: &[Watched],
        stacks: &[Stack],
        attachment: Attachment,
    ) -> Result<Self, BpfError> {
        let (mut names, mut observed, mut carriers) = (Vec::<String>::new(), Vec::new(), Vec::new());
        let mut stats = Vec::new();
        for device in devices {
            let position = names.iter().position(|name| *name == device.name);
            let index = position.unwrap_or(names.len());
            if position.is_none() {
                let block = BlockDevice::read(device.directory());
                let Some(block) = block.filter(|_| device.why_unnamed.is_none()) else { continue };
                names.push(device.name.clone());
                observed.push(block);
                stats.push(StatFile::open(device.directory().join("stat")).ok());
            }
            carriers.push(Carrier { target: device.target, is_own: device.own, index });
        }
        if observed.is_empty() {
            let why = devices.iter().find_map(|device| device.why_unnamed);
            return Err(BpfError::NoDevice(why.unwrap_or("no block device is known")));
        }
        if attachment != Attachment::Throughout && observed.len() > MANY {
            return Err(BpfError::TakesLong { devices: observed.len() });
        }
        let takes_bios = |index: usize| observed[index].queues == 0;
        let counted = carriers
            .iter()
            .map(|carrier| counted_device(carrier, &names, takes_bios(carrier.index), stacks))
            .collect();
        let (programs, stats) = (Arc::new(Mutex::new(Programs::load(&observed)?)), Arc::new(stats));
        Ok(Self {
            programs,
            attachment,
            names,
            stats,
            carriers,
            counted,
            visit: None,
            follows: true,
            leaves_out: false,
            is_prepared: false,
            lost: 0,
            limits: Vec::new(),
        })
    }

    /// Whether the next visits are to be followed. Those of `--evidence bpf` and of `rdsk dd` always are.
    pub(crate) fn follow(&mut self, follows: bool) {
        self.follows = follows || self.attachment != Attachment::Windowed;
    }

    /// Before anything is read at the beginning of a visit: attaches the programs, or detaches those that would only
    /// cost; both take long beside a look at counters.
    ///
    /// # Errors
    /// Why this visit will have no such evidence.
    pub(crate) fn prepare(&mut self) -> Result<(), BpfError> {
        self.visit = None;
        (self.leaves_out, self.is_prepared) = (!self.follows, false);
        let mut programs = locked(&self.programs);
        if self.leaves_out {
            programs.detach();
            return Ok(());
        }
        programs.attach()?;
        self.is_prepared = true;
        Ok(())
    }

    /// Just before the first I/O of a visit that was prepared.
    ///
    /// # Errors
    /// Why this visit will have no such evidence.
    pub(crate) fn begin(&mut self) -> Result<(), BpfError> {
        if !self.is_prepared {
            return Ok(());
        }
        self.visit = Some(Visit::begin(&self.programs, &self.stats, self.attachment)?);
        Ok(())
    }

    /// When everything is stable: adds what was counted to the evidence of the visit.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn end(&mut self, evidence: &mut VisitEvidence) -> Result<(), BpfError> {
        if self.leaves_out {
            evidence.is_left_out = true;
            self.tell(LEFT_OUT);
        }
        let Some(visit) = self.visit.take() else { return Ok(()) };
        let ended = visit.end(&self.programs, &self.stats)?;
        self.add(&ended, evidence);
        Ok(())
    }

    /// Events that were not counted, over all visits.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// In words, what the programs do not see as they are attached, or did not see at the rates there were.
    pub(crate) fn limits(&self) -> Vec<String> {
        raw_in_words(&locked(&self.programs))
            .into_iter()
            .chain(self.limits.iter().map(|limit| (*limit).to_owned()))
            .collect()
    }

    /// What was not seen, once.
    fn tell(&mut self, limit: &'static str) {
        if !self.limits.contains(&limit) {
            self.limits.push(limit);
        }
    }

    fn add(&mut self, ended: &Ended, evidence: &mut VisitEvidence) {
        let counted = &ended.counted;
        let mut block = BlockActivity { interval_ns: counted.interval_ns, ..BlockActivity::default() };
        let mut checks = Vec::new();
        for carrier in &self.carriers {
            let (name, its) = (&self.names[carrier.index], &counted.devices[carrier.index]);
            let mut activity = activity_of(counted, carrier.index, carrier.target, name);
            let inside = activity.bios.iter().filter(|bio| bio.is_read_in_write());
            let reads_in_writes: u64 = inside.map(|bio| bio.count).sum();
            checks.extend(self.check(ended, carrier));
            if !carrier.is_own {
                activity.latency = Histogram::new();
            }
            block = block.plus(activity);
            let device = evidence
                .devices
                .iter_mut()
                .find(|visited| visited.target == carrier.target && visited.name == *name);
            let Some(device) = device else { continue };
            let is_timed = ended.timed == ended.whole;
            // A completion that was passed over leaves its request in flight.
            let deepest = (is_timed && unended(ended, carrier.index) == 0).then_some(its.deepest);
            device.in_flight_max = deepest.or(device.in_flight_max);
            if let (true, Ok(counts)) = (ended.observed == ended.whole, &mut device.counts) {
                counts.deepest = deepest;
                counts.splits = Some(its.splits);
                counts.reads_caused_by_writes = is_timed.then_some(reads_in_writes);
            }
        }
        let lost_of = |index| lost_of(ended, index, self.driver(index));
        let lost_each: Vec<u64> = (0..self.names.len()).map(lost_of).collect();
        let lost = lost_each.iter().sum();
        let told = |(counted, carrier): (&CountedDevice, &Carrier)| CountedDevice {
            lost: Some(lost_each[carrier.index]),
            ..counted.clone()
        };
        self.lost = self.lost.saturating_add(lost);
        let limits =
            [(ended.observed < ended.whole, COUNTED_IN_PART), (ended.timed < ended.observed, TIMED_IN_PART)];
        for (_, limit) in limits.into_iter().filter(|(is_so, _)| *is_so) {
            self.tell(limit);
        }
        evidence.block = Some(block);
        evidence.bpf = Some(BpfEvidence {
            followed: None,
            observed_ns: nanoseconds(ended.observed),
            timed_ns: Some(nanoseconds(ended.timed)),
            visits_ns: nanoseconds(ended.whole),
            checks,
            lost,
            devices: self.counted.iter().zip(&self.carriers).map(told).collect(),
        });
        evidence.source = EvidenceSource::Bpf;
    }

    /// What both sources counted as done while the programs counted; `None` where sysfs cannot be read.
    fn check(&self, ended: &Ended, carrier: &Carrier) -> Option<CrossCheck> {
        let device = self.names[carrier.index].clone();
        let (bpf, sysfs) = by_both(ended, carrier.index, self.driver(carrier.index))?;
        Some(CrossCheck { target: carrier.target, device, bpf, sysfs })
    }

    /// In which form a device is given I/Os.
    fn driver(&self, index: usize) -> Takes {
        let is_it = |counted: &&CountedDevice| counted.device == self.names[index];
        self.counted.iter().find(is_it).map_or(Takes::Requests, Takes::of)
    }
}

/// That the programs are not attached in the best way, and why not; `None` where they are.
pub(crate) fn raw_in_words(programs: &Programs) -> Option<String> {
    let why = programs.why_not_better()?;
    Some(format!(
        "BPF programs are attached as raw_tp, which counts the same and costs more for each event, because {why}"
    ))
}

/// A counted device of a target, and those of the counted devices that are directly below it.
fn counted_device(carrier: &Carrier, names: &[String], takes_bios: bool, stacks: &[Stack]) -> CountedDevice {
    let device = names[carrier.index].clone();
    let stack = stacks.iter().find(|stack| stack.target == carrier.target);
    let below = stack.and_then(|stack| stack.below.get(&device));
    let counted = below.into_iter().flat_map(|below| &below.names).filter(|name| names.contains(name));
    CountedDevice {
        target: carrier.target,
        kind: below.and_then(|below| below.kind.clone()),
        takes_bios,
        below: counted.cloned().collect(),
        lost: None,
        device,
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
