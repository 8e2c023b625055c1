//! Builds programs of this workspace, and runs programs that answer in JSON.

use crate::suite::{BUILT, cargo};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// How often a running program is looked at.
const TICK: Duration = Duration::from_millis(100);

/// The program `rdsk`: the one that was built beside the tests, so that they build nothing, or one that is built now.
pub(crate) fn rdsk(root: &Path) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(BUILT) {
        return Ok(program.into());
    }
    executable(root, &["--package", "rdsk", "--bin", "rdsk"])
}

/// Builds what the arguments of `cargo build` select and gives the path of the last executable.
pub(crate) fn executable(root: &Path, arguments: &[&str]) -> Result<PathBuf> {
    let mut build = cargo(root, &["build", "--message-format=json-render-diagnostics"]);
    let text = text_of(build.args(arguments).stderr(Stdio::inherit()))?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next_back().context("cargo build named no executable")
}

/// Builds a program of this workspace as users build it, and gives its path.
pub(crate) fn release(name: &str) -> Result<PathBuf> {
    executable(&crate::root(), &["--release", "--bin", name])
}

/// A command that runs rdsk and keeps its runs out of the developer's own history, also where no cargo set that.
pub(crate) fn rdsk_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("RDSK_HISTORY", "");
    command
}

/// Runs a command line of rdsk and gives its Record and how it ended.
pub(crate) fn record(program: &Path, line: &str) -> Result<(Value, ExitStatus)> {
    let mut command = rdsk_command(program);
    let output = command.args(line.split_whitespace()).args(["--json", "-", "--quiet"]).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let record = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("rdsk {line}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((record, output.status))
}

/// Runs a program to its end; a failure quotes its standard error.
pub(crate) fn checked(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", errors.trim());
    Ok(output)
}

/// Runs a program to its end, looking at its directory below /proc ten times a second; gives what it wrote to its standard output.
pub(crate) fn looked_at(command: &mut Command, mut look: impl FnMut(&Path)) -> Result<String> {
    let child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let output = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| child.wait_with_output());
        while !waiter.is_finished() {
            look(&process);
            std::thread::sleep(TICK);
        }
        waiter.join().expect("waiting does not panic")
    })?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a program writes to its standard output.
pub(crate) fn text_of(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&checked(command)?.stdout).into_owned())
}

/// The document in the output of a program, possibly after other output.
pub(crate) fn json(text: &str) -> Result<Value> {
    let start = text.find('{').with_context(|| format!("no JSON: {text}"))?;
    serde_json::from_str(&text[start..]).with_context(|| format!("bad JSON: {text}"))
}
