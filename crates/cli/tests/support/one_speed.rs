//! One disk has one speed: what the page of a run quotes, its screens by topic quote too, and two tests that ask the same of a disk and
//! differ are named together. It parses what people read and shares no code with what drew it.

use super::short_page::{is_rounded, topics_of};
use rdsk_model::{CellRecord, Experiment, Op, Pattern, Record, Sync, VerdictCode};

/// Everything of one run: its page, its screens by topic, its Record.
pub(crate) fn check(page: &str, details: &str, record: &Record) {
    let details_in_one_line = details.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in topics_of(page) {
        let (name, answer) = line.trim().split_once(' ').expect("a topic has an answer");
        // Of scale, the screen has a table whose factors have a digit more; they are held against the Record by themselves.
        if ["scale", "targets"].contains(&name) {
            continue;
        }
        for figure in figures(answer) {
            assert!(
                details_in_one_line.contains(&figure),
                "{figure} of {name} is not on its screen:\n{details}"
            );
        }
    }
    if record.targets.len() == 1 {
        headline(details, record);
    }
    twins(&details_in_one_line, record);
}

/// The figures of an answer: each factor with its interval where it has one, each rate with its unit.
fn figures(answer: &str) -> Vec<String> {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let plain = |word: &str| word.trim_end_matches([',', ';', '.', ')', ':']).to_owned();
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let pairs = words.windows(2).filter(|pair| is_number(pair[0]));
    let figure = |pair: &[&str]| match (pair[0].strip_suffix('x'), pair[1]) {
        (Some(_), range) if range.starts_with('(') && range.contains('–') && range.contains(')') => {
            Some(format!("{} {})", pair[0], plain(range)))
        }
        (Some(_), _) => Some(pair[0].to_owned()),
        (None, unit) if unit.contains("/s") || unit.starts_with("IOPS") => {
            Some(format!("{} {}", pair[0], plain(unit)))
        }
        _ => None,
    };
    pairs.filter_map(figure).collect()
}

/// The rows of the screen `HEADLINE`: MiB/s of what is sequential, I/Os per second of everything else.
fn headline(details: &str, record: &Record) {
    let rows: Vec<&str> = details
        .lines()
        .skip_while(|line| !line.starts_with("HEADLINE: "))
        .skip(1)
        .take_while(|line| !line.is_empty() && !line.starts_with("  Ranges"))
        .filter(|line| ["  sequential ", "  random ", "  sync "].iter().any(|lead| line.starts_with(lead)))
        .filter(|line| !line.contains(": "))
        .collect();
    let cells = record.cells.iter().filter(|cell| cell.experiment == Experiment::Headline);
    for cell in cells.filter(|cell| cell.result.bytes_per_s.is_some()) {
        let workload = &cell.workload;
        let (kind, figure) = match (workload.sync, workload.pattern) {
            (Sync::Dsync, _) => ("sync", cell.result.ops_per_s),
            (_, Pattern::Sequential) => ("sequential", cell.result.bytes_per_s),
            _ => ("random", cell.result.ops_per_s),
        };
        let scale = if kind == "sequential" { 1_048_576.0 } else { 1.0 };
        let value = figure.expect("both rates are known").mean / scale;
        let lead = format!("  {kind} {}", workload.op);
        let shows =
            |row: &&&str| row.starts_with(&lead) && row.split_whitespace().any(|word| shown(word, value));
        assert!(rows.iter().any(|row| shows(&row)), "{}: {value} in {rows:#?}", cell.id);
    }
}

/// Whether a word of a table is this value: `38.4`, `15,123`, `12.3k`.
fn shown(word: &str, value: f64) -> bool {
    match word.strip_suffix('k') {
        Some(thousands) => is_rounded(thousands, value / 1e3),
        None => {
            is_rounded(word, value)
                || word.strip_suffix('M').is_some_and(|word| is_rounded(word, value / 1e6))
        }
    }
}

/// Tests of two topics with the same direction, size, depth, path and place, whose rates are apart by more than 5 %: both stand in one
/// sentence.
fn twins(details: &str, record: &Record) {
    let of_device =
        |cell: &CellRecord| cell.verdict.as_ref().map(|verdict| verdict.code) == Some(VerdictCode::Device);
    let asked = |cell: &CellRecord| {
        let work = &cell.workload;
        let place = (work.offset_bytes, work.shift_bytes, work.targets.clone());
        let how = (work.pattern.as_str(), work.path.as_str(), work.sync.as_str(), work.cache.as_str());
        (work.op == Op::Read, work.block_bytes, work.queue_depth, work.streams, how, place)
    };
    for (at, cell) in record.cells.iter().enumerate() {
        let before = record.cells[..at].iter().filter(|other| other.experiment != cell.experiment);
        for other in before.filter(|other| asked(other) == asked(cell) && of_device(cell) && of_device(other))
        {
            let has_points = cell.workload.points.is_some() || other.workload.points.is_some();
            let (Some(here), Some(there)) = (cell.result.bytes_per_s, other.result.bytes_per_s) else {
                continue;
            };
            let apart = (here.mean / there.mean - 1.0).abs().max((there.mean / here.mean - 1.0).abs());
            if has_points || apart <= 0.06 {
                continue;
            }
            let said = format!(" in {}, in repeats of ", other.experiment);
            assert!(details.contains(&said), "{} and {}: {here:?}, {there:?}\n{details}", cell.id, other.id);
        }
    }
}

#[test]
fn figures_of_an_answer_are_found() {
    let paths =
        "1 MiB: direct faster: writes on disk 1.12x (1.07–1.24); equally fast: reads 1.00x (0.98–1.01)";
    assert_eq!(figures(paths), ["1.12x (1.07–1.24)", "1.00x (0.98–1.01)"]);
    let zones = "1.52x from start to end: 34.4 → 22.7 MiB/s (random 1M reads, QD1, 2 zones)";
    assert_eq!(figures(zones), ["1.52x", "22.7 MiB/s"]);
}
