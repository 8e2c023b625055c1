//! Two or more runs compared, the first one being the baseline: every figure of every cell that they have in common, corrected
//! together for their number. One run each: what a run shows of changes over time is all that is known of them.

use crate::ALPHA;
use crate::change::{Answer, CellChange, Certainty, Change, Unknown};
use crate::figure::{MIN_ROUNDS, Metric, figure};
use crate::log_ratio::LogRatio;
use crate::matching::{Matched, matching};
use crate::missing::{Missing, is_of_nothing};
use crate::spread::{Spread, latency_spread, spread};
use jiff::Timestamp;
use rdsk_analysis::overall::{Average, Overall, TestRatio, overall};
use rdsk_analysis::{Analysis, metrics};
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
    /// Of several runs of each: the geometric mean of the rates' ratios over pairs of runs; see [`RunPair::overall`].
    pub(crate) average_of_pairs: Option<Average>,
}

impl RunPair<'_> {
    /// The tests whose rates decide: those that have an interval and were of the device in both runs; where no test was, all with an
    /// interval.
    fn deciding(&self) -> Vec<(&CellChange<'_>, &Change, Certainty)> {
        let with_interval = self.cells.iter().filter_map(|cell| {
            let change = cell.change(Metric::Rate)?;
            Some((cell, change, change.certainty.ok()?))
        });
        let changes: Vec<(&CellChange<'_>, &Change, Certainty)> = with_interval.collect();
        let is_of_device =
            |cell: &CellChange<'_>| ![cell.base, cell.other].into_iter().any(metrics::is_of_memory);
        let of_device: Vec<_> = changes.iter().copied().filter(|(cell, ..)| is_of_device(cell)).collect();
        if of_device.is_empty() { changes } else { of_device }
    }

    /// What the rates say together. One run each: the mean is that of [`rdsk_analysis::overall::average`]. Several runs of each: it is taken
    /// over the tests of each pair of runs first, and its interval is that of the pairs, so that what all tests of a run had in common
    /// counts once for each pair.
    pub fn overall(&self) -> Overall {
        let ratios: Vec<TestRatio> = self
            .deciding()
            .into_iter()
            .map(|(_, change, certainty)| TestRatio {
                ratio: change.ratio(),
                interval: certainty.interval,
                is_clear: matches!(change.answer(), Answer::Faster | Answer::Slower),
            })
            .collect();
        let overall = overall(&ratios);
        match self.basis {
            Basis::OneRunEach { .. } => overall,
            Basis::Pairs { .. } => Overall { average: self.average_of_pairs, ..overall },
        }
    }

    /// The test whose rate clearly changed most, with its ratio and 95% interval.
    pub fn biggest(&self) -> Option<(&CellChange<'_>, Average)> {
        let (cell, change, certainty) = self.deciding().into_iter().nth(self.overall().biggest?)?;
        let (low, high) = certainty.interval;
        Some((cell, Average { ratio: change.ratio(), low, high }))
    }
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
    let sides = others.iter().map(|&other| {
        let other_analysis = Analysis::of(other);
        let octaves = octaves(base, other);
        let matched = matching(base, other);
        let of_cell = |&(cell, partner): &(&CellRecord, &CellRecord)| {
            let candidate_of =
                |metric| candidate((&base_analysis, cell), (&other_analysis, partner), metric, octaves);
            Metric::ALL.into_iter().filter_map(candidate_of).collect()
        };
        let candidates = matched.pairs.iter().map(of_cell).collect();
        (
            Side { base, other, basis: Basis::OneRunEach { octaves }, lost: Vec::new(), average: None },
            matched,
            candidates,
        )
    });
    corrected(sides.collect())
}

/// Two runs, and what their comparison rests on.
pub(crate) struct Side<'a> {
    pub(crate) base: &'a Record,
    pub(crate) other: &'a Record,
    pub(crate) basis: Basis,
    pub(crate) lost: Vec<Missing<'a>>,
    pub(crate) average: Option<Average>,
}

/// Corrects all ratios together.
pub(crate) fn corrected<'a>(sides: Vec<(Side<'a>, Matched<'a>, Vec<Vec<Candidate>>)>) -> Compared<'a> {
    let candidates = || sides.iter().flat_map(|(_, _, cells)| cells.iter().flatten());
    let p_values: Vec<f64> =
        candidates().filter_map(|candidate| candidate.log.as_ref().ok()).map(LogRatio::p_value).collect();
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
    let pairs = sides.into_iter().map(|(side, matched, cells)| {
        let Matched { pairs, only_base, only_other } = matched;
        let cells = pairs.into_iter().zip(cells).map(|((base, other), candidates)| CellChange {
            base,
            other,
            changes: candidates.into_iter().map(&mut change).collect(),
        });
        let Side { base, other, basis, lost, average } = side;
        let cells = cells.collect();
        RunPair { base, other, basis, cells, only_base, only_other, lost, average_of_pairs: average }
    });
    Compared { pairs: pairs.collect(), ratios }
}

fn candidate(
    (base_analysis, base): (&Analysis<'_>, &CellRecord),
    (other_analysis, other): (&Analysis<'_>, &CellRecord),
    metric: Metric,
    octaves: f64,
) -> Option<Candidate> {
    let (before, after) = (figure(base, metric)?, figure(other, metric)?);
    let (spread_before, spread_after) =
        (spread_of(base_analysis, base, metric, before), spread_of(other_analysis, other, metric, after));
    let fewest = spread_before.rounds.min(spread_after.rounds);
    let log = if is_of_nothing(base) || is_of_nothing(other) {
        Err(Unknown::Nothing)
    } else if fewest < MIN_ROUNDS {
        Err(Unknown::Rounds(fewest))
    } else {
        LogRatio::of_runs((before, spread_before), (after, spread_after), octaves).ok_or(Unknown::NoInterval)
    };
    Some(Candidate { metric, base: before.mean, other: after.mean, pairs: None, log })
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
    let lasted_s = lasted_s(base).min(lasted_s(other)).max(1.0);
    let apart_s = between_s(base, other).filter(|_| !is_simulated).unwrap_or(0.0);
    (1.0 + apart_s / lasted_s).log2().clamp(LEAST_OCTAVES, MOST_OCTAVES)
}

/// When a run began; `None` if the Record's text is no time.
pub(crate) fn began(record: &Record) -> Option<Timestamp> {
    record.started_at.parse().ok()
}

/// Seconds between the beginnings of two runs; `None` if one of them is not known.
pub(crate) fn between_s(run: &Record, other: &Record) -> Option<f64> {
    let (began_at, other_began_at) = (began(run)?, began(other)?);
    Some(began_at.duration_until(other_began_at).as_secs_f64().abs())
}

/// How long the run lasted, in seconds of the target's own time.
fn lasted_s(record: &Record) -> f64 {
    record.simulated_ns.unwrap_or(record.elapsed_ns) as f64 / 1e9
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
        compared.pairs[0].cells[0].change(Metric::Rate).unwrap()
    }

    const FIRST: &str = "2026-03-01T10:00:00Z";
    const SOON: &str = "2026-03-01T10:01:00Z";
    const LATE: &str = "2026-03-05T10:01:00Z";

    #[test]
    fn a_twentieth_is_found_on_a_steady_disk_and_nothing_where_nothing_changed() {
        let (base, slower, same) =
            (run(FIRST, 1.0, &STEADY), run(SOON, 0.95, &STEADY), run(SOON, 1.0, &STEADY));
        let compared = compare(&base, &[&slower, &same]);
        assert_eq!(rate(&compared).answer(), Answer::Slower);
        assert!((rate(&compared).ratio() - 0.95).abs() < 1e-6);
        assert_eq!(
            compared.pairs[1].cells[0].change(Metric::Rate).unwrap().answer(),
            Answer::NoDifferenceSeen
        );
        let Certainty { interval, corrected, p_value, p_adjusted } = rate(&compared).certainty.unwrap();
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
        let compared = compare(&base, &[&short]);
        assert_eq!(rate(&compared).certainty, Err(Unknown::Rounds(2)));
        assert_eq!((rate(&compared).answer(), compared.ratios), (Answer::TooFewData, 0));
        assert_eq!(Unknown::Rounds(2).words(), "2 repeats in one of the runs, 3 are needed");
        let mut hole = run(SOON, 2.0, &STEADY);
        hole.cells[0].verdict.as_mut().unwrap().code = VerdictCode::Hole;
        assert_eq!(rate(&compare(&base, &[&hole])).certainty, Err(Unknown::Nothing));
    }

    #[test]
    fn many_ratios_need_clearer_ones() {
        let cells = |factor: f64| {
            let rates: Vec<f64> = [97.0, 103.0].repeat(4).iter().map(|rate| rate * factor).collect();
            let noisy_cell = |index: u32| {
                let mut cell = with_rates(cell(&format!("c{index}")), &rates);
                cell.workload.queue_depth = index + 1;
                cell
            };
            record(FIRST, (0..40).map(noisy_cell).collect())
        };
        let (base, other) = (cells(1.0), cells(1.0));
        let mut one_off = other.clone();
        let slower: Vec<f64> = [97.0, 103.0].repeat(4).iter().map(|rate| rate * 0.925).collect();
        one_off.cells[0] = {
            let mut cell = with_rates(cell("c0"), &slower);
            cell.workload.queue_depth = 1;
            cell
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

    /// Three tests, of which two changed, and one that memory served in both runs.
    #[test]
    fn the_rates_of_the_device_decide_together() {
        let cells = |factors: [f64; 4]| {
            let one = |(index, factor): (u32, &f64)| {
                let rates: Vec<f64> = STEADY.iter().map(|rate| rate * factor).collect();
                let mut one = with_rates(cell(&format!("c{index}")), &rates);
                one.workload.queue_depth = index + 1;
                one
            };
            let mut run = record(FIRST, (0..).zip(&factors).map(one).collect());
            run.cells[3].verdict.as_mut().unwrap().code = VerdictCode::PageCache;
            run
        };
        let (base, other) = (cells([1.0; 4]), cells([1.2, 1.0, 1.5, 9.0]));
        let found = compare(&base, &[&other]);
        let (pair, overall) = (&found.pairs[0], found.pairs[0].overall());
        assert_eq!((overall.tests, overall.faster, overall.slower), (3, 2, 0));
        let average = overall.average.unwrap();
        // The cube root of 1.2 · 1.5.
        assert!((average.ratio - 1.216_44).abs() < 1e-4, "{average:?}");
        let ends = pair.cells[..3]
            .iter()
            .map(|cell| cell.change(Metric::Rate).unwrap().certainty.unwrap().interval.0);
        assert!((average.low - ends.product::<f64>().cbrt()).abs() < 1e-9, "{average:?}");
        assert_eq!(pair.biggest().unwrap().0.base.id, "c2");
        // Of runs of memory alone, memory decides.
        let alone = |record: &Record| Record { cells: record.cells[3..].to_vec(), ..record.clone() };
        let (base, other) = (alone(&base), alone(&other));
        assert_eq!(compare(&base, &[&other]).pairs[0].overall().faster, 1);
    }

    #[test]
    fn the_time_between_two_runs_is_counted_in_doublings() {
        let octaves_until = |at: &str| octaves(&run(FIRST, 1.0, &STEADY), &run(at, 1.0, &STEADY));
        assert_eq!((octaves_until(FIRST), octaves_until(SOON)), (1.0, 1.0));
        assert!((octaves_until("2026-03-01T10:07:00Z") - 3.0).abs() < 1e-12);
        assert_eq!(octaves_until("2030-03-01T10:07:00Z"), MOST_OCTAVES);
        assert_eq!(octaves_until("once"), 1.0);
        let mut simulated = run(LATE, 1.0, &STEADY);
        simulated.simulated_ns = Some(60_000_000_000);
        assert_eq!(octaves(&run(FIRST, 1.0, &STEADY), &simulated), 1.0);
    }
}
