//! The programs that are compared: the engine's example `hammer`, and fio. Each run is a process of its own and answers in
//! JSON.

use super::environment::{BenchTarget, Confinement};
use crate::programs::{self, checked, json, text_of};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One way to run our engine.
pub(crate) struct Ours {
    pub(crate) engine: &'static str,
    pub(crate) depth: u32,
    /// Completions per wait, or `default`.
    pub(crate) batch: &'static str,
}

/// One way to run fio.
pub(crate) struct Fio {
    pub(crate) engine: &'static str,
    pub(crate) depth: u32,
    /// Batches of 32, and for io_uring fixed buffers and registered files.
    pub(crate) batch_of_32: bool,
}

/// What one run did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// I/Os per second.
    pub(crate) rate: f64,
    /// Processor time of the whole process per I/O, its start and the kernel's workers for it included.
    pub(crate) cpu_ns: f64,
}

/// What every run needs.
pub(crate) struct Runner {
    hammer: PathBuf,
    /// Processor of every run: the last one allowed, which is farthest from the interrupts of the first.
    pub(crate) cpu: usize,
    pub(crate) confinement: Confinement,
    seconds: u32,
    pub(crate) fio_version: String,
}

impl Runner {
    /// Builds ours and finds fio.
    pub(crate) fn prepare(seconds: u32) -> Result<Self> {
        let version = text_of(Command::new("fio").arg("--version")).context("fio is not installed")?;
        let cpus = rustix::thread::sched_getaffinity(None)?;
        let cpu = (0..1024).rev().find(|&cpu| cpus.is_set(cpu)).context("no processor is allowed")?;
        let hammer = build(&["-p", "rdsk-engine", "--example", "hammer"])?;
        let confinement = Confinement::to(cpu);
        Ok(Self { hammer, cpu, confinement, seconds, fio_version: version.trim().to_owned() })
    }

    /// A run of ours.
    pub(crate) fn ours(&self, ours: &Ours, target: &BenchTarget) -> Result<Done> {
        let mut command = self.confinement.command(&self.hammer);
        command.arg(target.path()).args([target.io_path(), ours.engine]);
        command.args([ours.depth.to_string().as_str(), ours.batch]);
        command.args([self.seconds.to_string(), self.cpu.to_string()]);
        let (answer, cpu_ns) = timed(&mut command)?;
        let rate = answer["ops_per_s"].as_f64().context("ops_per_s is a number")?;
        Ok(Done { rate, cpu_ns: cpu_ns / (rate * f64::from(self.seconds)) })
    }

    /// A run of fio.
    pub(crate) fn fio(&self, fio: &Fio, target: &BenchTarget) -> Result<Done> {
        let mut command = self.confinement.command(Path::new("fio"));
        command.args(["--name=bench", "--rw=randread", "--bs=4k", "--thread", "--time_based", "--readonly"]);
        command.args(["--output-format=json", "--group_reporting"]);
        command.arg(format!("--filename={}", target.path().display()));
        command.arg(format!("--ioengine={}", fio.engine)).arg(format!("--iodepth={}", fio.depth));
        command.arg(format!("--cpus_allowed={}", self.cpu)).arg(format!("--runtime={}", self.seconds));
        match target {
            BenchTarget::Zram(_) => command.arg("--direct=1"),
            BenchTarget::File(_) => command.args(["--direct=0", "--invalidate=0", "--fadvise_hint=0"]),
        };
        if fio.batch_of_32 {
            command.args(["--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32"]);
            command.arg("--iodepth_batch_complete_max=32");
        }
        if fio.batch_of_32 && fio.engine == "io_uring" {
            command.args(["--fixedbufs", "--registerfiles"]);
        }
        let (answer, cpu_ns) = timed(&mut command)?;
        let read = &answer["jobs"][0]["read"];
        let ops = read["total_ios"].as_f64().context("fio's total_ios is a number")?;
        Ok(Done { rate: read["iops"].as_f64().context("fio's iops is a number")?, cpu_ns: cpu_ns / ops })
    }
}

/// Runs a program that answers in JSON; also returns the processor time of the process and its children, in ns, as
/// reported by the shell's `times`.
fn timed(command: &mut Command) -> Result<(Value, f64)> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#""$@"; code=$?; times >&2; exit $code"#, "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    let output = checked(&mut shell)?;
    let answer = json(&String::from_utf8_lossy(&output.stdout)).with_context(|| format!("{shell:?}"))?;
    let times = String::from_utf8_lossy(&output.stderr);
    let cpu_s = times.lines().last().and_then(children_s).with_context(|| format!("no times in {times}"))?;
    Ok((answer, cpu_s * 1e9))
}

/// `0m1.250000s 0m0.500000s`: user and system time of the children, in seconds together.
fn children_s(line: &str) -> Option<f64> {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let mut words = line.split_whitespace();
    Some(seconds(words.next()?)? + seconds(words.next()?)?)
}

/// Builds one executable with optimisation, and says where it is.
pub(crate) fn build(what: &[&str]) -> Result<PathBuf> {
    programs::executable(&crate::root(), &[&["--release"], what].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_times_are_read() {
        assert!(children_s("1m1.250000s 0m0.500000s").is_some_and(|seconds| (seconds - 61.75).abs() < 1e-9));
        assert_eq!(children_s("0m1.25"), None);
        let (answer, cpu_ns) = timed(Command::new("echo").arg("talk {\"a\": 7}")).unwrap();
        assert_eq!(answer["a"], 7);
        assert!((0.0..1e9).contains(&cpu_ns));
    }
}
