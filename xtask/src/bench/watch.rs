//! What watching costs somebody else's dd: direct reads of 4 KiB, one at a time, on a loop device of our own over memory, beside
//! `rdsk watch` and without it, in turn. The device and its file go away afterwards.

use super::rivals::build;
use crate::programs::text_of;
use anyhow::{Context as _, Result, ensure};
use rdsk_stats::paired_ratio;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What `--only` looks for.
pub(crate) const NAME: &str = "watch: dd beside rdsk watch, against dd alone";

/// The ratio that is wanted.
const GOAL: f64 = 0.97;
const FILE_BYTES: u64 = 64 << 20;
/// The reads of one run: about half a second.
const READS: u32 = 60_000;
/// Pairs for each pair that is asked for.
const PAIRS_EACH: usize = 4;

/// How it is watched, in words, and the further flags.
const CASES: [(&str, &[&str]); 3] = [
    ("counters of sysfs, each second", &["--evidence", "sysfs"]),
    ("BPF programs, each second", &["--evidence", "bpf"]),
    ("BPF programs, ten times a second", &["--evidence", "bpf", "--interval", "100ms"]),
];

/// Prints the table, or why it cannot be measured.
pub(crate) fn report(pairs: usize) {
    if let Err(error) = compare(pairs * PAIRS_EACH) {
        println!("{NAME}: not measured: {error:#}");
    }
}

fn compare(pairs: usize) -> Result<()> {
    let rdsk = build(&["-p", "rdsk", "--bin", "rdsk"])?;
    let device = LoopDevice::create()?;
    println!("\n{NAME}");
    println!(
        "{READS} direct reads of 4 KiB at depth 1, {pairs} pairs in the order A B B A, rates by dd's own line"
    );
    println!("{:<34} {:>9} {:>9} {:>6}  95 % interval  goal {GOAL}", "", "watched/s", "alone/s", "ratio");
    for (name, flags) in CASES {
        match compare_one(&rdsk, &device, flags, pairs) {
            Ok(times) => show(name, &times)?,
            Err(error) => println!("{name:<34} not measured: {error:#}"),
        }
    }
    Ok(())
}

fn compare_one(rdsk: &Path, device: &LoopDevice, flags: &[&str], pairs: usize) -> Result<Vec<(f64, f64)>> {
    let mut times = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let watched = || {
            let watcher = Watching::start(rdsk, &device.path, flags)?;
            let seconds = read(&device.path)?;
            watcher.end()?;
            Ok::<f64, anyhow::Error>(seconds)
        };
        times.push(if pair % 2 == 0 {
            let first = watched()?;
            (first, read(&device.path)?)
        } else {
            let first = read(&device.path)?;
            (watched()?, first)
        });
    }
    Ok(times)
}

fn show(name: &str, times: &[(f64, f64)]) -> Result<()> {
    // Rates are the other way round than times; the pairs follow each other at equal distances.
    let pairs: Vec<(f64, f64, f64)> =
        (0_u32..).zip(times).map(|(at, &(watched, alone))| (at.into(), alone, watched)).collect();
    let ratio = paired_ratio(&pairs).context("every time is positive")?;
    let interval =
        ratio.interval.map_or_else(|| "none".into(), |(low, high)| format!("{low:.3} … {high:.3}"));
    let rate = |of: fn(&(f64, f64)) -> f64| {
        let mut rates: Vec<f64> = times.iter().map(|pair| f64::from(READS) / of(pair)).collect();
        super::median(&mut rates)
    };
    let mark = if ratio.ratio >= GOAL { "" } else { "  missed" };
    let (watched, alone) = (rate(|pair| pair.0), rate(|pair| pair.1));
    println!("{name:<34} {watched:>9.0} {alone:>9.0} {:>6.3}  {interval}{mark}", ratio.ratio);
    Ok(())
}

/// One dd; the time in its last line.
fn read(device: &Path) -> Result<f64> {
    let mut command = Command::new("dd");
    command.arg(format!("if={}", device.display())).args(["of=/dev/null", "bs=4k", "iflag=direct"]);
    // The file is read again and again: what is measured is the path to it.
    let blocks = FILE_BYTES / 4096;
    let mut seconds = 0.0;
    for _ in 0..u64::from(READS).div_ceil(blocks) {
        let output = command.env("LC_ALL", "C").output().context("dd is not installed")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?}: {said}");
        seconds += super::copies::time_in(&said).with_context(|| format!("no time in {said}"))?;
    }
    Ok(seconds)
}

/// `rdsk watch` beside the reads.
struct Watching(Child);

impl Watching {
    /// Returns when it has printed its first report, and so counts.
    fn start(rdsk: &Path, device: &Path, flags: &[&str]) -> Result<Self> {
        use std::io::Read as _;
        let mut command = Command::new(rdsk);
        command.args(["watch", "--json"]).arg(device).args(flags);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut stdout = child.stdout.take().context("a pipe was asked for")?;
        let watching = Self(child);
        let read = stdout.read(&mut [0; 64]).context("the first report")?;
        ensure!(read > 0, "{command:?} ended at once");
        // Whatever follows is read and thrown away, so that it never waits for us.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Ok(watching)
    }

    fn end(mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

/// A loop device over a file in memory.
struct LoopDevice {
    path: PathBuf,
    _file: tempfile::NamedTempFile,
}

impl LoopDevice {
    fn create() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let file = tempfile::NamedTempFile::new_in(memory).context("a file in memory")?;
        std::fs::write(file.path(), vec![0x5a_u8; usize::try_from(FILE_BYTES)?])?;
        File::open(file.path())?.sync_all()?;
        let mut command = Command::new("losetup");
        let path = text_of(command.args(["--find", "--show"]).arg(file.path())).context("a loop device")?;
        Ok(Self { path: path.trim().into(), _file: file })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if !detached.is_ok_and(|status| status.success()) {
            println!("{} could not be detached", self.path.display());
        }
    }
}
