//! What speaks against the figure of a threshold: it is not the device's, a power cut may lose what was flushed, or the test was too short
//! for what the need is about.

use rdsk_model::{CellRecord, JobResult, Need, Record, Threshold, VerdictCode};

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
    result: &JobResult,
) -> Doubts {
    let verdict = cell.verdict.as_ref();
    let text = verdict.map(|verdict| verdict.text.clone()).unwrap_or_default();
    let by_verdict = match verdict.map(|verdict| verdict.code) {
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
    let of_pass = by_verdict
        .0
        .or_else(|| flush_doubt(record, threshold, cell))
        .or_else(|| length_doubt(need, result))
        .or_else(|| burst_doubt(need, threshold, cell, result))
        .or_else(|| unsent_doubt(result));
    Doubts { of_pass, of_fail: by_verdict.1 }
}

/// Findings that say that a flush does not do what it promises.
const LYING: [&str; 3] = ["durable-not-flushed", "faster-than-rotation", "memory-device"];

fn flush_doubt(record: &Record, threshold: &Threshold, cell: &CellRecord) -> Option<String> {
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    if job.flush.is_none() && !job.dsync {
        return None;
    }
    let lies = record.findings.iter().find(|finding| LYING.contains(&finding.code.as_str()));
    lies.map(|finding| format!("a power cut may lose what was flushed ({})", finding.code))
}

fn length_doubt(need: &Need, result: &JobResult) -> Option<String> {
    (result.elapsed_ns < need.lasts_ns).then(|| {
        let (ran, needs) = (rdsk_units::Nanos(result.elapsed_ns), rdsk_units::Nanos(need.lasts_ns));
        format!("the rule is about {needs}, and this test ran for {ran}: it could only have failed")
    })
}

fn burst_doubt(need: &Need, threshold: &Threshold, cell: &CellRecord, result: &JobResult) -> Option<String> {
    let written = result.writes.as_ref()?.bytes;
    let job = cell.workload.jobs.iter().find(|job| job.name == threshold.job)?;
    let size = |bytes: u64| rdsk_units::Bytes(bytes).approx();
    let needs = size(need.outlasts_bytes);
    if written < need.outlasts_bytes {
        let wrote = size(written);
        Some(format!(
            "it has to last beyond {needs}, and {wrote} were written: the rate may be that of a burst"
        ))
    } else if job.span_bytes < need.outlasts_bytes {
        let span = size(job.span_bytes);
        Some(format!(
            "it has to last beyond {needs}, and the writes went over {span} again and again, which a cache may hold: \
             --size {}G gives them room",
            need.outlasts_bytes.div_ceil(1 << 30)
        ))
    } else {
        None
    }
}

fn unsent_doubt(result: &JobResult) -> Option<String> {
    let rate = result.rate.as_ref().filter(|rate| rate.unsent > 0)?;
    Some(format!("{} of {} requests were never sent, as the target fell behind", rate.unsent, rate.due))
}
