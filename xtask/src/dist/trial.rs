//! `cargo xtask dist --try`: what was made, installed in root trees of distributions and in an empty one, run there, and removed again.
//! Trees are made below target/dist/try and deleted at the end; this machine's own system stays as it is.

mod empty;
mod service;
mod tree;

use super::packages;
use crate::programs::text_of;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tree::Tree;

/// A system that something is tried on.
struct System {
    name: &'static str,
    /// The Debian release whose packages the tree is made of; none is an empty tree.
    suite: Option<&'static str>,
    /// The package's ending.
    package: &'static str,
}

const SYSTEMS: &[System] = &[
    System { name: "debian12", suite: Some("bookworm"), package: "deb" },
    System { name: "debian13", suite: Some("trixie"), package: "deb" },
    // The tree is Debian's, and the package manager is rpm: what is tried is the package.
    System { name: "rpm", suite: Some("bookworm"), package: "rpm" },
    System { name: "empty", suite: None, package: "" },
];

/// Names that a package manager, man and shells leave for themselves, and the directory that zsh of an rpm system has.
const OF_THE_SYSTEM: &[&str] = &[
    "var/lib/dpkg/",
    "var/lib/rpm/",
    "var/cache/man/",
    "var/log/",
    "usr/lib/sysimage/",
    "tmp/shells",
    "usr/share/zsh/site-functions",
];

/// Tries the systems that are named, or all.
///
/// # Errors
/// When one of them cannot be made, or something there is not as it should be.
pub(super) fn run(place: &Path, names: &[&str]) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "root trees are made and entered by root only");
    if let Some(unknown) = names.iter().find(|name| SYSTEMS.iter().all(|system| system.name != **name)) {
        anyhow::bail!("there is no system \"{unknown}\"");
    }
    for system in SYSTEMS.iter().filter(|system| names.is_empty() || names.contains(&system.name)) {
        println!("── {}", system.name);
        let directory = tempfile::Builder::new().prefix("rdsk-try-").tempdir()?;
        match system.suite {
            None => empty::run(place, directory.path())?,
            Some(suite) => {
                let tree = Tree::of_debian(directory.path(), suite)?;
                packaged(place, &tree, system).with_context(|| system.name.to_owned())?;
            }
        }
    }
    Ok(())
}

/// Installs the package, runs what it holds, removes it, and runs the service.
fn packaged(place: &Path, tree: &Tree<'_>, system: &System) -> Result<()> {
    let package = packages::in_place(place, system.package)?;
    // rpm makes its database when it is first used.
    if system.package == "rpm" {
        tree.rpm(&["--initdb"])?;
    }
    let before = names(tree)?;
    tree.install(&package)?;
    let installed = names(tree)?;
    println!("installs: {} files", installed.difference(&before).count());
    let version = tree.says(&["rdsk", "--version"])?;
    println!("runs: {}", version.trim());
    let run = "rdsk run /var/tmp --size 64M --budget 10s --no-history --quiet";
    let page = tree.says(&run.split(' ').collect::<Vec<_>>())?;
    ensure!(page.contains("/var/tmp") || page.contains("read"), "no page: {page}");
    println!("measures: {}", page.lines().next().unwrap_or_default().trim());
    manual(tree)?;
    completions(tree, system)?;
    tree.remove(system.package)?;
    let left: Vec<String> = names(tree)?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "a removal leaves {left:?}");
    println!("purges: nothing is left");
    tree.install(&package)?;
    service::run(tree)
}

fn manual(tree: &Tree<'_>) -> Result<()> {
    let page = tree.says(&["sh", "-c", "MANPAGER=cat MANWIDTH=80 man rdsk-run"])?;
    ensure!(page.contains("--budget") && page.contains("EXAMPLES"), "man rdsk-run shows {page}");
    println!("man rdsk-run: {} lines", page.lines().count());
    Ok(())
}

/// One value that only the program knows, in each shell.
fn completions(tree: &Tree<'_>, system: &System) -> Result<()> {
    let bash = "source /usr/share/bash-completion/completions/rdsk; COMP_LINE='rdsk run sim:wd2500-'; COMP_POINT=${#COMP_LINE}; \
                compopt() { :; }; _rdsk rdsk; echo ${COMPREPLY[@]}";
    let fish = "complete --do-complete 'rdsk run sim:wd2500-'";
    let zsh = "autoload -Uz compinit; compinit -u -D; compadd() { print -r -- $closed }; words=(rdsk run sim:wd2500-) CURRENT=3 \
               PREFIX=sim:wd2500-; print $_comps[rdsk]; autoload +X _rdsk; _rdsk";
    // The tree is Debian's, whose zsh has its functions elsewhere than other systems.
    let zsh = if system.package == "rpm" {
        format!("fpath+=/usr/share/zsh/site-functions; {zsh}")
    } else {
        zsh.to_owned()
    };
    for (shell, script) in [("bash", bash), ("fish", fish), ("zsh", zsh.as_str())] {
        let answer = tree.says(&["env", "HOME=/tmp/shells", shell, "-c", script])?;
        ensure!(answer.contains("wd2500-4kn"), "{shell} completes {answer:?}");
    }
    println!("completes: bash, fish, zsh");
    Ok(())
}

/// The name of every file of the tree that is not the package manager's own.
fn names(tree: &Tree<'_>) -> Result<BTreeSet<String>> {
    let mut find = Command::new("find");
    let names = text_of(find.arg(tree.root).args(["!", "-type", "d", "-printf", "%P\\n"]))?;
    let is_of_package = |name: &&str| !OF_THE_SYSTEM.iter().any(|start| name.starts_with(start));
    Ok(names.lines().filter(is_of_package).map(str::to_owned).collect())
}
