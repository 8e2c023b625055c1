//! The pages of docs/reports: the table of each report, what rdsk gives on the report's simulated system beside it, and
//! the error of each cell. The figures come from running the built program; `--check` says where a page differs from them.

mod page;
mod places;
mod reports;

use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes the pages, or with `--check` compares them.
///
/// # Errors
/// When the program cannot be built or run, when a cell is outside its tolerance, or when a page differs.
pub(crate) fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let check = match arguments {
        [] => false,
        [word] if word == "--check" => true,
        _ => anyhow::bail!("cargo xtask docs takes --check or nothing"),
    };
    let program = build(root)?;
    let directory = root.join("docs/reports");
    let mut outside = Vec::new();
    let mut different = Vec::new();
    for report in reports::all(&program)? {
        outside.extend(report.outside());
        let path = directory.join(format!("{}.md", report.name));
        let text = report.markdown();
        if check {
            let there = fs::read_to_string(&path).unwrap_or_default();
            if let Some(line) = first_difference(&there, &text) {
                different.push(format!("{} differs from what the code gives, {line}", path.display()));
            }
        } else {
            fs::create_dir_all(&directory)?;
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    anyhow::ensure!(outside.is_empty(), "outside the tolerance:\n  {}", outside.join("\n  "));
    anyhow::ensure!(different.is_empty(), "{}\nrun cargo xtask docs and commit", different.join("\n"));
    Ok(())
}

/// Builds the program as the tests do and says where it is.
fn build(root: &Path) -> anyhow::Result<std::path::PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", "rdsk", "--message-format", "json"])
        .current_dir(root)
        .output()
        .context("cannot run cargo build")?;
    anyhow::ensure!(output.status.success(), "cargo build: {}", String::from_utf8_lossy(&output.stderr));
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == "rdsk").then_some(())?;
        Some(message["executable"].as_str()?.into())
    };
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(executable)
        .context("cargo build named no executable")
}

/// Where two texts differ first, in words; `None` where they are the same.
fn first_difference(there: &str, wanted: &str) -> Option<String> {
    if there == wanted {
        return None;
    }
    let mut pairs = there.lines().zip(wanted.lines()).enumerate();
    Some(match pairs.find(|(_, (there, wanted))| there != wanted) {
        Some((index, (there, wanted))) => format!("line {}:\n  - {there}\n  + {wanted}", index + 1),
        None => "in its length".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n").unwrap(), "line 2:\n  - b\n  + c");
        assert_eq!(first_difference("a\n", "a\nb\n").unwrap(), "in its length");
    }
}
