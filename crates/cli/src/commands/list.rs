//! `rdsk list`: a line for each run, or JSON.

use crate::history::{self, ID_CHARACTERS, Place, moment, problem};
use crate::output_args::HistoryArgs;
use crate::{completion, out, screen, value};
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use rdsk_analysis::words::figure;
use rdsk_model::{Experiment, Problem};
use rdsk_store::{Filter, RunLine};
use rdsk_units::printable;
use serde_json::json;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const MAX_LIMIT: u32 = 1_000_000;
const MIB: f64 = 1_048_576.0;
/// Narrower than this there would be no room for a target.
const MIN_WIDTH: usize = 72;

const EXAMPLES: &str = "Examples:
  rdsk list
      the newest runs
  rdsk list --target /srv --since 7d
      the runs of a week on targets with /srv in their name
  rdsk list --experiment zones --limit 5 --json
      five runs with all columns, for programs
  rdsk show last
      the newest run again";

/// List the runs in the history, newest first.
///
/// A line is the beginning of the id, when the run began, how it ended, the sequential read and write rate of the
/// headline (of a run without one the highest), and the targets. The id, its beginning, the label or the word last name the run to
/// rdsk show. Times are UTC.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct List {
    /// Only runs with this text in the name of a target
    #[arg(long, value_name = "TEXT", value_parser = value::text)]
    target: Option<String>,
    /// Only runs with this label
    #[arg(long, value_name = "TEXT", value_parser = value::text, add = ArgValueCandidates::new(completion::labels))]
    label: Option<String>,
    /// Only runs with tests of this topic
    #[arg(long, value_name = "NAME", value_parser = value::one_of(Experiment::ALL, Experiment::as_str), hide_possible_values = true)]
    experiment: Option<Experiment>,
    /// Only runs that began at this time or later: a date, a time, or an age such as 7d
    #[arg(long, value_name = "TIME", value_parser = |text: &str| moment::moment(text, moment::now_ns()))]
    since: Option<i64>,
    /// Only runs that began before this time
    #[arg(long, value_name = "TIME", value_parser = |text: &str| moment::moment(text, moment::now_ns()))]
    until: Option<i64>,
    /// At most N runs
    #[arg(long, value_name = "N", default_value = "30", value_parser = value::count(MAX_LIMIT))]
    limit: u32,
    /// Print all columns as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    history: HistoryArgs,
}

/// Lists the runs.
///
/// # Errors
/// When there can be no history, or it cannot be used.
pub(crate) fn list(list: &List) -> Result<(), Problem> {
    list.history.choose();
    let history = match history::place() {
        Place::Off => return Err(problem::nowhere("RDSK_HISTORY is empty")),
        Place::Unknown => return Err(problem::nowhere("neither XDG_DATA_HOME nor HOME is set")),
        Place::File(_) => history::open()?,
    };
    let limit = list.limit as usize;
    let filter = Filter {
        target: list.target.clone(),
        label: list.label.clone(),
        experiment: list.experiment.map(|experiment| experiment.as_str().to_owned()),
        since_ns: list.since,
        until_ns: list.until,
        // One more than wanted says whether there are more.
        limit: Some(limit + 1),
    };
    let mut runs = match &history {
        Some(history) => history.list(&filter).map_err(|error| problem::of_store(&error))?,
        None => Vec::new(),
    };
    let is_cut = runs.len() > limit;
    runs.truncate(limit);
    if list.json {
        return out::data(&document(&runs));
    }
    out::data(&text(&runs, screen::columns(), is_cut))
}

fn text(runs: &[RunLine], width: usize, is_cut: bool) -> String {
    if runs.is_empty() {
        return "no runs".into();
    }
    let mut text = String::new();
    if width >= MIN_WIDTH {
        text.push_str("ID          WHEN (UTC)        STATUS         READ   WRITE  TARGET (LABEL)\n");
        text.push_str("                                           MiB/s   MiB/s\n");
    }
    for run in runs {
        let shown = if width < MIN_WIDTH { lines(run, width) } else { line(run, width) };
        writeln!(text, "{shown}").expect("a String takes everything");
    }
    if is_cut {
        text.push_str("there are more; --limit N shows N\n");
    }
    text
}

/// A run in three lines, on a page that is too narrow for its columns.
fn lines(run: &RunLine, width: usize) -> String {
    let rates = [("read", run.read_bytes_per_s), ("write", run.write_bytes_per_s)];
    let rates =
        rates.into_iter().filter_map(|(word, rate)| Some(format!(", {word} {}", figure(rate? / MIB))));
    let rates: String = rates.collect();
    let unit = if rates.is_empty() { "" } else { " MiB/s" };
    let label = run.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
    let target = printable(&format!("{}{label}", run.targets.join(", ")));
    format!(
        "{}  {}\n  {}{rates}{unit}\n  {}",
        short_id(run),
        moment::shown(run.started_ns),
        run.state.as_str(),
        cut(&target, width - 2)
    )
}

fn short_id(run: &RunLine) -> String {
    printable(&run.id).chars().take(ID_CHARACTERS).collect()
}

/// A run in one line of this width.
pub(crate) fn line(run: &RunLine, width: usize) -> String {
    let id = short_id(run);
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".into(), |rate| figure(rate / MIB));
    let start = format!(
        "{id:<ID_CHARACTERS$}  {}  {:<11}  {:>6}  {:>6}  ",
        moment::shown(run.started_ns),
        run.state.as_str(),
        rate(run.read_bytes_per_s),
        rate(run.write_bytes_per_s)
    );
    let room = width.max(MIN_WIDTH) - start.chars().count();
    let label = run.label.as_ref().map_or_else(String::new, |label| printable(&format!(" ({label})")));
    // Of a long target its end is left out, so that the label, by which the run can be named, stays.
    let label = cut(&label, room / 2);
    let target = cut(&printable(&run.targets.join(", ")), room - label.width());
    format!("{start}{target}{label}").trim_end().to_owned()
}

/// The text in at most so many columns; what is left out at its end shows as three dots.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if kept.width() + letter.width().unwrap_or(0) + 3 > columns {
            break;
        }
        kept.push(letter);
    }
    kept + "..."
}

fn document(runs: &[RunLine]) -> String {
    let runs: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "id": run.id,
                "started_at": run.started_at,
                "elapsed_ns": run.elapsed_ns,
                "status": run.state.as_str(),
                "label": run.label,
                "command": run.command,
                "rdsk_version": run.rdsk_version,
                "kernel": run.kernel,
                "experiments": run.experiments,
                "targets": run.targets,
                "cells": run.cells,
                "read_bytes_per_s": run.read_bytes_per_s,
                "write_bytes_per_s": run.write_bytes_per_s,
            })
        })
        .collect();
    format!("{:#}", json!({ "schema": "rdsk.list/1", "runs": runs }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn filters_are_read() {
        let list: List =
            parsed("--target sd --label 'a b' --experiment zones --since 2026-01-01 --limit 7 --json")
                .unwrap();
        assert_eq!((list.target.as_deref(), list.label.as_deref()), (Some("sd"), Some("a b")));
        assert_eq!((list.experiment, list.limit), (Some(Experiment::Zones), 7));
        assert_eq!((list.since, list.until), (Some(1_767_225_600_000_000_000), None));
        assert_eq!(parsed::<List>("").unwrap().limit, 30);
        let lines = [
            ("--limit 0", "--limit"),
            ("--since soon", "--since"),
            ("--experiment speed", "--experiment"),
            ("--target ''", "--target"),
            ("sda", "unexpected word \"sda\""),
            ("--history ''", "--history: the value is empty"),
            ("--history --limit", "--history: a value is missing before \"--limit\""),
            ("--history", "--history has no value"),
            ("--history a --history b", "--history is given twice"),
            ("--histroy a", "unknown flag --histroy"),
        ];
        refuses(|list: List| Ok(list), &lines);
    }
    use rdsk_store::State;

    fn run() -> RunLine {
        RunLine {
            id: "01JD3K7QZ4000000000000000A".into(),
            started_ns: 1_700_000_000_000_000_000,
            started_at: "2023-11-14T22:13:20Z".into(),
            elapsed_ns: Some(60_000_000_000),
            state: State::Interrupted,
            label: None,
            command: vec!["rdsk".into(), "run".into()],
            rdsk_version: "0.1.0".into(),
            kernel: Some("6.1.0".into()),
            experiments: vec!["headline".into()],
            targets: vec!["/srv/data".into()],
            cells: 7,
            read_bytes_per_s: Some(536_870_912.0),
            write_bytes_per_s: None,
        }
    }

    #[test]
    fn a_run_is_a_line_of_80_columns_whatever_its_names_hold() {
        let expected = "01JD3K7QZ4  2023-11-14 22:13  interrupted     512       -  /srv/data";
        assert_eq!(line(&run(), 80), expected);
        let narrow = "01JD3K7QZ4  2023-11-14 22:13\n  interrupted, read 512 MiB/s\n  /srv/data\n";
        assert_eq!(text(&[run()], 40, false), narrow);
        let mut wild = run();
        wild.targets = vec!["/\u{1b}[2J\u{1b}]0;x\u{7}\n".repeat(20)];
        wild.label = Some("\u{202e}evil".into());
        let shown = line(&wild, 80);
        assert!(shown.width() <= 80 && shown.contains("... ("), "{shown:?}");
        assert!(shown.chars().all(|letter| !letter.is_control()), "{shown:?}");
        wild.targets = vec!["/t".into()];
        assert!(!line(&wild, 80).contains('\u{202e}'), "{wild:?}");
        assert!(cut("漢字漢字", 7).width() <= 7);
        assert!(lines(&wild, 40).lines().all(|line| line.width() <= 40), "{wild:?}");
    }
}
