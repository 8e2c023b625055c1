//! What the I/O of a command became: how it ended, and for each device what it moved, its bios and requests.

use crate::block_io::draw_activity;
use crate::page::{Page, Tone};
use crate::questions::dd::verdict_line;
use crate::style::Style;
use rdsk_analysis::words::{bytes, plural};
use rdsk_model::{CommandRun, CommandVerdict, DiskStat, Origin, Uncounted, WatchedDevice};
use rdsk_units::{Nanos, grouped, printable};

/// The whole answer, below the command's own output.
pub fn command_io(run: &CommandRun, style: Style) -> String {
    let mut page = Page::default();
    page.sentence(Tone::Heading, "", run.words.join(" "));
    page.sentence(Tone::Plain, "  ", how_it_ended(run));
    let devices = run.whole.devices.iter().filter(|device| may_have_moved(device));
    let (others, shown): (Vec<&WatchedDevice>, Vec<&WatchedDevice>) =
        devices.partition(|device| is_of_others(device));
    for device in &shown {
        page.blank();
        draw_device(&mut page, device, run);
    }
    page.blank();
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|device| device.name.as_str()).collect();
        page.sentence(Tone::Plain, "", format!("Only other processes used {}.", names.join(", ")));
    }
    if shown.is_empty() {
        let text = "No watched device did anything for the command while it was watched: what it read came from memory or from \
                    elsewhere, and what it wrote stayed there. Processes that it left running were not waited for.";
        page.sentence(Tone::Plain, "", text);
    }
    draw_answer(&mut page, run);
    if run.unfollowed > 0 {
        let text = format!(
            "{} of the command could not be followed; what they did counts as that of other processes.",
            plural(run.unfollowed, "process")
        );
        page.sentence(Tone::Warning, "", text);
    }
    if let Some(left) = run.dirty_left_bytes {
        let text = format!(
            "At the end of watching, {} more than before waited in dirty pages of this machine.",
            bytes(left)
        );
        page.sentence(Tone::Plain, "", text);
    }
    if let Some(why) = &run.why_no_bpf {
        let text = format!("Which calls made which requests is not known: {why}.");
        page.sentence(Tone::Warning, "", text);
    }
    page.render(style)
}

/// What the I/O measured, and when it was on disk.
fn draw_answer(page: &mut Page, run: &CommandRun) {
    for CommandVerdict { op, verdict } in &run.verdicts {
        page.sentence(Tone::Plain, "", format!("The {op}s: {}", verdict_line(verdict)));
    }
    let Some(flush) = &run.flush else { return };
    let places =
        rdsk_analysis::words::list(&flush.places.iter().map(|name| printable(name)).collect::<Vec<_>>());
    let text = match (&flush.error, flush.took_ns) {
        (Some(error), _) => return page.sentence(Tone::Warning, "", format!("Data was lost: {error}.")),
        (None, Some(ns)) => format!("On disk {} after the command's end (flushed: {places}).", Nanos(ns)),
        (None, None) => format!("The flush of {places} was cut short: the kernel writes the rest later."),
    };
    page.sentence(Tone::Plain, "", text);
}

/// Whether a device did something, or may have.
fn may_have_moved(device: &WatchedDevice) -> bool {
    let has_block_io = device.block.as_ref().map(|block| !block.is_idle());
    match &device.growth {
        Ok(growth) => !growth.is_idle() || has_block_io == Some(true),
        Err(Uncounted::Unknown(_)) => has_block_io != Some(false),
        Err(_) => true,
    }
}

/// Whether a device did nothing for the command, as far as calls show it; what kernel threads write may be any program's.
fn is_of_others(device: &WatchedDevice) -> bool {
    let Some(block) = &device.block else { return false };
    let mut carried = block.bios.iter().filter(|bio| bio.bytes > 0).peekable();
    let is_there = matches!(device.growth, Ok(_) | Err(Uncounted::Unknown(_)));
    is_there && carried.peek().is_some() && carried.all(|bio| bio.origin() == Origin::Other)
}

fn how_it_ended(run: &CommandRun) -> String {
    let mut text = format!("{} after {}", run.end, Nanos(run.elapsed_ns));
    if let Some(calls) = &run.calls {
        for (count, moved, verb) in
            [(calls.reads, calls.read_bytes, "read"), (calls.writes, calls.written_bytes, "wrote")]
        {
            if count > 0 {
                text.push_str(&format!("; {} {verb} {} B", plural(count, "call"), grouped(moved)));
            }
        }
    }
    text
}

fn draw_device(page: &mut Page, device: &WatchedDevice, run: &CommandRun) {
    match &device.growth {
        Ok(growth) => {
            page.sentence(Tone::Heading, format!("{}: ", device.name), moved(growth));
            if device.block.is_none() {
                page.sentence(Tone::Plain, "  requests: ", sysfs_requests(growth));
            }
        }
        Err(why) => page.sentence(Tone::Warning, format!("{}: ", device.name), why.to_string()),
    }
    if let Some(block) = &device.block {
        draw_activity(page, block, run.calls.as_ref());
    }
    if let (Ok(_), Some(why)) = (&device.growth, &device.why_no_block) {
        page.sentence(Tone::Plain, "  ", format!("Who used it is not known: {why}."));
    }
    if let Some(text) = after_the_end(device, run) {
        page.sentence(Tone::Plain, "  ", text);
    }
}

/// `1 MiB read, 1 MiB written, 424 ms busy`.
fn moved(growth: &DiskStat) -> String {
    let mut total = bytes_moved(growth);
    // Less than a tick of the kernel's clock counts as nothing.
    if growth.io_ticks_ms > 0 {
        total.push_str(&format!(", {} busy", Nanos(growth.io_ticks_ms.saturating_mul(1_000_000))));
    }
    total
}

fn bytes_moved(growth: &DiskStat) -> String {
    let mut text = format!("{} read, {} written", bytes(growth.read_bytes()), bytes(growth.write_bytes()));
    if growth.discard_ios.is_some_and(|count| count > 0) {
        text.push_str(&format!(", {} discarded", bytes(growth.discard_bytes())));
    }
    text
}

/// What a device did after the command had ended; `None` if nothing.
fn after_the_end(device: &WatchedDevice, run: &CommandRun) -> Option<String> {
    let after = run.after.devices.iter().find(|after| after.name == device.name)?;
    let growth = after.growth.as_ref().ok().filter(|growth| !growth.is_idle())?;
    Some(format!("Of this, after the command had ended: {}.", bytes_moved(growth)))
}

fn sysfs_requests(growth: &DiskStat) -> String {
    let (reads, writes) = (plural(growth.read_ios, "read"), plural(growth.write_ios, "write"));
    let counts = match growth.discard_ios {
        None | Some(0) => format!("{reads} and {writes}"),
        Some(count) => format!("{reads}, {writes} and {}", plural(count, "discard")),
    };
    let merges = [growth.read_merges, growth.write_merges, growth.discard_merges.unwrap_or(0)];
    let merged = grouped(merges.into_iter().fold(0, u64::saturating_add));
    let flushes = growth.flush_ios.map_or_else(String::new, |count| format!(", {}", plural(count, "flush")));
    format!("{counts} completed, {merged} merged{flushes}")
}

#[cfg(test)]
mod tests;
