//! The align page: time per I/O by block size, cache state and path, the bytes that each made the kernel read, and the
//! same for offsets that are not aligned.

mod answer;

pub(super) use answer::answer;

use crate::block_io;
use crate::cells;
use crate::figures::{MISSING, Unit, significant};
use crate::findings;
use crate::page::{Page, Tone};
use rdsk_analysis::comparison::{Comparison, Kind, Ratio};
use rdsk_analysis::metrics::{self, PAGE_BYTES};
use rdsk_analysis::{Analysis, words};
use rdsk_model::{CacheState, CellRecord, Experiment, IoPath, Op, StopReason, Target};

/// The columns of the tables.
const COLUMNS: [(CacheState, IoPath); 5] = [
    (CacheState::Warm, IoPath::Buffered),
    (CacheState::Warm, IoPath::Direct),
    (CacheState::Cold, IoPath::Buffered),
    (CacheState::Cold, IoPath::DontCache),
    (CacheState::Cold, IoPath::Direct),
];

/// What is said of a figure that a control group set.
const HELD: &str = "set by a limit of a cgroup, not by the device";

/// Block size and shift: one row.
type Key = (u64, u64);

/// What a row says of itself.
type OfKey<'f, T> = dyn Fn(Key) -> T + 'f;

/// Reasons why cells have no figure, or not the device's, numbered as they are met.
struct Footnotes<'a> {
    targets: &'a [Target],
    reasons: Vec<String>,
}

impl Footnotes<'_> {
    fn mark(&mut self, reason: &str) -> usize {
        match self.reasons.iter().position(|other| other == reason) {
            Some(index) => index + 1,
            None => {
                self.reasons.push(reason.into());
                self.reasons.len()
            }
        }
    }
}

pub(crate) fn draw(page: &mut Page, analysis: &Analysis<'_>) {
    let ops = [Op::Read, Op::Write].map(|op| {
        cells::of_experiment(analysis, Experiment::Align)
            .any(|cell| cell.workload.op == op)
            .then_some(op.as_str())
    });
    let ops: Vec<&str> = ops.into_iter().flatten().collect();
    page.heading(format!("ALIGN: µs per {}, by size and alignment", ops.join(" and ")));
    super::draw_answer(page, analysis, Experiment::Align);
    let mut footnotes = Footnotes { targets: &analysis.targets, reasons: Vec::new() };
    let groups = cells::groups_by(analysis, Experiment::Align, |cell| {
        (cell.workload.op, cell.workload.targets.clone())
    });
    for (index, cells) in groups.into_iter().enumerate() {
        if index > 0 {
            page.blank();
        }
        draw_group(page, analysis, &cells, &mut footnotes);
    }
    for (index, reason) in footnotes.reasons.iter().enumerate() {
        page.sentence(Tone::Plain, format!("  {}) ", index + 1), reason);
    }
    draw_advice(page, analysis);
}

/// The tables of one direction on one target: aligned blocks, then shifted ones beside the same blocks aligned.
fn draw_group(
    page: &mut Page,
    analysis: &Analysis<'_>,
    cells: &[&CellRecord],
    footnotes: &mut Footnotes<'_>,
) {
    let Some(first) = cells.first() else { return };
    let op = first.workload.op;
    if let Some(name) = cells::target_name(analysis, first) {
        page.sentence(Tone::Heading, "  ", name);
    }
    let mut keys: Vec<Key> =
        cells.iter().map(|cell| (cell.workload.block_bytes, cell.workload.shift_bytes)).collect();
    keys.sort_unstable();
    keys.dedup();
    let aligned: Vec<Key> = keys.iter().copied().filter(|(_, shift)| *shift == 0).collect();
    let shifted: Vec<Key> = keys.iter().copied().filter(|(_, shift)| *shift > 0).collect();
    if !aligned.is_empty() {
        let label = |(block, _): Key| block.to_string();
        let costs = |_: Key| None;
        draw_table(page, &format!("{op} of"), cells, (&aligned, &aligned), footnotes, (&label, &costs));
    }
    if !shifted.is_empty() {
        let is_compared = |key: &Key| shifted.iter().any(|(block, _)| *block == key.0);
        let compared: Vec<Key> = keys.iter().copied().filter(is_compared).collect();
        page.blank();
        let costs = |key: Key| cost_of_shift(analysis, cells, key);
        draw_table(page, &format!("{op} of, at"), cells, (&compared, &shifted), footnotes, (&place, &costs));
    }
    let others: Vec<String> = keys.iter().filter_map(|&key| other_reads(cells, key)).collect();
    if !others.is_empty() {
        page.sentence(Tone::Plain, "  dontcache: ", format!("bytes read per {op}: {}", others.join(", ")));
    }
    let uncached = |cell: &&&CellRecord| {
        cell.workload.op == Op::Write
            && in_cache(cell) == CacheState::Cold
            && cell.workload.path == IoPath::Buffered
    };
    let uncached: Vec<&CellRecord> = cells.iter().filter(uncached).copied().collect();
    block_io::draw_reads(page, analysis, &uncached, |cell| {
        place((cell.workload.block_bytes, cell.workload.shift_bytes))
    });
}

/// What the path `dontcache` made the kernel read per I/O, if that differs from the buffered one's by a twentieth of a page:
/// `512 aligned 8192`.
fn other_reads(cells: &[&CellRecord], key: Key) -> Option<String> {
    let reads = |path| find(cells, key, (CacheState::Cold, path)).and_then(metrics::read_bytes_per_io);
    let (own, buffered) = reads(IoPath::DontCache).zip(reads(IoPath::Buffered))?;
    ((own - buffered).abs() > PAGE_BYTES as f64 / 20.0)
        .then(|| format!("{} {}", place(key), significant(own)))
}

/// The cell of a row and a column.
fn find<'a>(
    cells: &[&'a CellRecord],
    (block, shift): Key,
    (cache, path): (CacheState, IoPath),
) -> Option<&'a CellRecord> {
    cells.iter().copied().find(|cell| {
        let workload = &cell.workload;
        (workload.block_bytes, workload.shift_bytes) == (block, shift)
            && workload.path == path
            && in_cache(cell) == cache
    })
}

/// What to do, by the findings of this page.
fn draw_advice(page: &mut Page, analysis: &Analysis<'_>) {
    let findings =
        || analysis.findings.iter().filter(|finding| finding.experiment == Some(Experiment::Align));
    // Aligned writes of whole pages are writes of whole pages, too.
    let is_aligned = findings().any(|finding| finding.code == "misaligned-write");
    for finding in findings().filter(|finding| !(is_aligned && finding.code == "read-modify-write")) {
        if let Some(advice) = findings::advice(analysis, finding) {
            page.sentence(Tone::Plain, "  Advice: ", format!("{advice}."));
        }
    }
}

/// `4096 at +512`, `512 at +3840, crossing a page`.
pub fn place((block, shift): Key) -> String {
    if shift == 0 {
        return format!("{block} aligned");
    }
    let crosses = block < PAGE_BYTES && shift % PAGE_BYTES + block > PAGE_BYTES;
    format!("{block} at +{shift}{}", if crosses { ", crossing" } else { "" })
}

/// One table. `keys` are its rows, and those that it is about: a column that none of these has is left out.
fn draw_table(
    page: &mut Page,
    name: &str,
    cells: &[&CellRecord],
    (keys, subjects): (&[Key], &[Key]),
    footnotes: &mut Footnotes<'_>,
    (label, cost): (&OfKey<'_, String>, &OfKey<'_, Option<String>>),
) {
    let find = |key: Key, column: (CacheState, IoPath)| find(cells, key, column);
    let has_cells = |column: &(CacheState, IoPath)| subjects.iter().any(|&key| find(key, *column).is_some());
    let columns: Vec<(CacheState, IoPath)> = COLUMNS.into_iter().filter(has_cells).collect();
    let mut heads = vec![name.to_owned()];
    heads.extend(columns.iter().map(|(cache, path)| {
        format!("{}\n{path}", if *cache == CacheState::Warm { "cached" } else { "uncached" })
    }));
    let read_bytes =
        |key: Key| find(key, (CacheState::Cold, IoPath::Buffered)).and_then(metrics::read_bytes_per_io);
    // Where nothing was read, the column carries nothing.
    let has_reads = keys.iter().any(|&key| read_bytes(key).is_some_and(|bytes| bytes > 0.0));
    if has_reads {
        heads.push("bytes read\nfirst".to_owned());
    }
    let has_costs = keys.iter().any(|&key| cost(key).is_some());
    if has_costs {
        heads.push("over\naligned".to_owned());
    }
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|&key| {
            let mut row = vec![label(key)];
            row.extend(columns.iter().map(|&column| figure(find(key, column), footnotes)));
            if has_reads {
                row.push(read_bytes(key).map_or_else(|| MISSING.into(), significant));
            }
            if has_costs {
                row.push(cost(key).unwrap_or_default());
            }
            row
        })
        .collect();
    page.table(&heads, &rows);
}

/// `4912x`: how many times as long a shifted I/O takes as the same one aligned, by the path on which that is most; `unclear` where no
/// difference is sure.
fn cost_of_shift(analysis: &Analysis<'_>, cells: &[&CellRecord], (block, shift): Key) -> Option<String> {
    let is_ours = |comparison: &&Comparison<'_>| {
        let workload = &comparison.base.workload;
        (workload.block_bytes, workload.shift_bytes) == (block, shift)
            && cells.iter().any(|cell| cell.id == comparison.base.id)
    };
    let ratios: Vec<Ratio> = analysis
        .comparisons(Kind::Shift)
        .filter(is_ours)
        .filter_map(|comparison| comparison.ratio.ok())
        .collect();
    let largest = ratios.into_iter().max_by(|left, right| left.mean.total_cmp(&right.mean))?;
    Some(if largest.is_sure() { words::times(largest.mean) } else { "unclear".into() })
}

/// Cells that leave the cache as it is are listed with the uncached ones.
fn in_cache(cell: &CellRecord) -> CacheState {
    if cell.workload.cache == CacheState::Warm { CacheState::Warm } else { CacheState::Cold }
}

fn figure(cell: Option<&CellRecord>, footnotes: &mut Footnotes<'_>) -> String {
    let Some(cell) = cell else { return MISSING.into() };
    let result = &cell.result;
    match result.stop {
        StopReason::NotApplicable => format!("n/a {})", footnotes.mark(&result.why)),
        StopReason::Error => format!("failed {})", footnotes.mark(&result.why)),
        _ => {
            let mean_ns = result.latency_ns.as_ref().and_then(|latency| latency.mean);
            let figure = Unit::MICROSECONDS.figure_or_missing(mean_ns);
            let is_held = mean_ns.is_some() && rdsk_analysis::is_held(cell, footnotes.targets);
            if is_held { format!("{figure} {})", footnotes.mark(HELD)) } else { figure }
        }
    }
}
