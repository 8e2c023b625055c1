//! One job of fio, understood: its requests as a job of a load, and apart from that what only its files and its target decide: where it
//! begins, how long its span is and how many bytes it moves.

use super::engines::{Issue, issue};
use super::error::{BadValue, Refusal};
use super::ini::{Place, Section, Setting};
use super::rates::rates;
use super::reader::Reader;
use super::requests::Kinds;
use super::values::{Amount, TimeUnit, amount, bytes, number, time_ns};
use rdsk_model::{Flush, FlushCall, IoPath, LoadJob, OffsetRule, Rate};

/// Clones of one job at most; each is a thread.
const MAX_CLONES: u64 = 4096;

/// A job that is understood.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) place: Place,
    /// Whether it begins when all jobs before it are done.
    pub(super) is_behind_wall: bool,
    pub(super) clones: u32,
    pub(super) files: Files,
    pub(super) extent: Extent,
    /// Its requests; span, streams and bytes are not yet known.
    pub(super) requests: LoadJob,
    /// The rates of its reads and of its writes, where it has both and each has a rate of its own.
    pub(super) rates_of_mix: Option<[Rate; 2]>,
    /// `O_SYNC` was asked for, by this setting.
    pub(super) full_sync: Option<Setting>,
    /// Whether the space of a file is written before its first write.
    pub(super) is_overwritten: bool,
    /// Each with the reason.
    pub(super) ignored: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// What its files are called.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The name of a file or device that the job gives, and its setting.
    pub(super) named: Option<(String, Setting)>,
    pub(super) directory: Option<String>,
    /// How files without a name are called.
    pub(super) format: String,
}

/// How much of its files it uses.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub(super) size: Option<Amount>,
    pub(super) file_bytes: Option<u64>,
    pub(super) io_size: Option<Amount>,
    pub(super) offset: Amount,
    pub(super) offset_increment: Amount,
    /// Requests after which it ends.
    pub(super) ops: Option<u64>,
    pub(super) loops: u64,
    /// Whether only the clock ends it.
    pub(super) is_time_based: bool,
}

/// The job of a section.
///
/// # Errors
/// All of its settings that cannot be.
pub(super) fn job(section: &Section) -> Result<Job, Vec<Refusal>> {
    let mut reader = Reader::new(section);
    let Some(issue) = reader.value("ioengine", |text, _| engine(text)).or(Some(Issue::OneByOne)) else {
        return Err(reader.refusals);
    };
    let is_offloaded = reader.value("io_submit_mode", |text, _| match text {
        "inline" => Ok(false),
        "offload" => Ok(true),
        _ => Err("is inline or offload".into()),
    });
    // Threads of its own then issue as many requests as may be in flight, whatever the engine.
    let issue = if is_offloaded == Some(true) { Issue::Queued } else { issue };
    if !reader.refusals.is_empty() {
        // Nothing else of the job is worth a word.
        return Err(reader.refusals);
    }
    let clones = reader.value("numjobs", |text, _| clones(text)).unwrap_or(1);
    let extent = extent(&mut reader);
    let (requests, rates_of_mix) = requests(&mut reader, issue, &extent);
    let full_sync = full_sync(&mut reader, &requests);
    let files = files(&mut reader);
    if files.named.is_none() {
        join_files(&mut reader, &requests, &extent);
    }
    let is_behind_wall = reader.is_set("stonewall");
    let is_overwritten = reader.switch("overwrite").unwrap_or(false);
    note_differences(&mut reader, &requests, is_overwritten);
    reader.judge_others(requests.writes.is_some());
    if let (true, Err(why)) = (reader.refusals.is_empty(), requests.check()) {
        reader.refuse_by(&[], why.to_string());
    }
    if !reader.refusals.is_empty() {
        return Err(reader.refusals);
    }
    Ok(Job {
        place: section.place.clone(),
        is_behind_wall,
        clones,
        files,
        extent,
        requests,
        rates_of_mix,
        full_sync,
        is_overwritten,
        ignored: reader.ignored,
        notes: reader.notes,
    })
}

fn engine(text: &str) -> Result<Issue, BadValue> {
    issue(text.split(':').next().unwrap_or(text))
}

fn clones(text: &str) -> Result<u32, BadValue> {
    let clones = number(text).ok().filter(|clones| (1..=MAX_CLONES).contains(clones));
    clones
        .and_then(|clones| u32::try_from(clones).ok())
        .ok_or_else(|| format!("is from 1 to {MAX_CLONES}").into())
}

fn files(reader: &mut Reader<'_>) -> Files {
    let named = reader.value("filename", |text, setting| {
        let plain = text.replace("\\:", "\0");
        if plain.contains(':') {
            return Err("several files of a job are not one span; rdsk measures one file or device".into());
        }
        Ok((plain.replace('\0', ":"), setting.clone()))
    });
    let directory = reader.value("directory", |text, _| {
        if text.contains(':') {
            Err("jobs of one load are in one directory".into())
        } else {
            Ok(text.to_owned())
        }
    });
    let format = reader.value("filename_format", |text, _| Ok(text.to_owned()));
    Files { named, directory, format: format.unwrap_or_else(|| "$jobname.$jobnum.$filenum".into()) }
}

/// Judges the files that a job without a `filename` has: several are one here, each a part of it, where that gives the same requests.
fn join_files(reader: &mut Reader<'_>, requests: &LoadJob, extent: &Extent) {
    let count = reader.value("nrfiles", |text, _| number(text)).unwrap_or(1).max(1);
    let service = reader.value("file_service_type", |text, _| Ok(text.to_owned()));
    let service = service.as_deref().map_or("roundrobin", |text| text.split(':').next().unwrap_or(text));
    if count == 1 {
        return;
    }
    let has_only = |is: fn(&OffsetRule) -> bool| requests.kinds().all(|kind| is(&kind.offsets));
    let is_drawn = has_only(|rule| matches!(rule, OffsetRule::Once | OffsetRule::Uniform));
    let is_sequence = has_only(|rule| *rule == OffsetRule::Sequential);
    let file_bytes = match extent.size {
        Some(Amount::Bytes(bytes)) if extent.file_bytes.is_none() => bytes / count,
        _ => 0,
    };
    if file_bytes == 0 || !file_bytes.is_multiple_of(requests.max_block_bytes()) {
        reader.refuse_by(
            &["nrfiles"],
            "files of a job are parts of one here, which needs a size that divides into whole blocks",
        );
    } else if is_sequence && service != "sequential" {
        let why = "files in turns are no one sequence; with file_service_type=sequential they are";
        reader.refuse_by(&["nrfiles"], why);
    } else if is_drawn && !["roundrobin", "random"].contains(&service) || !is_drawn && !is_sequence {
        reader.refuse_by(
            &["nrfiles"],
            "offsets are drawn over all files of a job here, and not in each by itself",
        );
    } else if is_drawn {
        reader
            .notes
            .push(format!("the offsets of its {count} files are drawn over all of them, and not in turns"));
    }
}

fn extent(reader: &mut Reader<'_>) -> Extent {
    let mut of = |name| reader.value(name, |text, setting| amount(text, setting.base));
    let (size, io_size) = (of("size"), of("io_size"));
    let (offset, increment) = (of("offset"), of("offset_increment"));
    let file_bytes = reader.value("filesize", |text, setting| {
        bytes(text, setting.base)
            .map_err(|why| if text.contains('-') { "is one size here".into() } else { why })
    });
    let ops = reader.value("number_ios", |text, _| number(text)).filter(|ops| *ops > 0);
    let loops = reader.value("loops", |text, _| number(text)).unwrap_or(1).max(1);
    let is_time_based = reader.is_set("time_based");
    Extent {
        // fio takes a size of 0 for one that is absent.
        size: size.filter(|size| *size != Amount::Bytes(0)),
        file_bytes: file_bytes.filter(|bytes| *bytes > 0),
        io_size: io_size.filter(|size| *size != Amount::Bytes(0)),
        offset: offset.unwrap_or(Amount::Bytes(0)),
        offset_increment: increment.unwrap_or(Amount::Bytes(0)),
        ops,
        loops,
        is_time_based,
    }
}

/// What a job of a load says of these requests, on a span that is not known yet.
fn requests(reader: &mut Reader<'_>, issue: Issue, extent: &Extent) -> (LoadJob, Option<[Rate; 2]>) {
    let Kinds { reads, writes, trims, trims_before_writes } = Kinds::of(reader);
    let path = path(reader);
    let queue_depth = depth(reader, issue, path);
    let read_percent = match (&reads, &writes) {
        (Some(_), Some(_)) => mix(reader),
        (Some(_), None) => 100,
        (None, _) => 0,
    };
    let lasts_ns = reader.value("runtime", |text, _| time_ns(text, TimeUnit::Seconds)).filter(|ns| *ns > 0);
    if extent.is_time_based && lasts_ns.is_none() {
        reader.refuse_by(&["time_based"], "needs a runtime");
    }
    let delay_ns = reader.value("startdelay", |text, _| {
        if text.contains('-') { Err("is one time here".into()) } else { time_ns(text, TimeUnit::Seconds) }
    });
    let ramp_ns = reader.value("ramp_time", |text, _| time_ns(text, TimeUnit::Seconds)).unwrap_or(0);
    let sides = [reads.as_ref(), writes.as_ref(), trims.as_ref()];
    let rates = rates(reader, sides);
    let is_mix = reads.is_some() && writes.is_some();
    let (rate, rates_of_mix) = match rates {
        [Some(of_reads), Some(of_writes), _] if is_mix => (None, Some([of_reads, of_writes])),
        of_sides => (of_sides.into_iter().flatten().next(), None),
    };
    let flush = if writes.is_some() { flush(reader) } else { None };
    let think_ns = reader.value("thinktime", |text, _| time_ns(text, TimeUnit::Micros)).unwrap_or(0);
    let think_every = reader.value("thinktime_blocks", |text, _| number(text)).unwrap_or(1);
    if think_ns > 0 && queue_depth > 1 {
        reader.refuse_by(&["thinktime"], "rdsk rests between requests only where one is in flight");
    }
    let compressible = reader.value("buffer_compress_percentage", |text, _| percent(text)).unwrap_or(0);
    if compressible == 100 && writes.is_some() {
        reader.refuse_by(
            &["buffer_compress_percentage"],
            "rdsk writes random data, of which a part compresses at most",
        );
    }
    let job = LoadJob {
        reads,
        trim_percent: if trims.is_some() { 100 } else { 0 },
        trims,
        trims_before_writes,
        read_percent,
        queue_depth,
        path,
        flush,
        rate,
        think_ns: if queue_depth > 1 { 0 } else { think_ns },
        think_every: u32::try_from(think_every).unwrap_or(u32::MAX).max(1),
        delay_ns: delay_ns.unwrap_or(0),
        ramp_ns,
        lasts_ns,
        advised: path.uses_page_cache() && is_advised(reader),
        compressible_percent: if writes.is_some() { compressible.min(99) } else { 0 },
        dsync: writes.is_some() && is_dsync(reader),
        writes,
        ..LoadJob::random_reads(reader.section.name.clone(), 0)
    };
    (job.without_empty_side(), rates_of_mix)
}

fn path(reader: &mut Reader<'_>) -> IoPath {
    let is_direct = match reader.last(&["direct", "buffered"]) {
        Some(("direct", _)) => reader.switch("direct").unwrap_or(false),
        Some(_) => !reader.switch("buffered").unwrap_or(true),
        None => false,
    };
    let is_uncached = reader.switch("uncached").unwrap_or(false);
    match (is_direct, is_uncached) {
        (true, _) => IoPath::Direct,
        (false, true) => IoPath::DontCache,
        (false, false) => IoPath::Buffered,
    }
}

/// Requests in flight.
fn depth(reader: &mut Reader<'_>, issue: Issue, path: IoPath) -> u32 {
    let depth = reader.value("iodepth", |text, _| number(text)).unwrap_or(1).max(1);
    let depth = u32::try_from(depth).unwrap_or(u32::MAX);
    let is_queued = match issue {
        Issue::Queued => true,
        Issue::QueuedIfDirect => path == IoPath::Direct,
        Issue::OneByOne => false,
    };
    if !is_queued && depth > 1 {
        let note =
            format!("one request in flight and not {depth}, since this engine of fio issues them one by one");
        reader.notes.push(note);
    }
    if is_queued { depth } else { 1 }
}

/// Percent of the requests that are reads.
fn mix(reader: &mut Reader<'_>) -> u32 {
    match reader.last(&["rwmixread", "rwmixwrite"]) {
        Some(("rwmixread", _)) => reader.value("rwmixread", |text, _| percent(text)).unwrap_or(50),
        Some(_) => 100 - reader.value("rwmixwrite", |text, _| percent(text)).unwrap_or(50),
        None => 50,
    }
}

fn percent(text: &str) -> Result<u32, BadValue> {
    let percent = number(text).ok().and_then(|percent| u32::try_from(percent).ok());
    percent.filter(|percent| *percent <= 100).ok_or_else(|| "is a percentage from 0 to 100".into())
}

fn flush(reader: &mut Reader<'_>) -> Option<Flush> {
    let mut every = |name| {
        let every = reader.value(name, |text, _| number(text)).filter(|every| *every > 0);
        every.map(|every| u32::try_from(every).unwrap_or(u32::MAX))
    };
    match (every("fsync"), every("fdatasync")) {
        (None, None) => None,
        (Some(every), None) => Some(Flush { every, call: FlushCall::Fsync }),
        (None, Some(every)) => Some(Flush { every, call: FlushCall::Fdatasync }),
        (Some(_), Some(_)) => {
            reader.refuse_by(&["fdatasync"], "stands beside fsync; a job has one of them");
            None
        }
    }
}

/// Whether the kernel is given the order of the requests, as fio does unless it is to give none.
fn is_advised(reader: &mut Reader<'_>) -> bool {
    let is_advised = reader.value("fadvise_hint", |text, _| match text {
        "1" => Ok(true),
        "0" | "none" => Ok(false),
        _ => Err("rdsk gives the kernel the order that a job has, or none: 1 or 0".into()),
    });
    is_advised.unwrap_or(true)
}

fn is_dsync(reader: &mut Reader<'_>) -> bool {
    let is_dsync = reader.value("sync", |text, _| match text {
        "0" | "none" => Ok(false),
        "dsync" | "1" | "sync" => Ok(true),
        _ => Err("is none, sync or dsync".into()),
    });
    is_dsync.unwrap_or(false)
}

/// The setting that asks for `O_SYNC`.
fn full_sync(reader: &mut Reader<'_>, requests: &LoadJob) -> Option<Setting> {
    let (_, setting) = reader.last(&["sync"]).filter(|_| requests.dsync)?;
    setting.value.as_deref().is_some_and(|value| value != "dsync").then(|| setting.clone())
}

/// Notes what is done differently and shows in the I/O.
fn note_differences(reader: &mut Reader<'_>, requests: &LoadJob, is_overwritten: bool) {
    let allocates =
        reader.value("fallocate", |text, _| Ok(!matches!(text, "none" | "0" | "truncate"))).unwrap_or(true);
    if requests.writes.is_some() && !allocates && !is_overwritten {
        reader
            .notes
            .push("the space of a new file is allocated before it is written, and not by each write".into());
    }
}
