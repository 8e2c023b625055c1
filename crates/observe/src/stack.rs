//! The stack below a target, as sysfs shows it: the devices of a filesystem, and below each device those that carry its
//! data. It says how many bytes the lower ones write for each byte from above; it reads no counters.

use crate::sysfs::{MAX_LEVELS, block_path, kernel_name};
use rdsk_model::Target;
use rdsk_sys::dm::{has_paths, only_describes};
use rdsk_sys::files::{names_in, read_flag, read_word};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest number of devices examined below one target.
const MAX_DEVICES: usize = 512;

/// Bytes that several devices write together for each byte that the one above is asked to write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// At least this many.
    pub least: f64,
    /// At most this many; `None` if it depends on the writes.
    pub most: Option<f64>,
}

impl Spread {
    /// Every byte once.
    pub const ONCE: Self = Self { least: 1.0, most: Some(1.0) };
    /// Every byte at least once; what is stored besides the data is not known.
    const ONCE_OR_MORE: Self = Self { least: 1.0, most: None };

    /// This many complete copies.
    fn copies(count: u32) -> Self {
        let count = f64::from(count.max(1));
        Self { least: count, most: Some(count) }
    }

    /// Whole stripes of `members` devices of which `parity` hold no data; smaller writes cost more.
    fn parity(members: u32, parity: u32) -> Self {
        let data = members.saturating_sub(parity).max(1);
        Self { least: f64::from(data + parity) / f64::from(data), most: None }
    }
}

/// The devices that carry the data of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Below {
    /// Kernel names.
    pub names: Vec<String>,
    /// What they write together.
    pub spread: Spread,
    /// In words: `raid1`, `paths`; `None` if sysfs does not name it.
    pub kind: Option<String>,
}

/// The stack below one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stack {
    /// Index of the target.
    pub target: u32,
    /// Its own device, or all devices of its filesystem.
    pub tops: Vec<String>,
    /// What the tops write together for a byte of the filesystem, and why, in words; `None` if there is only one top.
    pub over: Option<(Spread, String)>,
    /// For every other device, the devices that carry its data, by name.
    pub below: BTreeMap<String, Below>,
}

impl Stack {
    /// Reads the stack of a target; `None` if no block device below it is known.
    pub fn read(target: &Target, sys: &Path) -> Option<Self> {
        let device = target.device.as_ref()?;
        let mut stack = Self { target: target.index, tops: vec![device.name.clone()], ..Self::default() };
        if target.filesystem.as_ref().is_some_and(|filesystem| filesystem.kind == "btrfs")
            && let Some((tops, spread, words)) = btrfs(&device.name, sys)
        {
            (stack.tops, stack.over) = (tops, Some((spread, words)));
        }
        let own = sys.join("dev/block").join(&device.major_minor);
        let mut level: Vec<(String, PathBuf)> = stack
            .tops
            .iter()
            .map(|name| {
                let is_own = *name == device.name;
                (name.clone(), if is_own { own.clone() } else { block_path(sys, name) })
            })
            .collect();
        for _ in 0..MAX_LEVELS {
            let mut next = Vec::new();
            for (name, directory) in level {
                if stack.below.contains_key(&name) || stack.below.len() >= MAX_DEVICES {
                    continue;
                }
                let Some(below) = below_in(target, &name, &directory, sys) else { continue };
                next.extend(below.names.iter().map(|name| (name.clone(), block_path(sys, name))));
                stack.below.insert(name, below);
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        Some(stack)
    }

    /// All devices below the tops, nearest first.
    pub fn lower(&self) -> Vec<String> {
        let mut devices = self.tops.clone();
        let mut index = 0;
        while index < devices.len() {
            let names =
                self.below.get(&devices[index]).map(|lower| lower.names.as_slice()).unwrap_or_default();
            let more: Vec<String> = names.iter().filter(|name| !devices.contains(name)).cloned().collect();
            devices.extend(more);
            index += 1;
        }
        devices.split_off(self.tops.len())
    }
}

/// [`below`], with what is known of the target's array: sysfs distinguishes paths from members only where multipath-tools made the device.
fn below_in(target: &Target, name: &str, directory: &Path, sys: &Path) -> Option<Below> {
    let lower = below(name, directory, sys)?;
    let array = target.device.as_ref().and_then(|device| device.array.as_ref());
    let has_paths =
        array.is_some_and(|array| array.device == name && array.level.as_deref() == Some("multipath"));
    let paths = |lower| Below { spread: Spread::ONCE, kind: Some("paths".to_owned()), ..lower };
    Some(if has_paths { paths(lower) } else { lower })
}

/// The devices that carry the data of the device of this name, whose directory in sysfs is given; `None` for a device
/// with nothing below it, and for a partition, because the counters of its disk include other I/O; those of an NVMe device with
/// several paths count nothing, so that its disk's are all there is.
fn below(name: &str, directory: &Path, sys: &Path) -> Option<Below> {
    let paths = crate::sysfs::nvme_paths(name, sys);
    if !paths.is_empty() {
        return Some(Below { names: paths, spread: Spread::ONCE, kind: Some("paths".to_owned()) });
    }
    if let Some(disk) = crate::sysfs::nvme_disk_with_paths(name, sys) {
        return Some(Below { names: vec![disk], spread: Spread::ONCE, kind: Some("its disk".to_owned()) });
    }
    let slaves = names_in(&directory.join("slaves")).into_iter();
    let members: Vec<String> = slaves.filter(|name| carries_data(directory, name)).collect();
    if members.is_empty() {
        return None;
    }
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let uuid = read_word(&directory.join("dm/uuid")).unwrap_or_default();
    let level = read_word(&directory.join("md/level"));
    let (spread, kind) = match level {
        Some(level) => (md_spread(&level, count, directory), Some(level)),
        None if has_paths(&uuid) => (Spread::ONCE, Some("paths".to_owned())),
        None if count == 1 && uuid.starts_with("CRYPT-") => (Spread::ONCE, None),
        None => (Spread::ONCE_OR_MORE, None),
    };
    Some(Below { names: members.iter().map(|name| kernel_name(name)).collect(), spread, kind })
}

/// Whether a device holds data of the one above, not only metadata. md's journals and spares hold none; their `slot` is not
/// a number.
fn carries_data(above: &Path, name: &str) -> bool {
    if let Some(slot) = read_word(&above.join("md").join(format!("dev-{name}")).join("slot")) {
        return slot.parse::<u32>().is_ok();
    }
    let member = above.join("slaves").join(name);
    let uuid = read_word(&member.join("dm/uuid")).unwrap_or_default();
    let mapped = read_word(&member.join("dm/name")).unwrap_or_default();
    !only_describes(&mapped, &uuid)
}

/// What the members of an md array write; a missing member writes nothing (Documentation/admin-guide/md.rst).
fn md_spread(level: &str, members: u32, directory: &Path) -> Spread {
    let number = |file: &str| {
        let text = read_word(&directory.join("md").join(file))?;
        text.split_ascii_whitespace().next()?.parse::<u32>().ok()
    };
    let disks = number("raid_disks").filter(|&disks| disks > 0).unwrap_or(members);
    let is_whole = members >= disks && number("degraded").is_none_or(|missing| missing == 0);
    match level {
        "linear" | "raid0" => Spread::ONCE,
        "raid1" => {
            // One that is rebuilt is written where it holds data already.
            let in_sync = number("degraded").map_or(members, |missing| disks.saturating_sub(missing));
            Spread { least: f64::from(in_sync.clamp(1, members.max(1))), ..Spread::copies(members) }
        }
        "raid10" => {
            // Two near copies unless `layout` says otherwise: its lowest byte counts the near ones, the
            // next the far ones.
            let layout = number("layout").unwrap_or(0x102);
            let copies = Spread::copies((layout & 0xff) * ((layout >> 8) & 0xff));
            if is_whole { copies } else { Spread { least: 1.0, ..copies } }
        }
        "raid4" | "raid5" if is_whole => Spread::parity(disks, 1),
        "raid6" if is_whole => Spread::parity(disks, 2),
        _ => Spread::ONCE_OR_MORE,
    }
}

/// The devices of the btrfs filesystem that uses this device, if it has several devices or keeps copies: their names, what
/// they write together, and the profile of the data.
fn btrfs(device: &str, sys: &Path) -> Option<(Vec<String>, Spread, String)> {
    let (filesystem, names) = btrfs_devices(device, sys)?;
    let profiles: Vec<String> = btrfs_profiles(&filesystem);
    let is_degraded =
        lacks_a_device(&filesystem) || profiles.iter().any(|name| needs_more(name, names.len()));
    let members = Members { count: u32::try_from(names.len()).unwrap_or(u32::MAX), is_degraded };
    let spreads: Vec<Spread> = profiles.iter().map(|profile| profile_spread(profile, members)).collect();
    let least = spreads.iter().map(|spread| spread.least).fold(f64::INFINITY, f64::min);
    let most =
        spreads.iter().map(|spread| spread.most).try_fold(1.0, |most, more| Some(f64::max(most, more?)));
    let spread = if spreads.is_empty() { Spread::ONCE_OR_MORE } else { Spread { least, most } };
    if names.len() == 1 && spread == Spread::ONCE {
        return None;
    }
    let profile = if profiles.is_empty() { "of unknown profile".to_owned() } else { profiles.join(" and ") };
    let state = if is_degraded { ", degraded," } else { "" };
    let words = format!("btrfs {profile}{state} over {}", names.join(", "));
    Some((names, spread, words))
}

/// The directory in sysfs of the mounted btrfs filesystem that uses this device, and all its devices, this one first.
pub(crate) fn btrfs_devices(device: &str, sys: &Path) -> Option<(PathBuf, Vec<String>)> {
    let filesystems = names_in(&sys.join("fs/btrfs")).into_iter().map(|name| sys.join("fs/btrfs").join(name));
    let (filesystem, names) = filesystems
        .map(|filesystem| (names_in(&filesystem.join("devices")), filesystem))
        .map(|(names, filesystem)| {
            (filesystem, names.iter().map(|name| kernel_name(name)).collect::<Vec<_>>())
        })
        .find(|(_, names)| names.iter().any(|name| name == device))?;
    let mut names = names;
    // The others follow by name.
    names.sort_by_key(|name| name != device);
    Some((filesystem, names))
}

/// The profiles of the data: one, or several after a conversion that did not finish.
fn btrfs_profiles(filesystem: &Path) -> Vec<String> {
    let data = filesystem.join("allocation/data");
    let is_profile =
        |name: &String| KNOWN_PROFILES.iter().any(|(profile, _)| profile == name) && data.join(name).is_dir();
    names_in(&data).into_iter().filter(is_profile).collect()
}

/// The profiles of btrfs (mkfs.btrfs(8)), and the copies of each byte; 0 for parity.
const KNOWN_PROFILES: [(&str, u32); 10] = [
    ("single", 1),
    ("raid0", 1),
    ("dup", 2),
    ("raid1", 2),
    ("raid10", 2),
    ("raid1c3", 3),
    ("raid1c4", 4),
    ("raid5", 0),
    ("raid6", 0),
    ("mixed", 1),
];

/// The devices of a btrfs filesystem that are present, and whether one is not.
#[derive(Clone, Copy, Debug)]
struct Members {
    count: u32,
    is_degraded: bool,
}

/// Whether btrfs was mounted without one of its devices (`-o degraded`): `devices/` lists only those that are present, and
/// `devinfo/ID/missing` says since Linux 5.6 (Documentation/ABI/testing/sysfs-fs-btrfs).
fn lacks_a_device(filesystem: &Path) -> bool {
    let devices = filesystem.join("devinfo");
    names_in(&devices).iter().any(|id| read_flag(&devices.join(id).join("missing")) == Some(true))
}

/// Whether a profile has more copies than there are devices for them; `dup` keeps both on one.
fn needs_more(profile: &str, devices: usize) -> bool {
    let copies = KNOWN_PROFILES.iter().find(|(name, _)| *name == profile).map_or(0, |&(_, copies)| copies);
    profile != "dup" && u32::try_from(devices).is_ok_and(|devices| devices < copies)
}

/// What is written of each byte. A copy, or a part of a stripe, on a device that is missing is not.
fn profile_spread(profile: &str, members: Members) -> Spread {
    match (profile, KNOWN_PROFILES.iter().find(|(name, _)| *name == profile)) {
        ("raid5" | "raid6", _) if members.is_degraded => Spread::ONCE_OR_MORE,
        ("raid5", _) => Spread::parity(members.count, 1),
        ("raid6", _) => Spread::parity(members.count, 2),
        (_, Some(&(_, copies))) if members.is_degraded && profile != "dup" => {
            Spread { least: 1.0, ..Spread::copies(copies) }
        }
        (_, Some(&(_, copies))) => Spread::copies(copies),
        (_, None) => Spread::ONCE_OR_MORE,
    }
}
