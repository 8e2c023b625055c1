//! The screens that no library draws alone, at 80 and 40 columns, in ASCII and without colour: each fits, and each is kept as it is.
//! Simulated systems have the same figures everywhere.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, command};
use rdsk_testkit::cli;
use std::path::Path;
use unicode_width::UnicodeWidthStr as _;

/// Name, words, and exit code.
const SCREENS: &[(&str, &[&str], i32)] = &[
    ("check", &["check", "gitlab", "sim:wd2500", "--seed", "1", "--no-history", "--ascii", "-q"], 1),
    ("check-list", &["check", "list"], 0),
    (
        "load",
        &[
            "load", "sim:wd2500", "--rw", "randrw", "--mix", "70", "--seed", "1", "--no-history", "--ascii",
            "-q",
        ],
        0,
    ),
    ("compare", &["compare", "a.json", "b.json", "--ascii"], 0),
    ("plan", &["run", "sim:wd2500", "--dry-run", "--ascii"], 0),
    ("sim-list", &["sim", "list"], 0),
    ("info", &["info", "sim:tms-ramsan", "--ascii"], 0),
    ("list", &["list", "--history", "h.db"], 0),
];

/// Whether a word is like 2026-11-28T23:06:38Z.
fn is_moment(word: &str) -> bool {
    word.len() == 20 && word.ends_with('Z') && word.contains('T')
}

/// The page with ids and moments of the same width that are the same in each run.
fn masked(page: &str) -> String {
    let mask = |word: &str| match word.trim_end() {
        id if id.len() == 10 && id.starts_with("01") => word.replace(id, "0123456789"),
        date if date.len() == 10 && date.starts_with("20") => word.replace(date, "YYYY-MM-DD"),
        time if time.len() == 5 && time.as_bytes()[2] == b':' => word.replace(time, "hh:mm"),
        _ => word.to_owned(),
    };
    page.split_inclusive([' ', '\n']).map(mask).collect()
}

fn screen(directory: &Path, columns: usize, words: &[&str], code: i32) -> String {
    let mut line = command(words);
    line.current_dir(directory).env("COLUMNS", columns.to_string());
    let run = cli::run(line, common::SOON);
    assert_eq!(run.status_code, Some(code), "{}: {}", run.command, run.stderr);
    // Without the moment of the run, the time that it took here, and its id.
    let (page, _) = run.stdout.split_once("Simulated ").unwrap_or((&run.stdout, ""));
    page.lines()
        .filter(|line| !line.split([',', ' ']).any(is_moment))
        .map(|line| masked(&format!("{line}\n")))
        .collect()
}

#[test]
fn screens_fit_80_and_40_columns() {
    let directory = tempfile::tempdir().unwrap();
    for (name, system) in [("a.json", "sim:wd2500"), ("b.json", "sim:linux-disk")] {
        let words =
            ["run", system, "--seed", "1", "--only", "headline", "--no-history", "-q", "--json", name];
        screen(directory.path(), 80, &words, 0);
        screen(directory.path(), 80, &["import", name, "--history", "h.db"], 0);
    }
    for (name, words, code) in SCREENS {
        for columns in [80, 40] {
            let page = screen(directory.path(), columns, words, *code);
            assert!(page.is_ascii(), "{name}: {page}");
            let wide: Vec<&str> = page.lines().filter(|line| line.width() > columns).collect();
            assert!(wide.is_empty() && page.lines().count() > 2, "{name} at {columns}: {wide:#?}\n{page}");
            insta::assert_snapshot!(format!("{name}-{columns}"), page);
        }
    }
}
