//! The reports of one run with `--status-interval`: fio writes a whole document each time, with everything since the start, so the
//! last one is the run. It decides which documents belong together, and reads no other figure.

use super::VERSION;
use serde_json::Value;

/// How far the starts of two reports may lie apart, in ms: fio rounds the time that passed up to whole seconds, and an old one has
/// whole seconds only for the end, too.
const START_TOLERANCE_MS: u64 = 2000;

/// The documents without those that a later one holds too, each with the number of reports of which it is the last.
pub(crate) fn whole_runs(documents: Vec<Value>) -> Vec<(Value, usize)> {
    let mut runs: Vec<(Value, usize)> = Vec::new();
    for document in documents {
        match runs.last_mut().filter(|(earlier, _)| goes_on(earlier, &document)) {
            Some((last, reports)) => (*last, *reports) = (document, *reports + 1),
            None => runs.push((document, 1)),
        }
    }
    runs
}

/// Whether a document is a later report of the same run.
fn goes_on(earlier: &Value, later: &Value) -> bool {
    let same = |key: &str| earlier.get(key) == later.get(key);
    if earlier == later || earlier.get(VERSION).is_none() || !same(VERSION) || !same("global options") {
        return false;
    }
    let (before, after) = (jobs(earlier), jobs(later));
    let has_same = |key: &str| before.iter().zip(after).all(|(job, other)| job.get(key) == other.get(key));
    if before.len() != after.len()
        || before.is_empty()
        || !["jobname", "job options"].iter().all(|key| has_same(key))
    {
        return false;
    }
    if before.iter().any(|job| job.get("job_start").is_some()) {
        return has_same("job_start") && elapsed_s(earlier) <= elapsed_s(later);
    }
    let Some([first, second]) = ended_ms(earlier).zip(ended_ms(later)).map(|(first, second)| [first, second])
    else {
        return false;
    };
    let began = |ended: u64, document: &Value| ended.saturating_sub(elapsed_s(document).saturating_mul(1000));
    let is_same_start = began(first, earlier).abs_diff(began(second, later)) <= START_TOLERANCE_MS;
    if !is_same_start || second < first {
        return false;
    }
    // Another run cannot have begun before the first one ended.
    let is_sure = elapsed_s(earlier).saturating_mul(1000) > START_TOLERANCE_MS + 1000;
    let grown = runtime_ms(after).checked_sub(runtime_ms(before));
    is_sure || grown.is_some_and(|grown| grown > 0 && grown >= (second - first) / 2)
}

fn jobs(document: &Value) -> &[Value] {
    document.get("jobs").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn elapsed_s(document: &Value) -> u64 {
    jobs(document).iter().filter_map(|job| job.get("elapsed")?.as_u64()).max().unwrap_or(0)
}

fn ended_ms(document: &Value) -> Option<u64> {
    let seconds = || document.get("timestamp")?.as_u64()?.checked_mul(1000);
    document.get("timestamp_ms").and_then(Value::as_u64).or_else(seconds)
}

/// The times of all jobs together.
fn runtime_ms(jobs: &[Value]) -> u64 {
    let of_job = |job: &Value| {
        let directions = ["read", "write", "trim", "mixed"].iter();
        directions.filter_map(|key| job.get(key)?.get("runtime")?.as_u64()).max().unwrap_or(0)
    };
    jobs.iter().map(of_job).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(ended_ms: u64, elapsed: u64, runtime: u64) -> Value {
        json!({
            "fio version": "fio-3.33", "timestamp_ms": ended_ms,
            "jobs": [{ "jobname": "a", "elapsed": elapsed, "job options": { "rw": "read" }, "read": { "runtime": runtime } }],
        })
    }

    fn runs(documents: &[Value]) -> Vec<usize> {
        whole_runs(documents.to_vec()).into_iter().map(|(_, reports)| reports).collect()
    }

    #[test]
    fn reports_of_a_run_are_one() {
        // Of fio 3.33 with --status-interval=1 (2026-11).
        let reports = [
            report(23_532, 1, 860),
            report(24_532, 2, 1860),
            report(25_532, 3, 2860),
            report(25_695, 4, 3001),
        ];
        assert_eq!(runs(&reports), [4]);
        assert_eq!(whole_runs(reports.to_vec())[0].0, reports[3]);
        // Behind it the same again, later.
        let more: Vec<Value> =
            reports.into_iter().chain([report(29_000, 2, 1500), report(30_000, 3, 2500)]).collect();
        assert_eq!(runs(&more), [4, 2]);
        // After a ramp fio counts from 0.
        assert_eq!(runs(&[report(10_000, 4, 3900), report(15_000, 9, 4000)]), [2]);
    }

    #[test]
    fn runs_one_after_the_other_stay_runs() {
        assert_eq!(runs(&[report(10_300, 1, 280), report(10_600, 1, 281)]), [1, 1]);
        assert_eq!(runs(&[report(10_000, 5, 4000), report(16_000, 5, 4000)]), [1, 1]);
        let mut other = report(24_532, 2, 1860);
        other["jobs"][0]["job options"]["rw"] = "write".into();
        assert_eq!(runs(&[report(23_532, 1, 860), other]), [1, 1]);
        let started = |ended, elapsed, start: u64| {
            let mut document = report(ended, elapsed, 100);
            document["jobs"][0]["job_start"] = start.into();
            document
        };
        assert_eq!(
            runs(&[started(10_300, 1, 10_000), started(11_300, 2, 10_000), started(11_700, 1, 11_500)]),
            [2, 1]
        );
        assert_eq!(runs(&[json!({ "schema": "x" }), json!({ "schema": "x" })]), [1, 1]);
    }
}
