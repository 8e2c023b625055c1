//! The table of one figure: each test in both runs, the ratio with its interval, and the answer. It judges nothing.

use super::{Extent, MOST_ROWS};
use crate::figures::{MISSING, Unit, factor};
use crate::page::{Page, Tone, cut};
use crate::table::shortened;
use rdsk_analysis::words;
use rdsk_compare::{Answer, CellChange, Change, Metric, RunPair};

/// Columns for the name of a test.
const NAME_WIDTH: usize = 28;

/// Draws the table; nothing where no test has the figure in both runs. A short one has the tests that clearly changed.
pub(super) fn draw(page: &mut Page, pair: &RunPair<'_>, other: &str, metric: Metric, extent: Extent) {
    let mut rows: Vec<(&CellChange<'_>, &Change)> =
        pair.cells.iter().filter_map(|cell| Some((cell, cell.change(metric)?))).collect();
    if rows.is_empty() {
        return;
    }
    if extent == Extent::Short {
        rows.retain(|(_, change)| is_clear(change));
        rows.sort_by(|(_, left), (_, right)| distance(right).total_cmp(&distance(left)));
    }
    let clear = rows.len();
    if clear == 0 {
        return;
    }
    if extent == Extent::Short {
        rows.truncate(MOST_ROWS);
    }
    let what = match metric {
        Metric::Rate => "rate",
        Metric::P50 => "median latency",
        Metric::P99 => "99th percentile of the latency",
    };
    let most = if rows.len() < clear {
        format!(", the {} of {clear} tests that changed most", rows.len())
    } else {
        String::new()
    };
    page.blank();
    page.line(format!("  {what}{most}"));
    let mut heads = vec!["test".to_owned(), "A".into(), other.to_owned(), format!("{other}/A"), "95%".into()];
    // Of a short table all answers are clear, and the ratio has them.
    if extent == Extent::Full {
        heads.push("answer".into());
    }
    let columns = heads.len();
    let drawn: Vec<Vec<String>> =
        rows.iter().flat_map(|(cell, change)| lines(cell, change, metric, columns)).collect();
    page.table_with(&heads, &drawn, &[5]);
    for (cell, change) in rows.iter().filter(|_| extent == Extent::Full) {
        if let Err(why) = change.certainty {
            page.sentence(Tone::Plain, "  ", format!("{}: {}", words::test_label(cell.base), why.words()));
        }
    }
}

fn is_clear(change: &Change) -> bool {
    matches!(change.answer(), Answer::Faster | Answer::Slower)
}

/// How far a ratio is from 1.
fn distance(change: &Change) -> f64 {
    change.ratio().ln().abs()
}

/// The row, and one more for each thing that has to be known beside it.
fn lines(cell: &CellChange<'_>, change: &Change, metric: Metric, columns: usize) -> Vec<Vec<String>> {
    let units: &[Unit] = if metric == Metric::Rate { &Unit::RATES } else { &Unit::TIMES };
    let figure = |value: f64| Unit::fit(units, [value]).text(value);
    let interval =
        change.certainty.map_or_else(|_| MISSING.to_owned(), |certainty| interval(certainty.interval));
    let mut row = vec![
        shortened(&rdsk_units::printable(&words::test_label(cell.base)), NAME_WIDTH),
        figure(change.base),
        figure(change.other),
        factor(change.ratio()),
        interval,
        answer(change.answer()).into(),
    ];
    row.truncate(columns);
    let remark = |remark: String| {
        let mut row = vec![cut(&format!("  {remark}"), NAME_WIDTH)];
        row.resize(columns, String::new());
        row
    };
    let of_pairs = change.pairs.filter(|(having, pairs)| having < pairs);
    let of_pairs = of_pairs.map(|(having, pairs)| format!("of {having} of {pairs} pairs of runs"));
    std::iter::once(row).chain(of_pairs.into_iter().chain(cell.remarks()).map(remark)).collect()
}

/// Both ends, or the one that the runs show.
pub(super) fn interval((low, high): (f64, f64)) -> String {
    match (low > 0.0, high.is_finite()) {
        (true, true) => format!("{}–{}", factor(low), factor(high)),
        (true, false) => format!("≥ {}", factor(low)),
        (false, true) => format!("≤ {}", factor(high)),
        (false, false) => MISSING.to_owned(),
    }
}

const fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Faster | Answer::Slower => answer.as_str(),
        Answer::NoDifferenceSeen => "unclear",
        Answer::TooFewData => "too few",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_the_runs_do_not_show_is_left_out() {
        for (ends, expected) in [
            ((0.0158, 0.947), "0.0158–0.947"),
            ((57.8, f64::INFINITY), "≥ 57.8"),
            ((0.0, 12.34), "≤ 12.3"),
            ((0.0, f64::INFINITY), MISSING),
        ] {
            assert_eq!(interval(ends), expected);
        }
    }
}
