//! What stands around fio's documents in the field: logs, wrappers, encodings; and what is left of them when they are cut off or
//! damaged.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use rdsk_exchange::{csv, import, is_of_fio, openmetrics};
use rdsk_model::Record;
use serde_json::{Value, json};

macro_rules! field {
    ($($name:literal),+ $(,)?) => {
        const FIELD: &[(&str, &str)] = &[$(($name, include_str!(concat!("fixtures/fio/field/", $name)))),+];
    };
}
field!(
    "client-2-hosts.json", "client-stonewall.json", "etcd-fdatasync.json", "fio2.18.json",
    "group-of-4-fio3.1.json", "kubectl-prefix.txt", "no-options.json", "status-interval.json",
);

fn text(name: &str) -> &'static str {
    FIELD.iter().find(|(field, _)| *field == name).unwrap().1
}

/// What scripts, collectors and shells make of a document.
#[test]
fn what_stands_around_a_document_changes_nothing() {
    for (name, text) in FIELD.iter().filter(|(name, _)| *name != "status-interval.json") {
        let plain = import(*text).unwrap();
        assert!(is_of_fio(text.as_bytes()));
        let wide = |unit: fn(u16) -> [u8; 2], mark: &[u8]| -> Vec<u8> {
            mark.iter().copied().chain(text.encode_utf16().flat_map(unit)).collect()
        };
        for bytes in [
            wide(u16::to_le_bytes, &[0xff, 0xfe]),
            wide(u16::to_be_bytes, &[0xfe, 0xff]),
            wide(u16::to_le_bytes, &[]),
            [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
            text.replace('\n', "\r\n").into_bytes(),
        ] {
            assert_eq!(import(&bytes).unwrap(), plain, "{name}");
            assert!(is_of_fio(&bytes), "{name}");
        }
        if *name == "kubectl-prefix.txt" {
            continue;
        }
        let compact = serde_json::from_str::<Value>(text).unwrap().to_string();
        let before = |prefix: &str| text.lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
        let objects = text
            .lines()
            .map(|line| format!("{}\n", json!({ "log": format!("{line}\n"), "stream": "stdout" })));
        for around in [
            before("    "),
            before("\t"),
            before("2026-01-01T00:00:00.123456789Z stdout F "),
            before("fio-1  | "),
            before("[pod/a{b}/fio] "),
            before("{app=\"fio\"} "),
            before("Nov  7 23:00:00 host fio[12]: "),
            before("2026-01-01 INFO [x] {\"a\": 1} "),
            format!("I{{note}} x\n{}W done {{}}\n", before("fio> ")),
            format!("starting {{pod: x}}\n[INFO] go\nresult: {text}bye\n"),
            format!("{{\n\"host\": \"a\",\n\"result\": {text}}}\n"),
            format!("[\n{text}]\n"),
            format!("{{\"runs\": [{{\"fio\": {compact}}}], \"schema\": \"bench/1\"}}"),
            format!("2026-01-01 INFO result={compact}\n"),
            json!({ "stdout": text, "rc": 0 }).to_string(),
            objects.collect(),
            format!("{{\"level\": \"info\"}}\n{compact}\n{{\"level\": \"info\"}}\n"),
        ] {
            let read = import(&around).unwrap_or_else(|error| panic!("{name}: {error}: {around:.300}"));
            assert_eq!(read, plain, "{name}: {around:.200}");
        }
        // Sorted keys, as `jq -S` writes them, so that fio's first key is not the first.
        let twice = format!("2026-01-01 INFO result={compact}\n2026-01-01 INFO result={compact}\n");
        assert_eq!(import(&twice).unwrap().len(), 2, "{name}");
        assert_eq!(import(&format!("{text}{text}")).unwrap().len(), 2, "{name}");
    }
}

#[test]
fn other_streams_of_a_log_stand_between() {
    let plain = import(text("kubectl-prefix.txt")).unwrap();
    assert_eq!((plain[0].cells[0].result.ops, plain[0].cells[0].id.as_str()), (Some(62_274), "fio/eta/read"));
    let mut lines: Vec<&str> = text("kubectl-prefix.txt").lines().collect();
    for (place, line) in [
        (9, "2026-01-01T00:00:00.5Z stderr F fio: a note {x}"),
        (5, "2026-01-01T00:00:00Z stderr F [WARN] {disk}"),
        (3, "a line without a prefix"),
        (0, "2026-01-01T00:00:00Z stdout F starting {pod}"),
        (0, ""),
    ] {
        lines.insert(place, line);
    }
    assert_eq!(import(&lines.join("\n")).unwrap(), plain);
    let cut = lines[..lines.len() - 3].join("\n");
    assert!(import(&cut).unwrap_err().to_string().starts_with("its JSON is damaged or cut off"));
}

#[test]
fn a_document_that_is_cut_off_is_refused_wherever() {
    // Reports of one run are as many documents.
    for (name, text) in FIELD.iter().filter(|(name, _)| *name != "status-interval.json") {
        let text = text.trim_end();
        for length in (text.len() / 5..text.len()).step_by(61) {
            let cut = &text[..length];
            assert!(import(cut).is_err(), "{name} at {length}: {}", &cut[cut.len() - 60..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damage_is_no_panic(
        which in 0..FIELD.len(),
        place in 0.0..1.0_f64,
        length in 0_usize..30,
        put in prop::sample::select(vec!["", "\"", "{", "}", "[", "]", "nan", "-1", "1e400", "null", "\u{feff}", "\n", "\n{\n", "99999999999999999999", ",", ": "]),
    ) {
        let text = FIELD[which].1;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small text")]
        let at = (place * text.len() as f64) as usize;
        let end = (at + length).min(text.len());
        prop_assume!(text.is_char_boundary(at) && text.is_char_boundary(end));
        let damaged = format!("{}{put}{}", &text[..at], &text[end..]);
        match import(&damaged) {
            Ok(records) => {
                let runs: Vec<&Record> = records.iter().collect();
                prop_assert!(!csv(runs.iter().copied()).is_empty() && !openmetrics(&runs).is_empty());
                let again: Vec<Record> = serde_json::from_str(&serde_json::to_string(&records).unwrap()).unwrap();
                prop_assert_eq!(again, records);
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}
