//! `scale`: block size × streams × targets, each stream an independent reader or writer, started one after the other
//! and assigned to the targets in turn. One stream runs on each target by itself, and several on all of them: an equal number on
//! each, unless the numbers were requested. Of several ranks 1, 2, 4 and so on hosts issue at once, each with the same streams, and the
//! others wait. It plans cells and issues nothing.

use crate::context::{PlanContext, Scope, device_path, size_word};
use crate::question::{Question, ROUNDS, Targets};
use crate::request::{BudgetSource, PlanOptions};
use rdsk_model::{CacheState, Cell, Experiment, Extent, IoPath, Op};
use rdsk_stats::MIN_PAIRS;
use rdsk_units::Nanos;

/// The report's block sizes and stream counts.
const SIZES: [u64; 8] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];
const STREAMS: [u32; 3] = [1, 3, 10];
/// The report's pause between two starts.
const STAGGER_NS: u64 = 5_000_000_000;
/// The pause where time is free: streams that start long before the others distort their shares.
const FREE_STAGGER_NS: u64 = 5_000_000;
/// Block sizes and stream counts in a whole run.
const SIZES_IN_RUN: [u64; 2] = [64 << 10, 1 << 20];
const STREAMS_IN_RUN: [u32; 2] = [1, 4];
/// Shortest time of a cell with all its streams running.
const MIN_CELL_NS: u64 = 500_000_000;
/// Starting one stream after the other takes at most half of a cell's time, unless the pause was requested.
const RAMP_SHARE: u64 = 2;
const WEIGHT: f64 = 1.0;

pub(crate) struct Scale;

impl Question for Scale {
    fn cells(&self, first: &PlanContext<'_>, contexts: &[PlanContext<'_>]) -> Vec<Cell> {
        let grid = grid(first, contexts.len());
        let ops =
            Op::ALL.iter().copied().filter(|op| contexts.iter().all(|context| context.ops.contains(op)));
        let mut cells = Vec::new();
        for op in ops {
            for &block_bytes in &grid.sizes {
                for &streams in &grid.streams {
                    cells.extend(cells_of_count(contexts, &grid, op, block_bytes, streams));
                }
            }
        }
        cells
    }

    fn targets(&self) -> Targets {
        Targets::Together
    }

    // Every visit has its ramp: with long ones there are fewer rounds if nothing else is measured, as many as leave half of the
    // time to what is measured.
    fn rounds(&self, contexts: &[PlanContext<'_>]) -> u32 {
        let PlanContext { options, scope, budget_ns, ops, .. } = &contexts[0];
        let grid = grid(&contexts[0], contexts.len());
        let ramps_ns = grid.ramps_ns(ops.len());
        if *scope == Scope::WholeRun || ramps_ns == 0 || contexts[0].is_time_free() {
            return ROUNDS;
        }
        // A requested time is that of the cell without its ramps.
        let ramps_may_take_ns = match options.runtime_ns {
            Some(runtime_ns) => runtime_ns.saturating_mul(grid.cells(ops.len())),
            None => budget_ns / RAMP_SHARE,
        };
        u32::try_from(ramps_may_take_ns / ramps_ns).unwrap_or(ROUNDS).clamp(1, ROUNDS)
    }

    fn notes(&self, contexts: &[PlanContext<'_>]) -> Vec<String> {
        let (ramps_ns, budget_ns) = (self.ramps_ns(contexts), contexts[0].budget_ns);
        let too_long = (ramps_ns >= budget_ns && !contexts[0].is_time_free()).then(|| {
            format!(
                "starting the streams of scale one after the other takes {} in all, more than the budget of {}: a shorter \
                 --stagger takes less",
                Nanos(ramps_ns),
                Nanos(budget_ns)
            )
        });
        let rounds = self.rounds(contexts);
        let too_few = (u64::from(rounds) < MIN_PAIRS as u64).then(|| {
            format!(
                "scale has {rounds} of the {MIN_PAIRS} repeats that a comparison needs, because starting the streams one \
                 after the other takes {} in each; --stagger 0s, a shorter --stagger, or a longer --budget or --runtime \
                 gives more",
                Nanos(ramps_ns / u64::from(rounds))
            )
        });
        grid(&contexts[0], contexts.len()).note.into_iter().chain(too_long).chain(too_few).collect()
    }

    fn starts_over(&self) -> bool {
        true
    }

    fn max_streams(&self, options: &PlanOptions) -> u32 {
        options.stream_counts.as_deref().unwrap_or(&STREAMS).iter().max().copied().unwrap_or(1)
    }

    fn ramps_ns(&self, contexts: &[PlanContext<'_>]) -> u64 {
        let grid = grid(&contexts[0], contexts.len());
        grid.ramps_ns(contexts[0].ops.len()).saturating_mul(u64::from(self.rounds(contexts)))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Grid {
    sizes: Vec<u64>,
    /// Numbers of streams of all targets together; 1 is one on each target by itself. Of several ranks, numbers of hosts.
    streams: Vec<u32>,
    /// Targets.
    targets: u64,
    stagger_ns: u64,
    /// What was shortened, in words.
    note: Option<String>,
}

impl Grid {
    /// Time that the ramps of all cells take.
    fn ramps_ns(&self, ops: usize) -> u64 {
        let steps: u64 = self.streams.iter().map(|&streams| u64::from(streams.saturating_sub(1))).sum();
        self.stagger_ns.saturating_mul(steps).saturating_mul((self.sizes.len() * ops) as u64)
    }

    fn cells(&self, ops: usize) -> u64 {
        let alone = self.streams.iter().filter(|&&streams| streams == 1).count() as u64;
        let together = self.streams.len() as u64 - alone;
        (self.sizes.len() * ops) as u64 * (together + alone * self.targets)
    }
}

/// The grid that fits the time: what was requested stays; else the pause is shortened first, then every second block size
/// is left out, repeatedly.
fn grid(context: &PlanContext<'_>, targets: usize) -> Grid {
    let options = context.options;
    let in_run = context.scope == Scope::WholeRun;
    let (sizes, streams) =
        if in_run { (&SIZES_IN_RUN[..], &STREAMS_IN_RUN[..]) } else { (&SIZES[..], &STREAMS[..]) };
    let sizes = options.block_bytes.clone().unwrap_or_else(|| sizes.to_vec());
    let streams = match (&options.rank, &options.stream_counts) {
        (Some(rank), _) => doubled_to(rank.peers.count()),
        (None, Some(counts)) => counts.clone(),
        (None, None) => even_counts(streams, targets),
    };
    let default_stagger_ns = match (in_run, context.is_time_free() && options.pass_bytes.is_none()) {
        (true, _) => 0,
        (false, true) => FREE_STAGGER_NS,
        (false, false) => STAGGER_NS,
    };
    let stagger_ns = options.stagger_ns.unwrap_or(default_stagger_ns);
    let mut grid = Grid { sizes, streams, targets: targets as u64, stagger_ns, note: None };
    let is_limited = match (options.runtime_ns.is_some(), options.pass_bytes.is_some()) {
        (true, _) => options.budget_source == BudgetSource::Requested,
        (false, is_pass) => !is_pass || options.budget_source == BudgetSource::Requested,
    };
    if is_limited && !in_run && !context.is_time_free() {
        shorten(&mut grid, context);
    }
    grid
}

/// The numbers of streams, each but 1 as near to what it is as an equal number on every target allows: of 1, 3 and 10 on three targets
/// 1, 3 and 9. A target with more streams than another would look faster.
fn even_counts(counts: &[u32], targets: usize) -> Vec<u32> {
    let targets = u32::try_from(targets).unwrap_or(u32::MAX).max(1);
    let even = |count: u32| match count {
        1 => 1,
        count => (count.saturating_add(targets / 2) / targets).max(1).saturating_mul(targets),
    };
    let mut even: Vec<u32> = counts.iter().map(|&count| even(count)).collect();
    even.dedup();
    even
}

/// 1, 2, 4 and so on, and all hosts.
fn doubled_to(hosts: u32) -> Vec<u32> {
    let doubled = std::iter::successors(Some(1_u32), |count| count.checked_mul(2));
    doubled.take_while(|&count| count < hosts).chain([hosts]).collect()
}

fn shorten(grid: &mut Grid, context: &PlanContext<'_>) {
    let (options, ops, budget_ns) = (context.options, context.ops.len(), context.budget_ns);
    let before = grid.clone();
    let wanted_ns = options.runtime_ns.unwrap_or(MIN_CELL_NS);
    let time_ns = |grid: &Grid| grid.cells(ops).saturating_mul(wanted_ns).saturating_add(grid.ramps_ns(ops));
    if options.stagger_ns.is_none() {
        let share_ns = budget_ns / grid.cells(ops).max(1);
        let most = u64::from(grid.streams.iter().max().copied().unwrap_or(1).saturating_sub(1)).max(1);
        // In steps of 100 ms, so that the plan reads well.
        let fitting_ns = share_ns / u64::from(ROUNDS) / RAMP_SHARE / most / 100_000_000 * 100_000_000;
        grid.stagger_ns = grid.stagger_ns.min(fitting_ns);
    }
    if options.block_bytes.is_none() {
        while time_ns(grid) > budget_ns && grid.sizes.len() > 2 {
            let kept = grid.sizes.iter().copied().enumerate();
            grid.sizes = kept.filter(|(index, _)| index % 2 == 0).map(|(_, size)| size).collect();
        }
    }
    let (now, in_full) = (starts(grid.stagger_ns), starts(before.stagger_ns));
    let shortened = if grid.sizes != before.sizes {
        let sizes: Vec<String> = grid.sizes.iter().map(|&size| size_word(size)).collect();
        let (sizes, count) = (sizes.join(", "), before.sizes.len());
        Some(format!(
            "block sizes {sizes}, {now} (in full: {count} block sizes, {in_full}); --bs, --stagger or"
        ))
    } else {
        (*grid != before).then(|| format!("{now} (in full: {in_full}); --stagger or"))
    };
    grid.note = shortened
        .map(|what| format!("scale was shortened to fit the budget: {what} a larger --budget give more"));
}

fn starts(stagger_ns: u64) -> String {
    match stagger_ns {
        0 => "all streams started together".to_owned(),
        stagger_ns => format!("streams started {} apart", Nanos(stagger_ns)),
    }
}

/// The cells of a number of streams: one over all targets, or, of a single stream, one on each target by itself. Beside it the total of
/// several is what they gain together, however unlike they are.
fn cells_of_count(
    contexts: &[PlanContext<'_>],
    grid: &Grid,
    op: Op,
    block_bytes: u64,
    streams: u32,
) -> Vec<Cell> {
    if streams > 1 || contexts.len() == 1 {
        return vec![cell(contexts, grid, op, block_bytes, streams)];
    }
    let alone = |context: &PlanContext<'_>| {
        let mut cell = cell(std::slice::from_ref(context), grid, op, block_bytes, streams);
        cell.id = format!("{}@{}", cell.id, context.target.index);
        cell
    };
    contexts.iter().map(alone).collect()
}

/// Streams of each rank, whatever the number of hosts.
fn streams_of_rank(options: &PlanOptions) -> u32 {
    options.stream_counts.as_deref().and_then(|counts| counts.first()).copied().unwrap_or(1)
}

/// One cell over these targets, which have the same options.
fn cell(contexts: &[PlanContext<'_>], grid: &Grid, op: Op, block_bytes: u64, streams: u32) -> Cell {
    let context = &contexts[0];
    let direct = contexts.iter().all(|context| device_path(context.target) == IoPath::Direct);
    let path = if direct { IoPath::Direct } else { IoPath::Buffered };
    let span_bytes =
        contexts.iter().map(|context| context.span_bytes(u64::MAX, block_bytes)).min().unwrap_or(0);
    let mut workload = context.workload(op, path, block_bytes, span_bytes);
    workload.targets = contexts.iter().map(|context| context.target.index).collect();
    workload.streams = streams;
    let rank = context.options.rank;
    if let Some(rank) = rank {
        workload.at_once = Some(rank.peers.with_count(streams));
        workload.streams = streams_of_rank(context.options);
    }
    workload.stagger_ns = grid.stagger_ns;
    workload.range = context.options.range;
    if path == IoPath::Buffered && op == Op::Read {
        workload.cache = CacheState::Cold;
    }
    let streams_here = workload.streams;
    let per_target = u64::from(streams_here).div_ceil(contexts.len() as u64);
    let extent = match context.options.pass_bytes {
        // Whole blocks: direct I/O cannot issue a shorter last one.
        Some(bytes) => {
            let whole = (bytes - bytes % block_bytes).max(block_bytes);
            Extent::Pass { bytes: whole.saturating_mul(u64::from(streams_here)) }
        }
        None => Extent::Timed,
    };
    let id = format!("scale/{op}/{}/{streams}", size_word(block_bytes));
    let mut cell = context.cell(id, Experiment::Scale, workload, extent, WEIGHT);
    if span_bytes / block_bytes < per_target {
        cell.not_applicable = Some(format!(
            "the target holds fewer blocks of this size than the {per_target} that its streams need"
        ));
    }
    if let Some(rank) = rank.filter(|rank| rank.waits_while(cell.workload.at_once)) {
        cell.not_applicable = Some(format!("this {} waits while others measure", rank.peers.noun()));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::{doubled_to, even_counts};
    use crate::planner::plan;
    use crate::request::{PlanOptions, RankPlace};
    use rdsk_model::{AtOnce, Experiment, Op, Target};

    #[test]
    fn a_rank_waits_while_fewer_hosts_read_and_keeps_to_its_part() {
        const MIB: u64 = 1 << 20;
        let target = Target { size_bytes: 1024 * MIB, direct_io: Some(true), ..Target::default() };
        let cells_of = |index: u32| {
            let place = RankPlace { peers: AtOnce::Hosts(4), index, part_bytes: Some(256 * MIB) };
            let options = PlanOptions {
                rank: Some(place),
                offset_bytes: u64::from(index) * 256 * MIB,
                block_bytes: Some(vec![65_536]),
                stream_counts: Some(vec![2]),
                stagger_ns: Some(0),
                ops: Some(vec![Op::Read]),
                ..PlanOptions::default()
            };
            let targets = std::slice::from_ref(&target);
            plan(&[Experiment::Scale], targets, &[false], None, &options, 60_000_000_000).unwrap().cells
        };
        for (index, waits) in [(0, [false; 3]), (1, [true, false, false]), (2, [true, true, false])] {
            let cells = cells_of(index);
            let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
            assert_eq!(ids, ["scale/read/64k/1", "scale/read/64k/2", "scale/read/64k/4"]);
            let waiting: Vec<bool> = cells.iter().map(|cell| cell.not_applicable.is_some()).collect();
            assert_eq!(waiting, waits, "rank {index}");
            for (cell, hosts) in cells.iter().zip([1, 2, 4]) {
                let workload = &cell.workload;
                assert_eq!((workload.streams, workload.at_once), (2, Some(AtOnce::Hosts(hosts))));
                let begin = u64::from(index) * 256 * MIB;
                assert_eq!((workload.offset_bytes, workload.span_bytes), (begin, 256 * MIB));
            }
        }
    }

    #[test]
    fn the_last_number_of_hosts_is_that_of_all() {
        for (hosts, counts) in [(1, vec![1]), (2, vec![1, 2]), (5, vec![1, 2, 4, 5]), (8, vec![1, 2, 4, 8])] {
            assert_eq!(doubled_to(hosts), counts);
        }
    }

    #[test]
    fn every_target_has_as_many_streams() {
        for (targets, counts) in [
            (1, vec![1, 3, 10]),
            (2, vec![1, 4, 10]),
            (3, vec![1, 3, 9]),
            (4, vec![1, 4, 12]),
            (20, vec![1, 20]),
        ] {
            assert_eq!(even_counts(&[1, 3, 10], targets), counts, "{targets}");
        }
    }
}
