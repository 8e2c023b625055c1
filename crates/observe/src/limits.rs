//! Limits that control groups put on the I/O of a process to a device: `blkio.throttle` of version 1, `io.max` of
//! version 2; and the controllers of version 2 that hold I/O back without a limit, `io.cost` and `io.latency`. It reads limits and
//! never sets them.

use crate::cgroups::{CgroupVersion, cgroups_of};
use crate::stack::Stack;
use crate::sysfs::{block_path, kernel_name, name_of};
use rdsk_model::{IoControl, Limit, Op, Target};
use rdsk_sys::files::{names_in, read_text, read_word};
use std::path::{Path, PathBuf};

/// The files of version 1 and their direction.
const THROTTLE_FILES: [(&str, Op); 4] = [
    ("blkio.throttle.read_bps_device", Op::Read),
    ("blkio.throttle.write_bps_device", Op::Write),
    ("blkio.throttle.read_iops_device", Op::Read),
    ("blkio.throttle.write_iops_device", Op::Write),
];

/// Devices that are looked at below the file of one loop device.
const MAX_CARRIERS: usize = 64;

/// Groups beside one that are looked at.
const MAX_GROUPS: usize = 256;

/// Every limit on a process (`/proc/self`, `/proc/PID`) for the devices of the targets and the devices below them; `sys` is
/// where sysfs is mounted, and `carriers` are the devices that the files of loop devices lie on, each with the index of its target:
/// the kernel charges what a loop device reads and writes there to the group that asked for it (since 5.14). Several limits can
/// apply at once; then the lowest one decides.
///
/// Version 2 limits hold for all groups below, so the groups above count too. In version 1 throttling is flat: only the
/// process's own group counts (Documentation/admin-guide/cgroup-v1/blkio-controller.rst). Limits that cannot
/// be read are left out.
pub fn limits(
    process: &Path,
    sys: &Path,
    targets: &[Target],
    stacks: &[Stack],
    carriers: &[(u32, String)],
) -> Vec<Limit> {
    let devices = limited_devices(sys, targets, stacks, carriers);
    let mut limits = Vec::new();
    for group in cgroups_of(process, "blkio") {
        match group.version {
            CgroupVersion::One => throttle_limits(&group.directories, &devices, &mut limits),
            CgroupVersion::Unified => io_max_limits(&group.directories, &devices, &mut limits),
        }
    }
    limits
}

/// What may hold back the I/O of a process to these devices without a limit of its own, where it can be read.
///
/// `io.cost.qos` and `io.cost.model` stand in the topmost group, apply to the groups below it and not to itself
/// (block/blk-iocost.c: I/O of the root group is not charged). `io.latency` of a group protects it from its siblings, so that
/// those of the process's own group, of the groups above and of the siblings of these count.
pub fn controls(
    process: &Path,
    sys: &Path,
    targets: &[Target],
    stacks: &[Stack],
    carriers: &[(u32, String)],
) -> Vec<IoControl> {
    let devices = limited_devices(sys, targets, stacks, carriers);
    let mut controls = Vec::new();
    for group in cgroups_of(process, "io").into_iter().filter(|group| group.version == CgroupVersion::Unified)
    {
        let Some((top, below)) = group.directories.split_last().filter(|(_, below)| !below.is_empty()) else {
            continue;
        };
        cost(top, &devices, &mut controls);
        for directory in below {
            let parent = directory.parent().unwrap_or(top);
            for sibling in names_in(parent).iter().take(MAX_GROUPS) {
                controls.extend(settings(&parent.join(sibling).join("io.latency"), &devices));
            }
        }
    }
    controls
}

/// The cost model of each device for which it is on.
fn cost(top: &Path, devices: &[Limited], controls: &mut Vec<IoControl>) {
    let mut qos = settings(&top.join("io.cost.qos"), devices);
    qos.retain(|qos| qos.setting.split(' ').any(|word| word == "enable=1"));
    let mut models = settings(&top.join("io.cost.model"), devices);
    models.retain(|model| qos.iter().any(|qos| qos.device == model.device));
    // The model first: it has the figures.
    controls.extend(models.into_iter().chain(qos));
}

/// The lines of a file, `major:minor words`, that are about these devices: each device with the words.
fn lines_about<'devices>(file: &Path, devices: &'devices [Limited]) -> Vec<(&'devices Limited, String)> {
    let text = read_text(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let about = |(number, words): (&str, &str)| {
        let words = words.trim().to_owned();
        let named = devices.iter().filter(|device| device.major_minor == number);
        named.map(|device| (device, words.clone())).collect::<Vec<_>>()
    };
    lines.flat_map(about).collect()
}

/// What a file says of a controller of these devices.
fn settings(file: &Path, devices: &[Limited]) -> Vec<IoControl> {
    let control = |(device, setting): (&Limited, String)| IoControl {
        target: device.target,
        device: device.name.clone(),
        source: file.display().to_string(),
        setting,
    };
    lines_about(file, devices).into_iter().map(control).collect()
}

/// A device that a target's I/O goes through.
struct Limited {
    target: u32,
    name: String,
    major_minor: String,
}

fn limited_devices(
    sys: &Path,
    targets: &[Target],
    stacks: &[Stack],
    carriers: &[(u32, String)],
) -> Vec<Limited> {
    targets.iter().flat_map(|target| devices_of(sys, target, stacks, carriers)).collect()
}

/// The devices that a target's I/O goes through: its own device, those that its filesystem spreads over, and those below.
fn devices_of(sys: &Path, target: &Target, stacks: &[Stack], carriers: &[(u32, String)]) -> Vec<Limited> {
    let Some(own) = &target.device else { return Vec::new() };
    let limited = |name: &str, major_minor: String| Limited {
        target: target.index,
        name: name.to_owned(),
        major_minor,
    };
    let mut devices = vec![limited(&own.name, own.major_minor.clone())];
    let stack = stacks.iter().find(|stack| stack.target == target.index);
    let spread = stack.map(|stack| stack.tops.clone()).unwrap_or_default();
    let lower = stack.map(Stack::lower).unwrap_or_default();
    let own_carriers = carriers.iter().filter(|(index, _)| *index == target.index);
    let carrying: Vec<String> = own_carriers.flat_map(|(_, name)| down_from(sys, name)).collect();
    for name in spread.iter().chain(&target.stack).chain(&lower).chain(&carrying) {
        let number = read_word(&block_path(sys, name).join("dev"));
        if let Some(number) =
            number.filter(|number| devices.iter().all(|device| device.major_minor != *number))
        {
            devices.push(limited(name, number));
        }
    }
    devices
}

/// A device, the disk that it is a part of, and everything below these.
fn down_from(sys: &Path, name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let mut index = 0;
    while index < names.len() && names.len() < MAX_CARRIERS {
        let Ok(directory) = block_path(sys, &names[index]).canonicalize() else { break };
        let whole = directory.parent().filter(|_| directory.join("partition").exists()).and_then(name_of);
        let slaves = names_in(&directory.join("slaves"));
        for name in slaves.iter().map(|name| kernel_name(name)).chain(whole) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        index += 1;
    }
    names
}

fn throttle_limits(directories: &[PathBuf], devices: &[Limited], limits: &mut Vec<Limit>) {
    let Some(own) = directories.first() else { return };
    for (name, op) in THROTTLE_FILES {
        let file = own.join(name);
        for (device, value) in lines_about(&file, devices) {
            let (value, is_bytes) = (value.parse::<u64>().ok(), name.ends_with("_bps_device"));
            limits.extend(limit(
                device,
                &file,
                op,
                [value.filter(|_| is_bytes), value.filter(|_| !is_bytes)],
            ));
        }
    }
}

/// A line of `io.max` is `major:minor rbps=N wbps=N riops=N wiops=N`, where N may be `max`.
fn io_max_limits(directories: &[PathBuf], devices: &[Limited], limits: &mut Vec<Limit>) {
    for file in directories.iter().map(|directory| directory.join("io.max")) {
        for (device, values) in lines_about(&file, devices) {
            let value = |key: &str| {
                let text = values.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
                text?.parse::<u64>().ok()
            };
            limits.extend(limit(device, &file, Op::Read, [value("rbps"), value("riops")]));
            limits.extend(limit(device, &file, Op::Write, [value("wbps"), value("wiops")]));
        }
    }
}

/// The limit of a device in a file, in bytes and in I/Os per second; `None` where it has neither.
fn limit(device: &Limited, file: &Path, op: Op, [bytes_per_s, ops_per_s]: [Option<u64>; 2]) -> Option<Limit> {
    bytes_per_s.or(ops_per_s)?;
    let (target, device, source) = (device.target, device.name.clone(), file.display().to_string());
    Some(Limit { target, device, source, op, bytes_per_s, ops_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::{target_on, write};

    #[test]
    fn version_1_counts_the_own_group_only() {
        let root = tempfile::tempdir().unwrap();
        let (process, sys) = (root.path().join("proc/self"), root.path().join("sys"));
        let blkio = root.path().join("cgroup/blkio");
        write(&process.join("cgroup"), "7:blkio:/app/db\n4:memory:/other\n0::/\n");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup cgroup rw,blkio\n", blkio.display());
        write(&process.join("mountinfo"), &mountinfo);
        write(&blkio.join("app/db/blkio.throttle.read_bps_device"), "7:3 1048576\n8:0 5\n");
        write(&blkio.join("app/db/blkio.throttle.write_iops_device"), "7:3 256\nnonsense\n7:3 many\n");
        write(&blkio.join("app/blkio.throttle.read_bps_device"), "7:3 1\n");
        let limits = limits(&process, &sys, &[target_on(4, "loop3", "7:3")], &[], &[]);
        assert_eq!(limits.len(), 2, "{limits:?}");
        assert_eq!((limits[0].target, limits[0].op), (4, Op::Read));
        assert_eq!((limits[0].bytes_per_s, limits[0].ops_per_s), (Some(1 << 20), None));
        assert!(limits[0].source.ends_with("app/db/blkio.throttle.read_bps_device"));
        assert_eq!((limits[1].op, limits[1].ops_per_s), (Op::Write, Some(256)));
    }

    #[test]
    fn version_2_counts_the_groups_above_and_the_devices_below() {
        let root = tempfile::tempdir().unwrap();
        let (process, sys) = (root.path().join("proc/self"), root.path().join("sys"));
        let unified = root.path().join("cgroup");
        write(&process.join("cgroup"), "0::/app/db\n");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", unified.display());
        write(&process.join("mountinfo"), &mountinfo);
        write(&sys.join("class/block/sda/dev"), "8:0\n");
        write(&unified.join("app/io.max"), "8:0 rbps=2097152 wbps=max riops=max wiops=120\n");
        write(&unified.join("app/db/io.max"), "8:0 rbps=max wbps=max riops=100 wiops=max\n9:9 rbps=1\n");
        let mut target = target_on(0, "sda1", "8:1");
        target.stack = vec!["sda1".to_owned(), "sda".to_owned()];
        let limits = limits(&process, &sys, &[target], &[], &[]);
        assert!(limits.iter().all(|limit| limit.device == "sda"), "{limits:?}");
        let short: Vec<_> = limits.iter().map(|l| (l.op, l.bytes_per_s, l.ops_per_s)).collect();
        assert_eq!(
            short,
            [(Op::Read, None, Some(100)), (Op::Read, Some(2 << 20), None), (Op::Write, None, Some(120)),]
        );
    }

    /// Of a loop device over a file on a volume on a partition.
    #[test]
    fn the_disk_below_the_file_of_a_loop_device_counts() {
        let root = tempfile::tempdir().unwrap();
        let (process, sys) = (root.path().join("proc/self"), root.path().join("sys"));
        let unified = root.path().join("cgroup");
        write(&process.join("cgroup"), "0::/app\n");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", unified.display());
        write(&process.join("mountinfo"), &mountinfo);
        let devices = sys.join("devices");
        for (place, number) in [("dm-0", "253:0"), ("sda", "8:0"), ("sda/sda1", "8:1")] {
            write(&devices.join(place).join("dev"), &format!("{number}\n"));
        }
        write(&devices.join("sda/sda1/partition"), "1\n");
        write(&devices.join("dm-0/slaves/sda1/dev"), "8:1\n");
        std::fs::create_dir_all(sys.join("class/block")).unwrap();
        for place in ["dm-0", "sda", "sda/sda1"] {
            let name = place.rsplit('/').next().unwrap();
            std::os::unix::fs::symlink(devices.join(place), sys.join("class/block").join(name)).unwrap();
        }
        write(&unified.join("app/io.max"), "8:0 rbps=2097152 wbps=max riops=max wiops=max\n");
        let targets = [target_on(0, "loop3", "7:3"), target_on(1, "loop4", "7:4")];
        let seen = limits(&process, &sys, &targets, &[], &[(1, "dm-0".into())]);
        let short: Vec<_> =
            seen.iter().map(|one| (one.target, one.device.as_str(), one.bytes_per_s)).collect();
        assert_eq!(short, [(1, "sda", Some(2 << 20))]);
        assert!(limits(&process, &sys, &targets, &[], &[]).is_empty());
    }

    #[test]
    fn a_cost_model_and_a_neighbours_latency_are_seen() {
        let root = tempfile::tempdir().unwrap();
        let (process, sys) = (root.path().join("proc/self"), root.path().join("sys"));
        let unified = root.path().join("cgroup");
        let mountinfo = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", unified.display());
        write(&process.join("mountinfo"), &mountinfo);
        write(
            &unified.join("io.cost.qos"),
            "8:0 enable=1 ctrl=user min=50.00 max=150.00\n8:16 enable=0 ctrl=auto\n",
        );
        write(&unified.join("io.cost.model"), "8:0 ctrl=user model=linear rrandiops=100\n8:16 rrandiops=1\n");
        write(&unified.join("db/io.latency"), "8:0 target=75\n9:9 target=1\n");
        write(&unified.join("app/x/io.max"), "\n");
        let seen = |group: &str| -> Vec<(String, String)> {
            write(&process.join("cgroup"), &format!("0::{group}\n"));
            let targets = [target_on(0, "sda", "8:0"), target_on(1, "sdb", "8:16")];
            let found = controls(&process, &sys, &targets, &[], &[]);
            assert!(found.iter().all(|one| (one.target, one.device.as_str()) == (0, "sda")), "{found:?}");
            let short =
                |one: IoControl| (one.source.rsplit('/').next().unwrap_or_default().to_owned(), one.setting);
            found.into_iter().map(short).collect()
        };
        let expected = [
            ("io.cost.model".to_owned(), "ctrl=user model=linear rrandiops=100".to_owned()),
            ("io.cost.qos".to_owned(), "enable=1 ctrl=user min=50.00 max=150.00".to_owned()),
            ("io.latency".to_owned(), "target=75".to_owned()),
        ];
        assert_eq!(seen("/app/x"), expected);
        assert_eq!(seen("/app"), expected);
        assert!(seen("/").is_empty(), "the root group is not charged");
    }

    #[test]
    fn nothing_readable_is_no_limit() {
        let nowhere = Path::new("/nonexistent");
        assert!(limits(nowhere, nowhere, &[target_on(0, "sda", "8:0")], &[], &[]).is_empty());
        assert!(controls(nowhere, nowhere, &[target_on(0, "sda", "8:0")], &[], &[]).is_empty());
    }
}
