//! Everything that is derived from one Record, each thing on first use, and then kept: rules and pages share
//! one [`Analysis`], so that a costly inference runs once. It stores nothing that the Record does not give again.

use crate::block_io::{self, BlockIo};
use crate::comparison::{self, Comparison, Family, Kind};
use crate::contention::is_shared;
use crate::first_access::{self, FirstCost};
use crate::in_device::{self, InDevice};
use crate::lasting::{self, Lasting};
use crate::rate_series::{self, LevelShift, RateSeries};
use crate::saturation::{self, TwoDepths};
use crate::scale::{self, Grid};
use crate::settling::{self, Settling};
use crate::stalls;
use crate::stripe::{self, StripeResult};
use crate::trend::{self, VisitTrend};
use crate::zones::{self, Zones};
use rdsk_model::{CellRecord, Experiment, Record, Stall};
use std::cell::OnceCell;
use std::ops::Deref;

/// A Record and what was derived from it so far. It derefs to the Record.
#[derive(Debug)]
pub struct Analysis<'a> {
    record: &'a Record,
    /// In the order of the Record's cells.
    derived: Vec<Derived<'a>>,
    /// The cells that show what first accesses cost, and of each cell the visits without any where that matters.
    first_costs: OnceCell<Vec<(&'a CellRecord, FirstCost)>>,
    later: OnceCell<Vec<Option<CellRecord>>>,
    scale: OnceCell<Vec<Grid<'a>>>,
    two_depths: OnceCell<Vec<TwoDepths<'a>>>,
    families: OnceCell<Vec<Family<'a>>>,
    /// Number of cells whose trend is judged.
    judged: OnceCell<usize>,
    /// The trends of the cells that drift over the run.
    over_run: OnceCell<Vec<(&'a CellRecord, VisitTrend)>>,
}

/// What one cell gives.
#[derive(Debug, Default)]
struct Derived<'a> {
    block_io: OnceCell<Option<BlockIo<'a>>>,
    in_device: OnceCell<Option<InDevice>>,
    settling: OnceCell<Option<Settling>>,
    lasting: OnceCell<Option<Lasting>>,
    zones: OnceCell<Option<Zones>>,
    stripe: OnceCell<Option<StripeResult>>,
    rate_series: OnceCell<Option<RateSeries>>,
    level_shifts: OnceCell<Vec<LevelShift>>,
    stalls: OnceCell<Vec<Stall>>,
    trend: OnceCell<Option<VisitTrend>>,
}

impl<'a> Analysis<'a> {
    /// Of a Record whose cells have their verdicts; nothing is derived yet.
    pub fn of(record: &'a Record) -> Self {
        let derived = record.cells.iter().map(|_| Derived::default()).collect();
        Self {
            record,
            derived,
            first_costs: OnceCell::new(),
            later: OnceCell::new(),
            scale: OnceCell::new(),
            two_depths: OnceCell::new(),
            families: OnceCell::new(),
            judged: OnceCell::new(),
            over_run: OnceCell::new(),
        }
    }

    /// What BPF counted of a cell; `None` where it did not follow all bios and take all times in the visits that it followed, or missed
    /// more than 1 % of the requests.
    pub fn block_io(&self, cell: &CellRecord) -> Option<&BlockIo<'a>> {
        self.counted_io(cell).filter(|block_io| block_io.timed_share().is_none())
    }

    /// The same whatever part of the time its programs took times and followed bios: its requests are those of all of it.
    pub fn counted_io(&self, cell: &CellRecord) -> Option<&BlockIo<'a>> {
        let index = self.index(cell);
        self.derived[index].block_io.get_or_init(|| block_io::counted(&self.record.cells[index])).as_ref()
    }

    /// Bytes that a write of a cell made the kernel read, on average: of its own calls where BPF distinguished them, else of what the
    /// kernel charged to the process. `None` without writes, or where neither is known.
    pub fn read_per_write(&self, cell: &CellRecord) -> Option<f64> {
        block_io::read_per_write(cell, self.block_io(cell))
    }

    /// How much of an I/O's time its request was in the device, of a cell with one direct I/O at a time, each of them one request.
    pub fn in_device(&self, cell: &CellRecord) -> Option<InDevice> {
        *self.derived(cell).in_device.get_or_init(|| in_device::in_device(cell, self.block_io(cell)?))
    }

    /// What the writes of a cell left to a flush; `None` where that is nothing, or not known.
    pub fn settling(&self, cell: &CellRecord) -> Option<Settling> {
        *self.derived(cell).settling.get_or_init(|| settling::settling(self.record, cell))
    }

    /// Whether the rate of a writing cell lasts; `None` where no visit of it went on.
    pub fn lasting(&self, cell: &CellRecord) -> Option<Lasting> {
        *self.derived(cell).lasting.get_or_init(|| lasting::lasting_of(self.record, cell))
    }

    /// All cells that were measured at two depths, the smallest with the largest.
    pub fn two_depths(&self) -> &[TwoDepths<'a>] {
        self.two_depths.get_or_init(|| saturation::two_depths(self.record, |cell| self.device_ns(cell)))
    }

    /// Mean time of a cell's requests in the device, if BPF timed them all.
    fn device_ns(&self, cell: &CellRecord) -> Option<f64> {
        saturation::device_ns(cell, self.block_io(cell)?)
    }

    /// What first accesses cost, by the cells that show it, and by the layout of test files.
    pub fn first_costs(&self) -> &[(&'a CellRecord, FirstCost)] {
        self.first_costs.get_or_init(|| {
            let mut costs = first_access::shown(&self.record.cells);
            costs.extend(first_access::of_layouts(self.record));
            costs
        })
    }

    /// The cell as questions about time and position see it: without the visits whose difference first accesses explain.
    fn later<'s>(&'s self, cell: &'s CellRecord) -> &'s CellRecord {
        let later = self.later.get_or_init(|| first_access::later_cells(&self.record.cells));
        later[self.index(cell)].as_ref().unwrap_or(cell)
    }

    /// Zones, scatter and latency bands of a cell of `zones`; `None` when no position was visited.
    pub fn zones(&self, cell: &CellRecord) -> Option<&Zones> {
        self.derived(cell).zones.get_or_init(|| zones::zones(self.record, self.later(cell))).as_ref()
    }

    /// The geometry that a cell of `stripe` shows; `None` when it made no request, and for reads that only accompany the
    /// writes of the same target.
    pub fn stripe(&self, cell: &CellRecord) -> Option<&StripeResult> {
        self.derived(cell).stripe.get_or_init(|| stripe::stripe(self.record, cell)).as_ref()
    }

    /// The cells of `scale`: one grid per direction and set of targets, in the order of the Record.
    pub fn scale(&self) -> &[Grid<'a>] {
        self.scale.get_or_init(|| {
            scale::analyse(self.record, self.family(Experiment::Scale), &|cell| self.device_ns(cell))
        })
    }

    /// What the pages compare: one family per experiment, each corrected for the number of its comparisons.
    pub fn families(&self) -> &[Family<'a>] {
        self.families.get_or_init(|| comparison::families(self.record))
    }

    /// All comparisons for one purpose.
    pub fn comparisons(&self, kind: Kind) -> impl Iterator<Item = &Comparison<'a>> {
        self.families()
            .iter()
            .flat_map(|family| &family.comparisons)
            .filter(move |comparison| comparison.kind == kind)
    }

    fn family(&self, experiment: Experiment) -> Option<&Family<'a>> {
        self.families().iter().find(|family| family.experiment == experiment)
    }

    /// The windows of a cell by visit; `None` when its progress is not that of the device.
    pub fn rate_series(&self, cell: &CellRecord) -> Option<&RateSeries> {
        self.derived(cell).rate_series.get_or_init(|| rate_series::rate_series(self.later(cell))).as_ref()
    }

    /// The lasting falls of a cell's rate to a lower level; none where other programs shared its processors or its device.
    pub fn level_shifts(&self, cell: &CellRecord) -> &[LevelShift] {
        let shifts =
            || if is_shared(cell) { Vec::new() } else { rate_series::level_shifts(self.later(cell)) };
        self.derived(cell).level_shifts.get_or_init(shifts)
    }

    /// The stalls that a cell's windows show, in the order of time.
    pub fn stalls(&self, cell: &CellRecord) -> &[Stall] {
        let derive = || {
            self.rate_series(cell).map_or_else(Vec::new, |series| stalls::stalls(self.later(cell), series))
        };
        self.derived(cell).stalls.get_or_init(derive)
    }

    /// How the rate of a cell changes within its visits, or over the run with other cells of its targets, when it does; `None` where
    /// other programs shared its processors or its device.
    pub fn trend(&self, cell: &CellRecord) -> Option<VisitTrend> {
        if is_shared(cell) {
            return None;
        }
        let judged = || *self.judged.get_or_init(|| self.judged().count());
        let over_run = || {
            let trends = self.over_run.get_or_init(|| self.trends_over_run());
            trends.iter().find(|(own, _)| std::ptr::eq(*own, cell)).map(|(_, trend)| *trend)
        };
        let own = || trend::trend(self.rate_series(cell), judged());
        *self.derived(cell).trend.get_or_init(|| own().or_else(over_run))
    }

    fn trends_over_run(&self) -> Vec<(&'a CellRecord, VisitTrend)> {
        let keyed = self.judged().filter_map(|cell| {
            Some(((&cell.workload.targets, cell.sitting()), (cell, self.rate_series(cell)?)))
        });
        let groups = crate::groups::by_key(keyed);
        let trends = groups.iter().flat_map(|(_, cells)| trend::over_run(self.record, cells, groups.len()));
        trends.collect()
    }

    /// The cells whose trend is judged.
    fn judged(&self) -> impl Iterator<Item = &'a CellRecord> {
        let cells = self.record.cells.iter();
        cells.filter(|cell| !is_shared(cell) && trend::is_judged(self.rate_series(cell)))
    }

    fn derived(&self, cell: &CellRecord) -> &Derived<'a> {
        &self.derived[self.index(cell)]
    }

    fn index(&self, cell: &CellRecord) -> usize {
        let index = self.record.cells.iter().position(|own| std::ptr::eq(own, cell));
        index.expect("callers take the cell from the Record of this Analysis")
    }
}

impl Deref for Analysis<'_> {
    type Target = Record;

    fn deref(&self) -> &Record {
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::fixtures::bios::{bio, counted, request};
    use rdsk_model::{IoPath, Op};

    #[test]
    fn each_thing_is_derived_once() {
        let record = fixtures::stripe::array(64 << 10, 3);
        let analysis = Analysis::of(&record);
        let cell = &analysis.cells[0];
        let (first, again) = (analysis.stripe(cell).unwrap(), analysis.stripe(cell).unwrap());
        assert!(std::ptr::eq(first, again));
        assert!(std::ptr::eq(analysis.scale(), analysis.scale()));
        let zoned = fixtures::zones::made(60, 3, |_, _, _| 10_000_000).0;
        let analysis = Analysis::of(&zoned);
        let cell = &analysis.cells[0];
        assert!(std::ptr::eq(analysis.zones(cell).unwrap(), analysis.zones(cell).unwrap()));
        assert!(std::ptr::eq(analysis.level_shifts(cell), analysis.level_shifts(cell)));
        let read = fixtures::cell("r", Op::Read, IoPath::Direct, 4096, 1000, 4_000_000_000);
        let bios = vec![bio(Op::Read, "this", Some("pread64"), 1000, 4096)];
        let counted = counted(read, bios, vec![request(Op::Read, 4096, 1000)]);
        let record = fixtures::record(vec![fixtures::disk()], vec![counted]);
        let analysis = Analysis::of(&record);
        let cell = &analysis.cells[0];
        assert!(std::ptr::eq(analysis.block_io(cell).unwrap(), analysis.block_io(cell).unwrap()));
    }
}
