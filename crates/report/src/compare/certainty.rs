//! What a comparison rests on, in words said once, and what it says to conditions. It judges nothing itself.

use super::table::interval;
use super::{Extent, letter};
use crate::figures::factor;
use crate::page::{Page, Tone};
use rdsk_analysis::groups::{by_key, distinct};
use rdsk_analysis::metrics::whole;
use rdsk_analysis::words;
use rdsk_analysis::words::plural;
use rdsk_compare::{
    Basis, CellChange, Change, Compared, Judgement, MOST_OCTAVES, Missing, OneRun, WhyMissing,
};
use rdsk_units::{grouped, percent};

/// Tests that a condition names.
const MOST_TESTS: usize = 5;

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
            "Each interval holds its ratio at 95%. \"slower\" and \"faster\" are said where chance is excluded at 5% for all {ratios} \
             together (Holm); \"unclear\" may be chance."
        ),
    );
    let far = || {
        compared.pairs.iter().filter_map(|pair| match pair.basis {
            Basis::OneRunEach { octaves } => Some(octaves),
            Basis::Pairs { .. } => None,
        })
    };
    if let Some(octaves) = far().reduce(f64::max) {
        let runs = if far().any(|less| less < octaves) { "the two farthest apart" } else { "the runs" };
        let apart = apart(octaves);
        page.sentence(
            Tone::Plain,
            "  ",
            format!(
                "One run each cannot know how the disk changes from one hour to the next. Such changes are estimated from the repeats of \
                 each run, as if every doubling of the time added as much; {runs} {apart}. rdsk compare --repeat 5 -- 'ARGS' 'ARGS' \
                 runs both in turn and needs no such estimate."
            ),
        );
    }
    let runs = compared.pairs.iter().find_map(|pair| match pair.basis {
        Basis::Pairs { pairs, alone } => Some((pairs, alone)),
        Basis::OneRunEach { .. } => None,
    });
    if let Some((pairs, alone)) = runs {
        let left_out = match alone {
            0 => String::new(),
            alone => format!(" Left out: {} without a partner.", plural(alone as u64, "run")),
        };
        page.sentence(
            Tone::Plain,
            "  ",
            format!(
                "The runs are the samples: {}, each run after the other, in turned order every second time; what both of a pair met \
                 cancels. The interval of a percentile counts the buckets that it is read from, each 0.4 to 0.8% wide.{left_out}",
                plural(pairs as u64, "pair")
            ),
        );
    }
}

/// The last line of a short page: what shows more, and what would be surer.
pub(super) fn further(compared: &Compared<'_>) -> String {
    let surer = match compared.pairs.first().map(|pair| pair.basis) {
        Some(Basis::Pairs { pairs, .. }) => format!("; {} of runs", plural(pairs as u64, "pair")),
        _ => "; surer: rdsk compare --repeat 5 -- 'ARGS' 'ARGS'".to_owned(),
    };
    format!("Details: --details{surer}")
}

/// How far apart two runs are.
fn apart(octaves: f64) -> String {
    let times = |octaves: f64| octaves.exp2() - 1.0;
    match times(octaves) {
        few if few < 1.5 => "follow each other".into(),
        _ if octaves >= MOST_OCTAVES => {
            // What lies beyond is not reckoned with, so it is not known here.
            let most = grouped(whole(times(MOST_OCTAVES)) / 1000 * 1000);
            format!("lie more than {most} times as far apart as a run is long, and no more is counted")
        }
        times => format!("lie {} times as far apart as a run is long", grouped(whole(times))),
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
        let judged = plural(judgement.judged as u64, "test");
        if judgement.judged == 0 {
            page.sentence(Tone::Warning, lead, "no test has the figure in both runs, so nothing was judged");
        } else if judgement.met.is_empty() {
            page.sentence(Tone::Plain, lead, format!("met in none of {judged}"));
        } else {
            let met = named(&judgement.met, extent, |change| factor(change.ratio()));
            page.sentence(Tone::Error, lead, format!("met in {} of {judged}: {met}", judgement.met.len()));
        }
        if !judgement.unsure.is_empty() {
            let corrected = |change: &Change| {
                change
                    .certainty
                    .map_or_else(|_| "not known".into(), |certainty| interval(certainty.corrected))
            };
            let unsure = named(&judgement.unsure, extent, corrected);
            let text = format!(
                "the data leave open a change of {} or more in {} of {judged} (interval of the ratio, corrected for all): {unsure}",
                percent(judgement.condition.least),
                judgement.unsure.len()
            );
            page.sentence(Tone::Warning, "    ", text);
        }
        for text in missing(&judgement.missing, extent) {
            page.sentence(Tone::Warning, "    ", text);
        }
    }
}

/// The tests that the baseline has a figure of and a run does not: `no p99 in B: stream: read 16K direct (460 I/Os, 1000 are needed)`,
/// `not measured in run 2 of B: …`.
pub(super) fn missing(lost: &[Missing<'_>], extent: Extent) -> Vec<String> {
    let head = |missing: &Missing<'_>| {
        let run = match missing.run {
            None => letter(missing.pair + 1),
            Some(OneRun::Base(number)) => format!("run {number} of {}", letter(0)),
            Some(OneRun::Other(number)) => format!("run {number} of {}", letter(missing.pair + 1)),
        };
        match missing.why {
            WhyMissing::NotMeasured(_) => format!("not measured in {run}"),
            _ => format!("no {} in {run}", missing.metric.as_str()),
        }
    };
    let name = |missing: &Missing<'_>| {
        let test = words::test_label(missing.cell);
        match &missing.why {
            WhyMissing::NotMeasured(Some(text)) => format!("{test} ({text})"),
            why @ (WhyMissing::FewIos { .. } | WhyMissing::OfNothing(_)) => {
                format!("{test} ({})", why.words())
            }
            WhyMissing::NotMeasured(None) | WhyMissing::NoFigure => test,
        }
    };
    // What was not measured lacks each of its figures.
    let named_lost = distinct(lost.iter().map(|missing| (head(missing), name(missing))));
    let sentence = |(head, names): (String, Vec<String>)| format!("{head}: {}", listed(names, extent));
    by_key(named_lost).into_iter().map(sentence).collect()
}

/// `B sequential read 1M QD8 0.91, …`.
fn named(
    changes: &[(usize, &CellChange<'_>, &Change)],
    extent: Extent,
    figure: impl Fn(&Change) -> String,
) -> String {
    let name = |(pair, cell, change): &(usize, &CellChange<'_>, &Change)| {
        format!("{} {} {}", letter(pair + 1), words::test_label(cell.base), figure(change))
    };
    listed(changes.iter().map(name).collect(), extent)
}

/// The names, or the first of them and how many more there are.
fn listed(mut names: Vec<String>, extent: Extent) -> String {
    if extent != Extent::Full && names.len() > MOST_TESTS {
        let more = names.split_off(MOST_TESTS).len();
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_apart_runs_are_is_said_as_far_as_it_is_known() {
        for (octaves, words) in [
            (1.0, "follow each other"),
            (3.0, "lie 7 times as far apart as a run is long"),
            (11.0, "lie 2,047 times as far apart as a run is long"),
            (MOST_OCTAVES, "lie more than 4,000 times as far apart as a run is long, and no more is counted"),
        ] {
            assert_eq!(apart(octaves), words);
        }
    }
}
