//! `rdsk compare`: runs compared cell by cell, two command lines run in turn, the course of one cell, and the outliers of a fleet. It reads Records, or
//! has rdsk make them; it opens no target.

pub(crate) mod fleet;
mod kept;
mod options;
mod runs;

use crate::cli_args::ColorWhen;
use crate::json_file::{self, DocumentKind, JSON, Sink};
use crate::usage::usage;
use crate::{exit, out, record_file, screen};
use kept::Kept;
pub(crate) use options::Compare;
use options::{Repeat, Task};
use rdsk_compare::{
    Compared, Judgement, Metric, RunPair, compare, course, differences, judge, repeated, with_parts,
};
use rdsk_model::{Problem, ProblemKind, Record, Status};
use rdsk_report::Style;
use rdsk_report::compare::{Comparing, compared_json, compared_text, course_json, course_text};
use rdsk_units::printable;
use runs::{Ended, Runner, Runs};
use std::borrow::Cow;

/// Compares what the line names and gives the exit code.
///
/// # Errors
/// When arguments mean nothing together, or a run cannot be read or made.
pub(crate) fn run(options: &Compare) -> Result<u8, Problem> {
    if fleet::is_fleet(options) {
        options.history.choose();
        return fleet::run(options).map(|()| exit::DONE);
    }
    let task = options.task()?;
    options.history.choose();
    match &task {
        Task::Records => {
            let sink = Sink::wanted(COMPARISON, options.json.as_ref(), &[])?;
            let Some(records) = records(options)? else { return Ok(exit::INTERRUPTED) };
            let records = with_parts(&records.iter().collect::<Vec<_>>());
            let runs: Vec<&Record> = records.iter().map(|record| &**record).collect();
            let compared = compare(runs[0], &runs[1..]);
            show(options, sink.as_ref(), &options.runs, &runs, &compared, &[])
        }
        Task::Trend(cell, metric) => trend(options, cell, *metric),
        Task::Repeat(repeat) => in_turn(options, repeat),
    }
}

/// What `--json` writes. A Record is never replaced by it, least of all one that is compared.
const COMPARISON: DocumentKind = DocumentKind { start: "{\"schema\":\"rdsk.compare/", ..JSON };
const TREND: DocumentKind = DocumentKind { start: "{\"schema\":\"rdsk.trend/", ..JSON };

fn style(options: &Compare) -> Style {
    screen::style_on(&std::io::stdout(), ColorWhen::Auto, options.charset.charset())
}

/// The Records that the words name, each another run; simulated systems are run. `None` if a signal ended such a run.
fn records(options: &Compare) -> Result<Option<Vec<Record>>, Problem> {
    let mut runner = None;
    let mut records = Vec::new();
    for word in &options.runs {
        let record = if word.starts_with("sim:") {
            let runner = match &mut runner {
                Some(runner) => runner,
                None => runner.insert(Runner::new(options.quiet)?),
            };
            runner.record(&[options.question.clone().into(), word.into()], None)?
        } else {
            Some(record_file::named(word, "compare", "no-record")?)
        };
        match record {
            Some(record) => records.push(record),
            None => return Ok(None),
        }
    }
    refuse_twice(&options.runs, &records)?;
    Ok(Some(records))
}

/// Refuses a run that is named twice: compared with itself it shows how little its figures vary, and nothing of the disk, and in a
/// trend it is one point.
fn refuse_twice(words: &[String], records: &[Record]) -> Result<(), Problem> {
    for (second, record) in records.iter().enumerate() {
        if let Some(first) = records[..second].iter().position(|other| other.id == record.id) {
            let [first, second, id] = [&words[first], &words[second], &record.id].map(|text| printable(text));
            let message = format!("{first} and {second} are the same run, {id}");
            return Err(usage(message, "name each run once; rdsk list shows them"));
        }
    }
    Ok(())
}

/// Shows a comparison and gives the exit code.
fn show(
    options: &Compare,
    sink: Option<&Sink>,
    names: &[String],
    runs: &[&Record],
    compared: &Compared<'_>,
    kept: &[(&str, &Record)],
) -> Result<u8, Problem> {
    let differences = differences(runs);
    let judgements = judge(compared, &options.fail_if);
    let comparing = Comparing { names, runs, differences: &differences, compared, judgements: &judgements };
    let page = || compared_text(&comparing, options.extent(), style(options));
    json_file::output(sink, || compared_json(&comparing, kept), page)?;
    Ok(code(options, compared, &judgements))
}

/// What conditions make of a comparison.
fn code(options: &Compare, compared: &Compared<'_>, judgements: &[Judgement<'_>]) -> u8 {
    let fails = |judgement: &Judgement<'_>| {
        !judgement.met.is_empty() || (options.fail_if_unsure && judgement.is_open())
    };
    if judgements.iter().any(fails) {
        return exit::CONDITION_MET;
    }
    // A run that failed before it measured anything meets no condition.
    let has_failed =
        |pair: &RunPair<'_>| [pair.base, pair.other].iter().any(|run| run.status == Status::Failed);
    let says_nothing = |pair: &&RunPair<'_>| {
        let is_unjudged = |judgement: &Judgement<'_>| {
            pair.cells.iter().all(|cell| cell.change(judgement.condition.metric).is_none())
        };
        has_failed(pair) && judgements.iter().any(is_unjudged)
    };
    match compared.pairs.iter().find(says_nothing) {
        Some(pair) => {
            let run = if pair.other.status == Status::Failed { pair.other } else { pair.base };
            let why = run.error.as_ref().map_or_else(String::new, |error| format!(": {}", error.message));
            out::warning(&format!("a condition judges no test of a run that failed{why}"));
            exit::FAILED
        }
        None => exit::DONE,
    }
}

fn trend(options: &Compare, cell: &str, metric: Metric) -> Result<u8, Problem> {
    let sink = Sink::wanted(TREND, options.json.as_ref(), &[])?;
    let Some(records) = records(options)? else { return Ok(exit::INTERRUPTED) };
    // A load as a whole has a course, too.
    let is_whole = records.iter().flat_map(|record| &record.cells).any(|whole| whole.id == cell);
    let records: Vec<&Record> = records.iter().collect();
    let records =
        if is_whole { records.into_iter().map(Cow::Borrowed).collect() } else { with_parts(&records) };
    let runs: Vec<&Record> = records.iter().map(|record| &**record).collect();
    let course = course(&runs, cell, metric).map_err(|error| {
        let hint = match &error {
            rdsk_compare::CourseError::NoCell { cells, .. } => {
                let some: Vec<String> = cells.iter().take(12).map(|id| printable(id)).collect();
                let more = if cells.len() > 12 { " and others" } else { "" };
                format!("the first run has {}{more}", some.join(", "))
            }
            rdsk_compare::CourseError::TooFewRuns { .. } => {
                "name more runs that measured it, or another --figure".into()
            }
        };
        usage(printable(&error.to_string()), hint)
    })?;
    let its_runs: Vec<&Record> = course.points.iter().map(|point| point.run).collect();
    let differences = differences(&its_runs);
    let page = || course_text(&course, &differences, style(options));
    json_file::output(sink.as_ref(), || course_json(&course, &differences), page)?;
    Ok(exit::DONE)
}

/// Runs both command lines in turn and compares them. Whatever ends that early, the pairs that are complete are shown before it is
/// said.
fn in_turn(options: &Compare, repeat: &Repeat) -> Result<u8, Problem> {
    let kept = Kept::prepare(options.json.as_ref(), repeat.count)?;
    let (runs, ended) = Runner::new(options.quiet)?.in_turn(repeat);
    let written = match &kept {
        Kept::Apart(directory) => directory.write(&runs),
        Kept::Together(_) => Ok(()),
    };
    let records: Vec<&Record> = runs.sides.iter().flatten().collect();
    let mut bases: Vec<Record> = with_parts(&records).into_iter().map(Cow::into_owned).collect();
    let others = bases.split_off(runs.sides[0].len());
    let shown = repeated(&bases, &others).map(|compared| show_runs(options, repeat, &kept, &runs, &compared));
    let completed = "the pairs of runs that were completed are compared";
    let is_shown = shown.is_some();
    let last = match (ended, is_shown) {
        (Ended::Whole, _) => Ok(()),
        (Ended::Failed(problem), _) => {
            if is_shown {
                out::warning(&format!("a run failed: {completed}"));
            }
            Err(problem)
        }
        (Ended::Interrupted, true) => {
            out::warning(&format!("interrupted: {completed}"));
            written.as_ref().err().into_iter().for_each(out::problem);
            return shown.unwrap_or(Ok(exit::DONE)).map(|_| exit::INTERRUPTED);
        }
        (Ended::Interrupted, false) => Err(Problem::new(
            ProblemKind::Interrupted,
            "interrupted",
            "interrupted before both command lines had run once",
            "let it run longer",
        )),
    };
    // The last problem is the one that is returned; those before it are reported here.
    let code = shown.unwrap_or(Ok(exit::DONE));
    let mut problems: Vec<Problem> =
        [written.err(), code.as_ref().err().cloned(), last.err()].into_iter().flatten().collect();
    let last = problems.pop();
    problems.iter().for_each(out::problem);
    last.map_or(code, Err)
}

/// Shows the comparison of runs in turn and gives the exit code.
fn show_runs(
    options: &Compare,
    repeat: &Repeat,
    kept: &Kept,
    runs: &Runs,
    compared: &Compared<'_>,
) -> Result<u8, Problem> {
    let sides = ["a", "b"].into_iter().zip(&runs.sides);
    let sides: Vec<(&str, &Record)> =
        sides.flat_map(|(side, runs)| runs.iter().map(move |run| (side, run))).collect();
    let names = repeat.lines.each_ref().map(|line| {
        let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        format!("rdsk {}", words.join(" "))
    });
    let firsts = [&runs.sides[0][0], &runs.sides[1][0]];
    match kept {
        Kept::Together(sink) => show(options, sink.as_ref(), &names, &firsts, compared, &sides),
        Kept::Apart(directory) => show(options, Some(&directory.comparison), &names, &firsts, compared, &[]),
    }
}
