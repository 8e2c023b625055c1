//! A whole document of fio as a Record: its jobs one after the other, the targets that they name, and when it was.

use super::document::{Direction, Document, Job};
use super::entries::{Entry, entries};
use super::job::Part;
use super::latency;
use super::notes::Notes;
use super::options::{Options, words};
use super::version::{Version, in_units_of_3};
use crate::error::ImportError;
use rdsk_analysis::Analysis;
use rdsk_analysis::words::{bytes, nanos, plural};
use rdsk_model::{
    CellRecord, EvidenceSource, ObserverFacts, Op, Problem, ProblemKind, Record, SCHEMA, Source, Status,
    Target, TargetKind,
};
use rdsk_units::grouped;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use ulid::Ulid;

/// What fio was, in the Record.
const TOOL: &str = "fio";
/// Jobs that one fio runs at most (its documentation, numjobs and REAL_MAX_JOBS).
const MAX_JOBS: usize = 4096;

/// The Record of a document, which is the last of so many reports of its run.
pub(crate) fn record(mut document: Value, reports: usize) -> Result<Record, ImportError> {
    let hash = fnv(document.to_string().as_bytes());
    in_units_of_3(&mut document)?;
    let mut document: Document = serde_path_to_error::deserialize(document).map_err(|error| {
        let (path, why) = (error.path().to_string(), error.into_inner().to_string());
        ImportError::Key { program: TOOL, path, why }
    })?;
    let count = document.jobs.len() + document.client_stats.len();
    if count == 0 {
        return Err(ImportError::NoJobs);
    }
    if document.jobs.len() > MAX_JOBS {
        return Err(ImportError::ManyJobs { count, most: MAX_JOBS });
    }
    let times = Times::told_in(&document);
    let error = error(document.jobs.iter().chain(&document.client_stats));
    let command = command(&document);
    let Run { targets, cells, mut notes, .. } = all_jobs(&mut document);
    if reports > 1 {
        let text = format!(
            "the last of {reports} reports (--status-interval), which has everything since the start"
        );
        notes.add(TOOL, text);
    }
    for disk in &document.disk_util {
        notes.add(
            &disk.name,
            format!(
                "in the whole run of fio {} reads and {} writes of all programs{}",
                grouped(disk.read_ios),
                grouped(disk.write_ios),
                disk.util.map_or_else(String::new, |util| format!(", {util:.1}% of the time busy"))
            ),
        );
    }
    let mut record = Record {
        schema: SCHEMA.into(),
        id: Ulid::from_parts(times.started_ms, hash).to_string(),
        command,
        rdsk_version: env!("CARGO_PKG_VERSION").into(),
        source: Some(Source { tool: TOOL.into(), version: Some(document.version.clone()) }),
        started_at: times.started_at(),
        elapsed_ns: times.elapsed_ns,
        status: if error.is_some() { Status::Failed } else { Status::Complete },
        error,
        targets,
        observer: ObserverFacts {
            source: EvidenceSource::None,
            why_not_higher: Some("fio's document has none for a job".into()),
            ..ObserverFacts::default()
        },
        cells,
        notes: notes.sentences(),
        ..Record::default()
    };
    record.findings = rdsk_finding::findings(&Analysis::of(&record));
    Ok(record)
}

/// The targets, cells and notes so far.
#[derive(Debug, Default)]
struct Run {
    targets: Vec<Target>,
    /// Where each name is among the targets: a job may have tens of thousands.
    indices: HashMap<String, u32>,
    cells: Vec<CellRecord>,
    ids: HashSet<String>,
    /// The number that the next job of a name and direction may have.
    numbers: HashMap<String, u32>,
    notes: Notes,
}

fn all_jobs(document: &mut Document) -> Run {
    let mut run = Run::default();
    let version = Version::parse(&document.version);
    for entry in entries(document, &mut run.notes) {
        run.add(&entry, document, version);
    }
    run
}

impl Run {
    fn add(&mut self, entry: &Entry, document: &Document, version: Option<Version>) {
        let job = &entry.job;
        let options =
            Options { job: &entry.options, global: &document.global_options, are_whole: entry.are_whole };
        let indices: Vec<u32> = entry.targets.iter().map(|name| self.target(name)).collect();
        let none = Direction::default();
        let direction_of = |op: Op| match op {
            Op::Read => job.read.as_ref().unwrap_or(&none),
            Op::Write => job.write.as_ref().unwrap_or(&none),
        };
        let ran: Vec<Op> =
            [Op::Read, Op::Write].into_iter().filter(|&op| direction_of(op).total_ios > 0).collect();
        let parts: Vec<(Op, &Direction)> = match unified(job) {
            Some(sum) => self.of_sum(entry, options).map(|op| (op, sum)).into_iter().collect(),
            // A job that did nothing shows that it was to do something.
            None if ran.is_empty() && !entry.is_sum => {
                options.ops().iter().map(|&op| (op, direction_of(op))).collect()
            }
            None => ran.iter().map(|&op| (op, direction_of(op))).collect(),
        };
        // fio syncs what it writes.
        let synced = parts.iter().map(|&(op, _)| op).max();
        for &(op, direction) in &parts {
            let part = Part {
                name: entry.name.clone(),
                version,
                job,
                options,
                op,
                direction,
                syncs: job.sync.as_ref().filter(|_| Some(op) == synced),
                streams: entry.streams,
                is_mixed: parts.len() > 1,
                is_sum: entry.is_sum,
            };
            let id = self.id(&entry.name, op);
            let cell = part.cell(id, indices.clone(), &mut self.notes);
            self.cells.push(cell);
        }
        if entry.is_sum {
            if !parts.is_empty() {
                self.notes
                    .add(&entry.name, "the sum of jobs that ran side by side, over the time of the longest");
            }
            return;
        }
        self.explain_rest(entry, parts.is_empty());
    }

    /// What a job did that is in no cell.
    fn explain_rest(&mut self, entry: &Entry, has_no_cell: bool) {
        let (job, name) = (&entry.job, &entry.name);
        let syncs = job.sync.as_ref().filter(|_| has_no_cell).and_then(latency::of_syncs);
        if let Some(syncs) = syncs {
            let mean = syncs.mean.map_or_else(String::new, |mean| {
                format!(", {} on average,", nanos(rdsk_analysis::metrics::whole(mean.round())))
            });
            let count = plural(syncs.count, "sync");
            self.notes.add(
                name,
                format!("{count}{mean} have no test: no read or write of the job is in the document"),
            );
        }
        if let Some(trim) = job.trim.as_ref().filter(|trim| trim.total_ios > 0) {
            let (count, size) = (plural(trim.total_ios, "trim"), bytes(trim.io_bytes));
            self.notes.add(name, format!("{count} of {size} have no test: rdsk knows reads and writes"));
        }
        if job.total_err > 0 {
            let count = plural(job.total_err, "I/O");
            self.notes.add(name, format!("{count} failed, and fio went on (continue_on_error)"));
        }
    }

    /// The direction that a sum of all directions is of; none, with a note, where the options ask for several.
    fn of_sum(&mut self, entry: &Entry, options: Options<'_>) -> Option<Op> {
        let only = options.only_op();
        let text = match only {
            Some(op) => format!(
                "fio gives one sum of all directions (unified_rw_reporting), which is of {op}s as far as the options show"
            ),
            None => {
                "fio gives reads and writes as one sum (unified_rw_reporting), which is no figure of either"
                    .into()
            }
        };
        self.notes.add(&entry.name, text);
        only
    }

    /// The index of a target, which is new if no job named it before.
    fn target(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.indices.get(name) {
            return index;
        }
        let index = u32::try_from(self.targets.len()).expect("a text of this size has fewer names");
        // A host may stand before it.
        let is_device = name.starts_with("/dev/") || name.contains(":/dev/");
        let kind = if is_device { TargetKind::Block } else { TargetKind::File };
        self.indices.insert(name.to_owned(), index);
        self.targets.push(Target { index, name: name.to_owned(), kind, ..Target::default() });
        index
    }

    /// `fio/randread/read`, and `fio/randread#2/read` for the second job of that name. What stands behind an @ in an id is a
    /// target.
    fn id(&mut self, jobname: &str, op: Op) -> String {
        let name = jobname.replace('@', "_");
        let numbered = |number: u32| match number {
            1 => format!("fio/{name}/{op}"),
            _ => format!("fio/{name}#{number}/{op}"),
        };
        let number = self.numbers.entry(numbered(1)).or_insert(1);
        // Another job may be called like the second one of this name.
        while !self.ids.insert(numbered(*number)) {
            *number += 1;
        }
        numbered(*number)
    }
}

/// The sum that stands in place of the directions, if anything was done.
fn unified(job: &Job) -> Option<&Direction> {
    let has_directions = job.read.is_some() || job.write.is_some() || job.trim.is_some();
    job.mixed.as_ref().filter(|sum| !has_directions && sum.total_ios > 0)
}

/// When the run was, as far as fio says.
#[derive(Clone, Copy, Debug)]
struct Times {
    started_ms: u64,
    elapsed_ns: u64,
}

impl Times {
    /// The document is written at the end, and `elapsed` counts whole seconds until then.
    fn told_in(document: &Document) -> Self {
        let jobs = || document.jobs.iter().chain(&document.client_stats);
        let seconds = jobs().map(|job| job.elapsed).max().unwrap_or(0);
        // The document of several hosts has no elapsed time; the longest job is the least that it took.
        let longest_ms = jobs()
            .flat_map(|job| [&job.read, &job.write, &job.trim, &job.mixed])
            .flatten()
            .map(|direction| direction.runtime)
            .max();
        let elapsed_ms = seconds.saturating_mul(1000);
        let elapsed_ms = if seconds > 0 { elapsed_ms } else { longest_ms.unwrap_or(0) };
        let ended_ms =
            document.timestamp_ms.or(document.timestamp.and_then(|seconds| seconds.checked_mul(1000)));
        let before = ended_ms.unwrap_or(0).saturating_sub(elapsed_ms);
        let started_ms = jobs().filter_map(|job| job.job_start).min().unwrap_or(before);
        Self { started_ms, elapsed_ns: elapsed_ms.saturating_mul(1_000_000) }
    }

    fn started_at(self) -> String {
        let start =
            i64::try_from(self.started_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        start.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
    }
}

/// The first job that failed, in words.
fn error<'a>(mut jobs: impl Iterator<Item = &'a Job>) -> Option<Problem> {
    let failed = jobs.find(|job| job.error != 0)?;
    let why = std::io::Error::from_raw_os_error(failed.error);
    let message = format!("fio ended the job {} with an error: {why}", failed.jobname);
    Some(Problem::new(
        ProblemKind::Io,
        "fio-failed",
        message,
        "fio printed to standard error where it failed",
    ))
}

/// A command line with all options that the document repeats.
fn command(document: &Document) -> Vec<String> {
    let mut command = vec![TOOL.to_owned()];
    if !document.global_options.is_empty() {
        command.push("--name=global".into());
        command.extend(words(&document.global_options));
    }
    let mut before: Option<&Job> = None;
    for job in document.jobs.iter().chain(&document.client_stats) {
        // The copies that numjobs made say all the same.
        if before.is_some_and(|before| (&before.jobname, &before.options) == (&job.jobname, &job.options)) {
            continue;
        }
        command.push(format!("--name={}", job.jobname));
        command.extend(words(&job.options));
        before = Some(job);
    }
    command
}

/// A number that stays the same for the same document, so that the same run has the same id however often it is read (FNV-1a of
/// 128 bits, draft-eastlake-fnv).
fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}
