//! What the program as a whole costs: the peak of its memory in a whole run, and the time until it answers.

use super::median;
use super::rivals::build;
use crate::programs::rdsk_command;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Calls of `rdsk --version`.
const CALLS: usize = 20;

/// Prints all figures, or why there are none.
pub(crate) fn report() {
    let program = match build(&["-p", "rdsk", "--bin", "rdsk"]) {
        Ok(program) => program,
        Err(error) => return println!("the program was not measured: {error:#}"),
    };
    let show = |what: &str, figures: Result<String>| match figures {
        Ok(figures) => println!("{what} {figures}"),
        Err(error) => println!("{what} was not measured: {error:#}"),
    };
    let answer = answer_ms(&program);
    show(
        "rdsk --version",
        answer.map(|ms| format!("answers within {ms:.1} ms (median of {CALLS}; goal 10 ms)")),
    );
    let whole = tempfile::tempdir().context("cannot create a directory").and_then(|directory| {
        let line = format!("run {} --json - --budget 20s", directory.path().display());
        let (mib, _) = watched(&program, &line)?;
        Ok(format!("used {mib:.1} MiB at most, I/O buffers included (goal: 64 MiB beyond them)"))
    });
    show("rdsk run --budget 20s", whole);
    for (what, line, goal) in SIMULATED {
        let watched = watched(&program, line);
        show(what, watched.map(|(mib, s)| format!("took {s:.1} s, {mib:.0} MiB at most (goal: {goal})")));
    }
}

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

/// Median time of `rdsk --version` from its start to its end, in milliseconds.
fn answer_ms(program: &Path) -> Result<f64> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begin = Instant::now();
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).status()?;
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
        ensure!(status.success(), "it ended with {status}");
    }
    Ok(median(&mut times))
}

/// Highest resident memory of a run in MiB, and its time in seconds. `VmHWM` is the kernel's own high-water mark,
/// so looking at it now and then misses only what is used after the last look.
fn watched(program: &Path, line: &str) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut command = rdsk_command(program);
    let mut child =
        command.args(line.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak: f64 = 0.0;
    let status = loop {
        if let Ok(text) = std::fs::read_to_string(&status_file) {
            peak = peak.max(high_water_kib(&text).unwrap_or(0.0));
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    ensure!(status.success(), "it ended with {status}");
    Ok((peak / 1024.0, begin.elapsed().as_secs_f64()))
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
