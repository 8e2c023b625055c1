//! The program: built static by the profile `dist`, the same from any directory. It needs glibc's static library (Debian: libc6-dev).

use super::PLACE;
use crate::programs::{checked, executable_by};
use crate::suite::cargo;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What it is built for.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program with its symbols, and gives its place.
pub(super) fn build(root: &Path, epoch: &str) -> Result<PathBuf> {
    let home = cargo_home()?;
    let (root_text, home) = (root.display(), home.display());
    // No path of this machine stays in the program: neither of the sources nor of the crates.
    let mut command =
        cargo(root, &["build", "--locked", "--profile", "dist", "--package", "rdsk", "--bin", "rdsk"]);
    command
        .args(["--target", TARGET, "--config", "profile.dist.strip=false", "--target-dir"])
        .arg(root.join(PLACE).join("build"))
        .env("RUSTFLAGS", format!("-C target-feature=+crt-static --remap-path-prefix={root_text}=/rdsk --remap-path-prefix={home}=/cargo"))
        .env("TARGET_CFLAGS", format!("-ffile-prefix-map={root_text}=/rdsk -ffile-prefix-map={home}=/cargo"))
        .env("SOURCE_DATE_EPOCH", epoch)
        .env_remove("CARGO_TARGET_DIR");
    executable_by(&mut command)
}

/// The program without its symbols.
pub(super) fn strip(symbols: &Path, program: &Path) -> Result<()> {
    checked(Command::new("strip").arg("--strip-all").arg("-o").arg(program).arg(symbols)).map(drop)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    home.context("neither CARGO_HOME nor HOME is set")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    /// The level of each crate that a profile names.
    fn levels<'a>(manifest: &'a str, profile: &str) -> BTreeMap<&'a str, &'a str> {
        let head = format!("[profile.{profile}.package]");
        let lines = manifest.lines().skip_while(|line| *line != head).skip(1);
        let lines = lines.take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split_once(".opt-level = ")).collect()
    }

    /// A profile inherits the crates of another one with their levels.
    #[test]
    fn no_crate_of_a_package_keeps_the_level_of_a_quick_build() {
        let manifest = std::fs::read_to_string(crate::root().join("Cargo.toml")).unwrap();
        let (quick, dist) = (levels(&manifest, "release"), levels(&manifest, "dist"));
        assert!(quick.len() > 10);
        for (name, level) in quick {
            let level = dist.get(name).copied().unwrap_or(level);
            assert!(["\"s\"", "\"z\"", "2", "3"].contains(&level), "{name} has {level} in the profile dist");
        }
    }
}
