//! `cargo xtask dist`: what people install, under target/dist: a static program, a .deb, an .rpm and a container's recipe. What they
//! hold is listed in `crates/cli/Cargo.toml`; this makes the parts that are no files of the repository, and runs the packagers.

mod assets;
mod binary;
mod packages;
mod reproduce;

use crate::programs::{checked, text_of};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where everything goes, from the root of the sources.
const PLACE: &str = "target/dist";
/// The program, without its symbols.
const PROGRAM: &str = "rdsk";

/// Makes everything; with `--check` in another directory, too, which must give the same bytes; with `--try` what was made is installed in
/// root trees and run. Errors: when something cannot be made, differs, or fails where it is tried.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => make(root, &epoch(root)?),
        ["--check"] => reproduce::check(root, &epoch(root)?),
        ["--try", ref systems @ ..] => {
            let mut script = Command::new("sh");
            let status = script.arg("xtask/try-packages.sh").args(systems).current_dir(root).status()?;
            ensure!(status.success(), "what was made was tried in vain");
            Ok(())
        }
        _ => bail!("dist takes --check, or --try [SYSTEM...]"),
    }
}

/// Makes everything from the sources in `root`, dated to `epoch`.
fn make(root: &Path, epoch: &str) -> Result<()> {
    let place = root.join(PLACE);
    let symbols = binary::build(root, epoch)?;
    let program = place.join(PROGRAM);
    binary::strip(&symbols, &program)?;
    assets::make(&program, &place)?;
    let packages = packages::make(root, epoch)?;
    container(root, &place)?;
    report(&program, &packages)
}

/// The moment that everything which is made says it was made at: the last commit, in seconds since 1970.
fn epoch(root: &Path) -> Result<String> {
    let text = text_of(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    Ok(text.trim().to_owned())
}

/// The directory that an image is built from.
fn container(root: &Path, place: &Path) -> Result<()> {
    let directory = place.join("container");
    fs::create_dir_all(&directory)?;
    for (from, name) in
        [(root.join("contrib/container/Containerfile"), "Containerfile"), (place.join(PROGRAM), PROGRAM)]
    {
        fs::copy(&from, directory.join(name)).with_context(|| from.display().to_string())?;
    }
    Ok(())
}

fn report(program: &Path, packages: &[PathBuf]) -> Result<()> {
    for path in std::iter::once(program).chain(packages.iter().map(PathBuf::as_path)) {
        let hash = text_of(Command::new("sha256sum").arg(path))?;
        #[expect(clippy::cast_precision_loss, reason = "sizes of files are far below 2^52")]
        let mb = fs::metadata(path)?.len() as f64 / 1e6;
        println!("{mb:>6.2} MB  {}  {}", hash.get(..16).unwrap_or_default(), path.display());
    }
    Ok(())
}

/// Writes what a command prints into a file.
fn printed(command: &mut Command, file: &Path) -> Result<()> {
    let output = checked(command)?;
    fs::create_dir_all(file.parent().context("a file lies in a directory")?)?;
    fs::write(file, output.stdout).with_context(|| file.display().to_string())
}
