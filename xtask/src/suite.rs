//! Everything that must pass before a change is good: tools, fmt, clippy, build, test, doc, each with a time limit, and a
//! summary that shows every skip. A failed step does not prevent the next one, unless that depends on it.

mod side_by_side;
mod test_programs;
mod unchanged;

pub(crate) use test_programs::BUILT;

use crate::step::{self, Ending};
use crate::test_counts::TestCounts;
use crate::{options, tools};
use anyhow::Context;
use side_by_side::Ended;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unchanged::Passed;

/// How to treat a skip because of something that could have been installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// A line in the summary.
    MaySkip,
    /// A failure: the build server promises root and the installed programs.
    InstallableMustRun,
}

impl Strictness {
    /// Strict where the variable `CI` says `true` or `1`.
    pub(crate) fn from_environment() -> Self {
        match std::env::var("CI").as_deref() {
            Ok("true" | "1") => Self::InstallableMustRun,
            _ => Self::MaySkip,
        }
    }
}

/// Which test programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    All,
    /// Those that changed since they passed.
    Changed,
}

/// When a step is run of which the arguments say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    /// What a compiler checks beside the tests would build the workspace again in another way, which a developer does not wait
    /// for; nothing lands without it.
    InCi,
}

/// The steps in their order: name, when, the arguments of each call of cargo where the step is nothing else, longest time of a call in
/// seconds.
const STEPS: &[(&str, When, &[&[&str]], u64)] = &[
    ("tools", When::Always, &[], 0),
    ("fmt", When::Always, &[&["fmt", "--all", "--check"]], 120),
    ("bpf", When::InCi, &[&["xtask", "bpf", "--check"]], 600),
    ("schema", When::InCi, &[&["xtask", "schema", "--check"]], 600),
    ("build", When::Always, &[&["test", "--workspace", "--features", ALL_TASKS, "--no-run"]], 1800),
    // Not by cargo, which would run one test program after the other.
    ("test", When::Always, &[], 1800),
    (
        "clippy",
        When::InCi,
        &[&["clippy", "--workspace", "--all-targets", "--features", ALL_CODE, "--", "-D", "warnings"]],
        1800,
    ),
    // The program for mpirun, and a run of four ranks; `cargo xtask campaign mpi` has more.
    (
        "mpi",
        When::InCi,
        &[
            &["clippy", "--workspace", "--all-targets", "--features", ALL_WITH_MPI, "--", "-D", "warnings"],
            &[
                "test", "--workspace", "--features", TASKS_WITH_MPI, "--bin", "rdsk", "--test", "it",
                "ranks::",
            ],
        ],
        1800,
    ),
    ("doc", When::InCi, &[&["doc", "--no-deps", "--workspace", "--features", ALL_CODE]], 900),
];

/// The tests of the tasks that measure are run, too.
const ALL_TASKS: &str = "xtask/measure";
/// What a compiler only looks at.
const ALL_CODE: &str = "xtask/measure,xtask/schema";
/// The same with what only the program for mpirun has. All else is built already.
const ALL_WITH_MPI: &str = "xtask/measure,xtask/schema,rdsk/mpi";
const TASKS_WITH_MPI: &str = "xtask/measure,rdsk/mpi";

/// Programs that the summary names as the slowest.
const SLOWEST: usize = 10;

/// The result of one step.
struct Done {
    name: &'static str,
    failure: Option<String>,
    took: Duration,
}

/// Runs the chosen steps, prints the summary, and ends with the line that counts the tests. The code is that of the
/// whole: a failure when any step failed.
///
/// # Errors
/// When a step could not be started, or the arguments name no step.
pub(crate) fn run(root: &Path, arguments: &[String], strictness: Strictness) -> anyhow::Result<ExitCode> {
    let (arguments, scope) = scope(arguments, strictness);
    let chosen = chosen(&arguments, strictness)?;
    let interrupted = step::interruption()?;
    let mut tested: Option<Tested> = None;
    let mut done: Vec<Done> = Vec::new();
    for &(name, _, calls, limit_s) in STEPS {
        if !chosen.contains(&name) || interrupted.load(Ordering::Relaxed) {
            continue;
        }
        println!("── {name}");
        let start = Instant::now();
        let limit = Duration::from_secs(limit_s);
        let failure = match name {
            "tools" => install(strictness, &interrupted)?,
            "test" if done.iter().any(|step| step.name == "build" && step.failure.is_some()) => {
                Some("not run, because the build failed".to_owned())
            }
            "test" => match tests(root, limit, &interrupted, (strictness, scope)) {
                Ok(totals) => tested.insert(totals).trouble.clone(),
                Err(error) => Some(format!("{error:#}")),
            },
            _ => call_all(root, calls, (limit, strictness), &interrupted)?,
        };
        done.push(Done { name, failure, took: start.elapsed() });
    }
    if interrupted.load(Ordering::Relaxed) {
        done.push(Done { name: "rest", failure: Some("interrupted".into()), took: Duration::ZERO });
    }
    Ok(summary(&done, &tested.unwrap_or_default(), strictness))
}

/// Makes calls of cargo until one fails, and says why it did.
///
/// # Errors
/// When cargo cannot be started.
fn call_all(
    root: &Path,
    calls: &[&[&str]],
    (limit, strictness): (Duration, Strictness),
    interrupted: &AtomicBool,
) -> anyhow::Result<Option<String>> {
    for arguments in calls {
        let mut command = cargo(root, arguments);
        command.env("RUSTDOCFLAGS", "-D warnings").envs(must_have(strictness));
        let ending = step::run(&mut command, limit, interrupted, &mut |line| println!("{line}"))?;
        if let Some(why) = failure_of(ending) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// The variable by which tests that lack something installable fail, where they must run.
fn must_have(strictness: Strictness) -> Option<(&'static str, String)> {
    let is_strict = strictness == Strictness::InstallableMustRun;
    (is_strict && std::env::var_os("RDSK_MUST_HAVE").is_none())
        .then(|| ("RDSK_MUST_HAVE", tools::must_have()))
}

fn summary(done: &[Done], tested: &Tested, strictness: Strictness) -> ExitCode {
    println!("── summary");
    for step in done {
        let outcome = step.failure.as_deref().map_or_else(|| "ok".to_owned(), |why| format!("FAILED: {why}"));
        println!("{:<8} {:>6.1} s  {outcome}", step.name, step.took.as_secs_f64());
    }
    if !tested.slowest.is_empty() {
        println!("slowest test programs ({} at a time):", side_by_side::LANES);
        tested.slowest.iter().for_each(|(name, took)| println!("  {:>6.1} s  {name}", took.as_secs_f64()));
    }
    let mut counts = tested.counts.clone();
    let tests_failed = done.iter().any(|step| step.name == "test" && step.failure.is_some());
    if tests_failed && counts.failed == 0 {
        // Tests that were never built say nothing of themselves; that is a failure, not silence.
        counts.failed = 1;
    }
    if !counts.failures.is_empty() {
        println!("failed tests:");
        counts.failures.iter().for_each(|name| println!("  {name}"));
    }
    if !tested.skips.is_empty() {
        println!("skipped aloud:");
        tested.skips.iter().for_each(|line| println!("  {line}"));
        if strictness == Strictness::InstallableMustRun {
            println!(
                "  (each for what this kernel does not offer; what can be installed is not skipped here)"
            );
        }
    }
    if counts.ignored > 0 {
        println!("marked #[ignore], so run by a campaign, by other tests or by hand: {}", counts.ignored);
    }
    if let (programs @ 1.., tests) = tested.unchanged {
        println!(
            "unchanged since they passed, so not run again: {tests} tests of {programs} programs (--all runs them)"
        );
    }
    let failed: Vec<&str> = done.iter().filter(|step| step.failure.is_some()).map(|step| step.name).collect();
    if !failed.is_empty() {
        println!("failed steps: {}", failed.join(", "));
    }
    // The last line, alone, so that scripts find it.
    if done.iter().any(|step| step.name == "test") {
        println!("{}", counts.totals(&tested.skips));
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What the tests of the whole workspace came to.
#[derive(Clone, Debug, Default)]
struct Tested {
    counts: TestCounts,
    /// The lines of tests that skipped themselves.
    skips: Vec<String>,
    /// Why they failed as a whole, if they did.
    trouble: Option<String>,
    /// The programs that took longest, the longest first.
    slowest: Vec<(String, Duration)>,
    /// Programs that were left out, unchanged since they passed, and their tests.
    unchanged: (usize, u64),
}

/// Builds the tests where that is necessary, and runs them side by side, all within `limit`.
///
/// # Errors
/// When they cannot be built, or the file of skips not be made.
fn tests(
    root: &Path,
    limit: Duration,
    interrupted: &AtomicBool,
    (strictness, scope): (Strictness, Scope),
) -> anyhow::Result<Tested> {
    let deadline = Instant::now() + limit;
    let programs = test_programs::build(root, limit, interrupted)?;
    let mut passed = Passed::load(root, &programs, &tools::state());
    let (unchanged, programs): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| scope == Scope::Changed && passed.tests(program).is_some());
    let skips_path = fresh_skips_file(root)?;
    // No cargo starts them, so what .cargo/config.toml says is said here, too.
    let mut variables =
        vec![("RDSK_SKIPS", skips_path.display().to_string()), ("RDSK_HISTORY", String::new())];
    variables.extend(must_have(strictness));
    println!("{} test programs, {} at a time", programs.len(), side_by_side::LANES);
    let left = deadline.saturating_duration_since(Instant::now());
    let ended = side_by_side::run(programs, &variables, left, interrupted, &|ended, lines| {
        println!("── {}: {:.1} s", ended.name, ended.took.as_secs_f64());
        lines.iter().for_each(|line| println!("{line}"));
    });
    for program in &ended {
        passed.note(&program.name, program.failure.is_none().then_some(program.counts.passed));
    }
    passed.store()?;
    let tests = unchanged.iter().filter_map(|program| passed.tests(program)).sum();
    Ok(Tested { unchanged: (unchanged.len(), tests), ..sum_up(&ended, read_lines(&skips_path)) })
}

fn sum_up(ended: &[Ended], skips: Vec<String>) -> Tested {
    let mut tested = Tested { skips, ..Tested::default() };
    for program in ended {
        tested.counts.add(&program.name, &program.counts, program.failure.as_deref());
    }
    let failed = ended.iter().filter(|program| program.failure.is_some()).count();
    tested.trouble = (failed > 0).then(|| format!("{failed} of {} programs failed", ended.len()));
    tested.slowest = ended.iter().map(|program| (program.name.clone(), program.took)).collect();
    tested.slowest.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    tested.slowest.truncate(SLOWEST);
    tested
}

/// Installs programs and the toolchain's own parts. Without them tests are skipped, and in strict runs they fail by
/// themselves; a step that fails here says it earlier and once.
///
/// # Errors
/// When apt cannot be started.
fn install(strictness: Strictness, interrupted: &AtomicBool) -> anyhow::Result<Option<String>> {
    let lacking = tools::install(interrupted)?;
    if lacking.is_empty() {
        println!("everything that the tests call is installed");
        return Ok(None);
    }
    println!("tests that need one of these are skipped:");
    lacking.iter().for_each(|line| println!("  {line}"));
    Ok((strictness == Strictness::InstallableMustRun)
        .then(|| format!("{} programs are missing", lacking.len())))
}

/// What is tested, and the arguments without the word that says it. Where everything must run, it does.
fn scope(arguments: &[String], strictness: Strictness) -> (Vec<String>, Scope) {
    let others: Vec<String> = arguments.iter().filter(|word| *word != "--all").cloned().collect();
    let is_all = others.len() < arguments.len() || strictness == Strictness::InstallableMustRun;
    (others, if is_all { Scope::All } else { Scope::Changed })
}

fn chosen(arguments: &[String], strictness: Strictness) -> anyhow::Result<Vec<&'static str>> {
    let (words, options) = options::parse(arguments, &["--only"])?;
    anyhow::ensure!(
        words.is_empty(),
        "unknown argument \"{}\"; there are --only STEP[,STEP] and --all",
        words.join(" ")
    );
    let mut chosen = Vec::new();
    for name in options.get("--only").iter().flat_map(|list| list.split(',')) {
        let step = STEPS.iter().find(|(step, ..)| *step == name);
        let names = || STEPS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        chosen.push(step.with_context(|| format!("\"{name}\" is no step; steps are {}", names()))?.0);
    }
    if chosen.contains(&"test") {
        // Built first, under the build's time limit, so that the tests' limit is for tests.
        chosen.push("build");
    }
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let is_due = |when: When| when == When::Always || strictness == Strictness::InstallableMustRun;
    Ok(STEPS.iter().filter(|(_, when, ..)| is_due(*when)).map(|(name, ..)| *name).collect())
}

/// The cargo that started us, or the one of the search path.
pub(crate) fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}

/// A cargo with these arguments.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_program());
    command.args(arguments).current_dir(root);
    without_words_of_cargo(&mut command);
    command
}

/// The child does not inherit what the cargo that started us said about us: that would rebuild what looks at it.
pub(crate) fn without_words_of_cargo(command: &mut Command) {
    command.env("PATH", tools::search_path());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") || text == "OUT_DIR" {
            command.env_remove(&name);
        }
    }
}

pub(crate) fn failure_of(ending: Ending) -> Option<String> {
    match ending {
        Ending::Succeeded => None,
        Ending::Failed(status) => Some(status.to_string()),
        Ending::TimedOut(limit) => Some(format!("not finished after {} s, so it was ended", limit.as_secs())),
        Ending::Interrupted => Some("interrupted".into()),
    }
}

/// The file that tests append their skips to, empty.
fn fresh_skips_file(root: &Path) -> anyhow::Result<PathBuf> {
    let path = root.join("target").join(format!("skips-{}.txt", std::process::id()));
    crate::write(&path, "")?;
    Ok(path)
}

/// The lines of the file of skips, sorted, each once; the file is removed.
fn read_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // A file left behind is harmless: it lies in the build directory and no later run reads it.
    let _ = fs::remove_file(path);
    let lines: BTreeSet<&str> = text.lines().collect();
    lines.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(arguments: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        chosen(
            &arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>(),
            Strictness::MaySkip,
        )
    }

    fn done(name: &'static str, failure: Option<&str>) -> Done {
        Done { name, failure: failure.map(str::to_owned), took: Duration::from_secs(1) }
    }

    #[test]
    fn steps_are_chosen_by_name() {
        assert_eq!(only(&[]).unwrap(), ["tools", "fmt", "build", "test"]);
        assert_eq!(chosen(&[], Strictness::InstallableMustRun).unwrap().len(), STEPS.len());
        assert_eq!(only(&["--only", "fmt,doc"]).unwrap(), vec!["fmt", "doc"]);
        assert_eq!(only(&["--only=clippy,fmt"]).unwrap(), vec!["clippy", "fmt"]);
        assert_eq!(only(&["--only", "test"]).unwrap(), vec!["test", "build"]);
        for bad in [&["--only"][..], &["--only", "nothing"], &["fmt"], &["--only", ""]] {
            assert!(only(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_passed_is_run_again_when_asked_for_and_on_the_build_server() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let scope = |given: &[&str], strictness| scope(&words(given), strictness);
        let fmt = words(&["--only", "fmt"]);
        assert_eq!(scope(&["--only", "fmt"], Strictness::MaySkip), (fmt.clone(), Scope::Changed));
        assert_eq!(scope(&["--all", "--only", "fmt"], Strictness::MaySkip), (fmt, Scope::All));
        assert_eq!(scope(&[], Strictness::InstallableMustRun), (Vec::new(), Scope::All));
    }

    #[test]
    fn any_failed_step_fails_the_whole() {
        let good = [done("fmt", None), done("test", None)];
        assert_eq!(summary(&good, &Tested::default(), Strictness::MaySkip), ExitCode::SUCCESS);
        let bad = [done("fmt", Some("exit status: 1")), done("test", None)];
        assert_eq!(summary(&bad, &Tested::default(), Strictness::MaySkip), ExitCode::FAILURE);
    }

    #[test]
    fn tests_are_summed_up_over_programs() {
        let ended: Vec<Ended> = (0..12)
            .map(|seconds| Ended {
                name: format!("p{seconds}"),
                took: Duration::from_secs(seconds),
                counts: TestCounts { passed: 2, ..TestCounts::default() },
                failure: (seconds == 3).then(|| "exit status: 101".to_owned()),
            })
            .collect();
        let tested = sum_up(&ended, vec!["SKIPPED a: x".into()]);
        assert_eq!((tested.counts.passed, tested.counts.failed), (24, 1));
        assert_eq!(tested.counts.failures, ["p3: exit status: 101"]);
        assert_eq!(tested.trouble.as_deref(), Some("1 of 12 programs failed"));
        assert_eq!((tested.slowest.len(), tested.slowest[0].0.as_str()), (SLOWEST, "p11"));
        assert_eq!(sum_up(&ended[..3], Vec::new()).trouble, None);
    }

    #[test]
    fn skips_are_read_once_each() {
        let scratch = tempfile::tempdir().unwrap();
        let path = fresh_skips_file(scratch.path()).unwrap();
        fs::write(&path, "SKIPPED b: x\nSKIPPED a: y\nSKIPPED b: x\n").unwrap();
        assert_eq!(read_lines(&path), vec!["SKIPPED a: y", "SKIPPED b: x"]);
        assert!(!path.exists());
    }

    #[test]
    fn time_limits_are_set_for_every_child() {
        assert!(STEPS.iter().all(|(name, .., limit_s)| *name == "tools" || *limit_s > 0));
    }
}
