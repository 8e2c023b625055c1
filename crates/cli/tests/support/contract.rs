//! The contract of `--json`: a Record keeps its schema (docs/record.schema.json), what must be consistent is, and it fits the exit
//! code. It checks documents and runs nothing.

use rdsk_testkit::schema::{self, Writer};
use serde_json::Value;

/// Everything that is wrong with a Record, each with its place; empty when it keeps the contract.
pub(crate) fn complaints(record: &Value) -> Vec<String> {
    let mut complaints = schema::complaints(record, Writer::Current);
    if !record["schema"].as_str().is_some_and(|name| name.starts_with("rdsk.record/")) {
        complaints.push(format!("its schema is {}", record["schema"]));
    }
    if complaints.is_empty() {
        super::consistency::check(record, &mut complaints);
    }
    complaints
}

/// Everything that does not fit between a Record and the exit code that came with it.
pub(crate) fn exit_complaints(record: &Value, code: i32) -> Vec<String> {
    let status = record["status"].as_str().unwrap_or_default();
    let kind = record["error"]["kind"].as_str();
    let has_cell_errors =
        list(&record["cells"]).iter().any(|cell| !list(&cell["result"]["errors"]).is_empty());
    let fits = match (status, code) {
        ("interrupted", 130) => true,
        ("complete", 0) => !has_cell_errors,
        // FAIL and UNSURE of a check.
        ("complete", 1 | 5) => !has_cell_errors && record["need"].is_object(),
        ("complete", 4) => has_cell_errors,
        ("failed", 2) => kind == Some("usage"),
        ("failed", 3) => kind == Some("refused"),
        ("failed", 4) => matches!(kind, None | Some("io")),
        _ => false,
    };
    if fits {
        Vec::new()
    } else {
        vec![format!("status {status} with error kind {kind:?} came with exit {code}")]
    }
}

/// The elements of a list; none of what is no list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
