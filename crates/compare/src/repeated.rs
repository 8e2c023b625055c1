//! Two configurations that were run several times each, in pairs that follow each other: the runs are the samples, and a pair
//! shares what the disk did at that time. What a run shows within itself does not count here, beside the steps that its figures are
//! read from.

use crate::change::Unknown;
use crate::compared::{Basis, Candidate, Compared, Side, between_s, corrected};
use crate::figure::{Metric, stepped};
use crate::log_ratio::LogRatio;
use crate::matching::{Matched, is_alike, matching};
use crate::missing::{Missing, OneRun, WhyMissing, why_of_nothing};
use rdsk_analysis::metrics::{is_of_memory, ran};
use rdsk_analysis::overall::Average;
use rdsk_model::{CellRecord, Record};
use rdsk_stats::{Stepped, SteppedPair, mean, paired_ratio_of_steps};
use std::collections::BTreeSet;

/// A cell, and the run that it is of.
type CellOfRun<'a> = (&'a Record, &'a CellRecord);

/// Compares the runs of one configuration with those of another, the first of each with the first and so on. `None` where
/// either has no run.
pub fn repeated<'a>(base: &'a [Record], other: &'a [Record]) -> Option<Compared<'a>> {
    let (first, first_other) = (base.first()?, other.first()?);
    let mut matched = matching(first, first_other);
    // What the two command lines request on purpose may be what differs.
    matched.by_id();
    let lost = lost(base, other, &matched);
    let pairs = base.len().min(other.len());
    let basis = Basis::Pairs { pairs, alone: base.len().max(other.len()) - pairs };
    let candidates = matched.pairs.iter().map(|(cell, partner)| {
        let candidate_of = |metric| candidate((base, cell), (other, partner), metric);
        Metric::ALL.into_iter().filter_map(candidate_of).collect()
    });
    let candidates = candidates.collect();
    let average = average(base, other, &matched);
    let side = Side { base: first, other: first_other, basis, lost, average };
    Some(corrected(vec![(side, matched, candidates)]))
}

/// A figure of a cell in every pair of runs that has it.
fn candidate(
    (base, cell): (&[Record], &CellRecord),
    (other, partner): (&[Record], &CellRecord),
    metric: Metric,
) -> Option<Candidate> {
    let pairs: Vec<SteppedPair> = base
        .iter()
        .zip(other)
        .enumerate()
        .filter_map(|(place, (base_run, other_run))| {
            let a = value((&base[0], cell), base_run, metric).ok()?;
            let b = value((&other[0], partner), other_run, metric).ok()?;
            let began = between_s(&base[0], base_run).unwrap_or(place as f64);
            Some((began, b, a))
        })
        .collect();
    let middle = |figure: fn(&SteppedPair) -> f64| {
        let logs: Vec<f64> = pairs.iter().map(|pair| figure(pair).ln()).collect();
        mean(&logs).map(f64::exp)
    };
    let log = paired_ratio_of_steps(&pairs).and_then(LogRatio::of_pairs);
    Some(Candidate {
        metric,
        base: middle(|pair| pair.2.value)?,
        other: middle(|pair| pair.1.value)?,
        pairs: Some((pairs.len(), base.len().min(other.len()))),
        log: log.ok_or(Unknown::Pairs(pairs.len())),
    })
}

/// The geometric mean of the ratios of the rates, over the tests that every run has and of which none was of memory. Each pair of runs
/// gives one such mean, and the interval is that of the pairs: the tests of a run share its state, and are one sample together.
/// `None` with fewer pairs than an interval needs.
fn average(base: &[Record], other: &[Record], matched: &Matched<'_>) -> Option<Average> {
    let runs = || base.iter().zip(other);
    let of_test = |&(base_cell, other_cell): &(&CellRecord, &CellRecord)| -> Option<Vec<[Stepped; 2]>> {
        let of_pair = |(base_run, other_run): (&Record, &Record)| {
            let a = value((&base[0], base_cell), base_run, Metric::Rate).ok()?;
            let b = value((&other[0], other_cell), other_run, Metric::Rate).ok()?;
            Some([a, b])
        };
        runs().map(of_pair).collect()
    };
    let is_of_device = |(base_cell, other_cell): &&(&CellRecord, &CellRecord)| {
        !is_of_memory(base_cell) && !is_of_memory(other_cell)
    };
    let mut tests: Vec<Vec<[Stepped; 2]>> =
        matched.pairs.iter().filter(is_of_device).filter_map(of_test).collect();
    if tests.is_empty() {
        tests = matched.pairs.iter().filter_map(of_test).collect();
    }
    let middle = |place: usize, side: usize| {
        let geometric_mean = |figure: fn(&Stepped) -> f64| {
            let logs: Vec<f64> = tests.iter().map(|test| figure(&test[place][side]).ln()).collect();
            mean(&logs).map(f64::exp)
        };
        Some(Stepped {
            value: geometric_mean(|figure| figure.value)?,
            least: geometric_mean(|figure| figure.least)?,
            most: geometric_mean(|figure| figure.most)?,
        })
    };
    let pair = |(place, (base_run, _)): (usize, (&Record, &Record))| {
        let began = between_s(&base[0], base_run).unwrap_or(place as f64);
        Some((began, middle(place, 1)?, middle(place, 0)?))
    };
    let pairs: Vec<SteppedPair> = runs().enumerate().map(pair).collect::<Option<_>>()?;
    let paired = paired_ratio_of_steps(&pairs)?;
    let (low, high) = paired.interval?;
    Some(Average { ratio: paired.ratio, low, high })
}

/// The figure of the cell of a run that is the same as a cell of another one.
fn value((first, cell): CellOfRun<'_>, run: &Record, metric: Metric) -> Result<Stepped, WhyMissing> {
    let same = |other: &&CellRecord| other.id == cell.id && is_alike((first, cell), (run, other));
    let same = run.cells.iter().find(same);
    let Some(same) = same.filter(|cell| ran(cell)) else { return Err(WhyMissing::of_unmeasured(same)) };
    if let Some(why) = why_of_nothing(same) {
        return Err(WhyMissing::OfNothing(why));
    }
    let figure = stepped(same, metric).filter(|figure| figure.least > 0.0);
    figure.ok_or_else(|| WhyMissing::of_figure(same, metric))
}

/// The figures that a run of the baseline has and another run of either side does not. Its pair is left out, and runs that became too
/// slow for a figure would otherwise pass for runs like those that have it.
fn lost<'a>(base: &'a [Record], other: &'a [Record], matched: &Matched<'a>) -> Vec<Missing<'a>> {
    let mut missing = Vec::new();
    for (of_base_run, two) in cells_of_both(base, other, matched) {
        for metric in Metric::ALL {
            let without = |cell: CellOfRun<'a>, runs: &[Record]| -> Vec<Option<WhyMissing>> {
                runs.iter().map(|run| value(cell, run, metric).err()).collect()
            };
            let of_base = without(of_base_run, base);
            if of_base.iter().all(Option::is_some) {
                continue;
            }
            let of_base = (1..).map(OneRun::Base).zip(of_base);
            let of_other = (1..).map(OneRun::Other).zip(without(two, other));
            missing.extend(of_base.chain(of_other).filter_map(|(run, why)| {
                Some(Missing { pair: 0, run: Some(run), cell: of_base_run.1, metric, why: why? })
            }));
        }
    }
    missing
}

/// Every cell that ran in a run of the baseline, with the one that the other side has for it; with itself where no run has one.
fn cells_of_both<'a>(
    base: &'a [Record],
    other: &'a [Record],
    matched: &Matched<'a>,
) -> Vec<(CellOfRun<'a>, CellOfRun<'a>)> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut cells = Vec::new();
    for run in base {
        for cell in run.cells.iter().filter(|cell| ran(cell)) {
            if !ids.insert(&cell.id) {
                continue;
            }
            let partner = matched.pairs.iter().find(|(paired, _)| std::ptr::eq(*paired, cell));
            let partner = match partner {
                Some((_, two)) => other.first().map(|first| (first, *two)),
                None => other.iter().find_map(|run| {
                    let same = |two: &&CellRecord| ran(two) && two.id == cell.id;
                    Some((run, run.cells.iter().find(same)?))
                }),
            };
            cells.push(((run, cell), partner.unwrap_or((run, cell))));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Answer;
    use crate::condition::{Condition, judge};
    use crate::testing::{cell, record, with_rates};
    use rdsk_model::Latency;
    use rdsk_stats::Histogram;
    use rdsk_stats::rng::SplitMix64;

    fn runs(rates: &[f64]) -> Vec<Record> {
        let run_of_minute = |(minute, rate): (usize, &f64)| {
            let rates = [rate * 0.9, rate * 1.1, *rate];
            record(&format!("2026-03-01T10:{minute:02}:00Z"), vec![with_rates(cell("a"), &rates)])
        };
        rates.iter().enumerate().map(run_of_minute).collect()
    }

    fn answer(base: &[f64], other: &[f64]) -> (Answer, f64) {
        let (base, other) = (runs(base), runs(other));
        let compared = repeated(&base, &other).unwrap();
        let change = compared.pairs[0].cells[0].change(Metric::Rate).unwrap();
        (change.answer(), change.ratio())
    }

    #[test]
    fn what_both_runs_of_a_pair_share_cancels() {
        let drifting = [100.0, 60.0, 140.0, 90.0, 75.0];
        let slower: Vec<f64> =
            drifting.iter().zip([0.95, 0.952, 0.948, 0.951, 0.949]).map(|(a, b)| a * b).collect();
        let (drift, ratio) = answer(&drifting, &slower);
        assert_eq!(drift, Answer::Slower);
        assert!((ratio - 0.95).abs() < 1e-3, "{ratio}");
    }

    /// Two tests that share the state of each run: 1.2 and 1.05 times as fast in every pair, give or take what the run adds to both.
    #[test]
    fn the_mean_of_all_tests_is_taken_within_each_pair_of_runs() {
        let side = |first: f64, second: f64, states: [f64; 5]| -> Vec<Record> {
            let run = |(minute, state): (usize, &f64)| {
                let test = |id: &str, factor: f64, depth: u32| {
                    let mut one = with_rates(cell(id), &[100.0 * factor * state; 3]);
                    one.workload.queue_depth = depth;
                    one
                };
                let cells = vec![test("a", first, 1), test("b", second, 2)];
                record(&format!("2026-03-01T10:{minute:02}:00Z"), cells)
            };
            states.iter().enumerate().map(run).collect()
        };
        let states = [1.0, 1.01, 0.99, 1.005, 0.995];
        let (base, other) = (side(1.0, 1.0, [1.0; 5]), side(1.2, 1.05, states));
        let found = repeated(&base, &other).unwrap();
        let overall = found.pairs[0].overall();
        let average = overall.average.unwrap();
        // √(1.2 · 1.05) times the geometric mean of the states, by hand.
        assert!((average.ratio - 1.122_45).abs() < 2e-4, "{average:?}");
        // Two tests with one state are no surer than one of them.
        let alone = found.pairs[0].cells[0].change(Metric::Rate).unwrap().certainty.unwrap().interval;
        let width = |(low, high): (f64, f64)| (high / low).ln();
        assert!(
            (width((average.low, average.high)) / width(alone) - 1.0).abs() < 1e-3,
            "{average:?} {alone:?}"
        );
        assert_eq!((overall.tests, overall.faster), (2, 2));
        let few = repeated(&base[..2], &other[..2]).unwrap();
        assert_eq!(few.pairs[0].overall().average, None);
    }

    #[test]
    fn scattered_and_few_pairs_leave_it_open() {
        assert_eq!(answer(&[100.0; 5], &[90.0, 110.0, 95.0, 105.0, 97.0]).0, Answer::NoDifferenceSeen);
        assert_eq!(answer(&[100.0; 2], &[50.0; 2]).0, Answer::TooFewData);
        assert!(repeated(&[], &runs(&[1.0])).is_none());
    }

    /// A run whose I/Os all take this long, but for a last one, so that its percentiles are those of a bucket.
    fn timed(minute: usize, ns: f64) -> Record {
        let mut histogram = Histogram::new();
        histogram.record_n(rdsk_analysis::metrics::whole(ns), 1_999);
        histogram.record(1_000_000);
        let mut cell = with_rates(cell("a"), &[90.0, 110.0, 100.0]);
        cell.result.latency_ns = Some(Latency::from(&histogram));
        record(&format!("2026-03-01T10:{minute:02}:00Z"), vec![cell])
    }

    /// The edge between two buckets of 0.64 %.
    const EDGE_NS: f64 = 79_872.0;

    /// 0.2 % apart, on both sides of an edge: every pair is a bucket apart, and the buckets allow that nothing is.
    #[test]
    fn medians_on_both_sides_of_an_edge_are_not_called_different() {
        let condition: Condition = "p50:slower>0.5%".parse().unwrap();
        for pairs in 3..=6 {
            let side = |ns: f64| -> Vec<Record> { (0..pairs).map(|minute| timed(minute, ns)).collect() };
            let (base, other) = (side(EDGE_NS * 0.999), side(EDGE_NS * 1.001));
            let compared = repeated(&base, &other).unwrap();
            for metric in [Metric::P50, Metric::P99] {
                let change = compared.pairs[0].cells[0].change(metric).unwrap();
                let certainty = change.certainty.unwrap();
                assert!(change.ratio() > 1.006, "{pairs} pairs: {}", change.ratio());
                assert_eq!((change.answer(), certainty.p_value), (Answer::NoDifferenceSeen, 1.0));
                let (low, high) = certainty.interval;
                assert!(low < 1.0 && 1.012 < high, "{pairs} pairs: {low} {high}");
            }
            assert!(judge(&compared, std::slice::from_ref(&condition))[0].met.is_empty());
            let slow = side(EDGE_NS * 1.05);
            let compared = repeated(&base, &slow).unwrap();
            assert_eq!(compared.pairs[0].cells[0].change(Metric::P50).unwrap().answer(), Answer::Slower);
            assert!(!judge(&compared, std::slice::from_ref(&condition))[0].met.is_empty(), "{pairs} pairs");
        }
    }

    /// Two devices whose medians scatter by so much, the one below an edge and the other above it by as much as no bucket says.
    #[test]
    fn equal_medians_around_an_edge_are_seldom_called_different() {
        const TRIALS: u64 = 150;
        let kinds = [
            (3, 0.0, 0.001),
            (3, 0.0, 0.006),
            (3, 0.001, 0.0005),
            (4, 0.001, 0.001),
            (4, 0.0, 0.003),
            (6, 0.001, 0.0005),
            (6, 0.0, 0.001),
            (6, 0.0, 0.01),
        ];
        for (pairs, off, scatter) in kinds {
            let is_different = |seed: &u64| {
                let mut noise = SplitMix64::new(*seed);
                let mut side = |off: f64| -> Vec<Record> {
                    let run = |minute| timed(minute, EDGE_NS * (off + scatter * noise.normal()).exp());
                    (0..pairs).map(run).collect()
                };
                let (base, other) = (side(-off), side(off));
                let compared = repeated(&base, &other).unwrap();
                let answer = compared.pairs[0].cells[0].change(Metric::P50).unwrap().answer();
                answer != Answer::NoDifferenceSeen
            };
            let different = (0..TRIALS).filter(is_different).count();
            // 5 % are 7 or 8; three deviations more are 15.
            assert!(different <= 15, "{pairs} pairs, {off}, {scatter}: {different} of {TRIALS}");
        }
    }

    #[test]
    fn another_depth_is_compared_and_said() {
        let base = runs(&[100.0; 3]);
        let mut other = runs(&[200.0, 201.0, 199.0]);
        other.iter_mut().for_each(|run| run.cells[0].workload.queue_depth = 8);
        let compared = repeated(&base, &other).unwrap();
        let cell = &compared.pairs[0].cells[0];
        assert_eq!(cell.change(Metric::Rate).unwrap().answer(), Answer::Faster);
        assert_eq!(cell.remarks(), ["depth 1 → 8"]);
    }

    #[test]
    fn a_pair_in_which_a_cell_failed_is_left_out() {
        let (base, mut other) = (runs(&[100.0; 4]), runs(&[50.0, 50.1, 49.9, 400.0]));
        other[3].cells[0].verdict = None;
        let compared = repeated(&base, &other).unwrap();
        let change = compared.pairs[0].cells[0].change(Metric::Rate).unwrap();
        assert!((change.ratio() - 0.5).abs() < 1e-3 && change.answer() == Answer::Slower);
    }

    /// Five runs, of which these had too few I/Os for a p99.
    fn without_p99(few: &[usize]) -> Vec<Record> {
        let run = |number: usize| {
            let mut run = timed(number, 80_000.0);
            if few.contains(&number) {
                let latency = run.cells[0].result.latency_ns.as_mut().unwrap();
                (latency.count, latency.p99) = (460, None);
            }
            run
        };
        (1..=5).map(run).collect()
    }

    /// Which runs lack which figure, and why.
    fn lost_of(found: &Compared<'_>) -> Vec<(Metric, OneRun, String)> {
        let in_words =
            |in_words: &Missing<'_>| (in_words.metric, in_words.run.unwrap(), in_words.why.words());
        found.pairs[0].lost.iter().map(in_words).collect()
    }

    /// The pairs that are left say nothing of the runs that became too slow to have the figure.
    #[test]
    fn a_figure_that_some_runs_lack_is_named_and_leaves_a_condition_open() {
        let condition: Condition = "p99:slower>10%".parse().unwrap();
        let (base, other) = (without_p99(&[]), without_p99(&[2, 5]));
        let compared = repeated(&base, &other).unwrap();
        let change = compared.pairs[0].cells[0].change(Metric::P99).unwrap();
        assert_eq!((change.pairs, change.answer()), (Some((3, 5)), Answer::NoDifferenceSeen));
        let lacks = |run| (Metric::P99, run, "460 I/Os, 1000 are needed".to_owned());
        assert_eq!(lost_of(&compared), [2, 5].map(|number| lacks(OneRun::Other(number))));
        let judgements = judge(&compared, std::slice::from_ref(&condition));
        let judgement = &judgements[0];
        assert!(judgement.met.is_empty() && judgement.unsure.is_empty(), "{judgement:?}");
        assert!(judgement.missing.len() == 2 && judgement.is_open(), "{judgement:?}");
        // The first run of the baseline has it no more than those of the other side.
        let (base, other) = (without_p99(&[1]), without_p99(&[5]));
        let compared = repeated(&base, &other).unwrap();
        assert_eq!(lost_of(&compared), [OneRun::Base(1), OneRun::Other(5)].map(lacks));
        // What no run of the baseline has is not lost.
        let (base, other) = (without_p99(&[1, 2, 3, 4, 5]), without_p99(&[]));
        assert!(lost_of(&repeated(&base, &other).unwrap()).is_empty());
        assert!(lost_of(&repeated(&other, &other).unwrap()).is_empty());
    }

    #[test]
    fn a_cell_that_some_runs_did_not_measure_is_named_too() {
        let (base, mut other) = (runs(&[100.0; 4]), runs(&[100.0; 4]));
        let failed = &mut other[0].cells[0].result;
        (failed.ops, failed.why) = (Some(0), "input/output error".into());
        other[2].cells[0].verdict = None;
        let compared = repeated(&base, &other).unwrap();
        let of_rate: Vec<(Metric, OneRun, String)> =
            lost_of(&compared).into_iter().filter(|(metric, ..)| *metric == Metric::Rate).collect();
        let rate = |run, why: &str| (Metric::Rate, run, why.to_owned());
        let expected = [
            rate(OneRun::Other(1), "not measured: input/output error"),
            rate(OneRun::Other(3), "the test has no judgement there"),
        ];
        assert_eq!(of_rate, expected);
        let (mut base, mut other) = (runs(&[100.0; 3]), runs(&[100.0; 3]));
        for run in base[1..].iter_mut().chain(&mut other) {
            run.cells.push(with_rates(cell("b"), &[100.0; 3]));
        }
        let compared = repeated(&base, &other).unwrap();
        assert!(
            lost_of(&compared).contains(&rate(OneRun::Base(1), "not measured")),
            "{:?}",
            lost_of(&compared)
        );
        assert!(compared.pairs[0].lost.iter().all(|one| one.cell.id == "b"));
    }

    #[test]
    fn runs_without_a_partner_are_counted() {
        let (base, other) = (runs(&[100.0; 4]), runs(&[100.0; 3]));
        let compared = repeated(&base, &other).unwrap();
        assert_eq!(compared.pairs[0].basis, Basis::Pairs { pairs: 3, alone: 1 });
        let change = compared.pairs[0].cells[0].change(Metric::Rate).unwrap();
        assert_eq!(change.pairs, Some((3, 3)));
    }
}
