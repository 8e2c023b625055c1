//! The observer of the running kernel: it reads the counters of the targets' devices and of the devices below them before,
//! after and many times during each visit, and what the kernel charged to the process; with privilege, BPF programs in the
//! block layer count beside them. It opens nothing for writing.

mod trust;

use crate::CountersError;
use crate::bpf::{Attachment, BlockLayer, BpfError};
use crate::last_look::{Awaited, LastLook, Sample, Samples};
use crate::limits::{controls, limits};
use crate::loop_files::{LoopWatch, loops_of};
use crate::process::{charged_between, read_process_io};
use crate::processor::{ProcessorSample, Processors};
use crate::sampler::{AllSeries, DeviceSeries, Sampled, Sampler};
use crate::series::Series;
use crate::split_parts::may_pass_over_parts;
use crate::stack::Stack;
use crate::sysfs::version_at;
use crate::visit::{DeviceCounts, DeviceVisit, Observer, VisitEvidence};
use crate::watched::{Watched, watched_devices};
use rdsk_model::{Clock, DiskStat, EvidenceSource, IoControl, Limit, ProcessIo, Target};
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
    /// Whether this kernel may not count all parts of what an array cuts.
    passes_over_parts: bool,
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
    block_layer: Result<BlockLayer, BpfError>,
    has_series: bool,
    visit: Option<Begun>,
    /// What held back other processes during the visit.
    held_back: HeldBack,
    last_look: LastLook,
    source: EvidenceSource,
    problems: Vec<String>,
    sampling_ns: u64,
    observed_ios: u64,
}

/// What control groups did to the I/O of processes.
#[derive(Default)]
struct HeldBack {
    limits: Vec<Limit>,
    controls: Vec<IoControl>,
}

fn add_new<T: PartialEq>(noted: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !noted.contains(&item) {
            noted.push(item);
        }
    }
}

type Counts = Result<DeviceCounts, CountersError>;

struct Begun {
    first: Moment,
    sampler: Sampler,
    /// Which devices the sampler watches, by index.
    sampled: Vec<usize>,
    /// When the last I/O had returned.
    io: Option<Moment>,
}

/// What everything showed at the begin of a visit or at the end of its I/O.
struct Moment {
    at_ns: u64,
    samples: Samples,
    process: Option<ProcessIo>,
    processor: Option<(u64, ProcessorSample)>,
}

impl KernelObserver {
    /// Observes the devices of `targets` through `sys` and `proc` (`/sys` and `/proc`); times come from `clock`.
    pub fn new(targets: &[Target], sys: &Path, proc: &Path, clock: Arc<dyn Clock>) -> Self {
        let process = proc.join("self");
        let thread = Some(proc.join("thread-self")).filter(|thread| thread.exists());
        let thread = thread.unwrap_or_else(|| process.clone());
        let stacks: Vec<Stack> = targets.iter().filter_map(|target| Stack::read(target, sys)).collect();
        let loops: Vec<LoopWatch> = stacks
            .iter()
            .filter_map(|stack| Some((targets.iter().find(|target| target.index == stack.target)?, stack)))
            .flat_map(|(target, stack)| loops_of(target, stack, sys, proc))
            .collect();
        let mut observer = Self {
            targets: targets.to_vec(),
            devices: watched_devices(targets, &stacks, &loops, sys),
            stacks,
            passes_over_parts: may_pass_over_parts(version_at(proc)),
            loops,
            sys: sys.to_owned(),
            processors: Processors::new(proc, &thread),
            thread,
            process,
            clock,
            sample_width_ns: DEFAULT_SAMPLE_WIDTH_NS,
            block_layer: Err(BpfError::NotAskedFor),
            has_series: true,
            visit: None,
            held_back: HeldBack::default(),
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
        self.block_layer = BlockLayer::load(&self.devices, &self.stacks, attachment);
        self
    }

    /// Why there is no evidence from BPF; `None` where there is.
    pub fn why_no_bpf(&self) -> Option<&BpfError> {
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
            self.note(problem.to_string());
        }
        samples
    }

    /// Samples that hold the last request of a visit.
    fn last_samples(&mut self, first: &Samples, awaited: Awaited) -> Samples {
        let mut last_look = std::mem::take(&mut self.last_look);
        let samples = last_look.settled(first, awaited, || self.samples());
        self.last_look = last_look;
        samples
    }

    /// The processors now, and the time just before.
    fn read_processors(&self) -> Option<(u64, ProcessorSample)> {
        let now_ns = self.clock.now_ns();
        Some((now_ns, self.processors.read()?))
    }

    /// The thread for samples during a visit, if there is anything to sample.
    fn ready_sampler(&self) -> Sampler {
        if self.has_series && self.devices.iter().any(|device| device.file.is_some()) {
            Sampler::ready(self.sample_width_ns, Arc::clone(&self.clock))
        } else {
            Sampler::none()
        }
    }

    /// The devices to sample during a visit that began with `first`, by index, and what is needed for it.
    fn sampled(&self, first: &Samples) -> (Vec<usize>, Vec<Sampled>) {
        let of_each = self.devices.iter().zip(first).enumerate();
        let readable = of_each.filter_map(|(index, (device, sample))| {
            let first = *sample.as_ref().ok()?;
            Some((index, Sampled { file: device.file.clone()?, first }))
        });
        readable.unzip()
    }

    /// Adds what holds back another process, while it runs, to the evidence of this visit: a command may enter a group of its own.
    pub fn note_limits_of(&mut self, process: &Path) {
        let carriers: Vec<(u32, String)> = self.loops.iter().filter_map(LoopWatch::carrier).collect();
        let limits = limits(process, &self.sys, &self.targets, &self.stacks, &carriers);
        let controls = controls(process, &self.sys, &self.targets, &self.stacks, &carriers);
        add_new(&mut self.held_back.limits, limits);
        add_new(&mut self.held_back.controls, controls);
    }

    /// Records a problem once; there are at most as many as devices times kinds of problems.
    fn note(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Records why this visit has no evidence from BPF, if it has none.
    fn note_of_bpf(&mut self, done: Result<(), BpfError>) {
        if let Err(error) = done {
            self.note(error.words());
        }
    }

    /// Assembles the parts of a visit.
    fn evidence(
        &mut self,
        begun: Begun,
        all_series: AllSeries,
        io: &Moment,
        last: &Samples,
        end_ns: u64,
    ) -> VisitEvidence {
        let Begun { first: Moment { at_ns: begin_ns, samples: first, process, processor }, sampled, .. } =
            begun;
        let AllSeries { devices: device_series, cost_ns } = all_series;
        self.sampling_ns = self.sampling_ns.saturating_add(cost_ns);
        let mut series_of: Vec<Option<DeviceSeries>> = self.devices.iter().map(|_| None).collect();
        for (index, series) in sampled.into_iter().zip(device_series) {
            series_of[index] = Some(series);
        }
        let interval_ns = io.at_ns.saturating_sub(begin_ns);
        let raw = (0..self.devices.len())
            .map(|index| {
                self.devices[index].counts([&first[index], &io.samples[index], &last[index]], interval_ns)
            })
            .collect();
        let counts = self.trusted(raw);
        let mut devices = Vec::with_capacity(self.devices.len());
        for ((device, counts), series) in self.devices.iter().zip(counts).zip(series_of) {
            let (series, in_flight_max) = match series {
                Some(sampled) => (sampled.series, sampled.in_flight_max),
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
        let may_count = |(device, sample): (&Watched, &Sample)| {
            device.own && sample.is_ok() && device.why_zero_is_unknown().is_none()
        };
        let is_counted = self.note_uncounted(&devices) || self.devices.iter().zip(&first).any(may_count);
        self.source = source_of(is_counted, process);
        let process = match (process, io.process) {
            (Some(before), Some(after)) => charged_between(&before, &after),
            _ => ProcessIo::default(),
        };
        let thread = self.thread.clone();
        self.note_limits_of(&thread);
        let HeldBack { limits, controls } = std::mem::take(&mut self.held_back);
        let stacks = self.stacks.clone();
        let processor = processor
            .zip(io.processor.as_ref())
            .map(|((from_ns, before), (to_ns, after))| before.until(after, to_ns.saturating_sub(from_ns)));
        let loops = self.loops.iter_mut().map(|watch| watch.end(self.clock.as_ref())).collect();
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
}

impl Observer for KernelObserver {
    fn wait_until_idle(&mut self) {
        let mut last_look = std::mem::take(&mut self.last_look);
        last_look.drained(|| self.samples());
        self.last_look = last_look;
    }

    fn follow(&mut self, follows: bool) {
        self.block_layer.iter_mut().for_each(|layer| layer.follow(follows));
    }

    fn begin(&mut self) {
        self.visit = None;
        self.held_back = HeldBack::default();
        self.loops.iter_mut().for_each(LoopWatch::begin);
        // What takes time comes first: others' I/O meanwhile is not of the interval.
        let prepared = self.block_layer.as_mut().map_or(Ok(()), BlockLayer::prepare);
        self.note_of_bpf(prepared);
        // Requests that are still in flight, such as readahead of the last visit, do not belong to this visit.
        self.wait_until_idle();
        let sampler = self.ready_sampler();
        let begun = self.block_layer.as_mut().map_or(Ok(()), BlockLayer::begin);
        self.note_of_bpf(begun);
        let process = read_process_io(&self.process).ok();
        let processor = self.read_processors();
        let samples = self.samples();
        let at_ns = self.clock.now_ns();
        let (sampled, watched) = self.sampled(&samples);
        sampler.begin(watched, at_ns);
        let first = Moment { at_ns, samples, process, processor };
        self.visit = Some(Begun { first, sampler, sampled, io: None });
    }

    fn end_io(&mut self) {
        let at_ns = self.clock.now_ns();
        let process = read_process_io(&self.process).ok();
        let processor = self.read_processors();
        let Some(mut visit) = self.visit.take() else { return };
        let samples = self.last_samples(&visit.first.samples, Awaited::Reads);
        visit.io = Some(Moment { at_ns, samples, process, processor });
        self.visit = Some(visit);
        self.loops.iter_mut().for_each(LoopWatch::end_io);
    }

    fn end(&mut self) -> VisitEvidence {
        let Some(mut begun) = self.visit.take() else { return VisitEvidence::none() };
        let process = read_process_io(&self.process).ok();
        // Before the last look, so that no sample is later than it.
        let mut series = begun.sampler.stop();
        // The time until everything is stable is over, so that writes may be waited for.
        let last = self.last_samples(&begun.first.samples, Awaited::All);
        let end_ns = self.clock.now_ns();
        let ends: Vec<Option<DiskStat>> =
            begun.sampled.iter().map(|&index| last[index].as_ref().ok().copied()).collect();
        series.end_with(&ends, end_ns);
        // A visit that failed before its I/O ended has no separate end of I/O.
        let io = begun.io.take().unwrap_or_else(|| Moment {
            at_ns: end_ns,
            samples: last.clone(),
            process,
            processor: self.read_processors(),
        });
        let before = self.source;
        let mut evidence = self.evidence(begun, series, &io, &last, end_ns);
        let ended = self.block_layer.as_mut().map_or(Ok(()), |layer| layer.end(&mut evidence));
        self.note_of_bpf(ended);
        // A visit that was not to be followed takes nothing from those before.
        self.source = self.source.min(if evidence.is_left_out { before } else { evidence.source });
        evidence
    }

    fn describe(&self) -> rdsk_model::ObserverFacts {
        let mut reasons: Vec<String> = Vec::new();
        if let (EvidenceSource::Sysfs, Some(why)) = (self.source, self.why_no_bpf()) {
            reasons.push(why.words_and_hint());
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
