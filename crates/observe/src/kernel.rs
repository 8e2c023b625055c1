//! The observer of the running kernel: it reads the counters of the targets' devices and of the devices below them before,
//! after and many times during each visit, and what the kernel charged to the process; with privilege, BPF programs in the
//! block layer count beside them. It opens nothing for writing.

use crate::bpf::{Attachment, BlockLayer, Unavailable};
use crate::counted::counted;
use crate::last_look::{LastLook, Samples, settled};
use crate::limits::{controls, limits};
use crate::loop_files::{LoopWatch, loops_of};
use crate::process::{charged_between, read_process_io};
use crate::processor::{ProcessorSample, Processors};
use crate::sampler::{AllSeries, DeviceSeries, Sampled, Sampler};
use crate::series::Series;
use crate::stack::Stack;
use crate::visit::{DeviceCounts, DeviceVisit, Observer, VisitEvidence};
use crate::watched::{Watched, watched_devices};
use rdsk_model::{Clock, DiskStat, EvidenceSource, ProcessIo, Target};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Twenty samples a second: enough to draw a second of writing, and below 0.1 % of a processor.
pub const DEFAULT_SAMPLE_WIDTH_NS: u64 = 50_000_000;

/// Counters from `/sys` and `/proc`.
pub struct KernelObserver {
    targets: Vec<Target>,
    devices: Vec<Watched>,
    /// The stack of each target that has a device.
    stacks: Vec<Stack>,
    /// The loop devices in these stacks.
    loops: Vec<LoopWatch>,
    sys: PathBuf,
    processors: Processors,
    process: PathBuf,
    /// The thread that issues or starts the I/O. In version 1, a thread can be in another group than its
    /// process.
    thread: PathBuf,
    clock: Arc<dyn Clock>,
    sample_width_ns: u64,
    /// The BPF programs, or why there are none.
    block_layer: Result<BlockLayer, Unavailable>,
    has_series: bool,
    visit: Option<Begun>,
    last_look: LastLook,
    source: EvidenceSource,
    problems: Vec<String>,
    sampling_ns: u64,
    observed_ios: u64,
}

type Counts = Result<DeviceCounts, String>;

struct Begun {
    begin_ns: u64,
    first: Samples,
    process: Option<ProcessIo>,
    processor: Option<ProcessorSample>,
    sampler: Sampler,
    /// Which devices the sampler watches, by index.
    sampled: Vec<usize>,
    io: Option<IoEnd>,
}

struct IoEnd {
    end_ns: u64,
    samples: Samples,
    process: Option<ProcessIo>,
    processor: Option<ProcessorSample>,
}

impl KernelObserver {
    /// Observes the devices of `targets` through `sys` and `proc` (`/sys` and `/proc`); times come from `clock`.
    pub fn new(targets: &[Target], sys: &Path, proc: &Path, clock: Arc<dyn Clock>) -> Self {
        let process = proc.join("self");
        let thread = Some(proc.join("thread-self")).filter(|thread| thread.exists());
        let thread = thread.unwrap_or_else(|| process.clone());
        let stacks: Vec<Stack> = targets.iter().filter_map(|target| Stack::of(target, sys)).collect();
        let loops: Vec<LoopWatch> = stacks
            .iter()
            .filter_map(|stack| Some((targets.iter().find(|target| target.index == stack.target)?, stack)))
            .flat_map(|(target, stack)| loops_of(target, stack, sys, proc))
            .collect();
        let mut observer = Self {
            targets: targets.to_vec(),
            devices: watched_devices(targets, &stacks, &loops, sys),
            stacks,
            loops,
            sys: sys.to_owned(),
            processors: Processors::of(proc, &thread),
            thread,
            process,
            clock,
            sample_width_ns: DEFAULT_SAMPLE_WIDTH_NS,
            block_layer: Err(Unavailable::because("BPF was not asked for")),
            has_series: true,
            visit: None,
            last_look: LastLook::default(),
            source: EvidenceSource::None,
            problems: Vec::new(),
            sampling_ns: 0,
            observed_ios: 0,
        };
        for target in targets.iter().filter(|target| target.device.is_none()) {
            let on = target.filesystem.as_ref().map_or(String::new(), |on| format!(" ({})", on.kind));
            observer.note(format!("no block device is known under target {}{on}", target.index));
        }
        let samples = observer.samples();
        let may_count = observer.devices.iter().zip(&samples).any(|(device, sample)| {
            let stands_alone = || observer.stacks.iter().all(|stack| !stack.below.contains_key(&device.name));
            sample.is_ok() && (device.why_zero_is_unknown().is_none() || !stands_alone())
        });
        observer.source = source_of(may_count, read_process_io(&observer.process).ok());
        observer
    }

    /// Loads the BPF programs for its devices, if the kernel permits it; otherwise says why not.
    pub fn with_bpf(mut self, attachment: Attachment) -> Self {
        self.block_layer = BlockLayer::of(&self.devices, &self.stacks, attachment);
        self
    }

    /// Why there is no evidence from BPF; `None` where there is.
    pub fn why_no_bpf(&self) -> Option<&Unavailable> {
        self.block_layer.as_ref().err()
    }

    /// Sets the time between samples, in nanoseconds.
    pub fn with_sample_width_ns(mut self, sample_width_ns: u64) -> Self {
        self.sample_width_ns = sample_width_ns.max(1);
        self
    }

    /// Without samples during a visit, and so without the thread that takes them. A process of one thread makes its system calls
    /// quicker, since the kernel need not count who uses an open file.
    pub fn without_series(mut self) -> Self {
        self.has_series = false;
        self
    }

    fn samples(&mut self) -> Samples {
        let samples: Samples = self.devices.iter_mut().map(Watched::read).collect();
        for problem in samples.iter().filter_map(|sample| sample.as_ref().err()) {
            self.note(problem.clone());
        }
        samples
    }

    /// Samples that hold the last request of a visit.
    fn last_samples(&mut self, visit: &Begun) -> Samples {
        let mut last_look = std::mem::take(&mut self.last_look);
        let samples = last_look.settled(&visit.first, || self.samples());
        self.last_look = last_look;
        samples
    }

    /// Records a problem once; there are at most as many as devices times kinds of problems.
    fn note(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Assembles the parts of a visit.
    fn evidence(&mut self, begun: Begun, io: &IoEnd, last: &Samples, end_ns: u64) -> VisitEvidence {
        let Begun { begin_ns, first, process, processor, sampler, sampled, io: _ } = begun;
        let ends: Vec<Option<DiskStat>> =
            sampled.iter().map(|&index| last[index].as_ref().ok().copied()).collect();
        let AllSeries { devices: seen, cost_ns } = sampler.finish(end_ns, &ends);
        self.sampling_ns = self.sampling_ns.saturating_add(cost_ns);
        let mut series_of: Vec<Option<DeviceSeries>> = self.devices.iter().map(|_| None).collect();
        for (index, one) in sampled.into_iter().zip(seen) {
            series_of[index] = Some(one);
        }
        let interval_ns = io.end_ns.saturating_sub(begin_ns);
        let raw = (0..self.devices.len())
            .map(|index| {
                self.devices[index].counts([&first[index], &io.samples[index], &last[index]], interval_ns)
            })
            .collect();
        let counts = self.trusted(raw);
        let mut devices = Vec::with_capacity(self.devices.len());
        for ((device, counts), seen) in self.devices.iter().zip(counts).zip(series_of) {
            let (series, in_flight_max) = match seen {
                Some(seen) => (seen.series, seen.in_flight_max),
                None => (Series::new(self.sample_width_ns), None),
            };
            if let (true, Ok(counts)) = (device.own, &counts) {
                let io = counts.during_io.diskstat;
                let ios = io.read_ios.saturating_add(io.write_ios);
                self.observed_ios = self.observed_ios.saturating_add(ios);
            }
            let name = device.name.clone();
            devices.push(DeviceVisit { target: device.target, name, counts, in_flight_max, series });
        }
        let may_count = |(device, sample): (&Watched, &Result<DiskStat, String>)| {
            device.own && sample.is_ok() && device.why_zero_is_unknown().is_none()
        };
        let is_counted = self.note_uncounted(&devices) || self.devices.iter().zip(&first).any(may_count);
        self.source = source_of(is_counted, process);
        let process = match (process, io.process) {
            (Some(before), Some(after)) => charged_between(&before, &after),
            _ => ProcessIo::default(),
        };
        let carriers: Vec<(u32, String)> = self.loops.iter().filter_map(LoopWatch::carrier).collect();
        let limits = limits(&self.thread, &self.sys, &self.targets, &self.stacks, &carriers);
        let controls = controls(&self.thread, &self.sys, &self.targets, &self.stacks, &carriers);
        let stacks = self.stacks.clone();
        let processor =
            processor.zip(io.processor.as_ref()).map(|(before, after)| before.until(after, interval_ns));
        let loops = self.loops.iter_mut().map(|one| one.end(self.clock.as_ref())).collect();
        VisitEvidence {
            source: self.source,
            elapsed_ns: end_ns.saturating_sub(begin_ns),
            devices,
            stacks,
            process,
            limits,
            controls,
            loops,
            processor,
            ..VisitEvidence::none()
        }
    }

    /// The counts of all devices, except counters that did not move although that proves nothing. It proves that there was no
    /// I/O if the same counters moved before, or if the counters below did not move either.
    fn trusted(&mut self, mut raw: Vec<Counts>) -> Vec<Counts> {
        for (device, counts) in self.devices.iter_mut().zip(&raw) {
            if counts.as_ref().is_ok_and(|counts| !counts.until_stable.is_idle()) {
                device.has_moved = true;
            }
        }
        let doubts: Vec<(usize, String)> = self
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
        raw
    }

    /// Whether the devices below one did nothing, according to counters that can be trusted.
    fn was_quiet_below(&self, device: &Watched, raw: &[Counts]) -> bool {
        let stack = self.stacks.iter().find(|stack| stack.target == device.target);
        let Some((stack, lower)) = stack.and_then(|stack| Some((stack, stack.below.get(&device.name)?)))
        else {
            return false;
        };
        let of = |name: &str| {
            let mut all = self.devices.iter().zip(raw);
            all.find(|(known, _)| known.target == device.target && known.name == name)
        };
        let counts = |name: &str| {
            of(name).is_some_and(|(known, counts)| counts.is_ok() && known.why_zero_is_unknown().is_none())
        };
        let below = Stack { tops: lower.names.clone(), over: None, ..stack.clone() };
        counted(&below, &counts).is_some_and(|counted| {
            let mut quiet = counted.devices.iter().filter_map(|name| of(name)?.1.as_ref().ok());
            quiet.all(|counts| counts.until_stable.is_idle())
        })
    }

    /// Records why devices count nothing, except those that devices below represent. Returns whether any target is counted.
    fn note_uncounted(&mut self, devices: &[DeviceVisit]) -> bool {
        let counts = |target: u32, name: &str| {
            let mut known = devices.iter().filter(|device| device.target == target);
            known.any(|device| device.name == name && device.counts.is_ok())
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
                self.note(problem.clone());
            }
        }
        !counted.is_empty()
    }
}

impl Observer for KernelObserver {
    fn follow(&mut self, follows: bool) {
        self.block_layer.iter_mut().for_each(|layer| layer.follow(follows));
    }

    fn begin(&mut self) {
        self.visit = None;
        self.loops.iter_mut().for_each(LoopWatch::begin);
        // Requests that are still in flight, such as readahead of the last visit, do not belong to this visit.
        let first = settled(|| self.samples());
        let process = read_process_io(&self.process).ok();
        let mut sampled = Vec::new();
        let mut watched = Vec::new();
        for (index, (device, sample)) in self.devices.iter().zip(&first).enumerate() {
            if let (true, Some(file), Ok(first)) = (self.has_series, device.file.clone(), sample) {
                sampled.push(index);
                watched.push(Sampled { file, first: *first });
            }
        }
        let start_ns = self.clock.now_ns();
        let sampler = Sampler::start(watched, start_ns, self.sample_width_ns, Arc::clone(&self.clock));
        // Starting a thread takes time without any of our I/O, so the interval begins afterwards.
        let processor = self.processors.read();
        let begun = self.block_layer.as_mut().map_or(Ok(()), BlockLayer::begin);
        begun.err().into_iter().for_each(|problem| self.note(problem));
        let begin_ns = self.clock.now_ns();
        self.visit = Some(Begun { begin_ns, first, process, processor, sampler, sampled, io: None });
    }

    fn end_io(&mut self) {
        let end_ns = self.clock.now_ns();
        let process = read_process_io(&self.process).ok();
        let processor = self.processors.read();
        let Some(mut visit) = self.visit.take() else { return };
        let samples = self.last_samples(&visit);
        visit.io = Some(IoEnd { end_ns, samples, process, processor });
        self.visit = Some(visit);
        self.loops.iter_mut().for_each(LoopWatch::end_io);
    }

    fn end(&mut self) -> VisitEvidence {
        let Some(mut begun) = self.visit.take() else { return VisitEvidence::none() };
        let process = read_process_io(&self.process).ok();
        let last = self.last_samples(&begun);
        let end_ns = self.clock.now_ns();
        // A visit that failed before its I/O ended has no separate end of I/O.
        let io = begun.io.take().unwrap_or_else(|| IoEnd {
            end_ns,
            samples: last.clone(),
            process,
            processor: self.processors.read(),
        });
        let before = self.source;
        let mut evidence = self.evidence(begun, &io, &last, end_ns);
        let ended = self.block_layer.as_mut().map_or(Ok(()), |layer| layer.end(&mut evidence));
        ended.err().into_iter().for_each(|problem| self.note(problem));
        // A visit that was not to be followed takes nothing from those before.
        self.source = self.source.min(if evidence.is_left_out { before } else { evidence.source });
        evidence
    }

    fn describe(&self) -> rdsk_model::ObserverFacts {
        let mut reasons: Vec<String> = Vec::new();
        if let (EvidenceSource::Sysfs, Some(why)) = (self.source, self.why_no_bpf()) {
            reasons.push(why.words());
        }
        if self.source == EvidenceSource::Bpf {
            reasons.extend(self.block_layer.iter().flat_map(BlockLayer::limits));
        }
        reasons.extend(self.problems.iter().cloned());
        if self.source == EvidenceSource::None {
            reasons.push("the process's own counters (/proc/self/io) cannot be read".into());
        }
        let (cost_ns, ios) = (self.sampling_ns, self.observed_ios);
        rdsk_model::ObserverFacts {
            source: self.source,
            why_not_higher: (!reasons.is_empty()).then(|| reasons.join("; ")),
            lost_events: self.block_layer.as_ref().map_or(0, BlockLayer::lost),
            cost_ns_per_io: (ios > 0 && cost_ns > 0).then(|| cost_ns as f64 / ios as f64),
        }
    }
}

fn source_of(is_counted: bool, process: Option<ProcessIo>) -> EvidenceSource {
    match (is_counted, process) {
        (true, _) => EvidenceSource::Sysfs,
        (false, Some(_)) => EvidenceSource::Process,
        (false, None) => EvidenceSource::None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
