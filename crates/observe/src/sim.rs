//! The observer of simulated targets: the counters of the hosts' models, in the kernel's units and format, and what only a
//! model knows. It reads the lab and changes only the start of the interval for which the lab tracks the largest queue.

use crate::series::Series;
use crate::visit::{DeviceCounts, DeviceVisit, Observer, VisitEvidence};
use rdsk_disk::{Counters, LunId, SharedLab};
use rdsk_model::{
    BlockActivity, DiskStat, EvidenceSource, IntervalCounters, Op, ProcessIo, Request, SECTOR_BYTES,
};

const NS_PER_MS: u128 = 1_000_000;
/// Width of the slots of queue depth and bytes, as in the kernel's observer.
const SAMPLE_WIDTH_NS: u64 = crate::DEFAULT_SAMPLE_WIDTH_NS;

/// Reads the counters of simulated LUNs.
#[derive(Debug)]
pub struct SimObserver {
    lab: SharedLab,
    luns: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    target: u32,
    id: LunId,
    begin: Counters,
    end_io: Counters,
    /// Requests at the host when the last I/O returned.
    in_flight: u64,
}

impl SimObserver {
    /// An observer of the given LUNs, each with the index of its target.
    pub fn new(lab: SharedLab, luns: &[(u32, LunId)]) -> Self {
        let watched = |&(target, id): &(u32, LunId)| Watched {
            target,
            id,
            begin: Counters::default(),
            end_io: Counters::default(),
            in_flight: 0,
        };
        Self { luns: luns.iter().map(watched).collect(), lab }
    }
}

impl Observer for SimObserver {
    fn begin(&mut self) {
        let mut lab = self.lab.lock();
        for lun in &mut self.luns {
            lab.host_mut(lun.id.host).forget_peaks(lun.id.lun);
            lun.begin = lab.counters(lun.id);
            lab.sample(lun.id, SAMPLE_WIDTH_NS);
        }
    }

    fn end_io(&mut self) {
        let mut lab = self.lab.lock();
        for lun in &mut self.luns {
            lun.end_io = lab.counters(lun.id);
            let (waiting, active) = lab.host(lun.id.host).queue(lun.id.lun);
            lun.in_flight = (waiting + active) as u64;
        }
    }

    fn end(&mut self) -> VisitEvidence {
        let mut lab = self.lab.lock();
        let mut process = ProcessIo { read_bytes: Some(0), write_bytes: None };
        let (mut devices, mut requests) = (Vec::new(), Vec::new());
        for lun in &self.luns {
            let end = lab.counters(lun.id);
            // The model has no other process, so everything was read for this one.
            let read = lun.end_io.read_bytes - lun.begin.read_bytes;
            process.read_bytes = process.read_bytes.map(|sum| sum + read);
            requests.extend(sizes(lun.target, &end.since(&lun.begin)));
            let (width_ns, samples) = lab.take_samples(lun.id);
            let mut series = Series::new(width_ns);
            for sample in samples {
                series.push(width_ns, sample.bytes, sample.in_flight as u64);
            }
            devices.push(device(lun, lab.device_name(lun.id), series, &end));
        }
        let block = Some(BlockActivity { requests, ..BlockActivity::default() });
        VisitEvidence { source: EvidenceSource::Sim, devices, block, process, ..VisitEvidence::none() }
    }

    fn describe(&self) -> rdsk_model::ObserverFacts {
        rdsk_model::ObserverFacts {
            source: EvidenceSource::Sim,
            why_not_higher: None,
            lost_events: 0,
            cost_ns_per_io: None,
        }
    }
}

fn device(lun: &Watched, name: String, series: Series, end: &Counters) -> DeviceVisit {
    let during_io = lun.end_io.since(&lun.begin);
    let until_stable = end.since(&lun.begin);
    let diskstat = DiskStat { in_flight: lun.in_flight, ..growth(&lun.begin, &lun.end_io) };
    let counts = DeviceCounts {
        until_stable: growth(&lun.begin, end),
        during_io: IntervalCounters { interval_ns: during_io.at_ns, diskstat },
        splits: Some(until_stable.splits),
        waiting_ns: u64::try_from(during_io.waiting_ns).ok(),
        reads_caused_by_writes: Some(until_stable.reads_caused_by_writes),
        deepest: None,
    };
    DeviceVisit {
        target: lun.target,
        name,
        counts: Ok(counts),
        in_flight_max: u64::try_from(end.queue_max).ok(),
        series,
    }
}

/// The growth in the kernel's units, without the number in flight. Like the kernel, it truncates the times at both ends to
/// whole milliseconds.
fn growth(before: &Counters, after: &Counters) -> DiskStat {
    let ticks =
        |before: u128, after: u128| u64::try_from(after / NS_PER_MS - before / NS_PER_MS).unwrap_or(u64::MAX);
    let queued = |counters: &Counters| counters.waiting_ns + counters.active_ns;
    let flushes = after.flushes - before.flushes;
    DiskStat {
        read_ios: after.reads - before.reads,
        read_merges: after.read_merges - before.read_merges,
        read_sectors: after.read_bytes / SECTOR_BYTES - before.read_bytes / SECTOR_BYTES,
        read_ticks_ms: ticks(before.read_ns, after.read_ns),
        write_ios: after.writes - before.writes,
        write_merges: after.write_merges - before.write_merges,
        write_sectors: after.write_bytes / SECTOR_BYTES - before.write_bytes / SECTOR_BYTES,
        write_ticks_ms: ticks(before.write_ns, after.write_ns),
        io_ticks_ms: ticks(u128::from(before.busy_ns), u128::from(after.busy_ns)),
        time_in_queue_ms: ticks(queued(before), queued(after)),
        flush_ios: Some(flushes),
        flush_ticks_ms: Some(ticks(before.flush_ns, after.flush_ns)),
        ..DiskStat::default()
    }
}

/// The exact sizes of the requests.
fn sizes(target: u32, counters: &Counters) -> Vec<Request> {
    let op_of = |op: rdsk_disk::Op| match op {
        rdsk_disk::Op::Read => Some(Op::Read),
        rdsk_disk::Op::Write => Some(Op::Write),
        rdsk_disk::Op::Flush => None,
    };
    let request = |(&(op, bytes), &count): (&(rdsk_disk::Op, u64), &u64)| {
        Some(Request { target, device: String::new(), op: op_of(op)?, bytes, fua: false, count })
    };
    counters.sizes.iter().filter_map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvidenceSum;
    use rdsk_disk::{Call, Operation, Route, Stability};

    #[test]
    fn a_visit_counts_what_the_host_did() {
        let lab = SharedLab::default();
        let system = rdsk_disk::load("hpux-k460").unwrap();
        let host = lab.lock().host_of(&system, 1);
        let id = LunId { host, lun: 0 };
        let mut observer = SimObserver::new(lab.clone(), &[(3, id)]);
        let mut sum = EvidenceSum::default();
        for pass in 0..2u64 {
            observer.begin();
            let call = Call {
                operation: Operation::Write,
                route: Route::Buffered,
                stability: Stability::Any,
                lun: 0,
                offset_bytes: pass << 20,
                bytes: 65_536,
                stream: 0,
            };
            lab.lock().run(host, call).unwrap();
            observer.end_io();
            lab.lock().run(host, Call { operation: Operation::Close, ..call }).unwrap();
            sum.add(observer.end());
        }
        let evidence = sum.finish();
        let device = evidence.device_of(3).unwrap();
        assert_eq!(evidence.source, EvidenceSource::Sim);
        assert_eq!(
            (device.writes, device.write_bytes),
            (Some(32), Some(131_072)),
            "4 KiB buffers, not merged"
        );
        assert_eq!((device.reads, device.reads_caused_by_writes), (Some(32), Some(32)), "each is read first");
        assert_eq!(evidence.process.read_bytes, Some(131_072));
        let sizes: Vec<(Op, u64, u64)> =
            evidence.requests.iter().map(|request| (request.op, request.bytes, request.count)).collect();
        assert_eq!(sizes, [(Op::Read, 4096, 32), (Op::Write, 4096, 32)]);
        assert!(device.diskstat.is_some_and(|growth| growth.read_ios > 0));
        assert_eq!(device.visits.len(), 2);
        let mut sum = device.visits[0];
        sum.add(&device.visits[1]);
        assert_eq!((Some(sum.interval_ns), Some(sum.diskstat)), (device.interval_ns, device.diskstat));
    }
}
