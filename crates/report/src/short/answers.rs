//! An answer to each question of a run, in a line or two, with the intervals of its figures. Each is derived from what the
//! screens of the question show; it adds nothing, and says so where nothing can be said.

use super::Limits;
use crate::page::{Page, Tone};
use crate::questions::answer;
use crate::{cells, targets};
use rdsk_analysis::Analysis;
use rdsk_analysis::words::plural;
use rdsk_model::{Experiment, StopReason};

/// Columns of the names of questions.
const NAME: usize = 8;
/// Lines of the sentence that decides between two targets.
const TARGET_LINES: usize = 2;
/// Lines of the reason why there is no answer.
const WHY_LINES: usize = 1;

pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, limits: &Limits) {
    let asked = Experiment::PLANNED.iter().copied().filter(|&experiment| experiment != Experiment::Headline);
    let asked: Vec<Experiment> =
        asked.filter(|&experiment| cells::of_experiment(analysis, experiment).next().is_some()).collect();
    if asked.is_empty() {
        return;
    }
    page.heading("By topic");
    for experiment in asked {
        let lead = format!(" {:<NAME$}", experiment.as_str());
        match why_none(analysis, experiment) {
            Some(why) => page.wordings(Tone::Plain, lead, vec![why], WHY_LINES),
            None => page.wordings(Tone::Plain, lead, answer(analysis, experiment), limits.answer_lines),
        }
    }
}

/// Which of several targets is faster, right below their names: that is what was asked.
pub(super) fn draw_targets(page: &mut Page, analysis: &Analysis<'_>, limits: &Limits) {
    let of_targets = targets::answers(analysis);
    let shown = of_targets.len().min(limits.targets);
    for texts in of_targets.iter().take(shown) {
        page.wordings(Tone::Heading, "", texts.clone(), TARGET_LINES);
    }
    if shown < of_targets.len() {
        let others = plural((of_targets.len() - shown) as u64, "target");
        page.line(format!("and {others} more: --details"));
    }
}

/// Why a question has no figures at all.
fn why_none(analysis: &Analysis<'_>, experiment: Experiment) -> Option<String> {
    if let Some(why) = cells::nothing_completed(analysis, experiment) {
        return Some(format!("nothing completed: {why}"));
    }
    let mut cells = cells::of_experiment(analysis, experiment).peekable();
    let first = cells.peek()?.result.why.clone();
    cells.all(|cell| cell.result.stop == StopReason::NotApplicable).then(|| format!("n/a: {first}"))
}
