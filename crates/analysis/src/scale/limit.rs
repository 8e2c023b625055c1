//! What limits where more streams stop helping, from the counters of that cell, in a fixed order: a control group, the
//! devices, one target of several, the queue, the processor, data generation; the last two come before a device that is only
//! busy. Without counters it is not known.

use super::TargetShare;
use super::cause::{Cause, Limit};
use super::shared::{common_device, one_device, shared_path};
use super::shares::Point;
use crate::verdict::is_held;
use crate::{medium, metrics, words};
use rdsk_model::{
    CellRecord, Confidence, EvidenceSource, Limit as GroupLimit, Record, TargetKind, VerdictCode,
};
use rdsk_units::{percent, printable};

/// A device that is busy for this part of the time has no time to give to more streams.
pub const BUSY: f64 = 0.95;
/// One that is busy for less than this part has.
pub const IDLE: f64 = 0.8;
/// A rate from this part of a control group's limit on is held by it; a little above is the burst that a group lets pass.
const AT_LIMIT: std::ops::RangeInclusive<f64> = 0.95..=1.15;
/// Processor time over elapsed time and processors from which the processor is the limit.
const CPU_SHARE: f64 = 0.9;
/// Up to this factor the time of a request in the device counts as the same.
const SAME_TIME: f64 = 1.25;
/// Requests that wait on average for a place in the device from which its queue counts as full.
const WAITING: f64 = 0.5;

/// The limit at a knee: that of its own cell, or, if its counters show none, that of the next larger count, at which it
/// must show since nothing more was gained. A larger count that brings further targets in always judges: that one target is
/// busy does not say why two do no more. `device_ns` are the times of a request in the device at both counts, where BPF took them.
pub(super) fn limit(
    record: &Record,
    at: &Point<'_>,
    next: &Point<'_>,
    device_ns: Option<(f64, f64)>,
) -> Limit {
    let more_targets = next.targets.len() > at.targets.len();
    match (more_targets, of_point(record, at)) {
        (true, _) => match of_point(record, next) {
            Limit::DeviceBusy(cause) => match common_device(record, next) {
                Some(device) => one_device(at, next, &device, cause),
                None => shared_path(at, next, cause),
            },
            other => other,
        },
        (false, Limit::Unknown) => of_point(record, next),
        (false, Limit::DeviceBusy(cause)) => in_the_device(record, at, next, device_ns, cause),
        (false, limit) => limit,
    }
}

/// A device that is busy all the time, with what BPF says of the time that requests spent in it: a busy device that serves many
/// at once may have room for more. Where more streams leave that time as it was, they do not wait in the device, and it is not
/// the limit.
fn in_the_device(
    record: &Record,
    at: &Point<'_>,
    next: &Point<'_>,
    device_ns: Option<(f64, f64)>,
    mut cause: Cause,
) -> Limit {
    let Some((before, after)) = device_ns else {
        return Limit::DeviceBusy(cause);
    };
    let waits_in_it = after > SAME_TIME * before;
    if !waits_in_it && next.count() >= 2 * at.count() {
        return used_up(record, next.cell).unwrap_or(Limit::Unknown);
    }
    let line = format!(
        "{}: in the device = {} each, in {} = {}",
        words::test(next.cell),
        words::mean_nanos(after),
        words::test(at.cell),
        words::mean_nanos(before)
    );
    cause.evidence.push(line);
    Limit::DeviceBusy(if waits_in_it { cause.proven() } else { cause })
}

/// What the counters of one cell show.
pub fn of_point(record: &Record, point: &Point<'_>) -> Limit {
    let cell = point.cell;
    let code = cell.verdict.as_ref().map(|verdict| verdict.code);
    if matches!(code, None | Some(VerdictCode::PageCache | VerdictCode::Hole | VerdictCode::Disturbed)) {
        return Limit::Unknown;
    }
    let used_up = || used_up(record, cell);
    match of_targets(record, point) {
        // A device with something to do all the time may have room for more; a processor without time has none. The counters of
        // models are exact.
        Some(busy @ (Limit::DeviceBusy(_) | Limit::SomeTargets(_)))
            if !is_simulated(cell) && !has_held(record, point) =>
        {
            used_up().unwrap_or(busy)
        }
        Some(limit) => limit,
        None => queue_full(cell).or_else(used_up).unwrap_or(Limit::Unknown),
    }
}

/// The processors, or the data that is generated.
fn used_up(record: &Record, cell: &CellRecord) -> Option<Limit> {
    cpu(record, cell).or_else(|| source(cell))
}

fn is_simulated(cell: &CellRecord) -> bool {
    cell.evidence.source == EvidenceSource::Sim
}

/// Whether a control group holds some target.
fn has_held(record: &Record, point: &Point<'_>) -> bool {
    point.targets.iter().any(|share| state(record, point, share).is_held())
}

/// Whether a target that is busy all the time has no time left: its one arm moves, or a model counted. Flash, arrays behind a
/// controller and virtual disks serve many at once, though some say that they rotate.
fn serves_one(record: &Record, cell: &CellRecord, target: u32) -> bool {
    is_simulated(cell) || medium::has_platters(record, target)
}

/// How one target stands.
enum State {
    Held(String),
    /// Held, in the words of the test's verdict, which knows bursts and how many requests a call becomes.
    Throttled(String),
    Busy(f64),
    Between,
    Idle(f64),
}

impl State {
    fn is_held(&self) -> bool {
        matches!(self, Self::Held(_) | Self::Throttled(_))
    }
}

fn state(record: &Record, point: &Point<'_>, share: &TargetShare) -> State {
    let cell = point.cell;
    if let (Some(verdict), [_]) = (&cell.verdict, point.targets.as_slice())
        && is_held(cell, &record.targets)
    {
        return State::Throttled(verdict.text.clone());
    }
    let limits = cell.evidence.limits.iter();
    let held = limits
        .filter(|limit| limit.target == share.target && limit.op == cell.workload.op)
        .find_map(|limit| held(share, limit));
    match (held, share.busy_share) {
        (Some(text), _) => State::Held(text),
        (None, Some(busy)) if busy >= BUSY => State::Busy(busy),
        (None, Some(busy)) if busy < IDLE => State::Idle(busy),
        (None, _) => State::Between,
    }
}

/// `3.98 MiB/s, the limit is 4.00 MiB/s (blkio.throttle.read_bps_device)`.
fn held(share: &TargetShare, limit: &GroupLimit) -> Option<String> {
    let source = printable(&limit.source);
    let is_at = |rate: f64, allowed: u64| allowed > 0 && AT_LIMIT.contains(&(rate / allowed as f64));
    if let Some(allowed) = limit.bytes_per_s.filter(|&allowed| is_at(share.bytes_per_s, allowed)) {
        let (rate, allowed) = (words::rate(share.bytes_per_s), words::rate(allowed as f64));
        return Some(format!("{rate}, its limit is {allowed} ({source})"));
    }
    let ops_per_s = share.ops as f64 * 1e9 / share.elapsed_ns.max(1) as f64;
    let allowed = limit.ops_per_s.filter(|&allowed| is_at(ops_per_s, allowed))?;
    Some(format!("{} I/Os per second, its limit is {allowed} ({source})", words::figure(ops_per_s)))
}

fn of_targets(record: &Record, point: &Point<'_>) -> Option<Limit> {
    let cell = point.cell;
    let name = |target: u32| name(record, target);
    let states: Vec<(u32, State)> =
        point.targets.iter().map(|share| (share.target, state(record, point, share))).collect();
    let line = |(target, state): &(u32, State)| match state {
        State::Held(text) | State::Throttled(text) => {
            format!("{}: {} = {text}", words::test(cell), name(*target))
        }
        State::Busy(busy) | State::Idle(busy) => {
            format!("{}: {} busy = {}", words::test(cell), name(*target), percent(*busy))
        }
        State::Between => String::new(),
    };
    let clause = |(target, state): &(u32, State)| match state {
        State::Held(text) => format!("a control group holds {} at {text}", name(*target)),
        State::Throttled(text) => format!("{}: {text}", name(*target)),
        State::Busy(busy) => format!("{} was busy {} of the time", name(*target), percent(*busy)),
        State::Between | State::Idle(_) => String::new(),
    };
    let evidence: Vec<String> = states.iter().map(line).filter(|line| !line.is_empty()).collect();
    let limited: Vec<&(u32, State)> =
        states.iter().filter(|(_, state)| state.is_held() || matches!(state, State::Busy(_))).collect();
    let idle: Vec<String> = states
        .iter()
        .filter(|(_, state)| matches!(state, State::Idle(_)))
        .map(|(target, _)| name(*target))
        .collect();
    let targets: Vec<u32> = limited.iter().map(|(target, _)| *target).collect();
    let text = together(&states, &limited)
        .unwrap_or_else(|| words::list(&limited.iter().map(|target| clause(target)).collect::<Vec<_>>()));
    let is_held = limited.iter().any(|(_, state)| state.is_held());
    let is_sure = |(target, state): &(u32, State)| state.is_held() || serves_one(record, cell, *target);
    let sure = limited.iter().all(|target| is_sure(target));
    let confidence = if sure { Confidence::Measured } else { Confidence::Inferred };
    match (limited.len(), idle.len()) {
        (0, _) => None,
        (count, 0) if count == states.len() && is_held => {
            Some(Limit::Throttled(Cause::of_busy(targets, text, evidence, confidence)))
        }
        (count, 0) if count == states.len() => {
            Some(Limit::DeviceBusy(Cause::of_busy(targets, text, evidence, confidence)))
        }
        (some, rest) if some + rest == states.len() => {
            let text = format!("{text}, while {} had idle time", words::list(&idle));
            Some(Limit::SomeTargets(Cause::of_busy(targets, text, evidence, confidence)))
        }
        _ => None,
    }
}

/// The words for several targets that are all busy; their names stand in the evidence.
fn together(states: &[(u32, State)], limited: &[&(u32, State)]) -> Option<String> {
    let busy = limited.iter().map(|(_, state)| match state {
        State::Busy(busy) => Some(*busy),
        _ => None,
    });
    let least = busy.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)?;
    (limited.len() > 1 && limited.len() == states.len())
        .then(|| format!("each of {} targets was busy {} of the time or more", states.len(), percent(least)))
}

fn queue_full(cell: &CellRecord) -> Option<Limit> {
    let devices = metrics::devices(cell)?;
    let mut each = devices.iter().map(|device| crate::iostat::waiting_mean(device));
    let waiting = each.try_fold(0.0_f64, |sum, mean| Some(sum + mean?))?;
    let targets: Vec<u32> = devices.iter().map(|device| device.target).collect();
    (waiting >= WAITING).then(|| {
        let waiting = words::figure(waiting);
        Limit::QueueFull(Cause {
            targets,
            text: format!("{waiting} requests waited on average for a place in the device's queue"),
            evidence: vec![format!("{}: waiting_mean = {waiting}", words::test(cell))],
            confidence: Confidence::Inferred,
        })
    })
}

fn cpu(record: &Record, cell: &CellRecord) -> Option<Limit> {
    // A model charges each call its processor time, and lets as many calls run as there are.
    let cpus = record.host.as_ref().map(|host| host.cpu_count);
    let cpus = cpus.filter(|&cpus| cpus > 0 && !is_simulated(cell))?;
    let elapsed_ns = cell.result.elapsed_ns.filter(|&elapsed_ns| elapsed_ns > 0)?;
    let share = metrics::ratio(metrics::cpu_ns(cell)?, elapsed_ns) / f64::from(cpus);
    (share >= CPU_SHARE).then(|| {
        let share = percent(share);
        let count = words::plural(u64::from(cpus), "processor");
        Limit::Cpu(Cause {
            targets: Vec::new(),
            text: format!("rdsk itself kept {count} busy {share} of the time"),
            evidence: vec![format!("{}: cpu_ns / elapsed_ns / {cpus} = {share}", words::test(cell))],
            confidence: Confidence::Measured,
        })
    })
}

fn source(cell: &CellRecord) -> Option<Limit> {
    let verdict = cell.verdict.as_ref().filter(|verdict| verdict.code == VerdictCode::SourceBound)?;
    Some(Limit::Source(Cause {
        targets: Vec::new(),
        text: verdict.text.clone(),
        evidence: vec![format!("{}: judged {}", words::test(cell), verdict.text)],
        confidence: Confidence::Measured,
    }))
}

/// The name of a target, safe to print; for a file, the device that it lies on besides.
pub fn name(record: &Record, target: u32) -> String {
    let Some(target) = metrics::target(record, target) else {
        return format!("target {target}");
    };
    match target.device.as_ref().filter(|_| target.kind == TargetKind::File) {
        Some(device) => printable(&format!("{} under {}", device.name, target.name)),
        None => printable(&target.name),
    }
}
