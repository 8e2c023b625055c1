//! Two configurations that were run several times each, in pairs that follow each other: the runs are the samples, and a pair
//! shares what the disk did at that time. What a run shows within itself does not count here, beside the steps that its figures are
//! read from.

use crate::change::Unknown;
use crate::compared::{Basis, Candidate, Compared, Side, corrected, is_of_nothing};
use crate::figure::{Metric, stepped};
use crate::log_ratio::LogRatio;
use crate::matching::{is_alike, matching};
use crate::time;
use rdsk_model::{CellRecord, Record};
use rdsk_stats::{Stepped, SteppedPair, mean, paired_ratio_of_steps};

/// Compares the runs of one configuration with those of another, the first of each with the first and so on. `None` where
/// either has no run.
pub fn repeated<'a>(base: &'a [Record], other: &'a [Record]) -> Option<Compared<'a>> {
    let (first, first_other) = (base.first()?, other.first()?);
    let mut matched = matching(first, first_other);
    // What the two command lines request on purpose may be what differs.
    matched.by_id();
    let pairs = base.len().min(other.len());
    let candidates = matched.pairs.iter().map(|(one, two)| {
        let of = |metric| candidate((base, one), (other, two), metric);
        Metric::ALL.into_iter().filter_map(of).collect()
    });
    let found = candidates.collect();
    let side = Side { base: first, other: first_other, basis: Basis::Pairs(pairs) };
    Some(corrected(vec![(side, matched, found)]))
}

/// A figure of a cell in every pair of runs that has it.
fn candidate(
    (base, one): (&[Record], &CellRecord),
    (other, two): (&[Record], &CellRecord),
    metric: Metric,
) -> Option<Candidate> {
    let pairs: Vec<SteppedPair> = base
        .iter()
        .zip(other)
        .enumerate()
        .filter_map(|(place, (base_run, other_run))| {
            let a = value((&base[0], one), base_run, metric)?;
            let b = value((&other[0], two), other_run, metric)?;
            let began = time::between_s(&base[0], base_run).unwrap_or(place as f64);
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
        log: log.ok_or(Unknown::Pairs(pairs.len())),
    })
}

/// The figure of the cell of a run that is the same as a cell of the first one.
fn value((first, cell): (&Record, &CellRecord), run: &Record, metric: Metric) -> Option<Stepped> {
    let same = |other: &&CellRecord| other.id == cell.id && is_alike((first, cell), (run, other));
    let found = run.cells.iter().find(same).filter(|cell| !is_of_nothing(cell))?;
    stepped(found, metric).filter(|figure| figure.least > 0.0)
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
        let one = |(minute, rate): (usize, &f64)| {
            let rates = [rate * 0.9, rate * 1.1, *rate];
            record(&format!("2026-03-01T10:{minute:02}:00Z"), vec![with_rates(cell("a"), &rates)])
        };
        rates.iter().enumerate().map(one).collect()
    }

    fn answer(base: &[f64], other: &[f64]) -> (Answer, f64) {
        let (base, other) = (runs(base), runs(other));
        let found = repeated(&base, &other).unwrap();
        let change = found.pairs[0].cells[0].of(Metric::Rate).unwrap();
        (change.answer(), change.ratio())
    }

    #[test]
    fn what_both_runs_of_a_pair_share_cancels() {
        let drifting = [100.0, 60.0, 140.0, 90.0, 75.0];
        let slower: Vec<f64> =
            drifting.iter().zip([0.95, 0.952, 0.948, 0.951, 0.949]).map(|(a, b)| a * b).collect();
        let (found, ratio) = answer(&drifting, &slower);
        assert_eq!(found, Answer::Slower);
        assert!((ratio - 0.95).abs() < 1e-3, "{ratio}");
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
        let mut one = with_rates(cell("a"), &[90.0, 110.0, 100.0]);
        one.result.latency_ns = Some(Latency::from(&histogram));
        record(&format!("2026-03-01T10:{minute:02}:00Z"), vec![one])
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
            let found = repeated(&base, &other).unwrap();
            for metric in [Metric::P50, Metric::P99] {
                let change = found.pairs[0].cells[0].of(metric).unwrap();
                let certainty = change.certainty.unwrap();
                assert!(change.ratio() > 1.006, "{pairs} pairs: {}", change.ratio());
                assert_eq!((change.answer(), certainty.p_value), (Answer::NoDifferenceSeen, 1.0));
                let (low, high) = certainty.interval;
                assert!(low < 1.0 && 1.012 < high, "{pairs} pairs: {low} {high}");
            }
            assert!(judge(&found, std::slice::from_ref(&condition))[0].met.is_empty());
            let slow = side(EDGE_NS * 1.05);
            let found = repeated(&base, &slow).unwrap();
            assert_eq!(found.pairs[0].cells[0].of(Metric::P50).unwrap().answer(), Answer::Slower);
            assert!(!judge(&found, std::slice::from_ref(&condition))[0].met.is_empty(), "{pairs} pairs");
        }
    }

    /// Two devices whose medians scatter by so much, the one below an edge and the other above it by as much as no bucket tells.
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
                let found = repeated(&base, &other).unwrap();
                let answer = found.pairs[0].cells[0].of(Metric::P50).unwrap().answer();
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
        let found = repeated(&base, &other).unwrap();
        let cell = &found.pairs[0].cells[0];
        assert_eq!(cell.of(Metric::Rate).unwrap().answer(), Answer::Faster);
        assert_eq!(cell.remarks(), ["depth 1 → 8"]);
    }

    #[test]
    fn a_pair_in_which_a_cell_failed_is_left_out() {
        let (base, mut other) = (runs(&[100.0; 4]), runs(&[50.0, 50.1, 49.9, 400.0]));
        other[3].cells[0].verdict = None;
        let found = repeated(&base, &other).unwrap();
        let change = found.pairs[0].cells[0].of(Metric::Rate).unwrap();
        assert!((change.ratio() - 0.5).abs() < 1e-3 && change.answer() == Answer::Slower);
    }
}
