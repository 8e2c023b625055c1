//! Runs the program for a page and reads numbers from the Record it gives.

use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;

/// Runs a command line and gives its Record.
pub(super) fn record(program: &Path, command: &str) -> Result<Value> {
    let (record, status) = crate::programs::record(program, command)?;
    ensure!(status.success(), "rdsk {command}: {status}: {}", record["error"]);
    Ok(record)
}

/// A value in a cell of a Record.
pub(super) fn value<'r>(record: &'r Value, id: &str, pointer: &str) -> Option<&'r Value> {
    record["cells"].as_array()?.iter().find(|cell| cell["id"] == id)?.pointer(pointer)
}

/// A number in a cell of a Record; if it is missing NaN, which no tolerance accepts.
pub(super) fn number(record: &Value, id: &str, pointer: &str) -> f64 {
    value(record, id, pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
}
