//! The align page: time per write by block size, cache state and path, the reads that writes caused, and the same for
//! writes whose offset is not aligned.

use crate::cells;
use crate::figures::{MISSING, Unit, significant};
use crate::page::{Page, Tone};
use rdsk_model::{CacheState, CellRecord, Experiment, IoPath, Record, StopReason};

/// The unit of the page cache; what crosses it touches two.
const PAGE_BYTES: u64 = 4096;
/// The four columns of the table, and the cell that the reads are taken from.
const COLUMNS: [(CacheState, IoPath); 4] = [
    (CacheState::Warm, IoPath::Buffered),
    (CacheState::Warm, IoPath::Direct),
    (CacheState::Cold, IoPath::Buffered),
    (CacheState::Cold, IoPath::Direct),
];
/// Codes of the findings whose advice belongs on this page.
const ADVISERS: [&str; 3] = ["misaligned-write", "read-modify-write", "direct-refused"];

/// Block size and shift: one row.
type Key = (u64, u64);

/// Reasons why cells have no figure, numbered as they are met.
#[derive(Default)]
struct Footnotes(Vec<String>);

impl Footnotes {
    fn mark(&mut self, reason: &str) -> usize {
        match self.0.iter().position(|known| known == reason) {
            Some(index) => index + 1,
            None => {
                self.0.push(reason.into());
                self.0.len()
            }
        }
    }
}

pub(crate) fn draw(page: &mut Page, record: &Record) {
    page.heading("ALIGN: µs per write, by size and alignment");
    let cells: Vec<&CellRecord> = cells::of(record, Experiment::Align).collect();
    let mut keys: Vec<Key> =
        cells.iter().map(|cell| (cell.workload.block_bytes, cell.workload.shift_bytes)).collect();
    keys.sort_unstable();
    keys.dedup();
    let aligned: Vec<Key> = keys.iter().copied().filter(|(_, shift)| *shift == 0).collect();
    let shifted: Vec<Key> = keys.iter().copied().filter(|(_, shift)| *shift > 0).collect();
    let mut footnotes = Footnotes::default();
    draw_table(page, "block", &cells, &aligned, &mut footnotes, |(block, _)| block.to_string());
    if !shifted.is_empty() {
        let is_compared = |key: &Key| shifted.iter().any(|(block, _)| *block == key.0);
        let compared: Vec<Key> = keys.iter().copied().filter(is_compared).collect();
        page.blank();
        draw_table(page, "block and offset", &cells, &compared, &mut footnotes, place);
    }
    for (index, reason) in footnotes.0.iter().enumerate() {
        page.sentence(Tone::Plain, format!("  {}) ", index + 1), reason);
    }
    for code in ADVISERS {
        for finding in record.findings.iter().filter(|finding| finding.code == code) {
            if let Some(advice) = &finding.advice {
                page.sentence(Tone::Plain, "  Advice: ", format!("{advice} ({code})."));
            }
        }
    }
}

/// `4096 at +512`, `512 at +3840, crossing a page`.
fn place((block, shift): Key) -> String {
    if shift == 0 {
        return format!("{block} aligned");
    }
    let crosses = block < PAGE_BYTES && shift % PAGE_BYTES + block > PAGE_BYTES;
    format!("{block} at +{shift}{}", if crosses { ", crossing" } else { "" })
}

fn draw_table(
    page: &mut Page,
    name: &str,
    cells: &[&CellRecord],
    keys: &[Key],
    footnotes: &mut Footnotes,
    label: impl Fn(Key) -> String,
) {
    // A column nobody asked for is left out; a column with a gap shows it.
    let find = |(block, shift): Key, (cache, path): (CacheState, IoPath)| {
        cells.iter().copied().find(|cell| {
            let workload = &cell.workload;
            (workload.block_bytes, workload.shift_bytes) == (block, shift)
                && workload.path == path
                && in_cache(cell) == cache
        })
    };
    let columns: Vec<(CacheState, IoPath)> =
        COLUMNS.into_iter().filter(|&column| keys.iter().any(|&key| find(key, column).is_some())).collect();
    let mut names: Vec<String> = columns
        .iter()
        .map(|(cache, path)| {
            format!("{}\n{path}", if *cache == CacheState::Warm { "cached" } else { "uncached" })
        })
        .collect();
    names.push("bytes read\nper write".into());
    let heads: Vec<&str> = std::iter::once(name).chain(names.iter().map(String::as_str)).collect();
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|&key| {
            let mut row = vec![label(key)];
            row.extend(columns.iter().map(|&column| figure(find(key, column), footnotes)));
            let reads = find(key, (CacheState::Cold, IoPath::Buffered)).and_then(cells::read_per_io);
            row.push(reads.map_or_else(|| MISSING.into(), significant));
            row
        })
        .collect();
    page.table(&heads, &rows);
}

/// Cells that leave the cache as it is stand with the uncached ones.
fn in_cache(cell: &CellRecord) -> CacheState {
    if cell.workload.cache == CacheState::Warm { CacheState::Warm } else { CacheState::Cold }
}

fn figure(cell: Option<&CellRecord>, footnotes: &mut Footnotes) -> String {
    let Some(cell) = cell else { return MISSING.into() };
    let result = &cell.result;
    match result.stop {
        StopReason::NotApplicable => format!("n/a {})", footnotes.mark(&result.why)),
        StopReason::Error => format!("failed {})", footnotes.mark(&result.why)),
        _ => {
            Unit::MICROSECONDS.figure_or_missing(result.latency_ns.as_ref().and_then(|latency| latency.mean))
        }
    }
}
