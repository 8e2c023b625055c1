//! Runs the program for a page and reads numbers from the Record it gives.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs a command line and gives its Record.
pub(super) fn record(program: &Path, command: &str) -> Result<Value> {
    let output = Command::new(program)
        .args(command.split_whitespace())
        .args(["--json", "-", "--quiet"])
        .output()
        .with_context(|| format!("cannot run rdsk {command}"))?;
    anyhow::ensure!(output.status.success(), "rdsk {command}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).with_context(|| format!("rdsk {command} gave no document"))
}

/// A number in a cell of a Record; if it is missing NaN, which no tolerance accepts.
pub(super) fn number(record: &Value, id: &str, pointer: &str) -> f64 {
    let cells = record["cells"].as_array().map_or(&[][..], Vec::as_slice);
    let cell = cells.iter().find(|cell| cell["id"] == id);
    cell.and_then(|cell| cell.pointer(pointer)).and_then(Value::as_f64).unwrap_or(f64::NAN)
}
