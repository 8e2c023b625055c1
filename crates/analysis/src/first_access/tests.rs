use super::*;
use crate::Analysis;
use crate::fixtures::rates::{NOISES, RUN_WINDOWS, laid_out, steady};
use crate::fixtures::{disk, record, with};
use rdsk_model::{FirstAccess, PointRun, Points};
use rdsk_stats::rng::SplitMix64;

/// All of a visit's I/Os are the first of a place, but for this share.
fn first_of(visit: &Visit, share_of_ios: f64) -> FirstAccess {
    let ops = metrics::whole(visit.ops as f64 * share_of_ios);
    FirstAccess {
        place_bytes: MIB,
        places: ops,
        ops,
        bytes: ops * 65_536,
        latency_ns: ops * 20_000_000,
        p50_ns: 20_000_000,
        later_p50_ns: (ops < visit.ops).then_some(300_000),
    }
}

/// A cell of visits with these rates, the first of which are of first accesses.
fn cell_of(visits: &[Vec<f64>], first: usize) -> CellRecord {
    with(laid_out("r", Op::Read, visits), |cell| {
        for (index, visit) in cell.result.visits.iter_mut().enumerate() {
            visit.ops = visit.bytes / 65_536;
            visit.start_ns = 1 + 10_000_000_000 * index as u64;
            if index < first {
                visit.first = Some(first_of(visit, 1.0));
            }
        }
    })
}

fn slow_at_first(first: usize) -> CellRecord {
    let visits: Vec<Vec<f64>> =
        (0..6).map(|index| steady(20, if index < first { 49.0 } else { 3000.0 })).collect();
    cell_of(&visits, first)
}

#[test]
fn visits_of_first_accesses_give_both_rates() {
    for first in 1..=4 {
        let cells = [slow_at_first(first)];
        let shown = shown(&cells);
        let cost = shown[0].1;
        assert_eq!(cost.shown_by, ShownBy::Visits);
        let mib = |rate: f64| rate / MIB as f64;
        assert!((mib(cost.first_bytes_per_s) - 49.0).abs() < 0.5, "{cost:?}");
        assert!((mib(cost.later_bytes_per_s) - 3000.0).abs() < 10.0, "{cost:?}");
    }
    assert_eq!(shown(&[slow_at_first(5)]), [], "one later visit is chance");
    // A visit is slow for reasons of its own now and then.
    let slower = |first: usize, times: f64| {
        let rate = |index| if index < first { 1320.0 / times } else { 1320.0 };
        shown(&[cell_of(&(0..8).map(|index| steady(20, rate(index))).collect::<Vec<_>>(), first)]).len()
    };
    assert_eq!(
        [slower(1, 1.54), slower(1, 3.1), slower(2, 1.8), slower(2, 2.1), slower(3, 1.6)],
        [0, 1, 0, 1, 1]
    );
}

/// What first accesses explain is no change over time: the same rates without them are.
#[test]
fn a_difference_that_first_access_explains_is_no_drift_and_no_fall() {
    let rise: Vec<Vec<f64>> = (0..6).map(|index| steady(20, 100.0 * 1.15_f64.powi(index))).collect();
    let time = |cell: CellRecord| {
        let record = record(vec![disk()], vec![cell]);
        let analysis = Analysis::of(&record);
        let cell = &record.cells[0];
        analysis.trend(cell).is_some() || !analysis.level_shifts(cell).is_empty()
    };
    assert!(time(cell_of(&rise, 0)));
    assert!(!time(slow_at_first(2)));
    let segments = |cell: CellRecord| {
        let record = record(vec![disk()], vec![cell]);
        let analysis = Analysis::of(&record);
        analysis.rate_series(&record.cells[0]).map(|series| series.segments.len())
    };
    assert_eq!(segments(slow_at_first(2)), Some(4));
    let steady_ones = cell_of(&vec![steady(20, 100.0); 6], 2);
    assert_eq!(segments(steady_ones), Some(6), "nothing is left out where first accesses cost nothing");
}

/// One first access among a hundred takes a third of a visit where it costs 40 times as much, and makes the start of that visit slow.
#[test]
fn visits_with_a_few_costly_first_accesses_are_left_out_too() {
    let visits: Vec<Vec<f64>> = (0..8)
        .map(|index| match index {
            0 => steady(20, 49.0),
            _ => [steady(7, 1200.0), steady(13, 2400.0)].concat(),
        })
        .collect();
    let few = |count: u64| {
        with(cell_of(&visits, 1), |cell| {
            let costly = cell.result.visits[0].first;
            for visit in &mut cell.result.visits[1..] {
                visit.first =
                    costly.map(|first| FirstAccess { ops: count * visit.ops / 100, places: count, ..first });
            }
        })
    };
    let kept = |cell: CellRecord| {
        let record = record(vec![disk()], vec![cell]);
        let analysis = Analysis::of(&record);
        let is_drift = analysis.trend(&record.cells[0]).is_some();
        (analysis.rate_series(&record.cells[0]).map_or(0, |series| series.segments.len()), is_drift)
    };
    assert_eq!(kept(few(0)), (7, true), "without first accesses it is the disk's own");
    assert_eq!(kept(few(1)), (0, false));
}

#[test]
fn a_stall_among_first_accesses_is_none_of_their_cost() {
    let stalled: Vec<f64> = steady(20, 100.0)
        .into_iter()
        .enumerate()
        .map(|(at, rate)| if at < 14 { rate } else { 0.0 })
        .collect();
    let mut visits = vec![steady(20, 100.0); 6];
    visits[0] = stalled;
    assert_eq!(shown(&[cell_of(&visits, 1)]), []);
}

#[test]
fn noise_alone_shows_no_cost() {
    for (index, noise) in NOISES.into_iter().enumerate() {
        let claims = (0..200).filter(|&seed| {
            let windows = noise.windows(&mut SplitMix64::new(seed), RUN_WINDOWS, 0.2);
            let visits: Vec<Vec<f64>> = windows
                .chunks(RUN_WINDOWS / 6)
                .take(6)
                .map(|part| part.iter().map(|rate| 100.0 * rate).collect())
                .collect();
            !shown(&[cell_of(&visits, 1 + index % 3)]).is_empty()
        });
        assert_eq!(claims.count(), 0, "{noise:?}");
    }
}

/// Random blocks: each visit has both kinds, whose share falls.
fn mixed(first_p50_ns: u64) -> CellRecord {
    with(laid_out("r", Op::Read, &vec![steady(20, 10.0); 6]), |cell| {
        cell.workload.pattern = Pattern::Random;
        for (index, visit) in cell.result.visits.iter_mut().enumerate() {
            visit.ops = 100;
            let ops = 80 - 13 * index as u64;
            visit.first =
                Some(FirstAccess { p50_ns: first_p50_ns, ops, places: ops, ..first_of(visit, 0.5) });
        }
    })
}

#[test]
fn first_and_later_blocks_of_the_same_visits_are_told_apart() {
    let cells = [mixed(20_300_000)];
    let shown = shown(&cells);
    let cost = shown[0].1;
    assert_eq!((cost.shown_by, cost.first_ops), (ShownBy::Ios, 80 + 67 + 54 + 41 + 28 + 15));
    assert!((cost.factor() - 67.7).abs() < 0.1, "{cost:?}");
    assert_eq!(super::shown(&[mixed(310_000)]), []);
}

/// A short run on a busy machine: a dozen first writes of 20 ms among a few later ones of 0.4 to 2.7 ms.
#[test]
fn few_ios_are_enough_where_each_visit_shows_a_large_cost() {
    let shown_count = |visits: [(u64, u64, u64); 2]| {
        let cell = with(laid_out("r", Op::Read, &vec![steady(20, 1.0); 2]), |cell| {
            cell.workload.pattern = Pattern::Random;
            for (visit, (first_ops, later_ops, later_ns)) in cell.result.visits.iter_mut().zip(visits) {
                visit.ops = first_ops + later_ops;
                let first = first_of(visit, first_ops as f64 / visit.ops as f64);
                visit.first = Some(FirstAccess { later_p50_ns: Some(later_ns), ..first });
            }
        });
        shown(&[cell]).len()
    };
    assert_eq!(shown_count([(5, 3, 432_127), (4, 7, 1_122_303)]), 1);
    assert_eq!(shown_count([(5, 3, 432_127), (4, 7, 7_000_000)]), 0, "one visit alone is chance");
    assert_eq!(shown_count([(5, 2, 432_127), (4, 7, 1_122_303)]), 0);
}

/// Memory, limits and other programs make differences of their own.
#[test]
fn cells_that_are_not_the_devices_are_not_judged() {
    for code in [VerdictCode::PageCache, VerdictCode::Throttled, VerdictCode::Disturbed, VerdictCode::Hole] {
        let cell = with(slow_at_first(2), |cell| {
            cell.verdict = Some(rdsk_model::Verdict { code, text: String::new(), device_share: None });
        });
        assert_eq!(shown(&[cell]), [], "{code}");
    }
}

/// Positions: the first pass over them took longer everywhere, and is not one of the passes that zones are seen by.
#[test]
fn zones_are_those_of_later_passes() {
    let pass =
        |ns: u64| PointRun { order: (0..40).collect(), latency_ns: vec![ns; 40], ..PointRun::default() };
    let cell = with(laid_out("zones/read", Op::Read, &vec![steady(4, 10.0); 6]), |cell| {
        cell.experiment = rdsk_model::Experiment::Zones;
        cell.workload.block_bytes = MIB;
        cell.workload.points = Some(Points {
            offset_bytes: (0..40).map(|index| index * 100 * MIB).collect(),
            ..Points::default()
        });
        cell.result.points =
            (0..6).map(|index| pass(if index == 0 { 20_000_000 } else { 300_000 })).collect();
        for visit in &mut cell.result.visits {
            (visit.ops, visit.bytes) = (40, 40 * MIB);
        }
        let visit = &mut cell.result.visits[0];
        visit.first = Some(FirstAccess { bytes: 40 * MIB, ..first_of(visit, 1.0) });
    });
    let record = record(vec![disk()], vec![cell]);
    let analysis = Analysis::of(&record);
    assert_eq!(analysis.zones(&record.cells[0]).map(|zones| zones.passes), Some(5));
    assert_eq!(analysis.first_costs().len(), 1);
}

#[test]
fn a_layout_that_takes_much_longer_than_later_writes_is_a_first_write() {
    let factor_of = |layout_ms: u64| {
        let target = rdsk_model::Target {
            laid_out: Some(rdsk_model::LaidOut { bytes: 100 * MIB, elapsed_ns: 100 * layout_ms * 1_000_000 }),
            made_by_rdsk: true,
            ..disk()
        };
        let cell = with(laid_out("w", Op::Write, &vec![steady(20, 400.0); 6]), |cell| {
            cell.workload.block_bytes = MIB;
            cell.result.ops = cell.result.bytes.map(|bytes| bytes / MIB);
            cell.result.latency_ns.as_mut().unwrap().p50 = Some(2_500_000);
            cell.result.to_stable_ns = cell.result.elapsed_ns;
        });
        let record = record(vec![target], vec![cell]);
        of_layouts(&record).first().map(|(_, cost)| cost.first_bytes_per_s / MIB as f64)
    };
    assert_eq!(factor_of(20), Some(50.0));
    assert_eq!(factor_of(4), None);
}
