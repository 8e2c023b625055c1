//! `rdsk dd`, with its evidence, against GNU dd: the same copies in turn, by the time that each prints; and GNU dd beside
//! `rdsk watch` against dd alone. Ratios are medians of pairs: now and then the kernel lets a writer of either side wait for
//! writeback, six times as long as the copy takes. Files and the loop device are the benchmark's own and go away with it.

use super::{Compared, Options, in_turn};
use crate::programs::{rdsk_command, release, text_of};
use anyhow::{Context as _, Result, ensure};
use rdsk_testkit::LoopDevice;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Bytes of one copy.
const BYTES: u64 = 256 << 20;
/// Bytes that are read beside `rdsk watch`, in blocks of 4 KiB: a second or two.
const WATCHED_BYTES: u64 = 128 << 20;
/// The ratios that are wanted.
const GOAL: f64 = 0.98;
const GOAL_BESIDE_WATCH: f64 = 0.97;
/// Pairs for each pair that is asked for: a copy takes a tenth of a second, and writeback makes it scatter.
const PAIRS_EACH: usize = 4;

/// What is copied.
const COPIES: [(&str, &str); 6] = [
    ("file to file, 16k", "if=in of=out bs=16k count=16384"),
    ("file to file, 1M", "if=in of=out bs=1M count=256"),
    ("zero to file, 16k", "if=/dev/zero of=out bs=16k count=16384"),
    ("zero to file, 1M", "if=/dev/zero of=out bs=1M count=256"),
    ("zero to direct, 16k", "if=/dev/zero of=out bs=16k count=16384 oflag=direct"),
    ("zero to direct, 1M", "if=/dev/zero of=out bs=1M count=256 oflag=direct"),
];

/// How dd is watched, in words, and the flags.
const WATCHED: [(&str, &[&str]); 3] = [
    ("counters of sysfs, each second", &["--evidence", "sysfs"]),
    ("BPF programs, each second", &["--evidence", "bpf"]),
    ("BPF programs, ten times a second", &["--evidence", "bpf", "--interval", "100ms"]),
];

/// Every copy by both programs.
pub(super) fn report(options: &Options) -> Result<()> {
    let version = text_of(Command::new("dd").arg("--version")).context("dd is not installed")?;
    let rdsk = release("rdsk")?;
    let place = tempfile::tempdir_in(crate::root().join("target")).context("a directory beside the build")?;
    fill(&place.path().join("in"), BYTES)?;
    let pairs = options.pairs * PAIRS_EACH;
    println!(
        "{}, {pairs} pairs of {} MiB, the input cached",
        version.lines().next().unwrap_or_default(),
        BYTES >> 20
    );
    println!("{}", Compared::head(["rdsk MB/s", "dd MB/s"], ""));
    for (name, line) in COPIES {
        let run = |mut command: Command| {
            let seconds = dd_seconds(command.args(line.split(' ')).current_dir(place.path()))?;
            let out = place.path().join("out");
            File::open(&out)?.sync_all()?;
            std::fs::remove_file(&out)?;
            Ok(BYTES as f64 / 1e6 / seconds)
        };
        let ours = || {
            let mut command = rdsk_command(&rdsk);
            command.arg("dd");
            run(command)
        };
        let rates = in_turn(pairs, ours, || run(Command::new("dd")))?;
        println!("{}", Compared::of(&rates)?.row(name, GOAL, ""));
    }
    Ok(())
}

/// Direct reads of 4 KiB by dd, one at a time, beside `rdsk watch` and alone.
pub(super) fn beside_watch(options: &Options) -> Result<()> {
    let rdsk = release("rdsk")?;
    // In memory, so that nothing waits and every nanosecond shows.
    let file = tempfile::NamedTempFile::new_in("/dev/shm").context("a file in memory")?;
    fill(file.path(), WATCHED_BYTES)?;
    let device = LoopDevice::builder().over(file.path()).create()?;
    let pairs = options.pairs * PAIRS_EACH;
    println!("{} direct reads of 4 KiB of a loop device, {pairs} pairs", WATCHED_BYTES / 4096);
    println!("{}", Compared::head(["watched/s", "alone/s"], ""));
    for (name, flags) in WATCHED {
        let alone = || {
            let mut command = Command::new("dd");
            command
                .arg(format!("if={}", device.path().display()))
                .args(["of=/dev/null", "bs=4k", "iflag=direct"]);
            Ok((WATCHED_BYTES / 4096) as f64 / dd_seconds(&mut command)?)
        };
        let watched = || {
            let watching = Watching::start(&rdsk, device.path(), flags)?;
            let rate = alone();
            watching.end().and(rate)
        };
        match in_turn(pairs, watched, alone) {
            Ok(rates) => println!("{}", Compared::of(&rates)?.row(name, GOAL_BESIDE_WATCH, "")),
            Err(error) => println!("{name}: not measured: {error:#}"),
        }
    }
    Ok(())
}

fn fill(path: &Path, bytes: u64) -> Result<()> {
    std::fs::write(path, vec![0x5a_u8; usize::try_from(bytes)?])?;
    Ok(File::open(path)?.sync_all()?)
}

/// Runs dd, whichever it is: the time in its last line.
fn dd_seconds(command: &mut Command) -> Result<f64> {
    let output = command.env("LC_ALL", "C").output().with_context(|| format!("{command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    time_in(&said).with_context(|| format!("no time in {said}"))
}

fn time_in(said: &str) -> Option<f64> {
    let (_, rest) = said.split_once(" copied, ")?;
    rest.split(' ').next()?.parse().ok()
}

/// `rdsk watch` beside the reads.
struct Watching(Child);

impl Watching {
    /// Returns when it has printed its first report, and so counts.
    fn start(rdsk: &Path, device: &Path, flags: &[&str]) -> Result<Self> {
        use std::io::Read as _;
        let mut command = rdsk_command(rdsk);
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
