//! What the I/O of a command became: for each device the calls, their bios and the requests, and sentences that say why. Each
//! sentence rests on counts that stand above it.

use super::plain::sizes_text;
use crate::figures::Unit;
use crate::page::{Page, Tone};
use crate::style::Style;
use rdsk_analysis::command::{
    Origin, Whose, origins, read_ahead, reads_in_writes, requests, sizes, write_bytes_each,
    writes_in_flushes, writes_in_writes,
};
use rdsk_analysis::metrics;
use rdsk_model::{BlockGrowth, CommandRun, DiskStat, Op, ProcessCalls, Uncounted, WatchedDevice};
use rdsk_units::{Bytes, Nanos, grouped};

/// Exact sizes that are named.
const MAX_SIZES: usize = 6;
/// Origins of bios that are named, for each device.
const MAX_ORIGINS: usize = 12;
/// No Linux has smaller pages; what those of this machine are is not known here, and is not said.
const SMALLEST_PAGE_BYTES: u64 = metrics::PAGE_BYTES;
/// Fewer reads for each write are the filesystem's own.
const READS_PER_WRITE: f64 = 0.05;
/// A mean so near to a power of two is said to be about that: the command's messages are writes, too.
const NEAR: f64 = 0.02;

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
    if run.unfollowed > 0 {
        let text = format!(
            "{} of the command could not be followed; what they did counts as that of other processes.",
            plural(run.unfollowed, "process")
        );
        page.sentence(Tone::Warning, "", text);
    }
    if let Some(bytes) = run.dirty_left_bytes {
        let text = format!(
            "At the end of watching, {} more than before waited in dirty pages of this machine.",
            size_of(bytes)
        );
        page.sentence(Tone::Plain, "", text);
    }
    if let Some(why) = &run.why_no_bpf {
        let text = format!("Which calls made which requests is not known: {why}.");
        page.sentence(Tone::Warning, "", text);
    }
    page.render(style)
}

/// Whether a device did something, or may have.
fn may_have_moved(device: &WatchedDevice) -> bool {
    let seen = device.block.as_ref().map(|block| !block.is_idle());
    match &device.growth {
        Ok(growth) => !growth.is_idle() || seen == Some(true),
        Err(Uncounted::Unknown(_)) => seen != Some(false),
        Err(_) => true,
    }
}

/// Whether a device did nothing for the command, as far as calls show it; what kernel threads write may be anybody's.
fn is_of_others(device: &WatchedDevice) -> bool {
    let Some(block) = &device.block else { return false };
    let origins = origins(block);
    let is_there = matches!(device.growth, Ok(_) | Err(Uncounted::Unknown(_)));
    is_there && !origins.is_empty() && origins.iter().all(|origin| origin.whose == Whose::Other)
}

fn how_it_ended(run: &CommandRun) -> String {
    let mut text = format!("{} after {}", run.end, Nanos(run.elapsed_ns));
    if let Some(calls) = &run.calls {
        for (count, bytes, verb) in
            [(calls.reads, calls.read_bytes, "read"), (calls.writes, calls.written_bytes, "wrote")]
        {
            if count > 0 {
                text.push_str(&format!("; {} {verb} {} B", plural(count, "call"), grouped(bytes)));
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
                page.sentence(Tone::Plain, "  requests  ", sysfs_requests(growth));
            }
        }
        Err(why) => page.sentence(Tone::Warning, format!("{}: ", device.name), why.to_string()),
    }
    if let Some(block) = &device.block {
        draw_block(page, block, run);
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
    let mut text =
        format!("{} read, {} written", size_of(growth.read_bytes()), size_of(growth.write_bytes()));
    if growth.discard_ios.is_some_and(|count| count > 0) {
        text.push_str(&format!(", {} discarded", size_of(growth.discard_bytes())));
    }
    text
}

/// The tree: calls, their bios, the requests.
fn draw_block(page: &mut Page, block: &BlockGrowth, run: &CommandRun) {
    let origins = origins(block);
    for origin in origins.iter().take(MAX_ORIGINS) {
        page.sentence(Tone::Plain, lead(&source(origin)), bios_text(block, origin));
    }
    if origins.len() > MAX_ORIGINS {
        page.line(format!("  and {} further origins", origins.len() - MAX_ORIGINS));
    }
    page.sentence(Tone::Plain, lead("requests"), sizes_text(block, MAX_SIZES));
    let mut text = format!(
        "{}, {}, {}",
        plural(block.merges, "merge"),
        plural(block.splits, "split"),
        plural(block.flushes, "flush")
    );
    if block.discards > 0 {
        text.push_str(&format!(", {}", plural(block.discards, "discard")));
    }
    if block.write_zeroes > 0 {
        text.push_str(&format!(", {}", plural(block.write_zeroes, "write-zeroes request")));
    }
    if let Some(median) = block.latency.quantile_unchecked(0.5) {
        text.push_str(&format!("; {} in the device (median)", Nanos(median)));
    }
    if let Some(deepest) = block.deepest.filter(|&deepest| deepest > 0) {
        text.push_str(&format!("; at most {deepest} in flight"));
    }
    page.sentence(Tone::Plain, lead(""), text);
    for sentence in sentences(block, &origins, run) {
        page.sentence(Tone::Plain, "  ", sentence);
    }
}

/// The first column; a blank follows also what is wider.
fn lead(text: &str) -> String {
    format!("  {text:<15} ")
}

fn source(origin: &Origin) -> String {
    match (origin.whose, &origin.call) {
        (Whose::Command, Some(call)) => format!("{call}(2)"),
        (Whose::Command, None) => "no system call".into(),
        (Whose::Kernel, _) => "kernel threads".into(),
        (Whose::Other, _) => "other processes".into(),
    }
}

/// A size is said of each bio only where the requests prove it.
fn bios_text(block: &BlockGrowth, origin: &Origin) -> String {
    let verb = verb(origin.op);
    let mark = if origin.nowait { ", not to wait; repeated where they would have" } else { "" };
    let (bios, bytes) = (plural(origin.count, "bio"), size_of(origin.bytes));
    match each_bytes(block, origin) {
        _ if origin.count == 1 => format!("{bios} {verb} {bytes}{mark}"),
        Some(each) => format!("{bios} {verb} {} each{mark}", size_of(each)),
        None => {
            let mean = size_of(origin.bytes / origin.count.max(1));
            format!("{bios} {verb} {bytes}, {mean} on average{mark}")
        }
    }
}

fn verb(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "wrote",
    }
}

/// What explains the counts; each sentence only where its counts are there.
fn sentences(block: &BlockGrowth, origins: &[Origin], run: &CommandRun) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(reads_in_writes(origins).into_iter().map(|origin| read_first(origin, run)));
    let [ahead, ahead_bytes] = read_ahead(block);
    if ahead > 0 {
        said.push(format!(
            "{} came from the kernel's read-ahead, {}.",
            plural(ahead, "bio"),
            size_of(ahead_bytes)
        ));
    }
    for origin in writes_in_flushes(origins) {
        let call = call_of(origin);
        said.push(format!("The data left at {call}{}.", in_requests(block, Op::Write, origin)));
    }
    for origin in writes_in_writes(origins) {
        let call = call_of(origin);
        let text = format!(
            "The data left inside {call}{}: past the page cache, or durable before the call returned.",
            in_requests(block, Op::Write, origin)
        );
        said.push(text);
    }
    if origins.iter().any(|origin| (origin.whose, origin.op) == (Whose::Kernel, Op::Write)) {
        said.push("Kernel threads wrote, too: written back from memory, whoever left it there.".into());
    }
    for (op, which) in [(Op::Read, "read"), (Op::Write, "wrote")] {
        let bios: u64 = origins.iter().filter(|origin| origin.op == op).map(|origin| origin.count).sum();
        let given = requests(block, op);
        if block.merges > 0 && block.lost == 0 && bios > given {
            let bios = plural(bios, "bio");
            said.push(format!(
                "Neighbours were merged: {bios} that {which} became {}.",
                plural(given, "request")
            ));
        }
    }
    if block.splits > 0 {
        let text =
            format!("{} cut bios that were larger than a request may be.", plural(block.splits, "split"));
        said.push(text);
    }
    if origins.iter().any(|origin| origin.whose == Whose::Other) {
        said.push(
            "Other processes used the device meanwhile; the requests and times hold theirs, too.".into(),
        );
    }
    if block.lost > 0 {
        said.push(format!("The programs missed {}: the counts are too low.", plural(block.lost, "event")));
    }
    said
}

/// The size of each bio, where as many requests of one size prove it: none was merged with another or cut.
fn each_bytes(block: &BlockGrowth, origin: &Origin) -> Option<u64> {
    let of_op = block.bios.iter().filter(|bio| bio.op == origin.op && bio.bytes > 0);
    let bios: u64 = of_op.map(|bio| bio.count).sum();
    match sizes(block, origin.op)[..] {
        [(bytes, count)] if count == bios && block.splits == 0 && block.lost == 0 => Some(bytes),
        _ => None,
    }
}

/// Why a write made the kernel read. A filesystem reads blocks of its own inside a write, too: bitmaps, tables, sectors of a FAT.
/// That it read the rest of pages is said only where nearly nothing else explains the counts.
fn read_first(origin: &Origin, run: &CommandRun) -> String {
    let reads = format!("{} inside {}", plural(origin.count, "read"), call_of(origin));
    match run.calls.as_ref().and_then(|calls| part_of_page(origin, calls)) {
        Some(each) => format!(
            "Each write of about {} fills a part of a page, so the kernel read the page first: {reads}.",
            about(each)
        ),
        None => format!(
            "{reads}: the kernel needed {} for these writes, for pages that change only in part or for the filesystem's own blocks.",
            if origin.count == 1 { "it" } else { "them" }
        ),
    }
}

/// The mean size of the command's writes, where it is below a page, each read is of a page at least, and there are as many reads as
/// such writes make.
fn part_of_page(origin: &Origin, calls: &ProcessCalls) -> Option<f64> {
    let each = write_bytes_each(calls).filter(|&each| each < SMALLEST_PAGE_BYTES as f64)?;
    let are_pages = origin.bytes >= origin.count.saturating_mul(SMALLEST_PAGE_BYTES);
    let are_many = origin.count as f64 >= READS_PER_WRITE * calls.writes as f64;
    (are_pages && are_many).then_some(each)
}

/// `, 2 requests of 512 KiB`, if all requests of that direction are this origin's.
fn in_requests(block: &BlockGrowth, op: Op, origin: &Origin) -> String {
    let sizes = sizes(block, op);
    let bytes: u64 = sizes.iter().map(|(bytes, count)| bytes.saturating_mul(*count)).sum();
    match sizes[..] {
        _ if bytes != origin.bytes => String::new(),
        [(each, count)] => format!(", {} of {}", plural(count, "request"), size_of(each)),
        _ => format!(", {}", plural(sizes.iter().map(|(_, count)| count).sum(), "request")),
    }
}

fn call_of(origin: &Origin) -> String {
    origin.call.as_deref().map_or_else(|| "no call".to_owned(), |call| format!("{call}(2)"))
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

/// `1 read`, `256 reads`, `2 flushes`.
fn plural(count: u64, word: &str) -> String {
    let ending = match (count, word.ends_with("sh") || word.ends_with("ss")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {word}{ending}", grouped(count))
}

/// `512 KiB`, `1.25 MiB`; with three digits where no unit divides it: `4.88 KiB`.
fn size_of(bytes: u64) -> String {
    let exact = Bytes(bytes).to_string();
    if bytes < 1024 || !exact.ends_with(" B") {
        return exact;
    }
    let unit = Unit::fit(&Unit::SIZES, [bytes as f64]);
    format!("{} {}", unit.figure(bytes as f64), unit.name)
}

/// A mean size, as the power of two that it is nearly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean size is not negative, and far below 2^53"
)]
fn about(mean: f64) -> String {
    let power = 2.0_f64.powi(mean.max(1.0).log2().round() as i32);
    let near = if (mean / power - 1.0).abs() <= NEAR { power } else { mean.round() };
    size_of(near as u64)
}

#[cfg(test)]
mod tests;
