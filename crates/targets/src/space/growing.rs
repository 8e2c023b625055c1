//! What grows below a target when it is written: the sparse file behind a loop device, which takes the space of its own
//! filesystem, and the memory behind zram and RAM disks. A run never takes the last of either (`kept_bytes`): a full filesystem stops
//! everything else on it, and without memory the kernel ends programs. It reads sizes and changes nothing.

use crate::display::shown;
use crate::machine::{Machine, Node, mount_of};
use crate::probe;
use crate::space::anew::{self, Anew};
use crate::space::growth::{Growth, GrowthKind, Taking, kept_bytes};
use crate::space::overlay;
use crate::space::thin_pool;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{is_numbered, memory_bytes, read_flag, read_text};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Devices that are followed, through the files of loop devices.
const MAX_DEVICES: usize = 64;
/// Less than this is no growth: filesystems allocate whole blocks, and metadata.
const NO_GROWTH_BYTES: u64 = 1 << 20;

/// Everything that grows below a device of which at most `most_bytes` are allocated anew, and how it takes of each.
pub(crate) fn below_device(
    machine: &Machine<'_>,
    node: &Node,
    taking: Taking,
    most_bytes: u64,
) -> Vec<Growth> {
    let mut growths = Vec::new();
    let mut names = machine.tree.stack(node);
    let mut index = 0;
    while index < names.len().min(MAX_DEVICES) {
        let below = machine.tree.get(&names[index]);
        index += 1;
        let Some(below) = below else { continue };
        growths.extend(memory_of_disk(machine, below));
        let Some(path) = below.backing_file.as_deref() else { continue };
        if let Some(device) = machine.device_below_loop(below) {
            add_stack(machine, device, &mut names);
            continue;
        }
        // The name may lead to another file by now, and then nothing is known of the right one.
        let is_it = |meta: &Metadata| {
            machine.backing(below).is_some_and(|backing| backing.inode == (meta.dev(), meta.ino()))
        };
        let Some(meta) = fs::metadata(path).ok().filter(is_it) else { continue };
        let anew = anew::of_open(path, &meta);
        let at_most_bytes = anew.at_most_bytes;
        if at_most_bytes < NO_GROWTH_BYTES {
            continue;
        }
        growths.extend(space_of_file(machine, path, &meta, &anew));
        if let Some(device) = device_of_file(machine, path, &meta) {
            growths.extend(thin_pool::below_file(machine, device, at_most_bytes));
            add_stack(machine, device, &mut names);
        }
    }
    let limited = |growth: Growth| {
        // A filesystem that keeps what was overwritten takes more with every write, however small the device is.
        if growth.kind == GrowthKind::Copies && growth.at_most_bytes == u64::MAX {
            return Growth { taking: Taking::Always(u64::MAX), ..growth };
        }
        let at_most_bytes = growth.at_most_bytes.min(most_bytes);
        Growth { at_most_bytes, taking, ..growth }
    };
    growths.into_iter().map(limited).collect()
}

/// What overwriting the file at `path` takes of its own filesystem, which allocates this anew.
pub(crate) fn of_file(machine: &Machine<'_>, path: &Path, meta: &Metadata, anew: &Anew) -> Vec<Growth> {
    if anew.at_most_bytes < NO_GROWTH_BYTES {
        return Vec::new();
    }
    let growths = space_of_file(machine, path, meta, anew).into_iter();
    growths.map(|growth| Growth { taking: anew.taking, ..growth }).collect()
}

/// What a test file in the directory at `path` takes of its own filesystem.
pub(crate) fn of_directory(machine: &Machine<'_>, path: &Path) -> Option<Growth> {
    let growth = filesystem(machine, path, &fs::metadata(path).ok()?, u64::MAX)?;
    let growth = explained(growth, probe::rewriting(path).why());
    Some(Growth { taking: Taking::TestFile { unknown_bytes: 0 }, ..growth })
}

fn add_stack(machine: &Machine<'_>, device: &Node, names: &mut Vec<String>) {
    for name in machine.tree.stack(device) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// What a file takes space of: its filesystem, or memory.
fn space_of_file(machine: &Machine<'_>, path: &Path, meta: &Metadata, anew: &Anew) -> Vec<Growth> {
    let at_most_bytes = anew.at_most_bytes;
    let own = filesystem(machine, path, meta, at_most_bytes).map(|growth| explained(growth, anew.why));
    let mut growths: Vec<Growth> = own.into_iter().collect();
    if overlay::why_in_memory(&machine.mounts, path).is_some() {
        growths.extend(memory(machine, &shown(path), at_most_bytes));
    }
    growths
}

/// The same, with the reason why blocks that a file has already do not help.
fn explained(growth: Growth, why: Option<&str>) -> Growth {
    match why {
        Some(why) => Growth { kind: GrowthKind::Copies, name: format!("{} ({why})", growth.name), ..growth },
        None => growth,
    }
}

fn filesystem(machine: &Machine<'_>, path: &Path, meta: &Metadata, at_most_bytes: u64) -> Option<Growth> {
    // ramfs has no limit, and reports none.
    let space = rustix::fs::statvfs(path).ok().filter(|space| space.f_blocks > 0)?;
    // Each subvolume of a btrfs has a number of its own, and all of them lie on the same device.
    let key = match device_of_file(machine, path, meta) {
        Some(device) => format!("filesystem {}", device.name),
        None => format!("filesystem {}", meta.dev()),
    };
    Some(growth(
        key,
        format!("the filesystem of {}", shown(path)),
        "everything on it runs out of space",
        (space.f_bavail.saturating_mul(space.f_frsize), space.f_blocks.saturating_mul(space.f_frsize)),
        at_most_bytes,
    ))
}

fn growth(
    key: String,
    name: String,
    loss: &'static str,
    (free_bytes, total_bytes): (u64, u64),
    at_most_bytes: u64,
) -> Growth {
    let spare_bytes = free_bytes.saturating_sub(kept_bytes(total_bytes));
    let (kind, taking) = (GrowthKind::Space, Taking::Written);
    Growth { key, kind, name, loss, free_bytes, total_bytes, spare_bytes, at_most_bytes, taking }
}

fn device_of_file<'machine>(
    machine: &'machine Machine<'_>,
    path: &Path,
    meta: &Metadata,
) -> Option<&'machine Node> {
    let by_stat = machine.tree.by_number(DeviceNumber::from_raw(meta.dev()));
    by_stat.or_else(|| machine.device_of_mount(mount_of(&machine.mounts, path)?))
}

/// The memory that a zram device or RAM disk takes as it fills up; other devices take none.
fn memory_of_disk(machine: &Machine<'_>, node: &Node) -> Vec<Growth> {
    let size_bytes = node.size_bytes().unwrap_or(0);
    if is_numbered(&node.name, "ram") {
        return memory(machine, &node.kernel_name(), size_bytes).into_iter().collect();
    }
    if !is_numbered(&node.name, "zram") {
        return Vec::new();
    }
    // Documentation/admin-guide/blockdev/zram.rst: orig_data_size compr_data_size mem_used_total mem_limit …
    let state = read_text(&node.directory.join("mm_stat")).unwrap_or_default();
    let state: Vec<u64> = state.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| state.get(index).copied().unwrap_or(0);
    let (used_bytes, limit_bytes) = (at(2), at(3));
    // What it stores may be compressed, and what rdsk writes over it cannot be.
    let at_most_bytes = size_bytes.saturating_sub(used_bytes);
    let limit = (limit_bytes > 0).then(|| {
        let name = format!("the memory limit of {}", node.kernel_name());
        let room = (limit_bytes.saturating_sub(used_bytes), limit_bytes);
        growth(format!("limit {}", node.name), name, "its writes fail", room, at_most_bytes)
    });
    memory(machine, &node.kernel_name(), at_most_bytes).into_iter().chain(limit).collect()
}

/// The memory of the machine, of which `user` takes some.
fn memory(machine: &Machine<'_>, user: &str, at_most_bytes: u64) -> Option<Growth> {
    let text = read_text(&machine.roots.proc.join("meminfo"))?;
    let room = (memory_bytes(&text, "MemAvailable")?, memory_bytes(&text, "MemTotal")?);
    let name = format!("the memory behind {user}");
    Some(growth("memory".into(), name, "the kernel ends programs for want of it", room, at_most_bytes))
}

/// Whether I/O to a device waits because device mapper holds it back, itself or below it: who, for messages.
pub(crate) fn suspended(machine: &Machine<'_>, node: &Node) -> Option<String> {
    let stack = machine.tree.stack(node);
    let is_suspended = |node: &&Node| read_flag(&node.directory.join("dm/suspended")) == Some(true);
    stack.iter().filter_map(|name| machine.tree.get(name)).find(is_suspended).map(Node::shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examined::{Examined, Place};
    use crate::space::fills_up::check_growth;
    use crate::space::growth::spare_bytes;
    use crate::tests::Fake;
    use crate::uses::InUse;
    use rdsk_model::Target;

    const MIB: u64 = 1 << 20;

    /// A loop device over a file of 15 TiB of which nothing is allocated: more than any test machine has free.
    fn sparse() -> Fake {
        let fake = Fake::new().disk("loop0", "7:0").disk("dm-0", "253:0").stack("dm-0", "loop0");
        let file = fs::File::create(fake.path("a.img")).unwrap();
        file.set_len(15 << 40).unwrap();
        let path = fake.path("a.img");
        fake.attribute("loop0/loop/backing_file", &format!("{}\n", path.display()))
    }

    /// What takes more than may be taken when this much is written.
    fn texts(fake: &Fake, name: &str, write_bytes: u64) -> Vec<String> {
        fake.with(|machine, _| {
            let all = below_device(machine, machine.tree.get(name).unwrap(), Taking::Written, u64::MAX);
            let place = Place::File { dev: 1, ino: 2 };
            let message = |growth: Growth| {
                let one = Examined::new(Target::default(), "/t".into(), place.clone(), InUse::default());
                let one = Examined { growths: vec![growth], write_bytes: Some(write_bytes), ..one };
                check_growth(&[&one]).err().map(|refusal| refusal.message)
            };
            all.into_iter().filter_map(message).collect()
        })
    }

    fn spare_below(fake: &Fake, name: &str) -> Option<u64> {
        fake.with(|machine, _| {
            spare_bytes(&below_device(machine, machine.tree.get(name).unwrap(), Taking::Written, u64::MAX))
        })
    }

    #[test]
    fn a_sparse_file_must_not_fill_its_filesystem() {
        let fake = sparse();
        for name in ["loop0", "dm-0"] {
            let said = texts(&fake, name, 1 << 60);
            assert!(said[0].contains("more of the filesystem of") && said[0].contains("a.img"), "{said:?}");
            assert_eq!(texts(&fake, name, 4096), Vec::<String>::new(), "little is taken");
        }
        assert!(spare_below(&fake, "dm-0").is_some());
        fs::write(fake.path("a.img"), vec![1; 4 << 20]).unwrap();
        assert_eq!(texts(&fake, "loop0", 1 << 60), Vec::<String>::new(), "all of it is allocated");
    }

    #[test]
    fn zram_and_ram_disks_must_not_take_the_last_memory() {
        let fake = || {
            let fake = Fake::new().disk("zram0", "254:0").disk("ram1", "1:1").disk("ramses", "8:0");
            fake.file("proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 1 kB\nMemAvailable:  716800 kB\n");
            fake
        };
        // 700 of 1024 MiB are available, and 1 GiB may be written.
        let said = texts(&fake(), "zram0", u64::MAX);
        assert!(
            said[0].contains("more of the memory behind zram0, which has 700 MiB of 1 GiB free"),
            "{said:?}"
        );
        assert_eq!(texts(&fake(), "ram1", u64::MAX).len(), 1);
        assert_eq!(texts(&fake(), "ramses", u64::MAX), Vec::<String>::new());
        assert_eq!(texts(&fake(), "zram0", 500 * MIB), Vec::<String>::new());
        // It takes 600 MiB already; or takes little for 600 MiB that can be compressed, which what is written over it cannot.
        let full =
            |used: u64| fake().attribute("zram0/mm_stat", &format!("{} 1 {used} 0 1 0 0 0 0\n", 600 * MIB));
        assert_eq!(texts(&full(600 * MIB), "zram0", u64::MAX), Vec::<String>::new());
        assert_eq!(texts(&full(10 * MIB), "zram0", u64::MAX).len(), 1);
        let limited =
            fake().attribute("zram0/mm_stat", &format!("{} 1 {} {} 1 0\n", 600 * MIB, 90 * MIB, 100 * MIB));
        let said = texts(&limited, "zram0", u64::MAX);
        assert!(said.len() == 2 && said[1].contains("the memory limit of zram0"), "{said:?}");
        assert_eq!(spare_below(&fake(), "zram0"), Some((700 << 20) - (1_u64 << 30).div_ceil(10)));
    }

    #[test]
    fn a_suspended_device_is_found_below_what_lies_on_it() {
        let fake = Fake::new().disk("sda", "8:0").disk("dm-0", "253:0").disk("dm-1", "253:1");
        let fake = fake.stack("dm-0", "sda").stack("dm-1", "dm-0").attribute("dm-1/dm/suspended", "0\n");
        let seen = |fake: &Fake, name: &str| {
            fake.with(|machine, _| suspended(machine, machine.tree.get(name).unwrap()))
        };
        assert_eq!(seen(&fake, "dm-1"), None);
        let fake = fake.attribute("dm-0/dm/suspended", "1\n").attribute("dm-0/dm/name", "vg-home\n");
        assert_eq!(seen(&fake, "dm-1").as_deref(), Some("dm-0 (vg-home)"));
        assert_eq!(seen(&fake, "sda"), None);
    }
}
