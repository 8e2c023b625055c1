//! `rdsk compare`: runs compared cell by cell, two command lines run in turn, and the course of one cell. It reads Records, or
//! has rdsk make them; it opens no target.

mod options;
mod runs;

use crate::cli_args::{ColorWhen, JsonPlace};
use crate::json_file::{self, DocumentKind, JSON, Sink};
use crate::parse::usage;
use crate::{exit, out, own_command, record_file, screen};
pub(crate) use options::command;
use options::{Options, Repeat, Task};
use rdsk_compare::{Compared, Judgement, Metric, compare, course, differences, judge, repeated};
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_report::Style;
use rdsk_report::compare::{Comparing, compared_json, compared_text, course_json, course_text};
use rdsk_units::printable;
use runs::{Ended, Runner, Runs};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs a command line, whose first word is `compare`.
pub(crate) fn run(words: &[OsString]) -> u8 {
    own_command::run(options::parse(words), answer)
}

fn answer(options: &Options) -> Result<u8, Problem> {
    match &options.task {
        Task::Records => {
            let sink = sink(COMPARISON, options.json.as_ref())?;
            let Some(records) = records(options)? else { return Ok(exit::INTERRUPTED) };
            refuse_twice(&options.words, &records)?;
            let runs: Vec<&Record> = records.iter().collect();
            let compared = compare(runs[0], &runs[1..]);
            show(options, sink.as_ref(), &options.words, &runs, &compared, &[])
        }
        Task::Trend(cell, metric) => trend(options, cell, *metric),
        Task::Repeat(repeat) => in_turn(options, repeat),
    }
}

/// What `--json` writes. A Record is never replaced by it, least of all one that is compared.
const COMPARISON: DocumentKind = DocumentKind { start: "{\"schema\":\"rdsk.compare/", ..JSON };
const TREND: DocumentKind = DocumentKind { start: "{\"schema\":\"rdsk.trend/", ..JSON };

fn sink(kind: DocumentKind, place: Option<&JsonPlace>) -> Result<Option<Sink>, Problem> {
    place.map(|place| Sink::prepare_for(kind, place, &[])).transpose()
}

fn style(options: &Options) -> Style {
    screen::style_on(&std::io::stdout(), ColorWhen::Auto, options.charset)
}

/// The Records that the words name; simulated systems are run. `None` if a signal ended such a run.
fn records(options: &Options) -> Result<Option<Vec<Record>>, Problem> {
    let mut runner = None;
    let mut records = Vec::new();
    for word in &options.words {
        let record = if word.starts_with("sim:") {
            let runner = match &mut runner {
                Some(runner) => runner,
                None => runner.insert(Runner::new(options.is_quiet)?),
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
    Ok(Some(records))
}

/// Refuses a run that is named twice: compared with itself it shows how little its figures vary, and nothing of the disk, and in a
/// trend it is one point.
fn refuse_twice(words: &[String], records: &[Record]) -> Result<(), Problem> {
    for (second, record) in records.iter().enumerate() {
        if let Some(first) = records[..second].iter().position(|other| other.id == record.id) {
            let [one, other, id] = [&words[first], &words[second], &record.id].map(|text| printable(text));
            let message = format!("{one} and {other} are the same run, {id}");
            return Err(usage(message, "name each run once; rdsk list shows them"));
        }
    }
    Ok(())
}

/// Shows a comparison and gives the exit code.
fn show(
    options: &Options,
    sink: Option<&Sink>,
    names: &[String],
    runs: &[&Record],
    compared: &Compared<'_>,
    kept: &[(&str, &Record)],
) -> Result<u8, Problem> {
    let differences = differences(runs);
    let judgements = judge(compared, &options.conditions);
    let comparing = Comparing { names, runs, differences: &differences, compared, judgements: &judgements };
    let page = || compared_text(&comparing, options.extent, style(options));
    json_file::output(sink, || compared_json(&comparing, kept), page)?;
    let fails = |one: &Judgement<'_>| {
        !one.met.is_empty() || (options.fails_if_unsure && (!one.unsure.is_empty() || one.judged == 0))
    };
    Ok(if judgements.iter().any(fails) { exit::CONDITION_MET } else { exit::DONE })
}

fn trend(options: &Options, cell: &str, metric: Metric) -> Result<u8, Problem> {
    let sink = sink(TREND, options.json.as_ref())?;
    let Some(records) = records(options)? else { return Ok(exit::INTERRUPTED) };
    refuse_twice(&options.words, &records)?;
    let runs: Vec<&Record> = records.iter().collect();
    let course = course(&runs, cell, metric).map_err(|error| {
        let hint = match &error {
            rdsk_compare::CourseError::NoCell { known, .. } => {
                let some: Vec<String> = known.iter().take(12).map(|id| printable(id)).collect();
                let more = if known.len() > 12 { " and others" } else { "" };
                format!("the first run has {}{more}", some.join(", "))
            }
            rdsk_compare::CourseError::TooFewRuns { .. } => "name more runs that measured it".into(),
        };
        usage(printable(&error.to_string()), hint)
    })?;
    let its_runs: Vec<&Record> = course.points.iter().map(|point| point.run).collect();
    let differences = differences(&its_runs);
    let page = || course_text(&course, &differences, style(options));
    json_file::output(sink.as_ref(), || course_json(&course, &differences), page)?;
    Ok(exit::DONE)
}

/// Where the documents of runs in turn go.
enum Kept {
    /// One document has everything, or there is none.
    Together(Option<Sink>),
    /// One document for each run, and one for the comparison.
    Apart { directory: PathBuf, comparison: Sink },
}

impl Kept {
    fn prepare(place: Option<&JsonPlace>) -> Result<Self, Problem> {
        match place {
            Some(JsonPlace::File(path)) if path.is_dir() => {
                let comparison =
                    Sink::prepare_for(COMPARISON, &JsonPlace::File(path.join("compare.json")), &[])?;
                Ok(Self::Apart { directory: path.clone(), comparison })
            }
            place => Ok(Self::Together(sink(COMPARISON, place)?)),
        }
    }
}

/// Runs both command lines in turn and compares them.
fn in_turn(options: &Options, repeat: &Repeat) -> Result<u8, Problem> {
    let kept = Kept::prepare(options.json.as_ref())?;
    let (runs, ended) = Runner::new(options.is_quiet)?.in_turn(repeat)?;
    let sides: Vec<(&str, &Record)> = ["a", "b"]
        .into_iter()
        .zip(&runs.sides)
        .flat_map(|(side, runs)| runs.iter().map(move |run| (side, run)))
        .collect();
    if let Kept::Apart { directory, .. } = &kept {
        write_runs(directory, &runs)?;
    }
    let Some(compared) = repeated(&runs.sides[0], &runs.sides[1]) else {
        return Err(Problem::new(
            ProblemKind::Interrupted,
            "interrupted",
            "interrupted before both command lines had run once",
            "let it run longer",
        ));
    };
    let names = repeat.lines.each_ref().map(|line| {
        let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        format!("rdsk {}", words.join(" "))
    });
    let firsts = [&runs.sides[0][0], &runs.sides[1][0]];
    let code = match &kept {
        Kept::Together(sink) => show(options, sink.as_ref(), &names, &firsts, &compared, &sides)?,
        Kept::Apart { comparison, .. } => show(options, Some(comparison), &names, &firsts, &compared, &[])?,
    };
    match ended {
        Ended::Whole => Ok(code),
        Ended::Interrupted => {
            out::warning("interrupted: the pairs of runs that were completed are compared");
            Ok(exit::INTERRUPTED)
        }
    }
}

/// Writes `a-1.json`, `b-1.json` and so on.
fn write_runs(directory: &Path, runs: &Runs) -> Result<(), Problem> {
    for (side, records) in ["a", "b"].into_iter().zip(&runs.sides) {
        for (number, record) in (1..).zip(records) {
            let place = JsonPlace::File(directory.join(format!("{side}-{number}.json")));
            let sink = Sink::prepare(&place, &[])?;
            sink.write(&rdsk_report::json(record, rdsk_report::Compactness::Full))?;
        }
    }
    Ok(())
}
