use super::*;
use crate::style::{Charset, Color};
use rdsk_compare::{Condition, compare, course, differences, judge, repeated};
use rdsk_finding::fixtures::{all_in_rounds, run};
use rdsk_model::{Estimate, Problem, ProblemKind, VerdictCode};
use serde_json::Value;

/// The run of the fixtures, with every rate times this factor.
fn scaled(factor: f64) -> Record {
    let mut record = all_in_rounds(&run());
    for cell in &mut record.cells {
        cell.result.bytes_per_s = cell.result.bytes_per_s.map(|rate| {
            let mean = rate.mean * factor;
            Estimate { mean, low: Some(mean * 0.998), high: Some(mean * 1.002) }
        });
    }
    record
}

fn drawn(base: &Record, others: &[&Record], conditions: &[Condition], extent: Extent) -> (String, Value) {
    let runs: Vec<&Record> = std::iter::once(base).chain(others.iter().copied()).collect();
    let names: Vec<String> = (0..runs.len()).map(|place| format!("run-{place}.json")).collect();
    let compared = compare(base, others);
    let judgements = judge(&compared, conditions);
    let differences = differences(&runs);
    let comparing = Comparing {
        names: &names,
        runs: &runs,
        differences: &differences,
        compared: &compared,
        judgements: &judgements,
    };
    let text = compared_text(&comparing, extent, Style::default());
    (text, serde_json::from_str(&compared_json(&comparing, &[])).unwrap())
}

#[test]
fn a_slower_run_is_said_to_be_slower_and_nothing_is_wider_than_the_page() {
    let (base, mut other) = (scaled(1.0), scaled(0.9));
    other.host.as_mut().unwrap().kernel = "7.0.1".into();
    other.label = Some("\u{1b}[2Jnew".into());
    let condition: Condition = "slower>5%".parse().unwrap();
    let (text, document) = drawn(&base, &[&other, &base], std::slice::from_ref(&condition), Extent::Short);
    for part in [
        "kernel: A ", "B 7.0.1", "run-0.json is faster: ", "No clear difference in ", "Biggest: ", "0.900",
        "slower", "slower>5%: met in", "Details: --details",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.lines().all(|line| line.width() <= 80) && !text.contains('\u{1b}'), "{text}");
    let full = drawn(&base, &[&other], &[], Extent::Full).0;
    for part in ["B AGAINST A", "HOW SURE"] {
        assert!(full.contains(part) && !text.contains(part), "{part}:\n{full}");
    }
    for cell in &base.cells {
        let test: String = words::test_label(cell).chars().take(13).collect();
        assert!(full.contains(&test), "{test}:\n{full}");
    }
    let overall = &document["comparisons"][0]["overall"];
    assert!((overall["ratio"].as_f64().unwrap() - 0.9).abs() < 1e-6 && overall["faster"] == 0, "{overall}");
    let first = &document["comparisons"][0]["cells"][0]["changes"][0];
    assert_eq!((&first["figure"], &first["answer"]), (&Value::from("rate"), &Value::from("slower")));
    assert!(document["comparisons"][1]["cells"][0]["changes"][0]["answer"] == "no difference seen");
    assert!(!document["conditions"][0]["met"].as_array().unwrap().is_empty());
}

/// Two runs of one disk: a sentence, and where the rest is.
#[test]
fn no_difference_is_one_line() {
    let (base, mut other) = (scaled(1.0), scaled(1.0));
    other.targets[0].device.as_mut().unwrap().scheduler = Some("bfq".into());
    let text = drawn(&base, &[&other], &[], Extent::Short).0;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("No clear difference in ") && lines[0].contains(" on average"), "{text}");
    assert!(lines[1].starts_with("Setup differs: scheduler ") && lines[1].ends_with(" → bfq."), "{text}");
    assert_eq!((lines[2], lines.len()), ("", 4), "{text}");
    insta::assert_snapshot!("no-difference", text);
}

/// The screens at both widths, in ASCII too: what decides stands first.
#[test]
fn a_comparison_is_a_screen() {
    let (base, mut other) = (scaled(1.0), scaled(1.2));
    other.cells[2].result.bytes_per_s = base.cells[2].result.bytes_per_s;
    other.host.as_mut().unwrap().kernel = "7.0.1".into();
    let runs = [&base, &other];
    let names = ["before", "after"].map(String::from);
    let (compared, differences) = (compare(&base, &[&other]), differences(&runs));
    let comparing = Comparing {
        names: &names,
        runs: &runs,
        differences: &differences,
        compared: &compared,
        judgements: &[],
    };
    for (name, width, charset, most) in [
        ("80", 80, Charset::Unicode, 30),
        ("40", 40, Charset::Unicode, 42),
        ("ascii", 80, Charset::Ascii, 30),
    ] {
        let style = Style { width, color: Color::Never, charset };
        let text = compared_text(&comparing, Extent::Short, style);
        assert!(text.starts_with("after is faster: ") && text.lines().count() <= most, "{text}");
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn what_could_not_have_been_seen_is_said() {
    let mut vague = scaled(1.0);
    for cell in &mut vague.cells {
        cell.result.bytes_per_s = cell.result.bytes_per_s.map(|rate| Estimate {
            low: Some(rate.mean * 0.7),
            high: Some(rate.mean * 1.3),
            ..rate
        });
    }
    let condition: Condition = "slower>5%".parse().unwrap();
    let (text, document) = drawn(&scaled(1.0), &[&vague], &[condition], Extent::Short);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("met in none of") && text.contains("leave open a change of 5"), "{text}");
    let cell = &document["comparisons"][0]["cells"][0];
    let [low, high] =
        ["low_corrected", "high_corrected"].map(|key| cell["changes"][0][key].as_f64().unwrap());
    let named = format!("corrected for all): B {} {low:.3}–{high:.3}", words::test_label(&vague.cells[0]));
    assert!(text.contains(&named), "{named}: {text}");
    let unsure = document["conditions"][0]["unsure"].as_array().unwrap();
    assert!(unsure[0]["blind_within"].as_f64().unwrap() > 0.3, "{}", unsure[0]);
}

#[test]
fn runs_without_a_common_cell_say_so() {
    let (base, mut other) = (scaled(1.0), scaled(1.0));
    other.cells.iter_mut().for_each(|cell| cell.workload.block_bytes += 512);
    let text = drawn(&base, &[&other], &[], Extent::Short).0;
    assert!(text.contains("Nothing is compared: no test of ") && text.contains(" of A alone: "), "{text}");
}

#[test]
fn runs_that_were_refused_say_why() {
    let refused = |message: &str| {
        let problem = Problem::new(ProblemKind::Refused, "mounted", message, "unmount it");
        Record { cells: Vec::new(), status: Status::Failed, error: Some(problem), ..run() }
    };
    let (mounted, busy) = (refused("/dev/sdx is mounted"), refused("/dev/sdx is in use"));
    let first = |base: &Record, other: &Record| {
        let text = drawn(base, &[other], &[], Extent::Short).0;
        text.split("\n\n").next().unwrap_or_default().replace('\n', " ")
    };
    assert_eq!(
        first(&mounted, &mounted),
        "Nothing is compared: neither run has a test; both failed: /dev/sdx is mounted."
    );
    assert_eq!(
        first(&mounted, &busy),
        "Nothing is compared: run-0.json has no test; it failed: /dev/sdx is mounted; \
         run-1.json has no test; it failed: /dev/sdx is in use."
    );
    let half = first(&scaled(1.0), &busy);
    let said = "Nothing is compared: run-1.json has no test; it failed: /dev/sdx is in use. ";
    assert!(half.starts_with(said), "{half}");
}

#[test]
fn a_course_has_a_curve_and_says_since_when() {
    let runs: Vec<Record> = (1..=12)
        .map(|day| {
            let mut one = scaled(if day > 6 { 0.8 } else { 1.0 } + 0.001 * f64::from(day % 3));
            one.started_at = format!("2026-03-{day:02}T10:00:00Z");
            one.id = format!("run {day}");
            one
        })
        .collect();
    let runs: Vec<&Record> = runs.iter().collect();
    let id = runs[0].cells[0].id.clone();
    let found = course(&runs, &id, Metric::Rate).unwrap();
    let style = Style { width: 80, color: Color::Never, charset: Charset::Unicode };
    let text = course_text(&found, &[], style);
    assert!(text.contains("since 2026-03-07 20") && text.contains("slower than before"), "{text}");
    assert!(text.contains('█') && text.lines().all(|line| line.width() <= 80), "{text}");
    let document: Value = serde_json::from_str(&course_json(&found, &[])).unwrap();
    assert_eq!(
        (&document["shape"]["kind"], &document["shape"]["steps"][0]["from"]),
        (&"steps".into(), &6.into())
    );
    let few = course(&runs[..4], &id, Metric::Rate).unwrap();
    let text = course_text(&few, &[], style);
    assert!(text.contains("takes 8 runs") && !text.contains("DIFFERS"), "{text}");
}

/// Of twelve runs of one day, the day of the seventh says nothing.
#[test]
fn runs_of_one_day_are_told_apart_by_the_time() {
    let mut runs: Vec<Record> = (0..12)
        .map(|hour| {
            let mut one = scaled(if hour >= 6 { 0.8 } else { 1.0 } + 0.001 * f64::from(hour % 3));
            one.started_at = format!("2026-03-06T{:02}:05:00.25Z", hour + 10);
            one.id = format!("run {hour}");
            one.host.as_mut().unwrap().kernel = if hour < 6 { "6.1" } else { "7.0" }.into();
            one
        })
        .collect();
    let said = |runs: &[Record]| {
        let runs: Vec<&Record> = runs.iter().collect();
        let found = course(&runs, &runs[0].cells[0].id, Metric::Rate).unwrap();
        course_text(&found, &differences(&runs), Style::default())
    };
    let text = said(&runs);
    assert!(text.contains("since 2026-03-06T16:05:00Z 20"), "{text}");
    assert!(text.contains("7.0 in 6 runs since 2026-03-06T16:05:00Z"), "{text}");
    // The first run of another day needs none.
    runs[6..].iter_mut().for_each(|run| run.started_at = run.started_at.replace("-06T", "-07T"));
    for run in &mut runs[7..] {
        run.started_at = run.started_at.replace("-07T", "-08T");
    }
    let text = said(&runs);
    assert!(text.contains("since 2026-03-07 20") && !text.contains("since 2026-03-07T"), "{text}");
}

fn course_of(runs: &mut [Record], factors: &[f64], metric: Metric) -> (String, Value) {
    for (day, (run, factor)) in (1..).zip(runs.iter_mut().zip(factors)) {
        run.started_at = format!("2026-03-{day:02}T10:00:00Z");
        run.id = format!("run {day}");
        let rate = run.cells[0].result.bytes_per_s.as_mut().unwrap();
        rate.mean *= factor;
        let latency = run.cells[0].result.latency_ns.as_mut().unwrap();
        latency.p50 = latency.p50.map(|ns| rdsk_analysis::metrics::whole(ns as f64 * factor));
    }
    let runs: Vec<&Record> = runs.iter().collect();
    let found = course(&runs, &runs[0].cells[0].id, metric).unwrap();
    let differences = differences(&runs);
    let text = course_text(&found, &differences, Style::default());
    (text, serde_json::from_str(&course_json(&found, &differences)).unwrap())
}

#[test]
fn a_course_over_several_targets_and_kernels_says_so() {
    let mut runs: Vec<Record> = (0..5).map(|_| scaled(1.0)).collect();
    for (place, run) in runs.iter_mut().enumerate() {
        run.targets[0].name = ["/dev/sda", "/dev/sdb"][place % 2].into();
        run.host.as_mut().unwrap().kernel = if place < 3 { "6.1" } else { "7.0" }.into();
        run.label = Some(format!("day {place}"));
    }
    let (text, document) = course_of(&mut runs, &[1.0; 5], Metric::Rate);
    for line in [
        "  kernel: 6.1 in 3 runs | 7.0 in 2 runs since 2026-03-04",
        "  name: /dev/sda in 3 runs | /dev/sdb in 2 runs",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
    }
    assert!(!text.contains("label:"), "{text}");
    let kernels = &document["differences"].as_array().unwrap()[1];
    assert_eq!(kernels["what"], "kernel");
    assert_eq!(kernels["values"].as_array().unwrap().len(), document["runs"].as_array().unwrap().len());
}

/// Four runs of the disk and four of a hole are no disk that became faster.
#[test]
fn a_course_has_no_runs_of_nothing_and_says_whose_the_others_are() {
    let mut runs: Vec<Record> = (0..8).map(|_| scaled(1.0)).collect();
    let code = |run: &mut Record, code| run.cells[0].verdict.as_mut().unwrap().code = code;
    runs[..4].iter_mut().for_each(|run| code(run, VerdictCode::Device));
    runs[4..].iter_mut().for_each(|run| code(run, VerdictCode::Hole));
    let factors = [1.0, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0, 10.0];
    let (text, document) = course_of(&mut runs, &factors, Metric::Rate);
    assert!(
        text.contains("left out, the test read unallocated blocks there") && !text.contains("faster"),
        "{text}"
    );
    assert!(!text.contains("verdict"), "{text}");
    assert_eq!(document["runs"].as_array().unwrap().len(), 4);
    assert_eq!(document["runs"][0]["verdict"], "device");
    let left_out = document["left_out"].as_array().unwrap();
    assert!(
        left_out.len() == 4 && left_out[0]["why"].as_str().unwrap().contains("unallocated"),
        "{document}"
    );
    code(&mut runs[2], VerdictCode::PageCache);
    let (text, document) = course_of(&mut runs, &[1.0; 8], Metric::Rate);
    let row = text.lines().find(|line| line.contains("2026-03-03T")).unwrap_or_default();
    assert!(row.contains("page-cache") && text.contains("verdict"), "{text}");
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    assert_eq!(document["runs"][2]["verdict"], "page-cache");
}

#[test]
fn a_last_run_like_the_first_is_said_to_be_like_it() {
    let said = |last: f64, metric| {
        let mut runs: Vec<Record> = (0..4).map(|_| scaled(1.0)).collect();
        let text = course_of(&mut runs, &[1.0, 1.2, 0.9, last], metric).0;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (last, metric, words) in [
        (1.0, Metric::Rate, "the last run is as fast as the first. Whether"),
        (1.0004, Metric::Rate, "the last run is as fast as the first. Whether"),
        (0.95, Metric::Rate, "the last run is 5.0% slower than the first. Whether"),
        (1.0, Metric::P50, "the latency of the last run is as long as that of the first. Whether"),
        (1.5, Metric::P50, "the latency of the last run is 50.0% longer than that of the first. Whether"),
    ] {
        let text = said(last, metric);
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// What only the baseline has is named under the condition, however well the rest goes.
#[test]
fn a_figure_that_a_run_lost_is_named() {
    let (base, mut other) = (scaled(1.0), scaled(1.0));
    let lost = |cell: &&mut rdsk_model::CellRecord| {
        cell.result.latency_ns.as_ref().is_some_and(|latency| latency.p50.is_some())
    };
    let cell = other.cells.iter_mut().find(lost).unwrap();
    let (id, test) = (cell.id.clone(), words::test_label(cell));
    let latency = cell.result.latency_ns.as_mut().unwrap();
    (latency.count, latency.p50) = (7, None);
    other.status = rdsk_model::Status::Failed;
    let condition: Condition = "p50:slower>10%".parse().unwrap();
    let (text, document) = drawn(&base, &[&other], &[condition], Extent::Short);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("no p50 in B: {test} (7 I/Os, 20 are needed)")), "{text}");
    let missing = &document["conditions"][0]["missing"][0];
    assert_eq!((&missing["cell"], &missing["other"]), (&Value::from(id), &Value::from(1)));
    assert_eq!(missing["why"], "7 I/Os, 20 are needed");
}

/// The pair of a run that lost a figure is left out, and said to be; a run without a partner, too.
#[test]
fn a_figure_that_one_of_several_runs_lost_is_named_with_its_run() {
    let began = |(minute, mut run): (usize, Record)| {
        run.started_at = format!("2026-03-01T10:{minute:02}:00Z");
        run
    };
    let base: Vec<Record> = (0..5).map(|_| scaled(1.0)).enumerate().map(began).collect();
    let mut other = base[..4].to_vec();
    let of_device = |cell: &&mut CellRecord| {
        cell.verdict.as_ref().is_some_and(|verdict| verdict.code == VerdictCode::Device)
            && cell.result.latency_ns.as_ref().is_some_and(|latency| latency.p50.is_some())
    };
    let cell = other[1].cells.iter_mut().find(of_device).unwrap();
    let test = words::test_label(cell);
    let latency = cell.result.latency_ns.as_mut().unwrap();
    (latency.count, latency.p50) = (7, None);
    let compared = repeated(&base, &other).unwrap();
    let conditions = ["p50:slower>10%".parse().unwrap()];
    let judgements = judge(&compared, &conditions);
    assert!(judgements[0].is_open());
    let names = ["rdsk run".to_owned(), "rdsk run".to_owned()];
    let comparing = Comparing {
        names: &names,
        runs: &[&base[0], &other[0]],
        differences: &[],
        compared: &compared,
        judgements: &judgements,
    };
    let text = compared_text(&comparing, Extent::Full, Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["of 3 of 4 pairs of runs", "Left out: 1 run without a partner."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let named = format!("no p50 in run 2 of B: {test} (7 I/Os, 20 are needed)");
    assert_eq!(text.matches(&named).count(), 2, "below the tables and below the condition: {text}");
    let document: Value = serde_json::from_str(&compared_json(&comparing, &[])).unwrap();
    let pair = &document["comparisons"][0];
    assert_eq!((&pair["basis"]["pairs"], &pair["basis"]["alone"]), (&Value::from(4), &Value::from(1)));
    assert_eq!(pair["lost"], document["conditions"][0]["missing"]);
    assert_eq!(pair["lost"][0]["run"], serde_json::json!({ "side": "b", "number": 2 }));
}
