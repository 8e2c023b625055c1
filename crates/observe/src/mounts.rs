//! What `/proc/self/mountinfo` lists: where the control-group filesystems are mounted and which groups a process is in, and from which
//! mount a file comes. It mounts nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// The mount that a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    /// `btrfs`.
    pub(crate) kind: String,
    /// `/dev/sda1`, or a word that the filesystem chose.
    pub(crate) source: PathBuf,
    /// The directory of an overlay that is written to.
    pub(crate) upper: Option<PathBuf>,
}

/// The mount that contains a path without symlinks: the last of those whose mount point is its longest prefix.
pub(crate) fn mount_of(mountinfo: &[u8], path: &Path) -> Option<Mount> {
    let mounts = mountinfo.split(|&byte| byte == b'\n').filter_map(mount);
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

/// A line is `id parent major:minor root mount-point options optional-fields - type source super-options`, with any number of optional
/// fields (proc_pid_mountinfo(5)).
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&byte| byte == b' ');
    let point = unescape_path(words.nth(4)?);
    words.find(|word| *word == b"-")?;
    let kind = String::from_utf8_lossy(words.next()?).into_owned();
    let source = unescape_path(words.next()?);
    let mut options = words.next().unwrap_or_default().split(|&byte| byte == b',');
    let upper = options.find_map(|option| option.strip_prefix(b"upperdir=")).map(unescape_path);
    Some(Mount { point, kind, source, upper })
}

/// A process's group in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupOf {
    /// Which kind of hierarchy.
    pub(crate) version: CgroupVersion,
    /// The group's directory, and those of the groups above it that are visible, innermost first; never empty.
    pub(crate) directories: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CgroupVersion {
    /// Version 1 with the controller that was asked for.
    One,
    /// Version 2.
    Unified,
}

/// The groups of a process (`/proc/self`, `/proc/PID`) that a controller such as `blkio` may limit; none that cannot be read.
pub(crate) fn cgroups_of(process: &Path, controller: &str) -> Vec<CgroupOf> {
    let text = |name: &str| std::fs::read_to_string(process.join(name)).unwrap_or_default();
    let (groups, mountinfo) = (text("cgroup"), text("mountinfo"));
    let mounts = cgroup_mounts(&mountinfo, controller).into_iter();
    let own = mounts.filter_map(|mount| {
        let group = group_in(&groups, mount.version, controller)?;
        Some(CgroupOf { version: mount.version, directories: mount.directories(group) })
    });
    own.collect()
}

/// A line of `/proc/PID/cgroup` is `id:controllers:group`; version 2 has id 0 and no controllers.
fn group_in<'t>(groups: &'t str, version: CgroupVersion, controller: &str) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match version {
            CgroupVersion::One => controllers.split(',').any(|one| one == controller),
            CgroupVersion::Unified => id == "0" && controllers.is_empty(),
        };
        ours.then_some(group)
    })
}

/// One mount of a control-group filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CgroupMount {
    /// The part of the hierarchy that this mount shows; `/` outside of containers.
    root: String,
    mount_point: PathBuf,
    version: CgroupVersion,
}

/// All mounts of cgroup2, and of cgroup version 1 with this controller.
fn cgroup_mounts(mountinfo: &str, controller: &str) -> Vec<CgroupMount> {
    mountinfo.lines().filter_map(|line| cgroup_mount(line, controller)).collect()
}

impl CgroupMount {
    /// The directory of a group, and of the groups above it that are visible, innermost first. For a group
    /// outside of this mount, only the mount point.
    fn directories(&self, group: &str) -> Vec<PathBuf> {
        let relative = Path::new(group).strip_prefix(&self.root).unwrap_or(Path::new(""));
        // A group above the root of our namespace appears as `/..`, which is not a path below the mount.
        let outside = relative.components().any(|part| part == Component::ParentDir);
        let relative = if outside { Path::new("") } else { relative };
        relative.ancestors().map(|part| self.mount_point.join(part)).collect()
    }
}

/// A line is `id parent major:minor root mount-point options optional-fields - type source super-options`.
fn cgroup_mount(line: &str, controller: &str) -> Option<CgroupMount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let (root, mount_point) = (words.next()?, words.next()?);
    let mut words = filesystem.split(' ');
    let (kind, _source, options) = (words.next()?, words.next()?, words.next()?);
    let version = match kind {
        "cgroup2" => CgroupVersion::Unified,
        "cgroup" if options.split(',').any(|option| option == controller) => CgroupVersion::One,
        _ => return None,
    };
    Some(CgroupMount { root: unescape(root), mount_point: unescape(mount_point).into(), version })
}

fn unescape(text: &str) -> String {
    String::from_utf8_lossy(&unescape_bytes(text.as_bytes())).into_owned()
}

fn unescape_path(word: &[u8]) -> PathBuf {
    OsString::from_vec(unescape_bytes(word)).into()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape_bytes(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
24 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
30 24 0:26 / /sys/fs/cgroup/blkio rw,nosuid shared:9 - cgroup cgroup rw,blkio\n\
31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
32 24 0:28 /box/7 /a\\040b/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_file_is_of_the_last_mount_with_the_longest_point() {
        let table = b"24 1 254:0 / / rw - ext4 /dev/vda rw\n\
25 24 0:40 /@home /home rw shared:1 master:2 - btrfs /dev/mapper/a\\040b rw,subvol=/@home\n\
26 24 0:41 / /home\\040two rw - xfs /dev/sdb rw\n\
27 24 0:42 / /home\\040two rw - overlay overlay rw,lowerdir=/l,upperdir=/up\\054per,workdir=/w\n\
nonsense\n";
        let of = |path: &str| mount_of(table, Path::new(path)).unwrap();
        assert_eq!(of("/homework").kind, "ext4");
        let home = of("/home/me/file");
        assert_eq!((home.kind.as_str(), home.source.as_path()), ("btrfs", Path::new("/dev/mapper/a b")));
        assert_eq!(home.upper, None);
        let two = of("/home two");
        assert_eq!((two.kind.as_str(), two.upper.as_deref()), ("overlay", Some(Path::new("/up,per"))));
        assert_eq!(mount_of(b"24 1 254:0 / /mnt rw - ext4 /dev/vda rw\n", Path::new("/home")), None);
    }

    #[test]
    fn only_the_hierarchies_that_the_controller_may_limit() {
        let mounts = cgroup_mounts(MOUNTINFO, "blkio");
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].version, CgroupVersion::One);
        assert_eq!(mounts[1].mount_point, Path::new("/a b/unified"));
        assert_eq!(cgroup_mounts(MOUNTINFO, "cpu")[0].mount_point, Path::new("/sys/fs/cgroup/cpu"));
        assert!(cgroup_mounts("nonsense\n1 2 3 - cgroup2\n", "blkio").is_empty());
    }

    #[test]
    fn a_group_and_those_above_it() {
        let mounts = cgroup_mounts(MOUNTINFO, "blkio");
        let paths = |mount: &CgroupMount, group: &str| {
            mount.directories(group).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&mounts[0], "/a/b"),
            ["/sys/fs/cgroup/blkio/a/b", "/sys/fs/cgroup/blkio/a", "/sys/fs/cgroup/blkio/"]
        );
        assert_eq!(paths(&mounts[0], "/"), ["/sys/fs/cgroup/blkio/"]);
        assert_eq!(paths(&mounts[1], "/box/7/in"), ["/a b/unified/in", "/a b/unified/"]);
        assert_eq!(paths(&mounts[0], "/../up"), ["/sys/fs/cgroup/blkio/"]);
        assert_eq!(paths(&mounts[1], "/elsewhere"), ["/a b/unified/"]);
    }

    #[test]
    fn odd_escapes_stay_as_they_are() {
        assert_eq!(unescape("a\\134b\\x\\04"), "a\\b\\x\\04");
        assert_eq!(unescape("\\é"), "\\é");
    }
}
