use super::*;
use crate::Analysis;
use crate::fixtures::{all_in_rounds, cell, disk, estimate, record, with};
use rdsk_model::{
    Confidence, CpuTime, DeviceEvidence, IoError, IoPath, Limit as GroupLimit, Overlap, Record, StreamResult,
    Target, Windows,
};

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// Two seconds of streams dealt round `targets` targets, each stream at its rate in MiB/s, started `stagger_ns` apart.
fn streams(targets: u32, rates: &[u64], stagger_ns: u64) -> CellRecord {
    let total: u64 = rates.iter().sum();
    let id = format!("scale/read/1M/{}", rates.len());
    with(cell(&id, Op::Read, IoPath::Direct, MIB, total * 2, 2 * SECOND), |cell| {
        cell.experiment = Experiment::Scale;
        cell.workload.streams = u32::try_from(rates.len()).unwrap();
        cell.workload.stagger_ns = stagger_ns;
        cell.workload.targets = (0..targets).collect();
        cell.result.bytes_per_s = Some(estimate((total * MIB) as f64));
        let stream = |(index, &rate): (usize, &u64)| {
            let index = u32::try_from(index).unwrap();
            let start_ns = u64::from(index) * stagger_ns;
            let bytes = rate * MIB * (2 * SECOND - start_ns) / SECOND;
            StreamResult {
                index,
                target: index % targets,
                start_ns,
                end_ns: 2 * SECOND,
                bytes,
                ops: bytes / MIB,
                active_ns: None,
            }
        };
        let visit = &mut cell.result.visits[0];
        visit.streams = rates.iter().enumerate().map(stream).collect();
        visit.overlap =
            Some(Overlap { start_ns: 0, end_ns: 2 * SECOND, bytes: total * MIB, covered_ns: SECOND });
        let device = cell.evidence.device[0].clone();
        cell.evidence.device = (0..targets)
            .map(|target| {
                let streams = cell.result.visits[0].streams.iter();
                let its = || streams.clone().filter(|stream| stream.target == target);
                DeviceEvidence {
                    target,
                    name: format!("sd{target}"),
                    reads: Some(its().map(|stream| stream.ops).sum()),
                    read_bytes: Some(its().map(|stream| stream.bytes).sum()),
                    ..device.clone()
                }
            })
            .collect();
    })
}

fn busy(cell: &mut CellRecord, shares: &[f64]) {
    for (device, share) in cell.evidence.device.iter_mut().zip(shares) {
        crate::fixtures::set_busy(device, *share);
    }
}

fn disks(count: u32) -> Vec<Target> {
    let one = |index: u32| {
        let mut target = Target { index, name: format!("/dev/sd{index}"), ..disk() };
        target.device.as_mut().unwrap().name = format!("sd{index}");
        target.stack = vec![format!("sd{index}")];
        target
    };
    (0..count).map(one).collect()
}

fn limit_of(record: &Record) -> Limit {
    let record = all_in_rounds(record);
    let analysis = Analysis::of(&record);
    let grids = analysis.scale();
    let stop = grids[0].lines[0].knee.clone();
    stop.unwrap_or_else(|| panic!("no knee: {grids:#?}")).limit
}

/// One and four streams on one target that give the same.
fn flat(change: impl Fn(&mut CellRecord)) -> Record {
    let cells = vec![with(streams(1, &[40], 0), &change), with(streams(1, &[10; 4], 0), &change)];
    record(disks(1), cells)
}

/// A busy disk of which BPF timed the requests, with one stream 1 ms each, and with four so long.
fn timed(together_ns: u64) -> Record {
    let mut record = flat(|cell| busy(cell, &[0.99]));
    for (cell, ns) in record.cells.iter_mut().zip([1_000_000, together_ns]) {
        let ops = cell.result.ops.unwrap();
        let bios = vec![crate::fixtures::bios::bio(Op::Read, "this", Some("pread64"), ops, MIB)];
        let requests = vec![crate::fixtures::bios::request(Op::Read, MIB, ops)];
        *cell = with(crate::fixtures::bios::counted(cell.clone(), bios, requests), |cell| {
            cell.evidence.bpf.as_mut().unwrap().checks[0].device = "sd0".into();
            cell.evidence.device_latency_ns = Some(crate::fixtures::latency(ops, ns));
        });
    }
    record
}

/// What BPF timed: a busy device in which requests take no longer with more streams is not what they wait for.
#[test]
fn a_busy_device_is_the_limit_where_requests_wait_in_it() {
    let Limit::DeviceBusy(cause) = limit_of(&timed(4_000_000)) else { panic!("it is busy") };
    assert!(
        cause.evidence[1].ends_with("in the device = 4.00 ms each, in sequential 1M reads = 1.00 ms"),
        "{cause:?}"
    );
    assert_eq!(limit_of(&timed(1_000_000)), Limit::Unknown);
}

/// A virtual machine's disk says that it rotates when it is unknown, and serves many at once.
#[test]
fn a_virtual_disk_that_says_it_rotates_is_not_proven_busy() {
    let mut virtual_one = flat(|_| ());
    virtual_one.targets[0].device.as_mut().unwrap().rotational = Some(true);
    assert!(
        matches!(limit_of(&virtual_one), Limit::DeviceBusy(cause) if cause.confidence == Confidence::Measured)
    );
    virtual_one.host.as_mut().unwrap().virtualization = Some("kvm".into());
    assert!(
        !matches!(limit_of(&virtual_one), Limit::DeviceBusy(cause) if cause.confidence == Confidence::Measured)
    );
}

/// `%util` of a device that serves many at once is no proof, what the processor or the generator has no time for is.
#[test]
fn a_processor_without_time_comes_before_a_device_that_is_busy() {
    let spent = |cell: &mut CellRecord| {
        busy(cell, &[0.99]);
        cell.result.cpu_ns = Some(CpuTime { user: 0, system: 2 * SECOND * 75 / 10 });
    };
    assert!(matches!(limit_of(&flat(spent)), Limit::Cpu(_)), "{:?}", limit_of(&flat(spent)));
    let mut generated = flat(|cell| busy(cell, &[0.99]));
    for cell in &mut generated.cells {
        cell.verdict.as_mut().unwrap().code = rdsk_model::VerdictCode::SourceBound;
    }
    let found = limit_of(&generated);
    assert!(matches!(found, Limit::Source(_)), "{found:?}");
    // One of two is busy.
    let some = |cell: &mut CellRecord| {
        busy(cell, &[0.5, 0.99]);
        cell.result.cpu_ns = Some(CpuTime { user: 0, system: 2 * SECOND * 75 / 10 });
    };
    let cells = vec![with(streams(2, &[20, 20], 0), some), with(streams(2, &[10; 4], 0), some)];
    assert!(matches!(limit_of(&record(disks(2), cells)), Limit::Cpu(_)));
    // A control group holds it, whatever the processor does.
    let held = flat(|cell| {
        spent(cell);
        cell.evidence.limits = vec![GroupLimit {
            device: "sda".into(),
            target: 0,
            source: "x/io.max".into(),
            op: Op::Read,
            bytes_per_s: Some(40 * MIB),
            ops_per_s: None,
        }];
    });
    assert!(matches!(limit_of(&held), Limit::Throttled(_)));
    // The counters of a model are exact.
    let model = flat(|cell| {
        spent(cell);
        cell.evidence.source = rdsk_model::EvidenceSource::Sim;
    });
    assert!(matches!(limit_of(&model), Limit::DeviceBusy(_)));
}

#[test]
fn a_busy_device_without_an_arm_is_an_inference_unless_requests_wait_in_it() {
    let found = |rotational: Option<bool>, change: fn(&mut CellRecord)| {
        let mut record = flat(change);
        record.targets[0].device.as_mut().unwrap().rotational = rotational;
        match limit_of(&record) {
            Limit::DeviceBusy(cause) => (cause.confidence, cause.text.contains("(inferred: ")),
            other => panic!("{other:?}"),
        }
    };
    let (measured, inferred) = ((Confidence::Measured, false), (Confidence::Inferred, true));
    assert_eq!(found(Some(true), |_| ()), measured);
    assert_eq!(found(Some(false), |_| ()), inferred);
    assert_eq!(found(None, |_| ()), inferred);
    assert_eq!(found(None, |cell| cell.evidence.source = rdsk_model::EvidenceSource::Sim), measured);
    let mut record = timed(4_000_000);
    record.targets[0].device.as_mut().unwrap().rotational = Some(false);
    let Limit::DeviceBusy(cause) = limit_of(&record) else { panic!("requests wait in it") };
    assert_eq!((cause.confidence, cause.text.contains("inferred")), measured);
}

#[test]
fn shares_of_streams_and_targets() {
    let record = record(disks(2), vec![streams(2, &[30, 10, 20], 0)]);
    let grids = analyse(&record, None, &|_| None);
    let point = &grids[0].lines[0].points[0];
    let rates: Vec<f64> = point.streams.iter().map(|stream| stream.bytes_per_s / MIB as f64).collect();
    assert_eq!(rates, [30.0, 10.0, 20.0]);
    let targets: Vec<(u32, usize, u64)> =
        point.targets.iter().map(|share| (share.target, share.streams, share.bytes / MIB)).collect();
    assert_eq!(targets, [(0, 2, 100), (1, 1, 20)]);
    let fairness = point.fairness.unwrap();
    assert!((fairness.jain - 3600.0 / (3.0 * 1400.0)).abs() < 1e-9 && !fairness.has_ramp);
    assert_eq!((point.skew_ns, point.speed_up), (Some(0), None));
    assert_eq!(point.targets[0].busy_share, Some(0.96));
}

#[test]
fn the_ramp_stands_apart_and_blurs_the_shares() {
    let late = with(streams(1, &[10, 10, 10], SECOND / 4), |cell| {
        cell.result.visits[0].streams[1].start_ns += 7_000_000;
        cell.result.windows =
            Some(Windows { width_ns: SECOND / 10, bytes: [vec![MIB; 2], vec![3 * MIB; 18]].concat() });
    });
    let record = record(disks(1), vec![late]);
    let grids = analyse(&record, None, &|_| None);
    let point = &grids[0].lines[0].points[0];
    assert_eq!(point.skew_ns, Some(7_000_000));
    let ramp = point.ramp.unwrap();
    // Half a second is five windows.
    assert_eq!((ramp.elapsed_ns, ramp.bytes), (SECOND / 2, 11 * MIB));
    assert_eq!(ramp.bytes_per_s, Some(22.0 * MIB as f64));
    assert!(point.fairness.unwrap().has_ramp);
}

#[test]
fn speed_up_and_knee_leave_failed_cells_out() {
    let failed = with(streams(1, &[20, 20], 0), |cell| {
        cell.result.errors =
            vec![IoError { target: 0, stream: Some(1), offset_bytes: 0, errno: 5, message: "EIO".into() }];
    });
    let record = record(disks(1), vec![streams(1, &[15; 4], 0), streams(1, &[40], 0), failed]);
    let line = &analyse(&record, None, &|_| None)[0].lines[0];
    assert_eq!((line.point(4).unwrap().speed_up, line.point(2).unwrap().speed_up), (Some(1.5), None));
    let record = all_in_rounds(&record);
    let analysis = Analysis::of(&record);
    let grids = analysis.scale();
    let line = &grids[0].lines[0];
    assert_eq!(grids[0].counts(), [1, 2, 4]);
    let (low, high) = line.point(4).unwrap().speed_up_interval.unwrap();
    assert!(1.45 < low && low < 1.5 && 1.5 < high && high < 1.55, "{low} to {high}");
    let point = line.point(2).unwrap();
    assert_eq!((&point.failed[..], point.speed_up, point.speed_up_interval), (&[1][..], None, None));
    // From 1 to 4 is 22 % a doubling; 2 with its failed stream would have been a knee.
    assert_eq!(line.knee, None);
}

#[test]
fn streams_of_two_sittings_have_no_speed_up_and_no_knee() {
    let taken_over = |streams: u32| {
        let mut record = all_in_rounds(&flat(|_| ()));
        let cell = record.cells.iter_mut().find(|cell| cell.workload.streams == streams).unwrap();
        cell.result.visits.iter_mut().for_each(|visit| visit.sitting = 1);
        let analysis = Analysis::of(&record);
        let line = analysis.scale()[0].lines[0].clone();
        let most = line.point(4).unwrap();
        (most.speed_up, most.speed_up_interval, line.knee, line.no_ratio)
    };
    for streams in [1, 4] {
        assert_eq!(taken_over(streams), (None, None, None, Some(NoRatio::Sittings)));
    }
}

#[test]
fn a_busy_device_is_the_limit() {
    let record = flat(|_| ());
    let Limit::DeviceBusy(cause) = limit_of(&record) else { panic!("{:?}", limit_of(&record)) };
    assert_eq!(cause.text, "/dev/sd0 was busy 96.0% of the time");
    assert_eq!(cause.evidence, ["sequential 1M reads: /dev/sd0 busy = 96.0%"]);
    let turns = all_in_rounds(&record);
    let stop = Analysis::of(&turns).scale()[0].lines[0].knee.clone().unwrap();
    assert_eq!((stop.streams, stop.next_streams), (1, 4));
    assert!(stop.knee.least_gain < stop.knee.gain && stop.knee.gain < stop.knee.most_gain, "{stop:?}");
    // The same in one round is too little to compare.
    let analysis = Analysis::of(&record);
    let line = &analysis.scale()[0].lines[0];
    assert_eq!((&line.knee, line.no_ratio), (&None, Some(NoRatio::Rounds(1))));
}

#[test]
fn the_next_count_tells_what_the_knee_does_not() {
    let cells = vec![
        with(streams(1, &[40], 0), |cell| busy(cell, &[0.9])),
        with(streams(1, &[10; 4], 0), |cell| busy(cell, &[1.0])),
    ];
    let Limit::DeviceBusy(cause) = limit_of(&record(disks(1), cells)) else { panic!() };
    assert!(cause.evidence[0].starts_with("sequential 1M reads by 4 streams: "), "{cause:?}");
}

#[test]
fn a_control_group_comes_before_all_else() {
    let limits = |bytes_per_s, ops_per_s| {
        flat(move |cell| {
            cell.evidence.limits = vec![GroupLimit {
                device: "sda".into(),
                target: 0,
                source: "x/io.max".into(),
                op: Op::Read,
                bytes_per_s,
                ops_per_s,
            }];
        })
    };
    for (bytes_per_s, ops_per_s, is_held) in
        [(Some(40 * MIB), None, true), (None, Some(41), true), (Some(80 * MIB), None, false)]
    {
        let limit = limit_of(&limits(bytes_per_s, ops_per_s));
        assert_eq!(matches!(limit, Limit::Throttled(_)), is_held, "{bytes_per_s:?} {ops_per_s:?}: {limit:?}");
    }
    // A call of 1 MiB is two requests, which a limit on I/Os counts and the verdict knows.
    let mut split = limits(None, Some(80));
    for cell in &mut split.cells {
        cell.evidence.device[0].reads = cell.result.ops.map(|ops| 2 * ops);
        cell.evidence.device[0].diskstat = None;
        cell.evidence.limits[0].device = cell.evidence.device[0].name.clone();
        let verdict = cell.verdict.as_mut().unwrap();
        verdict.code = rdsk_model::VerdictCode::Throttled;
        verdict.text = "80.0 I/Os per second are the limit of 80 that x/io.max sets for reads".into();
    }
    let Limit::Throttled(cause) = limit_of(&split) else { panic!("{:?}", limit_of(&split)) };
    assert!(
        cause.text.starts_with("/dev/sd0: 80.0 I/Os per second are the limit") && cause.targets == [0],
        "{cause:?}"
    );
    // Twice the limit is a burst, and bursts have no knee.
    let record = all_in_rounds(&limits(None, Some(20)));
    let analysis = Analysis::of(&record);
    let line = &analysis.scale()[0].lines[0];
    assert_eq!((&line.knee, line.no_ratio), (&None, Some(NoRatio::Burst)));
}

#[test]
fn one_target_of_several_is_named() {
    let cells = vec![
        with(streams(2, &[20, 20], 0), |cell| busy(cell, &[0.5, 0.99])),
        with(streams(2, &[10; 4], 0), |cell| busy(cell, &[0.5, 0.99])),
    ];
    let Limit::SomeTargets(cause) = limit_of(&record(disks(2), cells)) else { panic!() };
    assert_eq!(cause.targets, [1]);
    assert_eq!(cause.text, "/dev/sd1 was busy 99.0% of the time, while /dev/sd0 had idle time");
}

#[test]
fn targets_that_add_nothing_share_a_path() {
    let record = record(disks(2), vec![streams(2, &[40], 0), streams(2, &[20, 20], 0)]);
    let Limit::SharedPath(cause) = limit_of(&record) else { panic!("{:?}", limit_of(&record)) };
    assert!(cause.text.starts_with("2 targets give 40.0 MiB/s"), "{}", cause.text);
    assert!(cause.evidence.len() == 4, "{:?}", cause.evidence);
}

/// One stream on one target by itself.
fn alone(target: u32, rate: u64) -> CellRecord {
    with(streams(1, &[rate], 0), |cell| {
        cell.id = format!("scale/read/1M/1@{target}");
        cell.workload.targets = vec![target];
        cell.result.visits[0].streams[0].target = target;
        cell.evidence.device[0].target = target;
    })
}

/// A disk of 30 MiB/s and one of 90: together they are as fast as both, and one stream on the first is no measure of that.
#[test]
fn unlike_targets_are_compared_with_what_each_gives_by_itself() {
    let cells = vec![alone(0, 30), alone(1, 90), streams(2, &[30, 90], 0), streams(2, &[15, 45, 15, 45], 0)];
    let record = all_in_rounds(&record(disks(2), cells));
    let analysis = Analysis::of(&record);
    let [grid] = analysis.scale() else { panic!("single streams are no grid: {:?}", analysis.scale()) };
    assert_eq!((&grid.targets, grid.counts()), (&vec![0, 1], vec![2, 4]));
    let line = &grid.lines[0];
    assert_eq!(line.alone.len(), 2);
    assert!((line.sum_alone().unwrap() - 120.0 * MIB as f64).abs() < 1.0);
    for point in &line.points {
        assert!((point.speed_up.unwrap() - 1.0).abs() < 0.01, "{point:?}");
        assert!(point.speed_up_interval.is_some());
    }
    assert!(!matches!(line.knee.as_ref().unwrap().limit, Limit::SharedPath(_)), "{:?}", line.knee);
    // With one of them missing there is nothing to compare with.
    let without = Record { cells: record.cells[1..].to_vec(), ..record.clone() };
    let analysis = Analysis::of(&without);
    assert!(
        analysis.scale().iter().flat_map(|grid| &grid.lines[0].points).all(|point| point.speed_up.is_none())
    );
}

/// Each gives 40 by itself, and all three 45: that is a path, at every block size.
#[test]
fn targets_that_give_less_together_share_a_path_at_every_block_size() {
    let of_size = |size: u64, rate: u64| {
        let each = (0..3).map(|target| alone(target, 40));
        let together = [streams(3, &[rate; 3], 0), streams(3, &[rate / 3; 9], 0)];
        each.chain(together).map(move |cell| {
            with(cell, |cell| {
                cell.id = cell.id.replace("1M", &format!("{size}M"));
                cell.workload.block_bytes = size * MIB;
            })
        })
    };
    let cells = of_size(1, 15).chain(of_size(2, 38)).collect();
    let record = all_in_rounds(&record(disks(3), cells));
    let analysis = Analysis::of(&record);
    let lines = &analysis.scale()[0].lines;
    let ratio = lines[0].together.unwrap();
    assert!((ratio.mean - 0.375).abs() < 0.01, "{ratio:?}");
    for line in lines {
        let Limit::SharedPath(cause) = &line.knee.as_ref().unwrap().limit else { panic!("{:?}", line.knee) };
        assert_eq!(
            cause.text,
            "3 targets give 45.0 MiB/s together and 120 MiB/s one by one, added up: they share a controller, a bus or a link"
        );
    }
}

#[test]
fn targets_on_one_device_share_that_device_and_no_path() {
    let busy_all = |cell: &mut CellRecord| busy(cell, &[0.99, 0.99]);
    let cells = vec![with(streams(2, &[40], 0), busy_all), with(streams(2, &[20, 20], 0), busy_all)];
    let mut loops = disks(2);
    for (index, target) in loops.iter_mut().enumerate() {
        target.device.as_mut().unwrap().name = format!("loop{index}");
        target.stack = vec![format!("loop{index}"), "vda".into()];
    }
    let Limit::DeviceBusy(cause) = limit_of(&record(loops, cells)) else {
        panic!("the disk below is the limit")
    };
    assert!(cause.text.ends_with("all of them lie on vda"), "{}", cause.text);
}

#[test]
fn queue_processor_and_nothing() {
    let idle = |cell: &mut CellRecord| busy(cell, &[0.5]);
    let Limit::QueueFull(_) = limit_of(&flat(|cell| {
        idle(cell);
        let device = &mut cell.evidence.device[0];
        device.waiting_ns = device.interval_ns.map(|interval_ns| 3 * interval_ns);
    })) else {
        panic!()
    };
    // The invented machine has 8 processors.
    for (cpu_ns, is_cpu) in [(2 * SECOND * 75 / 10, true), (2 * SECOND, false)] {
        let limit = limit_of(&flat(|cell| {
            idle(cell);
            cell.result.cpu_ns = Some(CpuTime { user: 0, system: cpu_ns });
        }));
        assert_eq!(matches!(limit, Limit::Cpu(_)), is_cpu, "{limit:?}");
    }
    assert_eq!(limit_of(&flat(idle)), Limit::Unknown);
    assert_eq!(
        limit_of(&flat(|cell| *cell = crate::fixtures::without_counters(cell.clone()))),
        Limit::Unknown
    );
}

#[test]
fn cells_that_never_ran_are_no_points_of_the_curve() {
    let never = crate::fixtures::not_applicable(streams(1, &[1, 1], 0), "too small");
    let record = record(disks(1), vec![streams(1, &[40], 0), never]);
    let record = all_in_rounds(&record);
    let analysis = Analysis::of(&record);
    let grids = analysis.scale();
    let point = grids[0].lines[0].point(2).unwrap();
    assert_eq!((point.bytes_per_s(), point.skew_ns, point.speed_up), (None, None, None));
    assert_eq!(grids[0].lines[0].knee, None);
}
