//! The rates of all streams together and of each, by block size, and what more of them gain. It judges nothing.

use super::counted;
use crate::figures::{MISSING, Unit, or_missing, significant};
use crate::page::Page;
use rdsk_analysis::scale::{Grid, Line, Point};
use rdsk_units::Bytes;

/// Streams whose shares are as even as this, by Jain's index, need no word.
pub(super) const EVEN: f64 = 0.95;
/// A speed-up within this of 1 is none, however surely; an interval that holds 1 and reaches farther leaves it unclear.
const EQUAL: f64 = 0.05;

/// Whether a table of rates has the summary of each block size.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Summary {
    None,
    Beside,
}

pub(super) fn draw(page: &mut Page, grid: &Grid<'_>, counts: &[u32], summary: Summary) {
    let has_alone = grid.lines.iter().any(|line| line.sum_alone().is_some());
    let has_summary = summary == Summary::Beside && (grid.counts().len() > 1 || has_alone);
    let is_uneven = grid.lines.iter().filter_map(evenness).any(|jain| jain < EVEN);
    let mut heads = vec![grid.op.to_string()];
    if has_alone {
        heads.push("alone, sum".into());
    }
    heads.extend(counts.iter().map(|&count| counted(count, grid)));
    if has_summary {
        heads.push("speed-up".into());
        heads.extend(is_uneven.then(|| "evenness".to_owned()));
    }
    let row = |line: &Line<'_>| {
        let mut row = vec![Bytes(line.block_bytes).to_string()];
        if has_alone {
            row.push(Unit::MIB_PER_S.figure_or_missing(line.sum_alone()));
        }
        row.extend(counts.iter().map(|&count| or_missing(line.point(count).and_then(rate))));
        if has_summary {
            row.push(speed_up(line));
            row.extend(is_uneven.then(|| or_missing(evenness_word(line))));
        }
        row
    };
    page.table(&heads, &grid.lines.iter().map(row).collect::<Vec<_>>());
}

/// `67.2 (7.47)`: of all streams, and of each on average.
fn rate(point: &Point<'_>) -> Option<String> {
    let rate = point.bytes_per_s()?;
    let figure = |rate: f64| Unit::MIB_PER_S.figure(rate);
    Some(match point.count() {
        1 => figure(rate),
        count => format!("{} ({})", figure(rate), figure(rate / f64::from(count))),
    })
}

/// The point with the most streams, and what it gains.
pub(super) fn most<'l, 'a>(line: &'l Line<'a>) -> Option<&'l Point<'a>> {
    line.points.last().filter(|point| point.count() > 1)
}

/// `1.15x`, `unclear` where the interval holds 1 and is wide, `–`.
fn speed_up(line: &Line<'_>) -> String {
    let factor = most(line).and_then(|point| Some((point, point.speed_up?)));
    factor.map_or_else(
        || MISSING.into(),
        |(point, factor)| {
            if is_unclear(point) { UNCLEAR.into() } else { format!("{}x", significant(factor)) }
        },
    )
}

/// What stands for a speed-up that may be none.
pub(super) const UNCLEAR: &str = "unclear";

/// Whether the interval of a speed-up leaves open whether there is one.
pub(super) fn is_unclear(point: &Point<'_>) -> bool {
    point
        .speed_up_interval
        .is_some_and(|(low, high)| low < 1.0 && 1.0 < high && (low < 1.0 - EQUAL || high > 1.0 + EQUAL))
}

fn evenness(line: &Line<'_>) -> Option<f64> {
    most(line)?.fairness.map(|fairness| fairness.jain)
}

fn evenness_word(line: &Line<'_>) -> Option<String> {
    let fairness = most(line)?.fairness?;
    let mark = if fairness.has_ramp { "^" } else { "" };
    Some(if fairness.jain < EVEN { format!("{mark}{}", significant(fairness.jain)) } else { "even".into() })
}
