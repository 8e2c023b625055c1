//! The campaign `timing`: the tests that a busy machine can fail. They are those of every `tests/timing.rs`, run one at a time
//! over some rounds, each as a process of its own; the page has how often each passed, beside what load. It measures nothing
//! itself.

use crate::campaign::{Campaign, head};
use crate::suite::TestProgram;
use crate::{origin, step, suite, tools};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often every test runs.
const ROUNDS: usize = 3;
/// What the names of their programs end with.
const FILE: &str = " --test it timing::";

/// One run of one test.
#[derive(Clone, Debug, PartialEq)]
struct TestRun {
    is_passed: bool,
    took: Duration,
    /// The load average over a minute at its end.
    load: f64,
    /// The first line of what it said when it failed.
    why: String,
}

/// The runs of each test, by its program and name.
type Outcomes = BTreeMap<(String, String), Vec<TestRun>>;

/// Runs all rounds and gives the page.
///
/// # Errors
/// When there are no such tests, the programs cannot be built or started, or at an interruption.
pub(super) fn run(root: &Path, campaign: &Campaign) -> Result<(String, ExitCode)> {
    let interrupted = step::interruption()?;
    tools::install(&interrupted)?;
    let limit = Duration::from_secs(campaign.limit_s);
    let mut programs = suite::build_tests(root, limit, &interrupted)?;
    programs.retain(|program| program.name.ends_with(FILE));
    let mut outcomes = Outcomes::new();
    for round in 1..=ROUNDS {
        for program in &programs {
            let room = program.name.trim_end_matches(FILE);
            println!("── round {round} of {ROUNDS}: {room}");
            for (name, mut command) in tests(program) {
                let run = run_test(&mut command, limit, &interrupted)?;
                ensure!(!interrupted.load(Ordering::Relaxed), "interrupted in round {round}");
                println!("{name}: {}", if run.is_passed { "passed" } else { &run.why });
                outcomes.entry((room.to_owned(), name)).or_default().push(run);
            }
        }
    }
    ensure!(!outcomes.is_empty(), "there are no such tests");
    let is_passed = outcomes.values().flatten().all(|run| run.is_passed);
    let code = if is_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok((draw(&head(campaign)?, &origin::machine(), &outcomes), code))
}

/// Each test of a program by its name in the file, with the command that runs it alone.
fn tests(program: &TestProgram) -> impl Iterator<Item = (String, Command)> {
    program.each_test().map(|(name, mut command)| {
        command.arg("--ignored").env("RDSK_MUST_HAVE", tools::must_have()).env("RDSK_HISTORY", "");
        (name.trim_start_matches("timing::").to_owned(), command)
    })
}

fn run_test(command: &mut Command, limit: Duration, interrupted: &AtomicBool) -> Result<TestRun> {
    let start = Instant::now();
    let mut lines = Vec::new();
    let ending = step::run_with_errors(command, limit, interrupted, &mut |line| lines.push(line.to_owned()))?;
    let failure = suite::failure_of(ending);
    let why = failure.clone().map_or_else(String::new, |failure| message(&lines).unwrap_or(failure));
    Ok(TestRun { is_passed: failure.is_none(), took: start.elapsed(), load: load()?, why })
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

fn draw(head: &str, machine: &str, outcomes: &Outcomes) -> String {
    let mut page = head.to_owned();
    let mut line = |text: String| writeln!(page, "{text}").expect("a String takes everything");
    let loads = || outcomes.values().flatten().map(|run| run.load);
    let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
    line(format!(
        "Machine: {machine}. Load average over a minute while the tests ran: {least:.1} to {most:.1}."
    ));
    let passed = |runs: &[TestRun]| runs.iter().filter(|run| run.is_passed).count();
    let failed = outcomes.values().filter(|runs| passed(runs) < runs.len()).count();
    let verdict = if failed == 0 {
        "and all passed each time".to_owned()
    } else {
        format!("and {failed} failed once or more")
    };
    line(format!(
        "{} tests, {} times each, {verdict}. Where one failed, the load is that of its failure.",
        outcomes.len(),
        outcomes.values().map(Vec::len).max().unwrap_or(0)
    ));
    line("\n| room | test | passed | s | load | said when it failed |\n|---|---|---:|---:|---:|---|".into());
    for ((room, name), runs) in outcomes {
        let failure = runs.iter().find(|run| !run.is_passed);
        let mut seconds: Vec<f64> = runs.iter().map(|run| run.took.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let highest = runs.iter().map(|run| run.load).fold(0.0, f64::max);
        line(format!(
            "| {room} | {name} | {} of {} | {:.1} | {:.1} | {} |",
            passed(runs),
            runs.len(),
            seconds[seconds.len() / 2],
            failure.map_or(highest, |run| run.load),
            failure.map_or("", |run| run.why.as_str())
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "#[ignore = \"timing: cargo xtask campaign timing\"]";

    #[test]
    fn a_failed_test_is_quoted_and_a_page_has_every_test() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_test(&mut command, Duration::from_secs(200), &AtomicBool::new(false)).unwrap()
        };
        let good = shell("echo 'test a ... ok'");
        assert!(good.is_passed && good.why.is_empty(), "{good:?}");
        let bad = shell(
            "echo \"thread 'bands' (7) panicked at zones.rs:9:5:\" >&2; echo '4 | false bands'; exit 101",
        );
        assert_eq!((bad.is_passed, bad.why.as_str()), (false, "4  false bands"));
        assert_eq!(shell("exit 101").why, "exit status: 101");
        let run = |is_passed, s, why: &str| {
            vec![TestRun { is_passed, took: Duration::from_secs(s), load: 1.5, why: why.to_owned() }]
        };
        let outcomes = Outcomes::from([
            (("rdsk".to_owned(), "reads".to_owned()), run(true, 3, "")),
            (("rdsk".to_owned(), "bands".to_owned()), run(false, 2, "4  false bands")),
        ]);
        let page = draw("# Campaign\n", "2 processors", &outcomes);
        for words in [
            "# Campaign\nMachine: 2 processors. Load average over a minute while the tests ran: 1.5 to 1.5.",
            "2 tests, 1 times each, and 1 failed once or more.",
            "| rdsk | bands | 0 of 1 | 2.0 | 1.5 | 4  false bands |",
            "| rdsk | reads | 1 of 1 | 3.0 | 1.5 |  |",
        ] {
            assert!(page.contains(words), "no {words:?} in {page}");
        }
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
