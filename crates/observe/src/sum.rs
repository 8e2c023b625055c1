//! The evidence of a cell from the evidence of its visits: counters add, histograms merge, and series are joined.
//! If a value is unknown for one visit, it is unknown for the sum.

use crate::counted::counted;
use crate::price::Price;
use crate::process::charged_in_both;
use crate::series::Series;
use crate::stack::Stack;
use crate::visit::{DeviceCounts, DeviceVisit, VisitEvidence};
use rdsk_model::{
    Bio, BpfEvidence, DeviceEvidence, Evidence, EvidenceSource, IntervalCounters, IoControl, Latency, Limit,
    LoopFile, ProcessIo, ProcessorUse, Request,
};
use rdsk_stats::Histogram;

const NS_PER_MS: u64 = 1_000_000;

/// Visits added so far. Start with [`EvidenceSum::default`].
#[derive(Clone, Debug, Default)]
pub struct EvidenceSum {
    visits: u32,
    /// Those that were followed.
    followed: Vec<u32>,
    price: Price,
    source: Option<EvidenceSource>,
    devices: Vec<DeviceSum>,
    process: ProcessIo,
    limits: Vec<Limit>,
    controls: Vec<IoControl>,
    stacks: Vec<Stack>,
    requests: Vec<Request>,
    bios: Vec<Bio>,
    device_latency: Option<Histogram>,
    bpf: Option<BpfEvidence>,
    problems: Vec<String>,
    loops: Vec<LoopFile>,
    processor: Vec<Option<ProcessorUse>>,
}

#[derive(Clone, Debug)]
struct DeviceSum {
    target: u32,
    name: String,
    /// Visits that knew this device; fewer than all means that the sum is unknown.
    visits: u32,
    counts: Option<DeviceCounts>,
    /// What each visit counted during its I/O; used only with `counts`.
    of_visits: Vec<IntervalCounters>,
    in_flight_max: Option<u64>,
    series: Series,
}

/// Adds what is not known yet.
fn add_new<T: PartialEq>(known: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

impl EvidenceSum {
    /// Whether the next visit may be followed bio by bio, so that all of this takes at most 0.5 % of the time of the visits.
    pub fn may_follow(&self) -> bool {
        self.price.allows_one_more()
    }

    /// Adds one visit.
    pub fn add(&mut self, visit: VisitEvidence) {
        self.process =
            if self.visits == 0 { visit.process } else { charged_in_both(&self.process, &visit.process) };
        self.price.add(&visit);
        self.visits += 1;
        let is_left_out = visit.is_left_out;
        if is_left_out {
            // The best that is known of such a visit takes nothing from the sum; less does.
            let is_weak = visit.source > EvidenceSource::Sysfs;
            self.source = self.source.map(|source| if is_weak { source.max(visit.source) } else { source });
        } else {
            self.add_followed(&visit);
        }
        visit.requests.into_iter().for_each(|request| request.add_to(&mut self.requests));
        visit.bios.into_iter().for_each(|bio| bio.add_to(&mut self.bios));
        for device in visit.devices {
            self.add_device(device, is_left_out);
        }
        visit.loops.into_iter().for_each(|one| add_loop(&mut self.loops, one));
        self.processor.push(visit.processor);
        for stack in visit.stacks {
            if !self.stacks.iter().any(|known| known.target == stack.target) {
                self.stacks.push(stack);
            }
        }
        add_new(&mut self.limits, visit.limits);
        add_new(&mut self.controls, visit.controls);
    }

    /// What a visit tells that was not left out. It is the sum's only while each such visit tells it.
    fn add_followed(&mut self, visit: &VisitEvidence) {
        // The best source comes first in `EvidenceSource`, so the larger one is weaker; the sum has the weakest source of
        // its parts.
        self.source = Some(self.source.map_or(visit.source, |source| source.max(visit.source)));
        let is_first = self.followed.is_empty();
        self.followed.push(self.visits - 1);
        self.device_latency = match (self.device_latency.take(), &visit.device_latency) {
            (Some(mut sum), Some(more)) => {
                sum.merge(more);
                Some(sum)
            }
            (None, Some(first)) if is_first => Some(first.clone()),
            _ => None,
        };
        self.bpf = match (self.bpf.take(), &visit.bpf) {
            (Some(mut sum), Some(more)) => {
                sum.add(more.clone());
                Some(sum)
            }
            (None, Some(first)) if is_first => Some(first.clone()),
            _ => None,
        };
    }

    /// Why the counters of some devices are missing from the sum: one line each, without duplicates.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The evidence of all visits. An observer does not know `page_cache` and `extents`, which stay `None`.
    pub fn finish(self) -> Evidence {
        let visits = self.visits;
        let is_part = self.followed.len() < visits as usize;
        let device: Vec<DeviceEvidence> =
            self.devices.into_iter().map(|device| device.finish(visits)).collect();
        let counted = |stack: &Stack| {
            let counts = |name: &str| {
                let mut known = device.iter().filter(|device| device.target == stack.target);
                known.any(|device| device.name == name && device.read_bytes.is_some())
            };
            counted(stack, &counts)
        };
        // Unknown for one visit is unknown for all.
        let processor: Vec<ProcessorUse> =
            self.processor.into_iter().collect::<Option<Vec<_>>>().unwrap_or_default();
        Evidence {
            source: self.source.unwrap_or(EvidenceSource::None),
            counted: self.stacks.iter().filter_map(counted).collect(),
            device,
            requests: self.requests,
            bios: self.bios,
            device_latency_ns: self
                .device_latency
                .filter(|timed| timed.count() > 0)
                .as_ref()
                .map(Latency::from),
            bpf: self.bpf.map(|bpf| BpfEvidence { followed: is_part.then_some(self.followed), ..bpf }),
            process: self.process,
            limits: self.limits,
            controls: self.controls,
            loops: self.loops,
            processor: processor.iter().copied().reduce(|mut sum, more| {
                sum.add(&more);
                sum
            }),
            processor_visits: processor,
            ..Evidence::default()
        }
    }

    fn add_device(&mut self, visit: DeviceVisit, is_left_out: bool) {
        if let Err(why) = &visit.counts
            && !self.problems.contains(why)
        {
            self.problems.push(why.clone());
        }
        let known =
            self.devices.iter_mut().find(|device| device.target == visit.target && device.name == visit.name);
        let Some(sum) = known else {
            self.devices.push(DeviceSum {
                target: visit.target,
                name: visit.name,
                visits: 1,
                of_visits: visit.counts.iter().map(|counts| counts.during_io).collect(),
                counts: visit.counts.ok(),
                in_flight_max: visit.in_flight_max,
                series: visit.series,
            });
            return;
        };
        sum.visits += 1;
        sum.of_visits.extend(visit.counts.iter().map(|counts| counts.during_io));
        sum.counts = sum.counts.zip(visit.counts.ok()).map(|(mut counts, more)| {
            if is_left_out {
                counts.add_left_out(&more);
            } else {
                counts.add(&more);
            }
            counts
        });
        sum.in_flight_max = sum.in_flight_max.max(visit.in_flight_max);
        sum.series.append(&visit.series);
    }
}

/// Adds what a later visit saw of a backing file: its facts are those of the later one, the page cache is summed.
fn add_loop(loops: &mut Vec<LoopFile>, more: LoopFile) {
    let same = |known: &&mut LoopFile| (known.target, &known.device) == (more.target, &more.device);
    let Some(sum) = loops.iter_mut().find(same) else {
        loops.push(more);
        return;
    };
    let page_cache = sum.page_cache.zip(more.page_cache).map(|(sum, more)| sum.plus(more));
    *sum = LoopFile { page_cache, ..more };
}

impl DeviceSum {
    fn finish(self, visits: u32) -> DeviceEvidence {
        let Some(counts) = self.counts.filter(|_| self.visits == visits) else {
            return DeviceEvidence { target: self.target, name: self.name, ..DeviceEvidence::default() };
        };
        let DeviceCounts { until_stable, during_io, splits, waiting_ns, reads_caused_by_writes, deepest } =
            counts;
        let sampled = !self.series.slots().is_empty();
        DeviceEvidence {
            target: self.target,
            name: self.name,
            reads: Some(until_stable.read_ios),
            read_bytes: Some(until_stable.read_bytes()),
            writes: Some(until_stable.write_ios),
            write_bytes: Some(until_stable.write_bytes()),
            read_merges: Some(until_stable.read_merges),
            write_merges: Some(until_stable.write_merges),
            splits,
            flushes: until_stable.flush_ios,
            discards: until_stable.discard_ios,
            reads_caused_by_writes,
            in_flight_max: deepest.or_else(|| self.in_flight_max.max(least_peak(&during_io))),
            busy_ns: Some(until_stable.io_ticks_ms.saturating_mul(NS_PER_MS)),
            visits: self.of_visits,
            interval_ns: Some(during_io.interval_ns),
            diskstat: Some(during_io.diskstat),
            waiting_ns,
            in_flight_series: self.series.in_flight(),
            bytes_series: self.series.bytes(),
            series_width_ns: sampled.then(|| self.series.width_ns()),
        }
    }
}

/// The smallest maximum depth of queue and device together that is possible with the mean depth (`aqu-sz`) of this interval; `None` without an interval.
/// The time of flushes is left out, which this mean has from Linux 5.7 on: a write that needs a flush waits for it in flight, and they
/// are no two requests at a time. Twenty samples a second miss most peaks, and a peak below the mean would be impossible. The mean comes from times in whole
/// milliseconds, so a mean slightly above a whole number counts as that number.
fn least_peak(counters: &IntervalCounters) -> Option<u64> {
    const ROUNDING: f64 = 0.05;
    if counters.interval_ns == 0 {
        return None;
    }
    let stat = &counters.diskstat;
    let in_queue_ms = stat.time_in_queue_ms.saturating_sub(stat.flush_ticks_ms.unwrap_or(0));
    let in_queue_ns = in_queue_ms as f64 * NS_PER_MS as f64;
    let mean_depth = in_queue_ns / counters.interval_ns as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean depth is finite, not negative after max, and far below 2^53"
    )]
    let peak = (mean_depth - ROUNDING).max(0.0).ceil() as u64;
    Some(peak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::delta;
    use crate::diskstat::parse_stat;
    use proptest::prelude::*;
    use rdsk_model::DiskStat;

    fn visit(counts: Result<DeviceCounts, String>, process: ProcessIo) -> VisitEvidence {
        let series = Series::new(100);
        let device =
            DeviceVisit { target: 0, name: "loop9".to_owned(), counts, in_flight_max: Some(1), series };
        VisitEvidence {
            source: EvidenceSource::Sysfs,
            devices: vec![device],
            process,
            ..VisitEvidence::none()
        }
    }

    /// A visit with so many reads, each one request.
    fn counted_visit(reads: u64, source: EvidenceSource) -> VisitEvidence {
        let counts = DeviceCounts {
            until_stable: DiskStat { read_ios: reads, ..DiskStat::default() },
            splits: (source == EvidenceSource::Bpf).then_some(reads),
            reads_caused_by_writes: (source == EvidenceSource::Bpf).then_some(0),
            ..DeviceCounts::default()
        };
        VisitEvidence { source, ..visit(Ok(counts), ProcessIo::default()) }
    }

    fn followed_visit(reads: u64) -> VisitEvidence {
        let mut latency = Histogram::new();
        latency.record(reads);
        let bpf = BpfEvidence { observed_ns: 10, visits_ns: 10, ..BpfEvidence::default() };
        let request = Request {
            target: 0,
            device: "loop9".into(),
            op: rdsk_model::Op::Read,
            bytes: 4096,
            fua: false,
            count: reads,
        };
        VisitEvidence {
            requests: vec![request],
            device_latency: Some(latency),
            bpf: Some(bpf),
            ..counted_visit(reads, EvidenceSource::Bpf)
        }
    }

    #[test]
    fn what_was_left_out_leaves_the_rest_as_it_is() {
        let left_out = || VisitEvidence { is_left_out: true, ..counted_visit(1000, EvidenceSource::Sysfs) };
        let of = |visits: Vec<VisitEvidence>| {
            let mut sum = EvidenceSum::default();
            visits.into_iter().for_each(|visit| sum.add(visit));
            sum.finish()
        };
        let seen = of(vec![followed_visit(5), left_out(), followed_visit(7), left_out()]);
        let (bpf, device) = (seen.bpf.as_ref().unwrap(), &seen.device[0]);
        assert_eq!((seen.source, bpf.followed.as_deref()), (EvidenceSource::Bpf, Some(&[0, 2][..])));
        assert_eq!((bpf.visits_ns, seen.requests[0].count), (20, 12));
        assert_eq!(seen.device_latency_ns.as_ref().unwrap().count, 2);
        assert_eq!(
            (device.reads, device.splits, device.reads_caused_by_writes),
            (Some(2012), Some(12), Some(0)),
            "sysfs counts in all of them"
        );
        let weak = VisitEvidence { is_left_out: true, ..counted_visit(1, EvidenceSource::Process) };
        assert_eq!(of(vec![followed_visit(5), weak]).source, EvidenceSource::Process);
        assert_eq!(of(vec![followed_visit(5), followed_visit(7)]).bpf.unwrap().followed, None, "all of them");
        // A visit that was to be followed and could not be is another matter: then nothing is sure.
        let failed = of(vec![followed_visit(5), left_out(), counted_visit(7, EvidenceSource::Sysfs)]);
        assert_eq!(
            (failed.source, failed.bpf, failed.device_latency_ns),
            (EvidenceSource::Sysfs, None, None)
        );
        assert_eq!(failed.device[0].splits, None);
    }

    fn between(before: &DiskStat, after: &DiskStat, interval_ns: u64) -> VisitEvidence {
        let grown = delta(before, after).unwrap();
        let during_io = IntervalCounters { interval_ns, diskstat: grown };
        let counts = DeviceCounts { until_stable: grown, during_io, ..DeviceCounts::default() };
        let process = ProcessIo { read_bytes: Some(grown.read_bytes()), write_bytes: None };
        visit(Ok(counts), process)
    }

    #[test]
    fn the_peak_depth_is_never_below_the_mean() {
        let with_flushes = |time_in_queue_ms: u64, flush_ticks_ms: Option<u64>| {
            let delta = DiskStat { read_ios: 5, time_in_queue_ms, flush_ticks_ms, ..DiskStat::default() };
            let counts = DeviceCounts {
                until_stable: delta,
                during_io: IntervalCounters { interval_ns: 1_000 * NS_PER_MS, diskstat: delta },
                ..DeviceCounts::default()
            };
            let mut sum = EvidenceSum::default();
            sum.add(visit(Ok(counts), ProcessIo::default()));
            sum.finish().device[0].in_flight_max
        };
        let peak = |time_in_queue_ms: u64| with_flushes(time_in_queue_ms, None);
        // The samples of `visit` saw one request in flight.
        assert_eq!([peak(300), peak(1_000), peak(1_030), peak(2_490)], [Some(1), Some(1), Some(1), Some(3)]);
        // Durable writes one by one: each is in flight for its own time and that of its flush, which the kernel counts apart, too.
        assert_eq!(with_flushes(1_900, Some(950)), Some(1));
    }

    /// The mean of `aqu-sz` holds what waits before the device, and so may samples; what BPF saw of all visits is the device's.
    #[test]
    fn the_deepest_queue_is_that_of_the_device_where_all_visits_were_timed() {
        let deepest_of = |visits: &[Option<u64>]| {
            let mut sum = EvidenceSum::default();
            for &deepest in visits {
                let delta = DiskStat { read_ios: 5, time_in_queue_ms: 8_000, ..DiskStat::default() };
                let during_io = IntervalCounters { interval_ns: 1_000 * NS_PER_MS, diskstat: delta };
                let counts =
                    DeviceCounts { until_stable: delta, during_io, deepest, ..DeviceCounts::default() };
                let is_left_out = deepest.is_none();
                sum.add(VisitEvidence { is_left_out, ..visit(Ok(counts), ProcessIo::default()) });
            }
            sum.finish().device[0].in_flight_max
        };
        assert_eq!((deepest_of(&[Some(2), Some(3), Some(1)]), deepest_of(&[None])), (Some(3), Some(8)));
        assert_eq!(deepest_of(&[Some(2), None, Some(3)]), Some(8), "nobody knows of one of them");
    }

    #[test]
    fn nothing_added_is_no_evidence() {
        assert_eq!(EvidenceSum::default().finish(), Evidence::default());
    }

    #[test]
    fn one_unknown_visit_makes_the_sum_unknown() {
        let counts = DeviceCounts {
            until_stable: DiskStat { read_ios: 5, ..DiskStat::default() },
            ..DeviceCounts::default()
        };
        let process = ProcessIo { read_bytes: Some(1), write_bytes: Some(2) };
        let mut sum = EvidenceSum::default();
        sum.add(visit(Ok(counts), process));
        assert_eq!(sum.clone().finish().device[0].reads, Some(5));
        assert_eq!(sum.clone().finish().device[0].visits.len(), 1);
        sum.add(visit(Err("read_ios went back".to_owned()), ProcessIo::default()));
        sum.add(visit(Ok(counts), process));
        assert_eq!(sum.problems(), ["read_ios went back"]);
        let evidence = sum.finish();
        assert_eq!(evidence.source, EvidenceSource::Sysfs);
        assert_eq!((evidence.device[0].reads, evidence.device[0].diskstat), (None, None));
        assert!(evidence.device[0].visits.is_empty());
        assert_eq!(evidence.process, ProcessIo::default());
    }

    #[test]
    fn the_weakest_source_counts_and_limits_are_listed_once() {
        let limit = Limit {
            target: 0,
            device: "loop9".to_owned(),
            source: "io.max".to_owned(),
            op: rdsk_model::workload::Op::Read,
            bytes_per_s: Some(1 << 20),
            ops_per_s: None,
        };
        let mut sum = EvidenceSum::default();
        for source in [EvidenceSource::Sysfs, EvidenceSource::Process, EvidenceSource::Sysfs] {
            let mut visit = visit(Ok(DeviceCounts::default()), ProcessIo::default());
            visit.source = source;
            visit.limits.push(limit.clone());
            sum.add(visit);
        }
        let evidence = sum.finish();
        assert_eq!(evidence.source, EvidenceSource::Process);
        assert_eq!(evidence.limits, [limit]);
    }

    /// Counters that grow by the given steps.
    fn samples(steps: &[[u32; 17]]) -> Vec<DiskStat> {
        let mut counters = [0u64; 17];
        let mut samples = vec![];
        for step in steps {
            for (counter, grown) in counters.iter_mut().zip(step) {
                *counter += u64::from(*grown >> 8);
            }
            samples.push(parse_stat(&counters.map(|counter| counter.to_string()).join(" ")).unwrap());
        }
        samples
    }

    proptest! {
        #[test]
        fn visits_add_up_to_one_visit_over_their_union(
            steps in proptest::collection::vec(proptest::array::uniform17(any::<u32>()), 2..8),
            intervals_ns in proptest::collection::vec(1u64..10_000_000_000, 8),
        ) {
            let samples = samples(&steps);
            let mut sum = EvidenceSum::default();
            let mut interval_ns = 0;
            for (pair, &visit_ns) in samples.windows(2).zip(&intervals_ns) {
                sum.add(between(&pair[0], &pair[1], visit_ns));
                interval_ns += visit_ns;
            }
            let mut whole = EvidenceSum::default();
            whole.add(between(&samples[0], &samples[samples.len() - 1], interval_ns));
            let (mut sum, mut whole) = (sum.finish(), whole.finish());
            prop_assert_eq!(sum.device[0].visits.len(), samples.len() - 1);
            let mut visits = IntervalCounters { interval_ns: 0, diskstat: delta(&samples[0], &samples[0]).unwrap() };
            sum.device[0].visits.iter().for_each(|visit| visits.add(visit));
            prop_assert_eq!(&vec![visits], &whole.device[0].visits);
            (sum.device[0].visits, whole.device[0].visits) = (Vec::new(), Vec::new());
            prop_assert_eq!(sum, whole);
        }
    }
}
