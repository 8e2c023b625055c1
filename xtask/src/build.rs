//! Builds a program of this workspace with cargo and says where it is.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the program `rdsk` as the tests do.
///
/// # Errors
/// When cargo fails or names no program.
pub(crate) fn rdsk(root: &Path) -> Result<PathBuf> {
    executable(root, &["--package", "rdsk", "--bin", "rdsk"])
}

/// Builds what the arguments of `cargo build` select and gives the path of the last executable.
///
/// # Errors
/// When cargo fails or names no program.
pub(crate) fn executable(root: &Path, arguments: &[&str]) -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(arguments)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(output.status.success(), "cargo build {} failed", arguments.join(" "));
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next_back().context("cargo build named no executable")
}
