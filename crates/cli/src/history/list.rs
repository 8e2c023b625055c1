//! `rdsk list`: a line for each run, or JSON.

use super::options::ListOptions;
use super::{Place, moment, pick, place, problem};
use crate::cli_args::ColorWhen;
use crate::{out, screen};
use rdsk_model::Problem;
use rdsk_report::Charset;
use rdsk_store::{Filter, RunLine};
use rdsk_units::printable;
use serde_json::json;
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The first characters of an id are its time in milliseconds, and tell runs apart.
pub(super) const ID_CHARACTERS: usize = 10;
const MIB: f64 = 1_048_576.0;
/// Narrower than this there would be no room for a target.
const MIN_WIDTH: usize = 72;

pub(super) fn list(options: &ListOptions) -> Result<(), Problem> {
    let history = match place::place() {
        Place::Off => return Err(problem::nowhere("RDSK_HISTORY is empty")),
        Place::Unknown => return Err(problem::nowhere("neither XDG_DATA_HOME nor HOME is set")),
        Place::File(_) => pick::open()?,
    };
    // One more than wanted tells whether there are more.
    let limit = options.filter.limit.map(|limit| limit.saturating_add(1));
    let filter = Filter { limit, ..options.filter.clone() };
    let mut runs = match &history {
        Some(history) => history.list(&filter).map_err(|error| problem::of(&error))?,
        None => Vec::new(),
    };
    let is_cut = options.filter.limit.is_some_and(|limit| runs.len() > limit);
    runs.truncate(options.filter.limit.unwrap_or(usize::MAX));
    if options.is_json {
        return out::data(&document(&runs));
    }
    let width = screen::style_on(&std::io::stdout(), ColorWhen::Never, Charset::Ascii).width;
    out::data(&text(&runs, width, is_cut))
}

fn text(runs: &[RunLine], width: usize, is_cut: bool) -> String {
    if runs.is_empty() {
        return "no runs".into();
    }
    let mut text =
        String::from("ID          WHEN (UTC)        STATUS         READ   WRITE  TARGET (LABEL)\n");
    text.push_str("                                           MiB/s   MiB/s\n");
    for run in runs {
        writeln!(text, "{}", line(run, width)).expect("a String takes everything");
    }
    if is_cut {
        text.push_str("there are more; --limit N shows N\n");
    }
    text
}

/// A run in one line of this width.
pub(super) fn line(run: &RunLine, width: usize) -> String {
    let id: String = printable(&run.id).chars().take(ID_CHARACTERS).collect();
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

/// Three significant digits, or all before the point.
fn figure(value: f64) -> String {
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
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
        let mut wild = run();
        wild.targets = vec!["/\u{1b}[2J\u{1b}]0;x\u{7}\n".repeat(20)];
        wild.label = Some("\u{202e}evil".into());
        let shown = line(&wild, 80);
        assert!(shown.width() <= 80 && shown.contains("... ("), "{shown:?}");
        assert!(shown.chars().all(|letter| !letter.is_control()), "{shown:?}");
        wild.targets = vec!["/t".into()];
        assert!(!line(&wild, 80).contains('\u{202e}'), "{wild:?}");
        assert!(cut("漢字漢字", 7).width() <= 7);
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, expected) in
            [(0.123, "0.12"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (12345.6, "12346")]
        {
            assert_eq!(figure(value), expected);
        }
    }
}
