//! What the program and its history cost: the time until it answers, the peak of its memory, whole simulated disks, by how much the
//! history grows with a default run, and how long `rdsk list` takes with many runs in it. The history lies beside the build and
//! goes away by itself; its runs are copies of one, made by sqlite3.

use super::Options;
use crate::programs::{checked, looked_at, rdsk_command, release, text_of};
use anyhow::{Context as _, Result};
use rdsk_stats::median;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Calls of `rdsk --version`.
const CALLS: usize = 20;
/// Whole simulated disks: what, the command line, the goal.
const SIMULATED: [(&str, &str, &str); 2] = [
    (
        "a simulated disk of 80 GB read ten times in blocks of 1 MiB",
        "zones sim:freebsd-wd800jd --bs 1M --full --runs 10 --order ascending",
        "10 s, 100 MB",
    ),
    (
        "the same at 1, 5, 10 and 20 MiB, shuffled",
        "zones sim:freebsd-wd800jd --full --runs 10",
        "20 s, 200 MB",
    ),
];
/// Runs in the history whose list is timed.
const RUNS: u32 = 10_000;

/// Start time and memory.
pub(super) fn program(_: &Options) -> Result<()> {
    let program = release("rdsk")?;
    let answer_ms = median_ms(CALLS, || {
        let mut command = Command::new(&program);
        command.arg("--version");
        command
    })?;
    println!("rdsk --version answers within {answer_ms:.1} ms (median of {CALLS}; goal 10 ms)");
    let directory = tempfile::tempdir().context("cannot create a directory")?;
    let line = format!("run {} --json - --budget 20s", directory.path().display());
    let (mib, _) = watched(&program, &line)?;
    println!(
        "rdsk run --budget 20s used {mib:.1} MiB at most, I/O buffers included (goal: 64 MiB beyond them)"
    );
    for (what, line, goal) in SIMULATED {
        let (mib, s) = watched(&program, line)?;
        println!("{what} took {s:.1} s, {mib:.0} MiB at most (goal: {goal})");
    }
    Ok(())
}

/// Growth with a default run, and the time of a list.
pub(super) fn history(options: &Options) -> Result<()> {
    let rdsk = release("rdsk")?;
    let place = tempfile::tempdir_in(crate::root().join("target")).context("a directory beside the build")?;
    let kept_in = |history: &Path, words: &[&str]| {
        let mut command = Command::new(&rdsk);
        command.args(words).env("RDSK_HISTORY", history);
        command
    };
    let on_a_file = place.path().display().to_string();
    for (what, target) in [("a simulated disk", "sim:linux-disk"), ("a file", on_a_file.as_str())] {
        let history = place.path().join("growth.db");
        let run = |budget: &str| -> Result<f64> {
            checked(&mut kept_in(&history, &["run", target, "--quiet", "--budget", budget]))?;
            Ok(std::fs::metadata(&history)?.len() as f64)
        };
        // The first run also pays for the tables.
        let before = run("5s")?;
        let grown_kb = (run("60s")? - before) / 1e3;
        println!("a default run on {what} adds {grown_kb:.0} kB (goal: under 300 kB)");
        std::fs::remove_file(&history)?;
    }
    let history = place.path().join("many.db");
    let run = ["run", "sim:linux-disk", "--quiet", "--only", "headline", "--budget", "5s"];
    checked(&mut kept_in(&history, &run))?;
    multiply(&history)?;
    for words in [&["list"][..], &["list", "--limit", "10000"], &["list", "--target", "nowhere"]] {
        let ms = median_ms(options.pairs, || kept_in(&history, words))?;
        println!("rdsk {} of {RUNS} runs takes {ms:.0} ms (goal: under 200 ms)", words.join(" "));
    }
    Ok(())
}

/// Copies the only run of a history with its cells, each time with an id and a start of its own.
fn multiply(history: &Path) -> Result<()> {
    let sql = |text: &str| text_of(Command::new("sqlite3").arg(history).arg(text));
    let columns = sql("SELECT name FROM pragma_table_info('run')")?;
    let columns: Vec<&str> = columns.lines().collect();
    let copied = |name: &&str| match *name {
        "id" => "printf('%026d', number)".to_owned(),
        "started_ns" => "started_ns - number * 1000000000".to_owned(),
        name => name.to_owned(),
    };
    sql(&format!(
        "BEGIN;
         CREATE TEMP TABLE numbers AS
             WITH RECURSIVE counting (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counting WHERE number < {RUNS} - 1)
             SELECT number FROM counting;
         CREATE TEMP TABLE first AS SELECT id FROM run;
         INSERT INTO run ({}) SELECT {} FROM run, numbers WHERE id IN (SELECT id FROM first);
         INSERT INTO document (run, json)
             SELECT printf('%026d', number), json FROM document, numbers WHERE run IN (SELECT id FROM first);
         COMMIT",
        columns.join(", "),
        columns.iter().map(copied).collect::<Vec<_>>().join(", ")
    ))
    .map(drop)
}

/// Median time of a command from its start to its end, in milliseconds.
fn median_ms(calls: usize, command: impl Fn() -> Command) -> Result<f64> {
    let time = |_| {
        let begin = Instant::now();
        checked(&mut command())?;
        Ok(begin.elapsed().as_secs_f64() * 1e3)
    };
    let times = (0..calls).map(time).collect::<Result<Vec<f64>>>()?;
    median(&times).context("no call")
}

/// Highest resident memory of a run in MiB, and its time in seconds. `VmHWM` is the kernel's own high-water mark,
/// so looking at it now and then misses only what is used after the last look.
fn watched(program: &Path, line: &str) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut peak_kib: f64 = 0.0;
    let mut command = rdsk_command(program);
    command.args(line.split_whitespace()).stderr(Stdio::null());
    looked_at(&mut command, |process| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        peak_kib = peak_kib.max(high_water_kib(&status).unwrap_or(0.0));
    })?;
    Ok((peak_kib / 1024.0, begin.elapsed().as_secs_f64()))
}

fn high_water_kib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(high_water_kib("Name:\trdsk\nVmHWM:\t   5124 kB\nVmRSS:\t 4000 kB\n"), Some(5124.0));
        assert_eq!(high_water_kib("Name:\trdsk\n"), None);
    }
}
