//! A root tree of a distribution, and commands inside. Mounts are in a namespace of each command, so none is left.

use crate::programs::{checked, text_of};
use crate::tools;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the tree holds beside the essential packages.
const PACKAGES: &str = "--include=bash,fish,man-db,zsh";
/// Mounts what a system has, and runs the command in the tree.
const ENTER: &str = "for d in proc sys dev; do mount --rbind /$d \"$0/$d\"; done; exec chroot \"$0\" \"$@\"";

/// A directory that is the root of a system.
pub(super) struct Tree<'a> {
    pub(super) root: &'a Path,
}

impl<'a> Tree<'a> {
    /// Makes one of a Debian release, from the mirror that this machine uses.
    pub(super) fn of_debian(root: &'a Path, suite: &str) -> Result<Self> {
        let path = tools::search_path();
        ensure!(
            tools::is_installed("mmdebstrap", &path),
            "mmdebstrap is not installed; apt-get install mmdebstrap"
        );
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=minbase", PACKAGES, suite]).arg(root).arg(mirror()?);
        checked(&mut command)?;
        Ok(Self { root })
    }

    /// A command of this machine that is run with the tree as its root.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec", ENTER]).arg(self.root).args(words);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "/root");
        command
    }

    /// What a command in the tree prints, which must end well.
    pub(super) fn says(&self, words: &[&str]) -> Result<String> {
        text_of(&mut self.command(words))
    }

    /// Installs a package of the tree's own manager, or by this machine's rpm.
    pub(super) fn install(&self, package: &Path) -> Result<()> {
        if package.extension().is_some_and(|ending| ending == "rpm") {
            // The tree has no rpm database that could know what is there: what the package asks for is looked at instead.
            let package = package.display().to_string();
            let asked = text_of(Command::new("rpm").args(["--query", "--requires", "--package", &package]))?;
            let is_there = |name: &str| name.starts_with("rpmlib(") || self.root.join(&name[1..]).exists();
            ensure!(asked.lines().all(is_there), "it requires {asked}");
            return self.rpm(&["--install", "--nodeps", &package]);
        }
        let inside = self.root.join("rdsk.deb");
        fs::copy(package, &inside)?;
        let done = self.says(&["dpkg", "--install", "/rdsk.deb"]);
        fs::remove_file(inside)?;
        done.map(drop)
    }

    /// Removes the package with everything that is its own.
    pub(super) fn remove(&self, ending: &str) -> Result<()> {
        if ending == "rpm" {
            self.rpm(&["--erase", "rdsk"])
        } else {
            self.says(&["dpkg", "--purge", "rdsk"]).map(drop)
        }
    }

    /// This machine's rpm on the tree.
    pub(super) fn rpm(&self, words: &[&str]) -> Result<()> {
        ensure!(
            tools::is_installed("rpm", &tools::search_path()),
            "rpm is not installed; apt-get install rpm"
        );
        checked(Command::new("rpm").arg("--root").arg(self.root).args(words)).map(drop)
    }
}

/// The address of the mirror that this machine's apt uses for Debian itself.
fn mirror() -> Result<String> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    let text = text_of(&mut targets)?;
    let of_debian = text.lines().find_map(|line| line.strip_prefix("Debian Debian "));
    of_debian.map(str::to_owned).context("apt names no mirror of Debian")
}
