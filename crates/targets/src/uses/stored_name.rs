//! What a name that the kernel has kept leads to. A program wrote it in another moment, and perhaps in another mount namespace; it may
//! have led elsewhere then. A name is no identity: it is looked up where it came from, and what it leads to now must be open, where the
//! kernel says so. It opens regular files only, and for reading.

use crate::machine::{Machine, Namespace, Node, lvm};
use crate::probe;
use crate::uses::dm_openers;
use crate::uses::open_stat::Inode;
use rdsk_sys::device_number::DeviceNumber;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Led {
    Device(DeviceNumber),
    /// A regular file.
    File(Inode),
}

/// Why a name need not have led to what it leads to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It leads nowhere here.
    Lost,
    /// It leads to something that is not open, and who keeps the name has it open.
    NotOpen,
    /// A link, or a name that is not the kernel's, can be given to something else.
    MayBe,
}

/// What a name leads to in a mount namespace; `None` if it leads nowhere, or to something else, and for one that is relative to a directory
/// which is not known.
pub(crate) fn leads_to(machine: &Machine<'_>, name: &Path, namespace: &Namespace) -> Option<Led> {
    if !name.is_absolute() {
        return None;
    }
    if *namespace == Namespace::Own
        && let Some(node) = machine.tree.by_path(name, &machine.roots.dev)
    {
        return Some(Led::Device(node.number));
    }
    let stat = rustix::fs::fstat(handle(machine, name, namespace)?).ok()?;
    led(&stat)
}

fn led(stat: &Stat) -> Option<Led> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => Some(Led::Device(DeviceNumber::from_raw(stat.st_rdev))),
        FileType::RegularFile => Some(Led::File((stat.st_dev, stat.st_ino))),
        _ => None,
    }
}

/// A handle on what the name leads to (`O_PATH`), which opens nothing.
fn handle(machine: &Machine<'_>, name: &Path, namespace: &Namespace) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let rest = name.strip_prefix("/").ok()?;
    match namespace {
        Namespace::Own => {
            let below_dev = name.strip_prefix("/dev").map(|rest| machine.roots.dev.join(rest));
            rustix::fs::open(below_dev.as_deref().unwrap_or(name), flags, Mode::empty()).ok()
        }
        Namespace::Other(process) => {
            let root = process.join("root");
            let root_fd = rustix::fs::open(&root, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
            // Links are followed as that process would, absolute ones included.
            match rustix::fs::openat2(root_fd, rest, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
                // Before Linux 5.6, and in containers whose filter of system calls forbids it.
                Err(Errno::NOSYS | Errno::PERM) => {
                    rustix::fs::openat(CWD, root.join(rest), flags, Mode::empty()).ok()
                }
                answer => answer.ok(),
            }
        }
    }
}

/// The regular file that a name leads to, open for reading.
pub(crate) fn open_file(machine: &Machine<'_>, name: &Path, namespace: &Namespace) -> Option<OwnedFd> {
    let handle = handle(machine, name, namespace)?;
    let Some(Led::File(_)) = led(&rustix::fs::fstat(&handle).ok()?) else { return None };
    probe::open_for_reading(&PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())))
}

/// Whether the name need not lead to what the kernel opened by it, which it still has open for writing; `led` is where it leads here.
pub(crate) fn moved(machine: &Machine<'_>, name: &Path, led: Option<Led>) -> Option<Moved> {
    match led {
        None => Some(Moved::Lost),
        Some(Led::Device(number)) => {
            let Some(node) = machine.tree.by_number(number) else { return Some(Moved::MayBe) };
            match dm_openers::unseen_now(machine, node) {
                Some(0) => Some(Moved::NotOpen),
                Some(_) => None,
                None => (!is_kernel_name(machine, name, node)).then_some(Moved::MayBe),
            }
        }
        Some(Led::File(_)) => {
            let file = open_file(machine, name, &Namespace::Own);
            match file.and_then(|file| rdsk_sys::openers::has_writers(file).ok()) {
                Some(true) => None,
                Some(false) => Some(Moved::NotOpen),
                None => is_link(name).then_some(Moved::MayBe),
            }
        }
    }
}

/// Whether it is the name that the kernel has for the device, which no other device gets while this one is open.
fn is_kernel_name(machine: &Machine<'_>, name: &Path, node: &Node) -> bool {
    let kernel = node.kernel_name();
    name.strip_prefix("/dev").is_ok_and(|rest| rest == Path::new(&kernel))
        && !is_link(&machine.roots.dev.join(&kernel))
}

/// Whether a part of a name is a link.
fn is_link(name: &Path) -> bool {
    fs::canonicalize(name).is_ok_and(|place| place != name)
}

/// Whether it is a name that device mapper or LVM gives, and so that of a device-mapper device at any time.
pub(crate) fn is_mapped_name(machine: &Machine<'_>, name: &Path) -> bool {
    let Ok(rest) = name.strip_prefix("/dev") else { return false };
    let parts: Vec<_> = rest.iter().map(|part| part.to_string_lossy()).collect();
    let [directory, _] = parts.as_slice() else { return false };
    let is_group = |node: &Node| {
        lvm::logical_volume(node).is_some_and(|volume| volume.split('/').next() == Some(directory))
    };
    directory == "mapper" || machine.tree.nodes().any(is_group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    fn inode(path: &Path) -> Led {
        let meta = fs::metadata(path).unwrap();
        Led::File((meta.dev(), meta.ino()))
    }

    #[test]
    fn a_name_is_followed_in_the_namespace_that_it_comes_from() {
        let fake = Fake::new();
        for name in ["a.img", "proc/7/root/srv/b.img"] {
            fake.file(name, name);
        }
        // An absolute link leads to that process's own root.
        symlink("/srv/b.img", fake.path("proc/7/root/link")).unwrap();
        let there = Namespace::Other(fake.path("proc/7"));
        fake.with(|machine, _| {
            let of = |name: &Path, namespace| leads_to(machine, name, namespace);
            let inner = inode(&fake.path("proc/7/root/srv/b.img"));
            assert_eq!(of(Path::new("/srv/b.img"), &there), Some(inner));
            assert_eq!(of(Path::new("/link"), &there), Some(inner));
            assert_eq!(of(Path::new("/srv/b.img"), &Namespace::Own), None);
            assert_eq!(of(&fake.path("a.img"), &Namespace::Own), Some(inode(&fake.path("a.img"))));
            assert_eq!(of(&fake.path("a.img"), &there), None);
            assert_eq!(of(Path::new("a.img"), &there), None, "relative to something that is not known");
        });
    }

    #[test]
    fn only_the_names_of_the_kernel_stay_where_they_are() {
        let fake = Fake::new().disk("sda", "8:0").disk("dm-0", "253:0").answer("open dm-0", "1");
        symlink("../../sda", fake.path("dev/disk/by-id/ata-1")).unwrap();
        fake.with(|machine, _| {
            let of = |name: &str| {
                let led = leads_to(machine, Path::new(name), &Namespace::Own);
                moved(machine, Path::new(name), led)
            };
            assert_eq!(of("/dev/sda"), None);
            assert_eq!(of("/dev/disk/by-id/ata-1"), Some(Moved::MayBe));
            assert_eq!(of("/dev/sdz"), Some(Moved::Lost));
            assert_eq!(of("/dev/dm-0"), None, "somebody has it open");
        });
        let fake = fake.answer("open dm-0", "0");
        fake.with(|machine, _| {
            let led = leads_to(machine, Path::new("/dev/dm-0"), &Namespace::Own);
            assert_eq!(moved(machine, Path::new("/dev/dm-0"), led), Some(Moved::NotOpen));
        });
    }

    #[test]
    fn a_file_that_nobody_writes_is_not_what_is_exported() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let fake = Fake::new();
        fake.with(|machine, _| {
            let of = |path: &Path| moved(machine, path, leads_to(machine, path, &Namespace::Own));
            // Where there are no leases, only the name is left.
            let answer = open_file(machine, file.path(), &Namespace::Own)
                .and_then(|file| rdsk_sys::openers::has_writers(file).ok());
            assert_eq!(of(file.path()), None, "this process writes to it");
            let path = file.into_temp_path();
            if answer.is_some() {
                let is_free = |_| {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                    of(&path) == Some(Moved::NotOpen)
                };
                assert!((0..3000).any(is_free));
            }
        });
    }

    #[test]
    fn names_of_lvm_are_those_of_its_devices() {
        let fake = Fake::new()
            .disk("dm-0", "253:0")
            .attribute("dm-0/dm/name", "vg-data\n")
            .attribute("dm-0/dm/uuid", &format!("LVM-{}\n", "a".repeat(64)));
        fake.with(|machine, _| {
            let is = |name: &str| is_mapped_name(machine, Path::new(name));
            assert!(is("/dev/vg/data") && is("/dev/vg/gone") && is("/dev/mapper/any"));
            assert!(
                !is("/dev/sda") && !is("/dev/disk/by-id/x") && !is("/srv/vg/data") && !is("/dev/other/data")
            );
        });
    }
}
