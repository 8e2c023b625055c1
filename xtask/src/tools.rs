//! The programs that the tests call, the Debian packages that bring them, and their installation. It installs only what
//! is missing, and only where it is root on a Debian.

use crate::step::{self, Ending};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Each program with the package that brings it.
pub(crate) const TOOLS: &[(&str, &str)] = &[
    ("blkid", "util-linux"),
    ("blockdev", "util-linux"),
    ("fallocate", "util-linux"),
    ("filefrag", "e2fsprogs"),
    ("fincore", "util-linux-extra"),
    ("findmnt", "util-linux"),
    ("fio", "fio"),
    ("iostat", "sysstat"),
    ("losetup", "mount"),
    ("lsblk", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkswap", "util-linux"),
    ("mount", "mount"),
    ("partx", "util-linux"),
    ("prlimit", "util-linux"),
    ("script", "bsdutils"),
    ("setsid", "util-linux"),
    ("sfdisk", "fdisk"),
    ("swapon", "mount"),
    ("umount", "mount"),
    ("unshare", "util-linux"),
    ("wipefs", "util-linux"),
    ("zramctl", "util-linux"),
];
/// Directories of system programs that the search path of an ordinary user leaves out.
const SYSTEM_DIRECTORIES: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];
const APT_LIMIT: Duration = Duration::from_secs(600);

/// What came of the installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// Every program is there.
    Complete,
    /// Some are not; each with the reason why tests that need it will be skipped.
    Lacking(Vec<String>),
}

/// The search path for children: ours, and the directories of system programs.
pub(crate) fn search_path() -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    for directory in SYSTEM_DIRECTORIES {
        if !path.split(':').any(|known| known == *directory) {
            path = if path.is_empty() { (*directory).to_owned() } else { format!("{path}:{directory}") };
        }
    }
    path
}

/// Installs what is missing, where that is possible; says what is still missing otherwise.
///
/// # Errors
/// When apt-get cannot be started.
pub(crate) fn install(interrupted: &AtomicBool) -> anyhow::Result<Installed> {
    let missing = missing(&search_path());
    if missing.is_empty() {
        return Ok(Installed::Complete);
    }
    let packages: BTreeSet<&str> = missing.iter().map(|(_, package)| *package).collect();
    let reason = if !Path::new("/usr/bin/apt-get").exists() {
        "this is no Debian, so install it by its own means".to_owned()
    } else if !rustix::process::geteuid().is_root() {
        let all: Vec<&str> = packages.iter().copied().collect();
        format!("not root; as root: apt-get install {}", all.join(" "))
    } else {
        apt_install(&packages, interrupted)?
    };
    let still: Vec<String> = self::missing(&search_path())
        .iter()
        .map(|(tool, package)| format!("{tool} (package {package}): {reason}"))
        .collect();
    Ok(if still.is_empty() { Installed::Complete } else { Installed::Lacking(still) })
}

/// The needs, as tests name them, that a root shell on Debian always meets once the tools step has run.
pub(crate) fn must_have() -> String {
    let tools = TOOLS.iter().map(|(tool, _)| format!("tool:{tool}"));
    std::iter::once("root".to_owned()).chain(tools).collect::<Vec<_>>().join(",")
}

/// Installs the packages; the package lists are fetched only when the first attempt fails. Returns why something may
/// still be missing.
fn apt_install(packages: &BTreeSet<&str>, interrupted: &AtomicBool) -> anyhow::Result<String> {
    for refresh in [false, true] {
        if refresh && apt(&["update"], interrupted)? != Ending::Succeeded {
            return Ok("apt-get update failed".into());
        }
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        if apt(&arguments, interrupted)? == Ending::Succeeded {
            return Ok("its package is installed but does not bring it".into());
        }
    }
    Ok("apt-get install failed".into())
}

fn apt(arguments: &[&str], interrupted: &AtomicBool) -> anyhow::Result<Ending> {
    let mut command = Command::new("apt-get");
    // Another installation under way is waited for rather than failed on.
    command.args(["--quiet", "-o", "DPkg::Lock::Timeout=120"]).args(arguments);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("PATH", search_path());
    step::run(&mut command, APT_LIMIT, interrupted, &mut |line| println!("{line}"))
}

fn missing(path: &str) -> Vec<(&'static str, &'static str)> {
    TOOLS.iter().copied().filter(|(tool, _)| !is_installed(tool, path)).collect()
}

fn is_installed(tool: &str, path: &str) -> bool {
    path.split(':')
        .filter(|directory| !directory.is_empty())
        .any(|directory| Path::new(directory).join(tool).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of Debian's essential packages; they need no installation.
    const BASE: &[&str] = &[
        "bash", "cat", "cp", "dd", "env", "head", "ln", "mknod", "nohup", "sh", "sleep", "stat", "sync",
        "timeout", "truncate", "yes",
    ];

    #[test]
    fn the_search_path_has_the_system_directories_once() {
        let path = search_path();
        for directory in SYSTEM_DIRECTORIES {
            assert_eq!(path.split(':').filter(|known| known == directory).count(), 1, "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().to_str().unwrap();
        assert_eq!(missing(path).len(), TOOLS.len());
        std::fs::write(scratch.path().join("fio"), "").unwrap();
        assert!(!missing(path).contains(&("fio", "fio")));
    }

    #[test]
    fn promises_have_the_form_that_tests_read() {
        assert!(must_have().starts_with("root,tool:"));
        assert!(must_have().split(',').any(|need| need == "tool:fio"));
    }

    /// A test that asks for a program which nobody installs would be skipped for ever.
    #[test]
    fn every_program_that_tests_ask_for_is_installed() {
        let root = crate::root();
        let mut asked = 0;
        for path in crate::arch::rust_sources(&root).unwrap() {
            // The room that defines needs tests itself with programs that do not exist.
            if path.ends_with("testkit/src/requires.rs") {
                continue;
            }
            let text = std::fs::read_to_string(root.join(&path)).unwrap();
            let needle = concat!("Need::Tool", "(\"");
            for rest in text.split(needle).skip(1) {
                let tool = rest.split('"').next().unwrap_or_default();
                asked += 1;
                let known = BASE.contains(&tool) || TOOLS.iter().any(|(known, _)| *known == tool);
                assert!(known, "{} asks for {tool}, which is not in xtask/src/tools.rs", path.display());
            }
        }
        assert!(asked > 0, "no test asks for any program: the search is broken");
    }
}
