//! What is mounted and swapped to, from procfs, in every mount namespace that can be seen. It decides nothing.

use crate::device_number::DeviceNumber;
use crate::sysfs::Node;
use crate::uses::Found;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
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

/// One line of mountinfo (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `st_dev` of its files; major 0 for filesystems without one device, among them btrfs and overlay.
    pub(crate) number: DeviceNumber,
    /// What of its filesystem is mounted there: `/`, or a directory or file of a bind mount or subvolume.
    pub(crate) root: PathBuf,
    pub(crate) point: PathBuf,
    pub(crate) options: String,
    /// `ext4`.
    pub(crate) kind: String,
    /// `/dev/sda1`, or a word that the filesystem chose.
    pub(crate) source: PathBuf,
    pub(crate) super_options: String,
    pub(crate) namespace: Namespace,
}

impl Mount {
    pub(crate) fn is_read_only(&self) -> bool {
        [&self.options, &self.super_options].iter().any(|list| list.split(',').any(|word| word == "ro"))
    }

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

    /// Value of `name=value` among the filesystem's options.
    pub(crate) fn super_option(&self, name: &str) -> Option<PathBuf> {
        self.super_options.split(',').find_map(|word| {
            Some(PathBuf::from(unescape(word.strip_prefix(name)?.strip_prefix('=')?.as_bytes())))
        })
    }
}

/// Every mount that can be seen, and the doubts about the rest.
pub(crate) fn read_mounts(proc: &Path, found: &mut Found) -> Vec<Mount> {
    let mut mounts = match read_table(&proc.join("self/mountinfo"), &Namespace::Own) {
        Ok(mounts) => mounts,
        Err(error) => {
            found.doubt(&format!("the list of mounts cannot be read ({error})"));
            Vec::new()
        }
    };
    let mut seen: BTreeSet<PathBuf> = fs::read_link(proc.join("self/ns/mnt")).into_iter().collect();
    let Ok(entries) = fs::read_dir(proc) else { return mounts };
    let is_process = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    let mut processes =
        entries.filter_map(Result::ok).map(|entry| entry.file_name()).filter(|name| is_process(name));
    for process in processes.by_ref().take(MAX_PROCESSES) {
        let directory = proc.join(process);
        // Not every process may be examined; in the end O_EXCL protects what a hidden one uses.
        let Ok(namespace) = fs::read_link(directory.join("ns/mnt")) else { continue };
        if seen.insert(namespace) {
            let table = directory.join("mountinfo");
            mounts.extend(read_table(&table, &Namespace::Other(directory)).unwrap_or_default());
        }
    }
    if processes.next().is_some() {
        found.doubt("there are too many processes to look at all their mounts");
    }
    mounts
}

/// Paths of the active swap spaces, files and devices.
pub(crate) fn read_swaps(proc: &Path, found: &mut Found) -> Vec<PathBuf> {
    match fs::read(proc.join("swaps")) {
        Ok(text) => parse_swaps(&text),
        // A kernel without swap has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            found.doubt(&format!("the list of swap spaces cannot be read ({error})"));
            Vec::new()
        }
    }
}

/// The mount that contains a file: the last of those whose mount point is the longest prefix of its path.
pub(crate) fn mount_of<'list>(mounts: &'list [Mount], path: &Path) -> Option<&'list Mount> {
    mounts
        .iter()
        .filter(|mount| mount.namespace == Namespace::Own && path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

fn read_table(path: &Path, namespace: &Namespace) -> io::Result<Vec<Mount>> {
    let text = fs::read(path)?;
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            parse_line(line, namespace).ok_or_else(|| {
                let line = String::from_utf8_lossy(line).into_owned();
                io::Error::new(io::ErrorKind::InvalidData, format!("\"{line}\" is not understood"))
            })
        })
        .collect()
}

fn parse_line(line: &[u8], namespace: &Namespace) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ');
    let number = std::str::from_utf8(words.nth(2)?).ok()?.parse().ok()?;
    let root = PathBuf::from(unescape(words.next()?));
    let point = PathBuf::from(unescape(words.next()?));
    let options = text(words.next()?);
    // Any number of optional fields ends with a lone dash.
    words.find(|word| *word == b"-")?;
    Some(Mount {
        number,
        root,
        point,
        options,
        kind: text(words.next()?),
        source: PathBuf::from(unescape(words.next()?)),
        super_options: text(words.next().unwrap_or_default()),
        namespace: namespace.clone(),
    })
}

fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    text.split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(u8::is_ascii_whitespace).next())
        .filter(|word| !word.is_empty())
        .map(|word| PathBuf::from(unescape(word)))
        .collect()
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Undoes the kernel's `\040` for the bytes that would end a word.
pub(crate) fn unescape(word: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let value = octal.and_then(|digits| {
            u8::try_from(digits.iter().fold(0u16, |sum, digit| sum * 8 + u16::from(digit - b'0'))).ok()
        });
        match value {
            Some(value) if first == b'\\' => {
                bytes.push(value);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let line = br"36 35 98:0 /mnt1 /mnt\040two rw,noatime master:1 propagate_from:2 - ext3 /dev/ro\134ot ro,errors=continue";
        let mount = parse_line(line, &Namespace::Own).unwrap();
        assert_eq!(mount.number, DeviceNumber { major: 98, minor: 0 });
        assert_eq!(
            (mount.root.as_path(), mount.point.as_path()),
            (Path::new("/mnt1"), Path::new("/mnt two"))
        );
        assert_eq!(mount.source, Path::new("/dev/ro\\ot"));
        assert_eq!((mount.kind.as_str(), mount.options.as_str()), ("ext3", "rw,noatime"));
        assert!(mount.is_read_only(), "the filesystem is, though the mount is not");
        let line = b"27 1 254:0 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/var/lib/x/diff";
        let mount = parse_line(line, &Namespace::Own).unwrap();
        assert!(!mount.is_read_only());
        assert_eq!(mount.super_option("upperdir").unwrap(), Path::new("/var/lib/x/diff"));
        assert!(parse_line(b"27 1 254:0 / / rw", &Namespace::Own).is_none());
    }

    #[test]
    fn swaps_are_the_first_column() {
        let table = b"Filename\t\t\t\tType\t\tSize\n/dev/dm-1 partition 1\n/my\\040swap\t file 2\n";
        assert_eq!(parse_swaps(table), [Path::new("/dev/dm-1"), Path::new("/my swap")]);
        assert!(parse_swaps(b"").is_empty());
    }

    #[test]
    fn the_deepest_and_last_mount_has_the_file() {
        let mount = |point: &str, kind: &str| {
            parse_line(format!("1 1 8:1 / {point} rw - {kind} /dev/x rw").as_bytes(), &Namespace::Own)
                .unwrap()
        };
        let mounts =
            [mount("/", "ext4"), mount("/home", "xfs"), mount("/home", "btrfs"), mount("/homes", "jfs")];
        assert_eq!(mount_of(&mounts, Path::new("/home/a")).unwrap().kind, "btrfs");
        assert_eq!(mount_of(&mounts, Path::new("/homework")).unwrap().kind, "ext4");
    }

    #[test]
    fn an_unreadable_table_is_a_doubt() {
        let directory = tempfile::tempdir().unwrap();
        let mut found = Found::default();
        assert!(read_mounts(directory.path(), &mut found).is_empty());
        assert_eq!(found.doubts.len(), 1);
        fs::create_dir(directory.path().join("self")).unwrap();
        fs::write(directory.path().join("self/mountinfo"), "nonsense\n").unwrap();
        read_mounts(directory.path(), &mut found);
        assert_eq!(found.doubts.len(), 2);
    }
}
