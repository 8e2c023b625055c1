//! `cargo xtask dist`: what people install, under target/dist, and trials of it. Scripts of the shell do it: nearly all of it is calls of
//! programs.

use crate::suite::without_words_of_cargo;
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// Makes everything; with `--check` in another directory, too, which must give the same bytes; with `--try` what was
/// made is installed in root trees and run.
///
/// # Errors
/// When something cannot be made, differs, or fails where it is tried.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let (script, words) = match arguments {
        [] => ("xtask/dist.sh", arguments),
        [word] if word == "--check" => ("xtask/dist.sh", arguments),
        [word, systems @ ..] if word == "--try" => ("xtask/try-packages.sh", systems),
        _ => bail!("dist takes --check, or --try [SYSTEM...]"),
    };
    let mut command = Command::new("sh");
    without_words_of_cargo(command.arg(script).args(words).current_dir(root));
    let status = command.status()?;
    ensure!(status.success(), "{script}: {status}");
    Ok(())
}
