//! Which part of the one target each job uses. Files that fio would make beside each other become parts of one file here; files and
//! devices that are there already cannot.

use super::error::{BadValue, Refusal};
use super::ini::Place;
use super::job::{Extent, Job};
use super::values::Amount;
use rdsk_model::{LoadJob, OffsetRule, StreamRange};
use std::path::Path;

/// Parts of the target that stand for files begin at multiples of this.
const GRAIN_BYTES: u64 = 1 << 20;

/// What the jobs run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioTarget {
    /// A directory, in which rdsk makes a file as large as the jobs need it.
    Directory,
    /// A file of this many bytes.
    File(u64),
    /// A block device of this many bytes.
    Device(u64),
}

/// What the job file itself says of where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FioPlace {
    /// One file or device.
    Named(String),
    /// Files of fio's own in this directory.
    Directory(String),
}

/// The file of each clone of each job, and who uses it.
pub(super) struct Layout {
    /// By job and clone: an index into the files.
    files_of: Vec<Vec<usize>>,
    files: Vec<File>,
}

struct File {
    path: String,
    /// The first job that uses it.
    job: usize,
    users: u32,
}

impl Layout {
    pub(super) fn of(jobs: &[Job]) -> Self {
        let mut layout = Self { files_of: Vec::new(), files: Vec::new() };
        for (index, job) in jobs.iter().enumerate() {
            let files = (0..job.clones).map(|clone| layout.file(index, path_of(job, clone))).collect();
            layout.files_of.push(files);
        }
        layout
    }

    fn file(&mut self, job: usize, path: String) -> usize {
        let position = self.files.iter().position(|file| file.path == path);
        let position = position.unwrap_or_else(|| {
            self.files.push(File { path, job, users: 0 });
            self.files.len() - 1
        });
        self.files[position].users += 1;
        position
    }

    /// Where the job file runs where nothing else is named.
    ///
    /// # Errors
    /// When its files are not in one directory.
    pub(super) fn place(&self, jobs: &[Job]) -> Result<FioPlace, Refusal> {
        let [first, rest @ ..] = self.files.as_slice() else { return Ok(FioPlace::Directory(".".into())) };
        if rest.is_empty() && jobs[first.job].files.named.is_some() {
            return Ok(FioPlace::Named(first.path.clone()));
        }
        let directory = |file: &File| {
            let parent = Path::new(&file.path).parent().map(|parent| parent.display().to_string());
            parent.filter(|parent| !parent.is_empty()).unwrap_or_else(|| ".".into())
        };
        match rest.iter().find(|file| directory(file) != directory(first)) {
            Some(other) => Err(refuse(
                &jobs[other.job],
                "the jobs of a load are on one target; name it behind --fio FILE",
            )),
            None => Ok(FioPlace::Directory(directory(first))),
        }
    }

    /// The jobs of a load for each of these, with the index of the job that it comes from.
    ///
    /// # Errors
    /// Jobs that cannot run on this target.
    pub(super) fn jobs(
        &self,
        jobs: &[Job],
        target: FioTarget,
    ) -> Result<Vec<(usize, LoadJob)>, Vec<Refusal>> {
        let (spans, refusals) = self.spans(jobs, target);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let bases = self.bases(jobs, &spans, target);
        let mut placed = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let is_fresh = self.is_fresh(index, jobs, &spans[index], target);
            let mut spans = spans[index].clone();
            for (span, file) in spans.iter_mut().zip(&self.files_of[index]) {
                span.begin_bytes += bases[*file];
            }
            let made = merged(&LoadJob { fresh_space: is_fresh, ..job.requests.clone() }, &spans);
            placed.extend(made.into_iter().map(|made| (index, made)));
        }
        Ok(placed)
    }

    /// The spans of all clones, each in its file.
    fn spans(&self, jobs: &[Job], target: FioTarget) -> (Vec<Vec<Span>>, Vec<Refusal>) {
        let mut refusals = Vec::new();
        if self.files.len() > 1
            && let Some(device) = self.files.iter().find(|file| file.path.starts_with("/dev/"))
        {
            let why =
                "jobs on several devices, or on one and a file, are several loads; rdsk measures one target";
            refusals.push(refuse(&jobs[device.job], why));
        }
        // Of several files, none has the size of the target.
        let whole_bytes = match target {
            FioTarget::File(bytes) | FioTarget::Device(bytes) if self.files.len() == 1 => Some(bytes),
            _ => None,
        };
        let mut spans = Vec::new();
        for job in jobs {
            if let (Some(setting), false) = (&job.full_sync, matches!(target, FioTarget::Device(_))) {
                let why =
                    "with O_SYNC each write to a file also makes its times durable; sync=dsync is understood";
                refusals.push(setting.refuse(why));
            }
            let of_clone = |clone| span(job, clone, whole_bytes);
            match (0..job.clones).map(of_clone).collect::<Result<Vec<_>, _>>() {
                Ok(of_job) => spans.push(of_job),
                Err(why) => refusals.push(refuse(job, why)),
            }
        }
        (spans, refusals)
    }

    /// Whether a job writes into space that fio has just allocated: a file that only it uses, and no byte of it twice.
    fn is_fresh(&self, index: usize, jobs: &[Job], spans: &[Span], target: FioTarget) -> bool {
        let job = &jobs[index];
        let is_alone = self.files_of[index].iter().all(|file| self.files[*file].users == 1);
        let once = |span: &Span| span.max_bytes.is_some_and(|bytes| bytes <= span.bytes);
        target == FioTarget::Directory
            && job.requests.reads.is_none()
            && !job.requests.has_trims()
            && !job.is_overwritten
            && is_alone
            && spans.iter().all(once)
    }

    /// Where each file begins on the target. Fresh ones have a place of their own.
    fn bases(&self, jobs: &[Job], spans: &[Vec<Span>], target: FioTarget) -> Vec<u64> {
        let mut bytes_of = vec![0u64; self.files.len()];
        for (index, spans) in spans.iter().enumerate() {
            if self.is_fresh(index, jobs, spans, target) && spans.len() == 1 {
                continue;
            }
            for (span, file) in spans.iter().zip(&self.files_of[index]) {
                bytes_of[*file] = bytes_of[*file].max(span.begin_bytes + span.bytes);
            }
        }
        let mut end_bytes = 0;
        let base = |bytes: u64| {
            let base_bytes = end_bytes;
            // Clones of a job that come one after the other without a gap are streams of one job.
            end_bytes += if bytes.is_multiple_of(4096) { bytes } else { bytes.next_multiple_of(GRAIN_BYTES) };
            base_bytes
        };
        bytes_of.into_iter().map(base).collect()
    }

    /// Whether parts of one file stand for several files.
    pub(super) fn has_parts(&self) -> bool {
        self.files.len() > 1
    }
}

fn refuse(job: &Job, why: impl Into<BadValue>) -> Refusal {
    let why = why.into().into_words();
    if let Some((_, setting)) = &job.files.named {
        return setting.refuse(why);
    }
    let Place { file, line } = &job.place;
    Refusal { file: file.to_string(), line: *line, option: format!("[{}]", job.requests.name), why }
}

/// The path of the file of a clone, as fio calls it.
fn path_of(job: &Job, clone: u32) -> String {
    let files = &job.files;
    let name = match &files.named {
        Some((name, _)) => name.clone(),
        None => {
            let format = files.format.replace("$jobname", &job.requests.name.replace('/', "_"));
            format.replace("$jobnum", &clone.to_string()).replace("$filenum", "0").replace("$clientuid", "")
        }
    };
    match &files.directory {
        Some(directory) if !name.starts_with('/') => Path::new(directory).join(name).display().to_string(),
        _ => name,
    }
}

/// The part of its file that a clone uses, and how many bytes it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin_bytes: u64,
    /// Length; 0 for all that is left of the target.
    bytes: u64,
    max_bytes: Option<u64>,
}

fn span(job: &Job, clone: u32, whole_bytes: Option<u64>) -> Result<Span, BadValue> {
    let Extent { size, file_bytes, io_size, offset, offset_increment, ops, loops, is_time_based } =
        &job.extent;
    let unit_bytes = job.requests.min_block_bytes().max(1);
    let whole = || whole_bytes.ok_or("percentages need a target that is there already");
    let begin_of = |amount: &Amount| match amount {
        Amount::Bytes(bytes) => Ok::<u64, BadValue>(*bytes),
        Amount::Percent(percent) => Ok(part_of(whole()?, *percent).next_multiple_of(unit_bytes)),
    };
    let increment_bytes = begin_of(offset_increment)?.checked_mul(u64::from(clone)).ok_or("is too large")?;
    let begin_bytes = begin_of(offset)?.checked_add(increment_bytes).ok_or("is too large")?;
    let left = |of_bytes: u64| of_bytes.checked_sub(begin_bytes).filter(|left| *left > 0);
    let beyond = || "begins beyond the end of its file".to_owned();
    let bytes = match (file_bytes, size) {
        (Some(file_bytes), _) => left(*file_bytes).ok_or_else(beyond)?,
        (None, Some(Amount::Bytes(bytes))) => *bytes,
        (None, Some(Amount::Percent(percent))) if *percent < 100 => {
            let part_bytes = part_of(whole()?, *percent);
            let part_bytes = part_bytes.min(left(whole()?).ok_or_else(beyond)?);
            part_bytes / unit_bytes * unit_bytes
        }
        (None, _) => {
            let whole_bytes = whole_bytes.ok_or("needs a size, as long as there is no file")?;
            left(whole_bytes).ok_or_else(beyond)?
        }
    };
    let size_bytes = match size {
        Some(Amount::Bytes(size)) => bytes.min(*size),
        _ => bytes,
    };
    let once_bytes = match io_size {
        Some(Amount::Bytes(bytes)) => *bytes,
        Some(Amount::Percent(percent)) => part_of(bytes, *percent),
        None => size_bytes,
    };
    if bytes < job.requests.max_block_bytes() || once_bytes < unit_bytes {
        return Err("has no room for one request".into());
    }
    let max_bytes = (once_bytes / unit_bytes * unit_bytes).saturating_mul(*loops);
    let is_whole = begin_bytes == 0 && whole_bytes.is_none_or(|whole_bytes| whole_bytes == bytes);
    let skips = job.requests.kinds().find_map(|kind| match kind.offsets {
        OffsetRule::Skips { skip_bytes } => Some(skip_bytes),
        _ => None,
    });
    let max_bytes = match skips {
        Some(skip_bytes) if skip_bytes < 0 && begin_bytes > 0 => {
            return Err("goes backwards from an offset, where fio begins elsewhere in each version".into());
        }
        // fio ends with the part that the job may use, unless that is the whole file, at whose end it begins again.
        Some(skip_bytes)
            if skip_bytes > 0 && !is_whole && io_size.is_none() && job.requests.kinds().count() == 1 =>
        {
            let step_bytes = unit_bytes.saturating_add(skip_bytes.unsigned_abs());
            max_bytes.min(((bytes - unit_bytes) / step_bytes + 1) * unit_bytes)
        }
        Some(skip_bytes) if skip_bytes > 0 && !is_whole => {
            return Err(
                "ends where its part of the file does, which rdsk does for one direction without io_size"
                    .into(),
            );
        }
        _ => max_bytes,
    };
    let max_bytes = match (ops, job.requests.max_block_bytes() == unit_bytes) {
        (None, _) => max_bytes,
        (Some(ops), true) => max_bytes.min(ops.saturating_mul(unit_bytes)),
        (Some(_), false) => return Err("number_ios needs requests of one size here".into()),
    };
    Ok(Span { begin_bytes, bytes, max_bytes: (!is_time_based).then_some(max_bytes) })
}

/// So many percent of a size, rounded down.
fn part_of(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// The clones of a job as streams of one job where that is the same, else as jobs of their own.
fn merged(job: &LoadJob, spans: &[Span]) -> Vec<LoadJob> {
    let Some(first) = spans.first() else { return Vec::new() };
    let streams = u32::try_from(spans.len()).unwrap_or(u32::MAX);
    let on = |span: &Span| LoadJob {
        offset_bytes: span.begin_bytes,
        span_bytes: span.bytes,
        max_bytes: span.max_bytes,
        ..job.clone()
    };
    if spans.iter().all(|span| span == first) {
        return vec![LoadJob { streams, ..on(first) }];
    }
    let follows = |(index, span): (u64, &Span)| {
        let begin_bytes = first.begin_bytes + index * first.bytes;
        *span == Span { begin_bytes, ..*first }
    };
    // Its streams then divide the whole into parts of whole blocks.
    let is_whole = first.bytes.is_multiple_of(job.max_block_bytes());
    if is_whole && (0..).zip(spans).all(follows) {
        let span_bytes = first.bytes * u64::from(streams);
        return vec![LoadJob { streams, span_bytes, range: StreamRange::Disjoint, ..on(first) }];
    }
    let of_clone =
        |(number, span): (u32, &Span)| LoadJob { name: format!("{}.{number}", job.name), ..on(span) };
    (0..).zip(spans).map(of_clone).collect()
}
