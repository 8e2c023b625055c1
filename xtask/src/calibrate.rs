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
use page::Section;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use table::Table;
use trials::Campaign;

/// A part of the campaign.
struct Part {
    name: &'static str,
    title: &'static str,
    /// What is done, in whole sentences.
    about: &'static str,
    /// Runs of each trial.
    runs: u64,
    /// Whether it needs a real disk, and hours.
    is_real: bool,
    measure: fn(&Campaign, &Range<u64>) -> Result<Vec<Table>>,
}

const PARTS: &[Part] = &[
    Part {
        name: "coverage",
        title: "Intervals that hold the truth",
        about: "`rdsk run` at its default budget of 60 s on a simulated device whose true mean rate is known, with every \
                experiment that it measures by itself. A stalling device may instead be said to stall: *or said* adds the runs whose \
                interval missed the truth and whose page had the finding `stalls`.",
        runs: 200,
        is_real: false,
        measure: coverage::tables,
    },
    Part {
        name: "equal",
        title: "Equal and unequal LUNs",
        about: "`rdsk run --only headline --rw read` on two simulated LUNs for 60 s. With common noise both slow down at the same \
                moment, as two LUNs of one array do; with separate noise each has its own. Separate noise limits what any method can \
                tell: even if both were measured for the whole minute, and it were known how long the noise lasts, the 95 % interval of \
                their ratio would be ± 1.1 % wide over the independent noise, ± 5 % over AR(1) 0.9, ± 15 % over AR(1) 0.99 and ± 16 % over \
                the two levels, which leaves 10 % open in the last two.",
        runs: 134,
        is_real: false,
        measure: equal::tables,
    },
    Part {
        name: "false",
        title: "False findings on simulated systems",
        about: "`rdsk run` (60 s) and `rdsk zones` with their defaults and with ten passes (6 min), each run with another seed. \
                The systems differ in noise only, which is stationary, so there is nothing to find; the built-in ones have no \
                noise at all.",
        runs: 200,
        is_real: false,
        measure: findings::false_ones,
    },
    Part {
        name: "power",
        title: "True findings on simulated systems",
        about: "The same commands on systems with something to find.",
        runs: 200,
        is_real: false,
        measure: findings::power,
    },
    Part {
        name: "compare",
        title: "Runs compared",
        about: "Two runs of `rdsk run` at its default budget of 60 s, each with a seed of its own, compared as `rdsk compare` does. Two \
                runs of the same system differ only by chance: a trial is wrong if any rate or latency of any cell is said to be \
                faster or slower. Of a system that is 5 % slower in the second run, a trial is right if any cell is said to be slower \
                and none to be faster. Kinds of noise without such a trial have a tenth of the runs.",
        runs: 200,
        is_real: false,
        measure: compare::tables,
    },
    Part {
        name: "compare-repeat",
        title: "Command lines in turn",
        about: "`rdsk run --only headline --rw read --budget 20s` as both command lines of `rdsk compare --repeat`, three and six pairs \
                of runs a minute apart, each run with a seed of its own. A trial is wrong if any rate or latency of any cell is said to \
                be faster or slower.",
        runs: 100,
        is_real: false,
        measure: compare::repeated_tables,
    },
    Part {
        name: "equal-files",
        title: "Equal files on a real disk",
        about: "Two files of 256 MiB of random data, made by the campaign, compared in one run of the headline's reads \
                (`--budget 20s`).",
        runs: 100,
        is_real: true,
        measure: real::equal_files,
    },
    Part {
        name: "false-real",
        title: "False findings on a real disk",
        about: "`rdsk run --rw read` with its defaults on a file of 256 MiB and on a loop device over another one (direct-io \
                on), in turn. What the machine's disk does meanwhile is not known, so some of these findings may be true; those \
                about a moment or a limit of the device (`fast-start`, `slows-down`, `stalls`) are counted and not judged.",
        runs: 30,
        is_real: true,
        measure: real::false_findings,
    },
    Part {
        name: "compare-real",
        title: "Runs of a real loop device compared",
        about: "`rdsk run --rw read --budget 5s` twice, one run right after the other, on a loop device (direct-io on) over a file of \
                256 MiB that the campaign makes, compared as `rdsk compare` does. A trial is wrong if any rate or latency of any cell \
                is said to be faster or slower, although nothing was changed.",
        runs: 200,
        is_real: true,
        measure: real::compared,
    },
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
        println!("── {}: {}, seeds {seeds:?}", part.name, part.title);
        let began = Instant::now();
        let tables = (part.measure)(&campaign, &seeds).with_context(|| part.name.to_owned())?;
        missed += tables.iter().map(Table::missed).sum::<usize>();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let section = Section::new(part, &commit, &seeds, began.elapsed(), &tables)?;
        crate::write(&path, &page::with(&text, PARTS, &section))?;
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
