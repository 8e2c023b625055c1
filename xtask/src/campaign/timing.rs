//! The campaign `timing`: the tests that a busy machine can fail. They are those of every `tests/timing.rs`, run one at a time
//! over some rounds, each as a process of its own. It measures nothing itself.

use crate::campaign::Note;
use crate::suite::TestProgram;
use crate::{step, suite, tools};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often every test runs.
const ROUNDS: usize = 3;
/// What the names of their programs end with.
const FILE: &str = " --test it timing::";

/// One run of one test.
#[derive(Clone, Debug, PartialEq)]
struct TestRun {
    took: Duration,
    /// The load average over a minute at its end.
    load: f64,
    /// The first line of what it said, if it failed.
    why: Option<String>,
}

/// Runs all rounds and gives a note for each test: how often it passed, beside what load, and what it said when it failed.
///
/// # Errors
/// When there are no such tests, the programs cannot be built or started, or at an interruption.
pub(super) fn run(root: &Path, limit: Duration) -> Result<Vec<Note>> {
    let interrupted = step::interruption()?;
    tools::install(&interrupted)?;
    let mut programs = suite::build_tests(root, limit, &interrupted)?;
    programs.retain(|program| program.name.ends_with(FILE));
    let mut tests: BTreeMap<(String, String), Vec<TestRun>> = BTreeMap::new();
    for round in 1..=ROUNDS {
        for program in &programs {
            let package = program.name.trim_end_matches(FILE);
            println!("── round {round} of {ROUNDS}: {package}");
            for (name, mut command) in tests_of(program) {
                let run = run_test(&mut command, limit, &interrupted)?;
                ensure!(!interrupted.load(Ordering::Relaxed), "interrupted in round {round}");
                println!("{name}: {}", run.why.as_deref().unwrap_or("passed"));
                tests.entry((package.to_owned(), name)).or_default().push(run);
            }
        }
    }
    Ok(tests.into_iter().map(|((package, name), runs)| note(package, name, &runs)).collect())
}

/// Each test of a program by its name in the file, with the command that runs it alone.
fn tests_of(program: &TestProgram) -> impl Iterator<Item = (String, Command)> {
    program.each_test().map(|(name, mut command)| {
        command.arg("--ignored").env("RDSK_MUST_HAVE", tools::must_have()).env("RDSK_HISTORY", "");
        (name.trim_start_matches("timing::").to_owned(), command)
    })
}

fn run_test(command: &mut Command, limit: Duration, interrupted: &AtomicBool) -> Result<TestRun> {
    let start = Instant::now();
    let mut lines = Vec::new();
    let ending = step::run_with_errors(command, limit, interrupted, &mut |line| lines.push(line.to_owned()))?;
    let why = suite::failure_of(ending).map(|failure| message(&lines).unwrap_or(failure));
    Ok(TestRun { took: start.elapsed(), load: load()?, why })
}

/// The first line of a panic's message, which follows its place; without what would end a cell of a table.
fn message(lines: &[String]) -> Option<String> {
    let said = lines.iter().skip_while(|line| !line.contains(" panicked at ")).nth(1)?;
    Some(said.chars().filter(|letter| *letter != '|').take(120).collect())
}

/// The load average over a minute.
fn load() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn note(package: String, name: String, runs: &[TestRun]) -> Note {
    let failed: Vec<&TestRun> = runs.iter().filter(|run| run.why.is_some()).collect();
    let passed = format!("passed {} of {}", runs.len() - failed.len(), runs.len());
    let result = match failed.first() {
        None => format!("{passed}, load {:.1} at most", runs.iter().map(|run| run.load).fold(0.0, f64::max)),
        Some(run) => {
            format!("**{passed}**, load {:.1}: {}", run.load, run.why.as_deref().unwrap_or_default())
        }
    };
    let seconds: f64 = runs.iter().map(|run| run.took.as_secs_f64()).sum::<f64>() / runs.len() as f64;
    [package, name, result, format!("{seconds:.1}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "#[ignore = \"timing: cargo xtask campaign timing\"]";

    #[test]
    fn a_failed_test_is_quoted() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_test(&mut command, Duration::from_secs(200), &AtomicBool::new(false)).unwrap()
        };
        let good = shell("echo 'test a ... ok'");
        assert_eq!(good.why, None);
        let bad = shell(
            "echo \"thread 'bands' (7) panicked at zones.rs:9:5:\" >&2; echo '4 | false bands'; exit 101",
        );
        assert_eq!(bad.why.as_deref(), Some("4  false bands"));
        assert_eq!(shell("exit 101").why.as_deref(), Some("exit status: 101"));
        let run = |why: Option<&str>| TestRun {
            took: Duration::from_secs(3),
            load: 1.5,
            why: why.map(str::to_owned),
        };
        let result = |runs: &[TestRun]| note("rdsk".into(), "bands".into(), runs);
        assert_eq!(result(&[run(None), run(None)])[2..], ["passed 2 of 2, load 1.5 at most", "3.0"]);
        assert_eq!(result(&[run(None), run(Some("no"))])[2], "**passed 1 of 2**, load 1.5: no");
    }

    /// Tests of a file that are not left to the campaign, if `is_timing`; else those that are.
    fn misplaced(text: &str, is_timing: bool) -> Vec<String> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let tests = lines.iter().enumerate().filter(|(_, line)| **line == "#[test]");
        tests
            .filter(|(index, _)| (lines.get(index + 1) == Some(&REASON)) != is_timing)
            .map(|(index, _)| {
                lines[index + 1..].iter().find(|line| line.contains("fn ")).unwrap_or(&"").to_string()
            })
            .collect()
    }

    #[test]
    fn what_the_campaign_runs_lies_in_its_files_and_nothing_else_does() {
        let marked = format!("#[test]\n{REASON}\nfn a() {{}}\n");
        assert_eq!(misplaced(&marked, false), ["fn a() {}"]);
        assert!(misplaced(&marked, true).is_empty());
        assert_eq!(misplaced("#[test]\nfn b() {}\n", true), ["fn b() {}"]);
        let root = crate::root();
        let mut files = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            let words: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            let is_timing = words.get(2).is_some_and(|word| word == "tests")
                && words.get(3).is_some_and(|word| word == "timing.rs" || word == "timing");
            let text = fs::read_to_string(root.join(&path)).unwrap();
            assert_eq!(misplaced(&text, is_timing), [""; 0], "in {}", path.display());
            files += usize::from(is_timing);
        }
        assert!(files > 10, "{files} files");
    }
}
