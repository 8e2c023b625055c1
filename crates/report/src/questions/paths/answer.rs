//! `paths` and `stream`: which path is faster, for what, and by how much.

use crate::cells;
use crate::figures::{number, range, times};
use rdsk_analysis::Analysis;
use rdsk_analysis::comparison::{Comparison, Kind, Outcome, Ratio};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::words::{list, plural};
use rdsk_model::{CellRecord, Experiment, IoPath, Op, Sync};

/// What a comparison shows of two paths, the faster one first where one is.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Beats(IoPath, IoPath),
    Equal(IoPath, IoPath),
    Unclear(IoPath, IoPath),
}

impl Shown {
    /// Names the two unless they are those of the part before it.
    fn words(self, before: Option<Self>) -> String {
        let is_said = before.is_some_and(|before| before.pair() == self.pair());
        match self {
            Self::Beats(fast, slow) => format!("{fast} faster than {slow}"),
            Self::Equal(..) if is_said => "equally fast".into(),
            Self::Equal(left, right) => format!("{left} and {right} equally fast"),
            Self::Unclear(..) if is_said => "no clear difference".into(),
            Self::Unclear(left, right) => format!("no clear difference between {left} and {right}"),
        }
    }

    fn pair(self) -> [IoPath; 2] {
        let (Self::Beats(left, right) | Self::Equal(left, right) | Self::Unclear(left, right)) = self;
        if left < right { [left, right] } else { [right, left] }
    }
}

pub(crate) fn answer(analysis: &Analysis<'_>, experiment: Experiment) -> Vec<String> {
    let ours =
        || analysis.comparisons(Kind::Paths).filter(|comparison| comparison.cell.experiment == experiment);
    let mut shown = by_key(ours().filter_map(|comparison| {
        let (shown, ratio) = shown(comparison)?;
        Some((shown, (what(comparison.cell), ratio)))
    }));
    // What is decided comes first.
    shown.sort_by_key(|(shown, _)| !matches!(shown, Shown::Beats(..)));
    let left_out = by_key(
        ours().filter_map(|comparison| Some((comparison.ratio.err()?.of_these(), what(comparison.cell)))),
    );
    let parts = |with: Intervals| {
        let before = |index: usize| index.checked_sub(1).map(|before: usize| shown[before].0);
        let pairs = |what: &str| {
            shown.iter().flat_map(|(_, ratios)| ratios).filter(|(other, _)| other == what).count()
        };
        let each = shown
            .iter()
            .enumerate()
            .map(|(index, (answer, ratios))| part(*answer, before(index), ratios, with, &pairs));
        let left_out =
            left_out.iter().map(|(why, whats)| format!("{why} {}", list(&distinct(whats.clone()))));
        each.chain(left_out).collect::<Vec<String>>()
    };
    let full = parts(Intervals::All);
    let (parts, brief) = (full, parts(Intervals::WhereFaster));
    if parts.is_empty() {
        return vec!["nothing to compare: fewer than two I/O paths reached the device".into()];
    }
    let at = cells::only_block(analysis, experiment).map_or_else(String::new, |block| format!("{block}: "));
    let mut texts = vec![format!("{at}{}", parts.join("; ")), format!("{at}{}", brief.join("; "))];
    if let ([(_, first), ..], [part, _, ..]) = (&shown[..], &parts[..]) {
        let others = ours().count() - first.len();
        texts.push(format!("{at}{part}; {others} more: --details"));
    }
    texts
}

/// Which figures have their interval beside them; the others are named without a figure.
#[derive(Clone, Copy, PartialEq)]
enum Intervals {
    All,
    WhereFaster,
}

fn shown(comparison: &Comparison<'_>) -> Option<(Shown, Ratio)> {
    let ratio = comparison.ratio.ok()?;
    let (this, base) = (comparison.cell.workload.path, comparison.base.workload.path);
    Some(match ratio.outcome() {
        Outcome::Faster => (Shown::Beats(this, base), ratio),
        Outcome::Slower => (Shown::Beats(base, this), ratio.turned()),
        Outcome::Equal => (Shown::Equal(this, base), ratio),
        Outcome::Unclear => (Shown::Unclear(this, base), ratio),
    })
}

/// `direct faster than buffered: reads 1.88 × (1.16–3.06), writes on disk 1.81 × (1.58–2.06)`. Of what was compared several
/// times, over targets or block sizes, the number of pairs stands beside it.
fn part(
    shown: Shown,
    before: Option<Shown>,
    named_ratios: &[(String, Ratio)],
    with: Intervals,
    pairs: &dyn Fn(&str) -> usize,
) -> String {
    let is_faster = matches!(shown, Shown::Beats(..));
    let each =
        by_key(named_ratios.iter().map(|(what, ratio)| (what, *ratio))).into_iter().map(|(what, ratios)| {
            let count = plural(ratios.len() as u64, "pair");
            let is_alone = pairs(what) == 1;
            if with == Intervals::WhereFaster && !is_faster {
                return if is_alone { what.clone() } else { format!("{what} ({count})") };
            }
            if let ([ratio], true) = (&ratios[..], is_alone) {
                return format!("{what} {}", times(*ratio));
            }
            let over = |figure: fn(&Ratio) -> f64, pick: fn(f64, f64) -> f64| {
                ratios.iter().map(figure).reduce(pick).unwrap_or(f64::NAN)
            };
            let (least, most) = (over(|ratio| ratio.mean, f64::min), over(|ratio| ratio.mean, f64::max));
            let (least, most) = (number(least), number(most));
            let means = if least == most { least } else { format!("{least} to {most}") };
            let (low, high) = (over(|ratio| ratio.low, f64::min), over(|ratio| ratio.high, f64::max));
            format!("{what} {means}x ({}, {count})", range(low, high))
        });
    format!("{}: {}", shown.words(before), each.collect::<Vec<_>>().join(", "))
}

/// `reads`, `writes on disk`, `dsync writes`.
fn what(cell: &CellRecord) -> String {
    match (cell.workload.sync, cell.workload.op) {
        // Stable when it returns.
        (Sync::Dsync, op) => format!("dsync {op}s"),
        (_, Op::Write) => "writes on disk".into(),
        (_, Op::Read) => "reads".into(),
    }
}
