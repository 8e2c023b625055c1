//! How verdicts and findings write their figures. It only formats; rounding is that of rdsk-units.

use crate::metrics;
use rdsk_model::{CacheState, CellRecord, Experiment, IoPath, LoadJob, Pattern, Record, Sync, Untold};
use rdsk_units::{Bytes, Nanos, Rate};

/// Names that are joined; more are counted.
const MAX_TOGETHER: usize = 8;

/// `64 MiB`.
pub fn bytes(value: u64) -> String {
    Bytes(value).approx()
}

/// `1.23 ms`.
pub fn nanos(value: u64) -> String {
    Nanos(value).to_string()
}

/// The same of a mean: `1.23 ms`.
pub fn mean_nanos(value: f64) -> String {
    nanos(metrics::whole(value))
}

/// `123 MiB/s`: the one spelling of a rate of data with its unit, on pages and in findings.
pub fn rate(bytes_per_s: f64) -> String {
    Rate { bytes_per_s }.to_string()
}

/// `30.6k IOPS`.
pub fn iops(ops_per_s: f64) -> String {
    format!("{} IOPS", rdsk_units::count(ops_per_s))
}

/// Whether the figure of a cell is a bandwidth; otherwise it is a rate of I/Os.
pub fn is_bandwidth(cell: &CellRecord) -> bool {
    cell.workload.pattern == Pattern::Sequential && cell.workload.sync == Sync::None
}

/// A rate of a cell as the headline has it: `1.19 GiB/s` of sequential I/O, `278 IOPS` of other.
pub fn rate_of(cell: &CellRecord, bytes_per_s: f64) -> String {
    if is_bandwidth(cell) {
        return rate(bytes_per_s);
    }
    iops(bytes_per_s / cell.workload.block_bytes.max(1) as f64)
}

/// The mean rate of a cell in the same words; `None` where nothing completed.
pub fn mean_rate(cell: &CellRecord) -> Option<String> {
    let (bytes, ops) = cell.result.bytes_per_s.zip(cell.result.ops_per_s)?;
    Some(if is_bandwidth(cell) { rate(bytes.mean) } else { iops(ops.mean) })
}

/// `±1.2%` for a margin of error relative to its mean; `±>100%` when it is wider than that.
pub fn plus_minus(margin: f64) -> String {
    if margin > 1.0 { "±>100%".into() } else { format!("±{}", rdsk_units::percent(margin)) }
}

/// `3.40x`, `12.3x`; from 100 on without decimals.
pub fn times(factor: f64) -> String {
    match factor {
        f if !f.is_finite() => "n/a".into(),
        f if f < 9.95 => format!("{f:.2}x"),
        f if f < 99.5 => format!("{f:.1}x"),
        f => format!("{f:.0}x"),
    }
}

/// `The 95% interval is 1.13 to 1.17.`
pub fn interval(low: f64, high: f64) -> String {
    format!("The 95% interval is {} to {}.", figure(low), figure(high))
}

/// `p = 2e-3`, and `p < 1e-4` for all below, since neither tables nor tails of scatter as it is are known better.
pub fn chance(p_value: f64) -> String {
    if p_value < 1e-4 { "p < 1e-4".into() } else { format!("p = {p_value:.0e}") }
}

/// A figure without unit: two decimals below ten, one below a hundred.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
pub fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => name.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The first of the names in a sentence, and how many others there are: `a, b and 3 other targets`.
pub fn few(names: &[String], most: usize, others: &str) -> String {
    let mut shown = names[..names.len().min(most)].to_vec();
    if names.len() > most {
        shown.push(plural((names.len() - most) as u64, others));
    }
    list(&shown)
}

/// Names of what is used together: `a + b`. Of more than eight the first four stand, and how many others there are.
pub fn together(names: &[&str]) -> String {
    if names.len() <= MAX_TOGETHER {
        return names.join(" + ");
    }
    let shown = &names[..MAX_TOGETHER / 2];
    format!("{} + {} more", shown.join(" + "), rdsk_units::grouped((names.len() - shown.len()) as u64))
}

/// The names of targets by their indices, as [`together`] joins them; what comes from devices is not made safe.
pub fn target_names(record: &Record, targets: &[u32]) -> String {
    let name = |&index: &u32| metrics::target(record, index).map_or("?", |target| target.name.as_str());
    together(&targets.iter().map(name).collect::<Vec<_>>())
}

/// A block size as fio spells it: `4K`, `1M`, `512 B`.
pub fn fio_size(bytes: u64) -> String {
    let units = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let whole = units.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    whole.map_or_else(|| format!("{bytes} B"), |(unit, size)| format!("{}{unit}", bytes / size))
}

/// A test in fio's words, without its target: `random 4K reads at QD32`, `sequential buffered 1M writes`,
/// `sequential 64K writes by 4 streams`. Nothing is said of what the document of another program does not hold.
pub fn test(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let op = workload.op;
    match cell.experiment {
        Experiment::Dd => return format!("{op}s of dd"),
        Experiment::Stripe => return format!("{op}s across the stripe"),
        _ => {}
    }
    if workload.jobs.len() > 1 {
        let names: Vec<String> = workload.jobs.iter().map(|job| job.name.clone()).collect();
        return format!("load of {}", few(&names, 3, "other job"));
    }
    let is_headline = cell.experiment == Experiment::Headline;
    let is_align = cell.experiment == Experiment::Align;
    let is_of_paths = matches!(cell.experiment, Experiment::Paths | Experiment::Stream) || is_align;
    let is_sync = workload.tells(Untold::Sync) && workload.sync == Sync::Dsync;
    // Where all tests of a topic have the same order, or places of their own, it distinguishes none.
    let has_pattern = !(is_align || cell.experiment == Experiment::Zones || is_headline && is_sync);
    let state = match workload.cache {
        CacheState::Warm if is_align => Some("cached"),
        CacheState::Cold if is_align => Some("uncached"),
        _ => None,
    };
    let pattern = workload.word(Untold::Pattern).filter(|_| has_pattern);
    let path = workload.word(Untold::Path).filter(|_| is_of_paths || workload.path != IoPath::Direct);
    let (size, sync) = (fio_size(workload.block_bytes), is_sync.then_some("sync"));
    let ops = match workload.jobs.first().filter(|job| job.kinds().count() > 1) {
        Some(job) => list(&kinds(job)),
        None => format!("{op}s"),
    };
    let words: Vec<&str> =
        [state, pattern, path, Some(&size), sync, Some(&ops)].into_iter().flatten().collect();
    format!("{}{}", words.join(" "), conditions(cell))
}

/// `reads`, `writes`, `trims`: what a job asks for.
fn kinds(job: &LoadJob) -> Vec<String> {
    let kinds = [("reads", &job.reads), ("writes", &job.writes), ("trims", &job.trims)];
    kinds.into_iter().filter(|(_, requests)| requests.is_some()).map(|(name, _)| name.to_owned()).collect()
}

/// What follows the noun: ` at +512 B`, ` by 4 streams at QD8`, ` from RAM`.
fn conditions(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let is_headline = cell.experiment == Experiment::Headline;
    let mut text = String::new();
    if workload.shift_bytes > 0 {
        text.push_str(&format!(" at +{} B", workload.shift_bytes));
    }
    if workload.tells(Untold::Sync) && workload.sync == Sync::FsyncAtEnd {
        text.push_str(" with a final fsync");
    }
    if workload.streams > 1 || workload.at_once.is_some() {
        text.push_str(&format!(" by {}", issuers(workload)));
    }
    if is_headline || workload.queue_depth > 1 {
        text.push_str(&format!(" at QD{}", workload.queue_depth));
    }
    if cell.name().ends_with("-huge") {
        text.push_str(" from huge pages");
    }
    if workload.cache == CacheState::Warm && cell.experiment != Experiment::Align {
        text.push_str(" from RAM");
    }
    text
}

/// `4 streams`, `2 hosts`.
pub fn issuers(workload: &rdsk_model::Workload) -> String {
    match workload.at_once {
        Some(at_once) => plural(u64::from(at_once.count()), at_once.noun()),
        None => plural(u64::from(workload.streams), "stream"),
    }
}

/// A test as the label of a row or the subject of a figure, where [`test()`] is its name in a sentence: `random write 4K QD32`, `sync write 4K QD1`, `write 64K, 4 streams`, `paths: read 1M direct`. What another
/// program measured keeps its own name.
pub fn test_label(cell: &CellRecord) -> String {
    let workload = &cell.workload;
    let (op, size) = (workload.op, fio_size(workload.block_bytes));
    match (cell.experiment, workload.sync) {
        (Experiment::Headline, Sync::None) => {
            let memory = if cell.name().ends_with("-huge") { ", huge pages" } else { "" };
            format!("{} {op} {size} QD{}{memory}", workload.pattern, metrics::wanted_depth(workload))
        }
        (Experiment::Headline, _) => format!("sync {op} {size} QD{}", metrics::wanted_depth(workload)),
        (Experiment::Scale, _) => {
            format!("{op} {size}, {}", issuers(workload))
        }
        (Experiment::Paths | Experiment::Stream | Experiment::Align, _) => {
            let name = cell.name();
            let column = name.split('/').nth(2).unwrap_or_default();
            let shift =
                name.rsplit_once('+').map_or_else(String::new, |(_, bytes)| format!(" at +{bytes} B"));
            format!("{}: {op} {size} {column}{shift}", cell.experiment)
        }
        (Experiment::Zones | Experiment::Stripe, _) => format!("{}: {op} {size}", cell.experiment),
        _ => cell.name().to_owned(),
    }
}

/// `1 write`, `2 writes`, `2 flushes`.
pub fn plural(count: u64, noun: &str) -> String {
    let ending = match count {
        1 => "",
        _ if noun.ends_with("sh") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", rdsk_units::grouped(count))
}

/// The text with a capital letter at its start and a full stop at its end. A name stays as it is spelled: `md0`, `io_uring`.
pub fn sentence(text: &str) -> String {
    let is_of_names = |letter: char| letter.is_ascii_digit() || letter == '_';
    if text.split(' ').next().is_some_and(|word| word.contains(is_of_names)) {
        return format!("{text}.");
    }
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, with};
    use rdsk_model::{Op, Pattern};

    #[test]
    fn tests_are_named_as_fio_would() {
        let record = crate::fixtures::run_on_three_paths();
        let cases = [
            ("headline/read/random/qd32", "random 4K reads at QD32"),
            ("headline/write/durable", "4K sync writes at QD1"),
            ("paths/read/direct", "sequential direct 1M reads"),
            ("paths/read/cached", "sequential buffered 1M reads from RAM"),
            ("stream/write/direct-dsync", "sequential direct 16K sync writes"),
        ];
        for (id, words) in cases {
            let cell = record.cell(id).unwrap_or_else(|| panic!("no {id}"));
            assert_eq!(test(cell), words, "{id}");
        }
        let load = crate::fixtures::load();
        assert_eq!(test(&load.cells[0]), "load of database and log");
        let mix = with(load.cells[0].clone(), |cell| drop(cell.workload.jobs.pop()));
        assert_eq!(test(&mix), "sequential 8K reads and writes");
        assert_eq!([fio_size(512), fio_size(1 << 30), fio_size(1536)], ["512 B", "1G", "1536 B"]);
    }

    #[test]
    fn sentences() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let cases = [
            (list(&[]), ""),
            (list(&names[..1]), "a"),
            (list(&names[..2]), "a and b"),
            (list(&names), "a, b and c"),
            (together(&["a", "b"]), "a + b"),
            (together(&["x"; 8]), "x + x + x + x + x + x + x + x"),
            (together(&["x"; 30_000]), "x + x + x + x + 29,996 more"),
            (plural(1, "write"), "1 write"),
            (plural(2048, "write"), "2,048 writes"),
            (times(3.444), "3.44x"),
            (times(250.0), "250x"),
            (times(f64::INFINITY), "n/a"),
            (plus_minus(0.012), "±1.2%"),
            (plus_minus(1.0), "±100%"),
            (plus_minus(1.1), "±>100%"),
            (interval(2.016, 15.74), "The 95% interval is 2.02 to 15.7."),
            (chance(0.0021), "p = 2e-3"),
            (chance(3e-9), "p < 1e-4"),
            (sentence("the array is busy"), "The array is busy."),
            (sentence("md0 is busy"), "md0 is busy."),
            (sentence("io_uring works"), "io_uring works."),
            (figure(0.98), "0.98"),
            (figure(132.7), "133"),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn labels_say_what_a_test_did() {
        let test_of = |id: &str, experiment, change: fn(&mut CellRecord)| {
            let cell = with(cell(id, Op::Write, IoPath::Direct, 4096, 1, 1), |cell| {
                cell.experiment = experiment;
                change(cell);
            });
            test_label(&cell)
        };
        let random = |cell: &mut CellRecord| {
            (cell.workload.pattern, cell.workload.queue_depth) = (Pattern::Random, 32);
        };
        assert_eq!(
            test_of("headline/write/random-qd32", Experiment::Headline, random),
            "random write 4K QD32"
        );
        let synced = |cell: &mut CellRecord| cell.workload.sync = Sync::Dsync;
        assert_eq!(test_of("headline/write/durable@1", Experiment::Headline, synced), "sync write 4K QD1");
        let streams = |cell: &mut CellRecord| {
            (cell.workload.block_bytes, cell.workload.streams) = (65_536, 4);
        };
        assert_eq!(test_of("scale/write/64k/4", Experiment::Scale, streams), "write 64K, 4 streams");
        let none = |_: &mut CellRecord| ();
        assert_eq!(test_of("paths/write/direct@1", Experiment::Paths, none), "paths: write 4K direct");
        assert_eq!(
            test_of("align/write/uncached-buffered/4096+27", Experiment::Align, none),
            "align: write 4K uncached-buffered at +27 B"
        );
        assert_eq!(test_of("zones/write/4k", Experiment::Zones, none), "zones: write 4K");
        assert_eq!(test_of("job1/write", Experiment::Fio, none), "job1/write");
    }
}
