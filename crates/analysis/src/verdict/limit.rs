//! What other than the device can limit a cell that reached it: a control group, the processor or data generation. It
//! never judges where the bytes went.

use super::facts::Facts;
use super::{Judgement, mixed};
use crate::target_shares::{TargetShare, targets};
use crate::{groups, medium, metrics, words};
use rdsk_model::{DeviceEvidence, EngineKind, Estimate, Experiment, IoPath, Limit, Op, VerdictCode};
use rdsk_units::{percent, printable};

/// A rate this close to a limit is the limit.
pub(super) const LIMIT_TOLERANCE: f64 = 0.05;
/// Share of the bytes that the device must have moved for a limit on it to matter.
const MOSTLY: f64 = 0.9;
/// Processor time over elapsed time from which the processor is the limit.
const CPU_SHARE: f64 = 0.9;
/// Time of I/O below which processor time says nothing: kernels without precise accounting count ticks of up to 10 ms.
const MIN_CPU_ELAPSED_NS: u64 = 50_000_000;
/// Minimum share of a stream's time outside its I/O for data generation to be the limit.
const GAP_SHARE: f64 = 0.25;
/// Minimum share of that time that is processor time of our own code.
const GAP_CPU_SHARE: f64 = 0.5;

/// Step 5: the measured rate is a limit that is in force.
pub(super) fn throttled(facts: &Facts<'_>) -> Judgement {
    let texts = limits(facts).filter_map(|limit| Some((limit.target, reached(facts, limit)?)));
    // Of several targets each has a limit of its own.
    let of_each = groups::by_key(texts);
    let texts: Vec<String> = of_each.iter().map(|(target, its)| of_target(facts, *target, &its[0])).collect();
    (!texts.is_empty()).then(|| (VerdictCode::Throttled, texts.join("; ")))
}

/// Whether the rate is above a limit that is in force, which it can only be for a while.
pub(super) fn bursts(facts: &Facts<'_>) -> bool {
    let is_above = |limit: &Limit| {
        let (bytes_per_s, ops_per_s) = own_rates(facts, limit);
        [(bytes_per_s, limit.bytes_per_s), (ops_per_s, limit.ops_per_s)]
            .into_iter()
            .any(|(rate, allowed)| rate.zip(allowed).is_some_and(|(rate, most)| is_burst(facts, rate, most)))
            && changed(facts, limit).is_none()
    };
    limits(facts).any(|limit| holds_for_all(facts, limit) && is_above(limit))
}

/// Whether the rate is that of a limit which was the same all the time.
pub(super) fn holds(facts: &Facts<'_>) -> bool {
    let is_reached = |limit| changed(facts, limit).is_none() && reached(facts, limit).is_some();
    !bursts(facts) && limits(facts).any(is_reached)
}

/// The limits on what the cell did.
pub(super) fn limits<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = &'a Limit> {
    let workload = &facts.cell.workload;
    let limits = facts.cell.evidence.limits.iter();
    limits.filter(|limit| limit.op == workload.op && workload.targets.contains(&limit.target))
}

/// A sentence about one target, with its name where there are several.
pub(super) fn of_target(facts: &Facts<'_>, target: u32, text: &str) -> String {
    let its = facts.targets.iter().find(|other| other.index == target && facts.targets.len() > 1);
    its.map_or_else(|| text.to_owned(), |target| format!("{}: {text}", printable(&target.name)))
}

/// The cell's own bytes and I/Os per second on a limited device, over the time in which its target had streams: of two targets with a
/// limit each, the one that ends first is no part of the rate of the other. None on a device that had only a part of them, such as a
/// member of a stripe. Calls are no I/Os of the device where the kernel made fewer and larger ones of them, as it does when it reads ahead.
pub(super) fn own_rates(facts: &Facts<'_>, limit: &Limit) -> (Option<f64>, Option<f64>) {
    let device = limited(facts, limit);
    let moved = device.and_then(|device| metrics::bytes_of(device, limit.op));
    let arrived = device.and_then(|device| {
        let (ios, merges) =
            limit.op.select((device.reads, device.read_merges), (device.writes, device.write_merges));
        Some(ios?.saturating_add(merges.unwrap_or(0)))
    });
    let result = &facts.cell.result;
    let mean = |rate: Option<Estimate>| rate.map(|rate| rate.mean);
    let (bytes, ops, bytes_per_s, ops_per_s) = match share(facts, limit.target) {
        Some(share) => {
            let (of_ops, of_bytes) = mixed::shares(facts.cell);
            let (ops, bytes) = (share.ops as f64 * of_ops, share.bytes as f64 * of_bytes);
            let per_s = |amount: f64| Some(amount / metrics::seconds(share.elapsed_ns));
            (bytes, Some(ops), per_s(bytes), per_s(ops))
        }
        None => {
            let ops = result.ops.map(|ops| ops as f64);
            (facts.bytes as f64, ops, mean(result.bytes_per_s), mean(result.ops_per_s))
        }
    };
    let passes_all = moved.is_none_or(|moved| moved as f64 >= MOSTLY * bytes);
    let one_by_one = arrived.zip(ops).is_none_or(|(ios, ops)| ios as f64 >= MOSTLY * ops);
    let ops_per_s = ops_per_s.map(|rate| rate * ios_of_a_call(facts, limit));
    (bytes_per_s.filter(|_| passes_all), ops_per_s.filter(|_| passes_all && one_by_one))
}

/// I/Os of the limited device for each direct call of the cell: a call of 1 MiB is two I/Os where a request holds 512 KiB, and a limit
/// counts both. 1 where the device did more than what was asked for, or is not known.
pub(super) fn ios_of_a_call(facts: &Facts<'_>, limit: &Limit) -> f64 {
    let is_plain = facts.cell.workload.path == IoPath::Direct
        && facts.targets.len() == 1
        && facts.cell.workload.jobs.is_empty();
    let of_device = || {
        let device = limited(facts, limit)?;
        let (ios, bytes) =
            limit.op.select((device.reads, device.read_bytes), (device.writes, device.write_bytes));
        let is_ours = bytes? as f64 * MOSTLY <= facts.bytes as f64;
        is_ours.then_some(metrics::ratio(ios?, facts.ops.max(1)))
    };
    let ratio: Option<f64> = if is_plain { of_device() } else { None };
    ratio.filter(|&ratio| ratio > 1.0 + LIMIT_TOLERANCE).unwrap_or(1.0)
}

/// What one of several targets had; `None` for the only one, which has the rate of the cell.
fn share(facts: &Facts<'_>, target: u32) -> Option<TargetShare> {
    let its = |share: &TargetShare| share.target == target && share.elapsed_ns > 0;
    (facts.targets.len() > 1).then(|| targets(facts.cell).into_iter().find(its))?
}

fn reached(facts: &Facts<'_>, limit: &Limit) -> Option<String> {
    if let Some(text) = changed(facts, limit) {
        return Some(text);
    }
    let device = limited(facts, limit);
    let (own_bytes, own_ios) = own_rates(facts, limit);
    let is_at = |rate: f64, limit: u64| limit > 0 && (rate / limit as f64 - 1.0).abs() <= LIMIT_TOLERANCE;
    let may_burst = holds_for_all(facts, limit);
    let row = device.and_then(crate::iostat::iostat_row);
    let name = device.map_or_else(|| "the device".to_owned(), |device| printable(&device.name));
    let source = printable(&limit.source);
    let op = limit.op;
    if let Some(allowed) = limit.bytes_per_s {
        let devices = row.map(|row| row.direction(op).kb_s * 1024.0);
        let words_of_limit =
            format!("the limit of {} that {source} sets for {op}s", words::rate(allowed as f64));
        if let Some(rate) = own_bytes.filter(|&rate| is_at(rate, allowed)) {
            return Some(format!("{} is {words_of_limit}", words::rate(rate)));
        }
        if let Some(rate) = own_bytes.filter(|&rate| may_burst && is_burst(facts, rate, allowed)) {
            return Some(format!("{} is above {words_of_limit}: {BURST}", words::rate(rate)));
        }
        if let Some(rate) = devices.filter(|&rate| is_at(rate, allowed)) {
            let used = own_bytes.map_or_else(|| "an unknown part".into(), words::rate);
            return Some(format!(
                "{name} moved {}, {words_of_limit}; {used} of it was for this test",
                words::rate(rate)
            ));
        }
    }
    let allowed = limit.ops_per_s?;
    let devices = row.map(|row| row.direction(op).ios_s);
    if let Some(rate) = own_ios.filter(|&rate| may_burst && is_burst(facts, rate, allowed)) {
        let rate = words::figure(rate);
        return Some(format!(
            "{rate} I/Os per second are above the limit of {allowed} that {source} sets for {op}s: {BURST}"
        ));
    }
    let words_of_limit = format!("the limit of {allowed} that {source} sets for {op}s");
    if let Some(rate) = [own_ios, devices].into_iter().flatten().find(|&rate| is_at(rate, allowed)) {
        return Some(format!("{} I/Os per second are {words_of_limit}", words::figure(rate)));
    }
    // Limits are charged for bios, which are merged behind them: a write of 64 KiB through the page cache is 16 of a page.
    let is_ours = |moved: u64| {
        let ratio = moved as f64 / facts.bytes.max(1) as f64;
        (MOSTLY..=1.0 / MOSTLY).contains(&ratio)
    };
    device.and_then(|device| metrics::bytes_of(device, op)).filter(|&moved| is_ours(moved))?;
    let direction = row.map(|row| *row.direction(op))?;
    let bios = direction.ios_s + direction.rqm_s;
    is_at(bios, allowed).then(|| {
        let (bios, requests) = (words::figure(bios), words::figure(direction.ios_s));
        format!("{bios} bios per second, merged into {requests} requests, are {words_of_limit}")
    })
}

/// A file states one figure for a device and a direction at a time. Where visits found several, the limit was changed between them,
/// and a mean between these is no burst above the lower one.
fn changed(facts: &Facts<'_>, limit: &Limit) -> Option<String> {
    if !holds_for_all(facts, limit) || !is_at_the_device(facts) {
        return None;
    }
    let is_same = |other: &&Limit| {
        (&other.source, &other.device, other.target) == (&limit.source, &limit.device, limit.target)
    };
    let same: Vec<&Limit> = limits(facts).filter(is_same).collect();
    let between = |rate: Option<f64>, allowed: Vec<u64>| {
        let (least, most) = (*allowed.iter().min()?, *allowed.iter().max()?);
        let is_within = |rate: &f64| {
            *rate >= least as f64 * (1.0 - LIMIT_TOLERANCE) && *rate <= most as f64 * (1.0 + LIMIT_TOLERANCE)
        };
        rate.filter(|rate| least < most && is_within(rate)).map(|rate| (rate, allowed))
    };
    let (bytes_per_s, ops_per_s) = own_rates(facts, limit);
    let bytes = between(bytes_per_s, same.iter().filter_map(|limit| limit.bytes_per_s).collect());
    let ios = between(ops_per_s, same.iter().filter_map(|limit| limit.ops_per_s).collect());
    let (rate, limits) = match (bytes, ios) {
        (Some((rate, allowed)), _) => (words::rate(rate), named(&allowed, |most| words::rate(most as f64))),
        (None, Some((rate, allowed))) => {
            (format!("{} I/Os per second", words::figure(rate)), named(&allowed, |most| most.to_string()))
        }
        (None, None) => return None,
    };
    let (source, op) = (printable(&limit.source), limit.op);
    Some(format!(
        "{rate} is a mean under limits of {limits} that {source} set for {op}s one after the other: the limit was changed during \
         the run; measure again"
    ))
}

fn named(allowed: &[u64], words_of: impl Fn(u64) -> String) -> String {
    words::list(&allowed.iter().map(|&most| words_of(most)).collect::<Vec<String>>())
}

/// The meaning of a rate above a limit in force.
const BURST: &str = "a burst that is allowed before the limit applies, not a sustained rate; measure longer";

/// Whether a rate is clearly above a limit, on a device that all of the I/O passed.
fn is_burst(facts: &Facts<'_>, rate: f64, allowed: u64) -> bool {
    is_at_the_device(facts) && allowed > 0 && rate > allowed as f64 * (1.0 + LIMIT_TOLERANCE)
}

fn is_at_the_device(facts: &Facts<'_>) -> bool {
    facts.share.is_some_and(|share| share >= MOSTLY)
}

/// Whether a limit is sure to hold for the I/O. What a loop device does to its file's disk is charged to the group that asked for it
/// since Linux 5.14 only, and memory may answer it; then a rate above the limit is no burst.
fn holds_for_all(facts: &Facts<'_>, limit: &Limit) -> bool {
    let evidence = &facts.cell.evidence;
    let is_looped = |file: &rdsk_model::LoopFile| file.target == limit.target;
    let is_stacked = |target: &&rdsk_model::Target| target.stack.contains(&limit.device);
    limit.device.is_empty() || !evidence.loops.iter().any(is_looped) || facts.targets.iter().any(is_stacked)
}

/// The counters of the device that a limit is set on; Records of older programs do not name it.
pub(super) fn limited<'a>(facts: &Facts<'a>, limit: &Limit) -> Option<&'a DeviceEvidence> {
    let evidence = &facts.cell.evidence;
    if limit.device.is_empty() {
        return evidence.device_of(limit.target);
    }
    evidence.device.iter().find(|device| device.target == limit.target && device.name == limit.device)
}

/// Step 9: streams of depth 1 spent their time generating the data rather than writing it. A copy generates none: its time outside
/// the writes is that of its reads and of the close, which stand beside it.
pub(super) fn source_bound(facts: &Facts<'_>) -> Judgement {
    let workload = &facts.cell.workload;
    let is_copy = facts.cell.experiment == Experiment::Dd;
    if workload.op != Op::Write || workload.queue_depth != 1 || is_copy {
        return None;
    }
    let streams = f64::from(workload.streams);
    let gap = 1.0 - facts.cell.result.in_flight_mean? / streams;
    let outside_ns = gap * facts.elapsed_ns as f64 * streams;
    let user_ns = facts.cell.result.cpu_ns?.user;
    (gap >= GAP_SHARE && user_ns as f64 >= GAP_CPU_SHARE * outside_ns).then(|| {
        let (gap, user) = (percent(gap), words::nanos(user_ns));
        let text = format!(
            "{gap} of the time was spent outside the writes, and data generation took {user} of processor time"
        );
        (VerdictCode::SourceBound, text)
    })
}

/// Step 10: the processor was busy all the time.
pub(super) fn cpu_bound(facts: &Facts<'_>, cpus: Option<u32>) -> Judgement {
    // The host of a simulated system takes time, and its processor is never what limits it.
    if facts.is_simulated() {
        return None;
    }
    let workload = &facts.cell.workload;
    // The threads engine has one thread per I/O in flight and may use more than one processor.
    let threads = match facts.cell.result.engine {
        Some(EngineKind::Threads) => u32::try_from(metrics::wanted_depth(workload)).unwrap_or(u32::MAX),
        _ => workload.streams,
    };
    let cpus = cpus.filter(|&cpus| cpus > 0).map_or(threads, |cpus| cpus.min(threads));
    let cpu_ns = metrics::cpu_ns(facts.cell)?;
    let share = cpu_ns as f64 / (facts.elapsed_ns as f64 * f64::from(cpus));
    (share >= CPU_SHARE && facts.elapsed_ns >= MIN_CPU_ELAPSED_NS).then(|| {
        let per_io = words::nanos(cpu_ns / facts.ops);
        let busy = percent(share);
        let why = if medium::is_memory_disk(&facts.device_names) {
            format!("; {} runs on the processor", facts.device_names)
        } else {
            String::new()
        };
        (
            VerdictCode::CpuBound,
            format!("the processor was busy {busy} of the time, {per_io} for each I/O{why}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, with};
    use rdsk_model::{CellRecord, IoPath};

    const MIB: u64 = 1 << 20;

    /// A cell of 128 MiB/s and 128 I/Os per second, and a file that stated these limits one after the other.
    fn under(bytes_per_s: &[u64], ops_per_s: &[u64]) -> CellRecord {
        let limit = |bytes_per_s, ops_per_s| Limit {
            target: 0,
            device: "sda".into(),
            source: "/cg/io.max".into(),
            op: Op::Read,
            bytes_per_s,
            ops_per_s,
        };
        with(cell("t", Op::Read, IoPath::Direct, MIB, 64, 500_000_000), |cell| {
            let bytes = bytes_per_s.iter().map(|&most| limit(Some(most), None));
            cell.evidence.limits =
                bytes.chain(ops_per_s.iter().map(|&most| limit(None, Some(most)))).collect();
        })
    }

    fn judged(cell: &CellRecord) -> (VerdictCode, String, bool) {
        let targets = [fixtures::disk()];
        let verdict = crate::verdict(cell, &targets, Some(8));
        let cell = with(cell.clone(), |cell| cell.verdict = Some(verdict.clone()));
        (verdict.code, verdict.text, super::super::is_burst(&cell, &targets))
    }

    #[test]
    fn a_rate_between_the_limits_that_were_changed_is_no_burst() {
        for (bytes, ios, rate) in [
            (
                &[200 * MIB, 100 * MIB][..],
                &[][..],
                "128 MiB/s is a mean under limits of 200 MiB/s and 100 MiB/s that",
            ),
            (&[], &[100, 200, 90], "128 I/Os per second is a mean under limits of 100, 200 and 90 that"),
        ] {
            let (code, text, is_burst) = judged(&under(bytes, ios));
            assert_eq!((code, is_burst), (VerdictCode::Throttled, false), "{text}");
            assert!(
                text.starts_with(rate) && text.contains("the limit was changed during the run"),
                "{text}"
            );
        }
    }

    /// Read-ahead makes one I/O of the device of many calls, and a limit counts what reaches the device.
    #[test]
    fn calls_that_became_fewer_ios_are_no_burst_of_ios() {
        let ahead = |requests: u64, merges: u64| {
            with(under(&[], &[30]), |cell| {
                cell.evidence.device[0].reads = Some(requests);
                cell.evidence.device[0].read_merges = Some(merges);
                cell.evidence.device[0].diskstat.as_mut().unwrap().read_ios = requests;
            })
        };
        let (code, text, is_burst) = judged(&ahead(8, 0));
        assert_eq!((code, is_burst), (VerdictCode::Device, false), "{text}");
        let (code, text, is_burst) = judged(&ahead(15, 0));
        assert_eq!((code, is_burst), (VerdictCode::Throttled, false), "{text}");
        assert!(text.starts_with("30.0 I/Os per second are the limit of 30"), "{text}");
        // Merging comes after the limit.
        let (code, text, is_burst) = judged(&ahead(8, 56));
        assert_eq!((code, is_burst), (VerdictCode::Throttled, true), "{text}");
    }

    /// Found by a user: a write of 64 KiB through the page cache is 16 bios, each of which a limit counts, and one request.
    #[test]
    fn bios_that_were_merged_behind_a_limit_reach_it() {
        let merged = |merges: u64| {
            with(under(&[], &[2048]), |cell| {
                let device = &mut cell.evidence.device[0];
                (device.reads, device.read_merges) = (Some(64), Some(merges));
                let counters = device.diskstat.as_mut().unwrap();
                (counters.read_ios, counters.read_merges) = (64, merges);
            })
        };
        let (code, text, is_burst) = judged(&merged(15 * 64));
        assert_eq!((code, is_burst), (VerdictCode::Throttled, false), "{text}");
        let expected = "2048 bios per second, merged into 128 requests, are the limit of 2048 that /cg/io.max sets for reads";
        assert_eq!(text, expected);
        assert_eq!(judged(&merged(7 * 64)).0, VerdictCode::Device);
    }

    /// Found by a user: a call of 1 MiB is two I/Os of 512 KiB, each of which a limit counts.
    #[test]
    fn calls_that_became_two_ios_each_reach_a_limit_of_twice_as_many() {
        let split = |most: u64| {
            with(under(&[], &[most]), |cell| {
                cell.evidence.device[0].reads = Some(128);
                cell.evidence.device[0].diskstat = None;
            })
        };
        let (code, text, _) = judged(&split(250));
        assert_eq!(code, VerdictCode::Throttled, "{text}");
        assert!(text.starts_with("256 I/Os per second are the limit of 250"), "{text}");
        assert_eq!(judged(&split(1000)).0, VerdictCode::Device);
        // What the device read besides is no part of a call.
        let disturbed = with(split(250), |cell| cell.evidence.device[0].read_bytes = Some(128 * MIB));
        assert_ne!(judged(&disturbed).0, VerdictCode::Throttled);
    }

    /// Each stream of `scale` moved the same number of bytes: the quicker target was idle while the slower one went on.
    #[test]
    fn limits_of_several_targets_are_compared_target_by_target() {
        let targets = [0, 1].map(|index| {
            let mut target =
                rdsk_model::Target { index, name: format!("/dev/sd{index}"), ..fixtures::disk() };
            target.device.as_mut().unwrap().name = format!("sd{index}");
            target
        });
        let both = with(cell("scale", Op::Read, IoPath::Direct, MIB, 90, 9_000_000_000), |cell| {
            (cell.workload.streams, cell.workload.targets) = (2, vec![0, 1]);
            let stream = |index: u32, seconds: u64| rdsk_model::StreamResult {
                index,
                target: index,
                end_ns: seconds * 1_000_000_000,
                bytes: 45 * MIB,
                ops: 45,
                ..rdsk_model::StreamResult::default()
            };
            cell.result.visits[0].streams = vec![stream(0, 9), stream(1, 5)];
            cell.result.bytes_per_s = Some(fixtures::estimate(13.88 * MIB as f64));
            let mut device = cell.evidence.device[0].clone();
            (device.reads, device.read_bytes, device.diskstat) = (Some(45), Some(45 * MIB), None);
            cell.evidence.device = [0, 1]
                .map(|target| DeviceEvidence { target, name: format!("sd{target}"), ..device.clone() })
                .to_vec();
            cell.evidence.limits = [(0, 5), (1, 9)]
                .map(|(target, most)| Limit {
                    target,
                    device: format!("sd{target}"),
                    source: "/cg/read_bps".into(),
                    op: Op::Read,
                    bytes_per_s: Some(most * MIB),
                    ops_per_s: None,
                })
                .to_vec();
        });
        let verdict = crate::verdict(&both, &targets, Some(8));
        let text = &verdict.text;
        assert_eq!(verdict.code, VerdictCode::Throttled, "{text}");
        let expected = "/dev/sd0: 5.00 MiB/s is the limit of 5.00 MiB/s that /cg/read_bps sets for reads; \
                        /dev/sd1: 9.00 MiB/s is the limit of 9.00 MiB/s that /cg/read_bps sets for reads";
        assert_eq!(text, expected);
        let judged = with(both, |cell| cell.verdict = Some(verdict.clone()));
        assert!(!super::super::is_burst(&judged, &targets), "{text}");
    }

    #[test]
    fn a_rate_above_or_below_all_limits_is_what_it_is_without_a_change() {
        let (code, text, is_burst) = judged(&under(&[60 * MIB, 100 * MIB], &[]));
        assert_eq!((code, is_burst), (VerdictCode::Throttled, true), "{text}");
        assert!(text.contains("a burst") && !text.contains("changed"), "{text}");
        let (code, text, is_burst) = judged(&under(&[200 * MIB, 150 * MIB], &[]));
        assert_eq!((code, is_burst), (VerdictCode::Device, false), "{text}");
        // One limit on bytes and one on I/Os is no change.
        let (code, text, _) = judged(&under(&[128 * MIB], &[1000]));
        assert_eq!(code, VerdictCode::Throttled);
        assert!(text.contains("is the limit of 128 MiB/s"), "{text}");
    }
}
