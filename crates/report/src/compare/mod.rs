//! Runs compared, as a page and as JSON: what differs beside the figures, what changed most, and how sure that is; and the course
//! of one cell. It draws what `rdsk-compare` found and computes nothing.

mod certainty;
mod json;
mod table;
mod trend;

pub use json::{compared_json, course_json};
pub(crate) use table::factor;
pub use trend::course_text;

use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::words::plural;
use rdsk_compare::{Answer, Compared, Difference, Judgement, Metric, RunPair};
use rdsk_model::{CellRecord, Record, Status};

/// How much of a comparison is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What changed most.
    Short,
    /// Every cell.
    Full,
}

/// What a page of a comparison shows.
#[derive(Clone, Copy, Debug)]
pub struct Comparing<'a> {
    /// What found the runs: their names on the command line, the baseline first.
    pub names: &'a [String],
    /// The runs, in the same order; of several runs of one configuration the first.
    pub runs: &'a [&'a Record],
    /// What differs between them.
    pub differences: &'a [Difference],
    /// Their figures.
    pub compared: &'a Compared<'a>,
    /// What was asked of them.
    pub judgements: &'a [Judgement<'a>],
}

/// Rows of a short table, and cells that it names.
const MOST_ROWS: usize = 10;
const MOST_NAMES: usize = 4;

/// The comparison as text; no line is wider than [`Style::width`].
pub fn compared_text(comparing: &Comparing<'_>, extent: Extent, style: Style) -> String {
    let mut page = Page::default();
    draw_runs(&mut page, comparing);
    draw_differences(&mut page, comparing.differences);
    for (place, pair) in comparing.compared.pairs.iter().enumerate() {
        draw_pair(&mut page, pair, &letter(place + 1), extent);
    }
    certainty::draw(&mut page, comparing.compared);
    certainty::draw_judgements(&mut page, comparing.judgements, extent);
    page.render(style)
}

/// What a run is called on the page: `A` is the baseline.
pub(crate) fn letter(place: usize) -> String {
    const LETTERS: [char; 26] = [
        'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T',
        'U', 'V', 'W', 'X', 'Y', 'Z',
    ];
    LETTERS.get(place).map_or_else(|| format!("R{}", place + 1), char::to_string)
}

fn draw_runs(page: &mut Page, comparing: &Comparing<'_>) {
    page.heading("COMPARE: A is the baseline");
    for (place, (name, run)) in comparing.names.iter().zip(comparing.runs).enumerate() {
        let label = run.label.as_ref().map_or_else(String::new, |label| format!(", \"{label}\""));
        let on =
            crate::header::target_list(run).map_or_else(String::new, |targets| format!(", on {targets}"));
        let began = crate::header::whole_seconds(&run.started_at);
        let text = format!("{name}: {began}{label}{on}{}", ending(run));
        page.sentence(Tone::Plain, format!("  {}  ", letter(place)), text);
    }
}

/// How a run ended that was not completed.
fn ending(run: &Record) -> String {
    match (run.status, &run.error) {
        (Status::Complete, _) => String::new(),
        (Status::Interrupted, _) => "; it was interrupted".into(),
        (Status::Failed, None) => "; it failed".into(),
        (Status::Failed, Some(problem)) => format!("; it failed: {}", problem.message),
    }
}

fn draw_differences(page: &mut Page, differences: &[Difference]) {
    page.heading("WHAT DIFFERS BESIDE THE FIGURES");
    if differences.is_empty() {
        page.line("  nothing that the Records tell");
    }
    for difference in differences {
        let value = |(place, value): (usize, &Option<String>)| {
            format!("{} {}", letter(place), value.as_deref().unwrap_or("–"))
        };
        let values: Vec<String> = difference.values.iter().enumerate().map(value).collect();
        page.sentence(Tone::Plain, format!("  {}: ", difference.what), values.join(" | "));
    }
}

fn draw_pair(page: &mut Page, pair: &RunPair<'_>, other: &str, extent: Extent) {
    page.heading(format!("{other} AGAINST A"));
    page.sentence(Tone::Plain, "  ", summary(pair, other));
    for metric in Metric::ALL {
        table::draw(page, pair, other, metric, extent);
    }
    draw_lost(page, pair, extent);
    draw_alone(page, "A", &pair.only_base, extent);
    draw_alone(page, other, &pair.only_other, extent);
}

/// How many rates changed, and how.
fn summary(pair: &RunPair<'_>, other: &str) -> String {
    if pair.cells.is_empty() {
        return format!("no cell of {other} asks what a cell of A asks, so nothing is compared.");
    }
    let rates =
        || pair.cells.iter().filter_map(|cell| cell.change(Metric::Rate)).map(rdsk_compare::Change::answer);
    let count = |answer: Answer| rates().filter(|&found| found == answer).count();
    let latencies =
        || pair.cells.iter().flat_map(|cell| &cell.changes).filter(|one| one.metric != Metric::Rate);
    let of_latency = |answer: Answer| latencies().filter(|one| one.answer() == answer).count();
    format!(
        "rates of {} alike: {other} is slower in {}, faster in {}, no difference is seen in {}, and {} have too few data. Of {}, {} \
         are longer and {} shorter.",
        plural(rates().count() as u64, "cell"),
        count(Answer::Slower),
        count(Answer::Faster),
        count(Answer::NoDifferenceSeen),
        count(Answer::TooFewData),
        plural(latencies().count() as u64, "latency percentile"),
        of_latency(Answer::Slower),
        of_latency(Answer::Faster),
    )
}

/// The figures that some of several runs lack, so that their pairs are left out.
fn draw_lost(page: &mut Page, pair: &RunPair<'_>, extent: Extent) {
    let all = certainty::missing(&pair.lost, extent);
    let shown = if extent == Extent::Full { all.len() } else { MOST_ROWS };
    let more = all.len().saturating_sub(shown);
    for text in all.into_iter().take(shown) {
        page.sentence(Tone::Warning, "  ", text);
    }
    if more > 0 {
        page.line(format!("  and {more} more of these: --details"));
    }
}

fn draw_alone(page: &mut Page, run: &str, cells: &[&CellRecord], extent: Extent) {
    if cells.is_empty() {
        return;
    }
    let shown = if extent == Extent::Full { cells.len() } else { MOST_NAMES };
    let names: Vec<&str> = cells.iter().take(shown).map(|cell| cell.id.as_str()).collect();
    let more = if cells.len() > shown { format!(" and {} more", cells.len() - shown) } else { String::new() };
    let count = plural(cells.len() as u64, "cell");
    page.sentence(
        Tone::Plain,
        "  ",
        format!("{count} of {run} without a partner: {}{more}", names.join(", ")),
    );
}

#[cfg(test)]
mod tests;
