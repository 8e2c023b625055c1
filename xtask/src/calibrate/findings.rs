//! Findings on simulated systems: how often each tells of something that is not there, and how often it tells of what is.

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
    "drift",
    "slow-start",
    "passes-differ",
    "latency-bands",
    "speed-by-position",
    "fast-start",
    "slows-down",
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

/// Which of the findings a Record has.
pub(crate) fn told(record: &Record) -> Vec<bool> {
    CODES.iter().map(|code| record.findings.iter().any(|finding| finding.code == *code)).collect()
}

/// How many Records have each of the findings.
pub(crate) fn count(told: &[Vec<bool>]) -> Vec<usize> {
    (0..CODES.len()).map(|at| told.iter().filter(|one| one[at]).count()).collect()
}

fn head() -> Vec<String> {
    let codes = CODES.iter().map(|code| format!("`{code}`"));
    ["system", "command", "runs"].map(str::to_owned).into_iter().chain(codes).collect()
}

/// The noises that are stationary and have nothing to tell of.
const STATIONARY: [Noise; 7] = [STEADY, INDEPENDENT, AR_90, AR_99, FLICKER, LEVELS, SINE];

/// Findings that are true of a system: two levels are two speeds in time, and writes fill the fast part of a flash drive.
const TRUE: &[(&str, &str)] = &[(LEVELS.name, "latency-bands"), ("`sim:ssd-slc`", "slows-down")];

/// False findings. Those that are true of a system are shown and do not count.
pub(crate) fn false_ones(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let title = "Runs on stationary systems with each finding, %; wanted ≤ 2 of each";
    let mut table = Table::new(title.into(), head());
    let mut systems: Vec<(String, String)> = Vec::new();
    for (number, noise) in STATIONARY.iter().enumerate() {
        let target = campaign.system(&format!("stationary{number}"), &Luns::memory(noise))?;
        systems.push((noise.name.to_owned(), target));
    }
    systems.extend(["ssd-slc", "tms-ramsan"].map(|name| (format!("`sim:{name}`"), format!("sim:{name}"))));
    for (name, target) in systems {
        for command in COMMANDS {
            if campaign.is_interrupted() {
                return Ok(vec![table]);
            }
            let told = trial(command, &target).each(seeds.clone(), &campaign.interrupted, told)?;
            let counts = count(&told);
            let shares: Vec<f64> = counts.iter().map(|&found| share(found, told.len())).collect();
            let mut row = vec![name.clone(), format!("`{command}`"), told.len().to_string()];
            let is_true = |code: &str| TRUE.contains(&(name.as_str(), code));
            row.extend(CODES.iter().zip(&shares).map(|(code, &share)| {
                format!("{}{}", percent(share), if is_true(code) { " (true)" } else { "" })
            }));
            let mut judged = CODES.iter().zip(&shares).filter(|(code, _)| !is_true(code));
            table.row(row, Some(judged.all(|(_, share)| *share <= FALSE)));
            println!("{}", table.last_line());
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
    pub(crate) fn found(&self, campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<bool>> {
        let target = campaign.system("true", &self.luns)?;
        trial(self.command, &target).each(seeds.clone(), &campaign.interrupted, |record| {
            record.findings.iter().any(|finding| finding.code == self.code)
        })
    }
}

pub(crate) fn true_ones() -> Vec<True> {
    let stall = Noise {
        keys: &["pace.noise.stalls = { share = 0.1, least_ns = 10_000_000_000, most_ns = 10_000_000_000 }"],
        ..LONG_STALLS
    };
    let drifting = || Luns::memory(&INDEPENDENT).with("pace.drift = { to = 0.8, over_ns = 60_000_000_000 }");
    let slowly = Luns::memory(&INDEPENDENT).with("pace.drift = { to = 0.8, over_ns = 380_000_000_000 }");
    let late = || Luns::memory(&STEADY).with("late = { share = 0.1, by_ns = 3_000_000 }");
    let step = || Luns::platter([110, 100], &STEADY);
    let one = |what, luns, command, code| True { what, luns, command, code };
    vec![
        one("a drift of 20 % over 60 s, independent noise of 10 %", drifting(), "run", "drift"),
        one(
            "a drift of 20 % over 380 s, independent noise of 10 %",
            slowly,
            "zones --runs 10",
            "passes-differ",
        ),
        one("10 % of the I/Os 3 ms later", late(), "run", "latency-bands"),
        one("10 % of the I/Os 3 ms later", late(), "zones", "latency-bands"),
        one("a step of 10 % in the middle of a disk", step(), "run", "speed-by-position"),
        one("a step of 10 % in the middle of a disk", step(), "zones", "speed-by-position"),
        one("a stall of 1 s each 10 s", Luns::memory(&stall), "run", "stalls"),
        one("stalls of 0.1 to 0.5 s each 1 to 5 s", Luns::memory(&SHORT_STALLS), "run", "stalls"),
        one("stalls of 0.5 to 2 s each 5 to 20 s", Luns::memory(&LONG_STALLS), "run", "stalls"),
    ]
}

/// True findings.
pub(crate) fn power(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let head = ["what is there", "command", "finding", "runs", "found, %", "wanted"];
    let mut table = Table::new("Runs that tell of what is there".into(), head.map(str::to_owned).to_vec());
    for one in true_ones() {
        if campaign.is_interrupted() {
            break;
        }
        let told = one.found(campaign, seeds)?;
        let found = told.iter().filter(|told| **told).count();
        let power = share(found, told.len());
        table.row(
            vec![
                one.what.to_owned(),
                format!("`{}`", one.command),
                format!("`{}`", one.code),
                told.len().to_string(),
                percent(power),
                "≥ 90".into(),
            ],
            Some(power >= POWER),
        );
        println!("{}", table.last_line());
    }
    Ok(vec![table])
}
