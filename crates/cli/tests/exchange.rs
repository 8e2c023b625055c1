//! `rdsk export`, `rdsk import` and the flags that write a Record in another form: what goes where, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, error_and_hint, holds_only, rdsk, scratch};
use rdsk_model::Record;
use rdsk_testkit::cli;
use std::fs;
use std::path::Path;
use std::process::Command;

const FIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../exchange/tests/fixtures/fio");
const HEADLINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/1-headline.json");
const ZONES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/1-zones.json");

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn record(text: &str) -> Record {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_format_goes_to_standard_output_or_to_a_file() {
    let scratch = scratch();
    let headline = record(&read(Path::new(HEADLINE)));
    for (format, start) in [
        ("json", "{\n"),
        ("csv", "record_id,label,started_at,"),
        ("openmetrics", "# HELP rdsk_run_info "),
        ("markdown", "### rdsk: "),
    ] {
        let run = rdsk(["export", HEADLINE, "--format", format]);
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{format}");
        assert!(run.stdout.starts_with(start), "{format}: {}", run.stdout);
        let file = scratch.path().join(format);
        // A second time over the first.
        for _ in 0..2 {
            let run_to_file = rdsk(["export", HEADLINE, "--format", format, "-o", file.to_str().unwrap()]);
            assert_eq!(
                (run_to_file.status_code, run_to_file.stdout.as_str()),
                (Some(0), ""),
                "{}",
                run_to_file.stderr
            );
            assert_eq!(read(&file), run.stdout, "{format}");
        }
        if format == "json" {
            // What was written by an older version is of today's schema when it is written again.
            let mut expected = headline.clone();
            expected.schema = rdsk_model::SCHEMA.into();
            assert!(record(&run.stdout) == expected, "the Record of {HEADLINE} has changed");
        }
    }
    holds_only(scratch.path(), &["csv", "json", "markdown", "openmetrics"]);
}

#[test]
fn several_records_are_one_document() {
    let run = rdsk(["export", HEADLINE, ZONES, "--format", "csv"]);
    let cells = record(&read(Path::new(HEADLINE))).cells.len() + record(&read(Path::new(ZONES))).cells.len();
    assert_eq!(run.stdout.lines().count(), 1 + cells);
    let run = rdsk(["export", HEADLINE, ZONES, "--format", "markdown"]);
    assert!(run.stdout.starts_with("### rdsk: 2 runs\n"), "{}", run.stdout);
    let run = rdsk(["export", HEADLINE, ZONES, "--format", "openmetrics"]);
    assert_eq!(run.stdout.matches("\nrdsk_run_info{").count(), 2);
    let run = rdsk(["export", HEADLINE, ZONES, "--format", "json"]);
    assert_eq!(run.status_code, Some(2));
    assert_eq!(error_and_hint(&run).0, "--format json takes one Record");
}

#[test]
fn nothing_but_its_own_kind_is_replaced() {
    let scratch = scratch();
    let mine = scratch.path().join("mine");
    for content in ["important\n", "a,b\n1,2\n", "{\"schema\":\"rdsk.record/1\"}\n", "# Notes\n"] {
        fs::write(&mine, content).unwrap();
        for format in ["csv", "openmetrics", "markdown"] {
            let run = rdsk(["export", HEADLINE, "--format", format, "-o", mine.to_str().unwrap()]);
            assert_eq!(run.status_code, Some(3), "{format}");
            let (error, hint) = error_and_hint(&run);
            assert!(error.contains("an existing file that is not such a document of rdsk"), "{error}");
            assert!(hint.contains("--output"), "{hint}");
        }
        assert_eq!(read(&mine), content);
    }
    let run = rdsk(["run", "sim:linux-disk", "--markdown", mine.to_str().unwrap()]);
    assert_eq!((run.status_code, run.stdout.as_str()), (Some(3), ""), "refused before anything is measured");
    assert_eq!(read(&mine), "# Notes\n");
    // The document that is read is never the one that is written.
    let copy = scratch.path().join("copy.json");
    fs::copy(HEADLINE, &copy).unwrap();
    let name = copy.to_str().unwrap();
    let run = rdsk(["export", name, "--format", "json", "-o", name]);
    assert_eq!((run.status_code, read(&copy)), (Some(2), read(Path::new(HEADLINE))), "{}", run.stderr);
}

#[test]
fn a_run_writes_all_forms_beside_its_page() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, prom, markdown) = (path("r.json"), path("r.csv"), path("r.prom"), path("r.md"));
    let line = ["run", "sim:linux-disk", "--only", "headline", "--seed", "1", "-q"];
    let flags = ["--json", &json, "--csv", &csv, "--openmetrics", &prom, "--markdown", &markdown];
    let run = rdsk(line.iter().chain(&flags));
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("\nDetails: "), "the page is still there: {}", run.stdout);
    for (format, file) in [("csv", &csv), ("openmetrics", &prom), ("markdown", &markdown)] {
        assert_eq!(read(Path::new(file)), rdsk(["export", &json, "--format", format]).stdout, "{format}");
        // And rdsk show says the same, here in place of the page.
        let shown = rdsk(["show", &json, &format!("--{format}"), "-"]);
        assert_eq!((shown.stdout, shown.status_code), (read(Path::new(file)), Some(0)), "{format}");
    }
}

#[test]
fn what_fio_measured_is_shown_kept_and_passed_on() {
    let scratch = scratch();
    let fio = format!("{FIO}/libaio-plus.json");
    let page = rdsk(["import", &fio]);
    assert_eq!((page.status_code, page.stderr.as_str()), (Some(0), ""));
    let document: serde_json::Value = serde_json::from_str(&read(Path::new(&fio))).unwrap();
    let iops = document["jobs"][0]["read"]["iops"].as_f64().unwrap();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some ten thousand")]
    let shown = rdsk_units::grouped(iops.round() as u64);
    assert!(page.stdout.starts_with("fio-3.33, read by rdsk "), "{}", page.stdout);
    assert!(
        page.stdout.contains(&shown) && page.stdout.contains("fio counts no bytes of the device"),
        "{shown}: {}",
        page.stdout
    );
    let kept = scratch.path().join("kept.json");
    let name = kept.to_str().unwrap();
    let run = rdsk(["import", &fio, "-o", name, "--label", "night"]);
    assert_eq!(run.status_code, Some(0), "{}", run.stderr);
    let kept = record(&read(&kept));
    assert_eq!((kept.label.as_deref(), kept.cells.len()), (Some("night"), 1));
    let again = rdsk(["show", name]);
    assert_eq!(
        again.stdout.lines().skip(1).collect::<Vec<_>>(),
        page.stdout.lines().skip(1).collect::<Vec<_>>()
    );
    // A Record is imported as it is.
    let run = rdsk(["import", name, "-o", "-"]);
    assert_eq!(record(&run.stdout), kept);
    // Through a pipe, several at once, and where the pages go one after the other.
    let mut shell = Command::new("sh");
    let script = format!("cat '{FIO}/notes-before.json' | {} import -", env!("CARGO_BIN_EXE_rdsk"));
    shell.args(["-c", &script]).env("LC_ALL", "C");
    let piped = cli::run(shell, common::SOON);
    assert_eq!(piped.status_code, Some(0), "{}", piped.stderr);
    assert!(
        piped.stdout.contains("writer/write") && piped.stdout.contains("reader/read"),
        "{}",
        piped.stdout
    );
    let both = rdsk(["import", &fio, &format!("{FIO}/many.json")]);
    assert_eq!(both.stdout.matches("read by rdsk").count(), 2);
}

/// As `fio >> FILE` leaves them, or behind the mark that some editors put first.
#[test]
fn each_document_of_a_file_is_imported() {
    let scratch = scratch();
    let [one, other] = ["libaio-plus", "many"].map(|name| read(Path::new(&format!("{FIO}/{name}.json"))));
    let file = scratch.path().join("night.json");
    let name = file.to_str().unwrap();
    fs::write(&file, format!("\u{feff}{one}{other}")).unwrap();
    let run = rdsk(["import", name]);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout.matches("read by rdsk").count(), 2, "{}", run.stdout);
    let document = scratch.path().join("one.json");
    let refused = rdsk(["import", name, "-o", document.to_str().unwrap()]);
    assert_eq!((refused.status_code, refused.stdout.as_str()), (Some(2), ""));
    assert!(error_and_hint(&refused).0.contains("the file holds 2 documents"), "{}", refused.stderr);
    assert!(!document.exists());
    fs::write(&file, format!("{one}{}", &other[..other.len() / 2])).unwrap();
    let cut = rdsk(["import", name]);
    assert_eq!((cut.status_code, cut.stdout.as_str()), (Some(2), ""), "no half of an answer");
    assert!(error_and_hint(&cut).0.contains("its JSON is damaged or cut off"), "{}", cut.stderr);
}

#[test]
fn what_is_no_document_of_a_run_is_told_in_words() {
    let scratch = scratch();
    let write = |name: &str, content: &[u8]| {
        let path = scratch.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fio = read(Path::new(&format!("{FIO}/grouped.json")));
    let huge = write("huge", b"{");
    fs::File::options().write(true).open(&huge).unwrap().set_len((1 << 30) + 1).unwrap();
    for (file, said) in [
        (write("text", b"hello"), "it holds neither a Record of rdsk nor the JSON of fio"),
        (write("bytes", &[0xff, 0, 1]), "it holds neither"),
        (write("cut", &fio.as_bytes()[..fio.len() / 2]), "its JSON is damaged or cut off"),
        (write("old", fio.replace("fio-3.33", "fio-1.59").as_bytes()), "it is of fio-1.59"),
        (write("later", b"{\"schema\": \"rdsk.record/9\"}"), "its schema is \"rdsk.record/9\""),
        (huge, "it is larger than 1 GiB"),
        (scratch.path().to_str().unwrap().into(), "it is not a regular file"),
        ("/nonexistent/fio.json".into(), "No such file"),
    ] {
        let run = rdsk(["import", &file]);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""), "{file}: {}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        assert!(error.starts_with("import ") && error.contains(said), "{error}");
        assert!(hint.contains("--output-format=json"), "{hint}");
    }
    // What reads Records only says what reads this, in whatever encoding it is.
    let page = scratch.path().join("page.html").to_str().unwrap().to_owned();
    let wide: Vec<u8> = fio.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for file in [
        write("plain", fio.as_bytes()),
        write("wide", &wide),
        write("half", &fio.as_bytes()[..fio.len() / 2]),
    ] {
        for line in [
            vec!["show", &file],
            vec!["compare", &file, &file],
            vec!["report", &file, "-o", &page],
            vec!["export", &file, "--format", "csv"],
        ] {
            let run = rdsk(line.clone());
            assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""), "{line:?}: {}", run.stderr);
            let (error, hint) = error_and_hint(&run);
            assert!(error.starts_with(line[0]) && error.contains("it is what fio printed"), "{error}");
            assert!(hint.starts_with(&format!("rdsk import {file} ")), "{hint}");
        }
    }
    // A Record is read no further than a document of fio.
    let run = rdsk(["show", scratch.path().join("huge").to_str().unwrap()]);
    assert_eq!(run.status_code, Some(2));
    assert!(error_and_hint(&run).0.contains("it is larger than 1 GiB"), "{}", run.stderr);
    // One that is bad keeps the others from being shown, so that a script sees no half of an answer.
    let run = rdsk(["import", &format!("{FIO}/many.json"), &write("bad", b"[]")]);
    assert_eq!((run.status_code, run.stdout.as_str()), (Some(2), ""));
}
