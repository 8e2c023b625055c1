//! The screen as lines of text: a title, the list of devices, and below it the chosen device or the help. Whatever does not fit
//! is left out; nothing here knows a terminal.

use super::device::device_lines;
use super::state::{Lower, Pace, State};
use super::text::{cut, plain};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use rdsk_analysis::columns::ColumnSet;
use rdsk_units::{Nanos, printable};
use unicode_width::UnicodeWidthStr as _;

/// Columns in the order of their worth, for screens on which not all of them fit.
const WORTH: [&str; 19] = [
    "%util", "%b", "r/s", "w/s", "rkB/s", "wkB/s", "kr/s", "kw/s", "aqu-sz", "avgqu-sz", "actv", "asvc_t",
    "r_await", "w_await", "await", "svctm", "rareq-sz", "wareq-sz", "avgrq-sz",
];
/// Columns of the name of a device, at most, and at least.
const MAX_NAME: usize = 16;
const MIN_NAME: usize = 8;
/// Columns of a figure.
const FIGURE: usize = 9;

const HELP: [&str; 12] = [
    "q        end (Esc and Ctrl-C do, too)",
    "up down  choose a device (also k and j)",
    "p        pause; the next interval is as long as the pause",
    "c        other columns: iostat, old sysstat, Solaris",
    "?        this help",
    "",
    "Rates and shares are of the last interval, never since boot.",
    "sizes    requests by exact size, the most frequent first",
    "time     in the device, from issuing to completion",
    "strip    a column for each interval, a row for each band of times;",
    "         the denser, the more of its requests took that long",
    "%util at 100 does not mean that a parallel device is full.",
];

/// The whole screen: at most `height` lines of at most `width` columns.
pub(super) fn lines(state: &State, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(state, width)];
    let rows = state.names.len().min(height.saturating_sub(2).div_ceil(2)).max(1);
    lines.extend(list(state, width, rows));
    lines.truncate(height);
    let left = height - lines.len();
    let lower = match state.lower {
        Lower::Help => HELP.iter().map(|line| Line::from(cut(line, width))).collect(),
        Lower::Device if state.names.is_empty() => Vec::new(),
        Lower::Device => device_lines(state, width, left.saturating_sub(1)),
    };
    if left > 1 {
        lines.push(Line::default());
        lines.extend(lower.into_iter().take(left - 1));
    }
    lines
}

fn title(state: &State, width: usize) -> Line<'static> {
    let paused = if state.pace == Pace::Paused { "  PAUSED" } else { "" };
    let set = match state.columns {
        ColumnSet::Iostat => "",
        ColumnSet::Old => "  old columns",
        ColumnSet::Solaris => "  Solaris columns",
    };
    let interval = match state.interval_ns {
        0 => "the first interval runs".to_owned(),
        ns => format!("interval {}", Nanos(ns)),
    };
    let short = format!("rdsk watch  {interval}{paused}  ? help");
    let long = format!("{short}  q quit{set}");
    let text = plain(if long.width() <= width { &long } else { &short }, state.charset);
    Line::styled(cut(&text, width), Style::new().add_modifier(Modifier::BOLD))
}

/// The names of the columns, and a line for each device; where there are too many, those around the chosen one.
fn list(state: &State, width: usize, rows: usize) -> Vec<Line<'static>> {
    let longest = state.names.iter().map(|name| printable(name).width()).max().unwrap_or(0);
    let first = longest.clamp(MIN_NAME, MAX_NAME.min(width.max(MIN_NAME)));
    let shown = fitting(state.columns, width.saturating_sub(first));
    let names = state.columns.names();
    let head: String = shown.iter().map(|&index| format!("{:>FIGURE$}", names[index])).collect();
    let mut lines = vec![Line::styled(
        cut(&format!("{:first$}{head}", "Device"), width),
        Style::new().add_modifier(Modifier::UNDERLINED),
    )];
    let chosen = state.chosen();
    let start = (chosen + 1).saturating_sub(rows).min(state.names.len().saturating_sub(rows));
    for (place, name) in state.names.iter().enumerate().skip(start).take(rows) {
        let Some(history) = state.devices.get(name) else { continue };
        let safe = cut(&plain(&printable(name), state.charset), first);
        let pad = " ".repeat(first - safe.width().min(first));
        let text = match &history.last.growth {
            Ok(growth) => {
                let figures = state.columns.figures(growth, state.interval_ns, history.last.block.as_ref());
                shown.iter().map(|&index| format!("{:>FIGURE$}", figure(figures[index]))).collect()
            }
            Err(why) => format!("  {}", printable(&why.to_string())),
        };
        let look = if place == chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        lines.push(Line::styled(cut(&plain(&format!("{safe}{pad}{text}"), state.charset), width), look));
    }
    lines
}

/// The places of the columns that fit into so many columns of text: the worthiest, in their own order.
fn fitting(columns: ColumnSet, width: usize) -> Vec<usize> {
    let names = columns.names();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order
        .sort_by_key(|&index| WORTH.iter().position(|worthy| *worthy == names[index]).unwrap_or(WORTH.len()));
    order.truncate(width / FIGURE);
    order.sort_unstable();
    order
}

/// Two decimals while they fit, else fewer.
fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".into() };
    let texts = [format!("{value:.2}"), format!("{value:.0}"), rdsk_units::count(value)];
    texts.into_iter().find(|text| text.len() < FIGURE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worthiest_columns_stay_in_their_order() {
        let shown = |columns: ColumnSet, width| {
            fitting(columns, width).into_iter().map(|index| columns.names()[index]).collect::<Vec<_>>()
        };
        assert_eq!(shown(ColumnSet::Iostat, 32), ["r/s", "w/s", "%util"]);
        assert_eq!(
            shown(ColumnSet::Iostat, 72),
            ["r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await", "aqu-sz", "%util"]
        );
        assert_eq!(shown(ColumnSet::Iostat, 1000), ColumnSet::Iostat.names());
        assert_eq!(shown(ColumnSet::Solaris, 27), ["r/s", "w/s", "%b"]);
        assert!(shown(ColumnSet::Old, 3).is_empty());
    }

    #[test]
    fn figures_fit_their_column() {
        for (value, text) in [
            (Some(0.0), "0.00"),
            (Some(12_345.678), "12345.68"),
            (Some(1_234_567.8), "1234568"),
            (Some(1.5e12), "1.50T"),
            (None, "–"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(cut("ディスク", 5), "ディ");
    }
}
