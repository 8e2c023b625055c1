//! Trials on a real disk: files and a loop device that the campaign makes in a directory of its own, and removes. It touches
//! nothing else.

use super::Settings;
use super::compare::{HEAD, Trials, seen};
use super::equal::{FIGURES, Pairs, ratios};
use super::findings::{CODES, count, told};
use super::table::{Table, percent, share};
use super::trials::{Campaign, median};
use crate::programs::{checked, executable, rdsk_command, text_of};
use crate::step::{self, Ending};
use anyhow::{Context as _, Result, ensure};
use rdsk_model::Record;
use rdsk_stats::rng::SplitMix64;
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const FILE_BYTES: usize = 256 << 20;
/// Only ends what hangs.
const LONGEST: Duration = Duration::from_secs(1800);
/// The largest share of pairs of equal files that may be called different, and of runs with a false finding.
const DIFFERENT: f64 = 0.02;
const FALSE: f64 = 0.05;
/// Findings about a moment of the device or a limit of it, which no second look can confirm or refute.
const MAY_BE_TRUE: &[&str] = &["fast-start", "slows-down", "stalls"];

/// Runs a command line of rdsk in a group of its own and reads the Record.
pub(crate) fn record_of(campaign: &Campaign, program: &Path, words: &str) -> Result<Record> {
    let file = campaign.path("record.json");
    let mut command = rdsk_command(program);
    command.args(words.split_whitespace()).args(["--quiet", "--json"]).arg(&file).stderr(Stdio::null());
    // An earlier Record must not be read for a run that wrote none.
    let _ = std::fs::remove_file(&file);
    let ending = step::run(&mut command, LONGEST, &campaign.interrupted, &mut |_| ())?;
    ensure!(matches!(ending, Ending::Succeeded), "rdsk {words}: {ending:?}");
    let text = std::fs::read(&file).with_context(|| format!("rdsk {words} left no Record"))?;
    Ok(serde_json::from_slice(&text)?)
}

/// Files full of random data, in a directory that goes away with them.
struct Files {
    directory: TempDir,
}

impl Files {
    fn make(settings: &Settings, names: &[&str]) -> Result<Self> {
        let directory = TempDir::with_prefix_in("rdsk-calibrate-", &settings.directory)?;
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
}

/// A loop device over a file, detached when it goes away.
struct Loop(String);

impl Loop {
    fn over(file: &Path) -> Result<Self> {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--direct-io=on"]).arg(file);
        Ok(Self(text_of(&mut command)?.trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = checked(Command::new("losetup").arg("--detach").arg(&self.0)) {
            eprintln!("cannot detach {}: {error}", self.0);
        }
    }
}

fn program(settings: &Settings) -> Result<PathBuf> {
    executable(&settings.root, &["--release", "--package", "rdsk", "--bin", "rdsk"])
}

/// Two equal files in one run.
pub(crate) fn equal_files(
    campaign: &Campaign,
    settings: &Settings,
    seeds: &Range<u64>,
) -> Result<Vec<Table>> {
    let program = program(settings)?;
    let files = Files::make(settings, &["a", "b"])?;
    let (a, b) = (files.path("a"), files.path("b"));
    let mut pairs = Pairs::default();
    for seed in seeds.clone() {
        if campaign.is_interrupted() {
            break;
        }
        let words = format!(
            "run {} {} --only headline --rw read --budget 20s --seed {seed}",
            a.display(),
            b.display()
        );
        let found = ratios(&record_of(campaign, &program, &words)?);
        found.iter().for_each(|ratio| pairs.add(ratio));
    }
    let head = FIGURES.into_iter().chain(["wanted", "median ±, %"]);
    let mut table = Table::new("Equal files".into(), head.map(str::to_owned).collect());
    let mut row = pairs.figures().to_vec();
    row.extend(["≤ 2".to_owned(), percent(median(&pairs.half_widths))]);
    table.row(row, Some(share(pairs.different, pairs.all) <= DIFFERENT));
    Ok(vec![table])
}

/// One run after the other of the same loop device.
pub(crate) fn compared(campaign: &Campaign, settings: &Settings, seeds: &Range<u64>) -> Result<Vec<Table>> {
    let program = program(settings)?;
    let files = Files::make(settings, &["backing"])?;
    let device = Loop::over(&files.path("backing"))?;
    let mut all = Trials::default();
    for seed in seeds.clone() {
        if campaign.is_interrupted() {
            return Ok(Vec::new());
        }
        let words = format!("run {} --rw read --budget 5s --seed {seed}", device.0);
        let (one, two) = (record_of(campaign, &program, &words)?, record_of(campaign, &program, &words)?);
        let found = seen(&one, &two);
        println!("seed {seed}: {found}");
        all.add(&found);
    }
    let head = ["device"].into_iter().chain(HEAD).chain(["wanted"]).map(str::to_owned).collect();
    let mut table = Table::new("The same loop device twice".into(), head);
    let mut row = vec!["a loop device".to_owned()];
    row.extend(all.figures());
    row.push("≤ 5".into());
    table.row(row, Some(all.different() <= super::compare::FALSE));
    Ok(vec![table])
}

/// The findings of default runs.
pub(crate) fn false_findings(
    campaign: &Campaign,
    settings: &Settings,
    seeds: &Range<u64>,
) -> Result<Vec<Table>> {
    let program = program(settings)?;
    let files = Files::make(settings, &["file", "backing"])?;
    let device = Loop::over(&files.path("backing"))?;
    let targets = [("a file", files.path("file").display().to_string()), ("a loop device", device.0.clone())];
    let mut all: [Vec<Vec<bool>>; 2] = [Vec::new(), Vec::new()];
    for seed in seeds.clone() {
        for ((_, target), seen) in targets.iter().zip(&mut all) {
            if campaign.is_interrupted() {
                return Ok(Vec::new());
            }
            let record = record_of(campaign, &program, &format!("run {target} --rw read --seed {seed}"))?;
            let found = told(&record);
            let names: Vec<&str> =
                CODES.iter().zip(&found).filter(|(_, told)| **told).map(|(code, _)| *code).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            println!("seed {seed}, {target}: {names}");
            seen.push(found);
        }
    }
    let head = ["target", "runs"].map(str::to_owned).into_iter();
    let head = head.chain(CODES.iter().map(|code| format!("`{code}`"))).collect();
    let mut table = Table::new("Default runs with each finding, %; wanted ≤ 5 of each".into(), head);
    for ((what, _), seen) in targets.iter().zip(&all) {
        let shares: Vec<f64> = count(seen).iter().map(|&found| share(found, seen.len())).collect();
        let mut row = vec![(*what).to_owned(), seen.len().to_string()];
        row.extend(shares.iter().map(|&share| percent(share)));
        let is_good = |(share, code): (&f64, &&str)| *share <= FALSE || MAY_BE_TRUE.contains(code);
        table.row(row, Some(shares.iter().zip(CODES).all(is_good)));
    }
    Ok(vec![table])
}
