//! What a comparison rests on, in words said once, and what it says to conditions. It judges nothing itself.

use super::table::factor;
use super::{Extent, letter};
use crate::page::{Page, Tone};
use rdsk_analysis::words::plural;
use rdsk_compare::{Basis, CellChange, Change, Compared, Judgement};
use rdsk_units::percent;

/// Cells that a condition names.
const MOST_CELLS: usize = 5;

/// How sure the answers are.
pub(super) fn draw(page: &mut Page, compared: &Compared<'_>) {
    if compared.ratios == 0 {
        return;
    }
    page.heading("HOW SURE");
    let ratios = plural(compared.ratios as u64, "ratio");
    page.sentence(
        Tone::Plain,
        "  ",
        format!(
            "Each interval holds its ratio at 95 %. \"slower\" and \"faster\" are said where chance is excluded at 5 % for all {ratios} \
             together (Holm); \"none seen\" may be chance."
        ),
    );
    let far = compared.pairs.iter().filter_map(|pair| match pair.basis {
        Basis::OneRunEach { octaves } => Some(octaves),
        Basis::Pairs(_) => None,
    });
    if let Some(octaves) = far.reduce(f64::max) {
        let times = octaves.exp2() - 1.0;
        let apart = if times < 1.5 {
            "follow each other".into()
        } else {
            format!("lie {times:.0} times as far apart as a run is long")
        };
        page.sentence(
            Tone::Plain,
            "  ",
            format!(
                "One run each cannot know how the disk changes from one hour to the next. Such changes are estimated from the rounds of \
                 each run, as if every doubling of the time added as much; the runs {apart}. rdsk compare --repeat 5 -- 'ARGS' 'ARGS' \
                 runs both in turn and needs no such estimate."
            ),
        );
    }
    let runs = compared.pairs.iter().find_map(|pair| match pair.basis {
        Basis::Pairs(pairs) => Some(pairs),
        Basis::OneRunEach { .. } => None,
    });
    if let Some(pairs) = runs {
        page.sentence(
            Tone::Plain,
            "  ",
            format!(
                "The runs are the samples: {}, each run after the other, in turned order every second time; what both of a pair met \
                 cancels.",
                plural(pairs as u64, "pair")
            ),
        );
    }
}

/// Whether each condition is met, and where the data leave it open.
pub(super) fn draw_judgements(page: &mut Page, judgements: &[Judgement<'_>], extent: Extent) {
    if judgements.is_empty() {
        return;
    }
    page.heading("CONDITIONS");
    for judgement in judgements {
        let lead = format!("  {}: ", judgement.condition.text);
        let judged = plural(judgement.judged as u64, "cell");
        if judgement.met.is_empty() {
            page.sentence(Tone::Plain, lead, format!("not seen in any of {judged}"));
        } else {
            let met = named(&judgement.met, extent, |change| factor(change.ratio()));
            page.sentence(Tone::Error, lead, format!("met in {} of {judged}: {met}", judgement.met.len()));
        }
        if !judgement.unsure.is_empty() {
            let half = |change: &Change| {
                change.blind_within().map_or_else(|| "not known".into(), |half| format!("±{}", percent(half)))
            };
            let unsure = named(&judgement.unsure, extent, half);
            let text = format!(
                "the data leave open a change of {} or more in {} of {judged}, which would be seen beyond: {unsure}",
                percent(judgement.condition.least),
                judgement.unsure.len()
            );
            page.sentence(Tone::Warning, "    ", text);
        }
    }
}

/// `B headline/read/seq 0.91, …`.
fn named(
    all: &[(usize, &CellChange<'_>, &Change)],
    extent: Extent,
    figure: impl Fn(&Change) -> String,
) -> String {
    let most = if extent == Extent::Full { all.len() } else { MOST_CELLS };
    let shown = all.iter().take(most);
    let mut names: Vec<String> = shown
        .map(|(pair, cell, change)| format!("{} {} {}", letter(pair + 1), cell.base.id, figure(change)))
        .collect();
    if all.len() > most {
        names.push(format!("and {} more", all.len() - most));
    }
    names.join(", ")
}
