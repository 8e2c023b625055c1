//! What differs between runs beside their figures: target, host, program, settings. It says what, and never that this is why.

use rdsk_model::{Device, Host, Record, Target, TargetKind, without_output};
use rdsk_units::{Bytes, grouped};
use std::collections::BTreeSet;

/// A fact that is not the same in all runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What it is: `scheduler`, `kernel`; with `target 1: ` before it where the runs have several targets.
    pub what: String,
    /// What each run has, in their order; `None` where it is not known.
    pub values: Vec<Option<String>>,
}

/// Facts of a run.
type OfRun = (&'static str, fn(&Record) -> Option<String>);
/// Facts of a target.
type OfTarget = (&'static str, fn(&Target) -> Option<String>);

const RUN: &[OfRun] = &[
    ("kind", |run| Some(if run.simulated_ns.is_some() { "simulated" } else { "real" }.into())),
    ("label", |run| run.label.clone()),
    ("rdsk version", |run| Some(run.rdsk_version.clone())),
    ("kernel", |run| Some(run.host.as_ref()?.kernel.clone())),
    ("processor", |run| run.host.as_ref()?.cpu_model.clone()),
    ("processors", |run| Some(run.host.as_ref()?.cpu_count.to_string())),
    ("memory", |run| host(run)?.memory_bytes.map(|bytes| Bytes(bytes).approx())),
    ("virtualization", |run| host(run)?.virtualization.clone()),
    ("evidence", |run| Some(run.observer.source.to_string())),
    ("status", |run| Some(run.status.to_string())),
    ("targets", |run| Some(run.targets.len().to_string())),
];

const TARGET: &[OfTarget] = &[
    ("name", |target| Some(target.name.clone())),
    ("kind of target", |target| {
        let made = if target.made_by_rdsk { "test file" } else { "file" };
        Some(if target.kind == TargetKind::File { made.into() } else { target.kind.to_string() })
    }),
    ("size", |target| Some(size(target.size_bytes))),
    ("filesystem", |target| Some(target.filesystem.as_ref()?.kind.clone())),
    ("device", |target| Some(device(target)?.name.clone())),
    ("kind of device", |target| device(target)?.kind.clone()),
    ("model", |target| device(target)?.model.clone()),
    ("firmware", |target| device(target)?.firmware.clone()),
    ("serial", |target| device(target)?.serial.clone()),
    ("size of the device", |target| device(target)?.size_bytes.map(size)),
    ("stack", |target| Some(target.stack.join(" → ")).filter(|stack| !stack.is_empty())),
    ("logical block", |target| device(target)?.logical_block_bytes.map(size)),
    ("physical block", |target| device(target)?.physical_block_bytes.map(size)),
    ("largest request", |target| device(target)?.max_request_bytes.map(size)),
    ("rotational", |target| device(target)?.rotational.map(|is| yes(is).into())),
    ("write cache", |target| device(target)?.write_cache.clone()),
    ("FUA", |target| device(target)?.fua.map(|has| yes(has).into())),
    ("scheduler", |target| device(target)?.scheduler.clone()),
    ("backing file", |target| device(target)?.backing_file.clone()),
    ("direct I/O of the loop device", |target| device(target)?.loop_direct_io.map(|is| yes(is).into())),
    ("array", |target| {
        let array = device(target)?.array.as_ref()?;
        let members = array.members.map_or(String::new(), |count| format!(" of {count}"));
        Some(format!("{}{members}", array.level.as_deref().unwrap_or("array")))
    }),
    ("activity of the array", |target| device(target)?.array.as_ref()?.activity.clone()),
    ("missing members", |target| Some(device(target)?.array.as_ref()?.degraded?.to_string())),
];

fn host(run: &Record) -> Option<&Host> {
    run.host.as_ref()
}

fn device(target: &Target) -> Option<&Device> {
    target.device.as_ref()
}

fn size(bytes: u64) -> String {
    format!("{} ({})", Bytes(bytes).approx(), grouped(bytes))
}

const fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// The facts that are not the same in all of these runs: first those of the runs, then those of each target, and the words of
/// the command line that not all have.
pub fn differences(runs: &[&Record]) -> Vec<Difference> {
    let mut differences: Vec<Difference> = Vec::new();
    let mut add = |what: String, values: Vec<Option<String>>| {
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            differences.push(Difference { what, values });
        }
    };
    for (what, fact) in RUN {
        add((*what).into(), runs.iter().map(|run| fact(run)).collect());
    }
    let targets = runs.iter().map(|run| run.targets.len()).max().unwrap_or(0);
    for index in 0..targets {
        let in_each_run = |fact: &dyn Fn(&Target) -> Option<String>| -> Vec<Option<String>> {
            runs.iter().map(|run| run.targets.get(index).and_then(fact)).collect()
        };
        let lead = if targets > 1 { format!("target {index}: ") } else { String::new() };
        for (what, fact) in TARGET {
            add(format!("{lead}{what}"), in_each_run(fact));
        }
        let options = in_each_run(&|target| Some(target.filesystem.as_ref()?.options.clone()));
        add(format!("{lead}mount options"), own_words(&options, ','));
    }
    let commands: Vec<Option<String>> = runs.iter().map(|run| Some(command(run))).collect();
    add("command line".into(), own_words(&commands, ' '));
    differences
}

/// The words of a command line that shape what is measured: not the program, its targets, or where the answer goes; nor the seed,
/// which runs in turn are given.
fn command(run: &Record) -> String {
    let words: Vec<&str> = without_output(run.command.get(1..).unwrap_or_default());
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        let is_target = run.targets.iter().any(|target| target.name == word);
        match word {
            "--seed" => drop(rest.next()),
            word if is_target || word.starts_with("--seed=") => {}
            word => kept.push(word),
        }
    }
    kept.join(" ")
}

/// Of each text the words that not all others have; `None` where nothing is left.
fn own_words(texts: &[Option<String>], separator: char) -> Vec<Option<String>> {
    let words = |text: &Option<String>| -> Vec<String> {
        text.iter()
            .flat_map(|text| text.split(separator))
            .filter(|word| !word.is_empty())
            .map(String::from)
            .collect()
    };
    let sets: Vec<BTreeSet<String>> = texts.iter().map(|text| words(text).into_iter().collect()).collect();
    let is_common = |word: &String| sets.iter().all(|set| set.contains(word));
    let own = |text: &Option<String>| {
        let own: Vec<String> = words(text).into_iter().filter(|word| !is_common(word)).collect();
        (!own.is_empty()).then(|| own.join(&separator.to_string()))
    };
    texts.iter().map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, record};
    use rdsk_model::Filesystem;

    fn run() -> Record {
        record("2026-03-01T10:00:00Z", vec![cell("a")])
    }

    fn differences_after(change: impl FnOnce(&mut Record)) -> Vec<(String, Vec<Option<String>>)> {
        let (base, mut other) = (run(), run());
        change(&mut other);
        let differing = differences(&[&base, &other]);
        differing.into_iter().map(|difference| (difference.what, difference.values)).collect()
    }

    #[test]
    fn the_same_run_differs_in_nothing() {
        assert_eq!(differences_after(|run| run.id = "another".into()), []);
    }

    #[test]
    fn what_was_changed_is_named_with_both_values() {
        let scheduler = differences_after(|run| {
            run.targets[0].device.as_mut().unwrap().scheduler = Some("none".into());
        });
        assert_eq!(scheduler[0].0, "scheduler");
        assert_eq!(scheduler[0].1[1].as_deref(), Some("none"));
        let facts = differences_after(|run| {
            run.simulated_ns = Some(1);
            run.rdsk_version = "9".into();
            run.host.as_mut().unwrap().kernel = "7.0".into();
            run.targets[0].size_bytes = 4096;
        });
        let names: Vec<&str> = facts.iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(names, ["kind", "rdsk version", "kernel", "size"]);
    }

    #[test]
    fn of_long_lists_only_the_words_that_differ_are_shown() {
        let (mut base, mut other) = (run(), run());
        for (run, options) in [(&mut base, "rw,relatime,barrier=1"), (&mut other, "rw,noatime,barrier=1")] {
            run.targets[0].filesystem = Some(Filesystem { kind: "ext4".into(), options: options.into() });
        }
        base.command = ["rdsk", "run", "/dev/sda", "--json", "a.json"].map(String::from).into();
        other.command =
            ["rdsk", "run", "/dev/sda", "--budget", "20s", "--json", "b.json"].map(String::from).into();
        let differing = differences(&[&base, &other]);
        assert_eq!(differing[0].values, [Some("relatime".into()), Some("noatime".into())]);
        assert_eq!(
            (differing[1].what.as_str(), &differing[1].values),
            ("command line", &vec![None, Some("--budget 20s".into())])
        );
        assert_eq!(differing.len(), 2);
    }

    #[test]
    fn where_the_answer_goes_is_no_difference() {
        let differ = |other: &str| {
            let words = |line: &str| line.split(' ').map(String::from).collect();
            let base = Record { command: words("rdsk run /dev/sda"), ..run() };
            let other = Record { command: words(other), ..run() };
            differences(&[&base, &other])
        };
        for other in [
            "rdsk run /dev/sda -q --report b.html --seed 7",
            "rdsk run --markdown=b.md --csv b.csv --openmetrics b.prom /dev/sda --no-history",
            "rdsk run /dev/sda --history h.db --color never --ascii --details --label x",
        ] {
            assert_eq!(differ(other), [], "{other}");
        }
        assert_eq!(differ("rdsk run /dev/sda --rw read")[0].values[1].as_deref(), Some("--rw read"));
    }

    #[test]
    fn several_targets_are_numbered() {
        let (mut base, mut other) = (run(), run());
        for run in [&mut base, &mut other] {
            let second = Target { index: 1, ..run.targets[0].clone() };
            run.targets.push(second);
        }
        other.targets[1].size_bytes = 512;
        let differing = differences(&[&base, &other]);
        assert_eq!(differing.iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), ["target 1: size"]);
    }
}
