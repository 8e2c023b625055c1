//! The mount table that `/proc/PID/mountinfo` lists (proc_pid_mountinfo(5)), the one parser of it: where filesystems are mounted, from
//! what and how. It mounts nothing and decides nothing.

use crate::device_number::DeviceNumber;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One line of mountinfo: `id parent major:minor root point options optional-fields - kind source super-options`, with any number of
/// optional fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its number in statx(2); given to another mount once this one is gone.
    pub id: u64,
    /// `st_dev` of its files; major 0 for filesystems without one device, among them btrfs and overlay.
    pub number: DeviceNumber,
    /// What of its filesystem is mounted there: `/`, or a directory or file of a bind mount or subvolume.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// `ext4`.
    pub kind: String,
    /// `/dev/sda1`, or a word that the filesystem chose.
    pub source: PathBuf,
    /// Options of the filesystem.
    pub super_options: String,
}

impl Mount {
    /// The mount of a line; `None` where it is not understood.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|&byte| byte == b' ');
        let id = text(words.next()?).parse().ok()?;
        let number = text(words.nth(1)?).parse().ok()?;
        let root = PathBuf::from(unescape(words.next()?));
        let point = PathBuf::from(unescape(words.next()?));
        let options = text(words.next()?);
        // Any number of optional fields ends with a lone dash.
        words.find(|word| *word == b"-")?;
        Some(Self {
            id,
            number,
            root,
            point,
            options,
            kind: text(words.next()?),
            source: PathBuf::from(unescape(words.next()?)),
            super_options: text(words.next().unwrap_or_default()),
        })
    }

    /// Whether nothing can be written through it.
    pub fn is_read_only(&self) -> bool {
        [&self.options, &self.super_options].iter().any(|list| list.split(',').any(|word| word == "ro"))
    }

    /// Value of `name=value` among the filesystem's options.
    pub fn super_option(&self, name: &str) -> Option<PathBuf> {
        self.super_options.split(',').find_map(|word| {
            Some(PathBuf::from(unescape(word.strip_prefix(name)?.strip_prefix('=')?.as_bytes())))
        })
    }
}

impl AsRef<Self> for Mount {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Every line of a table, or the error that says which one is not understood.
pub fn parse_table(text: &[u8]) -> impl Iterator<Item = io::Result<Mount>> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        Mount::parse(line).ok_or_else(|| {
            let line = String::from_utf8_lossy(line).into_owned();
            io::Error::new(io::ErrorKind::InvalidData, format!("\"{line}\" is not understood"))
        })
    })
}

/// The mounts that a process (`/proc/self`, `/proc/PID`) sees, as far as they are understood; none where its table cannot be read.
pub fn mounts_of(process: &Path) -> Vec<Mount> {
    let table = std::fs::read(process.join("mountinfo")).unwrap_or_default();
    parse_table(&table).filter_map(Result::ok).collect()
}

/// The mount that contains a path without symlinks: the last of those whose mount point is its longest prefix.
pub fn mount_of<M: AsRef<Mount>>(mounts: impl IntoIterator<Item = M>, path: &Path) -> Option<M> {
    let above = mounts.into_iter().filter(|mount| path.starts_with(&mount.as_ref().point));
    above.max_by_key(|mount| mount.as_ref().point.components().count())
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Undoes the kernel's `\040` for the bytes that would end a word.
pub fn unescape(word: &[u8]) -> OsString {
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
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let line = br"36 35 98:0 /mnt1 /mnt\040two rw,noatime master:1 propagate_from:2 - ext3 /dev/ro\134ot ro,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.id, mount.number), (36, DeviceNumber { major: 98, minor: 0 }));
        assert_eq!(
            (mount.root.as_path(), mount.point.as_path()),
            (Path::new("/mnt1"), Path::new("/mnt two"))
        );
        assert_eq!(mount.source, Path::new("/dev/ro\\ot"));
        assert_eq!((mount.kind.as_str(), mount.options.as_str()), ("ext3", "rw,noatime"));
        assert!(mount.is_read_only(), "the filesystem is, though the mount is not");
        let line = b"27 1 254:0 / / rw,relatime - overlay overlay rw,lowerdir=/a,upperdir=/up\\054per/diff";
        let mount = Mount::parse(line).unwrap();
        assert!(!mount.is_read_only());
        assert_eq!(mount.super_option("upperdir").unwrap(), Path::new("/up,per/diff"));
        assert!(Mount::parse(b"27 1 254:0 / / rw").is_none());
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let lines: Vec<_> = parse_table(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\nnonsense\n").collect();
        assert_eq!(lines.len(), 2);
        let error = lines[1].as_ref().unwrap_err().to_string();
        assert_eq!((lines[0].is_ok(), error.as_str()), (true, "\"nonsense\" is not understood"));
    }

    #[test]
    fn the_deepest_and_last_mount_has_the_file() {
        let mount = |point: &str, kind: &str| {
            Mount::parse(format!("1 1 8:1 / {point} rw - {kind} /dev/x rw").as_bytes()).unwrap()
        };
        let mounts =
            [mount("/", "ext4"), mount("/home", "xfs"), mount("/home", "btrfs"), mount("/homes", "jfs")];
        assert_eq!(mount_of(&mounts, Path::new("/home/a")).unwrap().kind, "btrfs");
        assert_eq!(mount_of(&mounts, Path::new("/homework")).unwrap().kind, "ext4");
        assert_eq!(mount_of(&mounts[1..], Path::new("/srv")), None);
    }

    #[test]
    fn odd_escapes_stay_as_they_are() {
        assert_eq!(unescape(br"a\134b\x\04").as_bytes(), br"a\b\x\04");
        assert_eq!(unescape("\\é".as_bytes()), "\\é");
    }
}
