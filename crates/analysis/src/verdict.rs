//! The verdict of one cell: what its figure really measured, reconciled with the block layer. It is the first of these
//! that the counters prove, because each makes those after it meaningless:
//!
//! 1. `incomplete`: nothing completed, so there is nothing to judge.
//! 2. `hole`: the file's span was never written, so no device could be read.
//! 3. `page-cache`: memory answered, wholly or in part.
//! 4. `unverified`: the counters of the device are missing or do not follow this I/O.
//! 5. `throttled`: the rate is a limit of the control group, or the I/O waited for it before it reached the device; what others did no longer matters to the mean.
//! 6. `hole`, `page-cache`, `unverified` again, of the backing files of loop devices: what their own counters do not show.
//! 7. `hole`, `unverified` again, of devices: the disks below moved less, there is no disk below, or only zeros came back from a device
//!    that need not read them.
//! 8. `disturbed`: the device did work that this run did not request, in bytes or in requests.
//! 9. `source-bound`: the time went into data generation.
//! 10. `cpu-bound`: the processor was busy all the time.
//! 11. `device`: the block layer moved the bytes. What answered behind it, a disk or its cache, no counter shows.
//!
//! A cell that was interrupted or failed is judged by what it completed, and the text says that it was cut short; so it does where the
//! CPU quota of a control group held rdsk back. Only the cell and its targets count.

mod facts;
mod foreign;
mod held_back;
mod limit;
mod loops;
mod mixed;
mod read;
mod write;
mod zeros;

use crate::contention::{Contention, contention};
use crate::{medium, metrics, words};
use facts::Facts;
use rdsk_model::{CellRecord, Op, ReadContent, StopReason, Target, Verdict, VerdictCode};
pub use zeros::MIN_PAGES;

/// One step of the list above: a code and its sentence, or nothing.
type Judgement = Option<(VerdictCode, String)>;

/// Judges a cell on a machine with `cpus` processors; `targets` are those of its Record. A cell of more streams than
/// processors is `cpu-bound` when they are all busy. Without the number each stream is taken to have one of its own.
pub fn verdict(cell: &CellRecord, targets: &[Target], cpus: Option<u32>) -> Verdict {
    one_way(cell, targets, cpus, false)
}

/// The verdicts of the reads and of the writes of a load that does both, each as of a cell of its own; `None` for other cells.
pub fn verdicts_by_direction(
    cell: &CellRecord,
    targets: &[Target],
    cpus: Option<u32>,
) -> Option<[Verdict; 2]> {
    mixed::halves(cell).map(|halves| halves.each_ref().map(|half| one_way(half, targets, cpus, true)))
}

/// Judges a cell in one direction, which is that of its workload, or half of a load.
fn one_way(cell: &CellRecord, targets: &[Target], cpus: Option<u32>, is_half: bool) -> Verdict {
    let Some(facts) = Facts::gather(cell, targets) else {
        if cell.result.jobs.iter().any(|job| job.trims.is_some()) {
            let text =
                "trims move no data, so that no count of bytes shows what the device did with them".into();
            return Verdict { code: VerdictCode::Unverified, device_share: None, text };
        }
        let text = format!("nothing completed: {}", rdsk_units::printable(&cell.result.why));
        return Verdict { code: VerdictCode::Incomplete, device_share: None, text };
    };
    let halves = if is_half { None } else { verdicts_by_direction(cell, targets, cpus) };
    if let Some([reads, writes]) = halves {
        let is_of_device = |verdict: &Verdict| verdict.code == VerdictCode::Device;
        return if is_of_device(&reads) && is_of_device(&writes) {
            Verdict { text: format!("{}; {}", reads.text, writes.text), ..reads }
        } else if mixed::weight(reads.code) >= mixed::weight(writes.code) {
            Verdict { text: format!("reads: {}", reads.text), ..reads }
        } else {
            Verdict { text: format!("writes: {}", writes.text), ..writes }
        };
    }
    let disturbed = || match cell.workload.op {
        // What a server of FUSE asked of the device for us cannot be distinguished from what others did.
        _ if facts.is_simulated() || facts.is_served() => None,
        Op::Read => read::disturbed(&facts),
        Op::Write => write::disturbed(&facts),
    };
    // The requests of the other half are no others.
    let by_requests = || if facts.is_simulated() || is_half { None } else { foreign::judge(&facts) };
    let (code, mut text) = before_loops(&facts)
        .or_else(|| loops::judge(&facts))
        .or_else(|| zeros::judge(&facts))
        .or_else(disturbed)
        .or_else(by_requests)
        .or_else(|| limit::source_bound(&facts))
        .or_else(|| limit::cpu_bound(&facts, cpus))
        .unwrap_or_else(|| (VerdictCode::Device, device_text(&facts)));
    if let Some(waited) =
        contention(cell).filter(Contention::is_quota).and_then(|contention| contention.waited_for_quota)
    {
        let share = rdsk_units::percent(waited);
        text.push_str(&format!(
            "; the CPU quota of its control group held rdsk back for {share} of the time"
        ));
    }
    if matches!(cell.result.stop, StopReason::Interrupted | StopReason::Error) {
        text.push_str(&format!("; cut short: {}", rdsk_units::printable(&cell.result.why)));
    }
    Verdict { code, device_share: facts.share, text }
}

/// Whether [`verdict`] says of a cell that memory or a hole answered below its loop devices.
pub fn is_of_loop_file(cell: &CellRecord, targets: &[Target]) -> bool {
    let facts = Facts::gather(cell, targets).filter(|facts| before_loops(facts).is_none());
    facts.and_then(|facts| loops::judge(&facts)).is_some_and(|(code, _)| metrics::has_verdict(cell, code))
}

/// Whether [`verdict`] calls a cell unverified because all that it read back was zeros.
pub fn read_only_zeros(cell: &CellRecord, targets: &[Target]) -> bool {
    let undecided = |facts: &Facts<'_>| before_loops(facts).or_else(|| loops::judge(facts)).is_none();
    let facts = Facts::gather(cell, targets).filter(undecided);
    facts.is_some_and(|facts| zeros::read_only_zeros(&facts))
}

/// What was looked at of the reads of a cell that [`verdict`] calls the device's, where a device that need not store zeros brought back
/// some.
pub fn read_some_zeros(cell: &CellRecord, targets: &[Target]) -> Option<ReadContent> {
    let is_of_device = metrics::has_verdict(cell, VerdictCode::Device);
    is_of_device.then(|| zeros::some_zeros(&Facts::gather(cell, targets)?))?
}

/// Whether the rate of a cell that [`verdict`] calls throttled is above the limit: a burst that the group lets pass for a while, which
/// shows nothing of the target.
pub fn is_burst(cell: &CellRecord, targets: &[Target]) -> bool {
    is_throttled_so(cell, targets, limit::bursts)
}

/// Whether the rate of a cell that [`verdict`] calls throttled is that of a limit in force: no burst above it, no mean of limits that
/// changed, and no rate below it that may have waited for it.
pub fn is_held(cell: &CellRecord, targets: &[Target]) -> bool {
    is_throttled_so(cell, targets, limit::holds)
}

/// Whether a cell is throttled, and what is asked holds for it, or for one direction of a load.
fn is_throttled_so(cell: &CellRecord, targets: &[Target], holds: fn(&Facts<'_>) -> bool) -> bool {
    let halves = mixed::halves(cell);
    let parts = halves.as_ref().map_or(std::slice::from_ref(cell), |halves| halves);
    metrics::has_verdict(cell, VerdictCode::Throttled)
        && parts.iter().any(|part| Facts::gather(part, targets).is_some_and(|facts| holds(&facts)))
}

/// The steps that decide before the backing files of loop devices are looked at.
fn before_loops(facts: &Facts<'_>) -> Judgement {
    let memory = match facts.cell.workload.op {
        Op::Read => read::memory(facts),
        Op::Write => write::memory(facts),
    };
    memory.or_else(|| limit::throttled(facts)).or_else(|| held_back::judge(facts))
}

fn device_text(facts: &Facts<'_>) -> String {
    let (did, when) = match facts.cell.workload.op {
        Op::Read => ("read", ""),
        Op::Write if facts.cell.result.to_stable_ns.is_some() => ("wrote", " until the data was stable"),
        Op::Write => ("wrote", ""),
    };
    // Copies are no surplus, but they are in the figure.
    let more = match facts.share.map(|share| share * facts.written.least) {
        Some(share) if facts.written.least > 1.0 => {
            let why = facts.why_these().unwrap_or_else(|| "copies".into());
            format!(" ({}, {why})", words::times(share))
        }
        Some(share) if share > 1.1 => match zeros::counted_twice(facts) {
            Some(below) => format!(" ({}; {below})", words::times(share)),
            None => format!(" ({}{})", words::times(share), whose_more(facts, share)),
        },
        Some(share) => format!(" ({})", rdsk_units::percent(share)),
        None => String::new(),
    };
    let more = match facts.why_these().filter(|_| facts.written.least <= 1.0) {
        Some(why) => format!("{more}; {why}"),
        None => more,
    };
    let more = match facts.memory_disk() {
        Some(disk) => format!("{more}; {disk} is memory"),
        None => more,
    };
    let remembers = facts.targets.iter().find_map(|target| medium::remembers(target));
    let more = match remembers.filter(|_| facts.cell.workload.op == Op::Read) {
        Some(who) => format!("{more}; {who}"),
        None => more,
    };
    let more = if zeros::is_content_unknown(facts) {
        format!("{more}; too few places were checked to know whether it stores anything there")
    } else {
        more
    };
    let more = held_back::in_force(facts).map_or(more.clone(), |limit| format!("{more}; {limit}"));
    let (device, bytes) = (&facts.device_names, words::bytes(facts.bytes));
    let Some(moved) = facts.moved.map(words::bytes) else {
        let charged = words::bytes(facts.charged(facts.cell.workload.op).unwrap_or(0));
        let why = facts.no_counters();
        return format!(
            "the block layer moved the bytes: it charged {charged} to rdsk for {bytes} completed; {why}{more}"
        );
    };
    let who = if facts.is_simulated() { "" } else { "the block layer moved the bytes: " };
    format!("{who}{device} {did} {moved} for {bytes} completed{more}{when}")
}

/// What is known of the bytes beyond those that completed.
fn whose_more(facts: &Facts<'_>, share: f64) -> &'static str {
    match facts.process_share {
        _ if facts.is_simulated() => "",
        Some(charged) if charged >= 0.9 * share => ", all of it charged to rdsk",
        _ if facts.is_file() && facts.cell.workload.op == Op::Write => {
            ", including the filesystem's own writes"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
