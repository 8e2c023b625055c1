//! Evidence from BPF programs in the block layer, for the devices that the counters of sysfs are read of, too. It says what was
//! counted in one visit; what cannot be had is said in words, and the visit keeps the rest of its evidence.

mod device;
mod error;
mod layout;
mod maps;
mod programs;
mod snapshot;
mod visit;

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
use rdsk_model::{
    Bio, BpfEvidence, CountedDevice, CrossCheck, DiskStat, EvidenceSource, Op, Request, is_write_call,
};
use rdsk_stats::Histogram;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use syscalls::Sysno;
use visit::{Ended, Shared, Stats, Visit, locked};

/// More devices than this are not counted unless it is asked for: their counts, 34 KiB each, are read twice a visit.
const MANY: usize = 256;

/// Why BPF cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// In words.
    pub why: String,
    /// What can be done about it, if anything.
    pub hint: Option<String>,
}

impl Unavailable {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), hint: None }
    }

    /// Both in one line.
    pub fn words(&self) -> String {
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{}{hint}", self.why)
    }
}

impl From<BpfError> for Unavailable {
    fn from(error: BpfError) -> Self {
        Self { why: error.words(), hint: error.hint().map(str::to_owned) }
    }
}

/// Whether the programs can be loaded and attached here and now; tries it for no device.
///
/// # Errors
/// Why not.
pub fn available() -> Result<(), Unavailable> {
    Programs::load(&[]).map(drop).map_err(Unavailable::from)
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
    lost: u64,
    /// What was not seen of some visits, in words, each once.
    limits: Vec<&'static str>,
}

/// What the default leaves out at high rates, and what `--evidence bpf` does.
const COUNTED_IN_PART: &str = "at more than 100 000 I/Os per second BPF counts for a part of each visit only; --evidence bpf counts \
                               throughout";
const TIMED_IN_PART: &str = "at more than 100 000 I/Os per second BPF counts throughout and takes times for a part of each visit only: \
                             device latencies are of that part";

/// In which form a driver takes I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Bios,
    Requests,
}

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
    pub(crate) fn of(
        devices: &[Watched],
        stacks: &[Stack],
        attachment: Attachment,
    ) -> Result<Self, Unavailable> {
        let (mut names, mut found, mut carriers) = (Vec::<String>::new(), Vec::new(), Vec::new());
        let mut stats = Vec::new();
        for device in devices {
            let known = names.iter().position(|name| *name == device.name);
            let index = known.unwrap_or(names.len());
            if known.is_none() {
                let Some(block) = BlockDevice::of(device.directory()) else { continue };
                names.push(device.name.clone());
                found.push(block);
                stats.push(StatFile::open(device.directory().join("stat")).ok());
            }
            carriers.push(Carrier { target: device.target, is_own: device.own, index });
        }
        if found.is_empty() {
            return Err(Unavailable::because("no block device is known"));
        }
        if attachment != Attachment::Throughout && found.len() > MANY {
            let why = format!("reading BPF's counts of {} devices takes long", found.len());
            return Err(Unavailable { why, hint: Some("--evidence bpf does it nevertheless".into()) });
        }
        let takes_bios = |index: usize| found[index].queues == 0;
        let counted =
            carriers.iter().map(|one| counted_device(one, &names, takes_bios(one.index), stacks)).collect();
        let (programs, stats) = (Arc::new(Mutex::new(Programs::load(&found)?)), Arc::new(stats));
        Ok(Self {
            programs,
            attachment,
            names,
            stats,
            carriers,
            counted,
            visit: None,
            lost: 0,
            limits: Vec::new(),
        })
    }

    /// Just before the first I/O.
    ///
    /// # Errors
    /// In words, why this visit will have no such evidence.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.visit = None;
        let visit = Visit::begin(&self.programs, &self.stats, self.attachment);
        self.visit = Some(visit.map_err(|error| error.words())?);
        Ok(())
    }

    /// When everything is stable: adds what was counted to the evidence of the visit.
    ///
    /// # Errors
    /// In words, why there is none.
    pub(crate) fn end(&mut self, evidence: &mut VisitEvidence) -> Result<(), String> {
        let Some(visit) = self.visit.take() else { return Ok(()) };
        let ended = visit.end(&self.programs, &self.stats).map_err(|error| error.words())?;
        self.add(&ended, evidence);
        Ok(())
    }

    /// Events that were not counted, over all visits.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// In words, what the programs do not see as they are attached, or did not see at the rates there were.
    pub(crate) fn limits(&self) -> Vec<String> {
        let programs = locked(&self.programs);
        let raw = programs.why_not_better().map(|why| {
            format!(
                "BPF programs are attached as raw_tp, which counts the same and costs more for each event, because {why}"
            )
        });
        raw.into_iter().chain(self.limits.iter().map(|limit| (*limit).to_owned())).collect()
    }

    fn add(&mut self, ended: &Ended, evidence: &mut VisitEvidence) {
        let counted = &ended.counted;
        let mut latency = Histogram::new();
        let mut checks = Vec::new();
        for carrier in &self.carriers {
            let (name, its) = (&self.names[carrier.index], &counted.devices[carrier.index]);
            evidence.requests.extend(requests_of(counted, carrier.index, carrier.target, name));
            evidence.bios.extend(bios_of(counted, carrier.index, carrier.target, name));
            checks.extend(self.check(ended, carrier));
            if carrier.is_own {
                latency.merge(&its.latency);
            }
            let device =
                evidence.devices.iter_mut().find(|one| one.target == carrier.target && one.name == *name);
            let Some(device) = device else { continue };
            // A completion that was passed over leaves its request in flight.
            if ended.timed == ended.whole && missed_of(ended, carrier.index) == 0 {
                device.in_flight_max = device.in_flight_max.max(Some(its.deepest));
            }
            if let (true, Ok(counts)) = (ended.observed == ended.whole, &mut device.counts) {
                counts.splits = Some(its.splits);
                counts.reads_caused_by_writes = Some(reads_in_writes(counted, carrier.index));
            }
        }
        let lost_each: Vec<u64> = (0..self.names.len()).map(|index| lost_of(ended, index)).collect();
        let lost = lost_each.iter().sum();
        let told = |(counted, carrier): (&CountedDevice, &Carrier)| CountedDevice {
            lost: Some(lost_each[carrier.index]),
            ..counted.clone()
        };
        self.lost = self.lost.saturating_add(lost);
        let limits =
            [(ended.observed < ended.whole, COUNTED_IN_PART), (ended.timed < ended.observed, TIMED_IN_PART)];
        for (_, limit) in limits.into_iter().filter(|(is_so, _)| *is_so) {
            if !self.limits.contains(&limit) {
                self.limits.push(limit);
            }
        }
        evidence.device_latency = Some(latency);
        evidence.bpf = Some(BpfEvidence {
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
        let of = |stats: &[Option<DiskStat>]| stats.get(carrier.index).copied().flatten();
        let (first, last) = (of(&ended.stats[0])?, of(&ended.stats[1])?);
        let its = &ended.counted.devices[carrier.index];
        let takes_bios =
            self.counted.iter().any(|one| one.takes_bios && one.device == self.names[carrier.index]);
        let completed = completions(&last).saturating_sub(completions(&first));
        let (bpf, sysfs) = if ended.timed == ended.observed {
            // What was passed over ended, too.
            (its.completed + unended(ended, carrier.index) + its.unseen + its.empty, completed)
        } else {
            // The ends of most requests were not seen; their beginnings are those of what ended and of what is in flight.
            let began = (completed + last.in_flight).saturating_sub(first.in_flight);
            let driver = if takes_bios { Takes::Bios } else { Takes::Requests };
            (begun(&ended.counted, carrier.index, driver), began)
        };
        // A driver that takes bios counts a flush as a write, or not at all, and a bio that it splits once or by its parts (dm of
        // Linux 6.1: a read that a striped volume cut into four is four reads).
        let is_empty = |(kind, _): &(&RequestKind, u64)| is_empty(kind);
        let flushes: u64 = counts_of(&ended.counted, carrier.index).filter(is_empty).map(|one| one.1).sum();
        let parts = if takes_bios { its.splits } else { 0 };
        let bpf = bpf - flushes.min(bpf.saturating_sub(sysfs)) + parts.min(sysfs.saturating_sub(bpf));
        let device = self.names[carrier.index].clone();
        Some(CrossCheck { target: carrier.target, device, bpf, sysfs })
    }
}

/// Requests of a device whose end was not seen, but for those that the kernel had in flight when counting ended.
fn unended(ended: &Ended, device: usize) -> u64 {
    let in_flight = ended.stats[1].get(device).copied().flatten().map_or(0, |stat| stat.in_flight);
    let its = &ended.counted.devices[device];
    its.lost.saturating_add(its.in_flight_at_end.saturating_sub(in_flight))
}

/// Of these, those that the programs passed over. While I/O goes on, requests end between the last look of the programs and that of
/// the kernel, so that only the end of a visit tells.
fn missed_of(ended: &Ended, device: usize) -> u64 {
    if ended.timed == ended.whole { unended(ended, device) } else { ended.counted.devices[device].lost }
}

/// What the programs did not count in whole.
fn lost_of(ended: &Ended, device: usize) -> u64 {
    let its = &ended.counted.devices[device];
    missed_of(ended, device).saturating_add(its.unseen).saturating_add(its.overflowed)
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

/// What a device was given, and the bios without data that only ask for a flush: sysfs counts them as writes, and a driver that takes
/// requests never sees them.
fn begun(counted: &Counted, device: usize, driver: Takes) -> u64 {
    let requests: u64 = counts_of(counted, device).map(|(_, count)| count).sum();
    let asks_for_flush = |(origin, [_, bytes]): &(&BioOrigin, &[u64; 2])| {
        origin.device == device && origin.flags.is_preflush() && *bytes == 0
    };
    let flushes = counted.bios.iter().filter(asks_for_flush).map(|(_, [count, _])| count).sum();
    requests + if driver == Takes::Requests { flushes } else { 0 }
}

/// All requests that a device completed.
fn completions(stat: &DiskStat) -> u64 {
    let rest = [stat.discard_ios, stat.flush_ios].into_iter().flatten();
    rest.fold(stat.read_ios.saturating_add(stat.write_ios), u64::saturating_add)
}

/// The requests of one device by kind.
fn counts_of(counted: &Counted, device: usize) -> impl Iterator<Item = (&RequestKind, u64)> {
    counted.requests.iter().filter(move |(kind, _)| kind.device == device).map(|(kind, &count)| (kind, count))
}

/// Whether these are bios without data that ask for a flush, which arrive as writes where a driver takes bios.
fn is_empty(kind: &RequestKind) -> bool {
    kind.bytes == 0 && kind.flags.is_preflush()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Read and write requests by exact size; those that must be durable are counted apart.
pub(crate) fn requests_of(counted: &Counted, index: usize, target: u32, name: &str) -> Vec<Request> {
    let mut found = Vec::new();
    for (kind, count) in counts_of(counted, index) {
        let Some(op) = direction(kind.op).filter(|_| !is_empty(kind)) else { continue };
        let one = Request {
            target,
            device: name.to_owned(),
            op,
            bytes: kind.bytes.into(),
            fua: kind.flags.is_fua(),
            count,
        };
        one.add_to(&mut found);
    }
    found
}

/// Reading and writing bios by system call and task; those without data, which only ask for a flush, are marked, since
/// the flush is a request of its own. Those that may be repeated because they must not wait are counted apart, and so is read-ahead.
pub(crate) fn bios_of(counted: &Counted, index: usize, target: u32, name: &str) -> Vec<Bio> {
    let mut found = Vec::new();
    for (origin, &[count, bytes]) in counted.bios.iter().filter(|(origin, _)| origin.device == index) {
        let Some(op) = direction(origin.op) else { continue };
        let one = Bio {
            target,
            device: name.to_owned(),
            op,
            syscall: origin.system_call.map(system_call_name),
            task: origin.task.word().to_owned(),
            nowait: origin.flags.is_nowait(),
            read_ahead: origin.flags.is_read_ahead(),
            flush: origin.flags.is_preflush() && bytes == 0,
            count,
            bytes,
        };
        one.add_to(&mut found);
    }
    found
}

/// Reads that our own calls to write made.
fn reads_in_writes(counted: &Counted, device: usize) -> u64 {
    let is_one = |origin: &BioOrigin| {
        let call = origin.system_call.map(system_call_name);
        let is_write = call.is_some_and(|call| is_write_call(&call));
        origin.device == device && origin.op == BlockOp::Read && origin.task == Task::This && is_write
    };
    counted.bios.iter().filter(|(origin, _)| is_one(origin)).map(|(_, [count, _])| count).sum()
}

fn direction(op: BlockOp) -> Option<Op> {
    match op {
        BlockOp::Read => Some(Op::Read),
        BlockOp::Write => Some(Op::Write),
        BlockOp::Flush | BlockOp::Discard | BlockOp::WriteZeroes | BlockOp::Other(_) => None,
    }
}

/// The name of a system call of this architecture; its number where it is not known.
pub fn system_call_name(number: u32) -> String {
    let known = Sysno::new(number as usize);
    known.map_or_else(|| number.to_string(), |call| call.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the ends were not seen, what began is compared: requests of all kinds, and bios that only ask for a flush, which sysfs
    /// counts as writes and no driver is given.
    #[test]
    fn what_began_is_all_that_sysfs_will_count() {
        let word = |device: u64, flags: u64, op: u64| device << 32 | 1 << 31 | flags << 8 | op;
        let kind = |device, op| RequestKind::from([word(device, 0, op), 4096]);
        let bio = |device, flags| BioOrigin::from([word(device, flags, 1), 1, 0, 0]);
        let counted = Counted {
            interval_ns: 1,
            devices: Vec::new(),
            requests: [(kind(0, 0), 100), (kind(0, 1), 20), (kind(0, 2), 3), (kind(1, 0), 7)].into(),
            bios: [
                (bio(0, 2), [4, 0]),
                (bio(0, 3), [5, 5 * 4096]),
                (bio(0, 0), [50, 50]),
                (bio(1, 2), [9, 0]),
            ]
            .into(),
        };
        assert_eq!(begun(&counted, 0, Takes::Requests), 100 + 20 + 3 + 4);
        // Those are among the kinds where bios stand for requests.
        assert_eq!(begun(&counted, 1, Takes::Bios), 7);
    }
}
