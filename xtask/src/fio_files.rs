//! `cargo xtask campaign fio-files DIRECTORY`: what becomes of every job file of fio below a directory, which is none of this project's:
//! understood, or refused by which reason. With `--run`, what fits a small disk is run by rdsk and by fio on the same one, and its log is
//! compared. The page has names and counts, and no text of a job file.

mod bench;
mod compared;
mod copies;
mod own;

use crate::{origin, programs};
use anyhow::{Context as _, Result, ensure};
use bench::Bench;
use compared::Compared;
use rdsk_loads::{FioError, FioPlace, FioTarget, JobFile, Surroundings};
use rdsk_testkit::Need;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PAGE: &str = "xtask/records/campaigns/fio-files.md";
/// Of devices that a job file only names.
const NAMED_BYTES: u64 = 1 << 40;

/// What became of one job file.
struct Verdict {
    name: String,
    end: End,
}

enum End {
    /// By these reasons, each once.
    Refused(Vec<String>),
    Understood,
    /// By phase.
    Run(Vec<Compared>),
}

impl Verdict {
    /// What a table says of it; `None` for one that was refused.
    fn text(&self) -> Option<String> {
        match &self.end {
            End::Refused(_) => None,
            End::Understood => Some("understood".into()),
            End::Run(phases) => {
                let part = |phase: &Compared| {
                    if phase.is_alike { phase.text.clone() } else { format!("**differs**: {}", phase.text) }
                };
                Some(phases.iter().map(part).collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// Says what came of it while the others go on.
    fn said(self) -> Self {
        match (&self.end, self.text()) {
            (End::Refused(why), _) => println!("{}: refused: {}", self.name, why.join("; ")),
            (_, text) => println!("{}: {}", self.name, text.unwrap_or_default()),
        }
        self
    }

    fn differs(&self) -> bool {
        matches!(&self.end, End::Run(phases) if phases.iter().any(|phase| !phase.is_alike))
    }
}

/// Reads the files and writes the page.
///
/// # Errors
/// When there is no such directory, or no disk can be made.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let runs = arguments.iter().any(|word| word == "--run");
    let words: Vec<&String> = arguments.iter().filter(|word| *word != "--run").collect();
    let [directory] = words.as_slice() else { anyhow::bail!("name the directory with the job files") };
    let directory = Path::new(directory.as_str());
    let mut files = Vec::new();
    collect(directory, &mut files)?;
    files.sort();
    ensure!(!files.is_empty(), "there is no *.fio below {}", directory.display());
    let rdsk = if runs {
        for need in [Need::Root, Need::Fuse, Need::Loop, Need::Tool("fio")] {
            need.probe().map_err(|why| anyhow::anyhow!("{}: {why}", need.name()))?;
        }
        Some(programs::rdsk(root)?)
    } else {
        None
    };
    let mut verdicts = Vec::new();
    for file in &files {
        let name = file.strip_prefix(directory).unwrap_or(file).display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        verdicts.push(judge(name, &text, rdsk.as_deref())?);
    }
    let of_ours = own::FILES.iter().map(|(name, text)| judge_own(name, text, rdsk.as_deref()));
    let of_ours = of_ours.collect::<Result<Vec<Verdict>>>()?;
    let page = root.join(PAGE);
    crate::write(&page, &draw(&verdicts, &of_ours)?)?;
    let refused = verdicts.iter().filter(|verdict| matches!(verdict.end, End::Refused(_))).count();
    println!("{} files, {refused} refused: {}", verdicts.len(), page.display());
    let differs = verdicts.iter().chain(&of_ours).any(Verdict::differs);
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

/// The same machine for all files.
fn around() -> Surroundings<'static> {
    Surroundings {
        variable: &|name| std::env::var(name).ok(),
        read: &|name| std::fs::read_to_string(name),
        page_bytes: 4096,
        memory_mib: 16 << 10,
        processors: 4,
    }
}

fn judge(name: String, text: &str, rdsk: Option<&Path>) -> Result<Verdict> {
    let understood = JobFile::parse(&name, text, &around()).and_then(|jobs| {
        let target = match jobs.place()? {
            FioPlace::Named(name) if name.starts_with("/dev/") => FioTarget::Device(NAMED_BYTES),
            FioPlace::Named(_) | FioPlace::Directory(_) => FioTarget::Directory,
        };
        jobs.load(target)
    });
    let end = match (understood, rdsk) {
        (Err(error), _) => End::Refused(reasons(&error)),
        (Ok(_), None) => End::Understood,
        (Ok(_), Some(rdsk)) => End::Run(Bench::new(rdsk)?.phases(text, &around())?),
    };
    Ok(Verdict { name, end }.said())
}

/// A file of this project, which is run as it is.
fn judge_own(name: &str, text: &str, rdsk: Option<&Path>) -> Result<Verdict> {
    let end = match rdsk {
        None => End::Understood,
        Some(rdsk) => End::Run(vec![Bench::new(rdsk)?.whole(text, &around())?]),
    };
    Ok(Verdict { name: name.to_owned(), end }.said())
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

fn fio_version() -> String {
    let output = Command::new("fio").arg("--version").output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().replace("fio-", ""))
        .unwrap_or_default()
}

/// The page.
fn draw(verdicts: &[Verdict], of_ours: &[Verdict]) -> Result<String> {
    let mut page = format!(
        "# Campaign `fio-files`\n\nMade by `cargo xtask campaign fio-files DIRECTORY --run` on {}: what becomes of the job files of fio, and \
         for those that run, how far the disk's log of rdsk differs from that of fio {}. Both programs ran the same copy of each phase of \
         a file: its jobs on one device, past the page cache, at most four clones of each, no end by the clock, and `norandommap` where \
         requests have several sizes. Where something is drawn, the jobs move so many bytes that chance makes 2 % once in a thousand times. \
         The device merges nothing. What differs is run again, twice at most, since the reads of other programs are in the log, too.\n\nBytes, requests and the share of reads of all bytes differ by at most 2 %. Offsets are *exact* where \
         all jobs are sequential: in the order of the log where one request is in flight, as a set where several are, and for a mix, the reads \
         and the writes each as far as both programs go. Drawn offsets and sizes are compared by chi-square of two samples in 64 equal parts \
         of the span, with the limit at 0.1 % behind it; those of zipf and pareto, whose popular places lie elsewhere with each program, by \
         the shares of the most popular 1, 2, 4, … places.\n\nMachine: {}.\n\n",
        origin::now("+%F")?,
        fio_version(),
        origin::machine()
    );
    let mut line = |text: String| writeln!(page, "{text}").expect("a String takes everything");
    let refused: Vec<&Vec<String>> = verdicts
        .iter()
        .filter_map(|verdict| if let End::Refused(reasons) = &verdict.end { Some(reasons) } else { None })
        .collect();
    line(format!(
        "{} files: {} run, {} refused.\n",
        verdicts.len(),
        verdicts.len() - refused.len(),
        refused.len()
    ));
    line(table(verdicts));
    // A file is counted by its first reason.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    refused.iter().filter_map(|reasons| reasons.first()).for_each(|why| *counts.entry(why).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    line("\n| refused, by the first reason | files |\n|---|---:|".into());
    counts.into_iter().for_each(|(why, count)| line(format!("| {why} | {count} |")));
    line("\nJob files of rdsk, for options that those of fio hardly use:\n".into());
    line(table(of_ours));
    Ok(page)
}

/// The files that are not refused.
fn table(verdicts: &[Verdict]) -> String {
    let row = |verdict: &Verdict| Some(format!("\n| {} | {} |", verdict.name, verdict.text()?));
    let rows: String = verdicts.iter().filter_map(row).collect();
    format!("| job file | result, by phase |\n|---|---|{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_no_values() {
        let around = Surroundings {
            variable: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
            page_bytes: 4096,
            memory_mib: 1,
            processors: 1,
        };
        let error = JobFile::parse("x", "[a]\nss=bw\nbs=${NONE}\n[b]\nioengine=null\n", &around).unwrap_err();
        let expected = [
            "ss: rdsk does not look for a steady state by this rule",
            "a variable that is not set here",
            "ioengine: this engine does no I/O of a disk",
        ];
        assert_eq!(reasons(&error).len(), 3);
        assert!(expected.iter().all(|reason| reasons(&error).iter().any(|other| other == reason)));
    }
}
