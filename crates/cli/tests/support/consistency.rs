//! What must be consistent within one Record of the right types: sums, orders, references, nulls. It checks documents and
//! runs nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::contract::list;

/// Adds what is inconsistent.
pub(crate) fn check(record: &Value, found: &mut Vec<String>) {
    let mut say = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    let targets = list(&record["targets"]);
    for (position, target) in targets.iter().enumerate() {
        say(target["index"] == position, format!("target {position} says {}", target["index"]));
    }
    let failed = record["status"] == "failed";
    let cells = list(&record["cells"]);
    let has_failed_cell = cells.iter().any(|cell| cell["result"]["stop"] == "error");
    say(!failed || record["error"].is_object() || has_failed_cell, "failed without an error".into());
    say(record["status"] != "complete" || record["error"].is_null(), "complete with an error".into());
    say(is_rfc3339(text(&record["started_at"])), format!("started_at {}", record["started_at"]));
    let mut ids = BTreeSet::new();
    for cell in cells {
        let id = text(&cell["id"]);
        say(ids.insert(id), format!("{id} twice"));
        let mut own = Vec::new();
        check_cell(cell, targets.len(), &mut own);
        for what in own {
            say(false, format!("{id}: {what}"));
        }
    }
    for finding in list(&record["findings"]) {
        let code = text(&finding["code"]);
        say(!list(&finding["evidence"]).is_empty(), format!("finding {code} without evidence"));
        say(!list(&finding["cells"]).is_empty(), format!("finding {code} without a cell"));
        for cell in list(&finding["cells"]) {
            say(ids.contains(text(cell)), format!("finding {code} names {cell}, which is no cell"));
        }
    }
}

fn check_cell(cell: &Value, targets: usize, found: &mut Vec<String>) {
    let (workload, result) = (&cell["workload"], &cell["result"]);
    let mut say = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{what}: {result}"));
        }
    };
    let indices = list(&workload["targets"])
        .iter()
        .chain(list(&result["streams"]).iter().map(|target| &target["target"]));
    for target in indices {
        say(whole(target).is_some_and(|index| index < targets as u64), "names a target that is none");
    }
    let stop = text(&result["stop"]);
    let errors = list(&result["errors"]);
    say(
        errors.is_empty() || stop == "error" || stop == "interrupted",
        "errors, and stopped for another reason",
    );
    // What was not measured is null, never 0.
    let issued = whole(&result["ops"]).is_some_and(|ops| ops > 0);
    say(issued || result["bytes_per_s"].is_null(), "a rate without an I/O");
    say(issued || result["ops_per_s"].is_null(), "a rate of I/Os without an I/O");
    if stop == "not_applicable" {
        for name in ["elapsed_ns", "bytes", "ops", "latency_ns", "to_return_ns", "windows", "cpu_ns"] {
            say(result[name].is_null(), "not applicable, and yet measured");
        }
        say(cell["verdict"].is_null(), "not applicable, and yet judged");
    } else {
        say(cell["verdict"].is_object(), "no judgement");
    }
    let sum =
        |name: &str| list(&result["streams"]).iter().filter_map(|stream| whole(&stream[name])).sum::<u64>();
    if let (Some(bytes), Some(ops), Some(block)) =
        (whole(&result["bytes"]), whole(&result["ops"]), whole(&workload["block_bytes"]))
    {
        // The last block of a copy, and those that a pipe gives, may be shorter.
        let are_whole = if cell["experiment"] == "dd" { bytes <= ops * block } else { bytes == ops * block };
        say(are_whole, "bytes are not whole blocks");
        say(bytes == sum("bytes") && ops == sum("ops"), "streams do not add up");
        let counted = whole(&result["latency_ns"]["count"]);
        let left_out = whole(&result["warmup_ops"]);
        let total = counted.zip(left_out).map(|(counted, left_out)| counted + left_out);
        // When an I/O completed that was in flight while rdsk did not run is not known.
        let has_gap = list(&result["visits"]).iter().any(|visit| !visit["gaps"].is_null());
        let is_whole = total == Some(ops) || has_gap && total.is_some_and(|total| total < ops);
        say(is_whole, "not every I/O has a latency or was in the warm-up");
        let has_warm_up = whole(&result["warmup_ns"]).is_some_and(|ns| ns > 0);
        say(has_warm_up || left_out == Some(0), "I/Os of a warm-up that is none");
        say(whole(&result["warmup_bytes"]) == left_out.map(|ops| ops * block), "bytes of the warm-up");
    }
    if let (Some(bytes), false) = (whole(&result["bytes"]), result["windows"].is_null()) {
        let moved: u64 = list(&result["windows"]["bytes"]).iter().filter_map(Value::as_u64).sum();
        say(moved == bytes, "windows do not add up");
    }
    for name in ["bytes_per_s", "ops_per_s"] {
        let rate = &result[name];
        if let (Some(low), Some(mean), Some(high)) =
            (rate["low"].as_f64(), rate["mean"].as_f64(), rate["high"].as_f64())
        {
            say(low <= mean && mean <= high, "the interval does not hold its mean");
        }
        say(rate["low"].is_null() == rate["high"].is_null(), "half an interval");
    }
    say(ordered(&result["latency_ns"]), "latencies out of order");
    say(supported(&result["latency_ns"]), "a percentile of too few samples");
    say(in_range(&result["latency_ns"]), "a percentile outside of its range");
    let rounds: BTreeSet<u64> =
        list(&result["visits"]).iter().filter_map(|visit| whole(&visit["round"])).collect();
    let of_latencies: Vec<u64> =
        list(&result["latency_ns"]["rounds"]).iter().filter_map(|round| whole(&round["round"])).collect();
    let is_compact = result["latency_ns"]["histogram"].is_null();
    say(is_compact || of_latencies.iter().eq(&rounds), "rounds without latencies");
    say(times_follow(result), "return, close and stable out of order");
}

fn ordered(latency: &Value) -> bool {
    ["min", "p50", "p90", "p99", "p999", "p9999", "max"]
        .iter()
        .filter_map(|name| whole(&latency[name]))
        .try_fold(0, |last, next| (next >= last).then_some(next))
        .is_some()
}

/// A percentile p needs 10/(1−p) samples.
fn supported(latency: &Value) -> bool {
    let Some(count) = whole(&latency["count"]) else { return true };
    [("p50", 20), ("p90", 100), ("p99", 1000), ("p999", 10_000), ("p9999", 100_000)]
        .iter()
        .all(|(name, least)| latency[name].is_null() || count >= *least)
}

/// Every range holds its percentile, and there is none without one.
fn in_range(latency: &Value) -> bool {
    let Some(ranges) = latency["ranges"].as_object() else { return true };
    ranges.iter().filter(|(_, range)| !range.is_null()).all(|(name, range)| {
        let (low, high) = (whole(&range["low"]), whole(&range["high"]));
        whole(&latency[name])
            .is_some_and(|told| low.is_none_or(|low| low <= told) && high.is_none_or(|high| told <= high))
    })
}

fn times_follow(result: &Value) -> bool {
    ["to_return_ns", "to_close_ns", "to_stable_ns"]
        .iter()
        .filter_map(|name| whole(&result[name]))
        .try_fold(0, |last, next| (next >= last).then_some(next))
        .is_some()
}

/// `2026-01-31T23:59:59Z`, with or without a fraction; or with an offset.
fn is_rfc3339(text: &str) -> bool {
    let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).take(19).collect();
    let zone = text
        .get(19..)
        .unwrap_or_default()
        .trim_start_matches(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    form == "0000-00-00T00:00:00" && (zone == "Z" || zone.starts_with(['+', '-']))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64()
}
