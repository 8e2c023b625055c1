//! Pages in a real browser, from a file, with the network off.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod chromium;

use chromium::{DESK, PHONE, Shown};
use headless_chrome::browser::tab::point::Point;
use rdsk_analysis::{Analysis, fixtures};
use rdsk_html::{Drawing, Figure, Subject, of_record, page};
use rdsk_model::Record;
use rdsk_testkit::{Need, requires};
use serde_json::json;
use std::path::PathBuf;
use tempfile::TempDir;

const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// A run with every figure, on a device that calls itself what no device should.
fn record() -> Record {
    let mut record = fixtures::run();
    record.copies = vec![fixtures::copies::to_file(&[100_000_000, 120_000_000])];
    record.label = Some(HOSTILE.into());
    record.targets[0].device.as_mut().unwrap().model = Some(HOSTILE.into());
    record
}

/// The page in a directory that goes away with it.
fn saved(record: &Record) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    let analysis = Analysis::of(record);
    std::fs::write(&path, page(&[Subject { name: "", analysis: &analysis }])).unwrap();
    (directory, path)
}

#[test]
fn every_figure_is_drawn_and_answers_and_nothing_is_loaded() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let record = record();
    let (_directory, path) = saved(&record);
    let shown = Shown::open(&path);
    let analysis = Analysis::of(&record);
    let figures: Vec<Figure> = of_record(&analysis).into_iter().flat_map(|section| section.figures).collect();
    let is_drawn = |figure: &&Figure| matches!(figure.drawing, Drawing::Plot(_));
    for figure in figures.iter().filter(is_drawn) {
        let id = &figure.id;
        let box_of = |what: &str| {
            shown.value(&format!("document.querySelector('#{id} svg.wide').getBoundingClientRect().{what}"))
        };
        assert!(box_of("width").as_f64().unwrap() > 600.0, "{id}");
        shown.value(&format!("document.getElementById('{id}').scrollIntoView({{block: 'center'}}) || 1"));
        // The place of the first value, as a pointer would find it.
        shown.tab.evaluate(&format!("document.querySelector('#{id} .plot').focus()"), false).unwrap();
        shown.tab.press_key("ArrowRight").unwrap();
        let ring = shown.value(&format!(
            "(r => ({{x: r.x + r.width / 2, y: r.y + r.height / 2}}))(document.querySelector('#{id} .hit').getBoundingClientRect())"
        ));
        let by_key = shown.value(&format!("document.querySelector('#{id} .tip').textContent"));
        assert!(by_key.as_str().unwrap().contains('\n'), "{id}: {by_key}");
        shown.tab.evaluate("document.activeElement.blur()", false).unwrap();
        assert_eq!(shown.value(&format!("document.querySelector('#{id} .tip').hidden")), json!(true), "{id}");
        let point = Point { x: ring["x"].as_f64().unwrap(), y: ring["y"].as_f64().unwrap() };
        shown.tab.move_mouse_to_point(point).unwrap();
        let by_pointer = shown.value(&format!("document.querySelector('#{id} .tip').textContent"));
        assert_eq!(
            shown.value(&format!("document.querySelector('#{id} .tip').hidden")),
            json!(false),
            "{id}"
        );
        assert!(by_pointer.as_str().is_some_and(|text| !text.is_empty()), "{id}: {by_pointer}");
    }
    assert_eq!(shown.value("performance.getEntriesByType('resource').length"), json!(0));
    assert_eq!(shown.complaints(), [] as [String; 0]);
    // The name is text: no element was made of it, and it can be read.
    assert_eq!(shown.value("document.images.length"), json!(0));
    assert_eq!(shown.value(&format!("document.body.textContent.includes({})", json!(HOSTILE))), json!(true));
}

#[test]
fn a_value_under_the_pointer_is_that_of_the_record() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let record = record();
    let (_directory, path) = saved(&record);
    let shown = Shown::open(&path);
    shown.tab.evaluate("document.querySelector('#headline-bandwidth .plot').focus()", false).unwrap();
    shown.tab.press_key("ArrowRight").unwrap();
    let text = shown.value("document.querySelector('#headline-bandwidth .tip').textContent");
    let mean =
        record.cell("headline/read/sequential").unwrap().result.bytes_per_s.unwrap().mean / 1_048_576.0;
    assert!(text.as_str().unwrap().contains(&format!("bandwidth: {mean:.0} MiB/s")), "{mean}: {text}");
}

#[test]
fn the_theme_follows_the_system_and_the_button() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let (_directory, path) = saved(&record());
    let shown = Shown::open(&path);
    let colors = || {
        let of = |selector: &str, what: &str| {
            shown.value(&format!("getComputedStyle(document.querySelector('{selector}')).{what}"))
        };
        (of("body", "backgroundColor"), of("svg .c0", "color"), of("svg text", "fill"))
    };
    let light = colors();
    shown.theme("dark");
    let dark = colors();
    assert!(light.0 != dark.0 && light.1 != dark.1 && light.2 != dark.2, "{light:?} {dark:?}");
    shown.tab.find_element("#theme").unwrap().click().unwrap();
    assert_eq!(colors(), light, "the button wins over the system");
    shown.tab.find_element("#theme").unwrap().click().unwrap();
    assert_eq!(colors(), dark);
    assert_eq!(shown.complaints(), [] as [String; 0]);
}

#[test]
fn a_phone_shows_everything_without_scrolling_sideways() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let (_directory, path) = saved(&record());
    let shown = Shown::open(&path);
    for (size, visible, hidden) in [(DESK, "wide", "narrow"), (PHONE, "narrow", "wide")] {
        shown.screen(size);
        shown.value("document.querySelectorAll('details').forEach(one => { one.open = true; }) || 1");
        assert_eq!(
            shown.value("document.documentElement.scrollWidth <= innerWidth"),
            json!(true),
            "{size:?}"
        );
        let count = |class: &str| {
            shown.value(&format!("[...document.querySelectorAll('svg.{class}')].filter(one => one.getClientRects().length > 0).length"))
        };
        assert_eq!(count(hidden), json!(0));
        assert!(count(visible).as_u64().unwrap() > 10);
    }
}

#[test]
fn a_hundred_thousand_dots_open_in_few_elements() {
    if !requires(&[Need::Tool("chromium")]) {
        return;
    }
    let (record, _) = fixtures::zones::made(2000, 50, |place, pass, number| {
        10_000_000 + u64::from(place) * 3000 + u64::from(pass * 7919 + number * 104_729) % 2_000_000
    });
    let (_directory, path) = saved(&record);
    let shown = Shown::open(&path);
    let dots = "Math.max(...[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.dot').length))";
    assert!((1..400).contains(&shown.value(dots).as_u64().unwrap()));
    assert!(shown.value("document.querySelectorAll('*').length").as_u64().unwrap() < 3000);
    let values = "JSON.parse(document.querySelector('#zones-read-1-mib script').textContent).series.reduce((sum, one) => sum + (one.name.startsWith('pass') ? one.x.length : 0), 0)";
    assert_eq!(shown.value(values), json!(100_000));
    assert_eq!(shown.complaints(), [] as [String; 0]);
}
