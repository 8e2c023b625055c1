//! Where the facts come from: sysfs, procfs, `/dev` and the programs of util-linux, each replaceable by a tree or answers
//! of a test. It reads nothing itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The places that examining reads.
#[derive(Clone, Debug)]
pub struct Roots {
    /// sysfs: `/sys`.
    pub sys: PathBuf,
    /// procfs: `/proc`.
    pub proc: PathBuf,
    /// The device nodes: `/dev`.
    pub dev: PathBuf,
    /// Where `lsblk` and `wipefs` come from.
    pub tools: ToolSource,
}

/// Where the answers of `lsblk` and `wipefs` come from.
#[derive(Clone, Debug)]
pub enum ToolSource {
    /// Programs in these directories, the first that has one. Never those of `PATH`: the caller may be root, and
    /// any process may own the directory.
    Directories(Vec<PathBuf>),
    /// Prepared answers: the standard output by program and kernel name, as in `wipefs sda`. A missing entry is a
    /// program that failed.
    Answers(BTreeMap<String, String>),
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            dev: "/dev".into(),
            tools: ToolSource::Directories(SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect()),
        }
    }
}

impl Roots {
    /// A tree with the directories `sys`, `proc` and `dev` in `directory`, without programs.
    pub fn under(directory: &Path) -> Self {
        Self {
            sys: directory.join("sys"),
            proc: directory.join("proc"),
            dev: directory.join("dev"),
            tools: ToolSource::Answers(BTreeMap::new()),
        }
    }
}

/// The directories of the Filesystem Hierarchy Standard, and that of NixOS, which has none of them.
const SYSTEM_DIRECTORIES: [&str; 5] =
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/run/current-system/sw/bin"];
