//! What speaks against the figure of a threshold: it is not the device's, a power cut may lose what was flushed, or the test was too short
//! for what the need is about.

use super::course::RateCourse;
use super::figure::{Figure, is_about_lasting};
use crate::medium;
use crate::steady::Course;
use rdsk_model::{CellRecord, JobResult, Need, Record, Statistic, Subject, Threshold, Verdict, VerdictCode};

/// Requests of which the longest is worth a word.
const FEW: u64 = 20;
/// What the fast part of a flash drive or the cache of an array holds at most.
const LARGEST_BURST_BYTES: u64 = 64 << 30;

/// What speaks against a figure, whatever it is.
pub(super) struct Doubts {
    pub(super) of_pass: Option<String>,
    pub(super) of_fail: Option<String>,
}

pub(super) fn doubts(
    record: &Record,
    need: &Need,
    threshold: &Threshold,
    cell: &CellRecord,
    (result, figure): (&JobResult, &Figure),
) -> Doubts {
    let verdicts = verdicts_of(record, threshold.of, cell);
    let by_verdict: Vec<Doubts> = if verdicts.is_empty() {
        vec![by_verdict(cell, None)]
    } else {
        verdicts.iter().map(|verdict| by_verdict(cell, Some(verdict))).collect()
    };
    let of_fail = by_verdict.iter().find_map(|doubts| doubts.of_fail.clone());
    let of_pass = by_verdict
        .into_iter()
        .find_map(|doubts| doubts.of_pass)
        .or_else(|| memory_doubt(record))
        .or_else(|| copy_doubt(threshold, cell))
        .or_else(|| flush_doubt(record, threshold, cell, result))
        .or_else(|| space_doubt(record, threshold, cell))
        .or_else(|| rare_doubt(threshold, figure))
        .or_else(|| unsteady_doubt(need, threshold, result))
        .or_else(|| length_doubt(need, result))
        .or_else(|| burst_doubt(record, need, threshold, cell, result))
        .or_else(|| unsent_doubt(result))
        .or_else(|| (!need.only_fails.is_empty()).then(|| need.only_fails.clone()));
    Doubts { of_pass, of_fail }
}

/// The verdicts that a mark is under: of a load that reads and writes, that of the direction it is about.
fn verdicts_of(record: &Record, subject: Subject, cell: &CellRecord) -> Vec<Verdict> {
    let Some([reads, writes]) = crate::verdict::verdicts_by_direction(cell, &record.targets, None) else {
        return cell.verdict.iter().cloned().collect();
    };
    match subject {
        Subject::Reads => vec![reads],
        Subject::Writes | Subject::Flushes => vec![writes],
        Subject::Requests => vec![reads, writes],
    }
}

/// What a verdict speaks against.
fn by_verdict(cell: &CellRecord, verdict: Option<&Verdict>) -> Doubts {
    let text = verdict.map(|verdict| verdict.text.clone()).unwrap_or_default();
    let (of_pass, of_fail) = match verdict.map(|verdict| verdict.code) {
        Some(VerdictCode::Device | VerdictCode::CpuBound) => (None, None),
        Some(VerdictCode::Throttled) => (None, Some(text)),
        Some(VerdictCode::Disturbed) => (None, Some(format!("other I/O took part: {text}"))),
        // What memory did is no worse on a disk.
        Some(VerdictCode::PageCache | VerdictCode::Hole) => (Some(text), None),
        Some(VerdictCode::Unverified | VerdictCode::SourceBound) => (Some(text.clone()), Some(text)),
        Some(VerdictCode::Incomplete) | None => {
            let why = format!("the test was cut short: {}", cell.result.why);
            (Some(why.clone()), Some(why))
        }
    };
    Doubts { of_pass, of_fail }
}

/// Findings that say that a flush does not do what it promises.
const LYING: [&str; 2] = ["durable-not-flushed", "faster-than-rotation"];

fn flush_doubt(
    record: &Record,
    threshold: &Threshold,
    cell: &CellRecord,
    result: &JobResult,
) -> Option<String> {
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    if job.flush.is_none() && !job.dsync {
        return None;
    }
    let lies = record.findings.iter().find(|finding| LYING.contains(&finding.code.as_str()));
    let lost = lies.map(|finding| format!("a power cut may lose what was flushed ({})", finding.code));
    lost.or_else(|| platter_doubt(record, cell, result))
}

/// On average a write waits for half a turn of the platter before it is durable.
fn platter_doubt(record: &Record, cell: &CellRecord, result: &JobResult) -> Option<String> {
    let durable = result.flushes.as_ref().or(result.writes.as_ref())?;
    let median_ns = durable.latency_ns.p50.filter(|ns| *ns < medium::QUICKEST_HALF_TURN_NS)?;
    let of_cell = record.targets.iter().filter(|target| cell.workload.targets.contains(&target.index));
    let device =
        of_cell.filter_map(|target| target.device.as_ref()).find(|device| device.rotational == Some(true))?;
    Some(format!(
        "{} says that it rotates, and no platter makes a write durable in {}: a cache took it, which a power cut may lose, or \
         queue/rotational is wrong",
        rdsk_units::printable(&device.name),
        rdsk_units::Nanos(median_ns)
    ))
}

/// A buffered write returns when memory has its data, whatever the disk does with it later.
fn copy_doubt(threshold: &Threshold, cell: &CellRecord) -> Option<String> {
    let is_of_rate =
        matches!(threshold.statistic, Statistic::OpsPerS | Statistic::BytesPerS | Statistic::LowestBytesPerS);
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    let is_copied = job.path.uses_page_cache() && !job.dsync && job.writes.is_some();
    let is_of_writes = matches!(threshold.of, Subject::Writes | Subject::Requests);
    let which = if threshold.of == Subject::Requests && job.reads.is_some() { "of them " } else { "" };
    (is_copied && is_of_writes && !is_of_rate).then(|| {
        format!("the buffered writes {which}return when memory has their data: this is the time of a copy, not of the disk")
    })
}

fn memory_doubt(record: &Record) -> Option<String> {
    let memory = record.targets.iter().find_map(medium::memory_disk)?;
    Some(format!("{memory} keeps its data in memory"))
}

fn space_doubt(record: &Record, threshold: &Threshold, cell: &CellRecord) -> Option<String> {
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    let is_ours = |index: &u32| {
        record.targets.iter().any(|target| {
            target.index == *index && (target.made_by_rdsk || target.kind == rdsk_model::TargetKind::Sim)
        })
    };
    let is_missing = job.fresh_space && !cell.workload.targets.iter().all(is_ours);
    is_missing.then(|| {
        "its writes went over blocks that were there, and not into new space: name a directory".into()
    })
}

/// That nothing worse was seen of an extreme, or of a share above a limit, says little of few requests.
fn rare_doubt(threshold: &Threshold, figure: &Figure) -> Option<String> {
    let needed = match threshold.statistic {
        Statistic::Max => FEW,
        // Three times as many as one beyond the share needs: none of them is then 95% sure.
        Statistic::ShareOver => {
            let share = threshold.at_most.filter(|share| *share > 0.0)?;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of requests"
            )]
            let needed = (3.0 / share).ceil() as u64;
            needed
        }
        _ => return None,
    };
    (figure.ops < needed)
        .then(|| format!("{} requests are too few to show it: it takes {needed}", figure.ops))
}

/// A mean that a fast beginning makes better says little of what follows, unless even the slowest tenth is good enough. Whether
/// the test was long enough for what lasts is a doubt of its own.
fn unsteady_doubt(need: &Need, threshold: &Threshold, result: &JobResult) -> Option<String> {
    let course = RateCourse::of(threshold, result).filter(|course| !course.is_steady)?;
    let judges_steady =
        is_about_lasting(need) && Course::of(result).is_some_and(|course| course.steady_from.is_some());
    (!judges_steady && !course.stays_good(threshold)).then(|| course.to_string())
}

fn length_doubt(need: &Need, result: &JobResult) -> Option<String> {
    (result.elapsed_ns < need.lasts_ns).then(|| {
        let (ran, needs) = (rdsk_units::Nanos(result.elapsed_ns), rdsk_units::Nanos(need.lasts_ns));
        format!("the rule is about {needs}, and this test ran for {ran}: it could only have failed")
    })
}

/// Bytes after which a rate is no burst's: a tenth of the device where that is more than the need says, as the fast part of flash may be,
/// but no more than any has.
fn outlasts_bytes(record: &Record, need: &Need) -> u64 {
    if need.outlasts_bytes == 0 {
        return 0;
    }
    let sizes =
        record.targets.iter().filter_map(|target| target.device.as_ref()).map(|device| device.size_bytes);
    let tenth = sizes.flatten().max().unwrap_or(0) / 10;
    need.outlasts_bytes.max(tenth.min(LARGEST_BURST_BYTES))
}

fn burst_doubt(
    record: &Record,
    need: &Need,
    threshold: &Threshold,
    cell: &CellRecord,
    result: &JobResult,
) -> Option<String> {
    let written = result.writes.as_ref()?.bytes;
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    let size = |bytes: u64| rdsk_units::Bytes(bytes).approx();
    let outlasts_bytes = outlasts_bytes(record, need);
    let needs = size(outlasts_bytes);
    if written < outlasts_bytes {
        let wrote = size(written);
        Some(format!(
            "it has to last beyond {needs}, and {wrote} were written: the rate may be that of a burst"
        ))
    } else if job.span_bytes < outlasts_bytes {
        let span = size(job.span_bytes);
        let room = if record.targets.iter().any(|target| target.made_by_rdsk) {
            format!(": --size {}G gives them room", outlasts_bytes.div_ceil(1 << 30))
        } else {
            String::new()
        };
        Some(format!(
            "it has to last beyond {needs}, and the writes went over {span} again and again, which a cache may hold{room}"
        ))
    } else {
        None
    }
}

fn unsent_doubt(result: &JobResult) -> Option<String> {
    let rate = result.rate.as_ref().filter(|rate| !rate.is_kept())?;
    Some(format!("{} of {} requests were never sent, as the target fell behind", rate.unsent, rate.due))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// Others took part in the reads, and memory took the writes: each direction has its own doubt.
    #[test]
    fn a_mark_is_doubted_for_its_own_direction() {
        let mut record = fixtures::load();
        let device = &mut record.cells[0].evidence.device[0];
        device.read_bytes = device.read_bytes.map(|bytes| bytes * 3);
        device.write_bytes = Some(0);
        device.diskstat = Some(rdsk_model::DiskStat::default());
        let cell = &record.cells[0];
        let doubted = |of: Subject| {
            let verdicts = verdicts_of(&record, of, cell);
            let doubts: Vec<Doubts> =
                verdicts.iter().map(|verdict| by_verdict(cell, Some(verdict))).collect();
            [
                doubts.iter().any(|doubts| doubts.of_pass.is_some()),
                doubts.iter().any(|doubts| doubts.of_fail.is_some()),
            ]
        };
        assert_eq!(doubted(Subject::Reads), [false, true], "others' reads make ours no faster");
        assert!(doubted(Subject::Writes)[0], "what memory took meets no mark");
        assert_eq!(doubted(Subject::Requests), [true, true]);
    }

    #[test]
    fn no_platter_flushes_sooner_than_half_a_turn() {
        let mut record = fixtures::load();
        let mut said = |rotational, p50_ns| {
            for target in &mut record.targets {
                target.device.as_mut().unwrap().rotational = Some(rotational);
            }
            let mut job = record.cells[0].result.jobs[1].clone();
            job.flushes.as_mut().unwrap().latency_ns.p50 = Some(p50_ns);
            platter_doubt(&record, &record.cells[0], &job).is_some()
        };
        assert_eq!([said(true, 154_000), said(true, 2_400_000), said(false, 154_000)], [true, false, false]);
    }
}
