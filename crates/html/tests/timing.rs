//! What only a quiet machine shows: how soon a large page is there. `cargo xtask campaign timing` runs it; what no other program can
//! change of the same pages is in browser.rs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::chromium::{Chromium, NEEDS};
use crate::support::pages;
use rdsk_testkit::requires;

/// From the request for the page until everything on it was painted for the first time, in ms.
const OPENED: &str = "(() => { const [page] = performance.getEntriesByType('navigation'); \
    const paints = performance.getEntriesByType('paint').map((one) => one.startTime); \
    return Math.max(page.loadEventEnd, ...paints); })()";

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_page_with_a_hundred_thousand_dots_opens_within_two_seconds() {
    if !requires(&NEEDS) {
        return;
    }
    let written = pages::hundred_thousand();
    let mut browser = Chromium::start();
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..5 {
        browser.open(&written.page);
        times.push(browser.evaluate(OPENED).as_f64().unwrap());
    }
    times.sort_by(f64::total_cmp);
    let bytes = std::fs::metadata(&written.page).unwrap().len();
    println!("{bytes} bytes open within {times:.0?} ms");
    assert!(times[2] < 2000.0, "{times:?} ms");
}
