//! Runs that a signal ends on a machine that stands still.

use rdsk_testkit::attempts::ensure;
use serde_json::Value;

/// An error for the Record of a run that did not stop within the five seconds after its signal: it was given up, and what it had measured
/// is lost, so that another attempt counts.
pub(crate) fn stopped_by_itself(record: &Value) -> Result<(), String> {
    ensure(record["error"]["code"] != "abandoned", || format!("it was given up: {}", record["error"]))
}

#[test]
fn a_run_that_was_given_up_is_none_that_stopped() {
    let gives_up = |code: &str| stopped_by_itself(&serde_json::json!({"error": {"code": code}}));
    assert!(gives_up("abandoned").is_err_and(|words| words.contains("abandoned")));
    assert_eq!(gives_up("interrupted"), Ok(()));
    assert_eq!(stopped_by_itself(&serde_json::json!({"error": null})), Ok(()));
}
