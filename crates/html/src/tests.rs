//! Whole pages and files as text.

use super::*;
use rdsk_analysis::{Analysis, fixtures};
use rdsk_model::{Confidence, Finding, Record, Severity};

const HOSTILE: &str = "<img src=x onerror=alert(1)></script><!--\u{2028}";

fn page_of(record: &Record) -> String {
    page(&[Subject { name: "", analysis: &Analysis::of(record) }])
}

#[test]
fn a_page_holds_every_figure_and_loads_nothing() {
    let record = fixtures::run();
    let text = page_of(&record);
    assert!(text.starts_with(FIRST_BYTES));
    for figure in sections(&[Subject { name: "", analysis: &Analysis::of(&record) }])
        .iter()
        .flat_map(|section| &section.figures)
    {
        assert!(text.contains(&format!("<figure id=\"{}\">", figure.id)), "{}", figure.id);
    }
    for outside in ["http:", "https:", "src=", "@import", "url(", "style="] {
        assert!(!text.contains(outside), "{outside}");
    }
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
}

#[test]
fn what_decides_comes_first_and_all_findings_last() {
    let finding = Finding {
        code: "made-up".into(),
        severity: Severity::Uncertain,
        title: "a sentence of a finding".into(),
        text: String::new(),
        evidence: Vec::new(),
        confidence: Confidence::Measured,
        advice: None,
        cells: Vec::new(),
        experiment: None,
        covers_verdicts: false,
        effect: None,
    };
    let record = Record { findings: vec![finding; 6], ..fixtures::run() };
    let text = page_of(&record);
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is there"));
    let order = [
        "class=\"headline\"",
        "<figure id=\"headline-rates\">",
        "What to know",
        "<section id=\"paths\">",
        "<figure id=\"paths-time\">",
        "<section id=\"scale\">",
        "<section id=\"about\">",
    ];
    let places = order.map(place);
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(text.matches("<figure id=\"headline-rates\">").count(), 1);
    assert!(place("class=\"findings\"") > places[6]);
    let said = |part: &str| part.to_lowercase().matches("a sentence of a finding").count();
    let (first, last) = text.split_at(places[6]);
    assert_eq!((said(first), said(last)), (4, 6), "four bullets, and all of them at the end");
}

#[test]
fn several_results_begin_with_which_is_faster() {
    let (one, mut other) = (fixtures::run(), fixtures::run());
    for cell in &mut other.cells {
        // Four times the bytes in the same time, in every repeat.
        for visit in &mut cell.result.visits {
            (visit.bytes, visit.ops) = (4 * visit.bytes, 4 * visit.ops);
        }
        for rate in [&mut cell.result.bytes_per_s, &mut cell.result.ops_per_s].into_iter().flatten() {
            let four_times = |value: f64| 4.0 * value;
            *rate = rdsk_model::Estimate {
                mean: four_times(rate.mean),
                low: rate.low.map(four_times),
                high: rate.high.map(four_times),
            };
        }
    }
    let (first, second) = (Analysis::of(&one), Analysis::of(&other));
    let text = page(&[Subject { name: "old", analysis: &first }, Subject { name: "new", analysis: &second }]);
    let sentence = text.split("class=\"headline\">").nth(1).unwrap().split('<').next().unwrap();
    assert!(sentence.starts_with("new is faster: "), "{sentence}");
    assert!(sentence.contains(" tests, none slower; "), "{sentence}");
    let back = page(&[Subject { name: "new", analysis: &second }, Subject { name: "old", analysis: &first }]);
    assert!(back.contains("class=\"headline\">new is faster: "), "the same, whichever is first");
    let three = page(&["a", "b", "c"].map(|name| Subject { name, analysis: &first }));
    assert_eq!(
        three.matches("class=\"headline\">Against a: ").count(),
        2,
        "of several, each says against which"
    );
}

/// A name is text within a flag, too.
#[test]
fn a_flag_is_one_word_and_names_stay_text() {
    let html = super::page::whole_flags("run with --budget, or <b> --x<i>").to_string();
    assert_eq!(
        html,
        "run with <span class=\"flag\">--budget,</span> or &lt;b&gt; <span class=\"flag\">--x&lt;i&gt;</span>"
    );
}

#[test]
fn names_are_text_and_data_wherever_they_stand() {
    let mut record = fixtures::run();
    record.label = Some(HOSTILE.into());
    record.command = vec!["rdsk".into(), HOSTILE.into()];
    record.notes = vec![HOSTILE.into()];
    // Two targets, so that their names are in every legend.
    let mut other = record.targets[0].clone();
    (other.index, other.name) = (1, HOSTILE.into());
    record.targets[0].name = HOSTILE.into();
    record.targets[0].device.as_mut().unwrap().model = Some(HOSTILE.into());
    record.targets.push(other);
    let text = page_of(&record);
    assert!(!text.contains("<img"));
    assert_eq!(text.matches("<!--").count(), 1, "our own");
    assert_eq!(text.matches("</script>").count(), text.matches("<script").count());
    assert!(text.contains("&lt;img src=x onerror=alert(1)&gt;"), "it is there as text");
    for figure in sections(&[Subject { name: "", analysis: &Analysis::of(&record) }])
        .iter()
        .flat_map(|section| &section.figures)
    {
        let Some(svg) = svg(figure) else { continue };
        assert!(!svg.contains("<img") && !svg.contains("<!--"), "{}", figure.id);
    }
}

#[test]
fn a_hundred_thousand_dots_are_few_elements_and_megabytes() {
    let (record, _) = fixtures::zones::made(2000, 50, |place, pass, number| {
        10_000_000
            + u64::from(place) * 3000
            + (u64::from(pass) * 7919 + u64::from(number) * 104_729) % 2_000_000
    });
    let text = page_of(&record);
    assert!(text.len() < 6_000_000, "{} bytes", text.len());
    let elements = text.matches('<').count() - text.matches("</").count();
    assert!(elements < 3000, "{elements} elements");
}

#[test]
fn a_file_has_title_legend_and_colours_of_its_own() {
    let record = fixtures::run();
    let sections = sections(&[Subject { name: "", analysis: &Analysis::of(&record) }]);
    let figure = sections
        .iter()
        .flat_map(|section| &section.figures)
        .find(|figure| figure.id == "paths-time")
        .unwrap();
    let text = svg(figure).unwrap();
    assert!(text.contains("Time for the same bytes, direct and buffered</text>"));
    assert!(text.contains("flush until on disk</text>"), "the legend");
    assert!(text.contains(".c0{color:#"));
    let nothing = Figure { drawing: Drawing::Nothing { why: "Because.".into() }, ..figure.clone() };
    assert_eq!(svg(&nothing), None);
}
