//! What several targets have in common where they give no more together than fewer do, or than each by itself: the device that all of
//! them lie on, or a path to them. It reads stacks and rates; whether the targets were busy is for its callers to know.

use super::cause::{Cause, Limit};
use super::shares::Point;
use crate::comparison::Ratio;
use crate::{metrics, words};
use rdsk_model::{Confidence, Record};
use rdsk_units::printable;

/// The device that all targets are, or lie on, by its kernel name.
pub(super) fn common_device(record: &Record, point: &Point<'_>) -> Option<String> {
    let stack = |target: u32| -> Vec<&str> {
        let target = metrics::target(record, target);
        let Some(target) = target else { return Vec::new() };
        let own = target.device.iter().map(|device| device.name.as_str());
        own.chain(target.stack.iter().map(String::as_str)).collect()
    };
    let mut stacks = point.targets.iter().map(|share| stack(share.target));
    let first = stacks.next()?;
    let others: Vec<Vec<&str>> = stacks.collect();
    let shared = first.iter().find(|name| others.iter().all(|other| other.contains(name)))?;
    Some(printable(shared))
}

/// Targets that lie on the same device do no more together than it does.
pub(super) fn one_device(at: &Point<'_>, next: &Point<'_>, device: &str, cause: Cause) -> Limit {
    let rate = |point: &Point<'_>| point.bytes_per_s().map_or_else(String::new, words::rate);
    let text = format!(
        "{} give {} together, hardly more than {} before: all of them lie on {device}",
        words::plural(next.targets.len() as u64, "target"),
        rate(next),
        rate(at)
    );
    Limit::DeviceBusy(Cause::of_busy(cause.targets, text, cause.evidence, cause.confidence))
}

pub(super) fn shared_path(at: &Point<'_>, next: &Point<'_>, cause: Cause) -> Limit {
    let (before, after) = (at.targets.len() as u64, next.targets.len() as u64);
    let rate = |point: &Point<'_>| point.bytes_per_s().map_or_else(String::new, words::rate);
    let text = format!(
        "{} give {} together, hardly more than {} with {}, though each was busy: they share a controller, a bus or a link",
        words::plural(after, "target"),
        rate(next),
        rate(at),
        if before == 1 { "one".to_owned() } else { before.to_string() },
    );
    let mut evidence = vec![
        format!("{}: bytes_per_s = {}", at.cell.id, rate(at)),
        format!("{}: bytes_per_s = {}", next.cell.id, rate(next)),
    ];
    evidence.extend(cause.evidence);
    Limit::SharedPath(Cause { targets: cause.targets, text, evidence, confidence: Confidence::Inferred })
}

/// What limits several busy targets that give less together than each by itself: the device that all lie on, or a path to them.
/// `sum_alone` is what they give one by one, added up, in bytes per second.
pub(super) fn of_targets_together(
    record: &Record,
    at: &Point<'_>,
    sum_alone: Option<f64>,
    ratio: Ratio,
    cause: Cause,
) -> Limit {
    let targets = words::plural(at.targets.len() as u64, "target");
    let (together, alone) = (at.bytes_per_s().unwrap_or(0.0), sum_alone.unwrap_or(0.0));
    let what = format!(
        "{targets} give {} together and {} one by one, added up",
        words::rate(together),
        words::rate(alone)
    );
    let mut evidence = vec![format!(
        "{}: together / sum of each alone = {} ({} to {})",
        at.cell.id,
        words::figure(ratio.mean),
        words::figure(ratio.low),
        words::figure(ratio.high)
    )];
    evidence.extend(cause.evidence);
    let targets = cause.targets;
    match common_device(record, at) {
        Some(device) => Limit::DeviceBusy(Cause {
            targets,
            text: format!("{what}: all of them lie on {device}"),
            evidence,
            confidence: cause.confidence,
        }),
        None => Limit::SharedPath(Cause {
            targets,
            text: format!("{what}: they share a controller, a bus or a link"),
            evidence,
            confidence: Confidence::Inferred,
        }),
    }
}
