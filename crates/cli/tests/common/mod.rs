//! What the tests of the command line share: the program, and the form of every answer.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_testkit::cli::{self, Run};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Nothing that does not measure takes longer, whatever the load.
pub(crate) const SOON: Duration = Duration::from_secs(200);

/// The program with these arguments.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(args);
    command
}

/// Runs the program to its end.
pub(crate) fn rdsk<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    cli::run(command(args), SOON)
}

/// Asserts that standard error is one `error:` line and one `hint:` line, and gives both without their labels.
pub(crate) fn error_and_hint(run: &Run) -> (String, String) {
    let lines: Vec<&str> = run.stderr.lines().collect();
    let told = match lines[..] {
        [error, hint] => error.strip_prefix("error: ").zip(hint.strip_prefix("hint: ")),
        _ => None,
    };
    let (error, hint) =
        told.unwrap_or_else(|| panic!("{}: not an error and a hint:\n{}", run.command, run.stderr));
    (error.to_owned(), hint.to_owned())
}

/// Asserts that a document is a Record with a status, and gives it.
pub(crate) fn record(document: Value) -> Value {
    assert_eq!(document["schema"], "rdsk.record/2", "{document:#}");
    for key in [
        "id", "command", "rdsk_version", "started_at", "elapsed_ns", "targets", "observer", "cells",
        "findings",
    ] {
        assert!(!document[key].is_null(), "{key} is missing in {document:#}");
    }
    assert!(["complete", "interrupted", "failed"].contains(&document["status"].as_str().unwrap_or("none")));
    document
}

/// Asserts that nothing was left in a directory but these names.
pub(crate) fn holds_only(directory: &Path, names: &[&str]) {
    let mut present: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    present.sort();
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(present, names, "in {}", directory.display());
}

/// A directory that goes away, beside the build and so on a disk: the usual place may be in memory, where nothing can be
/// measured.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
