//! What is kept of a Record: its disks, and of each test the rate and the 99th percentile of the latency.

use crate::figure::{Metric, figure};
use crate::matching::{is_whole, placed_jobs};
use crate::parts::with_parts;
use rdsk_analysis::metrics::ran;
use rdsk_analysis::words;
use rdsk_model::{
    CellRecord, EngineKind, Pattern, Record, Target, TargetKind, Untold, VerdictCode, Workload,
};
use std::collections::HashMap;

/// What is compared of each test. The median says what the rate says.
const METRICS: [Metric; 2] = [Metric::Rate, Metric::P99];
/// What a host is called that has no name of its own.
const NO_NAMES: [&str; 2] = ["localhost", "localhost.localdomain"];

/// One figure of one test, as all disks have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The test as a row is labelled.
    pub test: String,
    /// The id of the test, without its target, in the first run that has it.
    pub id: String,
    /// Which figure.
    pub metric: Metric,
    /// Bytes of an I/O where the rate is one of I/Os; `None` for a bandwidth.
    pub io_bytes: Option<u64>,
}

/// The value of one disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Which series it belongs to.
    pub series: usize,
    /// Bytes per second, or nanoseconds.
    pub value: f64,
    /// What it is a figure of.
    pub verdict: VerdictCode,
}

/// One disk of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// The host's name; else the label of the run, or the name of its file. Untrusted text.
    pub host: String,
    /// The target as the user called it.
    pub target: String,
    /// Kernel name of its device; the target where there is none, and for simulated systems.
    pub device: String,
    /// Model of the device.
    pub model: Option<String>,
    /// Revision of its firmware.
    pub firmware: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// The run.
    pub run: String,
    /// When it began.
    pub started_at: String,
    /// What was measured.
    pub figures: Vec<Figure>,
}

/// Disks so far.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    pub(super) disks: Vec<Disk>,
    pub(super) series: Vec<Series>,
    pub(super) replaced: usize,
    pub(super) without_figures: usize,
    places: HashMap<(String, Metric), usize>,
    disk_places: HashMap<(String, String), usize>,
}

impl Gathering {
    /// Takes the figures of a run that `name` found.
    pub fn add(&mut self, name: &str, record: &Record) {
        let records = with_parts(&[record]);
        let record = &*records[0];
        let disks: Vec<Disk> = record
            .targets
            .iter()
            .map(|target| self.disk(name, record, target))
            .filter(|disk| !disk.figures.is_empty())
            .collect();
        self.without_figures += usize::from(disks.is_empty());
        let mut has_replaced = false;
        for disk in disks {
            let identity = (disk.host.clone(), disk.serial.as_ref().unwrap_or(&disk.device).clone());
            let Some(&place) = self.disk_places.get(&identity) else {
                self.disk_places.insert(identity, self.disks.len());
                self.disks.push(disk);
                continue;
            };
            let kept = &mut self.disks[place];
            has_replaced |= kept.run != disk.run;
            if disk.started_at > kept.started_at {
                *kept = disk;
            }
        }
        self.replaced += usize::from(has_replaced);
    }

    fn disk(&mut self, name: &str, record: &Record, target: &Target) -> Disk {
        let device = target.device.as_ref();
        let cells = record.cells.iter().filter(|cell| cell.workload.targets == [target.index]);
        let figures = cells.flat_map(|cell| self.figures(record, cell)).collect();
        Disk {
            host: host(name, record),
            target: target.name.clone(),
            device: kernel_name(target).unwrap_or(&target.name).clone(),
            model: device.and_then(|device| device.model.clone()),
            firmware: device.and_then(|device| device.firmware.clone()),
            serial: device.and_then(|device| device.serial.clone()),
            run: record.id.clone(),
            started_at: record.started_at.clone(),
            figures,
        }
    }

    /// The figures of a test that reached the disk.
    fn figures(&mut self, record: &Record, cell: &CellRecord) -> Vec<Figure> {
        use VerdictCode::{Hole, Incomplete, PageCache};
        let verdict = cell.verdict.as_ref().map(|verdict| verdict.code);
        let verdict = verdict.filter(|code| ran(cell) && ![Hole, Incomplete, PageCache].contains(code));
        let (Some(verdict), Some(asked)) = (verdict, asked(record, cell)) else { return Vec::new() };
        METRICS
            .into_iter()
            .filter_map(|metric| {
                let value = figure(cell, metric)?.mean;
                Some(Figure { series: self.series(&asked, cell, metric), value, verdict })
            })
            .collect()
    }

    fn series(&mut self, asked: &str, cell: &CellRecord, metric: Metric) -> usize {
        let next = self.series.len();
        let place = *self.places.entry((asked.to_owned(), metric)).or_insert(next);
        if place == next {
            let io_bytes = (!words::is_bandwidth(cell)).then_some(cell.workload.block_bytes);
            let id = cell.name().to_owned();
            self.series.push(Series { test: words::test_label(cell), id, metric, io_bytes });
        }
        place
    }
}

fn kernel_name(target: &Target) -> Option<&String> {
    let device = target.device.as_ref().filter(|_| target.kind != TargetKind::Sim);
    device.map(|device| &device.name).filter(|name| !name.is_empty())
}

fn host(name: &str, record: &Record) -> String {
    let hostname = record.host.as_ref().and_then(|host| host.hostname.as_deref());
    let own = hostname.filter(|name| !NO_NAMES.contains(name));
    own.or(record.label.as_deref()).unwrap_or(name).to_owned()
}

/// What a test asks, in words that are the same where [`crate::matching()`] pairs two tests, and their names are the same; `None` where
/// that is not known.
fn asked(record: &Record, cell: &CellRecord) -> Option<String> {
    let workload = &cell.workload;
    let is_sequential = workload.pattern == Pattern::Sequential && workload.points.is_none();
    let place = match workload.known_offset_bytes() {
        _ if is_whole(record, workload) => (0, 0),
        Some(_) if is_sequential => (workload.offset_bytes, 1),
        Some(_) => (workload.offset_bytes, workload.span_bytes),
        None => return None,
    };
    if workload.untold.iter().any(|&word| word != Untold::Engine) {
        return None;
    }
    let points = workload.points.as_ref().map(|points| (points.len(), points.moves_start));
    let same = Workload {
        engine: EngineKind::Sync,
        targets: Vec::new(),
        offset_bytes: 0,
        span_bytes: 0,
        points: None,
        buffers: None,
        jobs: placed_jobs(workload, is_whole(record, workload)),
        seed: 0,
        untold: Vec::new(),
        ..workload.clone()
    };
    Some(format!("{} {place:?} {points:?} {same:?}", cell.name()))
}
