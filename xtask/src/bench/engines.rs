//! How fast rdsk issues I/O: random reads of 4 KiB by the engine's example `hammer` and by fio, on one processor. Each run is a
//! process of its own and answers in JSON.

use super::environment::{BenchTarget, Confinement};
use super::{Compared, Options, in_turn};
use crate::origin;
use crate::programs::{checked, executable, json, text_of};
use anyhow::{Context as _, Result};
use rdsk_stats::median;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One comparison.
struct Case {
    /// Our engine, and completions per wait, or `default`.
    engine: &'static str,
    batch: &'static str,
    depth: u32,
    /// fio's engine.
    fio: &'static str,
    /// Whether fio has batches of 32, and for io_uring fixed buffers and registered files.
    is_tuned: bool,
    /// Ratio of the rates that is wanted.
    goal: f64,
    on: On,
}

/// Where a comparison has a meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    /// Wherever there is something to read.
    Every,
    /// Past the page cache: `io_submit` waits otherwise.
    Direct,
    /// Past the page cache, and the processor time per I/O is compared, too: at most fio's is wanted.
    DirectAndCpu,
}

const fn case(
    (engine, depth, batch): (&'static str, u32, &'static str),
    fio: &'static str,
    is_tuned: bool,
    goal: f64,
    on: On,
) -> Case {
    Case { engine, batch, depth, fio, is_tuned, goal, on }
}

/// `free` is the engine that rdsk chooses by itself.
const CASES: [Case; 12] = [
    case(("uring", 32, "32"), "io_uring", true, 1.15, On::Every),
    case(("uring", 128, "32"), "io_uring", true, 1.15, On::Every),
    case(("uring", 32, "default"), "io_uring", true, 1.15, On::Every),
    case(("uring", 128, "default"), "io_uring", true, 1.15, On::Every),
    case(("uring", 32, "default"), "io_uring", false, 1.5, On::Every),
    case(("aio", 32, "default"), "libaio", false, 1.15, On::DirectAndCpu),
    case(("aio", 128, "default"), "libaio", false, 1.15, On::DirectAndCpu),
    case(("aio", 32, "default"), "libaio", true, 1.15, On::DirectAndCpu),
    case(("free", 32, "default"), "io_uring", true, 1.15, On::DirectAndCpu),
    case(("free", 128, "default"), "io_uring", true, 1.15, On::DirectAndCpu),
    case(("threads", 32, "default"), "psync", false, 0.8, On::Direct),
    case(("sync", 1, "default"), "psync", false, 1.15, On::Every),
];

impl Case {
    fn name(&self) -> String {
        let Self { engine, batch, depth, fio, .. } = self;
        let tuned = if self.is_tuned { ", tuned" } else { "" };
        format!("{engine} depth {depth}, batch {batch}, against fio {fio}{tuned}")
    }
}

/// What one run did.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// I/Os per second.
    rate: f64,
    /// Processor time of the whole process per I/O, its start and the kernel's workers for it included.
    cpu_ns: f64,
}

/// Every case on a page-cached file and on a zram device.
pub(super) fn report(options: &Options) -> Result<()> {
    let runner = Runner::prepare(options.seconds)?;
    println!("{}, {}", runner.fio_version, origin::machine());
    println!(
        "random reads of 4 KiB on processor {}, {} pairs of runs of {} s, latencies recorded; tuned: batches of 32, fixed buffers, \
         registered files",
        runner.cpu, options.pairs, options.seconds
    );
    println!("{}", runner.confinement.describe());
    for make in [BenchTarget::file, BenchTarget::zram] {
        match make() {
            Ok(target) => runner.compare_all(&target, options.pairs)?,
            Err(error) => println!("\nskipped: {error:#}"),
        }
    }
    Ok(())
}

/// What every run needs.
struct Runner {
    hammer: PathBuf,
    /// Processor of every run: the last one allowed, which is farthest from the interrupts of the first.
    cpu: usize,
    confinement: Confinement,
    seconds: u32,
    fio_version: String,
}

impl Runner {
    /// Builds ours and asks fio for its version.
    fn prepare(seconds: u32) -> Result<Self> {
        let version = text_of(Command::new("fio").arg("--version")).context("fio is not installed")?;
        let cpus = rustix::thread::sched_getaffinity(None)?;
        let cpu = (0..1024).rev().find(|&cpu| cpus.is_set(cpu)).context("no processor is allowed")?;
        let hammer = executable(&crate::root(), &["--release", "-p", "rdsk-engine", "--example", "hammer"])?;
        let confinement = Confinement::to(cpu);
        Ok(Self { hammer, cpu, confinement, seconds, fio_version: version.trim().to_owned() })
    }

    fn compare_all(&self, target: &BenchTarget, pairs: usize) -> Result<()> {
        println!("\non {}", target.about);
        println!("{}", Compared::head(["ours/s", "fio/s"], "processor ns per I/O"));
        let is_direct = target.io_path == "direct";
        for case in CASES.iter().filter(|case| is_direct || case.on == On::Every) {
            let runs = in_turn(pairs, || self.ours(case, target), || self.fio(case, target))?;
            let rates: Vec<(f64, f64)> = runs.iter().map(|(ours, fio)| (ours.rate, fio.rate)).collect();
            let cpu = |side: fn(&(Done, Done)) -> f64| median(&runs.iter().map(side).collect::<Vec<_>>());
            let cpu = cpu(|runs| runs.0.cpu_ns).zip(cpu(|runs| runs.1.cpu_ns));
            let (ours_ns, fio_ns) = cpu.context("nothing ran")?;
            let is_dear = case.on == On::DirectAndCpu && ours_ns > fio_ns;
            let note = format!("{ours_ns:.0} against {fio_ns:.0}{}", if is_dear { ", more" } else { "" });
            println!("{}", Compared::of(&rates)?.row(&case.name(), case.goal, &note));
        }
        Ok(())
    }

    /// A run of ours.
    fn ours(&self, case: &Case, target: &BenchTarget) -> Result<Done> {
        let mut command = self.confinement.command(&self.hammer);
        command.arg(&target.path).args([target.io_path, case.engine]);
        command.args([case.depth.to_string().as_str(), case.batch]);
        command.args([self.seconds.to_string(), self.cpu.to_string()]);
        let (answer, cpu_ns) = timed(&mut command)?;
        let rate = answer["ops_per_s"].as_f64().context("ops_per_s is a number")?;
        Ok(Done { rate, cpu_ns: cpu_ns / (rate * f64::from(self.seconds)) })
    }

    /// A run of fio.
    fn fio(&self, case: &Case, target: &BenchTarget) -> Result<Done> {
        let mut command = self.confinement.command(Path::new("fio"));
        command.args(["--name=bench", "--rw=randread", "--bs=4k", "--thread", "--time_based", "--readonly"]);
        command.args(["--output-format=json", "--group_reporting"]);
        command.arg(format!("--filename={}", target.path.display()));
        let depth = if case.fio == "psync" { 1 } else { case.depth };
        command.arg(format!("--ioengine={}", case.fio)).arg(format!("--iodepth={depth}"));
        command.arg(format!("--cpus_allowed={}", self.cpu)).arg(format!("--runtime={}", self.seconds));
        match target.io_path {
            "direct" => command.arg("--direct=1"),
            _ => command.args(["--direct=0", "--invalidate=0", "--fadvise_hint=0"]),
        };
        if case.is_tuned {
            command.args(["--iodepth_batch_submit=32", "--iodepth_batch_complete_min=32"]);
            command.arg("--iodepth_batch_complete_max=32");
        }
        if case.is_tuned && case.fio == "io_uring" {
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
