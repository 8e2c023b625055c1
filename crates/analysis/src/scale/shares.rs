//! One cell of `scale`, read: who had how much of it, and when. Sums over visits; it knows no other cell.

use std::collections::BTreeSet;

use crate::comparison::Evenness;
use crate::target_shares::{TargetShare, of_visit, per_second, targets};
use rdsk_model::{AtOnce, CellRecord, StreamResult, Visit};

/// A ramp of up to this part of the elapsed time does not blur the shares of the streams.
const SHORT_RAMP: f64 = 0.1;

/// One cell, read.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    /// The cell itself; its `bytes_per_s` is the rate while all streams ran.
    pub cell: &'a CellRecord,
    /// The time before the last stream began, of the first visit; `None` for a single stream and if all began at once.
    pub ramp: Option<Ramp>,
    /// What each stream had, by index.
    pub streams: Vec<StreamShare>,
    /// How evenly; `None` for a single stream.
    pub fairness: Option<Fairness>,
    /// What each target gave, in the order of the workload.
    pub targets: Vec<TargetShare>,
    /// How far the starts were from the requested times, in ns: the most that a start differed from its turn, or, where all
    /// were to start together, from the first start to the last. `None` for a single stream.
    pub skew_ns: Option<u64>,
    /// The rate over that of one stream with the same block size; `None` if one of the two was not measured whole.
    pub speed_up: Option<f64>,
    /// Its 95 % interval over rounds; `None` with too few of them.
    pub speed_up_interval: Option<(f64, f64)>,
    /// How evenly the streams were served round by round; `None` for a single stream and with too few rounds.
    pub evenness: Option<Evenness>,
    /// Indices of the streams that failed.
    pub failed: Vec<u32>,
}

impl Point<'_> {
    /// Number of streams; of hosts, where numbers of them are compared.
    pub fn count(&self) -> u32 {
        let workload = &self.cell.workload;
        workload.at_once.map_or(workload.streams, AtOnce::count)
    }

    /// What is counted: `stream`, `host`, `rank`.
    pub fn noun(&self) -> &'static str {
        self.cell.workload.at_once.map_or("stream", AtOnce::noun)
    }

    /// Bytes per second while all streams ran.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.cell.result.bytes_per_s.map(|rate| rate.mean)
    }

    /// Whether all of its streams ran to their end. A cell in which one failed had fewer of them, so its rate belongs to no count.
    pub fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.bytes_per_s().is_some()
    }
}

/// The time in which streams began one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// From the first start to the last.
    pub elapsed_ns: u64,
    /// Bytes of the full windows in that time.
    pub bytes: u64,
    /// Their rate; `None` if the ramp is shorter than a window.
    pub bytes_per_s: Option<f64>,
}

/// What one stream did, over all visits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamShare {
    /// Its number.
    pub index: u32,
    /// Index of its target.
    pub target: u32,
    /// Bytes.
    pub bytes: u64,
    /// From its starts to its ends.
    pub elapsed_ns: u64,
    /// Bytes over that time, per second; 0 for a stream without any time.
    pub bytes_per_s: f64,
}

/// How evenly the streams were served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fairness {
    /// Jain's index over the rates of the streams, each over its own time: 1 when all have the same, 1/n when one has
    /// everything.
    pub jain: f64,
    /// Whether the ramp is so long that streams that began early have more for that reason alone.
    pub has_ramp: bool,
}

/// Reads one cell; what needs other cells is left empty.
pub(super) fn point(cell: &CellRecord) -> Point<'_> {
    let streams = streams(cell);
    let failed: BTreeSet<u32> = cell.result.errors.iter().filter_map(|error| error.stream).collect();
    let failed: Vec<u32> = failed.into_iter().collect();
    Point {
        cell,
        fairness: fairness(cell, &streams, &failed),
        targets: targets(cell),
        skew_ns: cell.result.visits.iter().filter_map(|visit| skew_ns(visit, cell)).max(),
        speed_up: None,
        speed_up_interval: None,
        evenness: None,
        ramp: ramp(cell),
        streams,
        failed,
    }
}

fn streams(cell: &CellRecord) -> Vec<StreamShare> {
    let mut streams: Vec<StreamShare> = Vec::new();
    for stream in cell.result.visits.iter().flat_map(|visit| of_visit(visit, cell)) {
        let elapsed_ns = stream.end_ns.saturating_sub(stream.start_ns);
        let (index, target, bytes) = (stream.index, stream.target, stream.bytes);
        match streams.iter_mut().find(|sum| sum.index == index) {
            Some(sum) => {
                sum.bytes += bytes;
                sum.elapsed_ns += elapsed_ns;
            }
            None => streams.push(StreamShare { index, target, bytes, elapsed_ns, bytes_per_s: 0.0 }),
        }
    }
    for stream in &mut streams {
        stream.bytes_per_s = per_second(stream.bytes, stream.elapsed_ns);
    }
    streams.sort_by_key(|stream| stream.index);
    streams
}

fn fairness(cell: &CellRecord, streams: &[StreamShare], failed: &[u32]) -> Option<Fairness> {
    let whole = streams.iter().filter(|stream| !failed.contains(&stream.index));
    let rates: Vec<f64> = whole.map(|stream| stream.bytes_per_s).collect();
    if rates.len() < 2 {
        return None;
    }
    let starts = cell.result.visits.iter().filter_map(spread_ns).sum::<u64>();
    let elapsed_ns = cell.result.elapsed_ns.unwrap_or(0);
    let has_ramp = starts as f64 > SHORT_RAMP * elapsed_ns as f64;
    Some(Fairness { jain: rdsk_stats::jain(&rates), has_ramp })
}

/// From the first start of a visit to the last.
fn spread_ns(visit: &Visit) -> Option<u64> {
    let starts = || visit.streams.iter().map(|stream| stream.start_ns);
    Some(starts().max()? - starts().min()?)
}

fn skew_ns(visit: &Visit, cell: &CellRecord) -> Option<u64> {
    if visit.streams.len() < 2 {
        return None;
    }
    let stagger_ns = cell.workload.stagger_ns;
    if stagger_ns == 0 {
        return spread_ns(visit);
    }
    let late =
        |stream: &StreamResult| stream.start_ns.abs_diff(stagger_ns.saturating_mul(u64::from(stream.index)));
    visit.streams.iter().map(late).max()
}

/// The first visit's: its windows are the first of the cell's.
fn ramp(cell: &CellRecord) -> Option<Ramp> {
    let elapsed_ns = cell.result.visits.first().and_then(spread_ns)?;
    let windows = cell.result.windows.as_ref().filter(|windows| windows.width_ns > 0)?;
    if cell.workload.stagger_ns == 0 {
        return None;
    }
    let count = usize::try_from(elapsed_ns / windows.width_ns).ok()?.min(windows.bytes.len());
    let bytes = windows.bytes[..count].iter().sum();
    let covered_ns = windows.width_ns * count as u64;
    Some(Ramp { elapsed_ns, bytes, bytes_per_s: (count > 0).then(|| per_second(bytes, covered_ns)) })
}
