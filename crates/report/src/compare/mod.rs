//! Runs compared, as a page and as JSON: which is faster in one sentence, what differs beside the figures, what changed most, and how
//! sure that is; and the course of one cell. It draws what `rdsk-compare` found and computes nothing.

mod certainty;
mod json;
mod table;
mod trend;

pub(crate) use json::text as document;
pub use json::{compared_json, course_json};
pub use trend::course_text;

use crate::decision;
use crate::figures::{MISSING, ratio_figure};
use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words;
use rdsk_analysis::words::plural;
use rdsk_compare::{Answer, CellChange, Change, Compared, Difference, Judgement, Metric, RunPair};
use rdsk_model::{CellRecord, Record, Status};
use rdsk_units::printable;
use unicode_width::UnicodeWidthStr as _;

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

/// Rows of a short table, and tests that it names.
const MOST_ROWS: usize = 8;
const MOST_NAMES: usize = 4;
/// A longer name of a run stands in the list of runs only.
const NAME_COLUMNS: usize = 24;
/// Up to this many tests whose latency changed are named.
const MOST_CHANGES: usize = 2;
/// Facts that differ beside the sentence that decides.
const MOST_FACTS: usize = 2;
/// What differs between any two runs, and is said elsewhere.
const NO_SETUP: [&str; 2] = ["label", "name"];

/// The comparison as text; no line is wider than [`Style::width`]. It begins with the sentence that decides; where nothing differs,
/// that is nearly all of a short page.
pub fn compared_text(comparing: &Comparing<'_>, extent: Extent, style: Style) -> String {
    let mut page = Page::default();
    let names = Names::of(comparing);
    let pairs = &comparing.compared.pairs;
    for (place, pair) in pairs.iter().enumerate() {
        draw_decision(&mut page, comparing, pair, &names.short[0], &names.short[place + 1]);
    }
    let has_news = |pair: &RunPair<'_>| pair.overall().biggest.is_some() || !pair.lost.is_empty();
    let is_full = extent == Extent::Full;
    if is_full || names.has_letters || pairs.iter().any(has_news) {
        draw_runs(&mut page, comparing);
    }
    if is_full || pairs.len() > 1 {
        draw_differences(&mut page, comparing.differences);
    }
    for (place, pair) in pairs.iter().enumerate() {
        let letter = letter(place + 1);
        match extent {
            Extent::Short => draw_news(&mut page, pair, &letter),
            Extent::Full => draw_pair(&mut page, pair, &letter),
        }
    }
    if is_full {
        certainty::draw(&mut page, comparing.compared);
    }
    certainty::draw_judgements(&mut page, comparing.judgements, extent);
    if !is_full {
        page.blank();
        page.wordings(
            Tone::Plain,
            "",
            vec![certainty::further(comparing.compared), "Details: --details".into()],
            1,
        );
    }
    page.render(style)
}

/// What the runs are called in sentences.
struct Names {
    /// In the order of the runs, the baseline first.
    short: Vec<String>,
    /// Whether letters stand for names that are long or alike.
    has_letters: bool,
}

impl Names {
    fn of(comparing: &Comparing<'_>) -> Self {
        let is_short = |name: &String| name.width() <= NAME_COLUMNS;
        let are_apart = distinct(comparing.names.iter()).len() == comparing.names.len();
        let has_letters = !are_apart || !comparing.names.iter().all(is_short);
        let short = if has_letters {
            (0..comparing.names.len()).map(letter).collect()
        } else {
            comparing.names.to_vec()
        };
        Self { short, has_letters }
    }
}

/// Which run is faster, by how much, where most, and what differs in the setup.
fn draw_decision(page: &mut Page, comparing: &Comparing<'_>, pair: &RunPair<'_>, base: &str, other: &str) {
    if pair.cells.is_empty() {
        page.sentence(Tone::Warning, "", nothing_compared(pair, base, other));
        return;
    }
    let overall = pair.overall();
    page.sentence(Tone::Heading, "", decision::sentence(&overall, base, other));
    let biggest = pair
        .biggest()
        .map(|(cell, ratio)| decision::biggest(&overall, base, other, &words::test_label(cell.base), ratio));
    let setup = (comparing.runs.len() == 2).then(|| setup(comparing.differences)).flatten();
    let text: Vec<String> = biggest.into_iter().chain(setup).collect();
    if !text.is_empty() {
        page.sentence(Tone::Plain, "", text.join(" "));
    }
    if let Some(text) = latencies(pair, other) {
        page.sentence(Tone::Plain, "", text);
    }
    if pair.base.promise.is_some() && pair.other.promise.is_some() {
        let text = "Of --p99 the closed loop alone is compared: each run chooses the rates that it tries.";
        page.sentence(Tone::Plain, "", text);
    }
}

/// Which of two runs is faster, in how many tests and by how much, and where most; untrusted are the names alone.
pub fn decision(pair: &RunPair<'_>, base: &str, other: &str) -> String {
    if pair.cells.is_empty() {
        return nothing_compared(pair, base, other);
    }
    let overall = pair.overall();
    let biggest = pair
        .biggest()
        .map(|(cell, ratio)| decision::biggest(&overall, base, other, &words::test_label(cell.base), ratio));
    std::iter::once(decision::sentence(&overall, base, other)).chain(biggest).collect::<Vec<_>>().join(" ")
}

/// Why two runs have no test in common: `Nothing is compared: after has no test (it failed: /dev/sdx is mounted at /data).`
fn nothing_compared(pair: &RunPair<'_>, base: &str, other: &str) -> String {
    let is_empty = |run: &Record| run.cells.is_empty();
    // Both were refused for the same reason, often enough.
    if is_empty(pair.base) && is_empty(pair.other) && ending(pair.base) == ending(pair.other) {
        let ending = ending_of(pair.base, ["both", "both were"]);
        return printable(&format!("Nothing is compared: neither run has a test{ending}."));
    }
    let reason = |name: &str, run: &Record| format!("{name} has no test{}", ending(run));
    let empty = [(base, pair.base), (other, pair.other)].into_iter().filter(|(_, run)| is_empty(run));
    let reasons: Vec<String> = empty.map(|(name, run)| reason(name, run)).collect();
    if reasons.is_empty() {
        return format!("Nothing is compared: no test of {other} asks what a test of {base} asks.");
    }
    printable(&format!("Nothing is compared: {}.", reasons.join("; ")))
}

/// `Setup differs: scheduler none → mq-deadline, kernel 6.1 → 7.0 and 2 more.`
fn setup(differences: &[Difference]) -> Option<String> {
    let is_setup = |difference: &&Difference| {
        !NO_SETUP.contains(&difference.what.rsplit(": ").next().unwrap_or(&difference.what))
            && difference.values.len() == 2
    };
    let facts: Vec<String> = differences
        .iter()
        .filter(is_setup)
        .map(|difference| {
            let value = |side: usize| difference.values[side].as_deref().unwrap_or(MISSING);
            format!("{} {} → {}", difference.what, value(0), value(1))
        })
        .collect();
    if facts.is_empty() {
        return None;
    }
    let more = facts.len().saturating_sub(MOST_FACTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("Setup differs: {}{more}.", facts[..facts.len().min(MOST_FACTS)].join(", ")))
}

/// `Latency of after: p50 shorter in 30 of 40 tests; p99 longer in 1 of 38 tests (load/1/log/flushes 1.92x).`; `None` where no percentile
/// clearly changed.
fn latencies(pair: &RunPair<'_>, other: &str) -> Option<String> {
    let said = [(Metric::P50, "p50"), (Metric::P99, "p99")].into_iter().filter_map(|(metric, word)| {
        let changes: Vec<(&CellChange<'_>, &Change)> =
            pair.cells.iter().filter_map(|cell| Some((cell, cell.change(metric)?))).collect();
        let those = |wanted: Answer| changes.iter().filter(move |(_, change)| change.answer() == wanted);
        let judged = changes.len() - those(Answer::TooFewData).count();
        let part = |answer: Answer, how: &str| match those(answer).count() {
            0 => None,
            count => Some(format!("{how} in {count}")),
        };
        let parts = [part(Answer::Faster, "shorter"), part(Answer::Slower, "longer")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let clear: Vec<_> = those(Answer::Faster).chain(those(Answer::Slower)).collect();
        let name = |(cell, change): &&(&CellChange<'_>, &Change)| {
            let ratio = ratio_figure(change.ratio());
            format!("{} {ratio}x", printable(&words::test_label(cell.base)))
        };
        // Of several tests the few that changed are named.
        let names = if judged > 1 && clear.len() <= MOST_CHANGES {
            format!(" ({})", clear.iter().map(name).collect::<Vec<_>>().join(", "))
        } else {
            String::new()
        };
        (!parts.is_empty())
            .then(|| format!("{word} {} of {}{names}", parts.join(", "), plural(judged as u64, "test")))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| format!("Latency of {other}: {}.", said.join("; ")))
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
    page.heading("RUNS: A is the baseline");
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
    ending_of(run, ["it", "it was"])
}

/// The same with this subject, and with it in the passive.
fn ending_of(run: &Record, [subject, passive]: [&str; 2]) -> String {
    match (run.status, &run.error) {
        (Status::Complete, _) => String::new(),
        (Status::Interrupted, _) => format!("; {passive} interrupted"),
        (Status::Failed, None) => format!("; {subject} failed"),
        (Status::Failed, Some(problem)) => format!("; {subject} failed: {}", problem.message),
    }
}

fn draw_differences(page: &mut Page, differences: &[Difference]) {
    page.heading("WHAT DIFFERS BESIDE THE FIGURES");
    if differences.is_empty() {
        page.line("  nothing in the setup");
    }
    for difference in differences {
        let value = |(place, value): (usize, &Option<String>)| {
            format!("{} {}", letter(place), value.as_deref().unwrap_or("–"))
        };
        let values: Vec<String> = difference.values.iter().enumerate().map(value).collect();
        page.sentence(Tone::Plain, format!("  {}: ", difference.what), values.join(" | "));
    }
}

/// Every test of a pair of runs.
fn draw_pair(page: &mut Page, pair: &RunPair<'_>, other: &str) {
    page.heading(format!("{other} AGAINST A"));
    if !pair.cells.is_empty() {
        page.sentence(Tone::Plain, "  ", summary(pair, other));
    }
    for metric in Metric::ALL {
        table::draw(page, pair, other, metric, Extent::Full);
    }
    draw_lost(page, pair, Extent::Full);
    draw_alone(page, "A", &pair.only_base, Extent::Full);
    draw_alone(page, other, &pair.only_other, Extent::Full);
}

/// The rates that clearly changed, and what is missing.
fn draw_news(page: &mut Page, pair: &RunPair<'_>, other: &str) {
    table::draw(page, pair, other, Metric::Rate, Extent::Short);
    draw_lost(page, pair, Extent::Short);
    draw_alone(page, "A", &pair.only_base, Extent::Short);
    draw_alone(page, other, &pair.only_other, Extent::Short);
}

/// How many rates changed, and how.
fn summary(pair: &RunPair<'_>, other: &str) -> String {
    let changes = |is_rate: bool| {
        let pair_changes = pair.cells.iter().flat_map(|cell| &cell.changes);
        pair_changes.filter(move |change| (change.metric == Metric::Rate) == is_rate)
    };
    let count =
        |is_rate: bool, wanted: Answer| changes(is_rate).filter(|change| change.answer() == wanted).count();
    format!(
        "{}: {other} is slower in {}, faster in {}, no clear difference in {}, too few data in {}. Of {}, {} are longer and {} \
         shorter.",
        plural(changes(true).count() as u64, "test"),
        count(true, Answer::Slower),
        count(true, Answer::Faster),
        count(true, Answer::NoDifferenceSeen),
        count(true, Answer::TooFewData),
        plural(changes(false).count() as u64, "latency percentile"),
        count(false, Answer::Slower),
        count(false, Answer::Faster),
    )
}

/// The figures that some of several runs lack, so that their pairs are left out.
fn draw_lost(page: &mut Page, pair: &RunPair<'_>, extent: Extent) {
    let sentences = certainty::missing(&pair.lost, extent);
    let shown = if extent == Extent::Full { sentences.len() } else { MOST_ROWS };
    let more = sentences.len().saturating_sub(shown);
    for text in sentences.into_iter().take(shown) {
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
    let names: Vec<String> = cells.iter().take(shown).map(|cell| words::test_label(cell)).collect();
    let more = if cells.len() > shown { format!(" and {} more", cells.len() - shown) } else { String::new() };
    let count = plural(cells.len() as u64, "test");
    page.sentence(Tone::Plain, "  ", format!("{count} of {run} alone: {}{more}", names.join("; ")));
}

#[cfg(test)]
mod tests;
