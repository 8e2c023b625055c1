//! The top and the end of a page: what was measured, on what machine, how it ended. It draws no figure of a cell.

use crate::page::{Page, Tone};
use rdsk_model::{Device, Host, Record, Status, Target, TargetKind};
use rdsk_units::{Bytes, Nanos};

/// Title, target, filesystem, device, host.
pub(crate) fn draw(page: &mut Page, record: &Record) {
    let label = record.label.as_ref().map_or(String::new(), |label| format!("  \"{label}\""));
    page.heading(format!("rdsk {}  {}{label}", record.rdsk_version, record.started_at));
    for target in &record.targets {
        draw_target(page, target);
    }
    if let Some(host) = &record.host {
        page.sentence(Tone::Plain, "  host        ", host_text(host));
    }
}

fn draw_target(page: &mut Page, target: &Target) {
    let size = Bytes(target.size_bytes).approx();
    let what = match (target.kind, target.made_by_rdsk) {
        (TargetKind::File, true) => format!("a test file of {size}, made for this run"),
        (TargetKind::File, false) => format!("a file of {size}"),
        (TargetKind::Block, _) => format!("a block device of {size}"),
        (TargetKind::Sim, _) => format!("simulated, {size}"),
    };
    page.sentence(Tone::Plain, "  target      ", format!("{}: {what}", target.name));
    if let Some(filesystem) = &target.filesystem {
        let on = if target.stack.is_empty() {
            String::new()
        } else {
            format!(" on {}", target.stack.join(" → "))
        };
        page.sentence(
            Tone::Plain,
            "  filesystem  ",
            format!("{}{on} ({})", filesystem.kind, filesystem.options),
        );
    }
    match &target.device {
        Some(device) => page.sentence(Tone::Plain, "  device      ", device_text(device)),
        None if target.kind == TargetKind::Sim => {}
        None => page.sentence(Tone::Plain, "  device      ", "none that the kernel shows"),
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
        device.rotational.map(|rotational| if rotational { "rotating" } else { "not rotating" }.into()),
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
    let facts = [
        Some(format!("Linux {}", host.kernel)),
        host.cpu_model.clone(),
        Some(format!("{} processors", host.cpu_count)),
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
