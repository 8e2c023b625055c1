//! `cargo xtask calibrate`: whether what rdsk says at 95 % is right 95 times in 100. Trials with a known truth, on simulated
//! noise and on files and loop devices of its own, are counted and written to docs/calibration.md, part by part. It judges by
//! the figures that are wanted, and changes nothing but that page.

mod compare;
mod coverage;
mod equal;
mod findings;
mod page;
mod real;
mod systems;
mod table;
#[cfg(test)]
mod tests;
mod trials;

use crate::{options, origin, step};
use anyhow::{Context as _, Result, ensure};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use table::Table;
use trials::Campaign;

/// A part of the campaign; what it does and wants is said on the page.
struct Part {
    name: &'static str,
    /// Runs of each trial.
    runs: u64,
    /// Whether it needs a real disk, and hours.
    is_real: bool,
    measure: fn(&Campaign, &Range<u64>) -> Result<Vec<Table>>,
}

const PARTS: &[Part] = &[
    Part { name: "coverage", runs: 200, is_real: false, measure: coverage::tables },
    Part { name: "equal", runs: 134, is_real: false, measure: equal::tables },
    Part { name: "false", runs: 200, is_real: false, measure: findings::false_ones },
    Part { name: "power", runs: 200, is_real: false, measure: findings::power },
    Part { name: "compare", runs: 200, is_real: false, measure: compare::tables },
    Part { name: "compare-repeat", runs: 100, is_real: false, measure: compare::repeated_tables },
    Part { name: "equal-files", runs: 100, is_real: true, measure: real::equal_files },
    Part { name: "false-real", runs: 30, is_real: true, measure: real::false_findings },
    Part { name: "compare-real", runs: 200, is_real: true, measure: real::compared },
];

/// Runs the parts that the arguments name, all simulated ones without a name, and writes them into the page. Arguments:
/// names of parts; `--runs N` of each trial; `--first-seed N` of them.
///
/// # Errors
/// For an unknown part or option, and when something cannot be measured.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let (names, options) = options::parse(arguments, &["--runs", "--first-seed"])?;
    let number = |name: &str| options.get(name).map(|text| text.parse::<u64>()).transpose();
    let runs = number("--runs").context("--runs takes a number")?;
    let first_seed = number("--first-seed").context("--first-seed takes a number")?.unwrap_or(0);
    ensure!(runs != Some(0), "--runs takes a number of at least 1");
    let campaign = Campaign::new(step::interruption()?)?;
    let path = root.join("docs/calibration.md");
    let commit = origin::commit(root).unwrap_or_else(|_| "unknown".into());
    let mut missed = 0;
    for part in chosen(&names)? {
        let seeds = first_seed..first_seed.saturating_add(runs.unwrap_or(part.runs));
        println!("── {}, seeds {seeds:?}", part.name);
        let began = Instant::now();
        let tables = (part.measure)(&campaign, &seeds).with_context(|| part.name.to_owned())?;
        missed += tables.iter().map(Table::missed).sum::<usize>();
        let text = page::measured(part, &commit, &seeds, began.elapsed(), &tables)?;
        let page = std::fs::read_to_string(&path).context("docs/calibration.md")?;
        crate::write(&path, &page::with(&page, part.name, &text)?)?;
        println!("written to {}", path.display());
    }
    println!("{missed} of the wanted figures are missed");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(names: &[String]) -> Result<Vec<&'static Part>> {
    if names.is_empty() {
        return Ok(PARTS.iter().filter(|part| !part.is_real).collect());
    }
    let named = |name: &String| {
        PARTS.iter().find(|part| part.name == name).with_context(|| {
            let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
            format!("there is no part \"{name}\"; there are {}", known.join(", "))
        })
    };
    names.iter().map(named).collect()
}
