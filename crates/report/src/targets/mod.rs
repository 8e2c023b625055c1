//! The same cells of several targets, compared round by round: which target is faster, by how much, or that no difference was
//! found. It stands below the tables of each experiment.

mod answer;

pub(crate) use answer::{answers, draw_answers};

use crate::cells::target_name;
use crate::figures::ratio_figure;
use crate::page::{Page, Tone};
use rdsk_analysis::comparison::{Comparison, Kind, Ratio};
use rdsk_analysis::groups::by_key;
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CellRecord, Experiment};

/// More cells without a difference than this are counted, not listed.
const MOST_LISTED: usize = 8;
/// Ratios within this of 1 are equal, however surely they differ.
const EQUAL: f64 = 0.005;

/// The comparisons of one experiment, a paragraph for each target but the first.
pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>, experiment: Experiment) {
    let ours =
        analysis.comparisons(Kind::Targets).filter(|comparison| comparison.cell.experiment == experiment);
    for (_, comparisons) in
        by_key(ours.map(|comparison| (comparison.cell.workload.targets.clone(), comparison)))
    {
        let name = |cell| target_name(analysis, cell).unwrap_or_default();
        let (Some(this), Some(base)) = (
            comparisons.first().map(|comparison| name(comparison.cell)),
            comparisons.first().map(|comparison| name(comparison.base)),
        ) else {
            continue;
        };
        page.sentence(Tone::Heading, "  ", format!("{this} against {base}, 95% interval over the repeats"));
        draw_one(page, &this, &base, &comparisons);
        page.blank();
    }
}

fn draw_one(page: &mut Page, this: &str, base: &str, comparisons: &[&Comparison<'_>]) {
    let (apart, alike): (Vec<_>, Vec<_>) =
        comparisons.iter().partition(|comparison| comparison.ratio.is_ok_and(is_apart));
    let line = |page: &mut Page, comparison: &Comparison<'_>| {
        let what = match comparison.ratio {
            Err(why) => format!("{}: {}", why.of_this(), why.words()),
            Ok(ratio) if is_apart(ratio) => {
                format!("{this} is {}x {base} ({})", ratio_figure(ratio.mean), range(ratio))
            }
            Ok(ratio) => format!("{} ({})", without_difference(ratio), range(ratio)),
        };
        page.sentence(Tone::Plain, format!("  {}: ", label(comparison.cell)), what);
    };
    apart.into_iter().for_each(|comparison| line(page, comparison));
    if alike.len() <= MOST_LISTED {
        alike.into_iter().for_each(|comparison| line(page, comparison));
        return;
    }
    let ratios: Vec<Ratio> = alike.iter().filter_map(|comparison| comparison.ratio.ok()).collect();
    let widest = ratios.iter().max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)));
    if let Some(widest) = widest {
        let text = format!("no difference found in {} tests (widest {})", ratios.len(), range(*widest));
        page.sentence(Tone::Plain, "  others: ", text);
    }
    for (why, these) in
        by_key(alike.iter().filter_map(|comparison| Some((comparison.ratio.err()?.of_these(), ()))))
    {
        let text = format!("{why} {}", words::plural(these.len() as u64, "cell"));
        page.sentence(Tone::Plain, "  others: ", text);
    }
}

/// Whether the two differ surely, and by something.
pub(crate) fn is_apart(ratio: Ratio) -> bool {
    ratio.is_different() && !is_equal(ratio)
}

fn is_equal(ratio: Ratio) -> bool {
    ratio.low >= 1.0 - EQUAL && ratio.high <= 1.0 + EQUAL
}

/// How the page says that two cells do not differ.
fn without_difference(ratio: Ratio) -> &'static str {
    match ratio {
        ratio if is_equal(ratio) => "equally fast",
        Ratio { low, high, .. } if low <= 1.0 && 1.0 <= high => "no difference found",
        _ => "no difference found: among so many comparisons, this may be chance",
    }
}

/// `1.07 to 1.13`.
fn range(ratio: Ratio) -> String {
    format!("{} to {}", ratio_figure(ratio.low), ratio_figure(ratio.high))
}

/// `read direct` of `paths/read/direct@1`.
pub(crate) fn label(cell: &CellRecord) -> String {
    cell.name().split('/').skip(1).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use rdsk_finding::fixtures;

    #[test]
    fn ratios_near_one_have_three_decimals() {
        let shown = [0.32, 0.949, 0.9962, 1.0, 1.004, 1.0496, 1.051, 12.34].map(ratio_figure);
        assert_eq!(shown, ["0.32", "0.95", "0.996", "1.000", "1.004", "1.050", "1.05", "12.3"]);
        assert_eq!(ratio_figure(f64::INFINITY), "n/a");
    }

    #[test]
    fn targets_that_differ_do_not_differ_by_a_factor_of_one() {
        let run = fixtures::run();
        let ratio = Ratio { mean: 1.004, low: 1.001, high: 1.007, rounds: 6, p_adjusted: 0.0 };
        let (cell, base) = (&run.cells[0], &run.cells[1]);
        let one = Comparison { kind: Kind::Targets, cell, base, ratio: Ok(ratio) };
        let mut page = Page::default();
        draw_one(&mut page, "b", "a", &[&one]);
        let text = page.render(Style::default());
        assert!(text.contains("b is 1.004x a (1.001 to 1.007)"), "{text}");
    }
}
