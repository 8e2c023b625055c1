//! The letters behind figures of the headline that are not simply the device's, and what each of them means, right below the table.
//! It judges nothing: the word for a cell is that of [`super::not_device`].

use super::not_device;
use crate::cells::is_bandwidth;
use crate::figures::{self, fio_size, rate_of};
use crate::lasting;
use rdsk_analysis::Analysis;
use rdsk_analysis::lasting::Lasting;
use rdsk_analysis::metrics;
use rdsk_model::CellRecord;

/// Behind a figure that writing on does not keep up.
const BURST: char = 'b';
/// A mean below this part of the burst's rate has some of what follows in it.
const PURE: f64 = 0.9;

/// A word for a cell, the letter that stands for it, and its meaning.
const WORDS: [(&str, char, &str); 13] = [
    ("into cache", 'c', "drive's write cache"),
    ("depth not reached", 'q', "queue not full"),
    ("not steady", 'v', "rate varies over time"),
    ("page-cache", 'r', "RAM (page cache)"),
    ("hole", 'h', "unallocated blocks"),
    ("throttled", 'l', "limited by cgroup"),
    ("cpu-bound", 'p', "CPU bound"),
    ("cpu shared", 'y', "busy CPU"),
    ("cpu quota", 'k', "CPU quota used up"),
    ("disturbed", 'o', "other I/O"),
    ("cut short", 's', "ran out of budget"),
    ("unverified", 'e', "no kernel evidence"),
    ("n/a", 'n', "not applicable here"),
];
/// For words of an end that is no measurement: failed, interrupted, incomplete.
const OTHER: char = 'x';

/// The letters of a cell; empty where its figure is simply the device's.
pub(super) fn of_cell(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let burst = lasting::is_burst(analysis, cell).then_some(BURST);
    let word = not_device::word(analysis, cell).map(|word| letter(&word).0);
    burst.into_iter().chain(word).collect()
}

/// What the figure of a cell is of, where it is not simply the device's: `RAM (page cache)`, `limited by cgroup`; otherwise empty.
pub fn remark_of(analysis: &Analysis<'_>, cell: &CellRecord) -> String {
    let burst = lasting::is_burst(analysis, cell).then(|| "burst".to_owned());
    let word = not_device::word(analysis, cell).map(|word| letter(&word).1);
    burst.into_iter().chain(word).collect::<Vec<_>>().join(", ")
}

/// The letter of a word, and its meaning.
fn letter(word: &str) -> (char, String) {
    // A second word behind a comma is about the end of the cell.
    let first = word.split(',').next().unwrap_or(word);
    WORDS
        .iter()
        .find(|(marked_word, ..)| *marked_word == first)
        .map_or_else(|| (OTHER, word.to_owned()), |(_, letter, meaning)| (*letter, (*meaning).to_owned()))
}

/// The lines below the table, each with its wordings, the longest first: what the letters of these cells mean.
pub(super) fn legend(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> Vec<Vec<String>> {
    bursts(analysis, cells).into_iter().chain(words(analysis, cells)).collect()
}

/// `b = burst; lasts: sequential 1M 277 MiB/s, random 4K QD1 1.12k IOPS`.
fn bursts(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> Option<Vec<String>> {
    let bursts: Vec<(&CellRecord, Lasting)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, analysis.lasting(cell).filter(|lasting| lasting.is_burst)?)))
        .collect();
    let part = |(cell, lasting): &(&CellRecord, Lasting), with_size: bool| {
        let until = lasting.fall_bytes.filter(|_| with_size);
        let after =
            until.map_or_else(String::new, |bytes| format!(" after {}", rdsk_analysis::words::bytes(bytes)));
        let unsettled = if lasting.is_settled { "" } else { " and falling" };
        format!("{} {}{unsettled}{after}", brief(cell), rate_of(cell, lasting.bytes_per_s))
    };
    if bursts.is_empty() {
        return None;
    }
    let mixed = match bursts.iter().filter(|(cell, lasting)| is_mixed(cell, lasting)).count() {
        0 => "",
        count if count == bursts.len() => ", mixed with what follows",
        _ => ", some mixed with what follows",
    };
    let text = |with_size: bool| {
        let parts: Vec<String> = bursts.iter().map(|burst| part(burst, with_size)).collect();
        format!("{BURST} = burst{mixed}; lasting rate: {}", parts.join(", "))
    };
    let first = format!("{BURST} = burst; lasting rate: {}, …: --details", part(&bursts[0], false));
    Some(vec![text(true), text(false), first])
}

/// Whether a figure is the mean of a burst and of what follows, and so neither.
fn is_mixed(cell: &CellRecord, lasting: &Lasting) -> bool {
    cell.result.bytes_per_s.is_some_and(|rate| rate.mean < PURE * lasting.burst_bytes_per_s)
}

/// `c = drive's write cache; on disk: random 4K QD1 112 IOPS`, and the other words behind it.
fn words(analysis: &Analysis<'_>, cells: &[&CellRecord]) -> Vec<Vec<String>> {
    let mut shown: Vec<(char, String, Vec<&CellRecord>)> = Vec::new();
    for cell in cells {
        let Some((letter, meaning)) = not_device::word(analysis, cell).map(|word| letter(&word)) else {
            continue;
        };
        match shown.iter_mut().find(|(shown_letter, text, _)| *shown_letter == letter && *text == meaning) {
            Some((.., cells)) => cells.push(cell),
            None => shown.push((letter, meaning, vec![cell])),
        }
    }
    // A meaning with figures has a line of its own; the others share one.
    let mut lines = Vec::new();
    let mut plain = Vec::new();
    for (letter, meaning, cells) in &shown {
        let brief = format!("{letter} = {meaning}");
        match figures(analysis, *letter, cells) {
            none if none.is_empty() => plain.push(brief),
            figures => lines.push(vec![format!("{brief}{figures}"), brief]),
        }
    }
    if !plain.is_empty() {
        lines.push(vec![plain.join("; ")]);
    }
    lines
}

/// What the cells of a letter had instead: the rate on disk, the depth of the queue.
fn figures(analysis: &Analysis<'_>, letter: char, cells: &[&CellRecord]) -> String {
    let of_cells = |figure: &dyn Fn(&CellRecord) -> Option<String>| {
        cells.iter().filter_map(|cell| figure(cell)).collect::<Vec<_>>().join(", ")
    };
    match letter {
        'c' => {
            let on_disk = |cell: &CellRecord| {
                Some(format!("{} {}", brief(cell), rate_of(cell, analysis.settling(cell)?.bytes_per_s)))
            };
            match of_cells(&on_disk) {
                none if none.is_empty() => none,
                rates => format!(", on disk: {rates}"),
            }
        }
        'q' => {
            let depth = |cell: &CellRecord| {
                let had = metrics::depth_had(cell)?;
                let (op, wanted) = (cell.workload.op, metrics::wanted_depth(&cell.workload));
                Some(format!("{op}s QD {} of {wanted}", figures::significant(had)))
            };
            match of_cells(&depth) {
                none if none.is_empty() => none,
                depths => format!(": {depths}"),
            }
        }
        _ => String::new(),
    }
}

/// `random 4K QD32`: what a cell of the headline did, within a sentence.
fn brief(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let size = fio_size(workload.block_bytes);
    match workload.sync {
        rdsk_model::Sync::None if is_bandwidth(cell) => format!("{} {size}", workload.pattern),
        rdsk_model::Sync::None => {
            format!("{} {size} QD{}", workload.pattern, metrics::wanted_depth(workload))
        }
        _ => format!("sync {size}"),
    }
}
