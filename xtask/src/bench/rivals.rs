//! The programs that are compared: the engine's example `hammer`, and fio. Each run is a process of its own and answers in
//! JSON.

use super::ground::{Confinement, Ground};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// One way to run our engine.
pub(crate) struct Ours {
    pub(crate) engine: &'static str,
    pub(crate) depth: u32,
    /// Completions per wait, or `default`.
    pub(crate) batch: &'static str,
    /// `on` or `off`.
    pub(crate) recording: &'static str,
}

/// One way to run fio.
pub(crate) struct Fio {
    pub(crate) engine: &'static str,
    pub(crate) depth: u32,
    /// Fixed buffers, registered files, and batches of 32.
    pub(crate) batch_of_32: bool,
}

/// What every run needs.
pub(crate) struct Runner {
    hammer: PathBuf,
    /// Processor of every run: the last one allowed, which is farthest from the interrupts of the first.
    pub(crate) cpu: usize,
    seconds: u32,
    pub(crate) fio_version: String,
}

impl Runner {
    /// Builds ours and finds fio.
    pub(crate) fn prepare(seconds: u32) -> Result<Self> {
        let version = Command::new("fio").arg("--version").output().context("fio is not installed")?;
        let cpus = rustix::thread::sched_getaffinity(None)?;
        let cpu = (0..1024).rev().find(|&cpu| cpus.is_set(cpu)).context("no processor is allowed")?;
        let fio_version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        Ok(Self { hammer: build(&["-p", "rdsk-engine", "--example", "hammer"])?, cpu, seconds, fio_version })
    }

    /// I/Os per second of ours.
    pub(crate) fn ours(&self, ours: &Ours, ground: &Ground, confinement: &Confinement) -> Result<f64> {
        let mut command = confinement.command(&self.hammer);
        command.arg(ground.path()).args([ground.io_path(), ours.engine]);
        command.args([ours.depth.to_string().as_str(), ours.batch]);
        command.args([self.seconds.to_string(), self.cpu.to_string()]).arg(ours.recording);
        let answer = json(&mut command)?;
        answer["ops_per_s"].as_f64().context("ops_per_s is a number")
    }

    /// I/Os per second of fio.
    pub(crate) fn fio(&self, fio: &Fio, ground: &Ground, confinement: &Confinement) -> Result<f64> {
        let mut command = confinement.command(Path::new("fio"));
        command.args(["--name=bench", "--rw=randread", "--bs=4k", "--thread", "--time_based", "--readonly"]);
        command.args(["--output-format=json", "--group_reporting"]);
        command.arg(format!("--filename={}", ground.path().display()));
        command.arg(format!("--ioengine={}", fio.engine)).arg(format!("--iodepth={}", fio.depth));
        command.arg(format!("--cpus_allowed={}", self.cpu)).arg(format!("--runtime={}", self.seconds));
        match ground {
            Ground::Zram(_) => command.arg("--direct=1"),
            Ground::File(_) => command.args(["--direct=0", "--invalidate=0", "--fadvise_hint=0"]),
        };
        if fio.batch_of_32 {
            command.args(["--fixedbufs", "--registerfiles", "--iodepth_batch_submit=32"]);
            command.args(["--iodepth_batch_complete_min=32", "--iodepth_batch_complete_max=32"]);
        }
        let answer = json(&mut command)?;
        answer["jobs"][0]["read"]["iops"].as_f64().context("fio's iops is a number")
    }
}

/// Builds one executable with optimisation, and says where it is.
pub(crate) fn build(what: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--message-format=json-render-diagnostics"]).args(what);
    command.stderr(std::process::Stdio::inherit());
    let output = checked(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next_back().context("cargo names no executable")
}

/// Runs a program that answers in JSON, possibly after a line of talk.
pub(crate) fn json(command: &mut Command) -> Result<Value> {
    let output = checked(command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.find('{').with_context(|| format!("{command:?} gave no JSON: {text}"))?;
    serde_json::from_str(&text[begin..]).with_context(|| format!("{command:?} gave bad JSON"))
}

/// Runs a program to its end; a failure quotes its standard error.
pub(crate) fn checked(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output)
}
