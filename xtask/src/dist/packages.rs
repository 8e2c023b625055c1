//! The .deb and the .rpm, by cargo-deb and cargo-generate-rpm, which are installed below target/tools at the versions named here. They
//! read what goes into a package from `crates/cli/Cargo.toml`.

use super::PLACE;
use super::binary::TARGET;
use crate::programs::checked;
use crate::suite::cargo;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A packager: its crate and version, and the ending of what it makes.
struct Packager {
    name: &'static str,
    version: &'static str,
    ending: &'static str,
}

const PACKAGERS: &[Packager] = &[
    Packager { name: "cargo-deb", version: "3.8.0", ending: "deb" },
    Packager { name: "cargo-generate-rpm", version: "0.21.1", ending: "rpm" },
];
/// Where packagers are installed, from the root of the sources that this task was built from.
const TOOLS: &str = "target/tools";

/// Makes the packages of the sources in `root`, and gives their places.
pub(super) fn make(root: &Path, epoch: &str) -> Result<Vec<PathBuf>> {
    let place = root.join(PLACE);
    let mut made = Vec::new();
    for packager in PACKAGERS {
        remove(&place, packager.ending)?;
        let mut command = Command::new(install(packager)?);
        command.current_dir(root).env("SOURCE_DATE_EPOCH", epoch).env_remove("CARGO_TARGET_DIR");
        match packager.ending {
            "deb" => command.args([
                "--no-build",
                "--no-strip",
                "--target",
                TARGET,
                "--manifest-path",
                "crates/cli/Cargo.toml",
            ]),
            _ => command.args(["--package", "crates/cli", "--target", TARGET, "--source-date", epoch]),
        };
        checked(command.arg("--output").arg(&place))?;
        made.push(in_place(&place, packager.ending)?);
    }
    Ok(made)
}

/// The packager's program, installed where it is not there yet.
fn install(packager: &Packager) -> Result<PathBuf> {
    let root = crate::root();
    let place = root.join(TOOLS).join(format!("{}-{}", packager.name, packager.version));
    let program = place.join("bin").join(packager.name);
    if program.exists() {
        return Ok(program);
    }
    println!("installing {} {}", packager.name, packager.version);
    let mut command =
        cargo(&root, &["install", "--quiet", "--locked", "--version", packager.version, packager.name]);
    // A packager runs once for a release: it is built quickly.
    command.arg("--root").arg(&place).args(["--config", "profile.release.opt-level=1"]);
    command.args(["--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"]);
    checked(command.env_remove("CARGO_TARGET_DIR"))?;
    Ok(program)
}

fn remove(place: &Path, ending: &str) -> Result<()> {
    while let Ok(old) = in_place(place, ending) {
        fs::remove_file(old)?;
    }
    Ok(())
}

/// The package with this ending.
pub(super) fn in_place(place: &Path, ending: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|its| its == ending) {
            return Ok(path);
        }
    }
    bail!("there is no .{ending} in {}; cargo xtask dist makes it", place.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::text_of;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// The sources of both lists, each with its place and mode.
    fn listed() -> [BTreeSet<[String; 3]>; 2] {
        let mut metadata =
            cargo(&crate::root(), &["metadata", "--no-deps", "--offline", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&text_of(&mut metadata).unwrap()).unwrap();
        let package =
            metadata["packages"].as_array().unwrap().iter().find(|one| one["name"] == "rdsk").unwrap();
        let text = |value: &Value| value.as_str().unwrap().trim_start_matches('/').to_owned();
        let list = |kind: &str| package["metadata"][kind]["assets"].as_array().unwrap().clone();
        let deb = list("deb").iter().map(|one| [text(&one[0]), text(&one[1]), text(&one[2])]).collect();
        let rpm = list("generate-rpm");
        let rpm = rpm.iter().map(|one| [text(&one["source"]), text(&one["dest"]), text(&one["mode"])]);
        [deb, rpm.collect()]
    }

    #[test]
    fn both_packages_hold_the_same_and_every_source_is_there() {
        let [deb, rpm] = listed();
        assert!(deb.len() > 10);
        for [source, dest, _] in deb.iter().chain(&rpm) {
            assert!(dest.ends_with('/'), "{dest} is a directory");
            let Some(source) = source.strip_prefix("../../") else {
                panic!("{source} does not begin at the root")
            };
            if source.starts_with(PLACE) {
                continue;
            }
            let (directory, name) = source.rsplit_once('/').unwrap_or((".", source));
            let ending = name.strip_prefix('*');
            let entries = fs::read_dir(crate::root().join(directory)).unwrap().flatten();
            let names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            let is_there =
                names.iter().any(|there| ending.map_or(there == name, |ending| there.ends_with(ending)));
            assert!(is_there, "there is no {source}");
        }
        // The licence goes into the copyright file of a .deb, and zsh has its functions elsewhere on Debian.
        let differ: Vec<&str> = deb.symmetric_difference(&rpm).map(|[source, ..]| source.as_str()).collect();
        let zsh = "../../target/dist/completions/_rdsk";
        assert_eq!(differ, ["../../LICENSE-MIT", zsh, zsh]);
    }
}
