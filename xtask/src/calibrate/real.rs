//! Trials on a real disk: files and a loop device that the campaign makes in a directory of its own, and removes. It touches
//! nothing else.

use super::compare::{self, Outcome};
use super::table::Table;
use super::trials::Campaign;
use super::{equal, findings};
use crate::programs::{self, release};
use anyhow::{Result, ensure};
use rdsk_model::Record;
use rdsk_stats::rng::SplitMix64;
use rdsk_testkit::{DirectIo, LoopDevice};
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FILE_BYTES: usize = 256 << 20;
/// The largest share of pairs of equal files that may be called different, and of runs with a false finding.
const DIFFERENT: f64 = 0.02;
const FALSE: f64 = 0.05;
/// Findings about a moment of the device or a limit of it, which no second look can confirm or refute.
const MAY_BE_TRUE: &[&str] = &["fast-start", "slows-down", "stalls"];

/// Runs a command line of rdsk and reads the Record.
fn record(campaign: &Campaign, program: &Path, words: &str) -> Result<Record> {
    campaign.go_on()?;
    let (record, status) = programs::record(program, words)?;
    ensure!(status.success(), "rdsk {words}: {status}");
    Ok(serde_json::from_value(record)?)
}

/// Files full of random data, in a directory that goes away with them.
struct Files {
    directory: TempDir,
}

impl Files {
    fn make(names: &[&str]) -> Result<Self> {
        let directory = TempDir::with_prefix_in("rdsk-calibrate-", crate::root().join("target"))?;
        for (name, seed) in names.iter().zip(1..) {
            let mut file = File::create(directory.path().join(name))?;
            let mut rng = SplitMix64::new(seed);
            let mut chunk = Vec::with_capacity(1 << 20);
            for _ in 0..FILE_BYTES >> 20 {
                chunk.clear();
                chunk.extend((0..1 << 17).flat_map(|_: u32| rng.next_u64().to_le_bytes()));
                file.write_all(&chunk)?;
            }
            file.sync_all()?;
        }
        Ok(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A loop device over a file, which reads and writes past the page cache.
    fn loop_device(&self, name: &str) -> Result<LoopDevice> {
        Ok(LoopDevice::builder().over(self.path(name)).direct_io(DirectIo::On).create()?)
    }
}

/// Two equal files in one run.
pub(crate) fn equal_files(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let program = release("rdsk")?;
    let files = Files::make(&["a", "b"])?;
    let names = ["a", "b"].map(|name| files.path(name).display().to_string()).join(" ");
    let mut ratios = Vec::new();
    for seed in seeds.clone() {
        let words = format!("run {names} --only headline --rw read --budget 20s --seed {seed}");
        let record = record(campaign, &program, &words)?;
        ratios.extend(equal::ratios(&record));
    }
    let mut table = Table::new("Equal files", equal::HEAD);
    equal::row(&mut table, &[], &ratios, "≤ 2", |share| Some(share <= DIFFERENT));
    Ok(vec![table])
}

/// One run after the other of the same loop device.
pub(crate) fn compared(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let program = release("rdsk")?;
    let files = Files::make(&["backing"])?;
    let device = files.loop_device("backing")?;
    let mut trials = Vec::new();
    for seed in seeds.clone() {
        let run = || {
            record(
                campaign,
                &program,
                &format!("run {} --rw read --budget 5s --seed {seed}", device.path().display()),
            )
        };
        let outcome = Outcome::of_runs(&run()?, &run()?);
        println!("seed {seed}: {outcome:?}");
        trials.push(outcome);
    }
    let mut table = Table::new("The same loop device twice", ["device"].into_iter().chain(compare::HEAD));
    compare::row(&mut table, &["a loop device"], &trials);
    Ok(vec![table])
}

/// The findings of default runs.
pub(crate) fn false_findings(campaign: &Campaign, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let program = release("rdsk")?;
    let files = Files::make(&["file", "backing"])?;
    let device = files.loop_device("backing")?;
    let targets = [
        ("a file", files.path("file").display().to_string()),
        ("a loop device", device.path().display().to_string()),
    ];
    let mut runs: [Vec<Vec<&'static str>>; 2] = [Vec::new(), Vec::new()];
    for seed in seeds.clone() {
        for ((_, target), runs) in targets.iter().zip(&mut runs) {
            let codes = findings::codes(&record(
                campaign,
                &program,
                &format!("run {target} --rw read --seed {seed}"),
            )?);
            println!("seed {seed}, {target}: {codes:?}");
            runs.push(codes);
        }
    }
    let mut table = findings::table("Default runs with each finding, %; wanted ≤ 5 of each", &["target"]);
    for ((what, _), runs) in targets.iter().zip(&runs) {
        findings::row(&mut table, &[what], runs, FALSE, |code| MAY_BE_TRUE.contains(&code));
    }
    Ok(vec![table])
}
