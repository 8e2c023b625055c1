//! What the history costs: by how much it grows with a default run, and how long `rdsk list` takes with many runs in it. The runs
//! are copies of one, made by SQL; the file lies beside the build and goes away by itself.

use super::{median, rivals::build};
use crate::programs::checked;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What `--only` looks for.
pub(crate) const NAME: &str = "history: list and growth";

/// Runs in the history, and the goal for a list of them.
const RUNS: u32 = 10_000;
const GOAL_MS: f64 = 200.0;
/// The goal for the growth with a default run.
const GOAL_KB: f64 = 300.0;

/// Prints the figures, or why there are none.
pub(crate) fn report(pairs: usize) {
    if let Err(error) = measure(pairs) {
        println!("{NAME}: not measured: {error:#}");
    }
}

fn measure(times: usize) -> Result<()> {
    let rdsk = build(&["-p", "rdsk", "--bin", "rdsk"])?;
    let place = tempfile::tempdir_in(crate::root().join("target")).context("a directory beside the build")?;
    println!("\n{NAME}");
    let on_a_file = place.path().display().to_string();
    for (what, target) in [("a simulated disk", "sim:linux-disk"), ("a file", on_a_file.as_str())] {
        let history = place.path().join("growth.db");
        let run = |budget: &str| -> Result<f64> {
            let mut command = Command::new(&rdsk);
            command.args(["run", target, "--quiet", "--budget", budget]).env("RDSK_HISTORY", &history);
            checked(&mut command)?;
            Ok(std::fs::metadata(&history)?.len() as f64)
        };
        // The first run also pays for the tables.
        let before = run("5s")?;
        let grown_kb = (run("60s")? - before) / 1e3;
        println!("a default run on {what} adds {grown_kb:.0} kB (goal: under {GOAL_KB:.0} kB)");
        std::fs::remove_file(&history)?;
    }
    let history = place.path().join("many.db");
    fill(&rdsk, &history)?;
    for (what, words) in [
        ("rdsk list", &[][..]),
        ("rdsk list --limit 10000", &["--limit", "10000"]),
        ("rdsk list --target nowhere", &["--target", "nowhere"]),
    ] {
        let mut took_ms = Vec::with_capacity(times);
        for _ in 0..times {
            let begin = Instant::now();
            checked(Command::new(&rdsk).arg("list").args(words).env("RDSK_HISTORY", &history))?;
            took_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        let ms = median(&mut took_ms);
        println!("{what} of {RUNS} runs takes {ms:.0} ms (median of {times}; goal: under {GOAL_MS:.0} ms)");
    }
    Ok(())
}

/// A history of many runs with their cells.
fn fill(rdsk: &Path, history: &Path) -> Result<()> {
    let words = ["run", "sim:linux-disk", "--quiet", "--only", "headline", "--budget", "5s"];
    checked(Command::new(rdsk).args(words).env("RDSK_HISTORY", history))?;
    let database = rusqlite::Connection::open(history)?;
    let mut columns = database.prepare("SELECT name FROM pragma_table_info('run')")?;
    let columns: Vec<String> = columns.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    // Each copy has an id and a start of its own.
    let copied = |name: &String| match name.as_str() {
        "id" => "printf('%026d', number)".to_owned(),
        "started_ns" => "started_ns - number * 1000000000".to_owned(),
        name => name.to_owned(),
    };
    let copied: Vec<String> = columns.iter().map(copied).collect();
    database.execute_batch(&format!(
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
        copied.join(", ")
    ))?;
    Ok(())
}
