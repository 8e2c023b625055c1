//! `cargo xtask campaign fio-files DIRECTORY`: what becomes of every job file of fio below a directory, which is none of this project's:
//! understood, or refused by which reason. With `--run`, what fits a small disk is run by rdsk and by fio on the same one, and its log is
//! compared. The page has names and counts, and no text of a job file.

use crate::{origin, programs};
use anyhow::{Context as _, Result, ensure};
use rdsk_loads::{FioError, FioLoad, FioPlace, FioTarget, JobFile, Surroundings};
use rdsk_model::LoadJob;
use rdsk_testkit::fusedisk::{Counts, FuseDisk, Op, Served};
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
/// What a job may move there, and how many clones of it there are at most.
const SCALED: &str = "16m";
const SCALED_BYTES: u64 = 16 << 20;
const MOST_CLONES: u64 = 4;
/// How long a program may take: the arguments of timeout(1), which asks first and then ends what does not end.
const LIMIT: [&str; 3] = ["-k", "5", "60"];

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
        let copy = self.directory.path().join(file.file_name().unwrap_or_default());
        let unit_bytes = unit_bytes(load);
        let moved = on_device(text, &self.device.path().display().to_string());
        std::fs::write(&copy, scaled(&moved, unit_bytes))?;
        let (theirs, by_fio) = self.seen(Command::new("timeout").args(LIMIT).arg("fio").arg(&copy))?;
        if !by_fio.status.success() {
            return Ok("understood; fio does not end here, or fails".into());
        }
        let writes = load.phases.iter().flatten().any(LoadJob::changes_data);
        let drawn = by_chance(&theirs, unit_bytes);
        let (theirs, base) = (counted(&theirs, unit_bytes), counted(&self.base(writes)?, unit_bytes));
        let (ours, by_rdsk) = self.seen(self.rdsk_line(&copy, writes)?.args(["--seed", "1"]))?;
        if !by_rdsk.status.success() {
            let error = String::from_utf8_lossy(&by_rdsk.stderr);
            return Ok(format!("**rdsk failed**: {}", error.lines().next().unwrap_or_default()));
        }
        Ok(verdict(&minus(counted(&ours, unit_bytes), base), &theirs, drawn))
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

    /// What rdsk reads of the disk whatever the job is, and one block.
    fn base(&self, writes: bool) -> Result<Vec<Served>> {
        let file = self.directory.path().join("base.fio");
        let kind = if writes { "write" } else { "read" };
        std::fs::write(&file, format!("[a]\nrw={kind}\nsize=4k\ndirect=1\n"))?;
        let (log, output) = self.seen(&mut self.rdsk_line(&file, writes)?)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(log)
    }

    /// What a program asks of the disk.
    fn seen(&self, command: &mut Command) -> Result<(Vec<Served>, Output)> {
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

/// The size of all requests of a load; `None` where it has several.
fn unit_bytes(load: &FioLoad) -> Option<u64> {
    let jobs = || load.phases.iter().flatten();
    let unit_bytes = jobs().map(LoadJob::max_block_bytes).max()?;
    jobs().all(|job| job.min_block_bytes() == unit_bytes).then_some(unit_bytes)
}

/// The sums of a log; requests that the kernel merged count as those that they were made of.
fn counted(log: &[Served], unit_bytes: Option<u64>) -> Counts {
    let mut counts = Counts::default();
    for served in log {
        let requests = unit_bytes.map_or(1, |unit_bytes| served.bytes.div_ceil(unit_bytes));
        match served.op {
            Op::Read => {
                counts.reads += requests;
                counts.read_bytes += served.bytes;
            }
            Op::Write => {
                counts.writes += requests;
                counts.write_bytes += served.bytes;
            }
            Op::Flush => counts.flushes += 1,
        }
    }
    counts
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

/// The job file with jobs that end soon, and by their bytes: the same for both programs.
fn scaled(text: &str, unit_bytes: Option<u64>) -> String {
    let scaled_line = |line: &str| -> Option<String> {
        let plain = line.split([';', '#']).next().unwrap_or_default();
        let (name, value) =
            plain.split_once('=').map_or((plain.trim(), ""), |(name, value)| (name.trim(), value.trim()));
        let is_more = |most: u64| bytes(value).is_none_or(|bytes| bytes > most);
        match name {
            "runtime" | "timeout" | "time_based" | "startdelay" | "loops" => None,
            "size" | "io_size" | "filesize" if is_more(SCALED_BYTES) => Some(format!("{name}={SCALED}")),
            "offset" | "offset_increment" if is_more(1 << 30) => Some(format!("{name}={SCALED}")),
            // What the page cache makes of requests, and when, is no program's.
            "direct" | "buffered" => Some("direct=1".to_owned()),
            "numjobs" if is_more(MOST_CLONES) => Some(format!("{name}={MOST_CLONES}")),
            _ => Some(line.to_owned()),
        }
    };
    // With requests of several sizes, fio cuts those that meet a block already used, and rdsk does not.
    let places = if unit_bytes.is_none() { "norandommap\n" } else { "" };
    // What names no size has one by the first lines.
    let lines: Vec<String> = text.lines().filter_map(scaled_line).collect();
    lines.join("\n").replacen("[global]", &format!("[global]\nthread\ndirect=1\n{places}size={SCALED}"), 1)
        + "\n"
}

/// A size in fio's ordinary units; `None` for anything else.
fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let number = lower.trim_end_matches('b').trim_end_matches(['k', 'm', 'g', 't']);
    let shift = match lower.trim_end_matches('b').chars().last()? {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => 0,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
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

/// By how many percent the number of requests of so many bytes differs between two programs that draw their sizes, once in a thousand
/// times; 0 where all have one size.
fn by_chance(log: &[Served], unit_bytes: Option<u64>) -> f64 {
    let sizes: Vec<f64> =
        log.iter().filter(|served| served.bytes > 0).map(|served| served.bytes as f64).collect();
    if unit_bytes.is_some() || sizes.is_empty() {
        return 0.0;
    }
    let count = sizes.len() as f64;
    let mean = sizes.iter().sum::<f64>() / count;
    let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / count;
    100.0 * 3.29 * (2.0 * variance / count).sqrt() / mean
}

fn verdict(ours: &Counts, theirs: &Counts, drawn: f64) -> String {
    let requests = |counts: &Counts| counts.reads + counts.writes;
    let bytes = |counts: &Counts| counts.read_bytes + counts.write_bytes;
    let reads = |counts: &Counts| 100.0 * counts.read_bytes as f64 / bytes(counts).max(1) as f64;
    let off = |ours: u64, theirs: u64| 100.0 * (ours as f64 / theirs.max(1) as f64 - 1.0);
    let (of_bytes, of_requests) = (off(bytes(ours), bytes(theirs)), off(requests(ours), requests(theirs)));
    let of_mix = reads(ours) - reads(theirs);
    let text = format!("bytes {of_bytes:+.1}%, requests {of_requests:+.1}%, mix {of_mix:+.1} points");
    // Each request of a mix is drawn: of few, chance differs by more, once in a thousand times by so much.
    let share = reads(theirs) / 100.0;
    let mix_drawn = 100.0 * 3.29 * (2.0 * share * (1.0 - share) / requests(theirs).max(1) as f64).sqrt();
    let is_alike =
        of_bytes.abs() <= 2.0 && of_requests.abs() <= drawn.max(2.0) && of_mix.abs() <= mix_drawn.max(2.0);
    if is_alike { format!("run: {text}") } else { format!("**differs**: {text}") }
}

fn fio_version() -> String {
    let output = Command::new("fio").arg("--version").output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().replace("fio-", ""))
        .unwrap_or_default()
}

fn draw(verdicts: &[Verdict]) -> Result<String> {
    let mut page = format!(
        "# Campaign `fio-files`\n\nMade by `cargo xtask campaign fio-files DIRECTORY --run` on {}: what becomes of job files of fio, \
         \
         and for those that run, how far the disk's log of rdsk differs from that of fio {}. Both programs ran the same copy of the file, \
         with its jobs on one device, past the page cache, with sizes of at most 16 MiB, at most four clones of each job, no end by the clock, and norandommap where requests have several sizes. What is drawn may differ by more than 2 % where that is within chance at 0.1 %. Requests that the kernel merged count as those that they were made of where all have one size: rdsk submits several at once, so that neighbours are merged more often than fio's.\n\nMachine: {}.\n\n",
        origin::now("+%F")?,
        fio_version(),
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
    fn jobs_are_scaled_to_a_small_disk() {
        let text = scaled(
            "[global]\nfilename=/dev/loop9\n[a]\nsize=100G ; all\nio_size=1m\nnumjobs=16\ntime_based\nruntime=60\noffset=2g\ndirect=0\nrw=read\n",
            Some(4096),
        );
        let expected = "[global]\nthread\ndirect=1\nsize=16m\nfilename=/dev/loop9\n[a]\nsize=16m\nio_size=1m\nnumjobs=4\noffset=16m\ndirect=1\nrw=read\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_the_disk_saw_is_alike_within_two_percent() {
        let of = |reads, read_bytes| Counts { reads, read_bytes, ..Counts::default() };
        let base = of(11, 10 * 512 + 4096);
        let ours = minus(of(1010, 10 * 512 + 1000 * 4096), base);
        assert_eq!(ours, of(1000, 1000 * 4096));
        assert!(verdict(&ours, &of(1001, 1001 * 4096), 0.0).starts_with("run: bytes -0.1%"));
        assert!(verdict(&ours, &of(1050, 1001 * 4096), 0.0).starts_with("**differs**"));
        assert!(verdict(&ours, &of(1050, 1001 * 4096), 6.0).starts_with("run"), "sizes that are drawn");
        assert!(verdict(&ours, &of(1001, 1100 * 4096), 0.0).starts_with("**differs**"));
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
            JobFile::parse("x", "[a]\nramp_time=5\nbs=${NONE}\n[b]\nioengine=null\n", &around).unwrap_err();
        let expected = [
            "ramp_time: rdsk counts a phase from its start on; shorten runtime instead",
            "a variable that is not set here",
            "ioengine: this engine does no I/O of a disk",
        ];
        assert_eq!(reasons(&error).len(), 3);
        assert!(expected.iter().all(|reason| reasons(&error).iter().any(|other| other == reason)));
    }
}
