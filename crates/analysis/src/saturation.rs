//! Whether a device had more to give: two cells that differ only in the number of I/Os in flight, compared round by round. Little's
//! law (depth = rate × latency) says what a larger depth bought: a higher rate, longer waiting, or both. `%util` plays no part in
//! it, because a device that serves several requests at once is "busy" with one of them. It advises nothing.

use crate::block_io::BlockIo;
use crate::comparison::{Measure, Ratio, ratio_of};
use crate::iostat::iostat_row;
use crate::metrics;
use rdsk_model::{CellRecord, EngineKind, Experiment, Record, VerdictCode, Workload};

/// Latencies that grow at least by this factor are of requests that wait for each other.
const WAITING: f64 = 1.5;
/// Latencies that grow at most by this factor are of a device that has room for more.
const ROOM: f64 = 1.25;
/// The larger depth is at least so many times the smaller one.
const MIN_STEP: f64 = 2.0;

/// What the larger depth shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Requests waited for each other, in the device as far as it was timed: it serves no more of them at once.
    Saturated,
    /// Each I/O took hardly longer than alone: the device would serve more of them.
    Room,
    /// Each I/O took longer, and its request in the device did not: what is above the device is the limit.
    WaitsAbove,
}

/// The same I/O at two depths.
#[derive(Clone, Copy, Debug)]
pub struct TwoDepths<'a> {
    /// The cell with fewer in flight.
    pub shallow: &'a CellRecord,
    /// The cell with more.
    pub deep: &'a CellRecord,
    /// Rate at the larger depth over that at the smaller one.
    pub gain: Ratio,
    /// How many requests the device seems to serve side by side: those it had at the smaller depth, times the gain.
    pub at_a_time: f64,
    /// Latency at the larger depth over that at the smaller one, by Little's law, with the interval that follows from the gain's.
    pub growth: (f64, f64, f64),
    /// Mean time of a request in the device at both depths, in ns; `None` where BPF did not time all of them.
    pub device_ns: Option<(f64, f64)>,
    /// What it shows; `None` where it shows nothing for sure.
    pub state: Option<State>,
}

/// All cells that were measured at two depths, the smallest with the largest.
pub(crate) fn two_depths(
    record: &Record,
    device_ns: impl Fn(&CellRecord) -> Option<f64>,
) -> Vec<TwoDepths<'_>> {
    // The streams of `scale` have their own knee, and a copy has one I/O at a time. Of the others the device has to have set the rate;
    // that its queue was not as full as requested does not matter, since the depth that it had is known.
    let are_compared = |cell: &&CellRecord| {
        !matches!(cell.experiment, Experiment::Scale | Experiment::Dd | Experiment::Fio)
            && metrics::ran(cell)
            && metrics::has_verdict(cell, VerdictCode::Device)
    };
    // But for the depth, and for what differs with it.
    let alike = |cell: &CellRecord| {
        let workload = cell.workload.clone();
        (cell.experiment, Workload { queue_depth: 1, engine: EngineKind::Sync, seed: 0, ..workload })
    };
    let keyed = record.cells.iter().filter(are_compared).map(|cell| (alike(cell), cell));
    let groups = crate::groups::by_key(keyed).into_iter();
    groups.filter_map(|(_, cells)| of_group(cells, &device_ns)).collect()
}

fn of_group<'a>(
    mut cells: Vec<&'a CellRecord>,
    device_ns: &impl Fn(&CellRecord) -> Option<f64>,
) -> Option<TwoDepths<'a>> {
    cells.sort_by_key(|cell| cell.workload.queue_depth);
    let (shallow, deep) = (*cells.first()?, *cells.last()?);
    let step = metrics::depth_had(deep)? / metrics::depth_had(shallow).filter(|&depth| depth > 0.0)?;
    if step < MIN_STEP {
        return None;
    }
    // Neither state is said unless the whole interval is beyond its bound, which leaves a margin around "no gain at all".
    let gain = ratio_of(deep, shallow, Measure::Elapsed).ok()?;
    let growth = (step / gain.high, step / gain.mean, step / gain.low);
    let device_ns = device_ns(shallow).zip(device_ns(deep));
    let of_device = device_ns.map(|(alone, together)| together / alone);
    // At the smaller depth the device has fewer than the program: between two requests it has none.
    // Where several carry the target, each has its part of them.
    let depth_of = |device| iostat_row(device).map(|row| row.aqu_sz);
    let had: Option<f64> =
        metrics::devices(shallow).and_then(|devices| devices.into_iter().map(depth_of).sum());
    let had = had.filter(|&depth| depth > 0.0);
    let at_a_time = gain.mean * had.or_else(|| metrics::depth_had(shallow))?;
    Some(TwoDepths { shallow, deep, gain, at_a_time, growth, device_ns, state: state(growth, of_device) })
}

fn state((low, _, high): (f64, f64, f64), of_device: Option<f64>) -> Option<State> {
    match of_device {
        _ if high <= ROOM => Some(State::Room),
        Some(of_device) if low >= WAITING && of_device <= ROOM => Some(State::WaitsAbove),
        Some(of_device) if low >= WAITING && of_device < WAITING => None,
        _ if low >= WAITING => Some(State::Saturated),
        _ => None,
    }
}

/// Mean time of the cell's requests in the device, if BPF timed them all: that of some visits is not compared with what all took.
pub(crate) fn device_ns(cell: &CellRecord, block_io: &BlockIo<'_>) -> Option<f64> {
    let latency = cell.evidence.device_latency_ns.as_ref().filter(|_| block_io.is_of_all_visits())?;
    latency.mean.filter(|&ns| ns > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::bios::{bio, counted, request};
    use crate::fixtures::{self, cell, deepen, disk, in_rounds, with};
    use rdsk_model::{IoPath, Op};

    fn device_ns(cell: &CellRecord) -> Option<f64> {
        super::device_ns(cell, &crate::block_io::counted(cell)?)
    }

    fn two_depths(record: &Record) -> Vec<TwoDepths<'_>> {
        super::two_depths(record, device_ns)
    }

    /// Reads of a disk with one I/O in flight that each take 1 ms, and with 32, at so many times the rate.
    fn reads(gain: f64, device_ns: Option<(u64, u64)>) -> Record {
        let at_depth = |id: &str, depth: u32, rate: f64| {
            let ops = metrics::whole(rate * 10_000.0);
            let its_cell = cell(id, Op::Read, IoPath::Direct, 4096, ops, 10_000_000_000);
            let its_cell = with(its_cell, |cell| deepen(cell, depth, f64::from(depth)));
            let bios = vec![bio(Op::Read, "this", Some("pread64"), ops, 4096)];
            in_rounds(counted(its_cell, bios, vec![request(Op::Read, 4096, ops)]))
        };
        let mut cells = vec![at_depth("q1", 1, 1.0), at_depth("q32", 32, gain)];
        if let Some((alone, together)) = device_ns {
            for (cell, ns) in cells.iter_mut().zip([alone, together]) {
                cell.evidence.device_latency_ns = Some(fixtures::latency(cell.result.ops.unwrap_or(0), ns));
            }
        }
        fixtures::record(vec![disk()], cells)
    }

    fn shown(gain: f64, device_ns: Option<(u64, u64)>) -> Option<State> {
        let record = reads(gain, device_ns);
        let pairs = two_depths(&record);
        assert_eq!(pairs.len(), 1);
        pairs[0].state
    }

    #[test]
    fn what_some_visits_took_in_the_device_is_not_compared_with_what_all_took() {
        let record = reads(4.0, Some((1_000_000, 1_100_000)));
        assert_eq!(device_ns(&record.cells[1]).map(f64::round), Some(1_100_000.0));
        let some = with(record.cells[1].clone(), |cell| {
            cell.evidence.bpf.as_mut().unwrap().followed = Some(vec![0]);
        });
        assert!(crate::block_io::counted(&some).is_some() && device_ns(&some).is_none());
    }

    #[test]
    fn a_depth_buys_rate_or_waiting() {
        // gain, ns in the device at depth 1 and 32, state
        let table = [
            (1.0, None, Some(State::Saturated)),
            (4.0, None, Some(State::Saturated)),
            (31.0, None, Some(State::Room)),
            (24.0, None, None),
            (4.0, Some((900_000, 7_000_000)), Some(State::Saturated)),
            (4.0, Some((900_000, 950_000)), Some(State::WaitsAbove)),
            (4.0, Some((900_000, 1_200_000)), None),
            (31.0, Some((900_000, 950_000)), Some(State::Room)),
        ];
        for (gain, device_ns, state) in table {
            assert_eq!(shown(gain, device_ns), state, "{gain} {device_ns:?}");
        }
    }

    #[test]
    fn littles_law_gives_the_growth() {
        let record = reads(4.0, None);
        let pair = two_depths(&record)[0];
        assert!((pair.growth.1 - 8.0).abs() < 0.1, "{:?}", pair.growth);
        assert!((pair.at_a_time - 4.0).abs() < 0.1, "{}", pair.at_a_time);
        let mut idle = record.clone();
        fixtures::set_depth(&mut idle.cells[0].evidence.device[0], 0.5);
        assert!((two_depths(&idle)[0].at_a_time - 2.0).abs() < 0.1, "the device was idle half of the time");
        assert!(pair.growth.0 < pair.growth.1 && pair.growth.1 < pair.growth.2);
        // The devices of a filesystem that spreads over two share the one request.
        let mut shared = idle;
        let evidence = &mut shared.cells[0].evidence;
        let other = rdsk_model::DeviceEvidence { name: "sdb".into(), ..evidence.device[0].clone() };
        evidence.device.push(other);
        evidence.counted = vec![rdsk_model::Counted {
            target: 0,
            devices: vec!["sda".into(), "sdb".into()],
            written_least: 1.0,
            written_most: Some(1.0),
            why: None,
        }];
        assert!((two_depths(&shared)[0].at_a_time - 4.0).abs() < 0.1, "{}", two_depths(&shared)[0].at_a_time);
    }

    #[test]
    fn what_the_device_did_not_set_is_not_compared() {
        let mut record = reads(4.0, None);
        record.cells[1].result.in_flight_mean = Some(20.0);
        let growth = two_depths(&record)[0].growth.1;
        assert!((growth - 5.0).abs() < 0.1, "Little's law holds for the depth that it had: {growth}");
        record.cells[1].result.in_flight_mean = Some(1.9);
        assert!(two_depths(&record).is_empty(), "hardly deeper");
        let mut record = reads(4.0, None);
        record.cells[1].verdict.as_mut().unwrap().code = VerdictCode::CpuBound;
        assert!(two_depths(&record).is_empty());
        let mut record = reads(4.0, None);
        record.cells[1].workload.op = Op::Write;
        assert!(two_depths(&record).is_empty());
        let mut record = reads(4.0, None);
        record.cells[1].result.visits.truncate(2);
        assert!(two_depths(&record).is_empty(), "too few rounds");
    }
}
