//! Findings on simulated systems: how often each shows something that is not there, and how often it shows what is.

use super::systems::{
    AR_90, AR_99, FLICKER, INDEPENDENT, LEVELS, LONG_STALLS, Luns, Noise, SHORT_STALLS, SINE, STEADY,
};
use super::table::{Table, percent, share};
use super::trials::{Campaign, Trial};
use anyhow::Result;
use rdsk_experiment::PlanOptions;
use rdsk_model::{Experiment, Record};
use std::ops::Range;

/// The findings about time and position.
pub(crate) const CODES: &[&str] = &[
    "drift", "slow-start", "passes-differ", "latency-bands", "speed-by-position", "fast-start", "slows-down",
    "stalls",
];
/// The largest share of runs with a false one, and the smallest with a true one.
const FALSE: f64 = 0.02;
const POWER: f64 = 0.9;

/// What is run. On a simulated disk `zones` alone reads every block in three passes, too few to differ; as on a real one it visits
/// 200 positions in ten.
const COMMANDS: [&str; 3] = ["run", "zones", "zones --runs 10"];

pub(crate) fn trial(command: &str, target: &str) -> Trial {
    if command == "run" {
        return Trial::run(target);
    }
    let runs = command.split_once("--runs ").and_then(|(_, runs)| runs.parse().ok());
    Trial {
        targets: vec![target.to_owned()],
        experiments: &[Experiment::Zones],
        options: PlanOptions { runs, ..PlanOptions::default() },
    }
}

/// Which of [`CODES`] a Record has.
pub(crate) fn codes(record: &Record) -> Vec<&'static str> {
    let has = |code: &&&str| record.findings.iter().any(|finding| finding.code == **code);
    CODES.iter().filter(has).copied().collect()
}

/// An empty table with a column for each of [`CODES`], behind those that name the trial.
pub(crate) fn table(title: &str, names: &[&str]) -> Table {
    let codes = CODES.iter().map(|code| format!("`{code}`"));
    Table::new(title, names.iter().map(|name| (*name).to_owned()).chain(["runs".to_owned()]).chain(codes))
}

/// Adds the row of runs whose findings these are: a false one may be in this share of them; one that is true of the target is shown
/// and not judged.
pub(crate) fn row(
    table: &mut Table,
    names: &[&str],
    runs: &[Vec<&'static str>],
    most: f64,
    is_true: impl Fn(&str) -> bool,
) {
    let mut row: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    row.push(runs.len().to_string());
    let mut holds = true;
    for code in CODES {
        let share = share(runs.iter().filter(|codes| codes.contains(code)).count(), runs.len());
        holds &= share <= most || is_true(code);
        row.push(format!("{}{}", percent(share), if is_true(code) { " (true)" } else { "" }));
    }
    table.row(row, Some(holds));
}

/// The noises that are stationary and have nothing to show.
const STATIONARY: [Noise; 7] = [STEADY, INDEPENDENT, AR_90, AR_99, FLICKER, LEVELS, SINE];

/// Findings that are true of a system: two levels are two speeds in time, and writes fill the fast part of a flash drive.
const TRUE: &[(&str, &str)] = &[(LEVELS.name, "latency-bands"), ("`sim:ssd-slc`", "slows-down")];

/// False findings.
pub(crate) fn false_ones(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let mut table =
        table("Runs on stationary systems with each finding, %; wanted ≤ 2 of each", &["system", "command"]);
    let mut systems: Vec<(String, String)> = Vec::new();
    for (number, noise) in STATIONARY.iter().enumerate() {
        let target = campaign.system(&format!("stationary{number}"), &Luns::memory(noise))?;
        systems.push((noise.name.to_owned(), target));
    }
    systems.extend(["ssd-slc", "tms-ramsan"].map(|name| (format!("`sim:{name}`"), format!("sim:{name}"))));
    for (name, target) in systems {
        for command in COMMANDS {
            let runs = trial(command, &target).each(campaign, seeds, codes)?;
            let is_true = |code: &str| TRUE.contains(&(name.as_str(), code));
            row(&mut table, &[&name, &format!("`{command}`")], &runs, FALSE, is_true);
        }
    }
    Ok(vec![table])
}

/// What is to be found, on which system, by which command, and by which finding.
pub(crate) struct True {
    pub(crate) what: &'static str,
    luns: Luns,
    pub(crate) command: &'static str,
    code: &'static str,
}

impl True {
    /// Whether each run finds it.
    pub(crate) fn is_found(&self, campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<bool>> {
        let target = campaign.system("true", &self.luns)?;
        trial(self.command, &target)
            .each(campaign, seeds, |record| record.findings.iter().any(|finding| finding.code == self.code))
    }
}

pub(crate) fn true_ones() -> Vec<True> {
    let stall = Noise {
        key: "pace.noise.stalls = { share = 0.1, least_ns = 10_000_000_000, most_ns = 10_000_000_000 }",
        ..LONG_STALLS
    };
    let drifting = || Luns::memory(&INDEPENDENT).with("pace.drift = { to = 0.8, over_ns = 60_000_000_000 }");
    let slowly = Luns::memory(&INDEPENDENT).with("pace.drift = { to = 0.8, over_ns = 380_000_000_000 }");
    let late = || Luns::memory(&STEADY).with("late = { share = 0.1, by_ns = 3_000_000 }");
    let step = || Luns::platter([120, 100], &STEADY);
    let system = |what, luns, command, code| True { what, luns, command, code };
    vec![
        system("a drift of 20% over 60 s, independent noise of 10%", drifting(), "run", "drift"),
        system(
            "a drift of 20% over 380 s, independent noise of 10%",
            slowly,
            "zones --runs 10",
            "passes-differ",
        ),
        system("10% of the I/Os 3 ms later", late(), "run", "latency-bands"),
        system("10% of the I/Os 3 ms later", late(), "zones", "latency-bands"),
        system("a step of 20% in the middle of a disk", step(), "run", "speed-by-position"),
        system("a step of 20% in the middle of a disk", step(), "zones", "speed-by-position"),
        system("a stall of 1 s each 10 s", Luns::memory(&stall), "run", "stalls"),
        system("stalls of 0.1 to 0.5 s each 1 to 5 s", Luns::memory(&SHORT_STALLS), "run", "stalls"),
        system("stalls of 0.5 to 2 s each 5 to 20 s", Luns::memory(&LONG_STALLS), "run", "stalls"),
    ]
}

/// True findings.
pub(crate) fn power(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["what is there", "command", "finding", "runs", "found, %", "wanted"];
    let mut table = Table::new("Runs with a true finding", head);
    for system in true_ones() {
        let runs = system.is_found(campaign, seeds)?;
        let power = share(runs.iter().filter(|is_found| **is_found).count(), runs.len());
        let [command, code] = [system.command, system.code].map(|word| format!("`{word}`"));
        let row = vec![
            system.what.to_owned(),
            command,
            code,
            runs.len().to_string(),
            percent(power),
            "≥ 90".into(),
        ];
        table.row(row, Some(power >= POWER));
    }
    Ok(vec![table])
}
