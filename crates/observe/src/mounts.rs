//! Where the control-group filesystems are mounted, as `/proc/self/mountinfo` lists them, and which groups a process is in. It
//! mounts nothing.

use std::path::{Component, Path, PathBuf};

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

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let escaped = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match escaped {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
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
