//! `cargo xtask bpf`: compiles the BPF programs of `observe` with Debian's clang. The object is part of the repository, so that
//! clang is not needed to build rdsk; with `--check` it is compared instead, which is how the tests prove that it comes from
//! its source.

use crate::programs::checked;
use crate::suite::Strictness;
use crate::{options, tools};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::Command;

const DIRECTORY: &str = "crates/observe/bpf";
const SOURCE: &str = "observer.bpf.c";
const OBJECT: &str = "observer.bpf.o";
/// The version decides the bytes of the object.
const CLANG: &str = "clang-14";
const STRIP: &str = "llvm-strip-14";
const HEADER: &str = "/usr/include/bpf/bpf_helpers.h";
/// Where Debian keeps `asm/types.h`, on the architectures that rdsk is built for.
const INCLUDES: &[&str] = &["/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu"];

/// Compiles the object, or compares it with `--check`.
///
/// # Errors
/// When clang is missing or refuses the source, and when the object is not what the source gives.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let is_check = options::is_check(arguments)?;
    if is_check && Strictness::from_environment() == Strictness::MaySkip && !is_possible() {
        println!("SKIPPED: {CLANG}, {STRIP} or libbpf's headers are not installed");
        return Ok(());
    }
    let directory = root.join(DIRECTORY);
    let object = directory.join(OBJECT);
    let scratch = tempfile::tempdir()?;
    let made = scratch.path().join(OBJECT);
    compile(&directory, &made)?;
    let bytes = std::fs::read(&made)?;
    if !is_check {
        std::fs::write(&object, &bytes).with_context(|| object.display().to_string())?;
        println!("{} bytes in {}", bytes.len(), object.display());
        return Ok(());
    }
    let committed = std::fs::read(&object).with_context(|| object.display().to_string())?;
    ensure!(committed == bytes, "{DIRECTORY}/{OBJECT} is not what {SOURCE} gives; run cargo xtask bpf");
    println!("{DIRECTORY}/{OBJECT} comes from {SOURCE}");
    Ok(())
}

fn is_possible() -> bool {
    let path = tools::search_path();
    [CLANG, STRIP, HEADER].iter().all(|tool| tools::is_installed(tool, &path))
}

fn compile(directory: &Path, made: &Path) -> Result<()> {
    let mut clang = Command::new(CLANG);
    clang.current_dir(directory).env("PATH", tools::search_path());
    // Relative names and no compilation directory, so that the object is the same wherever the clone lies. The instructions of v3 are
    // those of Linux 5.12, which the programs need in any case.
    clang.args([
        "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-fdebug-compilation-dir=.",
    ]);
    clang.args(INCLUDES.iter().flat_map(|path| ["-idirafter", path]));
    clang.args(["-c", SOURCE, "-o"]).arg(made);
    checked(&mut clang)?;
    let mut strip = Command::new(STRIP);
    // The types (BTF) stay, debug information for people goes.
    checked(strip.env("PATH", tools::search_path()).arg("--strip-debug").arg(made))?;
    Ok(())
}
