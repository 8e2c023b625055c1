//! What the history costs: by how much it grows with a default run, and how long `rdsk list` takes with many runs in it. It lies beside
//! the build and goes away by itself; its runs are copies of one, made by sqlite3.

use super::Options;
use crate::programs::{checked, release, text_of};
use anyhow::{Context as _, Result};
use rdsk_stats::median;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Runs in the history whose list is timed.
const RUNS: u32 = 10_000;

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
