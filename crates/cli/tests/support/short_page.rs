//! A short page taken apart and held against its Record: each line by itself, by what the analysis gives for it. It shares no
//! code with what drew the page.

use rdsk_analysis::comparison::{Kind, Ratio, is_of_memory_alone};
use rdsk_analysis::lasting::lasting_of;
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{
    CellRecord, Estimate, Experiment, Finding, Op, Pattern, Record, Severity, StopReason, Sync, VerdictCode,
};
use rdsk_units::Bytes;

/// Lines of one screen, and columns of its lines.
const MAX_LINES: usize = 40;
const MAX_COLUMNS: usize = 80;

/// Everything that the page says, line by line.
pub(crate) fn check(page: &str, record: &Record) {
    assert!(page.lines().count() <= MAX_LINES, "{} lines:\n{page}", page.lines().count());
    for line in page.lines() {
        assert!(line.chars().count() <= MAX_COLUMNS && line.trim_end() == line, "{line}");
    }
    let parts = parts(page);
    below_the_table(&parts.notes.join(" "), record);
    top(&parts.top, record);
    match record.targets.len() {
        1 => table(&parts.table, record),
        // A table for each target, which has the form of a single one.
        2 => {}
        _ => rows_of_targets(&parts.table, record),
    }
    bullets(&parts.bullets, record);
    topics(&parts.topics, record);
    units(&parts.notes.join(" "));
    parts.bullets.iter().chain(&parts.topics).for_each(|line| units(line));
    let last = page.lines().last().unwrap_or_default();
    assert!(last.starts_with("Details: ") && last.contains("--details"), "{last}");
}

/// The code of the finding that the first bullet says; `None` without a bullet.
pub(crate) fn first_bullet(page: &str, record: &Record) -> Option<String> {
    bullets(&parts(page).bullets, record).first().map(|finding| finding.code.clone())
}

/// The answers of the page, a line for each topic.
pub(crate) fn topics_of(page: &str) -> Vec<String> {
    parts(page).topics
}

/// No figure stands by itself: behind a number comes its unit, or what is counted, or the number that a rate or a size goes to.
fn units(line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    for (place, word) in words.iter().enumerate() {
        let number = word.trim_matches(['(', ')', ',', ';', ':', '.']);
        // `4K` and `1M` are sizes in fio's spelling.
        let digits = number.trim_end_matches('k');
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
        // A number that ends a clause counts what the words before it name: `at most 4`.
        let ends_clause = word.ends_with([')', ';', ':', '.']) || place + 1 == words.len();
        let is_named = place > 0 && ["against", "in", "needs", "of"].contains(&words[place - 1]);
        if !is_number || (ends_clause && is_named) {
            continue;
        }
        let next = words.get(place + 1).copied().unwrap_or_default();
        let is_unit = next.starts_with(|c: char| c.is_alphabetic() || "→…".contains(c));
        assert!(is_unit || word.ends_with(','), "{word} has no unit: {line}");
    }
}

/// The parts of a page, the lines of each sentence joined.
struct Parts {
    top: String,
    table: Vec<String>,
    /// Below the table: what marks mean, and how much was written.
    notes: Vec<String>,
    bullets: Vec<String>,
    topics: Vec<String>,
}

fn parts(page: &str) -> Parts {
    let lines: Vec<&str> = page.lines().collect();
    let blank = lines.iter().position(|line| line.is_empty()).unwrap_or(0);
    let end = |from: usize| {
        lines[from..].iter().position(|line| line.is_empty()).map_or(lines.len(), |at| from + at)
    };
    let after = |head: &str| lines.iter().position(|line| *line == head).map(|at| at + 1);
    let is_note = |line: &&str| {
        let is_mark = line
            .as_bytes()
            .get(..4)
            .is_some_and(|start| start[0].is_ascii_lowercase() && start[1..] == *b" = ");
        is_mark || ["Writes: ", "After idle: "].iter().any(|lead| line.starts_with(lead))
    };
    let sentences = |from: Option<usize>, is_first: &dyn Fn(&str) -> bool| -> Vec<String> {
        let Some(from) = from else { return Vec::new() };
        let mut joined: Vec<String> = Vec::new();
        for line in &lines[from..end(from)] {
            match joined.last_mut().filter(|_| !is_first(line)) {
                Some(sentence) => *sentence = format!("{sentence} {}", line.trim()),
                None => joined.push((*line).to_owned()),
            }
        }
        joined
    };
    let headline: Vec<&str> = match lines.get(blank + 1) {
        Some(&"What to know" | &"By topic") | None => Vec::new(),
        Some(_) => lines[blank + 1..end(blank + 1)].to_vec(),
    };
    let notes = headline.iter().position(is_note).unwrap_or(headline.len());
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>();
    let mut topics = sentences(after("By topic"), &|line| !line.starts_with("  "));
    // Below the names of several targets stands which of them is faster.
    let of_targets = lines[..blank].iter().skip(2).filter(|line| !line.starts_with(' '));
    topics.push(of_targets.fold(" targets".to_owned(), |text, line| format!("{text} {line}")));
    topics.retain(|text| text != " targets");
    Parts {
        top: lines[..blank].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
        table: owned(&headline[..notes]),
        notes: owned(&headline[notes..]),
        bullets: sentences(after("What to know"), &|line| line.starts_with(" • ")),
        topics,
    }
}

fn top(text: &str, record: &Record) {
    assert!(text.starts_with(&format!("rdsk {} ", record.rdsk_version)), "{text}");
    let took = match record.simulated_ns {
        Some(ns) => format!("; simulated {}", words::nanos(ns)),
        None => format!("; took {}", words::nanos(record.elapsed_ns)),
    };
    assert!(text.contains(&took), "{took}: {text}");
    for target in record.targets.iter().take(1) {
        let size = Bytes(target.size_bytes).approx();
        assert!(text.contains(&target.name) && text.contains(&size), "{} of {size}: {text}", target.name);
    }
}

/// Whether a number of the page is this value, rounded to the digits that it shows.
pub(crate) fn is_rounded(number: &str, value: f64) -> bool {
    let Ok(shown) = number.replace(',', "").parse::<f64>() else { return false };
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let step = 10_f64.powi(-i32::try_from(decimals).expect("a few digits"));
    (shown - value).abs() <= step * 0.500_001
}

#[track_caller]
fn rounded(number: &str, value: f64, what: &str) {
    assert!(is_rounded(number, value), "{what}: {number} is not {value}");
}

fn unit(name: &str) -> f64 {
    match name {
        "GiB/s" => 1_073_741_824.0,
        "MiB/s" => 1_048_576.0,
        "KiB/s" => 1024.0,
        "s" => 1e9,
        "ms" => 1e6,
        "µs" => 1e3,
        "ns" => 1.0,
        _ => panic!("{name} is no unit of a headline"),
    }
}

/// Whether the page says of every run with writes over how many bytes they were measured, and what its marks mean.
fn below_the_table(text: &str, record: &Record) {
    let writes = record.cells.iter().filter(|cell| {
        cell.experiment == Experiment::Headline && cell.workload.op == Op::Write && metrics::ran(cell)
    });
    assert_eq!(text.contains("Writes: "), writes.clone().next().is_some(), "{text}");
    let is_any_burst =
        writes.clone().any(|cell| lasting_of(record, cell).is_some_and(|lasting| lasting.is_burst));
    let names_burst = text.contains("b = burst") && text.contains("; lasting rate: ");
    assert_eq!(names_burst, is_any_burst, "{text}");
    let went_on = text.contains(" more: ") || text.contains(" more in ");
    assert_eq!(went_on, !record.sustained.is_empty(), "{text}");
}

/// One direction of a table: where it begins, and which percentiles it has.
struct Column {
    op: Op,
    begin: usize,
    percentiles: Vec<&'static str>,
}

fn columns(head: &str) -> Vec<Column> {
    let begin = |name: &str| head.find(name);
    let starts: Vec<(Op, usize)> = [(Op::Read, "READ"), (Op::Write, "WRITE")]
        .into_iter()
        .filter_map(|(op, name)| Some((op, begin(name)?)))
        .collect();
    let end = |index: usize| starts.get(index + 1).map_or(head.len(), |next| next.1);
    let percentiles = |text: &str| ["p50", "p99"].into_iter().filter(|name| text.contains(name)).collect();
    starts
        .iter()
        .enumerate()
        .map(|(index, &(op, begin))| Column { op, begin, percentiles: percentiles(&head[begin..end(index)]) })
        .collect()
}

/// The headline of one target: each row holds the cells that its label and its columns name.
fn table(lines: &[String], record: &Record) {
    let is_shown =
        |cell: &&CellRecord| cell.experiment == Experiment::Headline && !is_of_memory_alone(record, cell);
    let cells: Vec<&CellRecord> = record.cells.iter().filter(is_shown).collect();
    assert_eq!(lines.is_empty(), cells.is_empty(), "the headline is missing");
    let (mut counted, mut heads) = (0, Vec::new());
    for row in lines {
        if row.starts_with(' ') {
            heads = columns(row);
            continue;
        }
        let row: Vec<char> = row.chars().collect();
        let part = |from: usize, to: usize| {
            row[from.min(row.len())..to.min(row.len())].iter().collect::<String>().trim().to_owned()
        };
        let label = part(0, heads[0].begin);
        for (index, column) in heads.iter().enumerate() {
            let text = part(column.begin, heads.get(index + 1).map_or(row.len(), |next| next.begin));
            if text.is_empty() {
                continue;
            }
            let cell = cells.iter().find(|cell| cell.workload.op == column.op && is_labelled(cell, &label));
            let cell = cell.unwrap_or_else(|| panic!("no {} is {label}", column.op));
            figures(record, &text, cell, &column.percentiles);
            counted += 1;
        }
    }
    assert_eq!(counted, cells.len(), "cells of the headline in {lines:#?}");
}

/// The headline of many targets: a row for each, its cells under their heads.
fn rows_of_targets(lines: &[String], record: &Record) {
    let heads = [
        ("seq read", Op::Read, Pattern::Sequential, Sync::None),
        ("seq write", Op::Write, Pattern::Sequential, Sync::None),
        ("random read", Op::Read, Pattern::Random, Sync::None),
        ("sync write", Op::Write, Pattern::Random, Sync::Dsync),
    ];
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let mut counted = 0;
    for line in lines {
        if line.ends_with("--details") {
            continue;
        }
        if line.starts_with(' ') {
            // The longest heads first: one ends like another.
            let mut head = line.clone();
            columns.clear();
            for index in [3, 2, 1, 0] {
                if let Some(at) = head.find(heads[index].0) {
                    columns.push((head[..at].chars().count(), index));
                    head.replace_range(at..at + heads[index].0.len(), &" ".repeat(heads[index].0.len()));
                }
            }
            columns.sort_unstable();
            continue;
        }
        let row: Vec<char> = line.chars().collect();
        let part = |from: usize, to: usize| {
            row[from.min(row.len())..to.min(row.len())].iter().collect::<String>().trim().to_owned()
        };
        let name = part(0, columns[0].0);
        // Of a long name the end stands in its row.
        let is_named = |target: &&rdsk_model::Target| {
            target.name == name || name.strip_prefix('…').is_some_and(|end| target.name.ends_with(end))
        };
        let target = record.targets.iter().find(is_named).expect("the row of a target");
        for (place, (from, index)) in columns.iter().enumerate() {
            let text = part(*from, columns.get(place + 1).map_or(row.len(), |next| next.0));
            let (_, op, pattern, sync) = heads[*index];
            let is_it = |cell: &&CellRecord| {
                let workload = &cell.workload;
                cell.experiment == Experiment::Headline
                    && workload.targets == [target.index]
                    && (workload.op, workload.sync) == (op, sync)
                    && (sync == Sync::Dsync || workload.pattern == pattern)
                    && (pattern == Pattern::Sequential || metrics::wanted_depth(workload) == 1)
            };
            figures(record, &text, record.cells.iter().find(is_it).expect("a cell under its head"), &[]);
            counted += 1;
        }
    }
    assert!(counted >= 2 * record.targets.len(), "{lines:#?}");
}

/// `Random 4K QD32`, or `Rand 4K QD32` where the page is narrow for it.
fn is_labelled(cell: &CellRecord, label: &str) -> bool {
    let workload = &cell.workload;
    let names = match (workload.sync, workload.pattern) {
        (Sync::None, Pattern::Sequential) => ["Sequential", "Seq"],
        (Sync::None, Pattern::Random) => ["Random", "Rand"],
        _ => ["Sync write", "Sync"],
    };
    let size = match workload.block_bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    };
    let depth = metrics::wanted_depth(workload);
    names.iter().any(|name| label == format!("{name} {size} QD{depth}"))
}

/// `19.7k IOPS ±27% q  31 µs  107 µs`, `2.35 GiB/s ±3%`.
fn figures(record: &Record, text: &str, cell: &CellRecord, percentiles: &[&str]) {
    let mut left = text.split_whitespace().peekable();
    let rate = left.next().expect("a cell has a rate");
    if rate == "–" {
        assert_eq!(cell.result.ops_per_s, None, "{}", cell.id);
        return;
    }
    let estimate = match left.next().expect("a rate has its unit") {
        "IOPS" => {
            let estimate = cell.result.ops_per_s.expect("it is shown");
            let (number, size) = match rate.strip_suffix(['k', 'M']) {
                Some(number) => (number, if rate.ends_with('k') { 1e3 } else { 1e6 }),
                None => (rate, 1.0),
            };
            rounded(number, estimate.mean / size, &cell.id);
            estimate
        }
        name => {
            let estimate = cell.result.bytes_per_s.expect("it is shown");
            rounded(rate, estimate.mean / unit(name), &cell.id);
            estimate
        }
    };
    interval(&mut left, estimate, &cell.id);
    let is_mark = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let marks = left.next_if(is_mark).unwrap_or_default();
    let is_burst = lasting_of(record, cell).is_some_and(|lasting| lasting.is_burst);
    assert_eq!(marks.contains('b'), is_burst, "{}: {text}", cell.id);
    assert_eq!(!marks.replace('b', "").is_empty(), !is_plain(record, cell), "{}: {text}", cell.id);
    for name in percentiles {
        let Some(shown) = left.next() else {
            assert!(cell.result.latency_ns.is_none(), "{}: {text}", cell.id);
            return;
        };
        let latency = cell.result.latency_ns.as_ref().expect("it is shown");
        match if *name == "p50" { latency.p50 } else { latency.p99 } {
            Some(ns) => {
                let size = unit(left.next().expect("a latency has its unit"));
                rounded(shown, ns as f64 / size, &cell.id);
            }
            None => assert_eq!(shown, "–", "{}", cell.id),
        }
    }
    assert_eq!(left.next(), None, "{}: {text}", cell.id);
}

fn interval<'a>(left: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, estimate: Estimate, id: &str) {
    let Some(half) = estimate.margin() else { return };
    match left.next().expect("a rate has its margin") {
        "unstable" => assert!(!half.is_finite() || half > 0.5, "{id}: {half}"),
        "±<1%" => assert!(half < 0.005, "{id}: {half}"),
        shown => {
            let number = shown.strip_prefix('±').and_then(|shown| shown.strip_suffix('%'));
            rounded(number.expect("a margin in percent"), half * 100.0, id);
        }
    }
}

/// Whether nothing has to be said of the cell beside its figure.
fn is_plain(record: &Record, cell: &CellRecord) -> bool {
    let verdict = cell.verdict.as_ref().map(|verdict| verdict.code);
    let is_whole = !rdsk_analysis::passes::has_no_whole_pass(cell)
        && !matches!(
            cell.result.stop,
            StopReason::Error | StopReason::Interrupted | StopReason::NotApplicable
        );
    let is_contended =
        rdsk_analysis::contention::contention(cell).is_some_and(|contention| contention.is_much());
    let is_deep = metrics::wanted_depth(&cell.workload) == 1 || metrics::has_reached_depth(cell);
    verdict == Some(VerdictCode::Device)
        && is_whole
        && !is_contended
        && is_deep
        && is_steady(record, cell)
        && !is_into_cache(record, cell)
}

fn is_into_cache(record: &Record, cell: &CellRecord) -> bool {
    record.findings.iter().any(|finding| finding.code == "cached-write" && finding.cells.contains(&cell.id))
}

fn is_steady(record: &Record, cell: &CellRecord) -> bool {
    let codes = ["drift", "slow-start", "fast-start", "slows-down", "write-cache-full"];
    let says_so =
        |finding: &&Finding| codes.contains(&finding.code.as_str()) && finding.cells.contains(&cell.id);
    !record.findings.iter().any(|finding| says_so(&finding))
}

/// What holds for every system of its kind, or is a mark or a topic of the page: no bullet.
const TEXTBOOK: [&str; 4] = ["larger-blocks-help", "page-write-no-read", "cached-write", "misaligned-write"];

fn bullets<'a>(lines: &[String], record: &'a Record) -> Vec<&'a Finding> {
    assert!(lines.len() <= 4, "{lines:#?}");
    let said = |finding: &Finding| {
        let clause = finding.effect.as_ref().map_or(&finding.title, |effect| &effect.text);
        words::sentence(clause).trim_end_matches('.').to_owned()
    };
    let of_line = |line: &String| -> &'a Finding {
        let text = line.trim_start_matches(" • ");
        // With several targets, the name of the one that it is about comes first.
        let names = record.targets.iter().map(|target| format!("{}: ", target.name));
        let text = names.into_iter().find_map(|name| text.strip_prefix(name.as_str())).unwrap_or(text);
        let start = text.trim_end_matches([' ', '…']);
        let matching = record.findings.iter().find(|finding| {
            let said = said(finding);
            text.starts_with(&said) || (text.ends_with('…') && said.starts_with(start))
        });
        matching.unwrap_or_else(|| panic!("no finding says: {line}"))
    };
    let shown: Vec<&Finding> = lines.iter().map(of_line).collect();
    for (line, finding) in lines.iter().zip(&shown) {
        assert!(!TEXTBOOK.contains(&finding.code.as_str()), "{line}");
        let Some(effect) = &finding.effect else { continue };
        let is_small = effect.factor.is_some_and(|factor| factor < 1.15);
        assert!(!is_small || finding.code == "stalls", "{line}");
        if let Some((low, high)) = effect.low.zip(effect.high) {
            let range = format!("({}–{})", words::figure(low), words::figure(high));
            assert!(line.contains(&range) || line.ends_with('…'), "{range}: {line}");
        }
    }
    // What stops, or does not last, comes before everything but a figure that is not the device's.
    let has = |code: &str| record.findings.iter().any(|finding| finding.code == code);
    let place = |code: &str| shown.iter().position(|finding| finding.code == code);
    let is_foreign = |finding: &&&Finding| finding.severity == Severity::Invalid;
    let foreign = shown.iter().filter(is_foreign).count();
    if has("stalls") && foreign == 0 {
        assert_eq!(place("stalls"), Some(0), "{lines:#?}");
    }
    shown
}

/// Every `1.88x (1.16–3.06)` of a line.
fn ratios(line: &str) -> Vec<[f64; 3]> {
    let mut failures = Vec::new();
    for (at, _) in line.match_indices("x (") {
        let Some(mean) = line[..at].split(' ').next_back().and_then(|mean| mean.parse().ok()) else {
            continue;
        };
        let inside = line[at + "x (".len()..].split(')').next().unwrap_or_default();
        let Some((low, high)) = inside.split_once('–') else { continue };
        // That of all tests of two targets is none of their comparisons.
        if line[at..].split_once(')').is_some_and(|(_, rest)| rest.starts_with(" on average")) {
            continue;
        }
        if let (Ok(low), Ok(high)) = (low.parse(), high.parse()) {
            failures.push([mean, low, high]);
        }
    }
    failures
}

fn is_shown([mean, low, high]: [f64; 3], of: (f64, f64, f64)) -> bool {
    let near = |shown: f64, value: f64| {
        let step = if value.abs() < 9.995 {
            0.01
        } else if value.abs() < 99.95 {
            0.1
        } else {
            1.0
        };
        (shown - value).abs() <= step * 0.500_001
    };
    near(mean, of.0) && near(low, of.1) && near(high, of.2)
}

fn topics(lines: &[String], record: &Record) {
    let analysis = Analysis::of(record);
    let mut asked: Vec<&str> = record.cells.iter().map(|cell| cell.experiment.as_str()).collect();
    asked.retain(|name| *name != "headline");
    for name in asked {
        assert!(lines.iter().any(|line| line.trim().split(' ').next() == Some(name)), "no answer to {name}");
    }
    for line in lines {
        let name = line.trim().split(' ').next().unwrap_or_default();
        let is_named = |experiment: Experiment| experiment.as_str() == name;
        let compared: Vec<Ratio> = analysis
            .families()
            .iter()
            .filter(|family| is_named(family.experiment) || name == "targets")
            .flat_map(|family| &family.comparisons)
            .filter(|comparison| comparison.kind != Kind::Targets || name == "targets")
            .filter_map(|comparison| comparison.ratio.ok())
            .flat_map(|ratio| [ratio, ratio.turned()])
            .collect();
        let gains: Vec<(f64, f64, f64)> = analysis
            .scale()
            .iter()
            .flat_map(|grid| &grid.lines)
            .flat_map(|line| &line.points)
            .filter_map(|point| {
                let (low, high) = point.speed_up_interval?;
                Some((point.speed_up?, low, high))
            })
            .collect();
        for shown in ratios(line) {
            let is_compared =
                compared.iter().any(|ratio| is_shown(shown, (ratio.mean, ratio.low, ratio.high)));
            assert!(is_compared, "{shown:?} is no comparison of {name}: {line}");
        }
        match name {
            "zones" => zones(line, &analysis),
            "scale" => gained(line, &gains),
            _ => {}
        }
    }
}

/// `2.03x at 64 KiB (1.65–2.50)`.
fn gained(line: &str, gains: &[(f64, f64, f64)]) {
    for (at, _) in line.match_indices("x at ") {
        let mean: f64 =
            line[..at].split(' ').next_back().and_then(|mean| mean.parse().ok()).expect("a factor");
        // The block size, then the interval, if there is one.
        let behind = line[at + "x at ".len()..].splitn(3, ' ').nth(2).unwrap_or_default();
        let inside = behind.strip_prefix('(').map(|inside| inside.split(')').next().unwrap_or_default());
        let Some((low, high)) = inside.and_then(|inside| inside.split_once('–')) else { continue };
        let (Ok(low), Ok(high)) = (low.parse(), high.parse()) else { continue };
        let is_one = gains.iter().any(|gain| is_shown([mean, low, high], *gain));
        assert!(is_one, "{mean} ({low} to {high}) is no gain: {line}");
    }
}

/// `1.47x from start to end: 33.5 → 22.8 MiB/s (1M reads, QD1, 3 zones)`, `same speed everywhere: 66.8 MiB/s at the start, 66.8 MiB/s at
/// the end (1M reads, QD1, 40 positions, spread 0%)`, or `no clear zones: 9 in 10 positions give 1.87–2.26 GiB/s (…)`.
fn zones(line: &str, analysis: &Analysis<'_>) {
    let cells = analysis.cells.iter().filter(|cell| cell.experiment == Experiment::Zones);
    let measured: Vec<&rdsk_analysis::zones::Zones> = cells.filter_map(|cell| analysis.zones(cell)).collect();
    let figure = |words: &[&str]| match words {
        [.., number, unit] => number.parse::<f64>().ok().map(|_| (number.to_string(), self::unit(unit))),
        _ => None,
    };
    let before = |mark: &str| {
        let (left, _) = line.split_once(mark)?;
        figure(&left.split([' ', ':']).collect::<Vec<_>>())
    };
    if let Some(((start, start_unit), (end, end_unit))) = before(" at the start").zip(before(" at the end")) {
        let is_it = measured.iter().any(|zones| {
            let rate = |rate: Option<f64>, unit: f64| rate.map_or(f64::NAN, |rate| rate / unit);
            is_rounded(&start, rate(zones.outer_bytes_per_s, start_unit))
                && is_rounded(&end, rate(zones.inner_bytes_per_s, end_unit))
        });
        assert!(is_it, "{line}");
    }
    if let Some((_, given)) = line.split_once(" positions give ") {
        let words: Vec<&str> = given.split(' ').collect();
        let (low, high) = words[0].split_once('–').expect("two rates");
        let unit = self::unit(words[1]);
        let is_it = measured.iter().any(|zones| {
            let rates =
                || zones.positions.iter().map(|position| zones.block_bytes as f64 * 1e9 / position.median_ns);
            let share = |is_in: &dyn Fn(f64) -> bool| rates().filter(|rate| is_in(*rate)).count();
            let outside = zones.positions.len().div_ceil(20);
            let (low, high): (f64, f64) =
                (low.parse::<f64>().expect("a rate") * unit, high.parse::<f64>().expect("a rate") * unit);
            // A rounded figure is up to half of its last digit off.
            share(&|rate| rate < low * 0.994) <= outside
                && share(&|rate| rate > high * 1.006) <= outside
                && rates().any(|rate| rate < low * 1.1)
                && rates().any(|rate| rate > high * 0.9)
        });
        assert!(is_it, "{line}");
    }
    if let Some((fast, (slow, unit))) = line.split_once(" → ").and_then(|(left, right)| {
        let right: Vec<&str> = right.split(' ').take(2).collect();
        Some((left.rsplit(' ').next()?, figure(&right)?))
    }) {
        let count = line.split_once(" zones").and_then(|(left, _)| left.rsplit(' ').next()?.parse().ok());
        let is_it = measured.iter().any(|zones| {
            count.is_none_or(|count: usize| zones.zones.len() == count)
                && is_rounded(fast, zones.fastest().bytes_per_s / unit)
                && is_rounded(&slow, zones.slowest().bytes_per_s / unit)
        });
        assert!(is_it, "{line}");
    }
}
