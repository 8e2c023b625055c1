//! `--resume`: finished cells are taken over, the others measured, and what is unlike is refused.

use super::Place;
use crate::common::error_and_hint;
use rdsk_testkit::cli::Ended;
use serde_json::Value;
use std::fs;

const LINE: [&str; 6] = ["run", "sim:wd2500", "--only", "headline,paths", "--budget", "60s"];

/// A Record whose last cells had no turn when a signal came, in the file `cut.json`; gives the whole one and the ids of those
/// cells.
fn cut(place: &Place, change: impl Fn(&mut Value)) -> (Value, Vec<String>) {
    place.quiet(&[&LINE[..], &["--json", "whole.json"]].concat());
    let path = place.directory.path().join("whole.json");
    let whole: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut cut = whole.clone();
    cut["status"] = "interrupted".into();
    let cells = cut["cells"].as_array_mut().unwrap();
    let missing: Vec<String> =
        cells.split_off(cells.len() - 3).iter().map(|cell| text(&cell["id"])).collect();
    change(&mut cut);
    fs::write(place.directory.path().join("cut.json"), cut.to_string()).unwrap();
    (whole, missing)
}

/// The sittings of a cell's visits.
fn sittings(cell: &Value) -> Vec<u64> {
    let visits = cell["result"]["visits"].as_array().unwrap().iter();
    let mut sitting_numbers: Vec<u64> = visits.map(|visit| visit["sitting"].as_u64().unwrap_or(0)).collect();
    sitting_numbers.dedup();
    sitting_numbers
}

/// The same cell as the run has it that measured it.
fn in_its_own_run(cell: &Value) -> Value {
    let mut cell = cell.clone();
    for visit in cell["result"]["visits"].as_array_mut().unwrap() {
        visit.as_object_mut().unwrap().remove("sitting");
    }
    cell
}

/// Of two cells that were measured in two sittings no ratio is reported, and where one would stand that is said.
fn not_compared_across_sittings(record: &Value) {
    let sitting = |id: &Value| {
        let cells = record["cells"].as_array().unwrap();
        sittings(cells.iter().find(|cell| cell["id"] == *id).expect("a finding names its cells"))
    };
    let findings = record["findings"].as_array().unwrap().iter();
    let mut compared = findings.filter(|finding| finding["code"] == "direct-vs-buffered").peekable();
    assert!(compared.peek().is_some());
    let mut apart = 0;
    for finding in compared {
        let cells = finding["cells"].as_array().unwrap();
        let is_apart = sitting(&cells[0]) != sitting(&cells[1]);
        let is_told = text(&finding["title"]).contains("not compared: measured in two runs");
        assert_eq!(is_apart, is_told, "{finding}");
        apart += u32::from(is_apart);
    }
    assert!(apart > 0, "a pair was cut apart");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn finished_cells_are_taken_over_and_the_others_measured() {
    let place = Place::new();
    let (whole, missing) = cut(&place, |_| ());
    // By itself, with the command line of the Record.
    let resumed = place.quiet(&["run", "--resume", "cut.json", "--json", "-"]);
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["status"], "complete", "{}", resumed["error"]);
    let (then, now) = (whole["cells"].as_array().unwrap(), resumed["cells"].as_array().unwrap());
    assert_eq!(then.len(), now.len());
    for (then, now) in then.iter().zip(now) {
        assert_eq!(then["id"], now["id"]);
        if missing.contains(&text(&then["id"])) {
            assert!(now["result"]["bytes"].as_u64() > Some(0), "{} was measured", now["id"]);
            assert_ne!(then["result"]["visits"], now["result"]["visits"], "it had other turns");
            assert_eq!(sittings(now), [0], "in this sitting");
        } else {
            assert!(then == &in_its_own_run(now), "{} was taken over as it was", now["id"]);
            assert_eq!(sittings(now), [1], "and says so");
        }
    }
    // What was taken over once may be taken over again.
    let mut cut_again = resumed.clone();
    cut_again["status"] = "interrupted".into();
    cut_again["cells"].as_array_mut().unwrap().pop();
    fs::write(place.directory.path().join("again.json"), cut_again.to_string()).unwrap();
    let again = place.quiet(&[&LINE[..], &["--resume", "again.json", "--json", "-"]].concat());
    let again: Value = serde_json::from_str(&again).unwrap();
    let mut sitting_numbers: Vec<u64> =
        again["cells"].as_array().unwrap().iter().flat_map(sittings).collect();
    sitting_numbers.sort_unstable();
    sitting_numbers.dedup();
    assert_eq!(sitting_numbers, [0, 1, 2]);
    not_compared_across_sittings(&again);
    let notes = resumed["notes"].to_string();
    assert!(notes.contains("continues record") && !notes.contains(&missing[0]), "{notes}");
    // From the history, with the line typed again.
    let by_id = place.quiet(&[&LINE[..], &["--resume", "cut.json", "--quiet"]].concat());
    assert!(!by_id.is_empty());
}

#[test]
fn what_is_unlike_is_refused_with_the_reason() {
    let place = Place::new();
    let size = |record: &mut Value| record["targets"][0]["size_bytes"] = 4096.into();
    let version = |record: &mut Value| record["rdsk_version"] = "0.0.1".into();
    let unseeded = |record: &mut Value| drop(record.as_object_mut().unwrap().remove("seed"));
    let unfinished = |record: &mut Value| {
        for cell in record["cells"].as_array_mut().unwrap() {
            cell["result"]["stop"] = "interrupted".into();
        }
    };
    let same = |_: &mut Value| ();
    // As after a kill in the second round.
    let early = |record: &mut Value| {
        for cell in record["cells"].as_array_mut().unwrap() {
            cell["result"]["stop"] = "interrupted".into();
            let visits = cell["result"]["visits"].as_array_mut().unwrap();
            visits.retain(|visit| visit["round"].as_u64() < Some(2));
        }
    };
    let unbegun = |record: &mut Value| {
        for cell in record["cells"].as_array_mut().unwrap() {
            cell["result"]["stop"] = "interrupted".into();
            cell["result"]["visits"] = serde_json::json!([]);
        }
    };
    type Change<'a> = (&'a dyn Fn(&mut Value), &'a [&'a str], &'a str);
    let changes: [Change<'_>; 9] = [
        (&size, &[], "4096 bytes"),
        (&version, &[], "rdsk 0.0.1 made it"),
        (&unseeded, &[], "it does not say from which seed its offsets were drawn"),
        (&unfinished, &[], "none of its tests is finished: their last turns were cut short or failed"),
        (&early, &[], "none of its tests is finished: it ended in repeat 2 of 6"),
        (&unbegun, &[], "none of its tests is finished: it ended before the first turn"),
        (&same, &["sim:linux-disk", "--only", "headline,paths"], "it is of "),
        (
            &same,
            &["sim:wd2500", "--only", "headline,paths", "--budget", "60s", "--seed", "2"],
            "other options",
        ),
        (&same, &["sim:wd2500", "--only", "headline", "--budget", "60s"], "no test is missing"),
    ];
    for (change, words, why) in changes {
        cut(&place, change);
        let run = place.run(&[&["run", "--resume", "cut.json"], words].concat());
        assert_eq!(run.status_code, Some(2), "{why}: {}", run.stderr);
        let (error, _) = error_and_hint(&run);
        assert!(error.contains(why), "{why}: {error}");
    }
    // A complete run misses nothing.
    let run = place.run(&["run", "--resume", "whole.json"]);
    assert_eq!(run.ended, Ended::Exited(2));
    assert!(error_and_hint(&run).0.contains("no test is missing"), "{}", run.stderr);
}

/// The rate at which a test file was written, and with it the span of `align`, differs each time.
#[test]
fn the_span_of_align_is_that_of_the_earlier_run() {
    let place = Place::new();
    let line = ["run", "sim:wd2500", "--only", "headline,align", "--budget", "60s"];
    place.quiet(&[&line[..], &["--json", "whole.json"]].concat());
    let path = place.directory.path().join("whole.json");
    let mut cut: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    cut["status"] = "interrupted".into();
    let cells = cut["cells"].as_array_mut().unwrap();
    cells.pop();
    let mut spans = 0;
    for cell in cells.iter_mut().filter(|cell| cell["experiment"] == "align") {
        if cell["workload"]["span_bytes"].as_u64() > Some(8 << 20) {
            cell["workload"]["span_bytes"] = (5_840_896).into();
            spans += 1;
        }
    }
    assert!(spans > 0);
    fs::write(place.directory.path().join("cut.json"), cut.to_string()).unwrap();
    let resumed = place.quiet(&["run", "--resume", "cut.json", "--json", "-", "--csv", "now.csv"]);
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["status"], "complete", "{}", resumed["error"]);
    assert!(
        place.directory.path().join("now.csv").exists(),
        "and output flags do not hide what was measured"
    );
}
