//! Evidence from BPF programs in the block layer, for the devices that the counters of sysfs are read of, too. It says what was
//! counted in one visit; what cannot be had is said in words, and the visit keeps the rest of its evidence.

mod layout;
mod programs;
mod snapshot;
mod visit;

pub use layout::{BioOrigin, BlockOp, Flags, RequestKind, Task};
pub use programs::{BlockDevice, BpfError, Programs, Way};
pub use snapshot::{Counted, DeviceCounted, Snapshot};
pub use visit::Attachment;

use crate::diskstat::StatFile;
use crate::read_trimmed;
use crate::sysfs::name_of;
use crate::visit::VisitEvidence;
use crate::watched::Watched;
use rdsk_model::{Bio, BpfEvidence, CrossCheck, DiskStat, EvidenceSource, Op, Request};
use rdsk_stats::Histogram;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use syscalls::Sysno;
use visit::{Ended, Shared, Visit};

/// More devices than this are not counted unless it is asked for: their counts are read twice a visit.
const MANY: usize = 8;
/// Calls that write.
const WRITES: &[&str] = &["write", "writev", "pwrite64", "pwritev", "pwritev2"];

/// The programs beside the counters of one run, and which of their devices carries which target.
pub(crate) struct BlockLayer {
    programs: Shared,
    attachment: Attachment,
    /// Kernel names, in the order of the programs.
    names: Vec<String>,
    /// Their counters in sysfs, in the same order.
    stats: Arc<Vec<Option<StatFile>>>,
    carriers: Vec<Carrier>,
    visit: Option<Visit>,
    lost: u64,
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
    /// In words, why BPF cannot be used.
    pub(crate) fn of(devices: &[Watched], attachment: Attachment) -> Result<Self, String> {
        let (mut names, mut found, mut carriers) = (Vec::<String>::new(), Vec::new(), Vec::new());
        let mut stats = Vec::new();
        let disks_in_parts: Vec<String> = devices.iter().filter_map(disk_of_partition).collect();
        // The programs count an I/O once, for its partition; what is left to the disk would be a part of what it did.
        for device in devices.iter().filter(|device| !disks_in_parts.contains(&device.name)) {
            let known = names.iter().position(|name| *name == device.name);
            let index = known.unwrap_or(names.len());
            if known.is_none() {
                let Some(block) = block_device(device.directory()) else { continue };
                names.push(device.name.clone());
                found.push(block);
                stats.push(StatFile::open(device.directory().join("stat")).ok());
            }
            carriers.push(Carrier { target: device.target, is_own: device.own, index });
        }
        if found.is_empty() {
            return Err("no block device is known".into());
        }
        if attachment == Attachment::Windowed && found.len() > MANY {
            let count = found.len();
            return Err(format!(
                "reading BPF's counts of {count} devices takes long; --evidence bpf does it nevertheless"
            ));
        }
        let programs = Programs::load(&found).map_err(|error| words_of(&error))?;
        let (programs, stats) = (Arc::new(Mutex::new(programs)), Arc::new(stats));
        Ok(Self { programs, attachment, names, stats, carriers, visit: None, lost: 0 })
    }

    /// Just before the first I/O.
    ///
    /// # Errors
    /// In words, why this visit will have no such evidence.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        self.visit = None;
        let visit = Visit::begin(&self.programs, &self.stats, self.attachment);
        self.visit = Some(visit.map_err(|error| words_of(&error))?);
        Ok(())
    }

    /// When everything is stable: adds what was counted to the evidence of the visit.
    ///
    /// # Errors
    /// In words, why there is none.
    pub(crate) fn end(&mut self, evidence: &mut VisitEvidence) -> Result<(), String> {
        let Some(visit) = self.visit.take() else { return Ok(()) };
        let ended = visit.end(&self.programs, &self.stats).map_err(|error| words_of(&error))?;
        self.add(&ended, evidence);
        Ok(())
    }

    /// Events that were not counted, over all visits.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn add(&mut self, ended: &Ended, evidence: &mut VisitEvidence) {
        let counted = &ended.counted;
        let mut latency = Histogram::new();
        let mut checks = Vec::new();
        for carrier in &self.carriers {
            let (name, its) = (&self.names[carrier.index], &counted.devices[carrier.index]);
            evidence.requests.extend(requests_of(counted, carrier, name));
            evidence.bios.extend(bios_of(counted, carrier, name));
            checks.extend(self.check(ended, carrier));
            if carrier.is_own {
                latency.merge(&its.latency);
            }
            let device =
                evidence.devices.iter_mut().find(|one| one.target == carrier.target && one.name == *name);
            let Some(device) = device else { continue };
            // A completion that was passed over leaves its request in flight.
            if its.missed() == 0 {
                device.in_flight_max = device.in_flight_max.max(Some(its.deepest));
            }
            if let (true, Ok(counts)) = (ended.observed == ended.whole, &mut device.counts) {
                counts.splits = Some(its.splits);
                counts.reads_caused_by_writes = Some(reads_in_writes(counted, carrier.index));
            }
        }
        let lost =
            counted.devices.iter().map(|device| device.missed() + device.unseen + device.overflowed).sum();
        self.lost = self.lost.saturating_add(lost);
        evidence.device_latency = Some(latency);
        evidence.bpf = Some(BpfEvidence {
            observed_ns: nanoseconds(ended.observed),
            visits_ns: nanoseconds(ended.whole),
            checks,
            lost,
        });
        evidence.source = EvidenceSource::Bpf;
    }

    /// What both sources counted as done while the programs counted; `None` where sysfs cannot be read.
    fn check(&self, ended: &Ended, carrier: &Carrier) -> Option<CrossCheck> {
        let of = |stats: &[Option<DiskStat>]| stats.get(carrier.index).copied().flatten();
        let (first, last) = (of(&ended.stats[0])?, of(&ended.stats[1])?);
        let its = &ended.counted.devices[carrier.index];
        Some(CrossCheck {
            target: carrier.target,
            device: self.names[carrier.index].clone(),
            // What was passed over ended, too, but for what is in flight at this moment.
            bpf: its.completed + its.missed().saturating_sub(last.in_flight) + its.unseen + its.empty,
            sysfs: completions(&last).saturating_sub(completions(&first)),
        })
    }
}

/// All requests that a device completed.
fn completions(stat: &DiskStat) -> u64 {
    let rest = [stat.discard_ios, stat.flush_ios].into_iter().flatten();
    rest.fold(stat.read_ios.saturating_add(stat.write_ios), u64::saturating_add)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Read and write requests by exact size.
fn requests_of(counted: &Counted, carrier: &Carrier, name: &str) -> Vec<Request> {
    let mut found = Vec::new();
    for (kind, &count) in counted.requests.iter().filter(|(kind, _)| kind.device == carrier.index) {
        let Some(op) = direction(kind.op) else { continue };
        let one =
            Request { target: carrier.target, device: name.to_owned(), op, bytes: kind.bytes.into(), count };
        one.add_to(&mut found);
    }
    found
}

/// Reading and writing bios by system call and task; those without data, which only ask for a flush, are left out, and the flush is
/// counted as a request. Those that may be repeated because they must not wait are counted apart.
fn bios_of(counted: &Counted, carrier: &Carrier, name: &str) -> Vec<Bio> {
    let mut found = Vec::new();
    for (origin, &[count, bytes]) in counted.bios.iter().filter(|(origin, _)| origin.device == carrier.index)
    {
        let Some(op) = direction(origin.op).filter(|_| bytes > 0) else { continue };
        let task = match origin.task {
            Task::This => "this",
            Task::Other => "other",
            Task::Kernel => "kernel",
        };
        let one = Bio {
            target: carrier.target,
            device: name.to_owned(),
            op,
            syscall: origin.system_call.map(system_call_name),
            task: task.to_owned(),
            nowait: origin.flags.is_nowait(),
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
        let is_write = call.is_some_and(|call| WRITES.contains(&call.as_str()));
        origin.device == device && origin.op == BlockOp::Read && origin.task == Task::This && is_write
    };
    counted.bios.iter().filter(|(origin, _)| is_one(origin)).map(|(_, [count, _])| count).sum()
}

fn direction(op: BlockOp) -> Option<Op> {
    match op {
        BlockOp::Read => Some(Op::Read),
        BlockOp::Write => Some(Op::Write),
        BlockOp::Flush | BlockOp::Discard | BlockOp::Other(_) => None,
    }
}

/// The name of a system call of this architecture; its number where it is not known.
pub fn system_call_name(number: u32) -> String {
    let known = Sysno::new(number as usize);
    known.map_or_else(|| number.to_string(), |call| call.name().to_owned())
}

/// The disk of a partition.
fn disk_of_partition(device: &Watched) -> Option<String> {
    let directory = device.directory();
    directory.join("partition").exists().then(|| directory.canonicalize().ok())??.parent().and_then(name_of)
}

/// What the programs must know of a device with this directory in sysfs; `None` if it is none.
fn block_device(directory: &Path) -> Option<BlockDevice> {
    let text = read_trimmed(&directory.join("dev"))?;
    let (major, minor) = text.split_once(':')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let is_partition = directory.join("partition").exists();
    let queues = directory.join(if is_partition { "../mq" } else { "mq" });
    let tags: Vec<u32> = fs::read_dir(queues)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|queue| read_trimmed(&queue.path().join("nr_tags"))?.parse().ok())
        .collect();
    let queues = u32::try_from(tags.len()).ok()?;
    Some(BlockDevice { number, queues, tags: tags.into_iter().max().unwrap_or(0) })
}

/// An error with its causes, in one line; what the kernel's verifier says at length is left out.
fn words_of(error: &BpfError) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        let more = more
            .lines()
            .next()
            .unwrap_or_default()
            .split("Verifier output")
            .next()
            .unwrap_or_default()
            .trim();
        if !words.contains(more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}
