//! Several targets: each against the first, over all cells that both had.

use super::{figure, is_apart, label};
use crate::cells::target_name;
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{Comparison, Kind, Ratio};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::words::plural;

/// The wordings of each target but the first, over all experiments.
pub(crate) fn answers(analysis: &Analysis<'_>) -> Vec<Vec<String>> {
    let all = analysis.comparisons(Kind::Targets);
    let of_target = by_key(all.map(|one| (&one.cell.workload.targets, one)));
    of_target.iter().filter_map(|(_, all)| answer(analysis, all)).collect()
}

fn answer(analysis: &Analysis<'_>, all: &[&Comparison<'_>]) -> Option<Vec<String>> {
    let first = all.first()?;
    let name = |cell| target_name(analysis, cell).unwrap_or_default();
    let (this, base) = (name(first.cell), name(first.base));
    let known: Vec<(&Comparison<'_>, Ratio)> =
        all.iter().filter_map(|one| Some((*one, one.ratio.ok()?))).collect();
    let cells = plural(known.len() as u64, "test");
    if known.is_empty() {
        let why = first.ratio.err()?.of_these().trim_end_matches(':');
        return Some(vec![format!("{this} against {base}: {why}")]);
    }
    let apart: Vec<&(&Comparison<'_>, Ratio)> = known.iter().filter(|(_, ratio)| is_apart(*ratio)).collect();
    let by_size = |one: &&&(&Comparison<'_>, Ratio), other: &&&(&Comparison<'_>, Ratio)| {
        one.1.mean.ln().abs().total_cmp(&other.1.mean.ln().abs())
    };
    let Some((widest, ratio)) = apart.iter().max_by(by_size) else {
        return Some(vec![format!("{this} against {base}: no clear difference in {cells}")]);
    };
    let means = || apart.iter().map(|(_, ratio)| ratio.mean);
    let (least, most) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    let most_apart = format!("{} {} {}", widest.cell.experiment, label(widest.cell), times(ratio));
    let what = format!("{this} against {base}: {} of {cells} differ", apart.len());
    let over =
        if apart.len() > 1 { format!(", {} to {}x", figure(least), figure(most)) } else { String::new() };
    Some(vec![format!("{what}{over}; most apart: {most_apart}"), format!("{what}: {most_apart}"), what])
}

/// `3.77 × (3.63–3.92)`.
fn times(ratio: &Ratio) -> String {
    format!("{}x ({}–{})", figure(ratio.mean), figure(ratio.low), figure(ratio.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;

    #[test]
    fn targets_that_differ_do_not_differ_by_a_factor_of_one() {
        let run = fixtures::run();
        let of = |cell: usize, mean: f64| {
            let ratio = Ratio { mean, low: mean - 0.002, high: mean + 0.002, rounds: 6, p_adjusted: 0.0 };
            let (cell, base) = (&run.cells[cell], &run.cells[cell]);
            Comparison { kind: Kind::Targets, cell, base, ratio: Ok(ratio) }
        };
        let (one, other) = (of(0, 1.004), of(1, 0.99));
        let said = answer(&Analysis::of(&run), &[&one, &other]).unwrap();
        assert!(said[0].contains(": 2 of 2 tests differ, 0.990 to 1.004x; most apart: "), "{said:?}");
        assert!(said[0].ends_with(" 0.990x (0.988–0.992)"), "{said:?}");
    }
}
