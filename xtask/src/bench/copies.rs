//! `rdsk dd`, with its evidence, against GNU dd: the same copies in turn, by the time that each prints. The files lie beside the
//! build and go away by themselves; what a copy leaves in memory is flushed before the next one begins. Ratios are medians of
//! pairs: now and then the kernel lets a writer of either side wait for writeback, six times as long as the copy takes.

use super::rivals::build;
use crate::programs::{rdsk_command, text_of};
use anyhow::{Context as _, Result, ensure};
use rdsk_stats::median_interval;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// What `--only` looks for.
pub(crate) const NAME: &str = "copies: rdsk dd against GNU dd";

/// Bytes of one copy.
const BYTES: u64 = 256 << 20;
/// The ratio that is wanted.
const GOAL: f64 = 0.98;
/// Pairs for each pair that is asked for: a copy takes a tenth of a second, and writeback makes it scatter.
const PAIRS_EACH: usize = 4;

/// What is copied, and whether past the page cache.
const CASES: [(&str, &str, &str); 3] = [
    ("file to file", "if=in", ""),
    ("zero to file", "if=/dev/zero", ""),
    ("zero to direct", "if=/dev/zero", "oflag=direct"),
];
const BLOCKS: [(&str, u64); 2] = [("16k", 16 << 10), ("1M", 1 << 20)];

/// Prints the table, or why it cannot be measured.
pub(crate) fn report(pairs: usize) {
    if let Err(error) = compare(pairs * PAIRS_EACH) {
        println!("{NAME}: not measured: {error:#}");
    }
}

fn compare(pairs: usize) -> Result<()> {
    let version = text_of(Command::new("dd").arg("--version")).context("dd is not installed")?;
    let rdsk = build(&["-p", "rdsk", "--bin", "rdsk"])?;
    let place = tempfile::tempdir_in(crate::root().join("target")).context("a directory beside the build")?;
    let input = place.path().join("in");
    std::fs::write(&input, vec![0x5a_u8; usize::try_from(BYTES)?])?;
    File::open(&input)?.sync_all()?;
    println!("\n{NAME}, {}", version.lines().next().unwrap_or("of an unknown version"));
    println!(
        "{} MiB per copy, {pairs} pairs in the order A B B A, rates by dd's own line, the input cached; medians",
        BYTES >> 20
    );
    println!("{:<24} {:>10} {:>10} {:>6}  95 % interval  goal {GOAL}", "", "rdsk MB/s", "dd MB/s", "ratio");
    for (name, from, flags) in CASES {
        for (block, bytes) in BLOCKS {
            let line = format!("{from} of=out bs={block} count={} {flags}", BYTES / bytes);
            let run = |program: &Path, first: &[&str]| seconds(program, first, &line, place.path());
            let mut times: Vec<(f64, f64)> = Vec::with_capacity(pairs);
            for pair in 0..pairs {
                let ours = || run(&rdsk, &["dd"]);
                let theirs = || run(Path::new("dd"), &[]);
                times.push(if pair % 2 == 0 {
                    let first = ours()?;
                    (first, theirs()?)
                } else {
                    let first = theirs()?;
                    (ours()?, first)
                });
            }
            show(&format!("{name}, {block}"), &times)?;
        }
    }
    Ok(())
}

fn show(name: &str, times: &[(f64, f64)]) -> Result<()> {
    // Rates are the other way round than times.
    let ratios: Vec<f64> = times.iter().map(|&(ours, theirs)| theirs / ours).collect();
    let (ratio, low, high) = median_interval(&ratios).context("at least six pairs")?;
    let rate = |of: fn(&(f64, f64)) -> f64| {
        let mut rates: Vec<f64> = times.iter().map(|pair| BYTES as f64 / 1e6 / of(pair)).collect();
        super::median(&mut rates)
    };
    let mark = if ratio >= GOAL { "" } else { "  missed" };
    let (ours, theirs) = (rate(|pair| pair.0), rate(|pair| pair.1));
    println!("{name:<24} {ours:>10.0} {theirs:>10.0} {ratio:>6.3}  {low:.3} … {high:.3}{mark}");
    Ok(())
}

/// The time in the last line of dd, whichever it is.
fn seconds(program: &Path, first: &[&str], line: &str, place: &Path) -> Result<f64> {
    let mut command = rdsk_command(program);
    command.args(first).args(line.split_whitespace()).current_dir(place).env("LC_ALL", "C");
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    let out = place.join("out");
    File::open(&out)?.sync_all()?;
    std::fs::remove_file(&out)?;
    time_in(&said).with_context(|| format!("no time in {said}"))
}

pub(super) fn time_in(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains(" copied, "))?;
    let (_, rest) = line.split_once(" copied, ")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_dd_is_read() {
        let said =
            "1+0 records in\n1+0 records out\n4096 bytes (4.1 kB, 4.0 KiB) copied, 4.5e-05 s, 91 MB/s\n";
        assert!(time_in(said).is_some_and(|seconds| (seconds - 4.5e-5).abs() < 1e-12));
        assert_eq!(time_in("1+0 records in\n"), None);
    }
}
