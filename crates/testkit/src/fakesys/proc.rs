//! The lines of `/proc` and of `stat` as the kernel formats them. Text only; it does not know the tree.

use std::fmt::Write as _;
use std::path::Path;

use super::disk::STAT_FIELDS;

/// One mounted filesystem.
#[derive(Clone, Debug)]
pub(super) struct MountLine {
    pub(super) major_minor: (u32, u32),
    pub(super) source: String,
    pub(super) mountpoint: String,
    pub(super) fstype: String,
}

/// One swap device in use.
#[derive(Clone, Debug)]
pub(super) struct SwapLine {
    pub(super) path: String,
    pub(super) size_bytes: u64,
}

/// `/proc/PID/mountinfo` (Documentation/filesystems/proc.rst, 3.5).
pub(super) fn mountinfo(mounts: &[MountLine]) -> String {
    let mut text = String::new();
    for (id, mount) in (22..).zip(mounts) {
        let (major, minor) = mount.major_minor;
        let (place, source) = (escaped(&mount.mountpoint), escaped(&mount.source));
        let line = format!(
            "{id} 1 {major}:{minor} / {place} rw,relatime shared:{id} - {} {source} rw",
            mount.fstype
        );
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// `/proc/mounts`, which is in the format of fstab(5).
pub(super) fn mounts(mounts: &[MountLine]) -> String {
    mounts
        .iter()
        .map(|mount| {
            let (place, source) = (escaped(&mount.mountpoint), escaped(&mount.source));
            format!("{source} {place} {} rw,relatime 0 0\n", mount.fstype)
        })
        .collect()
}

/// `/proc/swaps`: a heading, then columns filled with blanks and tabs. Sizes are KiB, less the page of the header.
pub(super) fn swaps(swaps: &[SwapLine]) -> String {
    let mut text = String::from("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    for (priority, swap) in (2..).zip(swaps) {
        let kib = swap.size_bytes.saturating_sub(4096) / 1024;
        let line = format!("{:<40}partition\t{kib}\t\t0\t\t-{priority}\n", escaped(&swap.path));
        text.push_str(&line);
    }
    text
}

/// The line of `/sys/block/NAME/stat` (Documentation/block/stat.rst).
pub(super) fn stat_line(stat: &[u64; STAT_FIELDS]) -> String {
    let fields: Vec<String> = stat.iter().map(|field| format!("{field:8}")).collect();
    fields.join(" ") + "\n"
}

/// A line of `/proc/diskstats` (Documentation/admin-guide/iostats.rst).
pub(super) fn diskstats_line((major, minor): (u32, u32), name: &str, stat: &[u64; STAT_FIELDS]) -> String {
    let mut line = format!("{major:4} {minor:7} {name}");
    for field in stat {
        // Writing to a String cannot fail.
        let _ = write!(line, " {field}");
    }
    line + "\n"
}

/// The name of a mounted device: for a device-mapper device its link in /dev/mapper, as passed to mount(8).
pub(super) fn node_name(root: &Path, device: &str) -> String {
    let mapper = root.join("dev/mapper");
    let link = std::fs::read_dir(&mapper).into_iter().flatten().flatten().find(|entry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target == Path::new("..").join(device))
    });
    match link {
        Some(entry) => format!("/dev/mapper/{}", entry.file_name().to_string_lossy()),
        None => format!("/dev/{device}"),
    }
}

/// Blank, tab, newline and backslash as octal escapes (`mangle()` in the kernel's fs/proc_namespace.c).
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            ' ' => text.push_str("\\040"),
            '\t' => text.push_str("\\011"),
            '\n' => text.push_str("\\012"),
            '\\' => text.push_str("\\134"),
            '#' => text.push_str("\\043"),
            other => text.push(other),
        }
    }
    text
}
