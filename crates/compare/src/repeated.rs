//! Two configurations that were run several times each, in pairs that follow each other: the runs are the samples, and a pair
//! shares what the disk did at that time. What a run shows within itself does not count here.

use crate::change::Unknown;
use crate::compared::{Basis, Candidate, Compared, Side, corrected, is_of_nothing};
use crate::figure::{Metric, figure};
use crate::log_ratio::LogRatio;
use crate::matching::{is_alike, matching};
use crate::time;
use rdsk_model::{CellRecord, Record};
use rdsk_stats::{TimedPair, mean, paired_ratio};

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
    let pairs: Vec<TimedPair> = base
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
    let middle = |figure: fn(&TimedPair) -> f64| {
        let logs: Vec<f64> = pairs.iter().map(|pair| figure(pair).ln()).collect();
        mean(&logs).map(f64::exp)
    };
    let log = paired_ratio(&pairs).and_then(LogRatio::of_pairs);
    Some(Candidate {
        metric,
        base: middle(|pair| pair.2)?,
        other: middle(|pair| pair.1)?,
        log: log.ok_or(Unknown::Pairs(pairs.len())),
    })
}

/// The figure of the cell of a run that is the same as a cell of the first one.
fn value((first, cell): (&Record, &CellRecord), run: &Record, metric: Metric) -> Option<f64> {
    let same = |other: &&CellRecord| other.id == cell.id && is_alike((first, cell), (run, other));
    let found = run.cells.iter().find(same).filter(|cell| !is_of_nothing(cell))?;
    figure(found, metric).map(|figure| figure.mean).filter(|mean| *mean > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Answer;
    use crate::testing::{cell, record, with_rates};

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
