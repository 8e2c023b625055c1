//! `cargo xtask campaign fio-files DIRECTORY`: what becomes of every job file of fio below a directory, which is none of this project's:
//! understood, or refused by which reason. With `--run`, what fits a small disk is run by rdsk and by fio on the same one, and its log is
//! compared. The page has names and counts, and no text of a job file.

use crate::{origin, programs};
use anyhow::{Context as _, Result, ensure};
use rdsk_loads::{FioError, FioLoad, FioPlace, FioTarget, JobFile, Surroundings};
use rdsk_model::LoadJob;
use rdsk_testkit::fusedisk::{Counts, FuseDisk};
use rdsk_testkit::{Behaviour, LoopDevice, Need};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

const PAGE: &str = "xtask/records/campaigns/fio-files.md";
/// Of devices that a job file only names.
const NAMED_BYTES: u64 = 1 << 40;
/// Of the disk on which both programs run.
const DISK_BYTES: u64 = 2 << 30;
/// What a job file may move there.
const MOST_BYTES: u64 = 512 << 20;
/// How long a program may take.
const LIMIT_S: &str = "120";

/// What became of one job file.
struct Verdict {
    name: String,
    /// Refused by these reasons, each once; or what came of the run.
    end: Result<String, Vec<String>>,
}

/// Reads the files and writes the page.
///
/// # Errors
/// When there is no such directory, or no disk can be made.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let runs = arguments.iter().any(|word| word == "--run");
    let words: Vec<&String> = arguments.iter().filter(|word| *word != "--run").collect();
    let [directory] = words.as_slice() else { anyhow::bail!("name the directory with the job files") };
    let mut files = Vec::new();
    collect(Path::new(directory.as_str()), &mut files)?;
    files.sort();
    ensure!(!files.is_empty(), "there is no *.fio below {directory}");
    let bench = if runs { Some(Bench::new(root)?) } else { None };
    let mut verdicts = Vec::new();
    for file in &files {
        let verdict = judge(file, Path::new(directory.as_str()), bench.as_ref())?;
        match &verdict.end {
            Ok(end) => println!("{}: {end}", verdict.name),
            Err(why) => println!("{}: refused: {}", verdict.name, why.join("; ")),
        }
        verdicts.push(verdict);
    }
    let page = root.join(PAGE);
    crate::write(&page, &draw(&verdicts)?)?;
    let refused = verdicts.iter().filter(|verdict| verdict.end.is_err()).count();
    println!("{} files, {refused} refused: {}", verdicts.len(), page.display());
    let differs = verdicts.iter().any(|verdict| verdict.end.as_ref().is_ok_and(|end| end.starts_with("**")));
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "fio") {
            files.push(path);
        }
    }
    Ok(())
}

fn judge(file: &Path, directory: &Path, bench: Option<&Bench>) -> Result<Verdict> {
    let name = file.strip_prefix(directory).unwrap_or(file).display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let around = Surroundings {
        variable: &|name| std::env::var(name).ok(),
        read: &|name| std::fs::read_to_string(name).map_err(|error| error.to_string()),
        page_bytes: 4096,
        memory_mib: 16 << 10,
        processors: 4,
    };
    let understood = JobFile::parse(&name, &text, &around).and_then(|jobs| {
        let target = match jobs.place()? {
            FioPlace::Named(name) if name.starts_with("/dev/") => FioTarget::Device(NAMED_BYTES),
            FioPlace::Named(_) | FioPlace::Directory(_) => FioTarget::Directory,
        };
        jobs.load(target).map(|load| (jobs, load))
    });
    let end = match understood {
        Err(error) => Err(reasons(&error)),
        Ok((jobs, _)) => Ok(match bench {
            Some(bench) => match jobs.load(FioTarget::Device(DISK_BYTES)) {
                Ok(load) => bench.compared(file, &text, &load)?,
                Err(_) => "understood; not for this disk".to_owned(),
            },
            None => "understood".to_owned(),
        }),
    };
    Ok(Verdict { name, end })
}

/// The reasons of a refusal, each once, without the values that a job file names.
fn reasons(error: &FioError) -> Vec<String> {
    let FioError::Refused(refusals) = error else { return vec![error.to_string()] };
    let mut reasons = Vec::new();
    for refusal in refusals {
        let option = refusal.option.split('=').next().unwrap_or_default();
        let reason = match option {
            "ioengine" => format!("ioengine: {}", refusal.why),
            _ if refusal.why.ends_with("has no value") => "a variable that is not set here".to_owned(),
            _ => format!("{option}: {}", refusal.why),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// The disk on which both programs run.
struct Bench {
    disk: FuseDisk,
    device: LoopDevice,
    rdsk: PathBuf,
    directory: tempfile::TempDir,
}

impl Bench {
    fn new(root: &Path) -> Result<Self> {
        for need in [Need::Root, Need::Fuse, Need::Loop, Need::Tool("fio")] {
            need.probe().map_err(|why| anyhow::anyhow!("{}: {why}", need.name()))?;
        }
        let disk = FuseDisk::builder().capacity(DISK_BYTES).device(Behaviour::default()).mount()?;
        let device = disk.loop_device()?;
        Ok(Self { disk, device, rdsk: programs::rdsk(root)?, directory: tempfile::tempdir()? })
    }

    /// What came of a job file that is understood.
    fn compared(&self, file: &Path, text: &str, load: &FioLoad) -> Result<String> {
        let jobs: Vec<&LoadJob> = load.phases.iter().flatten().collect();
        let bytes = |job: &&LoadJob| job.max_bytes.map(|bytes| bytes.saturating_mul(u64::from(job.streams)));
        let Some(all) = jobs.iter().map(bytes).collect::<Option<Vec<u64>>>() else {
            return Ok("understood; the clock ends it".into());
        };
        let end_bytes = jobs.iter().map(|job| job.offset_bytes + job.span_bytes).max().unwrap_or(0);
        let longest_s = jobs
            .iter()
            .filter_map(|job| Some(job.max_bytes? as f64 / job.min_block_bytes() as f64 / job.rate?.per_s));
        let is_slow =
            longest_s.fold(0.0, f64::max) > 60.0 || jobs.iter().any(|job| job.delay_ns > 20_000_000_000);
        if all.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes)) > MOST_BYTES
            || end_bytes > DISK_BYTES
            || is_slow
        {
            return Ok("understood; too large for this campaign".into());
        }
        let copy = self.directory.path().join(file.file_name().unwrap_or_default());
        std::fs::write(&copy, on_device(text, &self.device.path().display().to_string()))?;
        let (theirs, by_fio) = self.seen(Command::new("timeout").arg(LIMIT_S).arg("fio").arg(&copy))?;
        if !by_fio.status.success() {
            return Ok("understood; the fio of this machine does not run it".into());
        }
        let writes = jobs.iter().any(|job| job.writes.is_some());
        let base = self.base(writes)?;
        let (ours, by_rdsk) = self.seen(self.rdsk_line(file, writes)?.args(["--seed", "1"]))?;
        if !by_rdsk.status.success() {
            let error = String::from_utf8_lossy(&by_rdsk.stderr);
            return Ok(format!("**rdsk failed**: {}", error.lines().next().unwrap_or_default()));
        }
        Ok(verdict(&minus(ours, base), &theirs))
    }

    fn rdsk_line(&self, file: &Path, writes: bool) -> Result<Command> {
        let mut line = Command::new("timeout");
        line.arg(LIMIT_S).arg(&self.rdsk).args(["load", "--fio"]).arg(file).arg(self.device.path());
        line.args(["--no-history", "--quiet"]);
        if writes {
            let identity =
                self.device.sysfs("loop/backing_file").context("a loop device has a backing file")?;
            line.args(["--destroy", &identity]);
        }
        Ok(line)
    }

    /// What rdsk reads of the disk whatever the job is, and one block.
    fn base(&self, writes: bool) -> Result<Counts> {
        let file = self.directory.path().join("base.fio");
        let kind = if writes { "write" } else { "read" };
        std::fs::write(&file, format!("[a]\nrw={kind}\nsize=4k\ndirect=1\n"))?;
        let (counts, output) = self.seen(&mut self.rdsk_line(&file, writes)?)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(counts)
    }

    /// What a program asks of the disk.
    fn seen(&self, command: &mut Command) -> Result<(Counts, Output)> {
        self.settle();
        self.disk.clear_log();
        let output = command.current_dir(self.directory.path()).output().context("cannot start a program")?;
        self.settle();
        Ok((self.disk.counts(), output))
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

/// The job file with all its jobs on one device.
fn on_device(text: &str, device: &str) -> String {
    let is_place = |line: &&str| {
        let name = line.split('=').next().unwrap_or_default().trim();
        ["filename", "directory", "filename_format"].contains(&name)
    };
    let rest: Vec<&str> = text.lines().filter(|line| !is_place(line)).collect();
    format!("[global]\nfilename={device}\n{}\n", rest.join("\n"))
}

/// What is left of a program's requests without those that it always makes, but for its one block.
fn minus(ours: Counts, base: Counts) -> Counts {
    Counts {
        reads: ours.reads.saturating_sub(base.reads.saturating_sub(u64::from(base.writes == 0))),
        read_bytes: ours.read_bytes.saturating_sub(base.read_bytes.saturating_sub(if base.writes == 0 {
            4096
        } else {
            0
        })),
        ..ours
    }
}

fn verdict(ours: &Counts, theirs: &Counts) -> String {
    let requests = |counts: &Counts| counts.reads + counts.writes;
    let bytes = |counts: &Counts| counts.read_bytes + counts.write_bytes;
    let reads = |counts: &Counts| 100.0 * counts.read_bytes as f64 / bytes(counts).max(1) as f64;
    let off = |ours: u64, theirs: u64| 100.0 * (ours as f64 / theirs.max(1) as f64 - 1.0);
    let (of_bytes, of_requests) = (off(bytes(ours), bytes(theirs)), off(requests(ours), requests(theirs)));
    let of_mix = reads(ours) - reads(theirs);
    let text = format!("bytes {of_bytes:+.1}%, requests {of_requests:+.1}%, mix {of_mix:+.1} points");
    let is_alike = [of_bytes, of_requests, of_mix].iter().all(|off| off.abs() <= 2.0);
    if is_alike { format!("run: {text}") } else { format!("**differs**: {text}") }
}

fn draw(verdicts: &[Verdict]) -> Result<String> {
    let mut page = format!(
        "# Campaign `fio-files`\n\nMade by `cargo xtask campaign fio-files DIRECTORY --run` on {}: what becomes of job files of fio, \
         and for those that run, how far the disk's log of rdsk differs from that of fio.\n\nMachine: {}.\n\n",
        origin::now("+%F")?,
        origin::machine()
    );
    let mut line = |text: String| writeln!(page, "{text}").expect("a String takes everything");
    let refused: Vec<&Vec<String>> =
        verdicts.iter().filter_map(|verdict| verdict.end.as_ref().err()).collect();
    line(format!(
        "{} files: {} understood, {} refused.\n",
        verdicts.len(),
        verdicts.len() - refused.len(),
        refused.len()
    ));
    line("| job file | result |\n|---|---|".into());
    for verdict in verdicts {
        if let Ok(end) = &verdict.end {
            line(format!("| {} | {end} |", verdict.name));
        }
    }
    // A file is counted by its first reason.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    refused.iter().filter_map(|reasons| reasons.first()).for_each(|why| *counts.entry(why).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    line("\n| refused, by the first reason | files |\n|---|---:|".into());
    counts.into_iter().for_each(|(why, count)| line(format!("| {why} | {count} |")));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_is_moved_to_one_device() {
        let text = on_device("[global]\nbs=4k\n[a]\nfilename=/x\nrw=read\ndirectory = /y\n", "/dev/loop9");
        assert_eq!(text, "[global]\nfilename=/dev/loop9\n[global]\nbs=4k\n[a]\nrw=read\n");
    }

    #[test]
    fn what_the_disk_saw_is_alike_within_two_percent() {
        let of = |reads, read_bytes| Counts { reads, read_bytes, ..Counts::default() };
        let base = of(11, 10 * 512 + 4096);
        let ours = minus(of(1010, 10 * 512 + 1000 * 4096), base);
        assert_eq!(ours, of(1000, 1000 * 4096));
        assert!(verdict(&ours, &of(1001, 1001 * 4096)).starts_with("run: bytes -0.1%"));
        assert!(verdict(&ours, &of(1001, 1100 * 4096)).starts_with("**differs**"));
    }

    #[test]
    fn reasons_have_no_values() {
        let around = Surroundings {
            variable: &|_| None,
            read: &|_| Err(String::new()),
            page_bytes: 4096,
            memory_mib: 1,
            processors: 1,
        };
        let error =
            JobFile::parse("x", "[a]\nrw=trim\nbs=${NONE}\n[b]\nioengine=null\n", &around).unwrap_err();
        let expected = [
            "rw: rdsk discards nothing",
            "a variable that is not set here",
            "ioengine: this engine does no I/O of a disk",
        ];
        assert_eq!(reasons(&error).len(), 3);
        assert!(expected.iter().all(|reason| reasons(&error).iter().any(|other| other == reason)));
    }
}
