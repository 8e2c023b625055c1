//! The campaign `loaded`: the suite again and again beside two busy loops and a writer that syncs every block, which it starts
//! itself. Noise must not fail a test: what can fail so belongs into the campaign `timing`. Each run is a row of its page at
//! once, and the page keeps the rows of earlier calls, so a long series can be made in parts, and an interruption costs one
//! run; it measures nothing itself.

use crate::campaign::Campaign;
use crate::suite::{self, Strictness, Tested};
use crate::{origin, step};
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Runs of the suite in one call without `--runs`.
pub(super) const RUNS: usize = 20;
const BUSY_LOOPS: usize = 2;
/// The writer goes round in a file of this many blocks.
const BLOCKS: u64 = 2000;
const BLOCK: [u8; 4096] = [0x5a; 4096];
const HEAD: &str = "| date | commit | took, min | passed | failed | skipped | names of the failed |";

/// Runs the suite `runs` times and writes the page after each, so that an interruption loses nothing.
///
/// # Errors
/// When what the tests call cannot be installed where `CI` asks for it, the tests cannot be built, or the page cannot be written.
pub(super) fn run(root: &Path, campaign: &Campaign, page: &Path, runs: usize) -> Result<ExitCode> {
    let interrupted = step::interruption()?;
    let limit = Duration::from_secs(campaign.limit_s);
    let strictness = Strictness::from_environment();
    // A row that left out the guests because they were not installed would say less than it seems to.
    if let Some(why) = suite::install(strictness, &interrupted)? {
        bail!(why);
    }
    // Before the load, and so that no row has the time of the compiler.
    suite::build_tests(root, limit, &interrupted)?;
    let commit = origin::commit(root)?;
    let load = Load::start(root)?;
    let mut failed = 0;
    for run in 1..=runs {
        let start = Instant::now();
        let tested = suite::tests(root, limit, &interrupted, strictness)?;
        if interrupted.load(Ordering::Relaxed) {
            println!("interrupted: this run has no row");
            break;
        }
        failed += usize::from(tested.trouble.is_some());
        let row = row(&origin::now("+%F %R")?, &commit, start.elapsed(), &tested);
        println!("── run {run} of {runs}: {row}");
        let text = fs::read_to_string(page).unwrap_or_default();
        crate::write(page, &with(&text, &row))?;
    }
    drop(load);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(date: &str, commit: &str, took: Duration, tested: &Tested) -> String {
    // "1378 passed, 0 failed, 48 skipped"
    let totals = tested.counts.totals(&tested.skips);
    let counts: Vec<&str> =
        totals.split(", ").map(|part| part.split(' ').next().unwrap_or_default()).collect();
    let mut names = tested.counts.failures.join(", ");
    if let (true, Some(trouble)) = (names.is_empty(), &tested.trouble) {
        names.clone_from(trouble);
    }
    let minutes = took.as_secs_f64() / 60.0;
    format!("| {date} | {commit} | {minutes:.1} | {} | {names} |", counts.join(" | "))
}

/// The page with one more row.
fn with(page: &str, row: &str) -> String {
    let earlier =
        page.lines().skip_while(|line| *line != HEAD).skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<&str> = earlier.chain([row]).collect();
    format!(
        "# Campaign `loaded`\n\nMade by `cargo xtask campaign loaded`: the tests of `cargo xtask test` again and again on a machine \
         with {BUSY_LOOPS} busy loops and a writer that syncs every 4 KiB beside them. A failed row is kept; what failed was mended \
         or moved to the campaign `timing` before the next. The commit is the last one that changed more than the pages of \
         campaigns.\n\n{} runs.\n\n{HEAD}\n|---|---|---:|---:|---:|---:|---|\n{}\n",
        rows.len(),
        rows.join("\n")
    )
}

/// Threads that keep processors and the disk busy until it goes away.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(root: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(root.join("target")).context("the file of the syncing writer")?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for _ in 0..BUSY_LOOPS {
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || while !stop.load(Ordering::Relaxed) {}));
        }
        let its = Arc::clone(&stop);
        threads.push(thread::spawn(move || write_and_sync(&file, &its)));
        Ok(Self { stop, threads })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                eprintln!("a thread of the load ended early");
            }
        }
    }
}

fn write_and_sync(file: &File, stop: &AtomicBool) {
    for block in (0..BLOCKS).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let done = file.write_all_at(&BLOCK, block * 4096).and_then(|()| file.sync_data());
        done.expect("the writer beside the tests can write");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_counts::TestCounts;

    fn run_with(failures: &[&str], trouble: Option<&str>) -> Tested {
        let failed = failures.len() as u64;
        let failures = failures.iter().map(|&name| name.to_owned()).collect();
        let counts = TestCounts { passed: 10, failed, ignored: 2, failures, ..TestCounts::default() };
        Tested { counts, trouble: trouble.map(str::to_owned), ..Tested::default() }
    }

    #[test]
    fn rows_are_kept() {
        let mut page = String::new();
        for run in [
            run_with(&[], None),
            run_with(&["rdsk --test a: b"], Some("1 of 80 programs failed")),
            run_with(&[], Some("not finished after 9 s, so it was ended")),
        ] {
            page = with(&page, &row("2026-11-22 12:00", "abc", Duration::from_secs(90), &run));
        }
        let names = ["", "rdsk --test a: b", "not finished after 9 s, so it was ended"];
        let rows: Vec<String> = [(0, names[0]), (1, names[1]), (0, names[2])]
            .map(|(failed, names)| format!("| 2026-11-22 12:00 | abc | 1.5 | 10 | {failed} | 2 | {names} |"))
            .to_vec();
        assert!(
            page.contains("\n3 runs.\n") && page.ends_with(&format!("\n{}\n", rows.join("\n"))),
            "{page}"
        );
    }

    #[test]
    fn the_load_ends_with_its_guard() {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("target")).unwrap();
        let load = Load::start(scratch.path()).unwrap();
        assert_eq!(load.threads.len(), BUSY_LOOPS + 1);
        assert!(load.threads.iter().all(|thread| !thread.is_finished()));
        drop(load);
    }
}
