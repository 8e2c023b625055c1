//! The campaign `timing`: the tests that a busy machine can fail. They are those of every `tests/timing.rs`, run one at a time
//! over some rounds; the page has how often each passed, beside what load. It measures nothing itself.

use crate::campaign::Campaign;
use crate::{step, suite, tools};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often every test runs.
const ROUNDS: usize = 3;

/// One run of one test.
#[derive(Clone, Debug, PartialEq)]
struct TestRun {
    name: String,
    is_passed: bool,
    took: Duration,
    /// The load average over a minute at its end.
    load: f64,
    /// The first line of what it said when it failed.
    why: String,
}

/// Runs all rounds and gives the page.
///
/// # Errors
/// When there are no such tests, or cargo cannot be started.
pub(super) fn run(root: &Path, campaign: &Campaign, today: &str) -> Result<(String, ExitCode)> {
    let interrupted = step::interruption()?;
    tools::install(&interrupted)?;
    let rooms = rooms(root)?;
    let machine = machine();
    let mut outcomes: BTreeMap<(String, String), Vec<TestRun>> = BTreeMap::new();
    let mut troubles = Vec::new();
    'rounds: for round in 1..=ROUNDS {
        for room in &rooms {
            if interrupted.load(Ordering::Relaxed) {
                troubles = vec![format!("interrupted in round {round}")];
                break 'rounds;
            }
            println!("── round {round} of {ROUNDS}: {room}");
            let (seen, trouble) = run_room(root, campaign, room, &interrupted)?;
            troubles.extend(trouble.map(|trouble| format!("{room}: {trouble}")));
            for outcome in seen {
                // All of them lie in the module.
                let name = outcome.name.strip_prefix("timing::").unwrap_or(&outcome.name).to_owned();
                outcomes.entry((room.clone(), name)).or_default().push(outcome);
            }
        }
    }
    ensure!(!outcomes.is_empty(), "no test ran: {}", troubles.join("; "));
    let all_passed = troubles.is_empty() && outcomes.values().flatten().all(|outcome| outcome.is_passed);
    let code = if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Ok((draw(campaign, today, &machine, &outcomes, &troubles), code))
}

/// The rooms with a file of such tests.
fn rooms(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("crates/")? {
        let entry = entry?;
        if entry.path().join("tests/timing.rs").exists() {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// What the tests of one room gave, and why they did not end well although none failed.
fn run_room(
    root: &Path,
    campaign: &Campaign,
    room: &str,
    interrupted: &AtomicBool,
) -> Result<(Vec<TestRun>, Option<String>)> {
    let package = if room == "cli" { "rdsk".to_owned() } else { format!("rdsk-{room}") };
    let mut words = vec!["test", "--package", &package];
    words.extend(campaign.cargo.split(' '));
    let mut command = suite::cargo(root, &words);
    command.env("RDSK_MUST_HAVE", tools::must_have());
    let mut printed = Printed::new(Instant::now());
    let limit = Duration::from_secs(campaign.limit_s);
    let ending = step::run(&mut command, limit, interrupted, &mut |line| {
        println!("{line}");
        printed.line(line, Instant::now(), load());
    })?;
    let failed = printed.outcomes.iter().any(|outcome| !outcome.is_passed);
    Ok((printed.outcomes, suite::failure_of(ending).filter(|_| !failed)))
}

/// Reads what a test program prints when it runs one test at a time: a line at the end of each, then what failed ones said.
struct Printed {
    outcomes: Vec<TestRun>,
    last: Instant,
    /// The test whose words follow, and whether the next line is its message.
    speaks: Option<(String, bool)>,
}

impl Printed {
    fn new(start: Instant) -> Self {
        Self { outcomes: Vec::new(), last: start, speaks: None }
    }

    fn line(&mut self, line: &str, now: Instant, load: f64) {
        let took = now.saturating_duration_since(self.last);
        let result = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "));
        if let Some((name, result @ ("ok" | "FAILED"))) = result {
            let (name, is_passed) = (name.to_owned(), result == "ok");
            self.outcomes.push(TestRun { name, is_passed, took, load, why: String::new() });
            self.last = now;
        } else if line.starts_with("running ") {
            self.last = now;
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.speaks = Some((name.to_owned(), false));
        } else if let Some((_, is_next)) = self.speaks.as_mut().filter(|_| line.contains(" panicked at ")) {
            *is_next = true;
        } else if let Some((name, true)) = self.speaks.take_if(|(_, is_next)| *is_next) {
            let mut its = self.outcomes.iter_mut().rev();
            if let Some(outcome) = its.find(|outcome| outcome.name == name) {
                outcome.why = line.chars().filter(|letter| *letter != '|').take(120).collect();
            }
        }
    }
}

/// The load average over a minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Processors, memory and kernel in a few words.
fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |text: &str, key: &str| -> Option<String> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
    };
    let processors = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let model = value(&cpu, "model name").unwrap_or_else(|| "unknown".into());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let gib = kib.unwrap_or(0) as f64 / 1_048_576.0;
    format!("{processors} processors ({model}), {gib:.1} GiB of memory, Linux {}", release.trim())
}

fn draw(
    campaign: &Campaign,
    date: &str,
    machine: &str,
    outcomes: &BTreeMap<(String, String), Vec<TestRun>>,
    troubles: &[String],
) -> String {
    let mut page = format!(
        "# Campaign `{}`\n\nMade by `cargo xtask campaign {}` on {date}: {}.\n\n",
        campaign.name, campaign.name, campaign.about
    );
    let mut line = |text: String| writeln!(page, "{text}").expect("a String takes everything");
    let loads = || outcomes.values().flatten().map(|outcome| outcome.load);
    let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
    line(format!(
        "Machine: {machine}. Load average over a minute while the tests ran: {least:.1} to {most:.1}."
    ));
    let passed = |runs: &[TestRun]| runs.iter().filter(|outcome| outcome.is_passed).count();
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
    troubles.iter().for_each(|trouble| line(format!("**It was cut short**: {trouble}.")));
    line("\n| room | test | passed | s | load | said when it failed |\n|---|---|---:|---:|---:|---|".into());
    for ((room, name), runs) in outcomes {
        let failure = runs.iter().find(|outcome| !outcome.is_passed);
        let mut seconds: Vec<f64> = runs.iter().map(|outcome| outcome.took.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let highest = runs.iter().map(|outcome| outcome.load).fold(0.0, f64::max);
        line(format!(
            "| {room} | {name} | {} of {} | {:.1} | {:.1} | {} |",
            passed(runs),
            runs.len(),
            seconds[seconds.len() / 2],
            failure.map_or(highest, |outcome| outcome.load),
            failure.map_or("", |outcome| outcome.why.as_str())
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "#[ignore = \"timing: cargo xtask campaign timing\"]";

    #[test]
    fn results_times_and_first_words_are_read() {
        let start = Instant::now();
        let mut printed = Printed::new(start);
        let lines = [
            (0, "running 2 tests"),
            (3, "test rates::reads ... ok"),
            (5, "test zones::bands ... FAILED"),
            (5, "---- zones::bands stdout ----"),
            (5, "thread 'zones::bands' (7) panicked at crates/cli/tests/timing/zones.rs:9:5:"),
            (5, "4 | false bands"),
            (5, "note: run with RUST_BACKTRACE=1"),
            (5, "test result: FAILED. 1 passed; 1 failed; 0 ignored"),
        ];
        for (second, line) in lines {
            printed.line(line, start + Duration::from_secs(second), 1.5);
        }
        let short: Vec<_> = printed
            .outcomes
            .iter()
            .map(|one| (one.name.as_str(), one.is_passed, one.took.as_secs(), one.why.as_str()))
            .collect();
        assert_eq!(short, [("rates::reads", true, 3, ""), ("zones::bands", false, 2, "4  false bands")]);
        let outcomes = BTreeMap::from([
            (("cli".to_owned(), "reads".to_owned()), vec![printed.outcomes[0].clone()]),
            (("cli".to_owned(), "bands".to_owned()), vec![printed.outcomes[1].clone()]),
        ]);
        let page =
            draw(&crate::campaign::CAMPAIGNS[1], "2026-11-22", "2 processors", &outcomes, &["cut".into()]);
        for words in [
            "on 2026-11-22",
            "Machine: 2 processors. Load average over a minute while the tests ran: 1.5 to 1.5.",
            "2 tests, 1 times each, and 1 failed once or more.",
            "**It was cut short**: cut.",
            "| cli | bands | 0 of 1 | 2.0 | 1.5 | 4  false bands |",
            "| cli | reads | 1 of 1 | 3.0 | 1.5 |  |",
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
        let mut found = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            let words: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
            let is_timing = words.get(2).is_some_and(|word| word == "tests")
                && words.get(3).is_some_and(|word| word == "timing.rs" || word == "timing");
            let text = fs::read_to_string(root.join(&path)).unwrap();
            assert_eq!(misplaced(&text, is_timing), [""; 0], "in {}", path.display());
            found += usize::from(is_timing);
        }
        assert!(found > 10, "{found} files");
        assert!(rooms(&root).unwrap().contains(&"cli".to_owned()));
    }
}
