//! `cargo xtask same-records OTHER_RDSK`: measures every built-in system with every experiment and the same seed by two
//! programs and compares their Records. A change of structure or words must leave every value as it was; this shows it.

mod changes;
mod compare;

use anyhow::{Context as _, Result, bail, ensure};
use rdsk_model::Experiment;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Paths that are shown of one pair of Records; the rest is counted.
const MAX_SHOWN: usize = 5;

/// The options of the command line.
struct Options {
    other: PathBuf,
    this: Option<PathBuf>,
    only: Option<String>,
}

/// One experiment on one simulated system.
struct Case {
    command: &'static str,
    system: &'static str,
}

impl Case {
    fn name(&self) -> String {
        format!("{} sim:{}", self.command, self.system)
    }
}

/// Compares all Records, prints a line for each, and sums up. Arguments: `OTHER_RDSK`, `--this RDSK` instead of the program
/// that is built from these sources, `--only TEXT` for the lines that contain the text.
///
/// # Errors
/// When a program cannot be built or started, or a value differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let Options { other, this, only } = parse(arguments)?;
    let this = this.map_or_else(|| crate::build::rdsk(root), Ok)?;
    let cases: Vec<Case> = cases()
        .into_iter()
        .filter(|case| only.as_ref().is_none_or(|only| case.name().contains(only)))
        .collect();
    ensure!(!cases.is_empty(), "no system and experiment contain this text");
    let (mut different, mut reworded) = (0, 0);
    for (case, compared) in cases.iter().zip(compare_all(&cases, &other, &this)) {
        let compared = compared.with_context(|| case.name())?;
        different += usize::from(!compared.values.is_empty());
        reworded += compared.words.len();
        println!("{}", describe(&case.name(), &compared));
    }
    println!(
        "{} Records compared: {different} differ in values, {reworded} texts are worded differently",
        cases.len()
    );
    ensure!(different == 0, "{different} Records have other values than before");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let (mut other, mut this, mut only) = (None, None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--this" => this = Some(PathBuf::from(value()?)),
            "--only" => only = Some(value()?.clone()),
            option if option.starts_with('-') => {
                bail!("unknown option \"{option}\"; the options are --this and --only")
            }
            path if other.is_none() => other = Some(PathBuf::from(path)),
            extra => bail!("unexpected \"{extra}\"; there is one other program"),
        }
    }
    let other = other.context("cargo xtask same-records takes the path of the other rdsk")?;
    Ok(Options { other, this, only })
}

fn cases() -> Vec<Case> {
    let command = |experiment: &Experiment| match experiment {
        Experiment::Headline => "run",
        other => other.as_str(),
    };
    rdsk_disk::NAMES
        .iter()
        .flat_map(|system| Experiment::ALL.iter().map(move |of| Case { command: command(of), system }))
        .collect()
}

/// Compares every case, several at once, and gives the answers in the order of the cases.
fn compare_all(
    cases: &[Case],
    other: &Path,
    this: &Path,
) -> impl Iterator<Item = Result<compare::Comparison>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((index, case)) =
                    cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let compared = record(other, case)
                        .and_then(|old| Ok(compare::documents(old, record(this, case)?, &changes::CHANGES)));
                    sender.send((index, compared)).expect("the receiver outlives the workers");
                }
            });
        }
    });
    drop(sender);
    let mut all: Vec<_> = receiver.into_iter().collect();
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, compared)| compared)
}

/// The Record that a program writes, with its exit code under a key of its own.
fn record(program: &Path, case: &Case) -> Result<Value> {
    let target = format!("sim:{}", case.system);
    let output = Command::new(program)
        .args([case.command, &target, "--seed", "1", "-q", "--json", "-"])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut record: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)))?;
    record["exit_code"] = output.status.code().into();
    Ok(record)
}

fn describe(name: &str, compared: &compare::Comparison) -> String {
    let words = match compared.words.len() {
        0 => String::new(),
        count => format!(", {count} texts worded differently"),
    };
    if compared.values.is_empty() {
        return format!("{name}: equal{words}");
    }
    let mut lines = vec![format!("{name}: {} values differ{words}", compared.values.len())];
    lines.extend(compared.values.iter().take(MAX_SHOWN).map(|line| format!("  {line}")));
    if let Some(more @ 1..) = compared.values.len().checked_sub(MAX_SHOWN) {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_read() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let options = parse(&words("old --only raid5 --this new")).unwrap();
        assert_eq!((options.other, options.this), (PathBuf::from("old"), Some(PathBuf::from("new"))));
        assert_eq!(options.only.as_deref(), Some("raid5"));
        for bad in ["", "old other", "old --this", "old --seed 1"] {
            assert!(parse(&words(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_system_is_measured_by_every_command() {
        let cases = cases();
        assert_eq!(cases.len(), rdsk_disk::NAMES.len() * Experiment::ALL.len());
        assert!(cases.iter().any(|case| case.name() == "run sim:raid5"));
        assert!(cases.iter().any(|case| case.name() == "stripe sim:hpux-k460"));
    }

    #[test]
    fn a_long_list_of_differences_is_cut() {
        let values = (0..MAX_SHOWN + 2).map(|n| format!("path{n}")).collect();
        let shown = describe("run sim:x", &compare::Comparison { values, words: vec!["w".to_owned()] });
        assert!(
            shown.starts_with("run sim:x: 7 values differ, 1 texts worded differently\n  path0\n"),
            "{shown}"
        );
        assert!(shown.ends_with("  path4\n  and 2 more"), "{shown}");
        let equal = compare::Comparison { values: Vec::new(), words: Vec::new() };
        assert_eq!(describe("run sim:x", &equal), "run sim:x: equal");
    }
}
