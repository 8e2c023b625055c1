//! What a page of results says of its origin: the machine, the date and the commit. It changes nothing.

use crate::programs::text_of;
use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Pages of results, which no measurement depends on.
const RESULTS: [&str; 2] = [":!xtask/records", ":!docs/calibration.md"];

/// Processors, memory and kernel in a few words.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |text: &str, key: &str| -> Option<String> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
    };
    let cpuinfo = read("/proc/cpuinfo");
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let model = value(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into());
    let kib = value(&read("/proc/meminfo"), "MemTotal");
    let kib = kib.and_then(|text| text.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
    let release = read("/proc/sys/kernel/osrelease");
    let gib = kib as f64 / 1_048_576.0;
    format!("{processors} processors ({model}), {gib:.1} GiB of memory, Linux {}", release.trim())
}

/// The moment in UTC, in a format of date(1).
///
/// # Errors
/// When date cannot be started.
pub(crate) fn now(format: &str) -> Result<String> {
    Ok(text_of(Command::new("date").args(["-u", format]))?.trim().to_owned())
}

/// The last commit that changed more than pages of results; with `-dirty` where something else is not committed.
///
/// # Errors
/// When git cannot say.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        text_of(command.current_dir(root).args(words).args(["--", "."]).args(RESULTS))
    };
    let commit = git(&["log", "-1", "--format=%h", "--abbrev=10"])?;
    let dirty = if git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty() {
        ""
    } else {
        "-dirty"
    };
    Ok(format!("{}{dirty}", commit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_that_of_the_code() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let git = |words: &[&str]| {
            let names = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            let mut command = Command::new("git");
            command.current_dir(root).args(names).args(words);
            // A hook of the developer's own git, or a key that signs, is no part of this.
            command.env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.output().unwrap().status.success(), "{words:?}");
        };
        let put = |name: &str, text: &str| crate::write(&root.join(name), text).unwrap();
        git(&["init"]);
        put("code.rs", "1");
        git(&["add", "."]);
        git(&["commit", "-m", "one"]);
        let first = commit(root).unwrap();
        assert_eq!(first.len(), 10);
        put("xtask/records/campaigns/loaded.md", "a row");
        put("docs/calibration.md", "a table");
        assert_eq!(commit(root).unwrap(), first);
        git(&["add", "."]);
        git(&["commit", "-m", "the page"]);
        assert_eq!(commit(root).unwrap(), first);
        put("code.rs", "2");
        assert_eq!(commit(root).unwrap(), format!("{first}-dirty"));
        git(&["commit", "-am", "two"]);
        assert_ne!(commit(root).unwrap().trim_end_matches("-dirty"), first);
    }
}
