//! Fleets of chosen disks: a Record whose figures are varied as disks of one model vary, with some of them made slow.

use super::*;
use crate::Metric;
use crate::testing::{cell, record};
use rdsk_analysis::fixtures::with;
use rdsk_model::{Estimate, Record, VerdictCode};
use rdsk_stats::rng::SplitMix64;

const TESTS: usize = 12;
const HOSTS: usize = 500;
const SEEDS: u64 = 20;

/// How disks of one model differ: as a whole, and in each test, as logarithms.
#[derive(Clone, Copy)]
struct Spread {
    level: f64,
    test: f64,
    p99: f64,
    /// Noise that is exponential on both sides instead of normal, with the same variance.
    is_heavy: bool,
}

const SSD: Spread = Spread { level: 0.02, test: 0.02, p99: 0.06, is_heavy: false };

impl Spread {
    fn draw(self, noise: &mut SplitMix64, size: f64) -> f64 {
        if !self.is_heavy {
            return size * noise.normal();
        }
        let share: f64 = noise.uniform() - 0.5;
        -size / 2.0_f64.sqrt() * share.signum() * (1.0 - 2.0 * share.abs()).ln()
    }

    /// The record of a host.
    fn record(self, noise: &mut SplitMix64, host: usize) -> Record {
        let level = self.draw(noise, self.level);
        let cells = (0..TESTS).map(|test| {
            let rate = 1e8 * (1.0 + test as f64) * (level + self.draw(noise, self.test)).exp();
            let p99 = 1e6 * (1.0 + test as f64) * self.draw(noise, self.p99).exp();
            with(cell(&format!("headline/{test}")), |cell| {
                cell.workload.targets = vec![0];
                cell.result.bytes_per_s = Some(Estimate { mean: rate, low: None, high: None });
                let latency = cell.result.latency_ns.as_mut().unwrap();
                latency.p99 = Some(rdsk_analysis::metrics::whole(p99));
            })
        });
        let mut record = record("2026-01-01T00:00:00Z", cells.collect());
        record.id = format!("{host:026}");
        record.host.as_mut().unwrap().hostname = Some(format!("host{host:03}"));
        record
    }

    fn records(self, seed: u64, hosts: usize) -> Vec<Record> {
        let mut noise = SplitMix64::new(seed);
        (0..hosts).map(|host| self.record(&mut noise, host)).collect()
    }
}

fn rates(record: &mut Record, factor: f64) {
    for cell in &mut record.cells {
        cell.result.bytes_per_s.as_mut().unwrap().mean *= factor;
    }
}

fn judged(records: &[Record]) -> Fleet {
    let mut gathering = Gathering::default();
    for record in records {
        gathering.add("x.json", record);
    }
    gathering.judge()
}

fn named(fleet: &Fleet) -> Vec<&str> {
    let mut names: Vec<&str> =
        fleet.outliers.iter().map(|outlier| fleet.disks[outlier.disk].host.as_str()).collect();
    names.sort_unstable();
    names
}

/// Five bad disks of 500: 20 and 40 % slower in all tests, 35 % slower in one alone, 25 % in half of them, and a p99 of twice the time.
fn with_bad(mut records: Vec<Record>) -> Vec<Record> {
    rates(&mut records[17], 0.8);
    rates(&mut records[170], 0.6);
    records[250].cells[3].result.bytes_per_s.as_mut().unwrap().mean *= 0.65;
    for cell in &mut records[333].cells[..TESTS / 2] {
        cell.result.bytes_per_s.as_mut().unwrap().mean *= 0.75;
    }
    let latency = records[404].cells[5].result.latency_ns.as_mut().unwrap();
    latency.p99 = latency.p99.map(|ns| ns * 2);
    records
}
const BAD: [&str; 5] = ["host017", "host170", "host250", "host333", "host404"];

#[test]
fn five_bad_disks_of_500_are_found() {
    for seed in 0..SEEDS {
        let fleet = judged(&with_bad(SSD.records(seed, HOSTS)));
        let names = named(&fleet);
        assert_eq!(names, BAD, "seed {seed}");
        assert_eq!((fleet.disks.len(), fleet.compared, fleet.hosts), (HOSTS, HOSTS, HOSTS));
    }
}

#[test]
fn a_fleet_without_bad_disks_has_no_outlier() {
    let wide = Spread { level: 0.04, test: 0.05, p99: 0.15, is_heavy: false };
    let heavy = Spread { is_heavy: true, ..wide };
    let fleets = [(SSD, HOSTS), (wide, HOSTS), (heavy, HOSTS), (heavy, 60), (wide, 12), (heavy, 12)];
    let counts = fleets.map(|(spread, hosts)| {
        let has_outlier = |&seed: &u64| !judged(&spread.records(seed, hosts)).outliers.is_empty();
        (0..SEEDS).filter(has_outlier).count()
    });
    assert!(counts.iter().all(|&count| count <= 1) && counts.iter().sum::<usize>() <= 2, "{counts:?}");
}

fn model(record: &mut Record, model: &str, firmware: &str) {
    let device = record.targets[0].device.as_mut().unwrap();
    (device.model, device.firmware) = (Some(model.into()), Some(firmware.into()));
}

#[test]
fn a_slow_model_is_no_outlier_and_a_slow_disk_of_it_is() {
    let mut records = SSD.records(3, 100);
    for (place, record) in records.iter_mut().enumerate() {
        let is_slow = place % 2 == 1;
        model(record, if is_slow { "slow" } else { "fast" }, "1.0");
        if is_slow {
            rates(record, 0.5);
        }
    }
    let fleet = judged(&records);
    assert_eq!(named(&fleet), [""; 0]);
    let medians: Vec<f64> = fleet.groups.iter().map(|group| group.rate.unwrap().0).collect();
    assert!((medians[0] / medians[1] - 2.0).abs() < 0.05, "{medians:?}");
    rates(&mut records[7], 0.7);
    let fleet = judged(&records);
    let outlier = &fleet.outliers[0];
    assert_eq!((named(&fleet), outlier.compared, outlier.slower), (vec!["host007"], 2 * TESTS, TESTS));
    assert!((outlier.factor * outlier.worst.value / outlier.median - 1.0).abs() < 1e-9, "{outlier:?}");
    assert_eq!(fleet.series_of(outlier.worst).metric, Metric::Rate);
}

#[test]
fn a_firmware_of_few_disks_is_compared_with_its_model_and_a_model_of_few_with_none() {
    let mut records = SSD.records(4, 60);
    for (place, record) in records.iter_mut().enumerate() {
        match place {
            0..3 => model(record, "rare", "1.0"),
            3..6 => model(record, "common", "2.0"),
            _ => model(record, "common", "1.0"),
        }
    }
    rates(&mut records[1], 0.3);
    rates(&mut records[4], 0.5);
    let fleet = judged(&records);
    assert_eq!((named(&fleet), fleet.compared), (vec!["host004"], 57));
    let with: Vec<_> = fleet.groups.iter().map(|group| (group.disks, group.compared_with)).collect();
    use ComparedWith::{Firmware, Model, None};
    assert_eq!((with[0], with.len()), ((54, Firmware), 3));
    assert!(with.contains(&(3, Model)) && with.contains(&(3, None)), "{with:?}");
}

#[test]
fn a_disk_counts_once_with_its_latest_run_and_hosts_of_no_name_are_apart() {
    let mut records = SSD.records(5, 20);
    let mut older = records[3].clone();
    (older.id, older.started_at) = ("older".into(), "2025-12-31T00:00:00Z".into());
    rates(&mut older, 0.3);
    let again = records[3].clone();
    records.extend([older, again]);
    let fleet = judged(&records);
    assert_eq!((fleet.disks.len(), fleet.replaced, named(&fleet)), (20, 1, vec![]));
    let mut gathering = Gathering::default();
    for (place, record) in records[..3].iter_mut().enumerate() {
        record.host.as_mut().unwrap().hostname = Some("localhost".into());
        gathering.add(&format!("file{place}"), record);
    }
    let fleet = gathering.judge();
    let hosts: Vec<&str> = fleet.disks.iter().map(|disk| disk.host.as_str()).collect();
    assert_eq!((hosts, fleet.compared), (vec!["file0", "file1", "file2"], 0));
}

/// What memory served says nothing of a disk, and what asks something else is not the same test.
#[test]
fn only_like_figures_of_disks_are_kept() {
    let kept = |change: fn(&mut Record)| {
        let mut records = SSD.records(6, 2);
        change(&mut records[1]);
        let fleet = judged(&records);
        (fleet.series.len(), fleet.without_figures)
    };
    assert_eq!(kept(|_| ()), (2 * TESTS, 0));
    assert_eq!(kept(|record| record.cells[0].workload.block_bytes = 512), (2 * TESTS + 2, 0));
    assert_eq!(kept(|record| record.cells[0].workload.seed = 77), (2 * TESTS, 0));
    let of_memory = |record: &mut Record| {
        for cell in &mut record.cells {
            cell.verdict.as_mut().unwrap().code = VerdictCode::PageCache;
        }
    };
    assert_eq!(kept(of_memory), (2 * TESTS, 1));
}
