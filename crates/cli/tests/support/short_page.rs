//! A short page taken apart and held against its Record: each line by itself, by what the analysis gives for it. It shares no
//! code with what drew the page.

use rdsk_analysis::comparison::{Kind, Ratio, is_of_memory_alone};
use rdsk_analysis::lasting::lasting_of;
use rdsk_analysis::{Analysis, metrics, words};
use rdsk_model::{
    CellRecord, Estimate, Experiment, Finding, Op, Pattern, Record, Severity, Stake, StopReason, Sync,
    VerdictCode,
};
use rdsk_units::Bytes;

/// Lines of one screen, and columns of its lines.
const MAX_LINES: usize = 45;
const MAX_COLUMNS: usize = 80;

/// Everything that the page says, line by line.
pub(crate) fn check(page: &str, record: &Record) {
    assert!(page.lines().count() <= MAX_LINES, "{} lines:\n{page}", page.lines().count());
    for line in page.lines() {
        assert!(line.chars().count() <= MAX_COLUMNS && line.trim_end() == line, "{line}");
    }
    let mut parts = parts(page);
    let begin =
        parts.table.iter().position(|line| line.starts_with("^ = burst") || line.starts_with("writes  "));
    let below = begin.map_or_else(Vec::new, |begin| parts.table.split_off(begin));
    below_the_table(&below.join(" "), record);
    top(&parts.top, record);
    match record.targets.len() {
        1 => table(&parts.table, record),
        // A table for each target, which has the form of a single one.
        2 => {}
        _ => rows_of_targets(&parts.table, record),
    }
    matters(&parts.matters, record);
    answers(&parts.answers, record);
    others(&parts.others, record);
    let last = page.lines().last().unwrap_or_default();
    assert!(last.starts_with("More: ") && last.ends_with("--details"), "{last}");
}

/// The parts of a page, the lines of each sentence joined.
struct Parts {
    top: String,
    table: Vec<String>,
    matters: Vec<String>,
    answers: Vec<String>,
    others: String,
}

fn parts(page: &str) -> Parts {
    let lines: Vec<&str> = page.lines().collect();
    let blank = lines.iter().position(|line| line.is_empty()).unwrap_or(0);
    let end = |from: usize, heads: &[&str]| {
        let is_head = |line: &&str| line.is_empty() || heads.iter().any(|head| line.starts_with(head));
        lines[from..].iter().position(is_head).map_or(lines.len(), |found| from + found)
    };
    let after = |head: &str| lines.iter().position(|line| *line == head).map(|found| found + 1);
    let last = &["Answers", "verdicts ", "More:"];
    let sentences = |from: Option<usize>, is_first: &dyn Fn(&str) -> bool| -> Vec<String> {
        let Some(from) = from else { return Vec::new() };
        let mut found: Vec<String> = Vec::new();
        for line in &lines[from..end(from, last)] {
            match found.last_mut().filter(|_| !is_first(line)) {
                Some(sentence) => *sentence = format!("{sentence} {}", line.trim()),
                None => found.push((*line).to_owned()),
            }
        }
        found
    };
    let numbered = |line: &str| line.starts_with(|c: char| c.is_ascii_digit()) || line.starts_with("  and ");
    let begin = lines.iter().position(|line| line.starts_with("verdicts "));
    let begin = begin.expect("a page says which figures are not the device's");
    Parts {
        top: lines[..blank].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
        table: lines[blank + 1..end(blank + 1, &["What matters", "Answers", "verdicts "])]
            .iter()
            .map(|line| (*line).into())
            .collect(),
        matters: sentences(after("What matters here"), &numbered),
        answers: sentences(after("Answers"), &|line| !line.starts_with(' ')),
        others: lines[begin..lines.len() - 1].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "),
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
fn is_rounded(number: &str, value: f64) -> bool {
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
    assert_eq!(text.contains("writes   measured over "), writes.clone().next().is_some(), "{text}");
    let is_any_burst = writes.clone().any(|cell| lasting_of(record, cell).is_some_and(|seen| seen.is_burst));
    assert_eq!(text.contains("^ = burst; lasts: "), is_any_burst, "{text}");
    assert_eq!(text.contains("then on for"), !record.sustained.is_empty(), "{text}");
}

/// The headline of one target: each row holds the cells that its label and its columns name.
fn table(lines: &[String], record: &Record) {
    let cells: Vec<&CellRecord> =
        record.cells.iter().filter(|cell| cell.experiment == Experiment::Headline).collect();
    let cells: Vec<&CellRecord> =
        cells.into_iter().filter(|cell| !is_of_memory_alone(record, cell)).collect();
    let Some((head, rows)) = lines.split_first() else {
        assert!(cells.is_empty(), "the headline is missing");
        return;
    };
    let columns: Vec<(Op, usize)> = [Op::Read, Op::Write]
        .into_iter()
        .filter_map(|op| Some((op, head.find(op.as_str()).map(|at| head[..at].chars().count())?)))
        .collect();
    if columns.is_empty() {
        for row in rows {
            let (name, text) = row.split_once("  ").expect("a label and figures");
            let (op, label) = name.split_once(' ').expect("a direction and a workload");
            let found = cells.iter().find(|cell| cell.workload.op.as_str() == op && is_labelled(cell, label));
            figures(record, text, found.unwrap_or_else(|| panic!("no {op} is {label}")));
        }
        assert_eq!(rows.len(), cells.len(), "{lines:#?}");
        return;
    }
    let (mut seen, mut above) = (0, String::new());
    for row in rows {
        let row: Vec<char> = row.chars().collect();
        let part = |from: usize, to: usize| {
            row[from.min(row.len())..to.min(row.len())].iter().collect::<String>().trim().to_owned()
        };
        let label = part(0, columns[0].1);
        let label = if label.starts_with("depth") { format!("{above}, {label}") } else { label };
        if !label.contains("depth") {
            above.clone_from(&label);
        }
        for (index, (op, from)) in columns.iter().enumerate() {
            let to = columns.get(index + 1).map_or(row.len(), |next| next.1);
            let text = part(*from, to);
            if text.is_empty() {
                continue;
            }
            let found = cells.iter().find(|cell| cell.workload.op == *op && is_labelled(cell, &label));
            figures(record, &text, found.unwrap_or_else(|| panic!("no {op} is {label}")));
            seen += 1;
        }
    }
    assert_eq!(seen, cells.len(), "cells of the headline in {lines:#?}");
}

/// The headline of many targets: a row for each, its cells under their heads.
fn rows_of_targets(lines: &[String], record: &Record) {
    let heads = [
        ("read", Op::Read, Pattern::Sequential, Sync::None),
        ("write", Op::Write, Pattern::Sequential, Sync::None),
        ("random read", Op::Read, Pattern::Random, Sync::None),
        ("durable write", Op::Write, Pattern::Random, Sync::Dsync),
    ];
    let mut columns: Vec<(usize, usize)> = Vec::new();
    let mut seen = 0;
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
        let target = record.targets.iter().find(|target| target.name == name).expect("the row of a target");
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
            figures(record, &text, record.cells.iter().find(is_it).expect("a cell under its head"));
            seen += 1;
        }
    }
    assert!(seen >= 2 * record.targets.len(), "{lines:#?}");
}

fn is_labelled(cell: &CellRecord, label: &str) -> bool {
    let workload = &cell.workload;
    let what = match (workload.sync, workload.pattern) {
        (Sync::None, Pattern::Sequential) => "sequential",
        (Sync::None, Pattern::Random) => "random",
        _ => "durable",
    };
    let (depth, block) = (metrics::wanted_depth(workload), Bytes(workload.block_bytes));
    let deep = if depth > 1 && what != "sequential" { format!(", depth {depth}") } else { String::new() };
    label == format!("{what} {block}{deep}")
}

/// `19.7k/s* ±27 % 31.2/107 µs`, `2.35 GiB/s ±3.1 % depth 8`.
fn figures(record: &Record, text: &str, cell: &CellRecord) {
    let is_marked = text.contains('*');
    assert_eq!(is_marked, !is_plain(record, cell), "{}: {text}", cell.id);
    let is_burst = lasting_of(record, cell).is_some_and(|seen| seen.is_burst);
    assert_eq!(text.contains('^'), is_burst, "{}: {text}", cell.id);
    let text = text.replace(['*', '^'], "");
    let mut left = text.split_whitespace().peekable();
    let rate = left.next().expect("a cell has a rate");
    if rate == "–" {
        assert_eq!(cell.result.ops_per_s, None, "{}", cell.id);
        return;
    }
    let estimate = match rate.strip_suffix("/s") {
        Some(count) => {
            let estimate = cell.result.ops_per_s.expect("it is shown");
            let (number, size) = match count.strip_suffix(['k', 'M']) {
                Some(number) => (number, if count.ends_with('k') { 1e3 } else { 1e6 }),
                None => (count, 1.0),
            };
            rounded(number, estimate.mean / size, &cell.id);
            estimate
        }
        None => {
            let estimate = cell.result.bytes_per_s.expect("it is shown");
            let size = unit(left.next().expect("a bandwidth has its unit"));
            rounded(rate, estimate.mean / size, &cell.id);
            estimate
        }
    };
    interval(&mut left, estimate, &cell.id);
    match left.next() {
        None => {}
        Some("depth") => {
            let depth = left.next().expect("a depth is a number");
            assert_eq!(depth.parse(), Ok(metrics::wanted_depth(&cell.workload)), "{}", cell.id);
        }
        Some(pair) => {
            let latency = cell.result.latency_ns.as_ref().expect("it is shown");
            let (p50, p99) = pair.split_once('/').expect("two percentiles");
            let size = unit(left.next().expect("a latency has its unit"));
            rounded(p50, latency.p50.expect("it is shown") as f64 / size, &cell.id);
            match latency.p99 {
                Some(ns) => rounded(p99, ns as f64 / size, &cell.id),
                None => assert_eq!(p99, "–", "{}", cell.id),
            }
        }
    }
    assert_eq!(left.next(), None, "{}: {text}", cell.id);
}

fn interval<'a>(left: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>, estimate: Estimate, id: &str) {
    let Some(half) = estimate.margin() else { return };
    let shown = left.next().and_then(|shown| shown.strip_prefix('±')).expect("a rate has its interval");
    assert_eq!(left.next(), Some("%"), "{id}");
    match shown {
        ">100" => assert!(half > 1.0, "{id}: {half}"),
        "<0.1" => assert!(half < 0.001, "{id}: {half}"),
        number => rounded(number, half * 100.0, id),
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

fn is_answer(finding: &Finding) -> bool {
    matches!(finding.experiment, Some(Experiment::Paths | Experiment::Stream)) && finding.effect.is_none()
}

/// The rank of a finding as docs/findings/README.md gives it: smaller is earlier.
fn rank(finding: &Finding) -> (Stake, f64) {
    let by_severity = match finding.severity {
        Severity::Invalid | Severity::Uncertain => Stake::Figure,
        _ => Stake::Cost,
    };
    let stake = finding.effect.as_ref().map_or(by_severity, |effect| effect.stake);
    let all = stake == Stake::Figure && finding.severity == Severity::Invalid;
    let factor = finding.effect.as_ref().and_then(|effect| effect.factor);
    (stake, -factor.unwrap_or(if all { f64::INFINITY } else { 1.0 }))
}

fn matters(lines: &[String], record: &Record) {
    let mut wanted: Vec<&Finding> = record
        .findings
        .iter()
        .filter(|one| !is_answer(one) && (one.effect.is_some() || one.severity != Severity::Remark))
        .collect();
    wanted.sort_by(|one, other| {
        let (one, other) = (rank(one), rank(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    let shown: Vec<&String> =
        lines.iter().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert!(shown.len() <= 5 && shown.len() <= wanted.len(), "{lines:#?}");
    for (index, (line, finding)) in shown.iter().zip(&wanted).enumerate() {
        let said = finding.effect.as_ref().map_or(&finding.title, |effect| &effect.text);
        let said = words::sentence(said);
        let start = format!("{} {}", index + 1, said.trim_end_matches('.'));
        let is_cut = line.ends_with('…');
        assert!(line.starts_with(&start) || is_cut, "{} is not said in {line}", finding.code);
        if let Some((low, high)) = finding.effect.as_ref().and_then(|effect| effect.low.zip(effect.high)) {
            let range = format!("({}–{})", words::figure(low), words::figure(high));
            assert!(line.contains(&range) || is_cut, "{range}: {line}");
        }
        if let Some(factor) = finding.effect.as_ref().and_then(|effect| effect.factor)
            && finding.effect.as_ref().is_some_and(|effect| effect.low.is_some())
        {
            assert!(line.contains(&words::times(factor)) || is_cut, "{factor}: {line}");
        }
    }
    let left_out =
        record.findings.len() - shown.len() - record.findings.iter().filter(|one| is_answer(one)).count();
    let said =
        lines.last().and_then(|line| line.trim().strip_prefix("and ")?.split(' ').next()?.parse().ok());
    let is_said = lines.is_empty() || said.unwrap_or(0) == left_out || shown.is_empty();
    assert!(is_said, "{left_out} are left out: {lines:#?}");
}

/// Every `1.88 × (1.16–3.06)` of a line.
fn ratios(line: &str) -> Vec<[f64; 3]> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices(" × (") {
        let Some(mean) = line[..at].split(' ').next_back().and_then(|mean| mean.parse().ok()) else {
            continue;
        };
        let inside = line[at + " × (".len()..].split(')').next().unwrap_or_default();
        let Some((low, high)) = inside.split_once('–') else { continue };
        if let (Ok(low), Ok(high)) = (low.parse(), high.parse()) {
            found.push([mean, low, high]);
        }
    }
    found
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

fn answers(lines: &[String], record: &Record) {
    let analysis = Analysis::of(record);
    let mut asked: Vec<&str> = record.cells.iter().map(|cell| cell.experiment.as_str()).collect();
    asked.retain(|name| *name != "headline");
    for name in asked {
        assert!(lines.iter().any(|line| line.split(' ').next() == Some(name)), "no answer to {name}");
    }
    for line in lines {
        let name = line.split(' ').next().unwrap_or_default();
        let of = |experiment: Experiment| experiment.as_str() == name;
        let compared: Vec<Ratio> = analysis
            .families()
            .iter()
            .filter(|family| of(family.experiment) || name == "targets")
            .flat_map(|family| &family.comparisons)
            .filter(|one| one.kind != Kind::Targets || name == "targets")
            .filter_map(|one| one.ratio.ok())
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
            let is_compared = compared.iter().any(|one| is_shown(shown, (one.mean, one.low, one.high)));
            assert!(is_compared, "{shown:?} is no comparison of {name}: {line}");
        }
        match name {
            "zones" => zones(line, &analysis),
            "scale" => gained(line, &gains),
            _ => {}
        }
    }
}

/// `2.03 × at 64 KiB (1.65–2.50)`.
fn gained(line: &str, gains: &[(f64, f64, f64)]) {
    for (at, _) in line.match_indices(" × at ") {
        let mean: f64 =
            line[..at].split(' ').next_back().and_then(|mean| mean.parse().ok()).expect("a factor");
        // The block size, then the interval, if there is one.
        let behind = line[at + " × at ".len()..].splitn(3, ' ').nth(2).unwrap_or_default();
        let inside = behind.strip_prefix('(').map(|inside| inside.split(')').next().unwrap_or_default());
        let Some((low, high)) = inside.and_then(|inside| inside.split_once('–')) else { continue };
        let (Ok(low), Ok(high)) = (low.parse(), high.parse()) else { continue };
        let is_one = gains.iter().any(|gain| is_shown([mean, low, high], *gain));
        assert!(is_one, "{mean} ({low} to {high}) is no gain: {line}");
    }
}

/// `8 zones by 20 MiB: …` or `no step shown at 40 positions of 1 MiB in 2 passes: outer 3483, inner 3511 MiB/s, scatter 4.9 %`.
fn zones(line: &str, analysis: &Analysis<'_>) {
    let cells = analysis.cells.iter().filter(|cell| cell.experiment == Experiment::Zones);
    let all: Vec<&rdsk_analysis::zones::Zones> = cells.filter_map(|cell| analysis.zones(cell)).collect();
    let word_after = |word: &str| {
        let (_, rest) = line.split_once(word)?;
        rest.split([' ', ',']).next().map(String::from)
    };
    if let (Some(outer), Some(inner)) = (word_after("outer "), word_after("inner ")) {
        let is_one = all.iter().any(|zones| {
            let rate = |rate: Option<f64>| rate.map_or(f64::NAN, |rate| rate / 1_048_576.0);
            is_rounded(&outer, rate(zones.outer_bytes_per_s))
                && is_rounded(&inner, rate(zones.inner_bytes_per_s))
        });
        assert!(is_one || outer == "–" || inner == "–", "{line}");
    } else if line.contains(" zones by ") {
        let count: usize = line
            .split(" zones by ")
            .next()
            .and_then(|start| start.rsplit(' ').next()?.parse().ok())
            .expect("a count");
        assert!(all.iter().any(|zones| zones.zones.len() == count), "{line}");
    }
}

/// Every cell that is not simply the device's is counted once, under its own word.
fn others(text: &str, record: &Record) {
    let wanted = record.cells.iter().filter(|cell| !is_plain(record, cell)).count();
    let text = text.strip_prefix("verdicts ").expect("the line begins so");
    assert!(!text.ends_with('…'), "{text}");
    let (named, rest) = text.rsplit_once("; ").map_or(("", text), |(named, rest)| (named, rest));
    let device = record.cells.len() - wanted;
    let expected = match (wanted, device) {
        (0, 1) => "all 1 cell: device".to_owned(),
        (0, all) => format!("all {all} cells: device"),
        (_, 0) => "none is simply the device's".to_owned(),
        (_, rest) => format!("the other {rest}: device"),
    };
    assert_eq!(rest, expected, "{text}");
    let mut counted = 0;
    for group in named.split("; ").filter(|group| !group.is_empty()) {
        let (word, cells) = group.split_once(": ").expect("a word and its cells");
        let (word, is_starred) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
        assert!(is_starred || !cells.contains("headline"), "{text}");
        for item in cells.split(", ") {
            counted += match (item.strip_prefix("all of "), item.split_once(" (")) {
                (Some(name), _) => {
                    record.cells.iter().filter(|cell| cell.experiment.as_str() == name).count()
                }
                (None, Some((_, count))) => {
                    count.split(' ').next().and_then(|count| count.parse().ok()).expect("a count")
                }
                (None, None) if item.bytes().all(|byte| byte.is_ascii_digit()) => {
                    item.parse().expect("a count")
                }
                (None, None) if item.ends_with(" cells") || item.ends_with(" cell") => {
                    item.split(' ').next().and_then(|count| count.parse().ok()).expect("a count")
                }
                (None, None) => {
                    let cell = record.cell(item).unwrap_or_else(|| panic!("no cell {item}: {text}"));
                    let code = cell.verdict.as_ref().map_or("", |verdict| verdict.code.as_str());
                    let is_its = word.contains(code)
                        || ["n/a", "cpu shared", "cpu quota", "cut short"].contains(&word)
                        || word.starts_with("depth")
                        || (word == "not steady" && !is_steady(record, cell))
                        || (word == "into cache" && is_into_cache(record, cell));
                    assert!(is_its && !is_plain(record, cell), "{item} is not {word}");
                    1
                }
            };
        }
    }
    assert_eq!(counted, wanted, "{text}");
}
