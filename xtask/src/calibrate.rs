//! `cargo xtask calibrate`: whether what rdsk says at 95 % is right 95 times in 100. Trials with known truth, counted, and
//! written to docs/calibration.md, part by part.

mod coverage;
mod systems;
mod table;
mod trials;

use crate::{options, step};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use trials::Campaign;

pub(crate) fn run(_root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let (_words, options) = options::parse(arguments, &["--runs"])?;
    let runs: u64 = options.get("--runs").map_or(Ok(200), |text| text.parse())?;
    let campaign = Campaign::new(step::interruption()?)?;
    for table in coverage::tables(&campaign, runs)? {
        println!("{}", table.draw());
    }
    Ok(ExitCode::SUCCESS)
}
