//! The evidence of a cell from the evidence of its visits: counters add, histograms merge, and series are joined.
//! If a value is unknown for one visit, it is unknown for the sum.

use crate::counted::counted;
use crate::price::Price;
use crate::series::Series;
use crate::stack::Stack;
use crate::visit::{DeviceVisit, VisitEvidence};
use rdsk_model::{
    BpfEvidence, DeviceEvidence, Evidence, EvidenceSource, IntervalCounters, Latency, ProcessorUse,
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
    /// All that adds up as it is in the Record.
    sum: Option<Evidence>,
    /// What joins up for each device, in the order in which they were seen.
    devices: Vec<Joined>,
    stacks: Vec<Stack>,
    /// Of the visits that were followed, while each of them has some.
    device_latency: Option<Histogram>,
}

/// What several visits show of a device together, and not by a sum.
#[derive(Clone, Debug)]
struct Joined {
    target: u32,
    name: String,
    series: Series,
    /// Whether the deepest queue of the device itself is known of every visit.
    is_deepest_known: bool,
}

impl EvidenceSum {
    /// Whether the next visit may be followed bio by bio, so that all of this takes at most 0.5 % of the time of the visits.
    pub fn may_follow(&self) -> bool {
        self.price.allows_one_more()
    }

    /// Adds one visit.
    pub fn add(&mut self, visit: VisitEvidence) {
        self.price.add(&visit);
        self.visits += 1;
        let is_left_out = visit.is_left_out && self.sum.is_some();
        let latency = visit.block.as_ref().map(|block| block.latency.clone());
        if !is_left_out {
            self.followed.push(self.visits - 1);
            let is_first = self.followed.len() == 1;
            self.device_latency = match (self.device_latency.take(), latency) {
                (Some(mut sum), Some(more)) => {
                    sum.merge(&more);
                    Some(sum)
                }
                (None, first) if is_first => first,
                _ => None,
            };
        }
        visit.devices.iter().for_each(|device| self.join(device));
        for stack in &visit.stacks {
            if !self.stacks.iter().any(|listed| listed.target == stack.target) {
                self.stacks.push(stack.clone());
            }
        }
        let evidence = evidence_of(visit);
        self.sum = Some(match self.sum.take() {
            Some(sum) if is_left_out => plus_left_out(sum, evidence),
            Some(sum) => sum.plus(evidence),
            None => evidence,
        });
    }

    /// The evidence of all visits. An observer does not know `page_cache` and `extents`, which stay `None`.
    pub fn finish(self) -> Evidence {
        let Some(mut sum) = self.sum else { return Evidence::default() };
        for (device, joined) in sum.device.iter_mut().zip(&self.devices) {
            joined.complete(device);
        }
        let counts = |stack: &Stack, name: &str| {
            let mut of_target = sum.device.iter().filter(|device| device.target == stack.target);
            of_target.any(|device| device.name == name && device.read_bytes.is_some())
        };
        sum.counted =
            self.stacks.iter().filter_map(|stack| counted(stack, &|name| counts(stack, name))).collect();
        let timed = self.device_latency.filter(|timed| timed.count() > 0);
        sum.device_latency_ns = timed.as_ref().map(Latency::from);
        let is_part = self.followed.len() < self.visits as usize;
        sum.bpf = sum.bpf.map(|bpf| BpfEvidence { followed: is_part.then_some(self.followed), ..bpf });
        sum
    }

    fn join(&mut self, visit: &DeviceVisit) {
        let is_deepest_known = visit.counts.as_ref().is_ok_and(|counts| counts.deepest.is_some());
        let is_it = |joined: &&mut Joined| (joined.target, &joined.name) == (visit.target, &visit.name);
        if let Some(joined) = self.devices.iter_mut().find(is_it) {
            joined.series.append(&visit.series);
            joined.is_deepest_known &= is_deepest_known;
        } else {
            let (target, name, series) = (visit.target, visit.name.clone(), visit.series.clone());
            self.devices.push(Joined { target, name, series, is_deepest_known });
        }
    }
}

impl Joined {
    /// Adds it to what the visits of a device sum up to, unless that is unknown.
    fn complete(&self, device: &mut DeviceEvidence) {
        let (Some(interval_ns), Some(diskstat)) = (device.interval_ns, device.diskstat) else { return };
        if !self.is_deepest_known {
            device.in_flight_max =
                device.in_flight_max.max(least_peak(&IntervalCounters { interval_ns, diskstat }));
        }
        device.in_flight_series = self.series.in_flight();
        device.bytes_series = self.series.bytes();
        device.series_width_ns = (!self.series.slots().is_empty()).then(|| self.series.width_ns());
    }
}

/// A visit by itself.
fn evidence_of(visit: VisitEvidence) -> Evidence {
    let block = visit.block.unwrap_or_default();
    Evidence {
        source: visit.source,
        device: visit.devices.into_iter().map(device_of).collect(),
        requests: block.requests,
        bios: block.bios,
        bpf: visit.bpf,
        process: visit.process,
        limits: visit.limits,
        controls: visit.controls,
        loops: visit.loops,
        processor: visit.processor,
        processor_visits: visit.processor.into_iter().collect::<Vec<ProcessorUse>>(),
        ..Evidence::default()
    }
}

fn device_of(visit: DeviceVisit) -> DeviceEvidence {
    let DeviceVisit { target, name, counts, in_flight_max, series: _ } = visit;
    let Ok(counts) = counts else { return DeviceEvidence { target, name, ..DeviceEvidence::default() } };
    let (until_stable, during_io) = (counts.until_stable, counts.during_io);
    DeviceEvidence {
        target,
        name,
        reads: Some(until_stable.read_ios),
        read_bytes: Some(until_stable.read_bytes()),
        writes: Some(until_stable.write_ios),
        write_bytes: Some(until_stable.write_bytes()),
        read_merges: Some(until_stable.read_merges),
        write_merges: Some(until_stable.write_merges),
        splits: counts.splits,
        flushes: until_stable.flush_ios,
        discards: until_stable.discard_ios,
        reads_caused_by_writes: counts.reads_caused_by_writes,
        in_flight_max: counts.deepest.or(in_flight_max),
        busy_ns: Some(until_stable.io_ticks_ms.saturating_mul(NS_PER_MS)),
        visits: vec![during_io],
        interval_ns: Some(during_io.interval_ns),
        diskstat: Some(during_io.diskstat),
        waiting_ns: counts.waiting_ns,
        ..DeviceEvidence::default()
    }
}

/// Adds a visit that was not followed: what only BPF says stays that of the visits that were. The best that is known of such a visit
/// takes nothing from the source of the sum; less does.
fn plus_left_out(mut sum: Evidence, mut visit: Evidence) -> Evidence {
    let bpf = sum.bpf.take();
    if visit.source <= EvidenceSource::Sysfs {
        visit.source = sum.source;
    }
    for device in &mut visit.device {
        (device.splits, device.reads_caused_by_writes) = (Some(0), Some(0));
    }
    Evidence { bpf, ..sum.plus(visit) }
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
    use crate::CountersError;
    use crate::delta::delta;
    use crate::diskstat::parse_stat;
    use crate::visit::DeviceCounts;
    use proptest::prelude::*;
    use rdsk_model::{BlockActivity, DiskStat, Limit, ProcessIo, Request};

    fn visit(counts: Result<DeviceCounts, CountersError>, process: ProcessIo) -> VisitEvidence {
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
            block: Some(BlockActivity { requests: vec![request], latency, ..BlockActivity::default() }),
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
        let off = CountersError::SwitchedOff { device: "sda".into() };
        sum.add(visit(Err(off), ProcessIo::default()));
        sum.add(visit(Ok(counts), process));
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
            op: rdsk_model::Op::Read,
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
