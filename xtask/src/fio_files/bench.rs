//! One disk, on which fio and rdsk run the same jobs after each other, and what it saw of each: its log, without what rdsk reads whatever
//! its jobs are.

use super::compared::{Compared, Seen, compared, data_requests};
use super::copies::{Scale, as_is, on_device, phases, scaled};
use anyhow::{Context as _, Result, ensure};
use rdsk_loads::{FioError, FioTarget, JobFile, Surroundings};
use rdsk_model::LoadJob;
use rdsk_testkit::fusedisk::{FuseDisk, LOG_ENTRIES, Served};
use rdsk_testkit::{Behaviour, LoopDevice};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A little more than jobs move.
const DISK_BYTES: u64 = 4 << 30;
/// Where the one block lies that finds out what rdsk reads beside its jobs: no job of a copy comes so far.
const PROBE_BYTES: u64 = DISK_BYTES - (1 << 20);
/// How long a program may take: the arguments of timeout(1), which asks first and then ends what does not end.
const LIMIT: [&str; 3] = ["-k", "5", "150"];

/// What differs is run so often at most: whatever else looks at disks on this machine is in the log, too.
const ATTEMPTS: u32 = 3;

/// The disk with both programs.
pub(super) struct Bench {
    disk: FuseDisk,
    device: LoopDevice,
    rdsk: PathBuf,
    directory: tempfile::TempDir,
}

/// What rdsk reads before its jobs begin, and after their end.
struct Probes {
    before: Vec<Seen>,
    after: Vec<Seen>,
}

impl Drop for Bench {
    /// A loop device keeps its settings for the next one who uses it.
    fn drop(&mut self) {
        let _ = std::fs::write(format!("/sys/block/{}/queue/nomerges", self.device.name()), "0");
    }
}

impl Bench {
    /// A disk of its own, which takes no more memory than what is written to it.
    pub(super) fn new(rdsk: &Path) -> Result<Self> {
        let disk = FuseDisk::builder().capacity(DISK_BYTES).device(Behaviour::default()).mount()?;
        let device = disk.loop_device()?;
        // Each request is seen as it was issued.
        let merges = format!("/sys/block/{}/queue/nomerges", device.name());
        std::fs::write(&merges, "2").context(merges)?;
        Ok(Self { disk, device, rdsk: rdsk.to_owned(), directory: tempfile::tempdir()? })
    }

    /// What came of each phase of a job file that is understood, with as many bytes as show what is drawn.
    pub(super) fn phases(&self, text: &str, around: &Surroundings<'_>) -> Result<Vec<Compared>> {
        let scaled_phase = |phase: &String| {
            let moved = on_device(phase, &self.device.path().display().to_string());
            let copy =
                jobs(&scaled(&moved, Scale::PLAIN), around).map(|jobs| scaled(&moved, Scale::of(&jobs)));
            self.run(copy, around)
        };
        phases(text).iter().map(scaled_phase).collect()
    }

    /// What came of a job file of one phase, as it is.
    pub(super) fn whole(&self, text: &str, around: &Surroundings<'_>) -> Result<Compared> {
        self.run(Ok(as_is(&on_device(text, &self.device.path().display().to_string()))), around)
    }

    fn run(&self, copy: Result<String, FioError>, around: &Surroundings<'_>) -> Result<Compared> {
        let (text, jobs) = match copy.and_then(|text| jobs(&text, around).map(|jobs| (text, jobs))) {
            Ok(copy) => copy,
            Err(error) => return Ok(failed(format!("**not for this disk**: {error}"))),
        };
        let copy = self.directory.path().join("jobs.fio");
        std::fs::write(&copy, text)?;
        let mut result = self.both(&copy, &jobs)?;
        for _ in 1..ATTEMPTS {
            if !result.is_alike {
                result = self.both(&copy, &jobs)?;
            }
        }
        Ok(result)
    }

    /// Runs both programs, fio first.
    fn both(&self, copy: &Path, jobs: &[LoadJob]) -> Result<Compared> {
        let (theirs, by_fio) = self.log_of(Command::new("timeout").args(LIMIT).arg("fio").arg(copy))?;
        if !by_fio.status.success() {
            let error = String::from_utf8_lossy(&by_fio.stderr);
            return Ok(failed(format!(
                "**fio failed**: {}",
                error.lines().next().unwrap_or("it did not end")
            )));
        }
        let writes = jobs.iter().any(LoadJob::changes_data);
        let probes = self.probes(writes)?;
        let (ours, by_rdsk) = self.log_of(self.rdsk_line(copy, writes)?.args(["--seed", "1"]))?;
        if !by_rdsk.status.success() {
            let error = String::from_utf8_lossy(&by_rdsk.stderr);
            return Ok(failed(format!(
                "**rdsk failed**: {}",
                error.lines().next().unwrap_or("it did not end")
            )));
        }
        ensure!(ours.len().max(theirs.len()) < LOG_ENTRIES, "the log of the disk is full");
        Ok(compared(jobs, &probes.removed(data_requests(&ours)), &data_requests(&theirs)))
    }

    fn rdsk_line(&self, file: &Path, writes: bool) -> Result<Command> {
        let mut line = Command::new("timeout");
        line.args(LIMIT).arg(&self.rdsk).args(["load", "--fio"]).arg(file).arg(self.device.path());
        line.args(["--no-history", "--quiet"]);
        if writes {
            let identity =
                self.device.sysfs("loop/backing_file").context("a loop device has a backing file")?;
            line.args(["--destroy", &identity]);
        }
        Ok(line)
    }

    /// What rdsk reads of the disk before and after one block.
    fn probes(&self, writes: bool) -> Result<Probes> {
        let file = self.directory.path().join("probes.fio");
        let kind = if writes { "write" } else { "read" };
        std::fs::write(&file, format!("[a]\nrw={kind}\nsize=4k\noffset={PROBE_BYTES}\ndirect=1\n"))?;
        let (log, output) = self.log_of(&mut self.rdsk_line(&file, writes)?)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut before = data_requests(&log);
        let is_block = |request: &Seen| request.is_read != writes && request.offset_bytes == PROBE_BYTES;
        let block = before.iter().position(is_block).context("the log has no request of the job")?;
        let after = before.split_off(block).split_off(1);
        Ok(Probes { before, after })
    }

    /// What a program asks of the disk.
    fn log_of(&self, command: &mut Command) -> Result<(Vec<Served>, Output)> {
        self.settle();
        self.disk.clear_log();
        let output = command.current_dir(self.directory.path()).output().context("cannot start a program")?;
        self.settle();
        Ok((self.disk.log(), output))
    }

    fn settle(&self) {
        let mut before = self.disk.counts();
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.disk.counts();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

fn failed(text: String) -> Compared {
    Compared { text, is_alike: false }
}

impl Probes {
    /// A log without them: what comes first was read before the jobs, and what comes last after them.
    fn removed(&self, mut log: Vec<Seen>) -> Vec<Seen> {
        for probe in &self.before {
            if let Some(at) = log.iter().position(|request| request == probe) {
                log.remove(at);
            }
        }
        for probe in self.after.iter().rev() {
            if let Some(at) = log.iter().rposition(|request| request == probe) {
                log.remove(at);
            }
        }
        log
    }
}

/// The jobs of a copy, which has one phase.
fn jobs(text: &str, around: &Surroundings<'_>) -> Result<Vec<LoadJob>, FioError> {
    let load = JobFile::parse("jobs.fio", text, around)?.load(FioTarget::Device(DISK_BYTES))?;
    Ok(load.phases.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_taken_from_the_ends_of_a_log() {
        let read = |block: u64| Seen { is_read: true, offset_bytes: block * 4096, bytes: 4096 };
        let probes = Probes { before: vec![read(0), read(9)], after: vec![read(0)] };
        let log = [0, 9, 0, 1, 2, 0].map(read).to_vec();
        assert_eq!(probes.removed(log), [0, 1, 2].map(read));
    }
}
