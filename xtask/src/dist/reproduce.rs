//! Whether what is made depends on where: it is made here and from a copy of the sources in another directory.

use super::{PLACE, PROGRAM, make, packages};
use crate::programs::text_of;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compares what two directories give. Errors: when a file differs, or cannot be made.
pub(super) fn check(root: &Path, epoch: &str) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let elsewhere = scratch.path().join("a-directory-elsewhere/with-a-longer-name");
    copy(root, &elsewhere)?;
    for directory in [root, &elsewhere] {
        println!("── {}", directory.display());
        make(directory, epoch)?;
    }
    for (here, there) in made(root)?.iter().zip(made(&elsewhere)?) {
        let name = here.strip_prefix(root)?.display();
        ensure!(fs::read(here)? == fs::read(&there)?, "{name} depends on the directory that it is made in");
        println!("{name}: the same from both directories");
    }
    Ok(())
}

fn made(directory: &Path) -> Result<Vec<PathBuf>> {
    let place = directory.join(PLACE);
    Ok(vec![place.join(PROGRAM), packages::in_place(&place, "deb")?, packages::in_place(&place, "rpm")?])
}

/// Copies the files that git knows, as they are now.
fn copy(root: &Path, directory: &Path) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    for name in text_of(&mut git)?.split_terminator('\0') {
        let to = directory.join(name);
        fs::create_dir_all(to.parent().context("a file lies in a directory")?)?;
        fs::copy(root.join(name), &to).with_context(|| name.to_owned())?;
    }
    Ok(())
}
