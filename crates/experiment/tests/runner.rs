//! The runner against a scripted disk in virtual time: order of visits, budget, stopping, failures.

use crate::scripted::{self, SECOND, Scripted, cell, plan, run, run_after};
use rdsk_model::{
    CacheState, Cell, CellResult, EngineKind, Experiment, Extent, IoPath, Op, Plan, Points, ProblemKind,
    StopFlag, StopReason, Workload,
};

#[test]
fn visits_go_there_and_back() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed), cell(16384, Extent::Timed)];
    let ran = run(&plan(cells, 6 * SECOND), 1e8, |_, _| ());
    assert_eq!(ran.visits, [4096, 8192, 16384, 16384, 8192, 4096]);
}

/// A run that goes on with another one reads nothing that this has read, as a cache may still hold it.
#[test]
fn a_run_that_goes_on_begins_behind_the_earlier_one() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    let plan = plan(cells, 4 * SECOND);
    let first = run(&plan, 1e8, |_, _| ());
    let bytes = |outcome: &scripted::Seen| -> Vec<u64> {
        let visits = outcome.outcome.cells.iter().flat_map(|cell| &cell.result.visits);
        visits.map(|visit| visit.bytes).collect()
    };
    let [a, b, c, d] = bytes(&first)[..] else { panic!("two visits of two cells: {:?}", first.begins) };
    assert_eq!(first.begins, [(0, 0), (0, a), (1, a + c), (1, a + c + d)], "there and back");
    let sum = a + b + c + d;
    let second = run_after(&first.outcome.cells, &plan, 1e8, |_, _| ());
    let numbers: Vec<u32> = second.begins.iter().map(|begin| begin.0).collect();
    assert_eq!((second.begins[0], numbers), ((2, sum), vec![2, 2, 3, 3]));
    // Of a list of positions, a pass goes on where it stopped.
    let mut list = cell(4096, Extent::Timed);
    list.workload.points = Some(Points::default());
    let plan = Plan { cells: vec![list], ..plan };
    let second = run_after(&first.outcome.cells, &plan, 1e8, |_, _| ());
    assert_eq!(second.begins[0], (0, 0));
}

/// What a kill would leave: the figures so far, and that rounds are missing; after the last round the cell is as in the end.
#[test]
fn after_each_turn_the_cell_is_there_as_far_as_it_is() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    let plan = Plan { runtime_ns: Some(SECOND), rounds: 3, ..plan(cells, 60 * SECOND) };
    let ran = run(&plan, 1e8, |_, _| ());
    let ids: Vec<&str> = ran.turns.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["cell/4096", "cell/8192", "cell/8192", "cell/4096", "cell/4096", "cell/8192"]);
    let of_first: Vec<_> = ran.turns.iter().filter(|cell| cell.id == "cell/4096").collect();
    for (rounds, cell) in (1..).zip(&of_first) {
        assert_eq!(cell.result.visits.len(), rounds);
        assert_eq!(cell.result.bytes, Some(cell.result.visits.iter().map(|visit| visit.bytes).sum()));
        let is_whole = rounds == 3;
        assert_eq!(cell.result.stop != StopReason::Interrupted, is_whole, "{}", cell.result.why);
        assert!(
            is_whole || cell.result.why.contains(&format!("{rounds} of its 3 repeats")),
            "{}",
            cell.result.why
        );
    }
    assert_eq!(of_first[2], &ran.outcome.cells[0]);
}

#[test]
fn a_steady_disk_is_known_long_before_the_time_is_up() {
    let ran = run(&plan(vec![cell(1 << 16, Extent::Timed)], 60 * SECOND), 1e8, |_, _| ());
    let result = &ran.outcome.cells[0].result;
    assert_eq!(result.stop, StopReason::Precision, "{}", result.why);
    assert!(ran.elapsed_ns < 31 * SECOND, "took {} ns", ran.elapsed_ns);
    let rate = result.bytes_per_s.unwrap();
    assert!((rate.mean / 1e8 - 1.0).abs() < 0.001, "{rate:?}");
    assert!(rate.low.unwrap() <= 1e8 && rate.high.unwrap() >= 1e8, "{rate:?}");
}

#[test]
fn a_few_long_ios_are_no_certainty() {
    // One block takes up to 3 s: it completes behind the last full window, and all windows are empty.
    for block_bytes in [20 << 20, 90_000_000, 300_000_000] {
        let ran = run(&plan(vec![cell(block_bytes, Extent::Timed)], SECOND), 1e8, |_, _| ());
        let result = &ran.outcome.cells[0].result;
        let rate = result.bytes_per_s.unwrap();
        let is_certain = rate.margin().is_some_and(|half| half <= 0.02);
        let why = &result.why;
        assert!(!is_certain && result.stop == StopReason::Budget, "{:?} I/Os: {rate:?}, {why}", result.ops);
    }
}

#[test]
fn a_burst_before_a_stall_is_no_warm_up() {
    // A throttle lets 20 reads through at once and then one in 150 ms, longer than a slice.
    let ran = run(&plan(vec![cell(4096, Extent::Timed)], SECOND / 5), 1e8, |disk, _| {
        disk.stall = Some((20, 150_000_000));
    });
    let result = &ran.outcome.cells[0].result;
    let rate = result.bytes_per_s.unwrap();
    let overall = result.bytes.unwrap() as f64 * 1e9 / result.elapsed_ns.unwrap() as f64;
    assert!((rate.mean / overall - 1.0).abs() < 0.1, "{rate:?}, {overall} over all: {result:?}");
    assert!(rate.margin().is_none_or(|half| half > 0.5), "{rate:?}");
}

/// One visit in each of two rounds of a cell that reads 4 KiB in 41 µs at first and in 82 µs after so many I/Os.
fn fast_at_first(fast_ops: u64) -> CellResult {
    let plan = Plan { precision: 1e-12, ..plan(vec![cell(4096, Extent::Timed)], 4 * SECOND) };
    let runtime = Plan { runtime_ns: Some(4 * SECOND), ..plan };
    let ran = run(&runtime, 1e8, |disk, _| disk.stall = Some((fast_ops, 81_920)));
    ran.outcome.cells[0].result.clone()
}

#[test]
fn the_warm_up_is_left_out_of_rate_and_latencies_alike() {
    // The first 300 ms of each visit are fast. Preparing takes 1 ms of 2 s, so that seven windows of 50 ms are a fifth at most.
    let result = fast_at_first(7324);
    assert_eq!(result.warmup_ns, Some(350_000_000));
    let (bytes, ops) = (result.warmup_bytes.unwrap(), result.warmup_ops.unwrap());
    assert_eq!(bytes, ops * 4096);
    assert!((7930..=7935).contains(&ops), "{ops} I/Os in the first 350 ms");
    let latency = result.latency_ns.as_ref().unwrap();
    assert_eq!(latency.count, result.ops.unwrap() - ops, "the latencies are those of the other I/Os");
    let rate = result.bytes_per_s.unwrap().mean;
    let measured_s = (result.elapsed_ns.unwrap() - result.warmup_ns.unwrap()) as f64 / 1e9;
    assert!((rate * measured_s - (result.bytes.unwrap() - bytes) as f64).abs() < 1.0, "{result:?}");
    // The fast start of the second visit is left, and the mean latency agrees with the mean rate.
    let mean_ns = latency.mean.unwrap();
    assert!((mean_ns / (4096.0 / rate * 1e9) - 1.0).abs() < 0.001, "{mean_ns} ns at {rate} B/s");
    // What was done is reported whole.
    assert_eq!(result.visits.iter().map(|visit| visit.ops).sum::<u64>(), result.ops.unwrap());
    assert_eq!(result.windows.unwrap().bytes.iter().sum::<u64>(), result.bytes.unwrap());
}

#[test]
fn a_start_like_the_rest_is_no_warm_up() {
    let result = fast_at_first(u64::MAX);
    assert_eq!((result.warmup_ns, result.warmup_bytes, result.warmup_ops), (Some(0), Some(0), Some(0)));
    assert_eq!(result.latency_ns.unwrap().count, result.ops.unwrap());
}

#[test]
fn a_pass_has_no_warm_up() {
    let pass = cell(4096, Extent::Pass { bytes: 100 << 20 });
    let ran = run(&plan(vec![pass], 60 * SECOND), 1e8, |disk, _| disk.stall = Some((2000, 81_920)));
    let result = &ran.outcome.cells[0].result;
    assert_eq!(result.warmup_ns, Some(0));
    assert_eq!(result.latency_ns.as_ref().unwrap().count, result.ops.unwrap());
}

#[test]
fn every_cell_gets_something_within_the_budget_whatever_the_disk() {
    for bytes_per_s in [1e6, 3e7, 1e9] {
        let mut cells: Vec<Cell> = (0..6).map(|n| cell(4096 << n, Extent::Timed)).collect();
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.workload.op = if index % 2 == 0 { Op::Write } else { Op::Read };
            cell.workload.path = if index < 4 { IoPath::Buffered } else { IoPath::Direct };
        }
        let budget_ns = 12 * SECOND;
        let ran = run(&plan(cells, budget_ns), bytes_per_s, |_, _| ());
        for cell in &ran.outcome.cells {
            assert!(cell.result.ops.unwrap() > 0, "{} at {bytes_per_s}", cell.id);
        }
        let used = ran.elapsed_ns as f64 / budget_ns as f64;
        assert!(used < 1.5, "a disk of {bytes_per_s} B/s took {used} of the budget");
    }
}

/// What fills a cache before a visit is in no slice: it took 50 s of a budget of 20 s.
#[test]
fn what_comes_before_visits_counts_against_the_budget() {
    let cells: Vec<Cell> = (0..12).map(|index| cell(4096 << index, Extent::Timed)).collect();
    let many = plan(cells.clone(), 20 * SECOND);
    let slow = |disk: &mut Scripted, _: &StopFlag| disk.prepare_ns = 5 * SECOND;
    let ran = run(&many, 1e8, slow);
    assert!(
        ran.elapsed_ns <= 31 * SECOND,
        "a quarter more than the budget, and the last turn: {}",
        ran.elapsed_ns
    );
    let begun = ran.outcome.cells.iter().filter(|cell| !cell.result.visits.is_empty()).count();
    assert!((4..=6).contains(&begun), "{begun}");
    assert_eq!(ran.outcome.cells[11].result.stop, StopReason::Budget);
    assert!(ran.outcome.cells[11].result.why.contains("before this test's turn"));
    // Virtual time costs nothing, and one cell is measured however late it is.
    let mut free = plan(cells, 20 * SECOND);
    free.cells.iter_mut().for_each(|cell| cell.workload.engine = EngineKind::Sim);
    assert!(run(&free, 1e8, slow).outcome.cells.iter().all(|cell| !cell.result.visits.is_empty()));
    let late = run(&many, 1e8, |disk, _| disk.prepare_ns = 60 * SECOND);
    assert_eq!(late.outcome.cells.iter().filter(|cell| !cell.result.visits.is_empty()).count(), 1);
}

#[test]
fn a_runtime_is_each_cells_own() {
    // A disk so noisy that no cell ends early by precision; the first cell overruns, the others do not lose time.
    let mut cells = vec![cell(1 << 30, Extent::Timed), cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    cells.iter_mut().for_each(|cell| cell.weight = 1.0);
    let mut plan = plan(cells, 6 * SECOND);
    plan.runtime_ns = Some(2 * SECOND);
    plan.precision = 1e-12;
    let ran = run(&plan, 3e8, |_, _| ());
    for cell in &ran.outcome.cells[1..] {
        let elapsed_ns = cell.result.elapsed_ns.unwrap();
        assert!(elapsed_ns.abs_diff(2 * SECOND) < SECOND / 10, "{}: {elapsed_ns} ns", cell.id);
    }
}

#[test]
fn memory_is_not_given_the_same_pages_twice_in_a_visit() {
    let mut behind = cell(4096, Extent::Timed);
    behind.workload.op = Op::Write;
    behind.workload.path = IoPath::Buffered;
    behind.workload.span_bytes = 8 << 20;
    let ran = run(&plan(vec![behind], 4 * SECOND), 1e8, |_, _| ());
    let result = &ran.outcome.cells[0].result;
    assert!(
        result.visits.len() > 2 && result.visits.iter().all(|visit| visit.bytes <= 8 << 20),
        "{result:?}"
    );
}

#[test]
fn a_pass_is_complete_or_says_that_it_is_not() {
    let bytes = 64 << 20;
    let passes = |bytes_per_s| {
        let ran =
            run(&plan(vec![cell(1 << 20, Extent::Pass { bytes })], 10 * SECOND), bytes_per_s, |_, _| ());
        ran.outcome.cells[0].result.clone()
    };
    let quick = passes(1e9);
    assert_eq!((quick.stop, quick.bytes), (StopReason::Complete, Some(2 * bytes)));
    let slow = passes(1e6);
    assert_eq!(slow.stop, StopReason::Budget, "{}", slow.why);
    assert!(slow.bytes.unwrap() < bytes);
}

#[test]
fn a_look_for_zeros_keeps_nobody_waiting() {
    let bytes = 64 << 20;
    let look = |look_page_ns, budget_ns, bytes_per_s, is_stopped: bool| {
        let plan = Plan { rounds: 1, ..plan(vec![cell(1 << 14, Extent::Pass { bytes })], budget_ns) };
        let ran = run(&plan, bytes_per_s, |disk, stop| {
            disk.look_page_ns = Some(look_page_ns);
            disk.raise_after = is_stopped.then(|| (0, stop.clone()));
        });
        ran.outcome.cells[0].result.content.map(|content| content.pages)
    };
    assert_eq!(look(1_000_000, 60 * SECOND, 1e8, false), Some(64));
    assert_eq!(look(50_000_000, 60 * SECOND, 1e9, false), Some(4), "a fifth of a second");
    assert_eq!(look(50_000_000, 600 * SECOND, 1e6, false), Some(14), "a hundredth of 67 s");
    assert_eq!(look(1_000_000, 60 * SECOND, 1e8, true), None, "after a signal");
    assert_eq!(look(1_000_000, 26_870_000_000, 2.5e6, false), None, "4 more I/Os of this length do not fit");
    let few = |look_page_ns| {
        let plan = Plan { rounds: 1, ..plan(vec![cell(1 << 24, Extent::Pass { bytes })], 600 * SECOND) };
        let ran = run(&plan, 1e7, |disk, _| disk.look_page_ns = Some(look_page_ns));
        ran.outcome.cells[0].result.content.map(|content| content.pages)
    };
    assert_eq!(few(SECOND), Some(7), "the time of 4 I/Os of 1.7 s");
}

/// A visit of random reads at depth 1 leaves one page in its buffer, which is too little to show a device that stores nothing.
#[test]
fn too_few_pages_of_the_buffers_are_made_up_for() {
    let pages = |in_buffers, budget_ns| {
        let plan = Plan { rounds: 1, ..plan(vec![cell(1 << 20, Extent::Timed)], budget_ns) };
        let ran = run(&plan, 1e7, |disk, _| {
            disk.look_page_ns = Some(1_000_000);
            disk.in_buffers = in_buffers;
        });
        ran.outcome.cells[0].result.content.map(|content| content.pages)
    };
    assert_eq!(pages(4, SECOND).map(|pages| pages % 4), Some(0), "nothing was looked at");
    assert!(pages(1, SECOND).is_some_and(|pages| pages >= 65));
}

#[test]
fn passes_are_repeated_until_their_mean_is_known() {
    let bytes = 64 << 20;
    let passes = |bytes_per_s, precision| {
        let plan = Plan { precision, ..plan(vec![cell(1 << 20, Extent::Passes { bytes })], 20 * SECOND) };
        let ran = run(&plan, bytes_per_s, |_, _| ());
        (ran.outcome.cells[0].result.clone(), ran.elapsed_ns)
    };
    let (quick, elapsed_ns) = passes(1e9, 0.02);
    assert_eq!(quick.stop, StopReason::Precision, "{}", quick.why);
    assert!(quick.visits.len() >= 8 && quick.visits.iter().all(|visit| visit.bytes == bytes));
    assert!(elapsed_ns < 11 * SECOND);
    let (slow, elapsed_ns) = passes(1.2e7, 1e-6);
    assert_eq!(slow.visits.len(), 3, "three passes of 5.6 s fit into 20 s, a fourth does not");
    assert!(slow.visits.iter().all(|visit| visit.bytes == bytes) && elapsed_ns < 20 * SECOND);
}

#[test]
fn samples_are_visited_until_their_mean_is_known() {
    let mut samples = cell(512, Extent::Samples { first_ops: 32 });
    samples.workload.cache = CacheState::Cold;
    let ran = run(&plan(vec![samples], 10 * SECOND), 1e6, |_, _| ());
    let result = &ran.outcome.cells[0].result;
    assert_eq!(result.stop, StopReason::Precision, "{}", result.why);
    assert!(result.visits.len() >= 8, "{} visits", result.visits.len());
}

#[test]
fn a_dead_disk_is_given_up_after_three_cells() {
    let cells = (0..6).map(|n| cell(4096 << n, Extent::Timed)).collect();
    let ran = run(&plan(cells, 6 * SECOND), 1e8, |disk, _| disk.fail = Some(|_| Some(5)));
    assert_eq!(ran.visits.len(), 3);
    assert!(ran.outcome.cells.iter().all(|cell| cell.result.stop == StopReason::Error));
    let problem = ran.outcome.problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::Io);
    assert!(problem.message.contains("cell/4096"), "{}", problem.message);
}

#[test]
fn one_failing_cell_does_not_stop_the_others() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    let ran = run(&plan(cells, 6 * SECOND), 1e8, |disk, _| {
        disk.fail = Some(|workload| (workload.block_bytes == 4096).then_some(5));
    });
    assert_eq!(ran.visits, [4096, 8192, 8192], "a cell that failed is not visited again");
    assert_eq!(ran.outcome.cells[0].result.stop, StopReason::Error);
    assert!(ran.outcome.cells[1].result.bytes.unwrap() > 0);
}

#[test]
fn direct_io_that_the_kernel_refuses_is_not_applicable() {
    let ran =
        run(&plan(vec![cell(27, Extent::Timed)], SECOND), 1e8, |disk, _| disk.fail = Some(|_| Some(22)));
    let cell = &ran.outcome.cells[0];
    assert_eq!(cell.result.stop, StopReason::NotApplicable);
    assert!(cell.result.why.contains("EINVAL"), "{}", cell.result.why);
    assert!(ran.outcome.problem.is_none() && cell.verdict.is_none() && cell.result.errors.is_empty());
}

#[test]
fn dontcache_that_the_kernel_refuses_is_not_applicable() {
    let on = |path, fail: fn(&Workload) -> Option<i32>| {
        let mut refused = cell(4096, Extent::Timed);
        refused.workload.path = path;
        run(&plan(vec![refused], SECOND), 1e8, |disk, _| disk.fail = Some(fail)).outcome
    };
    let unsupported: fn(&Workload) -> Option<i32> = |_| Some(95);
    let refused = &on(IoPath::DontCache, unsupported).cells[0];
    assert_eq!(refused.result.stop, StopReason::NotApplicable);
    let why = "the kernel refused it (EOPNOTSUPP): RWF_DONTCACHE needs Linux 6.14 or later and a filesystem that supports it";
    assert_eq!(refused.result.why, why);
    assert!(refused.verdict.is_none() && refused.result.errors.is_empty());
    assert_eq!(on(IoPath::DontCache, |_| Some(5)).cells[0].result.stop, StopReason::Error);
    assert_eq!(on(IoPath::Buffered, unsupported).cells[0].result.stop, StopReason::Error);
}

#[test]
fn a_signal_keeps_what_was_measured() {
    let cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed), cell(16384, Extent::Timed)];
    let ran = run(&plan(cells, 6 * SECOND), 1e8, |disk, stop| disk.raise_after = Some((1, stop.clone())));
    assert!(ran.outcome.interrupted);
    assert_eq!(ran.outcome.cells.len(), 3);
    assert!(ran.outcome.cells[0].result.bytes.unwrap() > 0);
    assert_eq!(ran.outcome.cells[2].result.stop, StopReason::Interrupted);
    assert_eq!(ran.outcome.cells[2].result.bytes, None, "what was not measured is null, never 0");
    assert!(ran.outcome.cells.iter().all(|cell| cell.verdict.is_some()));
}

#[test]
fn the_rate_by_time_of_a_steady_disk_is_level() {
    // The first slice is a share of what is left, the second gets what the first cell did not use, so they differ.
    for budget_ms in [400, 900, 1_700, 3_100] {
        let mut short = cell(4096, Extent::Timed);
        short.weight = 0.9;
        let cells = vec![short, cell(8192, Extent::Timed)];
        let plan = Plan { precision: 1e-9, ..plan(cells, budget_ms * SECOND / 1000) };
        let ran = run(&plan, 1e8, |_, _| ());
        for cell in &ran.outcome.cells {
            let windows = cell.result.windows.clone().unwrap();
            let full = 1e8 * windows.width_ns as f64 / 1e9;
            let too_fast = windows.bytes.iter().filter(|&&bytes| bytes as f64 > 1.1 * full).count();
            assert_eq!(too_fast, 0, "{} of {budget_ms} ms: {windows:?}, at most {full}", cell.id);
        }
    }
}

#[test]
fn a_flush_that_hangs_is_told_and_costs_the_budget_once() {
    let cells = || {
        let mut cells: Vec<Cell> = (0..3).map(|n| cell(4096 << n, Extent::Timed)).collect();
        for cell in &mut cells {
            cell.workload.op = Op::Write;
        }
        cells
    };
    let budget_ns = 6 * SECOND;
    // Each flush takes twice the budget.
    let ran = run(&plan(cells(), budget_ns), 1e8, |disk, _| disk.hang_ns = 2 * budget_ns);
    assert_eq!(ran.visits, [4096, 8192, 16384], "each cell once, and no way back");
    assert_eq!(ran.flush_events.len(), 6, "{:?}", ran.flush_events);
    assert!(
        ran.flush_events.iter().skip(1).step_by(2).all(|said| said == "settled"),
        "{:?}",
        ran.flush_events
    );
    let notes = &ran.outcome.notes;
    assert!(
        notes.iter().any(|note| note.contains("the flush after") && note.contains("beyond the budget")),
        "{notes:?}"
    );
    // Flushes that end in time are not noted.
    let ran = run(&plan(cells(), budget_ns), 1e8, |_, _| ());
    assert_eq!((ran.visits.len(), ran.outcome.notes.len()), (6, 0), "{:?}", ran.outcome.notes);
}

#[test]
fn all_turns_of_a_cell_are_equally_long_and_a_pair_has_the_same_rounds() {
    // A rate that is not called precise at once, a budget that leaves time for further rounds.
    let cells = vec![cell(4096, Extent::Timed), cell(90_000, Extent::Timed)];
    let plan = Plan { precision: 1e-6, rounds: 6, ..plan(cells, 12 * SECOND) };
    let ran = run(&plan, 1e8, |_, _| ());
    let rounds = |index: usize| -> Vec<u32> {
        ran.outcome.cells[index].result.visits.iter().map(|visit| visit.round).collect()
    };
    assert!(rounds(0).len() > 10, "{:?}", rounds(0));
    assert!(rounds(0).is_sorted() && rounds(0)[5] == 5, "{:?}", rounds(0));
    assert_eq!(rounds(0), rounds(1), "the same rounds on both sides of a comparison");
    for cell in &ran.outcome.cells {
        let lengths: Vec<u64> = cell.result.visits.iter().map(|visit| visit.elapsed_ns).collect();
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!(*least as f64 > 0.95 * *most as f64, "{}: {lengths:?}", cell.id);
    }
    assert!(ran.elapsed_ns <= 12 * SECOND && ran.elapsed_ns > 10 * SECOND, "{} ns", ran.elapsed_ns);
    // There and back within the group, in every round.
    assert_eq!(ran.visits[..8], [4096, 90_000, 90_000, 4096, 4096, 90_000, 90_000, 4096]);
}

/// Flushes that no slice knows of take more than the budget has: the rounds that no longer fit are left out whole, and no visit is
/// squeezed into what they leave.
#[test]
fn a_round_that_no_longer_fits_is_left_out_whole() {
    let mut cells = vec![cell(8192, Extent::Timed), cell(16_384, Extent::Timed)];
    cells.iter_mut().for_each(|cell| cell.workload.op = Op::Write);
    let plan = Plan { precision: 1e-6, rounds: 6, ..plan(cells, 12 * SECOND) };
    let ran = run(&plan, 1e8, |disk, _| disk.hang_ns = 900_000_000);
    let lengths = |index: usize| -> Vec<u64> {
        ran.outcome.cells[index].result.visits.iter().map(|visit| visit.elapsed_ns).collect()
    };
    assert_eq!((lengths(0).len(), lengths(1).len()), (3, 3));
    for lengths in [lengths(0), lengths(1)] {
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!(*least as f64 > 0.9 * *most as f64, "{lengths:?}");
    }
    assert!(ran.elapsed_ns <= 12 * SECOND, "{} ns", ran.elapsed_ns);
}

#[test]
fn time_that_is_left_goes_to_the_least_precise_group() {
    let mut cells = vec![cell(4096, Extent::Timed), cell(40_000_000, Extent::Timed)];
    cells[1].workload.op = Op::Write;
    let plan = Plan { rounds: 6, ..plan(cells, 24 * SECOND) };
    let ran = run(&plan, 1e8, |_, _| ());
    let visits = |index: usize| ran.outcome.cells[index].result.visits.len();
    assert_eq!(visits(0), 6, "small blocks at a constant rate are precise after the rounds of the plan");
    assert!(visits(1) > 6, "{} visits of blocks that take 0.4 s each", visits(1));
}

/// All writes of a run share the fast part of a flash drive; those of a question alone want their precision.
#[test]
fn further_rounds_of_several_questions_only_read() {
    let visits_with = |second: Experiment| {
        let mut cells = vec![cell(4096, Extent::Timed), cell(40_000_000, Extent::Timed)];
        cells[1].workload.op = Op::Write;
        cells.push(Cell { experiment: second, ..cell(50_000_000, Extent::Timed) });
        let ran = run(&Plan { rounds: 6, ..plan(cells, 24 * SECOND) }, 1e8, |_, _| ());
        [1, 2].map(|index| ran.outcome.cells[index].result.visits.len())
    };
    let first = cell(4096, Extent::Timed).experiment;
    let other = if first == Experiment::Stream { Experiment::Headline } else { Experiment::Stream };
    let [written, read] = visits_with(other);
    assert!(written == 6 && read > 6, "{written} {read}");
    let [written, read] = visits_with(first);
    assert!(written > 6 && read > 6, "{written} {read}");
}

#[test]
fn further_rounds_of_buffered_writes_write_no_more_than_the_first() {
    let mut behind = cell(1 << 16, Extent::Timed);
    behind.workload.op = Op::Write;
    behind.workload.path = IoPath::Buffered;
    let plan = Plan { precision: 1e-9, rounds: 6, ..plan(vec![behind], 60 * SECOND) };
    let ran = run(&plan, 1e8, |_, _| ());
    let mut rounds = std::collections::BTreeMap::<u32, u64>::new();
    for visit in &ran.outcome.cells[0].result.visits {
        *rounds.entry(visit.round).or_default() += visit.bytes;
    }
    let most_of_the_plan = rounds.range(..6).map(|(_, &bytes)| bytes).max().unwrap();
    let further: Vec<u64> = rounds.range(6..).map(|(_, &bytes)| bytes).collect();
    assert!(further.len() > 2, "{rounds:?}");
    assert!(further.iter().all(|&bytes| bytes <= most_of_the_plan * 11 / 10), "{rounds:?}");
}

#[test]
fn a_burst_is_no_warm_up_of_the_silence_after_it() {
    // A second of reads, then one in 150 ms: most windows after the first fifth of the visit of 5 s are empty.
    let plan = Plan { rounds: 6, ..plan(vec![cell(4096, Extent::Timed)], 60 * SECOND) };
    let ran = run(&plan, 1e8, |disk, _| disk.stall = Some((24_400, 150_000_000)));
    let result = &ran.outcome.cells[0].result;
    assert_eq!(result.warmup_ns, Some(0), "{result:?}");
    let overall = result.bytes.unwrap() as f64 * 1e9 / result.elapsed_ns.unwrap() as f64;
    let rate = result.bytes_per_s.unwrap();
    assert!((rate.mean / overall - 1.0).abs() < 1e-9, "{rate:?}, {overall} over all");
}

#[test]
fn streams_that_never_ran_at_once_do_not_take_the_time_of_the_others() {
    let mut cells = vec![cell(4096, Extent::Timed), cell(40_000_000, Extent::Timed)];
    cells[0].workload.streams = 2;
    cells[1].workload.op = Op::Write;
    let plan = Plan { rounds: 6, ..plan(cells, 24 * SECOND) };
    let ran = run(&plan, 1e8, |_, _| ());
    let result = |index: usize| &ran.outcome.cells[index].result;
    assert_eq!(result(0).bytes_per_s, None, "no rate without an overlap");
    assert_eq!(result(0).visits.len(), 6);
    assert!(result(1).visits.len() > 6, "{} visits", result(1).visits.len());
}

#[test]
fn passes_that_fit_into_the_budget_have_all_rounds() {
    // A pass takes 2 s and is more than its share of a round; the small cells beside it leave the time.
    let mut cells: Vec<Cell> = (0..4).map(|n| cell(4096 << n, Extent::Timed)).collect();
    let bytes = 200_000_000;
    let mut pass = cell(1 << 20, Extent::Passes { bytes });
    pass.workload.op = Op::Write;
    pass.weight = 0.3;
    cells.push(pass);
    let plan = Plan { precision: 1e-9, rounds: 6, ..plan(cells, 40 * SECOND) };
    let ran = run(&plan, 2e8, |_, _| ());
    let rounds: Vec<u32> = ran.outcome.cells[4].result.visits.iter().map(|visit| visit.round).collect();
    assert!(rounds.starts_with(&[0, 1, 2, 3, 4, 5]), "{rounds:?}");
    assert!(ran.elapsed_ns <= 41 * SECOND, "{} ns", ran.elapsed_ns);
}

#[test]
fn passes_that_no_time_suffices_for_stay_within_the_budget() {
    let mut cells = vec![cell(4096, Extent::Timed), cell(8192, Extent::Timed)];
    for cell in &mut cells {
        cell.extent = Extent::Passes { bytes: 100 << 20 };
    }
    let plan = Plan { rounds: 6, ..plan(cells, 5 * SECOND) };
    let ran = run(&plan, 5e6, |_, _| ());
    assert!(ran.elapsed_ns < 5_500_000_000, "{} ns", ran.elapsed_ns);
    for cell in &ran.outcome.cells {
        assert!(cell.result.visits.len() >= 6, "{} parts", cell.result.visits.len());
        assert!(cell.result.visits[0].elapsed_ns > SECOND, "the first may take half of the cell's share");
    }
}
