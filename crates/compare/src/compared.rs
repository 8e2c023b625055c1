//! Two or more runs compared, the first one being the baseline: every figure of every cell that they have in common, corrected
//! together for their number. One run each: what a run shows of changes over time is all that is known of them.

use crate::ALPHA;
use crate::change::{CellChange, Certainty, Change, Unknown};
use crate::figure::{MIN_ROUNDS, Metric, figure};
use crate::latency_spread::latency_spread;
use crate::log_ratio::LogRatio;
use crate::matching::{Matched, matching};
use crate::missing::{Missing, is_of_nothing};
use crate::spread::{Spread, spread};
use crate::time;
use rdsk_analysis::Analysis;
use rdsk_model::{CellRecord, Estimate, Record};
use rdsk_stats::holm;

/// Two runs that follow each other are at least this many octaves of time apart: the next longer change than a run can see.
const LEAST_OCTAVES: f64 = 1.0;
/// For changes that take weeks it is unknown how they go on; from here on, 4095 times the length of a run, a longer time adds nothing.
pub const MOST_OCTAVES: f64 = 12.0;

/// What a comparison rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// One run each. `octaves` doublings of the time of a run lie between them, 1 at least; [`MOST_OCTAVES`] or more count as so many.
    OneRunEach {
        /// Doublings.
        octaves: f64,
    },
    /// Several runs of each, in pairs that follow each other.
    Pairs {
        /// So many pairs.
        pairs: usize,
        /// Runs of the longer side beyond them, which have no partner and are left out.
        alone: usize,
    },
}

/// A run compared with the baseline.
#[derive(Clone, Debug)]
pub struct RunPair<'a> {
    /// The baseline; of several runs the first.
    pub base: &'a Record,
    /// The other run.
    pub other: &'a Record,
    /// What is known of their difference beside what each shows.
    pub basis: Basis,
    /// The cells that they have in common, in the order of the baseline.
    pub cells: Vec<CellChange<'a>>,
    /// Cells of the baseline without a partner.
    pub only_base: Vec<&'a CellRecord>,
    /// Cells of the other run without one.
    pub only_other: Vec<&'a CellRecord>,
    /// Of several runs of each: the figures that some run lacks and a run of the baseline has. The pairs with such a run are left out
    /// of the figure, and what they would have shown is not known.
    pub lost: Vec<Missing<'a>>,
}

/// All comparisons of a page.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// Each further run with the baseline, in the order given.
    pub pairs: Vec<RunPair<'a>>,
    /// How many ratios were corrected together.
    pub ratios: usize,
}

/// A figure of two cells before it is known how many there are.
pub(crate) struct Candidate {
    pub(crate) metric: Metric,
    pub(crate) base: f64,
    pub(crate) other: f64,
    pub(crate) pairs: Option<(usize, usize)>,
    pub(crate) log: Result<LogRatio, Unknown>,
}

/// Compares each further run with the first one.
pub fn compare<'a>(base: &'a Record, others: &[&'a Record]) -> Compared<'a> {
    let base_analysis = Analysis::of(base);
    let found = others.iter().map(|&other| {
        let other_analysis = Analysis::of(other);
        let octaves = octaves(base, other);
        let matched = matching(base, other);
        let of_cell = |&(one, two): &(&CellRecord, &CellRecord)| {
            let of = |metric| candidate((&base_analysis, one), (&other_analysis, two), metric, octaves);
            Metric::ALL.into_iter().filter_map(of).collect()
        };
        let candidates = matched.pairs.iter().map(of_cell).collect();
        (Side { base, other, basis: Basis::OneRunEach { octaves }, lost: Vec::new() }, matched, candidates)
    });
    corrected(found.collect())
}

/// Two runs, and what their comparison rests on.
pub(crate) struct Side<'a> {
    pub(crate) base: &'a Record,
    pub(crate) other: &'a Record,
    pub(crate) basis: Basis,
    pub(crate) lost: Vec<Missing<'a>>,
}

/// Corrects all ratios together.
pub(crate) fn corrected<'a>(found: Vec<(Side<'a>, Matched<'a>, Vec<Vec<Candidate>>)>) -> Compared<'a> {
    let all = || found.iter().flat_map(|(_, _, cells)| cells.iter().flatten());
    let p_values: Vec<f64> = all().filter_map(|one| one.log.as_ref().ok()).map(LogRatio::p_value).collect();
    let ratios = p_values.len();
    let each = ALPHA / ratios.max(1) as f64;
    let mut adjusted = holm(&p_values).into_iter();
    let mut change = |candidate: Candidate| Change {
        metric: candidate.metric,
        base: candidate.base,
        other: candidate.other,
        pairs: candidate.pairs,
        certainty: candidate.log.map(|log| Certainty {
            interval: log.interval(ALPHA),
            corrected: log.interval(each),
            p_value: log.p_value(),
            p_adjusted: adjusted.next().unwrap_or(1.0),
        }),
    };
    let pairs = found.into_iter().map(|(side, matched, cells)| {
        let Matched { pairs, only_base, only_other } = matched;
        let cells = pairs.into_iter().zip(cells).map(|((base, other), candidates)| CellChange {
            base,
            other,
            changes: candidates.into_iter().map(&mut change).collect(),
        });
        let Side { base, other, basis, lost } = side;
        RunPair { base, other, basis, cells: cells.collect(), only_base, only_other, lost }
    });
    Compared { pairs: pairs.collect(), ratios }
}

fn candidate(
    (base_analysis, base): (&Analysis<'_>, &CellRecord),
    (other_analysis, other): (&Analysis<'_>, &CellRecord),
    metric: Metric,
    octaves: f64,
) -> Option<Candidate> {
    let (one, two) = (figure(base, metric)?, figure(other, metric)?);
    let (one_spread, two_spread) =
        (spread_of(base_analysis, base, metric, one), spread_of(other_analysis, other, metric, two));
    let fewest = one_spread.rounds.min(two_spread.rounds);
    let log = if is_of_nothing(base) || is_of_nothing(other) {
        Err(Unknown::Nothing)
    } else if fewest < MIN_ROUNDS {
        Err(Unknown::Rounds(fewest))
    } else {
        LogRatio::of_runs((one, one_spread), (two, two_spread), octaves).ok_or(Unknown::NoInterval)
    };
    Some(Candidate { metric, base: one.mean, other: two.mean, pairs: None, log })
}

/// What a run shows of slow changes of a figure.
fn spread_of(analysis: &Analysis<'_>, cell: &CellRecord, metric: Metric, figure: Estimate) -> Spread {
    let of_rate = spread(analysis, cell);
    match (metric, &cell.result.latency_ns) {
        (Metric::P50 | Metric::P99, Some(latency)) => latency_spread(latency, metric, figure, of_rate),
        _ => of_rate,
    }
}

/// How many doublings of the time of a run lie between two runs. Simulated ones lie nowhere in time, and count as neighbours,
/// as do those whose time is not known.
fn octaves(base: &Record, other: &Record) -> f64 {
    let is_simulated = base.simulated_ns.is_some() || other.simulated_ns.is_some();
    let lasted_s = time::lasted_s(base).min(time::lasted_s(other)).max(1.0);
    let apart_s = time::between_s(base, other).filter(|_| !is_simulated).unwrap_or(0.0);
    (1.0 + apart_s / lasted_s).log2().clamp(LEAST_OCTAVES, MOST_OCTAVES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Answer;
    use crate::testing::{cell, record, with_rates};
    use rdsk_model::VerdictCode;

    const STEADY: [f64; 8] = [100.0, 100.1, 99.9, 100.0, 100.2, 99.8, 100.1, 99.9];

    fn run(started_at: &str, factor: f64, rates: &[f64]) -> Record {
        let rates: Vec<f64> = rates.iter().map(|rate| rate * factor).collect();
        record(started_at, vec![with_rates(cell("a"), &rates)])
    }

    fn rate<'a>(compared: &'a Compared<'_>) -> &'a Change {
        compared.pairs[0].cells[0].of(Metric::Rate).unwrap()
    }

    const FIRST: &str = "2026-03-01T10:00:00Z";
    const SOON: &str = "2026-03-01T10:01:00Z";
    const LATE: &str = "2026-03-05T10:01:00Z";

    #[test]
    fn a_twentieth_is_found_on_a_steady_disk_and_nothing_where_nothing_changed() {
        let (base, slower, same) =
            (run(FIRST, 1.0, &STEADY), run(SOON, 0.95, &STEADY), run(SOON, 1.0, &STEADY));
        let found = compare(&base, &[&slower, &same]);
        assert_eq!(rate(&found).answer(), Answer::Slower);
        assert!((rate(&found).ratio() - 0.95).abs() < 1e-6);
        assert_eq!(found.pairs[1].cells[0].of(Metric::Rate).unwrap().answer(), Answer::NoDifferenceSeen);
        let Certainty { interval, corrected, p_value, p_adjusted } = rate(&found).certainty.unwrap();
        assert!(interval.0 < 0.95 && 0.95 < interval.1 && interval.1 < 1.0, "{interval:?}");
        assert!(corrected.0 < interval.0 && interval.1 < corrected.1 && p_adjusted >= p_value);
        let turned = compare(&slower, &[&base]);
        assert_eq!(rate(&turned).answer(), Answer::Faster);
    }

    #[test]
    fn what_drifts_during_a_run_may_have_drifted_between_two() {
        let drifting = [110.0, 108.0, 104.0, 99.0, 96.0, 95.0, 93.0, 92.0];
        let (base, soon, late) =
            (run(FIRST, 1.0, &drifting), run(SOON, 0.9, &drifting), run(LATE, 0.9, &drifting));
        let compared = |other: &Record| rate(&compare(&base, &[other])).certainty.unwrap().interval;
        assert_eq!(rate(&compare(&base, &[&soon])).answer(), Answer::NoDifferenceSeen);
        assert!(compared(&late).0 < compared(&soon).0, "four days leave more time to drift than a minute");
    }

    #[test]
    fn two_rounds_and_holes_say_nothing() {
        let (base, short) = (run(FIRST, 1.0, &STEADY), run(SOON, 0.5, &STEADY[..2]));
        let found = compare(&base, &[&short]);
        assert_eq!(rate(&found).certainty, Err(Unknown::Rounds(2)));
        assert_eq!((rate(&found).answer(), found.ratios), (Answer::TooFewData, 0));
        assert_eq!(Unknown::Rounds(2).words(), "2 rounds in one of the runs, 3 are needed");
        let mut hole = run(SOON, 2.0, &STEADY);
        hole.cells[0].verdict.as_mut().unwrap().code = VerdictCode::Hole;
        assert_eq!(rate(&compare(&base, &[&hole])).certainty, Err(Unknown::Nothing));
    }

    #[test]
    fn many_ratios_need_clearer_ones() {
        let cells = |factor: f64| {
            let rates: Vec<f64> = [97.0, 103.0].repeat(4).iter().map(|rate| rate * factor).collect();
            let one = |index: u32| {
                let mut one = with_rates(cell(&format!("c{index}")), &rates);
                one.workload.queue_depth = index + 1;
                one
            };
            record(FIRST, (0..40).map(one).collect())
        };
        let (base, other) = (cells(1.0), cells(1.0));
        let mut one_off = other.clone();
        let slower: Vec<f64> = [97.0, 103.0].repeat(4).iter().map(|rate| rate * 0.925).collect();
        one_off.cells[0] = {
            let mut one = with_rates(cell("c0"), &slower);
            one.workload.queue_depth = 1;
            one
        };
        let alone = |record: &Record| {
            let mut record = record.clone();
            record.cells.truncate(1);
            record
        };
        let (base_alone, off_alone) = (alone(&base), alone(&one_off));
        assert_eq!(rate(&compare(&base_alone, &[&off_alone])).answer(), Answer::Slower);
        assert_eq!(rate(&compare(&base, &[&one_off])).answer(), Answer::NoDifferenceSeen);
    }

    #[test]
    fn the_time_between_two_runs_is_counted_in_doublings() {
        let of = |at: &str| octaves(&run(FIRST, 1.0, &STEADY), &run(at, 1.0, &STEADY));
        assert_eq!((of(FIRST), of(SOON)), (1.0, 1.0));
        assert!((of("2026-03-01T10:07:00Z") - 3.0).abs() < 1e-12);
        assert_eq!(of("2030-03-01T10:07:00Z"), MOST_OCTAVES);
        assert_eq!(of("once"), 1.0);
        let mut simulated = run(LATE, 1.0, &STEADY);
        simulated.simulated_ns = Some(60_000_000_000);
        assert_eq!(octaves(&run(FIRST, 1.0, &STEADY), &simulated), 1.0);
    }
}
