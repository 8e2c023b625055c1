//! fio's job files: what their jobs ask for, as the phases of a load, or the lines that ask for what rdsk does not do. It copies none of
//! fio's defects and opens no file: who calls it reads files and variables for it.
//!
//! An example: `[global] bs=4k size=1g` and two jobs below it with `rw=write` and `stonewall rw=randread` become two phases; each writes
//! or reads a file of 1 GiB of its own, which are the two halves of one test file here, the first newly allocated.

mod arithmetic;
mod engines;
mod error;
mod ini;
mod job;
mod layout;
mod listing;
mod options;
mod rates;
mod reader;
mod requests;
mod values;

pub use error::{FioError, Refusal};
pub use ini::Surroundings;
pub use layout::{FioPlace, FioTarget};

use job::Job;
use layout::Layout;
use rdsk_model::{LoadJob, Rate, Requests, check_together};

/// A job file that is understood, whatever it runs on.
#[derive(Clone, Debug)]
pub struct JobFile {
    name: String,
    jobs: Vec<Job>,
}

/// The jobs of a job file on a target.
#[derive(Clone, Debug)]
pub struct FioLoad {
    /// The jobs of each phase, which run at once; never empty. Each phase runs once.
    pub phases: Vec<Vec<LoadJob>>,
    /// What is not quite as in fio, in words.
    pub notes: Vec<String>,
    /// By phase and job: where it stands, what was ignored and what is not quite as in fio.
    remarks: Vec<Vec<Remarks>>,
    name: String,
}

#[derive(Clone, Debug, Default)]
struct Remarks {
    place: String,
    ignored: Vec<String>,
    notes: Vec<String>,
}

impl JobFile {
    /// The job file of a text; `name` is what its lines are called after.
    ///
    /// # Errors
    /// All options that cannot be, by line.
    pub fn parse(name: &str, text: &str, around: &Surroundings<'_>) -> Result<Self, FioError> {
        let sections = ini::sections(name, text, around)?;
        if sections.is_empty() {
            return Err(FioError::Empty(name.to_owned()));
        }
        let (mut jobs, mut refusals) = (Vec::new(), Vec::new());
        for section in &sections {
            match job::job(section) {
                Ok(job) => jobs.push(job),
                Err(more) => refusals.extend(more),
            }
        }
        // What a global section says is wrong once, not for each job.
        let mut seen = Vec::new();
        refusals.retain(|refusal| {
            let is_new = !seen.contains(refusal);
            seen.push(refusal.clone());
            is_new
        });
        if refusals.is_empty() {
            Ok(Self { name: name.to_owned(), jobs })
        } else {
            Err(FioError::Refused(refusals))
        }
    }

    /// Where it runs unless a target is named.
    ///
    /// # Errors
    /// When its files are not in one directory.
    pub fn place(&self) -> Result<FioPlace, FioError> {
        Layout::of(&self.jobs).place(&self.jobs).map_err(|refusal| FioError::Refused(vec![refusal]))
    }

    /// Its jobs on a target.
    ///
    /// # Errors
    /// Jobs that cannot run on this target.
    pub fn load(&self, target: FioTarget) -> Result<FioLoad, FioError> {
        let layout = Layout::of(&self.jobs);
        let jobs = layout.jobs(&self.jobs, target).map_err(FioError::Refused)?;
        let mut load =
            FioLoad { phases: Vec::new(), notes: Vec::new(), remarks: Vec::new(), name: self.name.clone() };
        let mut last = None;
        for (index, made) in jobs {
            let job = &self.jobs[index];
            let is_first = last != Some(index);
            if load.phases.is_empty() || (is_first && job.is_behind_wall) {
                load.phases.push(Vec::new());
                load.remarks.push(Vec::new());
            }
            let remarks = Remarks {
                place: format!("{}:{}", job.place.file, job.place.line),
                ignored: if is_first { job.ignored.clone() } else { Vec::new() },
                notes: if is_first { job.notes.clone() } else { Vec::new() },
            };
            last = Some(index);
            load.notes.extend(remarks.notes.iter().map(|note| format!("job {}: {note}", made.name)));
            for (number, mut part) in (0..).zip(by_rate(made, job.rates_of_mix)) {
                part.name = load.unique(&part.name);
                let place = remarks.place.clone();
                let remarks =
                    if number == 0 { remarks.clone() } else { Remarks { place, ..Remarks::default() } };
                load.phases.last_mut().expect("there is one").push(part);
                load.remarks.last_mut().expect("there is one").push(remarks);
            }
        }
        for (jobs, remarks) in load.phases.iter().zip(&load.remarks) {
            if let Err(why) = check_together(jobs) {
                let place = remarks.first().map(|remarks| remarks.place.clone()).unwrap_or_default();
                let (file, line) = place.rsplit_once(':').unwrap_or((&place, ""));
                let (file, line) = (file.to_owned(), line.parse().unwrap_or(0));
                return Err(FioError::Refused(vec![Refusal {
                    file,
                    line,
                    option: "ramp_time".into(),
                    why: why.to_string(),
                }]));
            }
        }
        if layout.has_parts() {
            load.notes.push("the files of these jobs are parts of one file here".into());
        }
        Ok(load)
    }
}

/// A job, or its reads and its writes where each has a rate of its own: two jobs at once, which share its bytes as their rates do.
fn by_rate(job: LoadJob, rates: Option<[Rate; 2]>) -> Vec<LoadJob> {
    let Some([of_reads, of_writes]) = rates else { return vec![job] };
    let per_s = |rate: Rate, side: &Option<Requests>| rate.per_s * side.as_ref().map_or(0.0, mean_bytes);
    let (reads, writes) = (per_s(of_reads, &job.reads), per_s(of_writes, &job.writes));
    let part = |share: f64, rate: Rate, read_percent: u32, word: &str| LoadJob {
        name: format!("{}-{word}", job.name),
        read_percent,
        rate: Some(rate),
        max_bytes: job.max_bytes.map(|bytes| part_of(bytes, share, job.min_block_bytes())),
        ..job.clone()
    };
    let share = reads / (reads + writes);
    [part(share, of_reads, 100, "reads"), part(1.0 - share, of_writes, 0, "writes")]
        .map(LoadJob::without_empty_side)
        .into()
}

#[allow(clippy::cast_precision_loss, reason = "sizes of requests are far below 2^53")]
fn mean_bytes(requests: &Requests) -> f64 {
    let (mut bytes, mut weight) = (0.0, 0.0);
    for share in &requests.blocks {
        bytes += share.weight * (share.min_bytes + share.max_bytes) as f64 / 2.0;
        weight += share.weight;
    }
    bytes / weight
}

/// A share of `bytes`, in whole blocks and at least one.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a size is positive and no larger"
)]
fn part_of(bytes: u64, share: f64, block_bytes: u64) -> u64 {
    let blocks = (bytes as f64 * share / block_bytes.max(1) as f64).round() as u64;
    blocks.max(1).saturating_mul(block_bytes)
}

impl FioLoad {
    /// A name that no job has yet.
    fn unique(&self, name: &str) -> String {
        let is_taken = |name: &str| self.phases.iter().flatten().any(|job| job.name == name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
