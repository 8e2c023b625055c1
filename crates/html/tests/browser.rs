//! Pages in a real browser: chromium without a window opens each page from its file, with the network off; a pointer is moved over
//! every figure, keys and the button are pressed, and what is shown is compared with the figures.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support::chromium::{Chromium, NEEDS};
use crate::support::contrast;
use crate::support::pages::{HOSTILE, Written, hundred_thousand, several, single};
use crate::support::tips;
use rdsk_html::{Drawing, Figure, Plot, Shape};
use rdsk_testkit::{Need, requires};
use serde_json::{Value, json};

/// The figures that are drawn.
fn plots(figures: &[Figure]) -> Vec<(&Figure, &Plot)> {
    let drawn = figures.iter().filter_map(|figure| match &figure.drawing {
        Drawing::Plot(plot) => Some((figure, plot)),
        Drawing::Nothing { .. } => None,
    });
    drawn.collect()
}

fn plot_of(figure: &Figure) -> &Plot {
    match &figure.drawing {
        Drawing::Plot(plot) => plot,
        Drawing::Nothing { why } => panic!("{}: {why}", figure.id),
    }
}

/// A place of the window, as the browser gives it: `[x, y]`.
fn place(value: &Value) -> (f64, f64) {
    (value[0].as_f64().unwrap(), value[1].as_f64().unwrap())
}

/// The text beside the value that is shown, or nothing.
fn tip(browser: &mut Chromium, id: &str) -> Option<String> {
    let shown = browser.evaluate(&format!(
        "(() => {{ const tip = document.querySelector('#{id} .tip'); return tip.hidden ? null : tip.textContent; }})()"
    ));
    shown.as_str().map(str::to_owned)
}

/// The middle of the ring around the value that is shown.
fn ring(browser: &mut Chromium, id: &str) -> (f64, f64) {
    place(&browser.evaluate(&format!(
        "(() => {{ const box = document.querySelector('#{id} .hit').getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
    )))
}

/// Shows every figure, also those that are folded.
const UNFOLD: &str = "document.querySelectorAll('.more').forEach((one) => { one.open = true; })";

/// Moves over the drawing from its left to its right and gives what was shown on the way, each text once.
fn sweep(browser: &mut Chromium, id: &str) -> Vec<String> {
    let area = browser.evaluate(&format!(
        "(() => {{ const figure = document.getElementById('{id}'); figure.scrollIntoView({{ block: 'center' }}); \
         const svg = [...figure.querySelectorAll('.plot svg')].find((one) => one.getClientRects().length > 0); \
         const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width; \
         const [left, top, right, bottom] = svg.dataset.area.split(' ').map((one) => one * scale); \
         return [box.x + left, box.y + top, box.x + right, box.y + bottom]; }})()"
    ));
    let [left, top, right, bottom] = [0, 1, 2, 3].map(|index| area[index].as_f64().unwrap());
    let mut seen = Vec::new();
    for (across, down) in [(0.02, 0.9), (0.25, 0.5), (0.5, 0.4), (0.5, 0.85), (0.75, 0.6), (0.97, 0.1)] {
        browser.point_at((left + across * (right - left), top + down * (bottom - top)));
        seen.extend(tip(browser, id).filter(|text| !seen.contains(text)));
    }
    browser.point_at((1.0, 1.0));
    assert_eq!(tip(browser, id), None, "{id}: the value goes when the pointer does");
    seen
}

#[test]
fn every_figure_shows_its_values_to_a_pointer_and_nothing_is_loaded() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    for Written { page, figures, .. } in [single(), several()] {
        browser.open(&page);
        browser.evaluate(UNFOLD);
        let drawn = plots(&figures);
        assert!(drawn.len() > 12, "{} figures", drawn.len());
        for (figure, plot) in drawn {
            let id = &figure.id;
            let known = tips::all(plot);
            let seen = sweep(&mut browser, id);
            for text in &seen {
                assert!(known.contains(text), "{id} says what its figures do not: {text}\n{known:#?}");
            }
            // Exactly on a value, that value or one at the same place is shown.
            browser
                .evaluate(&format!("document.querySelector('#{id} .plot').focus({{ preventScroll: true }})"));
            browser.press("ArrowRight");
            let (at, by_key) = (ring(&mut browser, id), tip(&mut browser, id).unwrap());
            assert!(known.contains(&by_key), "{id}, by key: {by_key}");
            browser.press("Escape");
            assert_eq!(tip(&mut browser, id), None, "{id}: Escape takes the value away");
            browser.point_at(at);
            let by_pointer = tip(&mut browser, id).unwrap_or_default();
            assert!(known.contains(&by_pointer), "{id}, by pointer: {by_pointer}");
            let there = ring(&mut browser, id);
            // Where one part of a bar ends the next begins, so either may be meant.
            let has_bars = plot.series.iter().any(|series| matches!(series.shape, Shape::Bar { .. }));
            let across = if has_bars { 0.0 } else { there.0 - at.0 };
            assert!(
                across.hypot(there.1 - at.1) <= 3.0,
                "{id}: {by_key} at {at:?}, but {by_pointer} at {there:?}"
            );
        }
        let requests = browser.requests();
        assert_eq!(requests.len(), 1, "only the page itself: {requests:?}");
        assert_eq!(browser.evaluate("performance.getEntriesByType('resource').length"), json!(0));
        assert_eq!(browser.complaints(), [""; 0]);
    }
}

#[test]
fn what_a_pointer_finds_is_the_mean_of_the_record() {
    if !requires(&NEEDS) {
        return;
    }
    let written = single();
    let mut browser = Chromium::start();
    browser.open(&written.page);
    browser.evaluate(UNFOLD);
    let cell = written.records[0].cell("headline/read/sequential").unwrap();
    let mean = cell.result.bytes_per_s.unwrap().mean / 1_048_576.0;
    browser.evaluate("document.querySelector('#headline-rates .plot').focus()");
    browser.press("ArrowRight");
    let said = tip(&mut browser, "headline-rates").unwrap();
    assert!(said.contains(&format!("read\n{mean:.0} MiB/s ±")), "{mean}: {said}");
    browser.evaluate("document.querySelector('#headline-latency .plot').focus()");
    browser.press("End");
    let deepest = tip(&mut browser, "headline-latency").unwrap();
    assert!(deepest.contains("as fast: 9"), "the last value of the line: {deepest}");
    browser.press("Home");
    let first = tip(&mut browser, "headline-latency").unwrap();
    assert!(first.contains("as fast: 50%"), "the first one: {first}");
}

#[test]
fn the_tab_key_reaches_every_figure_and_arrows_go_through_its_values() {
    if !requires(&NEEDS) {
        return;
    }
    let written = single();
    let mut browser = Chromium::start();
    browser.open(&written.page);
    browser.evaluate(UNFOLD);
    let drawn: Vec<&str> = plots(&written.figures).iter().map(|(figure, _)| figure.id.as_str()).collect();
    let mut reached: Vec<String> = Vec::new();
    let mut outlines = 0;
    for _ in 0..400 {
        browser.press("Tab");
        let focus = browser.evaluate(
            "(() => { const one = document.activeElement; const style = getComputedStyle(one); \
             return { plot: one.matches('.plot') ? one.parentElement.id : null, end: one === document.body, \
             outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 }; })()",
        );
        if focus["end"] == json!(true) {
            break;
        }
        if let Some(id) = focus["plot"].as_str() {
            if reached.iter().any(|one| one == id) {
                break;
            }
            outlines += u32::from(focus["outline"] == json!(true));
            browser.press("ArrowRight");
            assert!(tip(&mut browser, id).is_some(), "{id}");
            reached.push(id.to_owned());
        }
    }
    assert_eq!(reached, drawn);
    assert_eq!(outlines as usize, drawn.len(), "the focus is seen");
    // Right and left go along a series, down and up change it.
    let id = "paths-time";
    browser.evaluate(&format!("document.querySelector('#{id} .plot').focus()"));
    let mut texts = Vec::new();
    for key in ["ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"] {
        browser.press(key);
        texts.push(tip(&mut browser, id).unwrap());
    }
    assert_ne!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
    assert_ne!(texts[2], texts[3]);
    assert_eq!(texts[2], texts[4]);
    browser.press("Tab");
    assert_eq!(tip(&mut browser, id), None, "the value goes with the focus");
}

#[test]
fn the_button_changes_every_colour_and_changes_it_back() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    browser.open(&single().page);
    let colors = "[getComputedStyle(document.body).backgroundColor, \
                  getComputedStyle(document.querySelector('svg .c0')).color, \
                  getComputedStyle(document.querySelector('svg text')).fill]";
    let button = browser.evaluate(
        "(() => { const box = document.getElementById('theme').getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + box.height / 2]; })()",
    );
    let mut seen = vec![browser.evaluate(colors)];
    for _ in 0..2 {
        browser.click(place(&button));
        seen.push(browser.evaluate(colors));
    }
    // A system that is dark gives the colours of the dark button.
    browser.system("dark");
    browser.open(&single().page);
    seen.push(browser.evaluate(colors));
    for index in 0..3 {
        assert_ne!(seen[0][index], seen[1][index], "{seen:?}");
    }
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[1], seen[3]);
    assert_eq!(browser.evaluate("document.getElementById('theme').textContent"), "Light theme");
}

/// Text that is drawn smaller than this many pixels on the screen, with its size.
const SMALL: &str = "(() => { const small = []; \
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
    for (let node = walk.nextNode(); node; node = walk.nextNode()) { \
      const one = node.parentElement; \
      if (!node.data.trim() || !one.getClientRects().length || one.closest('script, style, .skip')) continue; \
      const svg = one.closest('svg'); \
      const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1; \
      const size = parseFloat(getComputedStyle(one).fontSize) * scale; \
      if (size < 11) small.push(`${size}: ${node.data.trim()}`); \
    } return small; })()";

#[test]
fn a_phone_shows_narrow_figures_and_never_scrolls_sideways() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    for Written { page, figures, .. } in [single(), several()] {
        for (width, shown, hidden) in [(390, "narrow", "wide"), (1100, "wide", "narrow")] {
            browser.window(width, 844, 1);
            browser.open(&page);
            browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
            let scroll = browser.evaluate("document.documentElement.scrollWidth");
            assert!(scroll.as_u64().unwrap() <= u64::from(width), "{scroll} of {width} pixels");
            let mut count = |class: &str| {
                browser.evaluate(&format!(
                    "[...document.querySelectorAll('svg.{class}')].filter((one) => one.getClientRects().length > 0).length"
                ))
            };
            assert_eq!(count(hidden), json!(0));
            assert_eq!(count(shown), json!(plots(&figures).len()));
            assert_eq!(browser.evaluate(SMALL), json!([]), "at {width} pixels");
        }
    }
    // A finger that is lifted leaves the value there; one on something else takes it away.
    browser.window(390, 844, 1);
    browser.open(&single().page);
    let id = "headline-rates";
    let bar = browser.evaluate(&format!(
        "(() => {{ document.getElementById('{id}').scrollIntoView({{ block: 'center' }}); \
         const box = [...document.querySelectorAll('#{id} svg.narrow .area')][0].getBoundingClientRect(); \
         return [box.x + box.width - 2, box.y + box.height / 2]; }})()"
    ));
    browser.tap(place(&bar));
    browser.painted();
    assert!(tip(&mut browser, id).is_some_and(|text| text.contains("iB/s")), "the value stays");
}

/// Tables that are wider than there is room for, by the figure that they belong to.
const CLIPPED: &str = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1) \
    .map((one) => `${one.closest('figure').id}: ${one.scrollWidth} of ${one.clientWidth}`)";
/// Drawings that leave a part of their figure's width free.
const NARROW: &str = "[...document.querySelectorAll('.plot > svg')].filter((one) => one.getClientRects().length > 0 \
    && one.getBoundingClientRect().width < Math.min(520, one.closest('.plot').clientWidth) - 1 \
    || one.matches('.wide') && one.getClientRects().length > 0 \
    && one.getBoundingClientRect().width < one.closest('.plot').clientWidth - 1).length";

#[test]
fn no_table_is_clipped_and_every_plot_is_as_wide_as_its_figure() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    for Written { page, .. } in [single(), several()] {
        for width in [390, 1100] {
            browser.window(width, 844, 1);
            browser.open(&page);
            browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
            assert_eq!(browser.evaluate(CLIPPED), json!([]), "at {width} pixels");
            assert_eq!(browser.evaluate(NARROW), json!(0), "at {width} pixels");
        }
    }
}

#[test]
fn the_first_screen_has_the_verdict_the_headline_and_what_to_know() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    browser.window(1100, 900, 1);
    browser.open(&single().page);
    let places = browser.evaluate(
        "['.headline', '#headline-rates svg.wide', '.verdict h2', '.verdict > ul li'].map((one) => { \
         const box = document.querySelector(one).getBoundingClientRect(); return [box.top, box.bottom]; })",
    );
    let bottoms: Vec<f64> = (0..4).map(|index| places[index][1].as_f64().unwrap()).collect();
    assert!(bottoms.is_sorted() && bottoms[3] <= 900.0, "{places}");
}

#[test]
fn every_text_and_every_line_has_enough_contrast() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    for theme in ["light", "dark"] {
        browser.system(theme);
        for written in [single(), several()] {
            browser.open(&written.page);
            browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
            let seen = browser.evaluate(contrast::SCRIPT);
            assert!(seen["texts"].as_u64().unwrap() > 200 && seen["lines"].as_u64().unwrap() > 50, "{seen}");
            assert_eq!(seen["faint"], json!([]), "{theme}");
        }
    }
}

/// The other tests rest on it: whatever a page does wrong is heard.
#[test]
fn what_goes_wrong_on_a_page_is_heard() {
    if !requires(&NEEDS) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut browser = Chromium::start();
    for (wrong, told) in [
        ("<script>console.log('one')</script>", "one"),
        ("<script>throw new Error('two')</script>", "two"),
        ("<img src=three.png>", "ERR_FILE_NOT_FOUND"),
        (
            "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\"><script>4</script>",
            "script-src",
        ),
        ("<img src='http://127.0.0.1:9/five.png'>", "ERR_INTERNET_DISCONNECTED"),
        ("<img src='http://example.com/six.png'>", "ERR_INTERNET_DISCONNECTED"),
    ] {
        let page = directory.path().join("wrong.html");
        std::fs::write(&page, format!("<!doctype html><title>wrong</title>{wrong}")).unwrap();
        browser.open(&page);
        let heard = browser.complaints();
        assert!(heard.iter().any(|text| text.contains(told)), "{wrong}: {heard:?}");
        assert_eq!(browser.complaints(), [""; 0], "each once");
    }
}

#[test]
fn a_hostile_name_is_text_and_opens_nothing() {
    if !requires(&NEEDS) {
        return;
    }
    let mut browser = Chromium::start();
    for written in [single(), several()] {
        browser.open(&written.page);
        browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
        let text = browser.evaluate("document.querySelector('main').textContent");
        assert!(text.as_str().unwrap().contains(HOSTILE), "it is there");
        assert_eq!(browser.evaluate("document.images.length"), json!(0));
        // What a page could run, it would have run by now: a dialog is among the complaints.
        assert_eq!(browser.complaints(), [""; 0]);
    }
}

#[test]
fn a_hundred_thousand_dots_are_few_elements_and_keep_their_values() {
    if !requires(&NEEDS) {
        return;
    }
    let written = hundred_thousand();
    let mut browser = Chromium::start();
    browser.open(&written.page);
    browser.evaluate(UNFOLD);
    let elements = browser.evaluate("document.querySelectorAll('*').length");
    assert!(elements.as_u64().unwrap() < 3000, "{elements}");
    let id = "zones-read-1-mib";
    let figure = written.figures.iter().find(|figure| figure.id == id).unwrap();
    let known = tips::all(plot_of(figure));
    let seen = sweep(&mut browser, id);
    assert!(!seen.is_empty());
    for text in seen {
        assert!(text.contains("sweep ") && known.contains(&text), "{text}");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn paper_cuts_no_figure() {
    if !requires(&[&NEEDS[..], &[Need::Tool("pdftotext")]].concat()) {
        return;
    }
    let mut browser = Chromium::start();
    for written in [single(), several()] {
        let pdf = written.directory.path().join("page.pdf");
        browser.open(&written.page);
        std::fs::write(&pdf, browser.pdf()).unwrap();
        let mut command = std::process::Command::new("pdftotext");
        command.arg("-layout").arg(&pdf).arg("-");
        let text = rdsk_testkit::cli::run(command, std::time::Duration::from_secs(120)).stdout;
        let pages: Vec<String> = text.split('\u{c}').map(tips::spaced).collect();
        assert!(pages.len() > 3, "{text}");
        for (figure, plot) in plots(&written.figures) {
            // The title stands above a drawing, and the name of the lower axis is the last text in it.
            let (title, axis) = (tips::spaced(&figure.title), tips::spaced(&plot.x.label()));
            let on: Vec<&String> = pages.iter().filter(|page| page.contains(&title)).collect();
            assert!(!on.is_empty(), "{title}: {pages:#?}");
            assert!(on.iter().any(|page| page.contains(&axis)), "{title}: no \"{axis}\" on its page");
        }
        assert!(!text.contains("Dark theme"), "a button is nothing on paper");
        let advice = written.records.iter().flat_map(|record| &record.findings);
        let advice: Vec<&str> = advice.filter_map(|finding| finding.advice.as_deref()).collect();
        assert!(!advice.is_empty());
        for advice in advice {
            let start = advice.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
            assert!(tips::spaced(&text).contains(&start), "{start}");
        }
        let open = browser.evaluate("document.querySelectorAll('.about details[open], .more[open]').length");
        assert_eq!(open, json!(0), "the screen is as before");
    }
}

/// Pictures for people to look at: `cargo xtask screenshots`.
#[test]
#[ignore = "screenshots: cargo xtask screenshots"]
fn screenshots() {
    let Some(directory) = std::env::var_os("RDSK_SCREENSHOTS") else { return };
    assert!(requires(&NEEDS));
    let mut pages: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "html"));
    pages.sort();
    assert!(!pages.is_empty());
    let mut browser = Chromium::start();
    for page in &pages {
        for (name, width, theme) in
            [("light", 1000, "light"), ("dark", 1000, "dark"), ("phone", 390, "light")]
        {
            browser.system(theme);
            browser.window(width, 844, 1);
            browser.open(page);
            std::fs::write(page.with_extension(format!("{name}.png")), browser.screenshot(width)).unwrap();
        }
        // The first screen alone, as a reader sees it.
        for (name, width, height, theme) in [
            ("first-light", 1100, 900, "light"),
            ("first-dark", 1100, 900, "dark"),
            ("first-phone", 390, 844, "light"),
        ] {
            browser.system(theme);
            browser.window(width, height, 1);
            browser.open(page);
            std::fs::write(page.with_extension(format!("{name}.png")), browser.first_screen()).unwrap();
        }
        browser.system("light");
        browser.window(1000, 844, 1);
        browser.open(page);
        std::fs::write(page.with_extension("pdf"), browser.pdf()).unwrap();
    }
}
