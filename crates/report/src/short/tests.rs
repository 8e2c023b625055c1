//! The short page of invented Records: of a directory, of a loop device, of several targets, and of Records that no run would
//! write.

use super::*;
use crate::style::{Charset, Color};
use proptest::prelude::*;
use rdsk_finding::fixtures::{self, disk, with};
use rdsk_model::{
    CellRecord, Confidence, Effect, Estimate, Finding, Problem, ProblemKind, Record, Severity, Stake, Status,
    StopReason, Target,
};
use rdsk_stats::rng::SplitMix64;
use unicode_width::UnicodeWidthStr as _;

fn plain() -> Style {
    Style::default()
}

fn short(record: &Record, further: Further<'_>, style: Style) -> String {
    super::short(&Analysis::of(record), further, style)
}

#[track_caller]
fn fits(text: &str) {
    assert!(text.lines().count() <= MAX_LINES, "{} lines:\n{text}", text.lines().count());
    for line in text.lines() {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
        assert_eq!(line.trim_end(), line);
    }
    assert!(text.ends_with('\n'));
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        assert!(!["NaN", "inf", "None"].contains(&word), "{word} in\n{text}");
    }
}

/// The invented run on a directory's test file.
#[test]
fn of_a_directory() {
    let page = short(&fixtures::run(), Further::Nowhere, plain());
    fits(&page);
    insta::assert_snapshot!("directory", page);
}

/// The same on a loop device that is only read: no figure of writing.
#[test]
fn of_a_loop_device() {
    let mut run = fixtures::run();
    let mut target = disk();
    target.name = "/dev/loop0".into();
    if let Some(device) = &mut target.device {
        device.name = "loop0".into();
        device.kind = Some("loop".into());
        device.backing_file = Some("/srv/image".into());
    }
    run.targets = vec![target];
    run.cells.retain(|cell| cell.workload.op == rdsk_model::Op::Read);
    run.findings = rdsk_finding::findings(&Analysis::of(&run));
    let page = short(&run, Further::Nowhere, plain());
    fits(&page);
    assert!(!page.contains("write  ") && !page.contains("durable"), "{page}");
    insta::assert_snapshot!("loop", page);
}

/// The run's cells on so many targets.
fn on_targets(count: u32) -> Record {
    let mut run = fixtures::run();
    let first = run.targets[0].clone();
    run.targets = (0..count)
        .map(|index| Target { index, name: format!("/mnt/disk{index}"), ..first.clone() })
        .collect();
    run.cells = (0..count)
        .flat_map(|index| {
            run.cells.clone().into_iter().map(move |cell| {
                with(cell, |cell| {
                    cell.id = format!("{}@{index}", cell.id);
                    cell.workload.targets = vec![index];
                    cell.evidence.device.iter_mut().for_each(|device| device.target = index);
                })
            })
        })
        .collect();
    run.findings = rdsk_finding::findings(&Analysis::of(&run));
    run
}

#[test]
fn of_several_targets() {
    for count in [2, 3, 9] {
        let page = short(&on_targets(count), Further::Nowhere, plain());
        fits(&page);
        assert!(page.contains(&format!("{count} targets; took ")), "{page}");
        let lead = if count > 2 { "/mnt/disk1 against /mnt/disk0: " } else { "" };
        assert!(page.contains(&format!("\n{lead}No clear difference in ")), "{page}");
    }
    let three = short(&on_targets(3), Further::Nowhere, plain());
    assert!(three.contains("sync write"), "{three}");
    insta::assert_snapshot!("targets", three);
}

/// Where both directions do not fit beside each other, they stand one below the other.
#[test]
fn a_narrow_headline_has_reads_above_writes() {
    let page = short(&Analysis::of(&fixtures::run()), Further::Nowhere, Style { width: 44, ..plain() });
    let line = |word: &str| page.lines().position(|line| line.contains(word)).expect("it is there");
    assert!(line("READ") < line("Rand 4K QD32") && line("Rand 4K QD32") < line("WRITE"), "{page}");
    assert!(line("WRITE") < line("Sync 4K QD1"), "{page}");
}

#[test]
fn several_targets_are_one_screen_at_40_columns() {
    for count in [1, 2, 3] {
        for charset in [Charset::Unicode, Charset::Ascii] {
            let page = short(&on_targets(count), Further::Nowhere, Style { width: 40, charset, ..plain() });
            assert!(page.lines().count() <= MAX_LINES, "{} lines:\n{page}", page.lines().count());
            assert!(page.lines().all(|line| line.width() <= 40), "{page}");
            assert!(charset == Charset::Unicode || (page.is_ascii() && page.contains("+/-1%")), "{page}");
            insta::assert_snapshot!(format!("targets-{count}-40-{charset:?}"), page);
        }
    }
}

/// A document may hold any number of I/Os; the page says something, and does not end the program.
#[test]
fn counts_beyond_all_sums_are_drawn() {
    let mut record = on_targets(2);
    for cell in &mut record.cells {
        cell.result.ops = Some(u64::MAX);
        for visit in &mut cell.result.visits {
            visit.ops = u64::MAX;
            visit.streams.iter_mut().for_each(|stream| stream.ops = u64::MAX);
        }
    }
    fits(&short(&record, Further::Nowhere, plain()));
    assert!(!crate::text(&Analysis::of(&record), plain()).is_empty());
}

#[test]
fn bullets_are_four_at_most_and_no_textbook() {
    let page = short(&fixtures::run(), Further::Nowhere, plain());
    let bullets: Vec<&str> = page.lines().filter(|line| line.starts_with(" • ")).collect();
    assert!((1..=4).contains(&bullets.len()), "{page}");
    assert!(!page.contains("return from memory"), "{page}");
}

#[test]
fn a_failed_run_says_so_first() {
    let mut record = fixtures::run();
    record.status = Status::Failed;
    record.error = Some(Problem::plain(ProblemKind::Io, "eio", "/dev/sda: read failed"));
    record.cells[0].result.errors = vec![rdsk_model::IoError {
        target: 0,
        stream: None,
        offset_bytes: 4096,
        errno: 5,
        message: "Input/output error".into(),
    }];
    let page = short(&record, Further::Nowhere, plain());
    fits(&page);
    assert!(page.contains("\nFailed: the figures are partial or missing.\n  error: /dev/sda: read failed\n"));
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" I/O failed in 1 of ") && words.contains(": Input/output error at byte 4096 "));
    record.cells.clear();
    record.findings.clear();
    record.notes = vec!["fio gives reads and writes as one sum".into()];
    let empty = short(&record, Further::Nowhere, plain());
    fits(&empty);
    assert!(
        empty.contains("Nothing was measured.\n  note: fio gives reads and writes as one sum\n"),
        "{empty}"
    );
}

#[test]
fn colour_and_ascii_change_no_word() {
    let run = fixtures::run();
    let page = short(&run, Further::Nowhere, plain());
    let colored = short(&run, Further::Nowhere, Style { color: Color::Always, ..plain() });
    let bare = ["\u{1b}[1m", "\u{1b}[33m", "\u{1b}[31m", "\u{1b}[0m"]
        .iter()
        .fold(colored.clone(), |text, escape| text.replace(escape, ""));
    assert!(colored.contains("\u{1b}[1mWhat to know\u{1b}[0m"), "{colored}");
    assert_eq!(bare, page);
    assert!(short(&run, Further::Nowhere, Style { charset: Charset::Ascii, ..plain() }).is_ascii());
    for width in [40, 60, 120, 300] {
        let text = short(&run, Further::Nowhere, Style { width, ..plain() });
        assert!(text.lines().all(|line| line.width() <= width.min(120)), "{text}");
    }
}

/// A Record that no run would write: any counts, names and figures.
fn invented(seed: u64) -> Record {
    let mut rng = SplitMix64::new(seed);
    let mut below = move |count: u64| rng.next_u64() % count;
    let mut record =
        if below(3) == 0 { on_targets(u32::try_from(1 + below(6)).expect("a few")) } else { fixtures::run() };
    let names = ["x".repeat(200), "ディスク\u{202e}\u{7}".repeat(9), "a b  c".into(), String::new()];
    for target in &mut record.targets {
        if below(4) == 0 {
            target.name.clone_from(&names[few(below(4))]);
        }
        if below(4) == 0 {
            target.device = None;
        }
    }
    let figures = [0.0, 1e-9, 1.0, 1e18, f64::NAN, f64::INFINITY, -1.0];
    for index in 0..record.cells.len() {
        let figure = figures[few(below(7))];
        change(&mut record.cells[index], below(24), figure);
    }
    let keep = below(4);
    if keep == 0 {
        record.cells.truncate(few(below(20)));
    }
    let made: Vec<Finding> = (0..below(40)).map(|index| finding(&record, index, &mut below)).collect();
    record.findings.extend(made);
    record.status = Status::ALL[few(below(3))];
    if below(3) == 0 {
        record.error = Some(Problem::plain(ProblemKind::Io, "x", "long words of an error ".repeat(20)));
        record.label = Some("label ".repeat(30));
    }
    record
}

fn few(count: u64) -> usize {
    usize::try_from(count).expect("a few dozen")
}

fn change(cell: &mut CellRecord, what: u64, figure: f64) {
    match what {
        0 => cell.result.bytes_per_s = None,
        1 => cell.result.bytes_per_s = Some(Estimate { mean: figure, low: Some(figure), high: Some(1.0) }),
        2 => cell.result.ops_per_s = Some(Estimate { mean: 1.0, low: None, high: Some(figure) }),
        3 => cell.result.latency_ns = None,
        4 => cell.verdict = None,
        5 => cell.result.visits.clear(),
        6 => cell.result.ops = Some(0),
        7 => cell.result.in_flight_mean = Some(figure),
        8 => (cell.result.stop, cell.result.why) = (StopReason::NotApplicable, "no ".repeat(80)),
        9 => cell.workload.block_bytes = 1,
        10 => cell.id = format!("{}/{}", cell.id, "long".repeat(30)),
        _ => {}
    }
}

fn finding(record: &Record, index: u64, below: &mut impl FnMut(u64) -> u64) -> Finding {
    let figures = [0.5, 1.0, 3.0, 1e30, f64::NAN, f64::INFINITY];
    let mut figure = || figures[few(below(6))];
    let effect = Effect {
        stake: Stake::ALL[few(index) % 3],
        factor: Some(figure()),
        low: Some(figure()),
        high: Some(figure()),
        text: "words ".repeat(few(index)),
    };
    Finding {
        code: format!("code-{index}"),
        severity: Severity::ALL[few(below(5))],
        title: "title".into(),
        text: String::new(),
        evidence: Vec::new(),
        confidence: Confidence::Inferred,
        advice: (below(2) == 0).then(|| "do this; ".repeat(few(index))),
        cells: record.cells.iter().take(3).map(|cell| cell.id.clone()).collect(),
        experiment: None,
        covers_verdicts: false,
        effect: (below(2) == 0).then_some(effect),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a Record holds, its page is one screen without a figure that is none.
    #[test]
    fn any_record_is_one_screen(seed: u64) {
        fits(&short(&invented(seed), Further::Nowhere, plain()));
    }
}

#[test]
fn the_last_line_names_what_shows_the_rest() {
    let last = |further, width| {
        let page = short(&fixtures::run(), further, Style { width, ..plain() });
        page.lines().last().unwrap().to_owned()
    };
    let command = "rdsk show 01KAP3XM2C --history /srv/rdsk.db";
    assert_eq!(last(Further::By(command), 80), format!("Details: {command} --details"));
    let kept = "Details: rdsk show 01KAP3XM2C --details    Page: rdsk report 01KAP3XM2C --open";
    assert_eq!(last(Further::By("rdsk show 01KAP3XM2C"), 80), kept);
    assert_eq!(last(Further::By(command), 40), "Details: rdsk show RUN --details");
    assert_eq!(last(Further::Here, 80), "Details: the same command with --details");
    assert!(last(Further::Nowhere, 80).contains("--json FILE"));
}
