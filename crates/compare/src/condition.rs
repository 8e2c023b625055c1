//! A condition on a comparison, such as `p99:slower>10%`: its spelling, where it is surely met, and where the data leave that
//! open. The caller decides what follows.

use crate::change::{CellChange, Change};
use crate::compared::{Basis, Compared, RunPair};
use crate::figure::{Metric, figure};
use crate::matching::is_alike;
use crate::missing::{Missing, WhyMissing};
use rdsk_model::CellRecord;
use std::str::FromStr;
use thiserror::Error;

/// The largest share that a condition may name.
const MOST_PERCENT: f64 = 10_000.0;

/// Which changes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Lower rates, longer latencies.
    Slower,
    /// Higher rates, shorter latencies.
    Faster,
    /// Both.
    Differs,
}

/// A change of at least a certain size.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The figure.
    pub metric: Metric,
    /// Which changes count.
    pub direction: Direction,
    /// From which share of the baseline's figure on; above 0. A rate that is slower by 0.05 is 0.95 of the baseline's, a latency
    /// 1.05 times as long.
    pub least: f64,
    /// As it was written.
    pub text: String,
}

/// Why a text is no condition.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{0}\" is no condition")]
pub struct BadCondition(pub String);

impl FromStr for Condition {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Self, BadCondition> {
        let bad = || BadCondition(text.to_owned());
        let compact: String = text.split_whitespace().collect();
        let (metric, rest) = compact.split_once(':').unwrap_or(("rate", &compact));
        let metric = Metric::ALL.into_iter().find(|other| other.as_str() == metric).ok_or_else(bad)?;
        let (direction, share) = rest.split_once('>').ok_or_else(bad)?;
        let direction = match direction {
            "slower" => Direction::Slower,
            "faster" => Direction::Faster,
            "differs" => Direction::Differs,
            _ => return Err(bad()),
        };
        let percent: f64 = share.strip_suffix('%').and_then(|share| share.parse().ok()).ok_or_else(bad)?;
        // A figure cannot shrink by all of itself.
        let shrinks = match direction {
            Direction::Slower => metric.grows_with_speed(),
            Direction::Faster => !metric.grows_with_speed(),
            Direction::Differs => false,
        };
        let most = if shrinks { 100.0 } else { MOST_PERCENT };
        (percent > 0.0 && percent < most)
            .then(|| Self { metric, direction, least: percent / 100.0, text: compact.clone() })
            .ok_or_else(bad)
    }
}

impl Condition {
    /// Whether a ratio of the other run's figure to the baseline's is such a change.
    fn is_reached(&self, ratio: f64) -> bool {
        let (is_less, is_more) = (ratio <= 1.0 - self.least, ratio >= 1.0 + self.least);
        let (is_slower, is_faster) =
            if self.metric.grows_with_speed() { (is_less, is_more) } else { (is_more, is_less) };
        match self.direction {
            Direction::Slower => is_slower,
            Direction::Faster => is_faster,
            Direction::Differs => is_less || is_more,
        }
    }

    /// Whether the change is surely one of these: whatever the corrected interval holds is, and all of it in one direction.
    fn is_met(&self, change: &Change) -> bool {
        change.certainty.is_ok_and(|certainty| {
            let (low, high) = certainty.corrected;
            self.is_reached(low) && self.is_reached(high) && (low > 1.0) == (high > 1.0)
        })
    }

    /// Whether such a change may be there unseen: the corrected interval reaches as far.
    fn may_be_met(&self, change: &Change) -> bool {
        change.certainty.map_or(true, |certainty| {
            self.is_reached(certainty.corrected.0) || self.is_reached(certainty.corrected.1)
        })
    }
}

/// What a comparison says to a condition.
#[derive(Clone, Debug)]
pub struct Judgement<'a> {
    /// The condition.
    pub condition: &'a Condition,
    /// Figures that were looked at.
    pub judged: usize,
    /// Where it is met: the number of the pair of runs, the cell, and its change.
    pub met: Vec<(usize, &'a CellChange<'a>, &'a Change)>,
    /// Where it is not, and yet may be: the data leave it open.
    pub unsure: Vec<(usize, &'a CellChange<'a>, &'a Change)>,
    /// Where it is open, because a run lacks the figure that the baseline has.
    pub missing: Vec<Missing<'a>>,
}

impl Judgement<'_> {
    /// Whether the data leave it open anywhere, or say nothing at all.
    pub fn is_open(&self) -> bool {
        !self.unsure.is_empty() || !self.missing.is_empty() || self.judged == 0
    }
}

/// Judges each condition.
pub fn judge<'a>(compared: &'a Compared<'a>, conditions: &'a [Condition]) -> Vec<Judgement<'a>> {
    let judgement = |condition: &'a Condition| {
        let of_pair = |(number, pair): (usize, &'a RunPair<'a>)| {
            let of_cell =
                move |cell: &'a CellChange<'a>| Some((number, cell, cell.change(condition.metric)?));
            pair.cells.iter().filter_map(of_cell)
        };
        let changes: Vec<_> = compared.pairs.iter().enumerate().flat_map(of_pair).collect();
        let judged = changes.len();
        let (met, rest): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|(_, _, change)| condition.is_met(change));
        let unsure = rest.into_iter().filter(|(_, _, change)| condition.may_be_met(change)).collect();
        let of_pair = |(number, pair)| missing(number, pair, condition.metric);
        let missing = compared.pairs.iter().enumerate().flat_map(of_pair).collect();
        Judgement { condition, judged, met, unsure, missing }
    };
    conditions.iter().map(judgement).collect()
}

/// The figures of the baseline that the other run of a pair does not have; of several runs of each, those that any of them lacks.
fn missing<'a>(number: usize, pair: &RunPair<'a>, metric: Metric) -> Vec<Missing<'a>> {
    if matches!(pair.basis, Basis::Pairs { .. }) {
        return pair.lost.iter().filter(|lost| lost.metric == metric).cloned().collect();
    }
    let has_figure = |cell: &CellRecord| figure(cell, metric).is_some();
    let compared = pair.cells.iter().filter(|cell| cell.change(metric).is_none() && has_figure(cell.base));
    let alone = pair.only_base.iter().filter(|cell| has_figure(cell));
    let without = compared.map(|cell| (cell.base, WhyMissing::of_figure(cell.other, metric)));
    let unmeasured = alone.map(|&cell| (cell, WhyMissing::of_unmeasured(not_run(pair, cell))));
    let lacking = without.chain(unmeasured);
    lacking.map(|(cell, why)| Missing { pair: number, run: None, cell, metric, why }).collect()
}

/// The cell of the other run that was to do the same and did not run.
fn not_run<'a>(pair: &RunPair<'a>, cell: &CellRecord) -> Option<&'a CellRecord> {
    let is_same =
        |other: &&CellRecord| other.id == cell.id && is_alike((pair.base, cell), (pair.other, other));
    pair.other.cells.iter().find(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Certainty;
    use crate::compared::compare;
    use crate::testing::{cell, record, with_rates};

    fn parsed(text: &str) -> Option<(Metric, Direction, f64)> {
        let condition: Condition = text.parse().ok()?;
        Some((condition.metric, condition.direction, condition.least))
    }

    #[test]
    fn conditions_have_one_spelling() {
        assert_eq!(parsed("slower>5%"), Some((Metric::Rate, Direction::Slower, 0.05)));
        assert_eq!(parsed("p99: slower > 10%"), Some((Metric::P99, Direction::Slower, 0.1)));
        assert_eq!(parsed("p50:faster>2.5%"), Some((Metric::P50, Direction::Faster, 0.025)));
        assert_eq!(parsed("differs>1%"), Some((Metric::Rate, Direction::Differs, 0.01)));
        assert_eq!(parsed("p99:slower>300%"), Some((Metric::P99, Direction::Slower, 3.0)));
        for bad in [
            "", "slower", "slower>5", "slower>%", "slower>0%", "slower>-3%", "slower>100%",
            "p99:faster>100%", "p98:slower>5%", "slow>5%", "slower<5%", "slower>nan%", "slower>inf%",
        ] {
            assert!(bad.parse::<Condition>().is_err(), "{bad}");
        }
    }

    fn change(metric: Metric, ratio: f64, p_adjusted: f64, corrected: (f64, f64)) -> Change {
        let certainty = Certainty { interval: corrected, corrected, p_value: p_adjusted, p_adjusted };
        Change { metric, base: 100.0, other: 100.0 * ratio, pairs: None, certainty: Ok(certainty) }
    }

    #[test]
    fn a_sure_change_of_that_size_meets_it_and_a_wide_interval_leaves_it_open() {
        let condition: Condition = "slower>5%".parse().unwrap();
        let meets = |ratio, p, corrected| {
            let change = change(Metric::Rate, ratio, p, corrected);
            (condition.is_met(&change), condition.may_be_met(&change))
        };
        assert_eq!(meets(0.9, 0.001, (0.88, 0.92)), (true, true));
        assert_eq!(meets(0.97, 0.001, (0.96, 0.98)), (false, false));
        assert_eq!(meets(0.9, 0.3, (0.7, 1.1)), (false, true), "not sure");
        assert_eq!(meets(1.0, 0.9, (0.99, 1.01)), (false, false));
        assert_eq!(meets(1.3, 0.001, (1.2, 1.4)), (false, false), "faster");
        assert_eq!(
            meets(0.94, 0.003, (0.9, 0.985)),
            (false, true),
            "surely slower, but by 1.5% or more only"
        );
    }

    #[test]
    fn whichever_way_it_changes_all_that_is_left_open_is_a_change_of_that_size() {
        for (text, metric, corrected, is_met) in [
            ("differs>5%", Metric::Rate, (0.7, 0.94), true),
            ("differs>5%", Metric::Rate, (1.06, 1.4), true),
            ("differs>5%", Metric::Rate, (0.9, 1.2), false),
            ("faster>5%", Metric::Rate, (1.04, 1.4), false),
            ("faster>5%", Metric::Rate, (1.05, f64::INFINITY), true),
            ("p50:faster>5%", Metric::P50, (0.0, 0.94), true),
            ("p50:faster>5%", Metric::P50, (0.8, 0.96), false),
            ("p99:slower>5%", Metric::P99, (1.04, 1.4), false),
        ] {
            let condition: Condition = text.parse().unwrap();
            let ratio = (f64::max(corrected.0, 0.1) * f64::min(corrected.1, 10.0)).sqrt();
            let change = change(metric, ratio, 0.001, corrected);
            assert_eq!(condition.is_met(&change), is_met, "{text} {corrected:?}");
            assert!(condition.may_be_met(&change), "{text} {corrected:?}");
        }
    }

    #[test]
    fn a_longer_latency_is_slower() {
        let slower: Condition = "p99:slower>10%".parse().unwrap();
        let faster: Condition = "p99:faster>10%".parse().unwrap();
        let longer = change(Metric::P99, 1.2, 0.001, (1.15, 1.25));
        assert!(slower.is_met(&longer) && !faster.is_met(&longer) && !faster.may_be_met(&longer));
    }

    /// A disk that became so slow that its run has no p99 passes no condition on it unseen.
    #[test]
    fn a_figure_that_only_the_baseline_has_is_named_and_leaves_it_open() {
        let condition: Condition = "p99:slower>10%".parse().unwrap();
        let cells = || ["a", "b", "c"].map(|id| with_rates(cell(id), &[100.0; 4])).to_vec();
        let mut base = record("2026-03-01T10:00:00Z", cells());
        for (depth, cell) in (1..).zip(&mut base.cells) {
            cell.workload.queue_depth = depth;
            let latency = cell.result.latency_ns.as_mut().unwrap();
            (latency.count, latency.p99) = (5000, Some(2_000_000));
        }
        let mut other = base.clone();
        let latency = other.cells[0].result.latency_ns.as_mut().unwrap();
        (latency.count, latency.p99) = (460, None);
        let failed = &mut other.cells[1].result;
        (failed.ops, failed.why) = (Some(0), "input/output error".into());
        other.cells.truncate(2);
        let compared = compare(&base, &[&other]);
        let judgements = judge(&compared, std::slice::from_ref(&condition));
        let [judgement] = &judgements[..] else { panic!("{judgements:?}") };
        let words: Vec<String> = judgement
            .missing
            .iter()
            .map(|missing| format!("{} {}", missing.cell.id, missing.why.words()))
            .collect();
        let expected =
            ["a 460 I/Os, 1000 are needed", "b not measured: input/output error", "c not measured"];
        assert_eq!(words, expected);
        assert!(judgement.judged == 0 && judgement.is_open());
        let same = compare(&base, &[&base]);
        assert!(judge(&same, std::slice::from_ref(&condition))[0].missing.is_empty());
        let rates = ["slower>10%".parse().unwrap()];
        assert_eq!(judge(&compared, &rates)[0].missing.len(), 2, "the rate of a is there");
    }
}
