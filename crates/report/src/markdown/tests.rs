//! The summary and the table as a reader of Markdown sees them.

use super::*;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use rdsk_finding::fixtures;
use rdsk_model::Target;

/// What a renderer makes of it: the text, and a mark for each element of another kind than those of our own making.
#[derive(Default)]
struct Rendered {
    text: String,
    rows: usize,
    code: Vec<String>,
    foreign: Vec<String>,
}

fn rendered(markdown: &str) -> Rendered {
    let mut rendered = Rendered::default();
    let mut in_code = false;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_MATH
        | Options::ENABLE_FOOTNOTES;
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Text(text) if in_code => rendered.code.push(text.into_string()),
            Event::Text(text) | Event::Code(text) => rendered.text.push_str(&text),
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(pulldown_cmark::TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::TableRow) => rendered.rows += 1,
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::List(_)
                | Tag::Item
                | Tag::Strong
                | Tag::Table(_)
                | Tag::TableHead
                | Tag::TableCell,
            )
            | Event::End(_)
            | Event::SoftBreak => rendered.text.push('\n'),
            other => rendered.foreign.push(format!("{other:?}")),
        }
    }
    rendered
}

const HOSTILE: &[&str] = &[
    "<img src=x onerror=alert(1)>",
    "a | b || c",
    "`x` ``y`` ```",
    "[link](http://example.com) ![picture](x.png)",
    "https://example.com www.example.com <https://example.com>",
    "# heading\n- list\n1. one\n> quote\n***",
    "**bold** _it_ ~~gone~~ $x$ &lt;b&gt; \\",
    "- minus",
    "1. one",
    "2) two",
    "+ plus",
    "=",
    "---",
    "[^1]: note",
    "@all #1",
];

fn hostile(name: &str) -> Record {
    let mut record = fixtures::run();
    record.label = Some(name.into());
    let target = &mut record.targets[0];
    target.name = name.into();
    if let Some(device) = &mut target.device {
        device.model = Some(name.into());
    }
    record.targets.push(Target { index: 9, name: name.into(), ..Target::default() });
    record.cells[0].id = name.into();
    record.findings[0].title = name.into();
    record.findings[0].effect = None;
    record.command = vec!["rdsk".into(), "run".into(), name.into()];
    record
}

#[test]
fn a_summary_fits_a_ticket_and_has_all_its_parts() {
    let record = fixtures::run();
    let text = markdown(&record);
    assert!(text.lines().count() <= MAX_LINES, "{text}");
    let rendered = rendered(&text);
    assert_eq!(rendered.foreign, Vec::<String>::new(), "{text}");
    for part in ["rdsk: ", "What matters here", "To repeat it:", record.id.as_str(), "Linux "] {
        assert!(rendered.text.contains(part), "{part}: {text}");
    }
    assert_eq!(rendered.code, ["rdsk run\n"]);
    let headline = record.cells.iter().filter(|cell| cell.experiment == Experiment::Headline).count();
    assert_eq!(rendered.rows, headline, "{text}");
    for cell in record.cells.iter().filter(|cell| cell.experiment == Experiment::Headline) {
        let rate = Unit::MIB_PER_S.figure(cell.result.bytes_per_s.unwrap().mean);
        assert!(rendered.text.contains(&rate) && rendered.text.contains(cell.name()), "{}: {text}", cell.id);
    }
}

#[test]
fn no_record_makes_a_summary_long() {
    let mut record = hostile(HOSTILE[0]);
    let target = record.targets[0].clone();
    record.targets = (0..200).map(|index| Target { index, ..target.clone() }).collect();
    let (cell, finding) = (record.cells[0].clone(), record.findings[0].clone());
    record.cells.extend((0..500).map(|index| CellRecord { id: format!("headline/{index}"), ..cell.clone() }));
    record.findings.extend((0..100).map(|_| finding.clone()));
    record.command = vec!["word".repeat(50); 100];
    let text = markdown(&record);
    assert!(text.lines().count() <= MAX_LINES, "{}", text.lines().count());
}

#[test]
fn cells_without_figures_take_no_room_from_others() {
    let mut record = fixtures::run();
    let ran = record.cells.iter().find(|cell| cell.experiment == Experiment::Headline).unwrap().clone();
    record.cells = (0..2 * MAX_ROWS)
        .map(|index| CellRecord { id: format!("headline/{index}"), ..ran.clone() })
        .collect();
    for cell in record.cells.iter_mut().step_by(2) {
        cell.result.stop = rdsk_model::StopReason::NotApplicable;
        cell.verdict = None;
    }
    let text = markdown(&record);
    assert_eq!(rendered(&text).rows, MAX_ROWS, "{text}");
    assert!(!text.contains("| headline/0 |") && text.contains("| headline/1 |"), "{text}");
    assert!(text.contains(&format!("and {MAX_ROWS} more cells")), "{text}");
}

#[test]
fn names_stay_text() {
    for name in HOSTILE {
        let record = hostile(name);
        let shown = rdsk_units::printable(name).trim().to_owned();
        for text in [markdown(&record), markdown_table(&[&record, &record])] {
            let rendered = rendered(&text);
            assert_eq!(rendered.foreign, Vec::<String>::new(), "{name}: {text}");
            assert!(rendered.text.contains(&shown), "{name}: {shown}: {}\n{text}", rendered.text);
        }
        assert_eq!(rendered(&markdown(&record)).code.len(), 1, "{name}");
    }
}

#[test]
fn a_table_has_a_row_for_each_cell_and_a_column_for_each_run() {
    let (one, mut other) = (fixtures::run(), fixtures::run());
    other.cells.retain(|cell| cell.experiment == Experiment::Headline);
    let gone = other.cells.remove(0);
    let text = markdown_table(&[&one, &other]);
    let headline: Vec<&CellRecord> = cells::of_experiment(&one, Experiment::Headline).collect();
    assert_eq!(rendered(&text).rows, 2 + headline.len(), "{text}");
    let line = text.lines().find(|line| line.contains(gone.id.as_str())).unwrap();
    assert!(line.ends_with("| – |"), "{line}");
    assert_eq!(line.matches('|').count(), 4, "{line}");
}

#[test]
fn what_has_no_cells_says_what_it_can() {
    let mut record = fixtures::run();
    record.cells.clear();
    record.findings.clear();
    record.targets.clear();
    record.status = Status::Failed;
    record.error =
        Some(rdsk_model::Problem::plain(rdsk_model::ProblemKind::Io, "eio", "the disk <b>fell</b>"));
    let rendered = rendered(&markdown(&record));
    assert!(rendered.text.contains("error: the disk <b>fell</b>"), "{}", rendered.text);
    assert_eq!((rendered.rows, rendered.foreign.len()), (0, 0));
    assert!(markdown_table(&[]).contains("0 runs"));
}

proptest! {
    #[test]
    fn nothing_but_text_comes_of_any_name(name in "[ -~é\\n]{1,40}") {
        let rendered = rendered(&format!("- {}\n\n| a |\n|---|\n{}\n", plain(&name), row([name.as_str()])));
        prop_assert_eq!(&rendered.foreign, &Vec::<String>::new(), "{}", name);
        prop_assert_eq!(rendered.rows, 1);
        let shown = rdsk_units::printable(&name).trim().to_owned();
        prop_assert!(rendered.text.contains(&shown), "{}: {}", name, rendered.text);
    }
}

#[test]
fn the_depth_of_an_open_loop_and_of_a_job_that_rests_is_a_limit() {
    let mut record = fixtures::load();
    let cell = &mut record.cells[0];
    let verdict = rdsk_model::Verdict {
        code: rdsk_model::VerdictCode::Device,
        device_share: None,
        text: "read".into(),
    };
    (cell.verdict, cell.result.in_flight_mean) = (Some(verdict), Some(1.0));
    let job = rdsk_model::LoadJob { rate: None, ..cell.workload.jobs[0].clone() };
    let rate = Some(rdsk_model::Rate { per_s: 3.0, arrivals: rdsk_model::Arrivals::Poisson });
    for (job, word) in [
        (rdsk_model::LoadJob { rate, ..job.clone() }, "device"),
        (rdsk_model::LoadJob { think_ns: 1_000_000, ..job.clone() }, "device"),
        (job, "depth not reached"),
    ] {
        record.cells[0].workload.jobs = vec![job];
        assert_eq!(
            not_device::word(&record, &record.cells[0]),
            Some(word.to_owned()).filter(|word| word != "device")
        );
        let text = markdown(&record);
        assert!(text.contains(&format!("| {word} |")), "{word}: {text}");
    }
}
