//! A further source of evidence implements one trait: what it sees of requests, bios, device latency and splits reaches the
//! evidence of the cell, summed over visits.

use rdsk_model::{Bio, BlockActivity, EvidenceSource, Op, Request};
use rdsk_observe::{DeviceCounts, DeviceVisit, EvidenceSum, Observer, Series, VisitEvidence};
use rdsk_stats::Histogram;

/// Sees the same in every visit.
struct Scripted {
    visits: u64,
}

impl Observer for Scripted {
    fn begin(&mut self) {
        self.visits += 1;
    }

    fn end_io(&mut self) {}

    fn end(&mut self) -> VisitEvidence {
        let bio = |task: &str, syscall: Option<&str>, count: u64| Bio {
            target: 0,
            device: "sda".into(),
            nowait: false,
            read_ahead: false,
            flush: false,
            op: Op::Write,
            syscall: syscall.map(str::to_owned),
            task: task.into(),
            count,
            bytes: count << 20,
        };
        let request = |bytes: u64, count: u64| Request {
            target: 0,
            device: String::new(),
            op: Op::Write,
            bytes,
            fua: false,
            count,
        };
        let mut latency = Histogram::new();
        (0..10).for_each(|_| latency.record(1_000 * self.visits));
        let counts = DeviceCounts { splits: Some(3), ..DeviceCounts::default() };
        VisitEvidence {
            source: EvidenceSource::Bpf,
            devices: vec![DeviceVisit {
                target: 0,
                name: "sda".into(),
                counts: Ok(counts),
                in_flight_max: None,
                series: Series::new(1_000),
            }],
            block: Some(BlockActivity {
                requests: vec![request(524_288, 8), request(4096, 1)],
                bios: vec![bio("this", Some("pwrite64"), 4), bio("kernel", None, 1)],
                latency,
                ..BlockActivity::default()
            }),
            ..VisitEvidence::none()
        }
    }

    fn describe(&self) -> rdsk_model::ObserverFacts {
        let source = EvidenceSource::Bpf;
        rdsk_model::ObserverFacts { source, why_not_higher: None, lost_events: 0, cost_ns_per_io: None }
    }
}

fn visit(observer: &mut dyn Observer) -> VisitEvidence {
    observer.begin();
    observer.end_io();
    observer.end()
}

#[test]
fn everything_that_it_sees_is_summed_over_visits() {
    let mut observer = Scripted { visits: 0 };
    let mut sum = EvidenceSum::default();
    for _ in 0..3 {
        sum.add(visit(&mut observer));
    }
    let evidence = sum.finish();
    assert_eq!(evidence.source, observer.describe().source);
    assert_eq!(evidence.device[0].splits, Some(9));
    let requests: Vec<_> = evidence.requests.iter().map(|request| (request.bytes, request.count)).collect();
    assert_eq!(requests, [(524_288, 24), (4096, 3)]);
    let bios: Vec<_> =
        evidence.bios.iter().map(|bio| (bio.task.as_str(), bio.syscall.as_deref(), bio.count)).collect();
    assert_eq!(bios, [("this", Some("pwrite64"), 12), ("kernel", None, 3)]);
    assert_eq!(evidence.bios[0].bytes, 12 << 20);
    let latency = evidence.device_latency_ns.unwrap();
    assert_eq!((latency.count, latency.min, latency.max), (30, Some(1_000), Some(3_000)));
    assert!(latency.histogram.is_some());
}

#[test]
fn one_visit_without_latencies_leaves_them_unknown() {
    for missing in 0..3 {
        let mut observer = Scripted { visits: 0 };
        let mut sum = EvidenceSum::default();
        for number in 0..3 {
            let mut seen = visit(&mut observer);
            seen.block = seen.block.filter(|_| number != missing);
            sum.add(seen);
        }
        assert_eq!(sum.finish().device_latency_ns, None, "visit {missing}");
    }
}
