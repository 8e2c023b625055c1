//! Files that are never overwritten, whatever the flags, though nothing uses them now: those of the system, programs, and files too
//! small to be meant as a disk. Where a file lies is judged by the place in its filesystem, not by its path: bind mounts and the layers of
//! the overlay below `/` show the same file under other names. It reads the first bytes of the file and decides nothing.

use crate::display::shown;
use crate::machine::{Machine, Mount, mount_of};
use crate::probe;
use crate::uses::{InUse, UseKind};
use rdsk_sys::device_number::DeviceNumber;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Directories of the system and of its package managers (hier(7), Filesystem Hierarchy Standard 3.0). `/opt`, `/srv` and `/home` hold
/// data too; programs there are known by what they are.
const DIRECTORIES: [&str; 25] = [
    "/etc", "/usr", "/boot", "/efi", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu",
    "/ostree", "/snap", "/var/lib/dpkg", "/var/lib/apt", "/var/lib/rpm", "/var/lib/dnf", "/var/lib/pacman",
    "/var/lib/portage", "/var/db/pkg", "/var/lib/snapd", "/var/lib/flatpak", "/var/lib/systemd",
    "/var/lib/nixos",
];

/// Smaller files are no disk, no image and no test file, and too small for a rate.
pub(crate) const MIN_OVERWRITTEN_BYTES: u64 = 1 << 20;

/// Adds each reason that the file itself gives against being overwritten.
pub(crate) fn find(machine: &Machine<'_>, path: &Path, meta: &Metadata, usage: &mut InUse) {
    const ANY_EXECUTE: u32 = 0o111;
    if let Some(directory) = system_directory(&machine.mounts, &DIRECTORIES.map(PathBuf::from), path) {
        usage.add(UseKind::SystemFile, &format!("it lies in {directory}"));
    }
    if meta.mode() & ANY_EXECUTE != 0 {
        usage.add(UseKind::Program, "its mode says that it may be executed");
    } else if let Some(what) = probe::read_at(path, 0).and_then(program) {
        usage.add(UseKind::Program, what);
    }
    if meta.nlink() > 1 {
        usage.add(UseKind::HardLinked, &format!("it has {} names", meta.nlink()));
    }
    if meta.len() < MIN_OVERWRITTEN_BYTES {
        usage.add(UseKind::Small, &format!("it has {}", rdsk_units::Bytes(meta.len())));
    }
}

/// What begins like this (elf(5), execve(2)).
fn program(beginning: [u8; 4]) -> Option<&'static str> {
    match beginning {
        [0x7f, b'E', b'L', b'F'] => Some("it begins as an ELF file"),
        [b'#', b'!', ..] => Some("it begins with #!"),
        _ => None,
    }
}

/// A file or directory by its filesystem and its path from the root of that, which no mount changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Location {
    filesystem: DeviceNumber,
    path: PathBuf,
}

impl Location {
    /// `None` where no mount shows the path.
    fn new(mounts: &[Mount], path: &Path) -> Option<Self> {
        let mount = mount_of(mounts, path)?;
        let inside = path.strip_prefix(&mount.point).ok()?;
        // A file that is mounted itself has nothing behind its mount point, and joining that would add a slash.
        let path = if inside.as_os_str().is_empty() { mount.root.clone() } else { mount.root.join(inside) };
        Some(Self { filesystem: mount.number, path })
    }

    fn is_below(&self, directory: &Self) -> bool {
        self.filesystem == directory.filesystem && self.path.starts_with(&directory.path)
    }
}

/// The first of `directories` that a file lies below, under whatever name; for messages. No part of `path` is a symlink.
fn system_directory(mounts: &[Mount], directories: &[PathBuf], path: &Path) -> Option<String> {
    let location = Location::new(mounts, path);
    let is_below = |directory: &Path| {
        let place = Location::new(mounts, directory);
        path.starts_with(directory)
            || location.as_ref().zip(place).is_some_and(|(file, place)| file.is_below(&place))
    };
    directories.iter().find_map(|named| {
        // /bin is a link to /usr/bin on most systems.
        let real = fs::canonicalize(named).ok()?;
        let layers = layers_of(mounts, &real);
        let place = std::iter::once(&real).chain(&layers).find(|place| is_below(place))?;
        let layer = if *place == real { "" } else { ", through a layer of its overlay" };
        let other = if path.starts_with(place) { "" } else { ", under another name" };
        Some(format!("{}{layer}{other}", shown(named)))
    })
}

/// Where the layers of the overlay that a directory lies on keep it.
fn layers_of(mounts: &[Mount], directory: &Path) -> Vec<PathBuf> {
    let Some(mount) = mount_of(mounts, directory).filter(|mount| mount.kind == "overlay") else {
        return Vec::new();
    };
    let Ok(inside) = directory.strip_prefix(&mount.point) else { return Vec::new() };
    let from_root = mount.root.strip_prefix("/").unwrap_or(&mount.root).join(inside);
    let lower = mount.super_option("lowerdir").into_iter().flat_map(|list| {
        let text = list.to_string_lossy().into_owned();
        text.split(':').map(PathBuf::from).collect::<Vec<_>>()
    });
    let layers = lower.chain(mount.super_option("upperdir")).filter(|layer| layer.is_absolute());
    layers.filter_map(|layer| fs::canonicalize(layer.join(&from_root)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn programs_are_known_by_how_they_begin() {
        assert!(program(*b"\x7fELF").is_some() && program(*b"#!/b").is_some());
        assert!(program(*b"ELF\x7f").is_none() && program(*b"# /b").is_none() && program([0; 4]).is_none());
    }

    /// Each place of a file, and whether it is one of the directory that stands for /etc.
    #[test]
    fn a_file_of_the_system_is_one_under_every_name() {
        let fake = Fake::new();
        for name in ["root/etc/deep", "root/home", "root/lower/etc", "bind", "alone", "other/etc"] {
            fs::create_dir_all(fake.path(name)).unwrap();
        }
        std::os::unix::fs::symlink(fake.path("root/etc"), fake.path("link")).unwrap();
        let root = fs::canonicalize(fake.path("root")).unwrap();
        let base = root.parent().unwrap().to_owned();
        let at = |name: &str| base.join(name);
        let line = |number: &str, root: &str, point: &Path, kind: &str, options: &str| {
            format!("30 1 {number} {root} {} rw - {kind} none rw{options}\n", point.display())
        };
        let table = line("8:1", "/", &base, "ext4", "")
            + &line("8:1", "/root/etc/deep", &at("bind"), "ext4", "")
            + &line("8:1", "/root/etc/passwd", &at("alone"), "ext4", "")
            + &line("8:2", "/", &at("other"), "ext4", "");
        fake.file("proc/self/mountinfo", &table);
        for (file, is_of_system) in [
            ("root/etc/passwd", true),
            ("root/home/etc", false),
            ("bind/x", true),
            ("alone", true),
            ("other/root/etc/passwd", false),
            ("other/etc/passwd", false),
            ("root/etcetera", false),
        ] {
            for named in ["root/etc", "link"] {
                fake.with(|machine, _| {
                    let said = system_directory(&machine.mounts, &[at(named)], &at(file));
                    assert_eq!(said.is_some(), is_of_system, "{file} {named}: {said:?}");
                    let is_other = said.is_some_and(|said| said.contains("another name"));
                    assert_eq!(is_other, ["bind/x", "alone"].contains(&file), "{file}");
                });
            }
        }
        // The root is an overlay: what its layers keep of /etc is /etc.
        let table = line("8:1", "/", &base, "ext4", "")
            + &line(
                "0:30",
                "/",
                &root,
                "overlay",
                &format!(",lowerdir={},upperdir=/nowhere", at("other").display()),
            );
        fake.file("proc/self/mountinfo", &table);
        for (file, is_of_system) in
            [("other/etc/passwd", true), ("other/home", false), ("root/etc/passwd", true)]
        {
            fake.with(|machine, _| {
                let said = system_directory(&machine.mounts, &[at("root/etc")], &at(file));
                assert_eq!(said.is_some(), is_of_system, "{file}: {said:?}");
            });
        }
    }
}
