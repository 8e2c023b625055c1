//! Who has a device-mapper device open that nothing shows: the kernel's servers for other hosts open one by a name that it may have
//! lost since, and show only that name. Device mapper alone counts the openers of its devices; they are compared with what can be seen.
//! It opens no device.

use crate::machine::{Machine, Node};
use crate::uses::InUse;
use crate::uses::processes::{NodeNumber, descriptors, device_behind, only_names, others, tables};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::names_in;
use std::path::Path;
use std::time::Duration;

/// How often, and how far apart, openers that cannot be seen are counted again: programs of udev and LVM have closed the device by
/// then, and what was opened between the two counts is in both.
const MAX_RECHECKS: usize = 10;
const RECHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How many openers the device has that cannot be seen; `None` if that is not known, as of every device that is not one of device mapper.
/// `known_openers` are known in another way.
pub(crate) fn unseen(machine: &Machine<'_>, node: &Node, known_openers: u64) -> Option<u64> {
    let mut openers = unseen_now(machine, node)?.saturating_sub(known_openers);
    for _ in 0..MAX_RECHECKS {
        if openers == 0 {
            break;
        }
        std::thread::sleep(RECHECK_INTERVAL);
        openers = openers.min(unseen_now(machine, node)?.saturating_sub(known_openers));
    }
    Some(openers)
}

/// The same at this moment.
pub(crate) fn unseen_now(machine: &Machine<'_>, node: &Node) -> Option<u64> {
    let openers = u64::from(machine.mapper.open_count(node)?);
    if openers == 0 {
        return Some(0);
    }
    let mut shown = held_by_devices(machine, node)?;
    shown += u64::from(is_mounted(machine, node));
    let swaps = machine.swaps.iter().filter_map(|swap| machine.tree.by_path(swap, &machine.roots.dev));
    shown += u64::from(swaps.into_iter().any(|swap| swap.name == node.name));
    let missing = openers.saturating_sub(shown);
    if missing == 0 {
        return Some(0);
    }
    Some(missing.saturating_sub(open_files(&machine.roots.proc, node.number, missing)))
}

/// The devices on it, each of which opens it once; `None` if there is one of which that is not known. DRBD opens a device once for its
/// data and once for its metadata, VDO once more for its index.
fn held_by_devices(machine: &Machine<'_>, node: &Node) -> Option<u64> {
    let mut count = 0;
    for holder in names_in(&node.directory.join("holders")) {
        let is_vdo =
            machine.tree.get(&holder).and_then(|holder| machine.table(holder)).is_some_and(|table| {
                !table.as_ref().is_ok_and(|rows| rows.iter().all(|row| row.kind != "vdo"))
            });
        if is_vdo || !(holder.starts_with("dm-") || holder.starts_with("md")) {
            return None;
        }
        count += 1;
    }
    let loops = machine.tree.nodes().filter_map(|other| machine.device_below_loop(other));
    Some(count + loops.map(|below| u64::from(below.name == node.name)).sum::<u64>())
}

/// A filesystem opens its device once, wherever it is mounted.
fn is_mounted(machine: &Machine<'_>, node: &Node) -> bool {
    let is_it = |device: &&Node| device.name == node.name;
    machine.mounts.iter().any(|mount| machine.devices_of_mount(mount).iter().any(is_it))
        || machine.btrfs_filesystems().any(|devices| devices.iter().any(is_it))
}

/// How many open files of programs lead to the device, up to `enough`, those of this program first: descriptors of one open file count
/// once.
fn open_files(proc: &Path, number: DeviceNumber, enough: u64) -> u64 {
    let count = |files: &Vec<(i32, u32)>| u64::try_from(files.len()).unwrap_or(u64::MAX);
    let mut files: Vec<(i32, u32)> = Vec::new();
    let own = tables(proc, &std::process::id().to_string());
    let others = std::iter::once_with(|| others(proc, &mut InUse::default())).flatten();
    for process in own.into_iter().chain(others) {
        if count(&files) >= enough {
            break;
        }
        let thread = process.directory.file_name().and_then(|name| name.to_str()?.parse().ok());
        for name in descriptors(&process).unwrap_or_default() {
            let is_it = device_behind(&process.directory.join("fd").join(&name))
                == Some(NodeNumber::Block(number))
                && !only_names(&process.directory, &name);
            let (Some(thread), Ok(fd), true) = (thread, name.parse(), is_it) else { continue };
            let is_same =
                |other: &(i32, u32)| rdsk_sys::openers::same_open_file(*other, (thread, fd)).unwrap_or(false);
            if !files.iter().any(is_same) {
                files.push((thread, fd));
            }
        }
    }
    count(&files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    fn count(fake: &Fake, name: &str) -> Option<u64> {
        fake.with(|machine, _| unseen_now(machine, machine.tree.get(name).unwrap()))
    }

    #[test]
    fn openers_that_nothing_shows_are_counted() {
        let fake = Fake::new().disk("sda", "8:0").disk("dm-0", "253:0").disk("dm-1", "253:1");
        let fake = fake.stack("dm-0", "sda").stack("dm-1", "dm-0").answer("open dm-1", "0");
        assert_eq!(count(&fake, "sda"), None, "only device mapper counts");
        assert_eq!(count(&fake, "dm-0"), None, "it may not be asked");
        assert_eq!(count(&fake, "dm-1"), Some(0));
        let fake = fake.answer("open dm-0", "1");
        assert_eq!(count(&fake, "dm-0"), Some(0), "by the device on it");
        let fake = fake.answer("open dm-0", "3");
        assert_eq!(count(&fake, "dm-0"), Some(2));
        let fake =
            fake.mount("253:0", "/mnt", "ext4", "/dev/dm-0").mount("253:0", "/too", "ext4", "/dev/dm-0");
        assert_eq!(count(&fake, "dm-0"), Some(1), "a filesystem, wherever it is mounted");
        let fake = fake.swap("/dev/dm-0");
        assert_eq!(count(&fake, "dm-0"), Some(0));
    }

    #[test]
    fn devices_that_open_what_they_lie_on_in_ways_of_their_own_explain_nothing() {
        let fake = Fake::new().disk("dm-0", "253:0").disk("dm-1", "253:1").disk("drbd0", "147:0");
        let fake = fake.stack("dm-1", "dm-0").answer("open dm-0", "2");
        assert_eq!(count(&fake, "dm-0"), Some(1));
        let vdo = fake.answer("table dm-1", "0 2097152 vdo V4 /dev/dm-0 1\n");
        assert_eq!(count(&vdo, "dm-0"), None);
        let drbd = vdo.answer("table dm-1", "0 2097152 linear 253:0 0\n").stack("drbd0", "dm-0");
        assert_eq!(count(&drbd, "dm-0"), None);
    }
}
