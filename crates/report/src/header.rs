//! The top and the end of a page: what was measured, on what machine, how it ended. It draws no figure of a cell.

use crate::engine;
use crate::page::{Page, Tone};
use rdsk_model::{Device, Host, Record, Status, Target, TargetKind};
use rdsk_units::{Bytes, Nanos, grouped, printable};
use unicode_width::UnicodeWidthStr as _;

/// Columns that a line of the page has.
const PAGE_WIDTH: usize = 80;

/// Title, target, filesystem, device, host.
pub(crate) fn draw(page: &mut Page, record: &Record) {
    let label = record.label.as_ref().map_or(String::new(), |label| format!("  \"{label}\""));
    page.heading(format!("rdsk {}  {}{label}", record.rdsk_version, whole_seconds(&record.started_at)));
    let mut above: Option<&Target> = None;
    for target in &record.targets {
        draw_target(page, target, above);
        above = Some(target);
    }
    if let Some(host) = &record.host {
        page.sentence(Tone::Plain, "  host        ", host_text(host));
    }
    if let Some(engines) = engine::text(record) {
        page.sentence(Tone::Plain, "  engine      ", engines);
    }
}

/// `466 GiB (500,107,862,016 bytes)`: what a person reads, and what was meant.
pub(crate) fn size_with_bytes(bytes: u64) -> String {
    format!("{} ({} bytes)", Bytes(bytes).approx(), grouped(bytes))
}

/// One target; its filesystem and device only where they differ from those of the target above.
fn draw_target(page: &mut Page, target: &Target, above: Option<&Target>) {
    let size = size_with_bytes(target.size_bytes);
    let what = match (target.kind, target.made_by_rdsk) {
        (TargetKind::File, true) => format!("a test file of {size}, made for this run"),
        (TargetKind::File, false) => format!("a file of {size}"),
        (TargetKind::Block, _) => format!("a block device of {size}"),
        (TargetKind::Sim, _) => format!("simulated, {size}"),
    };
    page.sentence(Tone::Plain, "  target      ", format!("{}: {what}", target.name));
    let is_same = |above: &Target| {
        (&above.filesystem, &above.device, &above.stack)
            == (&target.filesystem, &target.device, &target.stack)
    };
    if target.device.is_some() && above.is_some_and(is_same) {
        return;
    }
    if let Some(filesystem) = &target.filesystem {
        let on = if target.stack.is_empty() {
            String::new()
        } else {
            format!(" on {}", target.stack.join(" → "))
        };
        page.line(with_options(format!("  filesystem  {}{on}", filesystem.kind), &filesystem.options));
    }
    match &target.device {
        Some(device) => page.sentence(Tone::Plain, "  device      ", device_text(device)),
        None if target.kind == TargetKind::Sim => {}
        None => page.sentence(Tone::Plain, "  device      ", "none that the kernel shows"),
    }
}

/// The line with the mount options behind it, each once, when they fit; otherwise as many as fit and `…`.
fn with_options(line: String, options: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        if !shown.contains(&option) {
            shown.push(option);
        }
    }
    let fits = |shown: &str| printable(&line).width() + printable(shown).width() + 3 <= PAGE_WIDTH;
    let all = shown.join(",");
    if all.is_empty() {
        return line;
    }
    if fits(&all) {
        return format!("{line} ({all})");
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
fn whole_seconds(started_at: &str) -> String {
    match started_at.split_once('.') {
        Some((seconds, fraction)) => {
            format!("{seconds}{}", fraction.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => started_at.into(),
    }
}

fn device_text(device: &Device) -> String {
    let blocks = match (device.logical_block_bytes, device.physical_block_bytes) {
        (Some(logical), Some(physical)) => Some(format!("blocks {logical}/{physical} B")),
        _ => None,
    };
    let facts = [
        device.model.clone(),
        device.size_bytes.map(|size| Bytes(size).approx()),
        device.rotational.map(|rotational| if rotational { "rotational" } else { "not rotational" }.into()),
        blocks,
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

fn host_text(host: &Host) -> String {
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
            page.sentence(Tone::Warning, "", "Interrupted: what follows was measured until then.");
        }
        Status::Failed => {
            page.sentence(Tone::Error, "", "Failed: what follows was measured until then, or is missing.");
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
                format!("  {}: ", cell.id),
                format!("{} at byte {offset}", error.message),
            );
        }
    }
    if record.cells.is_empty() {
        page.line("  Nothing was measured.");
    }
}

/// Notes, time, evidence.
pub(crate) fn draw_end(page: &mut Page, record: &Record) {
    if !record.notes.is_empty() {
        page.heading("NOTES");
        for note in &record.notes {
            page.sentence(Tone::Plain, "  - ", note);
        }
    }
    page.blank();
    let observer = &record.observer;
    let higher = observer.why_not_higher.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    let took = Nanos(record.elapsed_ns);
    let rung = observer.rung;
    page.sentence(Tone::Plain, "", format!("Took {took}. Evidence: {rung}{higher}. Record {}.", record.id));
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn seconds_are_enough_for_a_title() {
        assert_eq!(whole_seconds("2026-11-20T23:53:44.311282485Z"), "2026-11-20T23:53:44Z");
        assert_eq!(whole_seconds("2026-11-20T23:53:44Z"), "2026-11-20T23:53:44Z");
        assert_eq!(whole_seconds("2026-11-20T23:53:44.5+01:00"), "2026-11-20T23:53:44+01:00");
    }
}
