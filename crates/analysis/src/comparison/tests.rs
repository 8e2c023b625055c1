use super::*;
use crate::Analysis;
use crate::fixtures::{self, disk, in_rounds, kept_in_memory, make_durable, record, with};
use rdsk_model::{IoPath, Limit, Pattern, StreamResult};
use rdsk_stats::rng::SplitMix64;

const SECOND: u64 = 1_000_000_000;

fn reads(id: &str, path: IoPath, elapsed_ns: u64) -> CellRecord {
    fixtures::cell(id, Op::Read, path, 1 << 20, 600, elapsed_ns)
}

fn paths(direct: CellRecord, buffered: CellRecord) -> Record {
    record(vec![disk()], vec![direct, buffered])
}

fn only(record: &Record) -> Result<Ratio, NoRatio> {
    let analysis = Analysis::of(record);
    let comparisons: Vec<&Comparison<'_>> = analysis.comparisons(Kind::Paths).collect();
    assert_eq!(comparisons.len(), 1, "{comparisons:#?}");
    comparisons[0].ratio
}

#[test]
fn a_ratio_is_that_of_the_rounds_that_both_had() {
    let [direct, buffered] = [("d", IoPath::Direct, 2 * SECOND), ("b", IoPath::Buffered, SECOND)]
        .map(|(id, path, ns)| in_rounds(reads(id, path, ns)));
    // One round more, and one of two visits, on one side only.
    let longer = with(direct.clone(), |cell| {
        let mut more = cell.result.visits[0].clone();
        (more.round, more.elapsed_ns) = (9, 1);
        cell.result.visits.push(more);
        let half = cell.result.visits[1].clone();
        cell.result.visits.push(half);
    });
    let (first, two) =
        (only(&paths(direct, buffered.clone())).unwrap(), only(&paths(longer, buffered)).unwrap());
    assert_eq!(first, two);
    assert_eq!(first.rounds, 6);
    assert!(
        first.low < 0.5 && 0.5 < first.high && first.high / first.low < 1.04 && first.is_sure(),
        "{first:?}"
    );
    let turned = first.turned();
    assert!(turned.low < 2.0 && 2.0 < turned.high && turned.mean > 1.99, "{turned:?}");
}

/// Six visits of one second, of which the first goes three times as fast for a fifth of it: the warm-up, which the rate leaves out.
#[test]
fn the_warm_up_is_no_part_of_a_ratio() {
    let [warm, base] = ["d", "b"].map(|id| in_rounds(reads(id, IoPath::Direct, 6 * SECOND)));
    let warm = with(warm, |cell| {
        let first = &mut cell.result.visits[0];
        let early_bytes = first.bytes / 5 * 3;
        (cell.result.warmup_ns, cell.result.warmup_bytes) = (Some(first.elapsed_ns / 5), Some(early_bytes));
        first.bytes += first.bytes / 5 * 2;
    });
    for measure in [Measure::Elapsed, Measure::Together, Measure::UntilStable] {
        let ratio = ratio_of(&warm, &base, measure).unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-3, "{measure:?}: {ratio:?}");
    }
    // A Record that does not show its bytes leaves it in.
    let untold = with(warm, |cell| cell.result.warmup_bytes = None);
    let ratio = ratio_of(&untold, &base, Measure::Elapsed).unwrap();
    assert!((ratio.mean - 1.4_f64.powf(1.0 / 6.0)).abs() < 1e-3, "{ratio:?}");
}

#[test]
fn few_rounds_and_few_ios_are_too_few() {
    let short = |rounds: usize, ops: u64| {
        let cells =
            [("d", IoPath::Direct, 9 * SECOND), ("b", IoPath::Buffered, SECOND)].map(|(id, path, ns)| {
                with(in_rounds(reads(id, path, ns)), |cell| {
                    cell.result.visits.truncate(rounds);
                    cell.result.ops = Some(ops);
                })
            });
        let [direct, buffered] = cells;
        only(&paths(direct, buffered))
    };
    assert_eq!(short(2, 600), Err(NoRatio::Rounds(2)));
    assert_eq!(short(6, 3), Err(NoRatio::Ios(3)));
    assert!(short(3, 4).is_ok());
    // A Record that does not show its rounds has all visits in one.
    let untold = [("d", IoPath::Direct), ("b", IoPath::Buffered)].map(|(id, path)| {
        with(in_rounds(reads(id, path, SECOND)), |cell| {
            cell.result.visits.iter_mut().for_each(|visit| visit.round = 0);
        })
    });
    let [direct, buffered] = untold;
    let too_few = only(&paths(direct, buffered)).unwrap_err();
    assert_eq!(too_few.words(), "1 repeat on both sides, and a comparison needs 3");
    assert_eq!(NoRatio::Ios(3).words(), "3 I/Os on one side, and a comparison needs 4");
}

/// A cell that was taken over from an earlier run shares no round with one of this run, whatever their numbers say.
#[test]
fn cells_of_two_sittings_are_not_compared() {
    let cells = |of_direct: &dyn Fn(u32) -> u32, of_buffered: &dyn Fn(u32) -> u32| {
        let [direct, buffered] =
            [("d", IoPath::Direct, 2 * SECOND, of_direct), ("b", IoPath::Buffered, SECOND, of_buffered)].map(
                |(id, path, ns, of)| {
                    with(in_rounds(reads(id, path, ns)), |cell| {
                        cell.result.visits.iter_mut().for_each(|visit| visit.sitting = of(visit.round));
                    })
                },
            );
        only(&paths(direct, buffered))
    };
    assert_eq!(cells(&|_| 1, &|_| 0), Err(NoRatio::Sittings));
    assert_eq!(NoRatio::Sittings.words(), "measured in two runs");
    assert_eq!(cells(&|_| 1, &|_| 1), cells(&|_| 0, &|_| 0), "both were taken over");
    // Rounds that were in part made then, and in part now: those of the longer sitting count.
    let errors_until = |round: u32| u32::from(round < 2);
    assert_eq!(cells(&errors_until, &errors_until).unwrap().rounds, 4);
    assert_eq!(cells(&|round| u32::from(round < 3), &errors_until).unwrap().rounds, 3);
    assert_eq!(cells(&|round| u32::from(round < 4), &errors_until), Err(NoRatio::Sittings));
}

#[test]
fn bursts_above_a_limit_are_not_compared_and_the_limit_itself_is() {
    let limited = |ops_per_s: u64| {
        let cells = [("d", IoPath::Direct, SECOND), ("b", IoPath::Buffered, SECOND)].map(|(id, path, ns)| {
            with(in_rounds(reads(id, path, ns)), |cell| {
                cell.evidence.limits = vec![Limit {
                    target: 0,
                    device: "sda".into(),
                    source: "io.max".into(),
                    op: Op::Read,
                    bytes_per_s: None,
                    ops_per_s: Some(ops_per_s),
                }];
            })
        });
        let [direct, buffered] = cells;
        assert_eq!(direct.result.ops_per_s.map(|rate| rate.mean.round()), Some(600.0));
        only(&paths(direct, buffered))
    };
    assert_eq!(limited(420), Err(NoRatio::Burst));
    assert!(limited(600).is_ok());
}

/// What each buffered visit had read ahead and not used is missing in all of its rounds alike.
#[test]
fn what_was_read_ahead_and_not_used_leaves_the_ratio_unsure() {
    let compared = |factor: u64, charged: Option<u64>, turned: bool| {
        let direct = in_rounds(reads("d", IoPath::Direct, SECOND));
        let buffered = with(in_rounds(reads("b", IoPath::Buffered, SECOND / 100 * factor)), |cell| {
            let device = &mut cell.evidence.device[0];
            let bytes = charged.unwrap_or(600 << 20);
            device.read_bytes = Some(bytes);
            device.diskstat.as_mut().unwrap().read_sectors = bytes / 512;
            cell.evidence.process.read_bytes = Some(bytes);
        });
        if turned { ratio_of(&buffered, &direct, Measure::Elapsed) } else { only(&paths(direct, buffered)) }
            .unwrap()
    };
    let quarter_more = Some(750 << 20);
    let sure = compared(108, None, false);
    assert!(sure.outcome() == Outcome::Faster && sure.low > 1.05, "{sure:?}");
    let unsure = compared(108, quarter_more, false);
    assert!((unsure.mean - sure.mean).abs() < 1e-9 && (unsure.high - sure.high).abs() < 1e-9);
    assert!((sure.low / unsure.low - 1.25).abs() < 1e-3, "{unsure:?}");
    assert!(unsure.outcome() == Outcome::Unclear && unsure.p_adjusted >= 1.0, "{unsure:?}");
    // Beyond what it explains, the direct path is faster all the same.
    let beyond = compared(150, quarter_more, false);
    assert!(beyond.outcome() == Outcome::Faster && beyond.low < 1.4, "{beyond:?}");
    let (certain, other) = (compared(108, None, true), compared(108, quarter_more, true));
    assert!((certain.low - other.low).abs() < 1e-9 && (other.high / certain.high - 1.25).abs() < 1e-3);
}

#[test]
fn sequential_cells_may_have_other_spans_and_random_ones_not() {
    let count = |pattern, span_bytes| {
        let cell_of = |id, path, span_bytes| {
            with(in_rounds(reads(id, path, SECOND)), |cell| {
                (cell.workload.pattern, cell.workload.span_bytes) = (pattern, span_bytes);
            })
        };
        let record = paths(cell_of("d", IoPath::Direct, 1 << 30), cell_of("b", IoPath::Buffered, span_bytes));
        Analysis::of(&record).comparisons(Kind::Paths).count()
    };
    assert_eq!(count(Pattern::Sequential, 1 << 32), 1);
    assert_eq!((count(Pattern::Random, 1 << 32), count(Pattern::Random, 1 << 30)), (0, 1));
}

#[test]
fn writes_are_compared_until_stable() {
    let write = |id, path| fixtures::cell(id, Op::Write, path, 1 << 20, 600, SECOND);
    let memory = kept_in_memory(write("b", IoPath::Buffered), SECOND / 50, 2 * SECOND);
    let ratio = only(&paths(in_rounds(write("d", IoPath::Direct)), in_rounds(memory.clone()))).unwrap();
    assert!(ratio.low < 2.0 && 2.0 < ratio.high, "{ratio:?}");
    let unknown = with(in_rounds(memory), |cell| cell.result.visits[2].to_stable_ns = None);
    let ratio = only(&paths(in_rounds(write("d", IoPath::Direct)), unknown)).unwrap();
    assert_eq!(ratio.rounds, 5, "a round with an unknown time is left out");
}

#[test]
fn the_comparisons_of_an_experiment_are_corrected_together() {
    let write = |id: &str, block_bytes: u64| {
        in_rounds(fixtures::cell(id, Op::Write, IoPath::Direct, block_bytes, 600, SECOND))
    };
    let slower = |id: &str, block_bytes: u64| {
        let cell = fixtures::cell(id, Op::Write, IoPath::Direct, block_bytes, 600, SECOND / 1000 * 1006);
        in_rounds(with(cell, make_durable))
    };
    let cells = vec![write("a", 4096), slower("bb", 4096), write("c", 8192), slower("dd", 8192)];
    let both = record(vec![disk()], cells.clone());
    let uncorrected = record(vec![disk()], cells[..2].to_vec());
    let first = |record: &Record| {
        let analysis = Analysis::of(record);
        analysis.comparisons(Kind::Durable).next().unwrap().ratio.unwrap()
    };
    let (corrected, alone) = (first(&both), first(&uncorrected));
    assert_eq!((corrected.low, corrected.high), (alone.low, alone.high));
    assert!(alone.p_adjusted > 0.0 && alone.p_adjusted < corrected.p_adjusted, "{alone:?} {corrected:?}");
}

/// The cell of a second target over that of the first, in the family of its experiment; what memory answers is left out.
#[test]
fn the_same_cell_of_two_targets_is_compared() {
    let on = |target: u32, name: &str, cell: CellRecord| {
        with(cell, |cell| {
            cell.id = format!("{name}@{target}");
            cell.workload.targets = vec![target];
        })
    };
    // Another id, and with it another order of the rounds' times.
    let read = |target, id, ns| on(target, "paths/read/direct", in_rounds(reads(id, IoPath::Direct, ns)));
    let cached = |target| {
        on(
            target,
            "paths/read/cached",
            fixtures::read_from_memory(in_rounds(reads("c", IoPath::Buffered, SECOND))),
        )
    };
    let second = rdsk_model::Target { index: 1, ..disk() };
    let ratios = |slower_ns| {
        let record = record(
            vec![disk(), second.clone()],
            vec![read(0, "d", SECOND), cached(0), read(1, "b", slower_ns), cached(1)],
        );
        let analysis = Analysis::of(&record);
        let compared: Vec<_> = analysis
            .comparisons(Kind::Targets)
            .map(|comparison| (comparison.cell.id.clone(), comparison.ratio))
            .collect();
        let [(id, ratio)] = &compared[..] else { panic!("{compared:?}") };
        assert_eq!(id, "paths/read/direct@1");
        ratio.unwrap()
    };
    let tenth = ratios(SECOND / 9 * 10);
    assert!(tenth.is_sure() && tenth.low < 0.9 && 0.9 < tenth.high && tenth.high < 0.95, "{tenth:?}");
    let equal = ratios(SECOND);
    assert!(!equal.is_sure() && equal.low <= 1.0 && 1.0 <= equal.high, "{equal:?}");
}

#[test]
fn uneven_service_shows_round_by_round() {
    // Which of two streams is ahead changes from round to round, so that the sums are alike.
    let uneven = |ahead: u64| {
        with(in_rounds(reads("scale/read/1M/2", IoPath::Direct, SECOND)), |cell| {
            cell.experiment = Experiment::Scale;
            cell.workload.streams = 2;
            for visit in &mut cell.result.visits {
                let share =
                    |index: u32| if visit.round % 2 == index { ahead } else { 100 + u64::from(visit.round) };
                visit.streams = [0, 1]
                    .map(|index| StreamResult {
                        index,
                        end_ns: SECOND,
                        bytes: share(index),
                        ..StreamResult::default()
                    })
                    .into();
            }
        })
    };
    let comparisons_ahead = |ahead| {
        let record = record(vec![disk()], vec![uneven(ahead)]);
        let analysis = Analysis::of(&record);
        let point = &analysis.scale()[0].lines[0].points[0];
        (point.evenness.unwrap(), point.fairness.unwrap().jain)
    };
    let (evenness, of_sums) = comparisons_ahead(400);
    assert!(evenness.is_unfair() && of_sums > 0.99, "{evenness:?}, {of_sums}");
    assert!(
        evenness.low < evenness.mean && evenness.mean < evenness.high && evenness.high < UNFAIR,
        "{evenness:?}"
    );
    // The ends are those of each round, and both streams are on one target.
    assert!(evenness.fastest == 400.0 && (100.0..110.0).contains(&evenness.slowest), "{evenness:?}");
    assert!(evenness.on_one_target == Some(evenness.mean) && !evenness.is_fair_on_each_target());
    let (evenness, _) = comparisons_ahead(110);
    assert!(!evenness.is_unfair(), "{evenness:?}");
}

/// Two equal disks whose common state wanders, as two LUNs of one array: the ratio by rounds is called different about as
/// seldom as it says, and a tenth is found.
#[test]
fn what_both_share_makes_no_difference() {
    let called = |factor: f64| {
        let different = (0..400).filter(|&seed| {
            let mut noise = SplitMix64::new(seed * 7919 + 13);
            let mut state = 1.0;
            let states: Vec<f64> = (0..6)
                .map(|_| {
                    state *= 1.0 + 0.1 * noise.normal().clamp(-3.0, 3.0);
                    state
                })
                .collect();
            let mut side = |id: &str, path, mean: f64| {
                with(in_rounds(reads(id, path, SECOND)), |cell| {
                    for (visit, state) in cell.result.visits.iter_mut().zip(&states) {
                        let rate = mean * state * (1.0 + 0.02 * noise.normal());
                        visit.elapsed_ns = crate::metrics::whole(visit.bytes as f64 / rate);
                    }
                })
            };
            let (direct, buffered) = (side("d", IoPath::Direct, factor), side("b", IoPath::Buffered, 1.0));
            only(&paths(direct, buffered)).unwrap().is_sure()
        });
        different.count()
    };
    // 20 of 400 are expected; three deviations more are 33.
    let (equal, a_tenth) = (called(1.0), called(1.1));
    assert!(equal <= 33, "{equal} of 400 equal pairs");
    assert!(a_tenth >= 360, "{a_tenth} of 400 pairs that differ by a tenth");
}
