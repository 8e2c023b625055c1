//! Programs that have block devices open without a use for what is on them: they watch paths and health, or read labels, and one writes
//! the metadata of arrays beside their data. Writing to the device costs them nothing, so they are no reason to refuse it. It reads procfs
//! and decides by names alone.

use rdsk_sys::files::read_text;
use std::fs;
use std::path::Path;

/// Programs by the names that procfs has of them. `multipathd` keeps every path open for reading as long as it watches it
/// (`pathinfo` in libmultipath/discovery.c). `smartd` and `udisksd` open a disk for each of their checks, which take long on one that
/// spins up, `blktrace` has it open to trace it (`BLKTRACESETUP` is an ioctl of the device), `blkid`, `lsblk`,
/// `wipefs` and `partx` as long as it takes them to read labels, for another rdsk, too. LVM's daemons (`dmeventd`, `lvmpolld`) are not
/// among them: they close everything after each scan (`label_scan_destroy` in lib/label/label.c).
const ONLOOKERS: [&str; 9] =
    ["multipathd", "smartd", "smartctl", "udisksd", "blktrace", "blkid", "lsblk", "wipefs", "partx"];
/// udev's daemon and its workers, by the names of systemd before and after version 252, and of eudev. A worker has the device open, with
/// a shared lock, until all rules have run, and what the rules start is its child: `ata_id`, `mdadm`, `pvscan`.
const UDEV: [&str; 3] = ["systemd-udevd", "(udev-worker)", "udevd"];
/// How far up a program of udev's rules is looked for.
const MAX_PARENTS: usize = 8;

/// Whether a process that has a device open for reading is such a program.
pub(crate) fn is_onlooker(proc: &Path, id: &str) -> bool {
    is_one_of(proc, id, &ONLOOKERS) || is_of_udev(proc, id)
}

/// Whether a process is mdmon, which has the members of an array in a container open for writing as long as it watches it: it keeps their
/// metadata as the kernel keeps md's own, and writes none of the sectors in which the array has its data (mdmon(8)). Its own name and
/// that of its program must say so; a program of the initramfs, or one that was replaced, is gone.
pub(crate) fn keeps_metadata(proc: &Path, id: &str) -> bool {
    const NAME: &str = "mdmon";
    let program = fs::read_link(proc.join(id).join("exe")).ok();
    let program = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let is_it = |name: &str| name.strip_suffix(" (deleted)").unwrap_or(name) == NAME;
    is_one_of(proc, id, &[NAME]) && program.is_some_and(|name| is_it(&name))
}

fn is_of_udev(proc: &Path, id: &str) -> bool {
    let mut id = id.to_owned();
    for _ in 0..MAX_PARENTS {
        if is_one_of(proc, &id, &UDEV) {
            return true;
        }
        match parent_of(proc, &id) {
            Some(parent) => id = parent,
            None => return false,
        }
    }
    false
}

fn is_one_of(proc: &Path, id: &str, names: &[&str]) -> bool {
    read_text(&proc.join(id).join("comm")).is_some_and(|name| names.contains(&name.as_str()))
}

/// The process that started another one; `None` for the first. proc_pid_stat(5): the state and the parent follow the name, which
/// may contain anything.
fn parent_of(proc: &Path, id: &str) -> Option<String> {
    let stat = read_text(&proc.join(id).join("stat"))?;
    let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?;
    (parent != "0").then(|| parent.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    /// A process, with its parent.
    fn add(fake: &Fake, id: u32, name: &str, parent: u32) {
        fake.file(&format!("proc/{id}/comm"), &format!("{name}\n"));
        fake.file(&format!("proc/{id}/stat"), &format!("{id} ({name}) S {parent} {id} {id} 0 -1\n"));
    }

    #[test]
    fn who_watches_a_disk_is_known_by_its_name() {
        let fake = Fake::new();
        let named = |name: &str| {
            add(&fake, 7, name, 1);
            is_onlooker(&fake.path("proc"), "7")
        };
        add(&fake, 1, "systemd", 0);
        for name in ["multipathd", "smartd", "udisksd", "blktrace", "systemd-udevd", "(udev-worker)", "udevd"]
        {
            assert!(named(name), "{name}");
        }
        for name in ["qemu-system-x86", "qemu-nbd", "ddrescue", "multipath", "dmeventd", "a) S 1 (b", ""] {
            assert!(!named(name), "{name}");
        }
        assert!(!is_onlooker(&fake.path("proc"), "8"), "one that has gone");
    }

    #[test]
    fn mdmon_is_known_by_its_name_and_its_program() {
        for (name, program, is_it) in [
            ("mdmon", "/usr/sbin/mdmon", true),
            ("mdmon", "/sbin/mdmon (deleted)", true),
            ("mdmon", "/usr/bin/perl", false),
            ("mdmon", "/usr/bin/not-mdmon", false),
            ("mdadm", "/usr/sbin/mdmon", false),
        ] {
            let fake = Fake::new();
            add(&fake, 7, name, 1);
            assert!(!keeps_metadata(&fake.path("proc"), "7"), "its program cannot be seen");
            std::os::unix::fs::symlink(program, fake.path("proc/7/exe")).unwrap();
            assert_eq!(keeps_metadata(&fake.path("proc"), "7"), is_it, "{name} {program}");
        }
    }

    #[test]
    fn what_rules_of_udev_start_looks_on_too() {
        let fake = Fake::new();
        add(&fake, 1, "systemd", 0);
        add(&fake, 5, "systemd-udevd", 1);
        add(&fake, 6, "(udev-worker)", 5);
        add(&fake, 7, "sh", 6);
        add(&fake, 8, "pvscan", 7);
        add(&fake, 9, "pvscan", 1);
        // Nothing on a real machine is its own parent.
        add(&fake, 10, "sh", 10);
        let is = |id: &str| is_onlooker(&fake.path("proc"), id);
        assert!(is("8") && is("7"));
        assert!(!is("9") && !is("10"));
    }
}
