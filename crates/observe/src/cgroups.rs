//! The control groups of a process, and the directories in which their controllers' files stand, by where the control-group filesystems
//! are mounted. It reads no file of a controller.

use rdsk_sys::mounts::{Mount, mounts_of};
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
    let groups = std::fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    let in_mount = |mount: &Mount| {
        let version = version_of(mount, controller)?;
        let group = group_in(&groups, version, controller)?;
        Some(CgroupOf { version, directories: directories(mount, group) })
    };
    mounts_of(process).iter().filter_map(in_mount).collect()
}

/// A line of `/proc/PID/cgroup` is `id:controllers:group`; version 2 has id 0 and no controllers.
fn group_in<'t>(groups: &'t str, version: CgroupVersion, controller: &str) -> Option<&'t str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match version {
            CgroupVersion::One => controllers.split(',').any(|named| named == controller),
            CgroupVersion::Unified => id == "0" && controllers.is_empty(),
        };
        ours.then_some(group)
    })
}

/// The version of a mounted control-group filesystem: 2, or 1 with this controller; `None` for all other mounts.
fn version_of(mount: &Mount, controller: &str) -> Option<CgroupVersion> {
    match mount.kind.as_str() {
        "cgroup2" => Some(CgroupVersion::Unified),
        "cgroup" if mount.super_options.split(',').any(|option| option == controller) => {
            Some(CgroupVersion::One)
        }
        _ => None,
    }
}

/// The directory of a group, and of the groups above it that are visible, innermost first. For a group outside of this mount, which in
/// a container shows a part of the hierarchy, only the mount point.
fn directories(mount: &Mount, group: &str) -> Vec<PathBuf> {
    let relative = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    // A group above the root of our namespace appears as `/..`, which is not a path below the mount.
    let outside = relative.components().any(|part| part == Component::ParentDir);
    let relative = if outside { Path::new("") } else { relative };
    relative.ancestors().map(|part| mount.point.join(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
24 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
30 24 0:26 / /sys/fs/cgroup/blkio rw,nosuid shared:9 - cgroup cgroup rw,blkio\n\
31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
32 24 0:28 /box/7 /a\\040b/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";

    fn mounts(controller: &str) -> Vec<(CgroupVersion, Mount)> {
        let lines = MOUNTINFO.lines().map(|line| Mount::parse(line.as_bytes()).unwrap());
        lines.filter_map(|mount| Some((version_of(&mount, controller)?, mount))).collect()
    }

    #[test]
    fn only_the_hierarchies_that_the_controller_may_limit() {
        let limiting = mounts("blkio");
        let versions: Vec<CgroupVersion> = limiting.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, [CgroupVersion::One, CgroupVersion::Unified]);
        assert_eq!(limiting[1].1.point, Path::new("/a b/unified"));
        assert_eq!(mounts("cpu")[0].1.point, Path::new("/sys/fs/cgroup/cpu"));
    }

    #[test]
    fn a_group_and_those_above_it() {
        let mounts = mounts("blkio");
        let paths = |index: usize, group: &str| {
            let found = directories(&mounts[index].1, group);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(0, "/a/b"),
            ["/sys/fs/cgroup/blkio/a/b", "/sys/fs/cgroup/blkio/a", "/sys/fs/cgroup/blkio/"]
        );
        assert_eq!(paths(0, "/"), ["/sys/fs/cgroup/blkio/"]);
        assert_eq!(paths(1, "/box/7/in"), ["/a b/unified/in", "/a b/unified/"]);
        assert_eq!(paths(0, "/../up"), ["/sys/fs/cgroup/blkio/"]);
        assert_eq!(paths(1, "/elsewhere"), ["/a b/unified/"]);
    }
}
