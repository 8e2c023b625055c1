//! Several targets: each against the first, over all tests that both had, in the sentence that decides.

use super::is_apart;
use crate::cells::target_name;
use crate::decision;
use crate::page::{Page, Tone};
use rdsk_analysis::comparison::{Comparison, Kind, Ratio};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::overall::{Average, TestRatio, overall};
use rdsk_analysis::{Analysis, metrics, words};

/// The wordings of each target but the first, over all experiments, the longest first.
pub(crate) fn answers(analysis: &Analysis<'_>) -> Vec<Vec<String>> {
    let comparisons = analysis.comparisons(Kind::Targets);
    let of_target = by_key(comparisons.map(|comparison| (&comparison.cell.workload.targets, comparison)));
    of_target.iter().filter_map(|(_, comparisons)| answer(analysis, comparisons)).collect()
}

/// The same below a heading of its own.
pub(crate) fn draw_answers(page: &mut Page, analysis: &Analysis<'_>) {
    let answers = answers(analysis);
    if answers.is_empty() {
        return;
    }
    page.heading("TARGETS");
    for wordings in answers {
        page.sentence(Tone::Plain, "  ", &wordings[0]);
    }
}

fn answer(analysis: &Analysis<'_>, comparisons: &[&Comparison<'_>]) -> Option<Vec<String>> {
    let first = comparisons.first()?;
    let name = |cell| target_name(analysis, cell).unwrap_or_default();
    let (this, base) = (name(first.cell), name(first.base));
    let deciding = deciding(comparisons);
    let ratios: Vec<TestRatio> = deciding
        .iter()
        .map(|(_, ratio)| TestRatio {
            ratio: ratio.mean,
            interval: (ratio.low, ratio.high),
            is_clear: is_apart(*ratio),
        })
        .collect();
    let overall = overall(&ratios);
    // Of two, the sentence says which is meant.
    let whose = if analysis.targets.len() > 2 { format!("{this} against {base}: ") } else { String::new() };
    let sentence = format!("{whose}{}", decision::sentence(&overall, &base, &this));
    let Some((test, ratio)) = overall.biggest.map(|position| deciding[position]) else {
        return Some(vec![sentence]);
    };
    let ratio = Average { ratio: ratio.mean, low: ratio.low, high: ratio.high };
    let biggest = decision::biggest(&overall, &base, &this, &words::test_label(test.cell), ratio);
    Some(vec![format!("{sentence} {biggest}"), sentence])
}

/// The tests that have a ratio and were of the device on both targets; where none was, all that have one.
fn deciding<'c, 'a>(comparisons: &[&'c Comparison<'a>]) -> Vec<(&'c Comparison<'a>, Ratio)> {
    let with_ratio =
        || comparisons.iter().filter_map(|comparison| Some((*comparison, comparison.ratio.ok()?)));
    let is_of_device = |(comparison, _): &(&Comparison<'_>, Ratio)| {
        ![comparison.cell, comparison.base].into_iter().any(metrics::is_of_memory)
    };
    let of_device: Vec<_> = with_ratio().filter(is_of_device).collect();
    if of_device.is_empty() { with_ratio().collect() } else { of_device }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;

    #[test]
    fn targets_that_differ_do_not_differ_by_a_factor_of_one() {
        let run = fixtures::run();
        let comparison = |cell: usize, mean: f64| {
            let ratio = Ratio { mean, low: mean - 0.002, high: mean + 0.002, rounds: 6, p_adjusted: 0.0 };
            let (cell, base) = (&run.cells[cell], &run.cells[cell]);
            Comparison { kind: Kind::Targets, cell, base, ratio: Ok(ratio) }
        };
        let (one, other) = (comparison(0, 1.004), comparison(1, 0.99));
        let said = answer(&Analysis::of(&run), &[&one, &other]).unwrap();
        assert!(said[0].contains(" is faster in 1 of 2 tests, slower in 1; 0.997x on average "), "{said:?}");
        assert!(said[0].ends_with(" 1.010x (1.008–1.012)."), "{said:?}");
    }

    #[test]
    fn what_memory_served_decides_nothing_beside_the_device() {
        let mut run = fixtures::run();
        run.cells[0].verdict.as_mut().unwrap().code = rdsk_model::VerdictCode::PageCache;
        let comparison = |cell: usize, mean: f64| {
            let ratio = Ratio { mean, low: mean * 0.9, high: mean * 1.1, rounds: 6, p_adjusted: 0.0 };
            let (cell, base) = (&run.cells[cell], &run.cells[cell]);
            Comparison { kind: Kind::Targets, cell, base, ratio: Ok(ratio) }
        };
        let (memory, device) = (comparison(0, 0.1), comparison(1, 2.0));
        let said = answer(&Analysis::of(&run), &[&memory, &device]).unwrap();
        assert!(said[0].contains(" is faster: 1 of 1 test, none slower; 2.00x on average "), "{said:?}");
    }
}
