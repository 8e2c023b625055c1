//! Whole screens as snapshots, from invented Records.

use super::*;
use rdsk_finding::fixtures::{self, cell, disk, file, kept_in_memory, record, with};
use rdsk_model::{
    Cell, CellRecord, Extent, IoError, IoPath, Op, Plan, Problem, ProblemKind, ProcessorUse, QuotaUse,
    Record, Status, StopReason, Workload,
};
use unicode_width::UnicodeWidthStr as _;

fn plain() -> Style {
    Style::default()
}

pub(crate) fn text(record: &Record, style: Style) -> String {
    super::text(&Analysis::of(record), style)
}

/// Every topic on a wide and on a narrow page, and in ASCII: no figure is cut off.
#[test]
fn topics_are_screens_at_80_and_40_columns() {
    for &experiment in Experiment::PLANNED {
        let run = fixtures::of_experiment(experiment);
        let analysis = Analysis::of(&run);
        let mut page = Page::default();
        questions::draw(&mut page, &analysis, experiment, questions::Plots::LeftOut);
        for (width, charset) in [(80, Charset::Unicode), (40, Charset::Unicode), (40, Charset::Ascii)] {
            let text = page.render(Style { width, charset, ..plain() });
            for line in text.lines() {
                assert!(line.width() <= width, "{line}");
                // Curves may be cut, and the plot of a stripe, figures may not.
                let is_cut = line.ends_with('…') || line.ends_with("...");
                let is_plot = experiment == Experiment::Stripe || line.contains(['▁', '█', '_', '#']);
                assert!(!is_cut || is_plot, "{experiment}: {line}\n{text}");
            }
            assert!(charset == Charset::Unicode || text.is_ascii(), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            let name = match (width, charset) {
                (80, _) => continue,
                (_, Charset::Unicode) => format!("topic-{experiment}-40"),
                (_, Charset::Ascii) => format!("topic-{experiment}-40-ascii"),
            };
            insta::assert_snapshot!(name, text);
        }
    }
}

/// What is said of a column's numbers: a unit, or what is counted.
const UNITS: [&str; 23] = [
    "/s", "per s", "count", "%", "µs", "ms", "ns", "KiB", "MiB", "bytes", "sweeps", "ratio", "speed-up",
    "over", "streams", "QD", "rareq-sz", "wareq-sz", "aqu-sz", "_await", "rrqm", "wrqm", "max",
];

/// No column of numbers without a unit or a count in its head, in the row's own column of units, or in the heading of the page.
#[test]
fn every_column_of_numbers_has_its_unit() {
    let run = fixtures::run_on_three_paths();
    let analysis = Analysis::of(&run);
    let mut numbers = 0;
    for &experiment in Experiment::PLANNED {
        let mut page = Page::default();
        questions::draw(&mut page, &analysis, experiment, questions::Plots::LeftOut);
        for (heading, table) in page.tables() {
            let has_unit = |text: &str| UNITS.iter().any(|unit| text.contains(unit));
            let is_unit = |cell: &&str| {
                ["B", "KiB", "MiB", "GiB", "ns", "µs", "ms", "s", "KiB/s", "MiB/s", "GiB/s"].contains(cell)
            };
            let has_column_of_units = table.columns().any(|(_, cells)| {
                cells.iter().any(is_unit) && cells.iter().all(|cell| cell.is_empty() || is_unit(cell))
            });
            let in_heading =
                ["µs per", "MiB/s of", ", ms", "in ms"].iter().any(|unit| heading.contains(unit));
            for (head, cells) in table.columns() {
                let is_number = |cell: &&&str| cell.replace([',', '.'], "").parse::<u64>().is_ok();
                let count = cells.iter().filter(is_number).count();
                numbers += count;
                let has_unit = has_unit(head) || has_column_of_units || in_heading;
                assert!(count == 0 || has_unit, "{experiment}: {head:?} of {heading:?}: {cells:?}");
            }
        }
    }
    assert!(numbers > 100, "{numbers} numbers in tables");
}

/// The page of one experiment.
pub(crate) fn alone(record: &Record, experiment: Experiment) -> String {
    drawn(record, experiment, questions::Plots::Drawn)
}

fn drawn(record: &Record, experiment: Experiment, plots: questions::Plots) -> String {
    let mut page = Page::default();
    questions::draw(&mut page, &Analysis::of(record), experiment, plots);
    page.render(plain())
}

#[track_caller]
fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.width() <= 80, "{} columns: {line}", line.width());
        assert_eq!(line.trim_end(), line);
    }
    assert!(text.ends_with('\n'));
}

#[test]
fn the_whole_run() {
    let text = text(&fixtures::run(), plain());
    fits(&text);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!("run", text);
}

#[test]
fn processors_that_others_used_cut_no_column_off() {
    let second_ns = 1_000_000_000;
    let shared = |mut run: Record| {
        for cell in &mut run.cells {
            cell.evidence.processor = Some(ProcessorUse {
                interval_ns: second_ns,
                processors: 2,
                user_ns: 2 * second_ns,
                own_user_ns: second_ns / 10,
                own_wait_ns: Some(second_ns / 2),
                ..ProcessorUse::default()
            });
        }
        run
    };
    for &page in Experiment::PLANNED {
        let text = alone(&shared(fixtures::of_experiment(page)), page);
        fits(&text);
        assert!(!text.contains('…'), "{text}");
    }
    let mut run = shared(fixtures::run_on_three_paths());
    assert!(alone(&run, Experiment::Paths).contains("cpu shared"));
    for cell in &mut run.cells {
        let seen = cell.evidence.processor.as_mut().unwrap();
        let throttled_ns = seen.own_wait_ns.unwrap();
        seen.quota = Some(QuotaUse { periods: 10, throttled_periods: 6, throttled_ns });
    }
    let text = alone(&run, Experiment::Paths);
    assert!(text.contains("cpu quota") && !text.contains("cpu shared"), "{text}");
}

/// A disk whose cache takes what a visit writes, and has most of it to write when the writes have returned.
#[test]
fn a_rate_into_a_cache_is_shown_beside_the_rate_until_stable() {
    let page = |late: u64| {
        let mut run = fixtures::run();
        for cell in run.cells.iter_mut().filter(|cell| cell.experiment == Experiment::Headline) {
            cell.result.to_stable_ns = cell.result.to_stable_ns.map(|ns| ns / 10 * late);
            cell.evidence.device.iter_mut().for_each(|device| device.flushes = Some(6));
        }
        run.findings = rdsk_finding::findings(&Analysis::of(&run));
        let text = alone(&run, Experiment::Headline);
        fits(&text);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        (words(&text), words(&short(&Analysis::of(&run), Further::Nowhere, plain())))
    };
    let (text, of_run) = page(16);
    assert!(text.contains("writes 140 MiB/s (into cache)"), "{text}");
    assert!(text.contains("±1.0% into cache"), "{text}");
    let said = "sequential write, 1 MiB: 87.5 MiB/s until on disk. The rate above is that into a cache: 700 MiB a repeat \
                returned in 5.00 s, and was on disk after 8.00 s.";
    assert!(text.contains(said), "{text}");
    assert!(of_run.contains("140 MiB/s ±1% c"), "{of_run}");
    assert!(of_run.contains("c = drive's write cache, on disk: sequential 1M 87.5 MiB/s"), "{of_run}");
    let (text, of_run) = page(10);
    assert!(!text.contains("into cache") && !of_run.contains("write cache,"), "{text}\n{of_run}");
}

#[test]
fn random_streams_say_over_how_much_they_are() {
    let mut run = fixtures::run();
    for cell in run.cells.iter_mut().filter(|cell| cell.experiment == Experiment::Stream) {
        cell.workload.pattern = rdsk_model::Pattern::Random;
    }
    let text = alone(&run, Experiment::Stream);
    assert!(
        text.contains("STREAM: one stream, watched by iostat, blocks of 16 KiB, random over 1 GiB\n"),
        "{text}"
    );
}

#[test]
fn pages_alone() {
    let run = fixtures::run_on_three_paths();
    for (name, page) in [
        ("headline", alone(&run, Experiment::Headline)),
        ("paths", alone(&run, Experiment::Paths)),
        ("stream", alone(&run, Experiment::Stream)),
        ("align", alone(&run, Experiment::Align)),
    ] {
        fits(&page);
        insta::assert_snapshot!(name, page);
    }
}

#[test]
fn ascii_and_colour() {
    let run = fixtures::run();
    let ascii = text(&run, Style { charset: Charset::Ascii, ..plain() });
    assert!(ascii.is_ascii());
    fits(&ascii);
    let colored = text(&run, Style { color: Color::Always, ..plain() });
    assert!(colored.contains("\u{1b}[1mHEADLINE: sequential 1M QD1: reads 160 MiB/s"));
    let narrow = text(&run, Style { width: 60, ..plain() });
    assert!(narrow.lines().all(|line| line.width() <= 60));
    let wide = text(&run, Style { width: 200, ..plain() });
    assert!(wide.lines().all(|line| line.width() <= 120) && wide.lines().any(|line| line.width() > 80));
}

#[test]
fn no_row_stands_under_a_depth_that_it_had_not() {
    let deep = |in_flight: f64, within: Option<u64>| {
        let cell = with(cell("q", Op::Read, IoPath::Direct, 4096, 10_000, 500_000_000), |cell| {
            cell.experiment = Experiment::Headline;
            fixtures::deepen(cell, 32, in_flight);
            cell.result.issuing =
                Some(rdsk_model::Issuing { within_submit: within, ..rdsk_model::Issuing::default() });
        });
        alone(&record(vec![disk()], vec![cell]), Experiment::Headline)
    };
    for (in_flight, within, label) in [
        (31.8, None, "random read, 4 KiB, depth 32 "),
        (31.8, Some(400), "random read, 4 KiB, depth 32 "),
        (1.0, None, "random read, 4 KiB, depth 1.00 of 32 "),
        (12.34, None, "random read, 4 KiB, depth 12.3 of 32 "),
        (32.0, Some(10_000), "random read, 4 KiB, depth 1.00 of 32 "),
    ] {
        let page = deep(in_flight, within);
        assert!(page.contains(label), "{label}: {page}");
        fits(&page);
    }
}

fn failed_read() -> CellRecord {
    with(cell("paths/read/direct", Op::Read, IoPath::Direct, 1 << 20, 40, 200_000_000), |cell| {
        cell.result.stop = StopReason::Error;
        cell.result.why = "an I/O failed".into();
        cell.result.errors = vec![IoError {
            stream: None,
            target: 0,
            offset_bytes: 41_943_040,
            errno: 5,
            message: "Input/output error".into(),
        }];
    })
}

/// Where no pass was whole, nothing is said of the time or the requests of one.
#[test]
fn a_pass_that_was_cut_short_has_no_time() {
    let page = |pass_bytes| {
        let cell =
            with(cell("paths/read/direct", Op::Read, IoPath::Direct, 1 << 20, 40, 200_000_000), |cell| {
                cell.result.pass_bytes = Some(pass_bytes);
                cell.result.why = "no sweep of 41 MiB is complete".into();
            });
        let page = alone(&record(vec![disk()], vec![cell]), Experiment::Paths);
        fits(&page);
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = page(40 << 20);
    assert!(whole.contains("whole sweeps 1 rate ") && whole.contains("returned after ms 200 "), "{whole}");
    let cut = page((40 << 20) + 1);
    assert!(cut.contains("whole sweeps none rate ") && cut.contains("returned after ns – "), "{cut}");
    assert!(cut.contains("direct: no sweep of 41 MiB is complete") && cut.contains("cut short"), "{cut}");
    assert!(cut.contains("MiB/s 200 "), "the rate of what was done stays: {cut}");
}

#[test]
fn a_failed_record() {
    let nothing = with(cell("paths/read/buffered", Op::Read, IoPath::Buffered, 1 << 20, 1, 1), |cell| {
        cell.result = fixtures::empty_result();
        cell.result.why = "an I/O failed".into();
        cell.evidence.device.clear();
    });
    let mut record = record(vec![disk()], vec![failed_read(), nothing]);
    record.status = Status::Failed;
    record.error = Some(Problem::new(
        ProblemKind::Io,
        "eio",
        "/dev/sda: read failed",
        "look at dmesg for the device's own words",
    ));
    record.notes = vec!["io_uring is forbidden here: using the sync engine".into()];
    let text = text(&record, plain());
    fits(&text);
    insta::assert_snapshot!("failed", text);
}

#[test]
fn an_interrupted_record() {
    let write =
        with(cell("stream/write/direct", Op::Write, IoPath::Direct, 16384, 200, 90_000_000), |cell| {
            cell.experiment = Experiment::Stream;
            cell.result.stop = StopReason::Interrupted;
            cell.result.why = "SIGINT".into();
            cell.result.to_stable_ns = None;
            cell.result.windows = None;
            let rate = cell.result.bytes_per_s.as_mut().unwrap();
            (rate.low, rate.high) = (None, None);
            cell.evidence.device[0].diskstat = None;
            cell.evidence.device[0].in_flight_series.clear();
        });
    let mut record = record(vec![file()], vec![write]);
    record.status = Status::Interrupted;
    record.label = Some("try \u{1b}[31mred".into());
    let text = text(&record, plain());
    fits(&text);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!("interrupted", text);
}

/// Two passes in ascending order over a disk whose outer half is faster, and three.
#[test]
fn zones_that_may_be_of_time_are_not_listed() {
    let steps = |place: u32, _: u32, _: u32| 10_000_000 + 5_000_000 * u64::from(place / 30);
    let page = |starts: &[u32]| {
        let text = alone(&fixtures::zones::ascending(60, starts, steps).0, Experiment::Zones);
        fits(&text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (two, three) = (page(&[0, 17]), page(&[0, 17, 41]));
    let untold = "Steps at 1 MiB: a change with time looks the same after 2 whole sweeps in this order;";
    assert!(two.contains(untold) && !two.contains("█"), "{two}");
    assert!(
        !three.contains("looks the same") && three.contains("QD1, 2 zones)") && three.contains("█"),
        "{three}"
    );
    assert!(three.contains("in ascending order, each sweep from another start"), "{three}");
}

#[test]
fn cells_that_never_ran_are_one_line() {
    let never = |cell: CellRecord| {
        with(cell, |cell| {
            cell.result = fixtures::empty_result();
            cell.result.stop = StopReason::Interrupted;
            cell.result.why = "a signal ended the run".into();
            cell.evidence.device.clear();
        })
    };
    let read = cell("paths/read/direct", Op::Read, IoPath::Direct, 1 << 20, 40, 200_000_000);
    let mut buffered = read.clone();
    buffered.workload.path = IoPath::Buffered;
    let text_of = |cells| text(&record(vec![disk()], cells), plain());
    let none = text_of(vec![never(read.clone()), never(buffered.clone())]);
    assert!(none.contains("\nPATHS: nothing completed: a signal ended the run\n\n"), "{none}");
    let larger = with(buffered.clone(), |cell| cell.workload.cache = rdsk_model::CacheState::Warm);
    let one = text_of(vec![read, never(buffered), never(larger)]);
    assert!(one.contains("  buffered; cached: nothing completed: a signal ended the run\n"), "{one}");
}

/// Advice to align writes includes that to write whole pages, in whatever order the findings are.
#[test]
fn the_align_page_gives_the_wider_advice_whatever_the_order() {
    let advice_of = |record: &Record| -> Vec<String> {
        let page = alone(record, Experiment::Align);
        page.lines().filter(|line| line.contains("Advice: write")).map(str::to_owned).collect()
    };
    let mut run = fixtures::run();
    let expected = ["  Advice: write multiples of 4 KiB at offsets that are multiples of 4 KiB."];
    assert_eq!(advice_of(&run), expected);
    run.findings.reverse();
    assert_eq!(advice_of(&run), expected);
    run.findings.retain(|finding| finding.code != "misaligned-write");
    assert_eq!(advice_of(&run), ["  Advice: write whole pages: multiples of 4 KiB at multiples of 4 KiB."]);
}

/// Found by a user: the times of cells under a limit stood there like those of the device.
#[test]
fn a_time_that_a_limit_sets_is_marked_on_the_align_page() {
    let mut run = fixtures::run();
    assert!(!alone(&run, Experiment::Align).contains("a limit of a cgroup"));
    let is_judged =
        |cell: &&mut rdsk_model::CellRecord| cell.experiment == Experiment::Align && cell.verdict.is_some();
    let held = run.cells.iter_mut().find(is_judged).unwrap();
    let id = held.id.clone();
    held.result.bytes_per_s = Some(rdsk_model::Estimate { mean: 4e6, low: None, high: None });
    held.verdict.as_mut().unwrap().code = rdsk_model::VerdictCode::Throttled;
    let mut limited = |most: u64| {
        let cell = run.cells.iter_mut().find(|cell| cell.id == id).unwrap();
        cell.evidence.limits = vec![rdsk_model::Limit {
            target: 0,
            device: String::new(),
            source: "/cg/io.max".into(),
            op: cell.workload.op,
            bytes_per_s: Some(most),
            ops_per_s: None,
        }];
        alone(&run, Experiment::Align)
    };
    assert!(!limited(2_000_000).contains("a limit of a cgroup"), "a burst above it is the device's");
    let page = limited(4_000_000);
    assert_eq!(page.matches(" 1) ").count(), 2, "{page}");
    assert!(page.contains("  1) set by a limit of a cgroup, not by the device\n"), "{page}");
}

/// The run's paths, stream and align cells twice: on a second target, and with blocks of 64 KiB besides.
#[test]
fn several_targets_and_block_sizes_stay_apart() {
    let mut run = fixtures::run();
    let mut second = run.targets[0].clone();
    (second.index, second.name) = (1, "/mnt/other".into());
    run.targets.push(second);
    let cells: Vec<CellRecord> = run
        .cells
        .iter()
        .filter(|cell| matches!(cell.experiment, Experiment::Paths | Experiment::Stream | Experiment::Align))
        .flat_map(|cell| {
            let other = with(cell.clone(), |cell| {
                cell.id.push_str("@1");
                cell.workload.targets = vec![1];
                cell.evidence.device.iter_mut().for_each(|device| device.target = 1);
            });
            let large = with(cell.clone(), |cell| {
                cell.id.push_str("/64k");
                cell.workload.block_bytes = 64 << 10;
            });
            let is_sized = cell.experiment != Experiment::Align;
            let reading = with(cell.clone(), |cell| {
                cell.id.push_str("/read");
                cell.workload.op = Op::Read;
            });
            [cell.clone(), other, if is_sized { large } else { reading }]
        })
        .collect();
    let record = record(run.targets.clone(), cells);
    let text = text(&record, plain());
    fits(&text);
    assert!(!text.contains("HEADLINE"), "an experiment that was not run is printed");
    for title in
        ["  read 64 KiB ", "  write 64 KiB ", "  write 16 KiB ", "  read 1 MiB ", "  read of ", "  write of "]
    {
        assert!(text.contains(title), "{title}");
    }
    assert!(text.contains("ALIGN: µs per read and write"));
    // A name above each group: paths and stream have 3 groups a direction, align 3 in all.
    assert_eq!(text.lines().filter(|line| *line == "  /mnt/other").count(), 5, "{text}");
    assert_eq!(text.lines().filter(|line| *line == "  .").count(), 10, "{text}");
}

#[test]
fn a_record_that_failed_before_anything() {
    let mut record = record(Vec::new(), Vec::new());
    record.host = None;
    record.status = Status::Failed;
    record.error =
        Some(Problem::plain(ProblemKind::Refused, "mounted", "refusing to write to /dev/sdb: it is mounted"));
    let text = text(&record, plain());
    fits(&text);
    insta::assert_snapshot!("refused", text);
}

#[test]
fn long_and_hostile_names_stay_inside() {
    let mut target = file();
    target.name = "/мой/диск/".repeat(30);
    target.device.as_mut().unwrap().model = Some("ディスク\u{202e}\u{7}".repeat(20));
    let memory = kept_in_memory(
        cell("paths/write/buffered", Op::Write, IoPath::Buffered, 1 << 20, 100_000_000, u64::MAX / 4),
        1,
        u64::MAX / 2,
    );
    let text = text(&record(vec![target], vec![memory]), plain());
    fits(&text);
    assert!(!text.contains('\u{202e}') && !text.contains('\u{7}'));
}

#[test]
fn a_plan() {
    let cell = |id: &str, workload: Workload, extent, not_applicable: Option<&str>| Cell {
        id: id.into(),
        experiment: Experiment::Paths,
        workload,
        extent,
        weight: 1.0,
        not_applicable: not_applicable.map(String::from),
    };
    let read = Workload::sequential_read(1 << 30);
    let write = Workload { op: Op::Write, queue_depth: 32, streams: 2, shift_bytes: 512, ..read.clone() };
    let plan = Plan {
        notes: Vec::new(),
        cells: vec![
            cell("paths/read/direct", read.clone(), Extent::Pass { bytes: 100 << 20 }, None),
            cell("align/4096+512/cold/direct", write, Extent::Samples { first_ops: 8 }, None),
            cell("align/1/cold/direct", read, Extent::Timed, Some("1 byte is no multiple of 512")),
        ],
        budget_ns: 60_000_000_000,
        runtime_ns: None,
        precision: 0.02,
        rounds: 2,
    };
    let text = plan_text(&plan, &[file()], plain());
    fits(&text);
    insta::assert_snapshot!("plan", text);
    let narrow = plan_text(&plan, &[file()], Style { width: 40, charset: Charset::Ascii, ..plain() });
    assert!(narrow.is_ascii() && narrow.lines().all(|line| line.width() <= 40), "{narrow}");
    insta::assert_snapshot!("plan-40-ascii", narrow);
    // No test of a load has enough repeats before the time is over.
    let load = plan_text(&Plan { precision: 1e-6, ..plan }, &[file()], plain());
    assert!(load.contains("time that is left goes to further repeats") && !load.contains('±'), "{load}");
}

#[test]
fn the_documents_show_the_pages_as_they_are() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments");
    for &name in Experiment::PLANNED {
        let text = std::fs::read_to_string(docs.join(format!("{name}.md"))).unwrap();
        let page = drawn(&fixtures::of_experiment(name), name, questions::Plots::LeftOut);
        assert!(!page.is_empty(), "{name}");
        assert!(
            text.contains(page.trim_end()),
            "docs/experiments/{name}.md does not show the page as it is now:\n{page}"
        );
    }
}

/// Every key of a document stands in docs/record.md; the keys are collected from a document with everything in it.
#[test]
fn every_key_of_the_record_is_documented() {
    fn keys(value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, value) in map {
                    found.insert(key.clone());
                    keys(value, found);
                }
            }
            serde_json::Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join("record.md")).unwrap();
    let copies = vec![fixtures::copies::to_file(&[1000])];
    let run = rdsk_model::Record { copies, ..fixtures::run() };
    let run: serde_json::Value = serde_json::from_str(&json(&run, Compactness::Full)).unwrap();
    let mut found = std::collections::BTreeSet::new();
    keys(&run, &mut found);
    let words: std::collections::BTreeSet<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    for key in &found {
        assert!(words.contains(key.as_str()), "docs/record.md does not explain \"{key}\"");
    }
    let iostat = std::fs::read_to_string(docs.join("iostat.md")).unwrap();
    for (column, _) in rdsk_analysis::iostat::COLUMNS {
        assert!(iostat.contains(&format!("`{column}`")), "docs/iostat.md does not explain {column}");
    }
}

/// Bands are named beside the scatter, which does not show them; advice and findings say which disk they are about; and the
/// zones are those of the block size without bands.
#[test]
fn the_zones_page_names_bands_and_disks() {
    use rdsk_analysis::fixtures::zones::made;
    let late = |place: u32, _: u32, _: u32| 10_000_000 + if place % 5 == 3 { 8_000_000 } else { 0 };
    let (mut record, small) = made(60, 3, late);
    let (_, mut large) = made(60, 3, |place, _, _| 20_000_000 + 10_000_000 * u64::from(place / 20));
    (large.id, large.workload.block_bytes) = ("zones/read/5M".into(), 5 << 20);
    record.cells = vec![small, large.clone()];
    let page = text(&record, plain());
    assert!(page.contains(" + bands ") && page.contains("(random 5M reads, QD1, 3 zones)"), "{page}");
    let rule = "Use blocks of at least 5M: at 1M, 20.0% of the reads take 8.00 ms longer,";
    assert!(page.contains(rule), "{page}");
    record.targets.push(rdsk_model::Target { index: 1, name: "other".into(), ..record.targets[0].clone() });
    large.workload.targets = vec![1];
    large.id = "zones/read/5M@1".into();
    record.cells.push(large);
    let page = text(&record, plain());
    assert_eq!(page.matches(rule).count(), 1, "one size says nothing of others: {page}");
    let mut small = record.cells[0].clone();
    (small.id, small.workload.targets) = ("zones/read/1M@1".into(), vec![1]);
    record.cells.push(small);
    let has_advice = |finding: &&rdsk_model::Finding| finding.code == "speed-by-position";
    let mut finding = fixtures::run().findings.iter().find(has_advice).expect("it has one").clone();
    finding.cells = vec!["zones/read/5M@1".into()];
    record.findings = vec![finding];
    let page = text(&record, plain());
    assert_eq!(page.matches(rule).count(), 2, "{page}");
    assert!(page.contains("> other: quote the rate"), "{page}");
    fits(&page);
}
