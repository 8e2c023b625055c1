//! What the runner knows of a cell as a part of the Record: after the last turn, and after each one before. It changes
//! nothing.

use crate::cell_result::ResultContext;
use crate::cell_totals::CellTotals;
use crate::resume::continued;
use crate::run_state::RunState;
use rdsk_engine::Ended;
use rdsk_model::{
    Cell, CellRecord, DeviceEvidence, Evidence, EvidenceSource, Plan, ProcessIo, StopReason, Target,
};
use rdsk_targets::Claim;

/// What a cell's Record follows from besides what was measured.
#[derive(Clone, Copy)]
pub(crate) struct CellContext<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) targets: &'a [Target],
    pub(crate) claims: &'a [Claim],
    pub(crate) resumed: &'a [CellRecord],
    pub(crate) cpu_count: Option<u32>,
}

impl CellContext<'_> {
    /// The cell as it is when all turns are over. `interrupted`: a signal ended the run.
    pub(crate) fn finished(&self, index: usize, state: &RunState, interrupted: bool) -> CellRecord {
        let totals = &state.totals[index];
        let cut_short = interrupted && (totals.visits.is_empty() || totals.ended == Some(Ended::Interrupted));
        let mut record = self.summed_up(index, state, cut_short);
        if state.has_given_up() && totals.visits.is_empty() && record.result.stop == StopReason::Budget {
            record.result.stop = StopReason::Error;
            record.result.why = "not run: the tests before it failed".into();
        }
        record
    }

    /// The cell as it is between two turns: unless it has had its turn in the last round of the plan, one that the end of the run
    /// cut short.
    pub(crate) fn so_far(&self, index: usize, state: &RunState) -> CellRecord {
        let mut record = self.summed_up(index, state, false);
        let (done, rounds) = (state.rounds_done[index], self.plan.rounds);
        let had_last_round = done > 0 && state.totals[index].round + 1 >= rounds;
        let has_ended =
            matches!(record.result.stop, StopReason::Precision | StopReason::Budget | StopReason::Complete);
        if has_ended && !had_last_round {
            record.result.stop = StopReason::Interrupted;
            record.result.why = format!("the run ended after {done} of its {rounds} repeats");
        }
        record
    }

    fn summed_up(&self, index: usize, state: &RunState, interrupted: bool) -> CellRecord {
        let (cell, totals) = (&self.plan.cells[index], &state.totals[index]);
        let context = ResultContext {
            precision: self.plan.precision,
            slice_ns: state.slices_ns[index],
            interrupted,
            align_bytes: first_of(cell, self.targets).and_then(|target| target.direct_align_bytes),
        };
        let mut record = CellRecord {
            id: cell.id.clone(),
            experiment: cell.experiment,
            workload: cell.workload.clone(),
            result: totals.result(cell, &context),
            evidence: self.evidence(cell, totals),
            verdict: None,
        };
        if record.result.stop != StopReason::NotApplicable {
            record.verdict = Some(rdsk_analysis::verdict(&record, self.targets, self.cpu_count));
        }
        record
    }

    fn evidence(&self, cell: &Cell, totals: &CellTotals) -> Evidence {
        let mut evidence = totals.evidence.clone().finish();
        evidence.page_cache = totals.page_cache;
        if let Some(then) = continued(cell, self.resumed) {
            evidence = merge(&then.evidence, evidence);
        }
        let workload = &cell.workload;
        evidence.extents = first_of(cell, self.claims)
            .and_then(|claim| claim.allocation(workload.offset_bytes, workload.span_bytes));
        evidence
    }
}

/// What a list of all targets holds for the first target of a cell.
fn first_of<'a, T>(cell: &Cell, of_targets: &'a [T]) -> Option<&'a T> {
    of_targets.get(*cell.workload.targets.first()? as usize)
}

/// Both parts together. If this run did nothing more, the earlier evidence stays as it is.
fn merge(then: &Evidence, now: Evidence) -> Evidence {
    if now.device.is_empty() && now.process == ProcessIo::default() {
        return Evidence { extents: now.extents.or(then.extents), ..then.clone() };
    }
    let is_of_all = |part: &Evidence| part.bpf.as_ref().is_none_or(|bpf| bpf.followed.is_none());
    if !is_of_all(then) || !is_of_all(&now) {
        // A visit that was continued may have been followed in one part only.
        return merge(&without_bpf(then.clone()), without_bpf(now));
    }
    then.clone().plus(now)
}

/// What sysfs says.
fn without_bpf(evidence: Evidence) -> Evidence {
    let device = evidence.device.into_iter().map(|part| DeviceEvidence {
        splits: None,
        reads_caused_by_writes: None,
        ..part
    });
    Evidence {
        source: evidence.source.max(EvidenceSource::Sysfs),
        device: device.collect(),
        requests: Vec::new(),
        bios: Vec::new(),
        device_latency_ns: None,
        bpf: None,
        ..evidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Bio, BpfEvidence, DiskStat, IntervalCounters, Latency, Op, Request};

    fn latency(values_ns: &[u64]) -> Latency {
        let mut histogram = rdsk_stats::Histogram::new();
        values_ns.iter().for_each(|&ns| histogram.record(ns));
        Latency::from(&histogram)
    }

    fn part(reads: u64, interval_ns: u64) -> Evidence {
        let diskstat = DiskStat { read_ios: reads, read_ticks_ms: 2 * reads, ..DiskStat::default() };
        let device = DeviceEvidence {
            name: "sda".into(),
            reads: Some(reads),
            read_bytes: Some(reads * 4096),
            splits: Some(1),
            visits: vec![IntervalCounters { interval_ns, diskstat }],
            interval_ns: Some(interval_ns),
            diskstat: Some(diskstat),
            waiting_ns: Some(10 * reads),
            bytes_series: vec![1, 2],
            ..DeviceEvidence::default()
        };
        let process = ProcessIo { read_bytes: Some(reads * 4096), write_bytes: None };
        let bio = |task: &str| Bio {
            target: 0,
            device: "sda".into(),
            nowait: false,
            read_ahead: false,
            flush: false,
            op: Op::Read,
            syscall: Some("pread64".into()),
            task: task.into(),
            count: reads,
            bytes: reads * 4096,
        };
        Evidence {
            source: EvidenceSource::Sysfs,
            device: vec![device],
            requests: vec![Request {
                target: 0,
                device: "sda".into(),
                op: Op::Read,
                bytes: 4096,
                fua: false,
                count: reads,
            }],
            bios: vec![bio("this"), bio("other")],
            device_latency_ns: Some(latency(&[1_000 * reads; 10])),
            process,
            ..Evidence::default()
        }
    }

    #[test]
    fn all_counters_are_added() {
        let (then, now) = (part(100, 1_000), part(300, 3_000));
        let both = merge(&then, now);
        let device = &both.device[0];
        assert_eq!((device.reads, device.read_bytes), (Some(400), Some(400 * 4096)));
        assert_eq!(both.process.read_bytes, Some(400 * 4096));
        let io = device.diskstat.unwrap();
        assert_eq!((io.read_ios, io.read_ticks_ms, device.interval_ns), (400, 800, Some(4_000)));
        assert_eq!((device.waiting_ns, device.splits), (Some(4_000), Some(2)));
        assert_eq!(device.visits.iter().map(|visit| visit.interval_ns).collect::<Vec<_>>(), [1_000, 3_000]);
        assert!(device.bytes_series.is_empty());
        assert_eq!(
            both.requests,
            [Request { target: 0, device: "sda".into(), op: Op::Read, bytes: 4096, fua: false, count: 400 }]
        );
        let bios: Vec<_> = both.bios.iter().map(|bio| (bio.task.as_str(), bio.count, bio.bytes)).collect();
        assert_eq!(bios, [("this", 400, 400 * 4096), ("other", 400, 400 * 4096)]);
        let latency = both.device_latency_ns.unwrap();
        assert_eq!((latency.count, latency.min, latency.max), (20, Some(100_000), Some(300_000)));
        assert!((latency.mean.unwrap() - 200_000.0).abs() < 1e-6, "{latency:?}");
    }

    #[test]
    fn what_one_part_does_not_know_nobody_knows() {
        let mut then = part(100, 1_000);
        then.device[0].reads = None;
        then.device[0].diskstat = None;
        then.device_latency_ns = None;
        let both = merge(&then, part(1, 1));
        assert_eq!((both.device[0].reads, both.device[0].diskstat), (None, None));
        assert!(both.device[0].visits.is_empty() && both.device_latency_ns.is_none());
        then.device[0].name = "sdb".into();
        let other = merge(&then, part(1, 1));
        let devices: Vec<_> =
            other.device.iter().map(|device| (device.name.as_str(), device.read_bytes)).collect();
        assert_eq!(devices, [("sdb", None), ("sda", None)], "each part lists one of them");
    }

    #[test]
    fn a_part_of_which_some_visits_were_not_followed_is_left_to_sysfs() {
        let evidence_of = |followed: Option<Vec<u32>>| Evidence {
            source: EvidenceSource::Bpf,
            bpf: Some(BpfEvidence { followed, ..BpfEvidence::default() }),
            ..part(100, 1_000)
        };
        assert!(merge(&evidence_of(None), evidence_of(None)).bpf.is_some());
        for (then, now) in [(Some(vec![0]), None), (None, Some(vec![1]))] {
            let both = merge(&evidence_of(then), evidence_of(now));
            assert_eq!((both.source, both.bpf, both.device_latency_ns), (EvidenceSource::Sysfs, None, None));
            assert!(both.requests.is_empty() && both.bios.is_empty());
            assert_eq!((both.device[0].reads, both.device[0].splits), (Some(200), None));
        }
    }

    #[test]
    fn a_run_that_did_nothing_more_leaves_the_evidence_as_it_was() {
        let then = part(100, 1_000);
        assert_eq!(merge(&then, Evidence::default()), then);
    }
}
