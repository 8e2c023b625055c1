//! Pages in a real browser: chromium without a window opens a page from its file, with the network off. A second page, the driver,
//! holds it in a frame, moves a pointer over every figure, presses keys and the button, and writes down what it saw.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rdsk_analysis::{Analysis, fixtures};
use rdsk_html::{Drawing, Subject, of_record, page};
use rdsk_model::Record;
use rdsk_testkit::{Need, requires};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const HOSTILE: &str = "<img src=x onerror=alert(1)>";
const DRIVER: &str = include_str!("driver.html");

/// What the driver saw, and what the browser wrote to its log.
fn driven(record: &Record, width: u32) -> (Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let analysis = Analysis::of(record);
    std::fs::write(directory.path().join("page.html"), page(&[Subject { name: "", analysis: &analysis }]))
        .unwrap();
    let driver = directory.path().join("driver.html");
    std::fs::write(&driver, DRIVER.replace("WIDTH", &width.to_string())).unwrap();
    let output = chromium(directory.path()).arg(format!("file://{}", driver.display())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let seen = text.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen = seen.unwrap_or_else(|| panic!("the driver wrote nothing: {text}\n{log}")).0;
    let seen = seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (serde_json::from_str(&seen).unwrap(), log)
}

/// A browser without a window that prints the page when its script is done. Every name is unknown to it, so it reaches no network.
fn chromium(profile: &Path) -> Command {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]);
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"]);
    command.args(["--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=60000"]);
    command.arg(format!("--user-data-dir={}", profile.join("profile").display()));
    command
}

/// Lines of the log that scripts and policies wrote.
fn complaints(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("CONSOLE")).collect()
}

/// A run with every figure, on a device that calls itself what no device should.
fn record() -> Record {
    let mut record = fixtures::run();
    record.copies = vec![fixtures::copies::to_file(&[100_000_000, 120_000_000])];
    record.label = Some(HOSTILE.into());
    record.targets[0].device.as_mut().unwrap().model = Some(HOSTILE.into());
    record
}

#[test]
fn every_figure_answers_and_nothing_is_loaded() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let record = record();
    let (seen, log) = driven(&record, 1100);
    let analysis = Analysis::of(&record);
    let sections = of_record(&analysis);
    let drawn: Vec<&str> = sections
        .iter()
        .flat_map(|section| &section.figures)
        .filter(|figure| matches!(figure.drawing, Drawing::Plot(_)))
        .map(|figure| figure.id.as_str())
        .collect();
    assert!(drawn.len() > 12);
    for id in drawn {
        let figure = &seen["figures"][id];
        assert!(figure["width"].as_f64().unwrap() > 600.0, "{id}: {figure}");
        for how in ["key", "pointer"] {
            assert!(figure[how].as_str().is_some_and(|text| text.contains('\n')), "{id}, by {how}: {figure}");
        }
        assert_eq!(figure["left"], json!(true), "{id}: the value goes when the pointer does");
    }
    let mean =
        record.cell("headline/read/sequential").unwrap().result.bytes_per_s.unwrap().mean / 1_048_576.0;
    let said = seen["figures"]["headline-bandwidth"]["key"].as_str().unwrap();
    assert!(said.contains(&format!("bandwidth: {mean:.0} MiB/s")), "{mean}: {said}");
    let said = seen["figures"]["headline-latency"]["key"].as_str().unwrap();
    assert!(said.contains("as fast: 50 %"), "the axis of percentiles says shares: {said}");
    assert_eq!(seen["resources"], json!(0), "the page loads nothing");
    assert_eq!(seen["images"], json!(0), "a name is text");
    assert!(seen["text"].as_str().unwrap().contains(HOSTILE));
    assert_eq!(complaints(&log), [] as [&str; 0]);
}

#[test]
fn the_button_changes_every_colour_and_changes_it_back() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let (seen, _) = driven(&record(), 1100);
    let colors = seen["colors"].as_array().unwrap();
    assert_eq!(colors.len(), 3);
    for index in 0..3 {
        assert_ne!(colors[0][index], colors[1][index], "{colors:?}");
    }
    assert_eq!(colors[0], colors[2]);
}

#[test]
fn a_phone_shows_narrow_figures_and_never_scrolls_sideways() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    for (width, shown, hidden) in [(390, "narrow", "wide"), (1100, "wide", "narrow")] {
        let (seen, _) = driven(&record(), width);
        assert_eq!(seen["inner"], json!(width));
        assert!(seen["scroll"].as_u64().unwrap() <= u64::from(width), "{seen}");
        assert_eq!(seen[hidden], json!(0));
        assert!(seen[shown].as_u64().unwrap() > 12);
    }
}

#[test]
fn a_hundred_thousand_dots_are_few_elements() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let (record, _) = fixtures::zones::made(2000, 50, |place, pass, number| {
        10_000_000
            + u64::from(place) * 3000
            + (u64::from(pass) * 7919 + u64::from(number) * 104_729) % 2_000_000
    });
    let (seen, log) = driven(&record, 1100);
    assert!(seen["elements"].as_u64().unwrap() < 3000, "{}", seen["elements"]);
    assert!(seen["figures"]["zones-read-1-mib"]["pointer"].as_str().unwrap().contains("pass "));
    assert_eq!(complaints(&log), [] as [&str; 0]);
}
