//! What each of several targets gave and how busy it was, by itself and together with the others. It judges nothing.

use super::{TARGETS, counted};
use crate::figures::{Unit, or_missing};
use crate::page::Page;
use crate::table::end_of;
use rdsk_analysis::groups::distinct;
use rdsk_analysis::scale::{Grid, TargetShare};
use rdsk_analysis::{Analysis, metrics};
use rdsk_units::{Bytes, percent, printable};

/// What each target gave and how busy it was, where there are several: by itself, and with the most streams of each block size.
pub(super) fn draw(page: &mut Page, analysis: &Analysis<'_>, grid: &Grid<'_>) {
    if grid.targets.len() < 2 {
        return;
    }
    let alone: Vec<TargetsOfLine<'_>> = grid
        .lines
        .iter()
        .map(|line| TargetsOfLine {
            block: Bytes(line.block_bytes),
            shares: line.alone.iter().flat_map(|point| &point.targets).collect(),
        })
        .collect();
    draw_shares(page, analysis, "1 stream, alone", &alone);
    let Some(most) = grid.counts().last().copied() else { return };
    let ran = grid.lines.iter().filter_map(|line| Some((line, line.point(most)?)));
    let ran = ran.filter(|(_, point)| point.bytes_per_s().is_some());
    let together: Vec<TargetsOfLine<'_>> = ran
        .map(|(line, point)| TargetsOfLine {
            block: Bytes(line.block_bytes),
            shares: point.targets.iter().collect(),
        })
        .collect();
    draw_shares(page, analysis, &counted(most, grid), &together);
}

/// What each target gave with blocks of one size.
struct TargetsOfLine<'l> {
    block: Bytes,
    shares: Vec<&'l TargetShare>,
}

fn draw_shares(page: &mut Page, analysis: &Analysis<'_>, what: &str, lines: &[TargetsOfLine<'_>]) {
    let shown = lines.iter().flat_map(|line| &line.shares).map(|share| share.target);
    for targets in distinct(shown).chunks(TARGETS) {
        page.blank();
        let mut heads = vec![what.to_owned()];
        heads.extend(targets.iter().map(|&target| short_name(analysis, target)));
        let row = |line: &TargetsOfLine<'_>| {
            let mut row = vec![line.block.to_string()];
            row.extend(targets.iter().map(|&target| {
                let share = line.shares.iter().find(|share| share.target == target);
                or_missing(share.map(|share| of_target(share)))
            }));
            row
        };
        page.table(&heads, &lines.iter().map(row).collect::<Vec<_>>());
        page.line("  MiB/s (each stream), device busy; from the first start to the last end");
    }
}

/// `44.1 (14.7), 99.6%`: of all its streams and of each on average, and how busy its device was.
fn of_target(share: &TargetShare) -> String {
    let busy = share.busy_share.map_or(String::new(), |busy| format!(", {}", percent(busy)));
    let rate = Unit::MIB_PER_S.figure(share.bytes_per_s);
    let each = match share.streams {
        0 | 1 => String::new(),
        count => format!(" ({})", Unit::MIB_PER_S.figure(share.bytes_per_s / count as f64)),
    };
    format!("{rate}{each}{busy}")
}

/// The end of a target's name.
fn short_name(analysis: &Analysis<'_>, target: u32) -> String {
    let name = metrics::target(analysis, target);
    let name = name.map_or_else(|| format!("target {target}"), |target| printable(&target.name));
    end_of(&name)
}
