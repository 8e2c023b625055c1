//! The top and the end of a page: what was measured, on what machine, how it ended. It draws no figure of a cell.

use crate::certainty;
use crate::engine;
use crate::page::{Page, Tone, WIDTH};
use crate::replaced::replaced;
use rdsk_analysis::Analysis;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::words::{self, few};
use rdsk_model::{Device, Host, Layer, Record, Status, Target, TargetKind, Visit};
use rdsk_units::{Bytes, Nanos, grouped, printable};
use unicode_width::UnicodeWidthStr as _;

/// Targets that a page describes; a job of fio may have tens of thousands.
pub(crate) const MAX_TARGETS: usize = 16;

/// Targets that a sentence names; of more it names one.
const MAX_LISTED: usize = 8;

/// Title, target, filesystem, device, host.
pub(crate) fn draw(page: &mut Page, record: &Record) {
    let label = record.label.as_ref().map_or(String::new(), |label| format!("  \"{label}\""));
    page.heading(format!("{}  {}{label}", measured_by(record), whole_seconds(&record.started_at)));
    let mut above: Option<&Target> = None;
    for target in record.targets.iter().take(MAX_TARGETS) {
        match measured_elsewhere(record, target) {
            None => draw_target(page, target, above),
            Some(text) => page.sentence(Tone::Plain, "  target      ", text),
        }
        above = Some(target);
    }
    if let Some(text) = more_targets(record) {
        page.sentence(Tone::Plain, "  targets     ", text);
    }
    if let Some(text) = replaced(record) {
        page.sentence(Tone::Plain, "  replaced    ", text);
    }
    if let Some(host) = &record.host {
        page.sentence(Tone::Plain, "  host        ", host_text(host));
    }
    if let Some(engines) = engine::text(record) {
        page.sentence(Tone::Plain, "  engine      ", engines);
    }
}

/// What is said of a target that another program measured; `None` if rdsk did.
pub(crate) fn measured_elsewhere(record: &Record, target: &Target) -> Option<String> {
    let source = record.source.as_ref()?;
    Some(format!("{}: {} tells no more of it", target.name, source.tool))
}

/// How many targets are not described, if any.
pub(crate) fn more_targets(record: &Record) -> Option<String> {
    let more = record.targets.len().saturating_sub(MAX_TARGETS);
    (more > 0).then(|| format!("and {} more, which rdsk show --json has", grouped(more as u64)))
}

/// The names of all targets in a sentence, of many the first and how many others; `None` where there are none.
pub(crate) fn target_list(record: &Record) -> Option<String> {
    let count = record.targets.len();
    let shown = if count > MAX_LISTED { 1 } else { count };
    let names: Vec<String> = record.targets.iter().map(|target| target.name.clone()).collect();
    (!names.is_empty()).then(|| few(&names, shown, "other target"))
}

/// `rdsk 0.1.0`, or `fio-3.33, read by rdsk 0.1.0`.
pub(crate) fn measured_by(record: &Record) -> String {
    let rdsk = format!("rdsk {}", record.rdsk_version);
    match &record.source {
        None => rdsk,
        Some(source) => format!("{}, read by {rdsk}", source.version.as_ref().unwrap_or(&source.tool)),
    }
}

/// `466 GiB (500,107,862,016 bytes)`: what a person reads, and what was meant.
pub(crate) fn size_with_bytes(bytes: u64) -> String {
    format!("{} ({} bytes)", Bytes(bytes).approx(), grouped(bytes))
}

/// `/dev/sdb: a block device of 466 GiB (500,107,862,016 bytes)`.
pub(crate) fn target_text(target: &Target) -> String {
    let size = size_with_bytes(target.size_bytes);
    let what = match (target.kind, target.made_by_rdsk) {
        (TargetKind::File, true) => format!("a new test file of {size}"),
        (TargetKind::File, false) => format!("a file of {size}"),
        (TargetKind::Block, _) => format!("a block device of {size}"),
        (TargetKind::Sim, _) => format!("simulated, {size}"),
    };
    format!("{}: {what}", target.name)
}

/// One target; its filesystem and device only where they differ from those of the target above.
fn draw_target(page: &mut Page, target: &Target, above: Option<&Target>) {
    page.sentence(Tone::Plain, "  target      ", target_text(target));
    let is_same = |above: &Target| {
        (&above.filesystem, &above.device, &above.stack)
            == (&target.filesystem, &target.device, &target.stack)
    };
    if target.device.is_some() && above.is_some_and(is_same) {
        return;
    }
    if let Some(filesystem) = &target.filesystem {
        let on = stack_text(target).map_or_else(String::new, |stack| format!(" on {stack}"));
        page.line(with_options(format!("  filesystem  {}{on}", filesystem.kind), &filesystem.options));
    }
    match &target.device {
        Some(device) => {
            page.sentence(Tone::Plain, "  device      ", device_text(device));
            if let Some(stack) = stack_text(target).filter(|_| target.kind == TargetKind::Block)
                && !device.below.is_empty()
            {
                page.sentence(Tone::Plain, "  stack       ", stack);
            }
        }
        None if target.kind == TargetKind::Sim => {}
        None => page.sentence(Tone::Plain, "  device      ", "none known to the kernel"),
    }
}

/// `dm-0 → md0 → sda1 + sdb1 → sda + sdb`: one level after the other, the members of an array side by side. Records of older
/// versions have no levels; theirs is the plain list.
pub(crate) fn stack_text(target: &Target) -> Option<String> {
    let Some(device) = target.device.as_ref().filter(|device| !device.below.is_empty()) else {
        return (!target.stack.is_empty()).then(|| target.stack.join(" → "));
    };
    let mut levels = vec![device.name.clone()];
    let mut layers: Vec<&Layer> = device.below.iter().collect();
    while !layers.is_empty() {
        levels.push(distinct(layers.iter().map(|layer| layer.name.as_str())).join(" + "));
        layers = layers.iter().flat_map(|layer| &layer.below).collect();
    }
    Some(levels.join(" → "))
}

/// The line with the mount options behind it, each once, when they fit; otherwise as many as fit and `…`.
fn with_options(line: String, options: &str) -> String {
    let mut shown = distinct(options.split(',').filter(|option| !option.is_empty()));
    let fits = |shown: &str| printable(&line).width() + printable(shown).width() + 3 <= WIDTH;
    let joined = shown.join(",");
    if joined.is_empty() {
        return line;
    }
    if fits(&joined) {
        return format!("{line} ({joined})");
    }
    while shown.pop().is_some() {
        let some = shown.iter().map(|option| format!("{option},")).collect::<String>() + "…";
        if !shown.is_empty() && fits(&some) {
            return format!("{line} ({some})");
        }
    }
    line
}

/// `2026-01-02T03:04:05Z` without the fraction of a second that the document has.
pub(crate) fn whole_seconds(started_at: &str) -> String {
    match started_at.split_once('.') {
        Some((seconds, fraction)) => {
            format!("{seconds}{}", fraction.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => started_at.into(),
    }
}

pub(crate) fn device_text(device: &Device) -> String {
    let blocks = match (device.logical_block_bytes, device.physical_block_bytes) {
        (Some(logical), Some(physical)) => Some(format!("blocks {logical}/{physical} B")),
        _ => None,
    };
    let facts = [
        device.mapped_name.clone(),
        device.kind.clone().filter(|kind| kind != "disk" && kind != "loop"),
        device.model.clone(),
        device.size_bytes.map(|size| Bytes(size).approx()),
        device.rotational.map(|rotational| if rotational { "rotational" } else { "not rotational" }.into()),
        blocks,
        device.zoned.clone().filter(|zoned| zoned != "none"),
        write_cache(device),
        device.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")),
        device.backing_file.as_ref().map(|file| format!("backed by {file}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    format!("{}: {}", device.name, facts.join(", "))
}

/// The state of the device's write cache in words: `write back cache without FUA`.
pub(crate) fn write_cache(device: &Device) -> Option<String> {
    let cache = device.write_cache.as_ref()?;
    let fua = match device.fua {
        Some(true) => " with FUA",
        Some(false) => " without FUA",
        None => "",
    };
    Some(format!("{cache} cache{fua}"))
}

pub(crate) fn host_text(host: &Host) -> String {
    let memory = host.memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes).approx()));
    let clock = &host.clock;
    let simulated = clock.source == "virtual";
    let facts = [
        Some(if simulated { host.kernel.clone() } else { format!("Linux {}", host.kernel) }),
        host.cpu_model.clone(),
        (!simulated).then(|| format!("{} processors", host.cpu_count)),
        memory,
        host.virtualization.clone(),
        Some(format!("clock {} in steps of {}", clock.source, Nanos(clock.resolution_ns))),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How the run ended, when it did not end well, and every I/O that failed.
pub(crate) fn draw_status(page: &mut Page, record: &Record) {
    page.blank();
    match record.status {
        Status::Complete => {}
        Status::Interrupted => {
            page.sentence(Tone::Warning, "", "Interrupted: the results below are partial.");
        }
        Status::Failed => {
            page.sentence(Tone::Error, "", "Failed: the results below are partial or missing.");
        }
    }
    if let Some(error) = &record.error {
        page.sentence(Tone::Error, "  error: ", &error.message);
        if let Some(hint) = &error.hint {
            page.sentence(Tone::Plain, "  hint:  ", hint);
        }
    }
    for cell in &record.cells {
        for error in &cell.result.errors {
            let offset = error.offset_bytes;
            page.sentence(
                Tone::Error,
                format!("  {}: ", words::test(cell)),
                format!("{} at byte {offset}", error.message),
            );
        }
    }
    if record.cells.is_empty() {
        page.line("  Nothing was measured.");
    }
}

/// What the comparisons rest on, said once for all pages.
const COMPARED: &str = "Ratios compare tests repeat by repeat, and what is said to differ does so at 5% after correction for \
                        all comparisons of its page (Holm).";

/// Notes, comparisons, time, evidence.
pub(crate) fn draw_end(page: &mut Page, analysis: &Analysis<'_>) {
    let record: &Record = analysis;
    if !record.notes.is_empty() {
        page.heading("NOTES");
        for note in &record.notes {
            page.sentence(Tone::Plain, "  - ", note);
        }
    }
    page.blank();
    if analysis
        .families()
        .iter()
        .any(|family| family.comparisons.iter().any(|comparison| comparison.ratio.is_ok()))
    {
        page.sentence(Tone::Plain, "", COMPARED);
    }
    certainty::draw_end(page, record);
    page.sentence(Tone::Plain, "", end_text(record));
}

/// Whether the Record says when the run ended: that of a killed run, and of one that goes on, was saved before.
fn has_end(record: &Record) -> bool {
    record.elapsed_ns > 0
}

/// `took 61.2 s` or `simulated 60.0 s`; of a run that was cut off, when it began and which cell was measured last, as far as it was
/// saved in the history (`rdsk_store`, whose words for the state of a run are those of its error).
pub(crate) fn took(record: &Record) -> String {
    if has_end(record) {
        return match record.simulated_ns {
            Some(simulated_ns) => format!("simulated {}", Nanos(simulated_ns)),
            None => format!("took {}", Nanos(record.elapsed_ns)),
        };
    }
    let visits =
        record.cells.iter().flat_map(|cell| cell.result.visits.iter().map(move |visit| (cell, visit)));
    let ended_ns = |visit: &Visit| visit.start_ns.saturating_add(visit.elapsed_ns);
    let last = visits.filter(|(_, visit)| visit.sitting == 0).max_by_key(|(_, visit)| ended_ns(visit));
    let last = last.map_or_else(String::new, |(cell, visit)| {
        format!(", last saved {} later, in {}", Nanos(ended_ns(visit)), words::test(cell))
    });
    let is_running = record.error.as_ref().is_some_and(|error| error.code == "running");
    let how = match record.status {
        Status::Complete => "not known how long it took",
        Status::Failed if record.cells.is_empty() => "nothing measured",
        Status::Interrupted if is_running => "goes on",
        Status::Interrupted | Status::Failed => "cut off",
    };
    format!("{how}: began {}{last}", whole_seconds(&record.started_at))
}

/// `Took 61.2 s. Evidence: sysfs (no CAP_BPF). Record 01J….`
pub(crate) fn end_text(record: &Record) -> String {
    let observer = &record.observer;
    let higher = observer.why_not_higher.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    let took = took(record);
    let took = match (record.simulated_ns, has_end(record)) {
        (Some(_), true) => format!("{took} in {}", Nanos(record.elapsed_ns)),
        _ => took,
    };
    let (first, rest) = took.split_at(1);
    let took = format!("{}{rest}", first.to_uppercase());
    let source = observer.source;
    format!("{took}. Evidence: {source}{higher}. Record {}.", record.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_model::{Problem, ProblemKind};

    #[test]
    fn mount_options_stand_once_and_on_one_line() {
        let line = || String::from("  filesystem  ext4 on vda");
        assert_eq!(
            with_options(line(), "rw,relatime,rw,discard"),
            "  filesystem  ext4 on vda (rw,relatime,discard)"
        );
        assert_eq!(with_options(line(), ""), line());
        let cut = with_options(line(), &format!("rw,relatime,rw,{},last", "x".repeat(60)));
        assert_eq!(cut, "  filesystem  ext4 on vda (rw,relatime,…)");
        assert_eq!(with_options(line(), &"x".repeat(90)), line());
    }

    #[test]
    fn a_stack_has_its_members_side_by_side() {
        let layer = |name: &str, below: Vec<Layer>| Layer { name: name.into(), below, ..Layer::default() };
        let partition = |name: &str, disk: &str| layer(name, vec![layer(disk, Vec::new())]);
        let members = vec![partition("sda1", "sda"), partition("sda2", "sda"), partition("sdb1", "sdb")];
        let mut target = rdsk_finding::fixtures::disk();
        target.stack = ["dm-0", "md0", "sda1"].map(String::from).to_vec();
        assert_eq!(stack_text(&target).as_deref(), Some("dm-0 → md0 → sda1"), "an older Record");
        let device = target.device.as_mut().expect("the fixture has a device");
        device.name = "dm-0".into();
        device.below = vec![layer("md0", members)];
        assert_eq!(stack_text(&target).as_deref(), Some("dm-0 → md0 → sda1 + sda2 + sdb1 → sda + sdb"));
        target.device = None;
        target.stack.clear();
        assert_eq!(stack_text(&target), None);
    }

    #[test]
    fn a_run_without_an_end_says_what_is_known() {
        let mut record = rdsk_finding::fixtures::run();
        record.started_at = "2026-11-20T23:53:44.311282485Z".into();
        record.elapsed_ns = 61_000_000_000;
        assert!(end_text(&record).starts_with("Took 61.0 s. Evidence"), "{}", end_text(&record));
        record.elapsed_ns = 0;
        record.status = Status::Interrupted;
        for (index, cell) in record.cells.iter_mut().enumerate() {
            let visit = |start_ns| Visit { start_ns, elapsed_ns: 2_000_000_000, ..Visit::default() };
            cell.result.visits = vec![visit(if index == 1 { 10_000_000_000 } else { 1_000_000_000 })];
        }
        let last =
            "cut off: began 2026-11-20T23:53:44Z, last saved 12.0 s later, in sequential 1M writes at QD1";
        assert_eq!(took(&record), last);
        assert!(end_text(&record).starts_with("Cut off: began 2026-11-20T23:53:44Z, last saved"));
        record.error = Some(Problem::plain(ProblemKind::Interrupted, "running", "the run goes on"));
        assert!(
            took(&record).starts_with("goes on: began 2026-11-20T23:53:44Z, last saved"),
            "{}",
            took(&record)
        );
        record.error = None;
        record.simulated_ns = Some(0);
        record.cells.clear();
        assert_eq!(took(&record), "cut off: began 2026-11-20T23:53:44Z");
        assert!(end_text(&record).starts_with("Cut off: began 2026-11-20T23:53:44Z. Evidence"));
        (record.simulated_ns, record.elapsed_ns) = (Some(60_000_000_000), 1_500_000_000);
        assert!(
            end_text(&record).starts_with("Simulated 60.0 s in 1.50 s. Evidence"),
            "{}",
            end_text(&record)
        );
    }

    #[test]
    fn seconds_are_enough_for_a_title() {
        assert_eq!(whole_seconds("2026-11-20T23:53:44.311282485Z"), "2026-11-20T23:53:44Z");
        assert_eq!(whole_seconds("2026-11-20T23:53:44Z"), "2026-11-20T23:53:44Z");
        assert_eq!(whole_seconds("2026-11-20T23:53:44.5+01:00"), "2026-11-20T23:53:44+01:00");
    }
}
