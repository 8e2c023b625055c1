//! The lower half of the screen: one device with its exact sizes, its queue, and its latencies over time. Lines of text, the
//! most important first.

use super::state::{BAND_ENDS, BANDS, History, Moment, State};
use super::text::{cut, plain};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use rdsk_analysis::columns::block_figures;
use rdsk_analysis::contradictions::contradictions;
use rdsk_analysis::iostat::row_of;
use rdsk_model::{BlockActivity, DiskStat};
use rdsk_report::Charset;
use rdsk_report::watch::sizes_text;
use rdsk_units::{Nanos, printable};

/// Columns of the words at the start of a line.
const LEAD: usize = 9;
/// Columns of the bars of the last interval beside the strip, where there is room for both.
const BARS: usize = 24;
const ROOM_FOR_BARS: usize = 70;
/// Exact sizes that are named.
const MAX_SIZES: usize = 8;
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// How dense a place of the strip is, from no request to most of them.
const DENSITIES: [(f64, char, char); 5] =
    [(0.5, '█', '#'), (0.2, '▓', '+'), (0.05, '▒', ':'), (0.0, '░', '.'), (-1.0, ' ', ' ')];

/// At most `height` lines on the chosen device.
pub(super) fn device_lines(state: &State, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(history) = state.chosen_device() else { return Vec::new() };
    let device = &history.last;
    let mut lines: Vec<String> = Vec::new();
    let name = printable(&device.name);
    match &device.growth {
        Ok(growth) => {
            lines.push(format!("{name}  {}", moved(growth, state.interval_ns)));
            lines.extend(contradictions(growth, state.interval_ns));
            match &device.block {
                Some(block) => lines.extend(block_lines(block)),
                None => {
                    let why = device.why_no_block.as_deref().or(state.why_no_bpf.as_deref());
                    lines.extend(kernel_lines(growth, state.interval_ns, why));
                }
            }
        }
        Err(why) => {
            lines.push(format!("{name}  {}", printable(&why.to_string())));
            lines.extend(device.block.iter().flat_map(block_lines));
        }
    }
    let room = width.saturating_sub(LEAD);
    let mut push_curve = |lead: &str, value: fn(&Moment) -> f64, full: f64| {
        lines.push(format!("{lead:LEAD$}{}", curve(history, value, full, room, state.charset)));
    };
    push_curve("queue", |moment| moment.depth, 0.0);
    push_curve("busy", |moment| moment.busy_percent, 100.0);
    lines.extend(strip(history, width, height.saturating_sub(lines.len()), state.charset));
    let heading = Style::new().add_modifier(Modifier::BOLD);
    let line = |(index, text): (usize, String)| {
        let text = cut(&plain(&text, state.charset), width);
        if index == 0 { Line::styled(text, heading) } else { Line::from(text) }
    };
    lines.into_iter().take(height).enumerate().map(line).collect()
}

fn moved(growth: &DiskStat, interval_ns: u64) -> String {
    let row = row_of(growth, interval_ns);
    let mib = |kb: f64| kb / 1024.0;
    format!(
        "{:.1} MiB/s read, {:.1} MiB/s written, {:.0}% busy",
        mib(row.reads.kb_s),
        mib(row.writes.kb_s),
        row.util_percent
    )
}

fn block_lines(block: &BlockActivity) -> [String; 3] {
    let [_, _, _, depth, ..] = block_figures(block);
    let time = |ns: Option<u64>| ns.map_or_else(|| "–".into(), |ns| Nanos(ns).to_string());
    let deepest = block.deepest.map_or_else(|| "–".into(), |deepest| deepest.to_string());
    let zeroes = match block.write_zeroes {
        0 => String::new(),
        count => format!(", write zeroes {count}"),
    };
    let lost = if block.lost > 0 { format!("; missed {}", block.lost) } else { String::new() };
    [
        format!("{:LEAD$}{}", "sizes", sizes_text(block, MAX_SIZES)),
        format!(
            "{:LEAD$}p50 {}, p99 {}, max {}",
            "time",
            time(block.latency.quantile(0.5)),
            time(block.latency.quantile(0.99)),
            time(block.latency.max())
        ),
        format!(
            "{:LEAD$}mean {:.2}, max {deepest}; splits {}, merges {}, flushes {}{zeroes}{lost}",
            "device",
            depth.unwrap_or(0.0),
            block.splits,
            block.merges,
            block.flushes
        ),
    ]
}

/// What the kernel's own counters hold of it.
fn kernel_lines(growth: &DiskStat, interval_ns: u64, why: Option<&str>) -> [String; 2] {
    let row = row_of(growth, interval_ns);
    let why = why.map_or_else(String::new, |why| format!(": {}", printable(why)));
    [
        format!(
            "{:LEAD$}reads {:.3} ms, writes {:.3} ms (means, with waiting)",
            "time", row.reads.await_ms, row.writes.await_ms
        ),
        format!("{:LEAD$}exact sizes and times are not counted{why}", ""),
    ]
}

/// A bar for each interval, the newest on the right; `full` is the full bar, or with 0 the largest value.
fn curve(history: &History, value: fn(&Moment) -> f64, full: f64, width: usize, charset: Charset) -> String {
    let shown = newest(history, width);
    let largest = shown.iter().map(|moment| value(moment)).fold(full, f64::max);
    let bar = |moment: &&Moment| {
        let share = if largest > 0.0 { value(moment) / largest } else { 0.0 };
        STEPS[step(share)]
    };
    let bars: String = shown.iter().map(bar).collect();
    plain(&bars, charset)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 times seven"
)]
fn step(share: f64) -> usize {
    (share.clamp(0.0, 1.0) * 7.0).round() as usize
}

fn newest(history: &History, width: usize) -> Vec<&Moment> {
    history.past.iter().skip(history.past.len().saturating_sub(width)).collect()
}

/// Latencies over time, the longest on top; beside them, where there is room, the bars of the last interval. Nothing without
/// BPF programs, and nothing while no request was seen.
fn strip(history: &History, width: usize, height: usize, charset: Charset) -> Vec<String> {
    let bars = if width >= ROOM_FOR_BARS { BARS } else { 0 };
    let shown = newest(history, width.saturating_sub(LEAD + bars));
    let moments: Vec<[u64; BANDS]> = shown.iter().filter_map(|moment| moment.bands).collect();
    let used: Vec<usize> = (0..BANDS).filter(|&band| moments.iter().any(|bands| bands[band] > 0)).collect();
    let (Some(&low), Some(&high)) = (used.first(), used.last()) else { return Vec::new() };
    // Where not all bands fit, the longest latencies are what matters.
    let low = low.max((high + 1).saturating_sub(height));
    let last = shown.last().and_then(|moment| moment.bands).unwrap_or_default();
    let most = last.iter().copied().max().unwrap_or(0).max(1);
    let row = |band: usize| {
        let places: String = shown.iter().map(|moment| density(moment, band, charset)).collect();
        let mut line = format!("{:LEAD$}{places:<columns$}", label(band), columns = shown.len());
        if bars > 0 {
            line = format!("{line:<pad$}", pad = width - bars);
            line.push_str(&bar(last[band], most, charset));
        }
        line
    };
    (low..=high).rev().map(row).collect()
}

/// `≤100 µs`, and `>10 s` for the last band.
fn label(band: usize) -> String {
    match BAND_ENDS.get(band) {
        Some(&end) => format!("≤{}", short(end)),
        None => format!(">{}", short(BAND_ENDS[BANDS - 2])),
    }
}

/// Two digits are enough for a label.
fn short(ns: u64) -> String {
    let units = [(1_000_000_000_u64, "s"), (1_000_000, "ms"), (1_000, "µs")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns >= *size).unwrap_or((1, "ns"));
    let value = ns as f64 / size as f64;
    if value < 9.95 && (value - value.round()).abs() > 0.05 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

fn density(moment: &Moment, band: usize, charset: Charset) -> char {
    let Some(bands) = moment.bands else { return ' ' };
    let sum: u64 = bands.iter().sum();
    // Without a request the share is less than nothing, which is the empty place.
    let share = if bands[band] == 0 { -1.0 } else { bands[band] as f64 / sum as f64 };
    let (_, block, ascii) =
        DENSITIES.into_iter().find(|(least, _, _)| share >= *least).unwrap_or((-1.0, ' ', ' '));
    if charset == Charset::Unicode { block } else { ascii }
}

/// A bar and the number that it stands for.
fn bar(count: u64, most: u64, charset: Charset) -> String {
    let number = rdsk_units::count(count as f64);
    let room = BARS.saturating_sub(8);
    let length = usize::try_from(count.saturating_mul(room as u64).div_ceil(most)).unwrap_or(room).min(room);
    let mark = if charset == Charset::Unicode { "█" } else { "#" };
    format!(" {}{}", mark.repeat(length), if count > 0 { format!(" {number}") } else { String::new() })
}
