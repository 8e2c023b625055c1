//! What is mounted and swapped to, from procfs, in every mount namespace that can be seen. It decides nothing.

use crate::machine::sysfs::Node;
use crate::uses::InUse;
use rdsk_sys::mounts::{self, parse_table, unescape};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Processes whose mount namespace is examined. Everything has a limit; beyond this one a doubt is raised.
const MAX_PROCESSES: usize = 1 << 16;

/// In whose mount namespace something is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    Own,
    /// That of another process, by its directory in procfs.
    Other(PathBuf),
}

/// A mount in its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    mount: mounts::Mount,
    pub(crate) namespace: Namespace,
}

impl Deref for Mount {
    type Target = mounts::Mount;

    fn deref(&self) -> &mounts::Mount {
        &self.mount
    }
}

impl AsRef<mounts::Mount> for Mount {
    fn as_ref(&self) -> &mounts::Mount {
        &self.mount
    }
}

impl Mount {
    /// For messages: `/home on sdb3`.
    pub(crate) fn shown_on(&self, device: &Node) -> String {
        let place = format!("{} on {}", self.point.display(), device.shown());
        match self.namespace {
            Namespace::Own => place,
            Namespace::Other(_) => format!("{place}, in another mount namespace"),
        }
    }

    /// For messages: `/home`.
    pub(crate) fn shown(&self) -> String {
        match self.namespace {
            Namespace::Own => self.point.display().to_string(),
            Namespace::Other(_) => format!("{}, in another mount namespace", self.point.display()),
        }
    }
}

/// Every mount that can be seen, and the doubts about the rest.
pub(crate) fn read_mounts(proc: &Path, usage: &mut InUse) -> Vec<Mount> {
    let mut mounts = match read_table(&proc.join("self/mountinfo"), &Namespace::Own) {
        Ok(mounts) => mounts,
        Err(error) => {
            usage.doubt(format_args!("the list of mounts cannot be read ({error})"));
            Vec::new()
        }
    };
    let mut namespaces: BTreeSet<PathBuf> = fs::read_link(proc.join("self/ns/mnt")).into_iter().collect();
    let Ok(entries) = fs::read_dir(proc) else { return mounts };
    let is_process = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    let mut processes =
        entries.filter_map(Result::ok).map(|entry| entry.file_name()).filter(|name| is_process(name));
    for process in processes.by_ref().take(MAX_PROCESSES) {
        let directory = proc.join(process);
        // Not every process may be examined; in the end O_EXCL protects what a hidden one uses.
        let Ok(namespace) = fs::read_link(directory.join("ns/mnt")) else { continue };
        if namespaces.insert(namespace) {
            let table = directory.join("mountinfo");
            mounts.extend(read_table(&table, &Namespace::Other(directory)).unwrap_or_default());
        }
    }
    if processes.next().is_some() {
        usage.doubt("there are too many processes to look at all their mounts");
    }
    mounts
}

/// Paths of the active swap spaces, files and devices.
pub(crate) fn read_swaps(proc: &Path, usage: &mut InUse) -> Vec<PathBuf> {
    match fs::read(proc.join("swaps")) {
        Ok(text) => parse_swaps(&text),
        // A kernel without swap has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            usage.doubt(format_args!("the list of swap spaces cannot be read ({error})"));
            Vec::new()
        }
    }
}

/// The mount of our own namespace that contains a file.
pub(crate) fn mount_of<'list>(mounts: &'list [Mount], path: &Path) -> Option<&'list Mount> {
    mounts::mount_of(mounts.iter().filter(|mount| mount.namespace == Namespace::Own), path)
}

fn read_table(path: &Path, namespace: &Namespace) -> io::Result<Vec<Mount>> {
    let text = fs::read(path)?;
    let in_namespace = |mount| Mount { mount, namespace: namespace.clone() };
    parse_table(&text).map(|mount| mount.map(in_namespace)).collect()
}

fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    text.split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(u8::is_ascii_whitespace).next())
        .filter(|word| !word.is_empty())
        .map(|word| PathBuf::from(unescape(word)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_are_the_first_column() {
        let table = b"Filename\t\t\t\tType\t\tSize\n/dev/dm-1 partition 1\n/my\\040swap\t file 2\n";
        assert_eq!(parse_swaps(table), [Path::new("/dev/dm-1"), Path::new("/my swap")]);
        assert!(parse_swaps(b"").is_empty());
    }

    #[test]
    fn an_unreadable_table_is_a_doubt() {
        let directory = tempfile::tempdir().unwrap();
        let mut usage = InUse::default();
        assert!(read_mounts(directory.path(), &mut usage).is_empty());
        assert_eq!(usage.doubts.len(), 1);
        fs::create_dir(directory.path().join("self")).unwrap();
        fs::write(directory.path().join("self/mountinfo"), "nonsense\n").unwrap();
        read_mounts(directory.path(), &mut usage);
        assert_eq!(usage.doubts.len(), 2);
    }
}
