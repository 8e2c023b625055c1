//! What uses a regular file: loop devices, mounts, swap, exports to other hosts, locks, other processes. The same checks serve the
//! backing file of a loop device. It reads procfs, configfs and stat(2), and opens a file only to ask who has locked it.

use crate::display::shown;
use crate::machine::{Machine, Mount, Node, mount_of};
use crate::uses::exports::{self, ExportQuery, Exports};
use crate::uses::locks::{self, Locks};
use crate::uses::processes::{self, Inode, users_of_file};
use crate::uses::stored_name::{Led, leads_to};
use crate::uses::{InUse, UseKind};
use crate::uses::{erofs, twins};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::read_number;
use rdsk_sys::mounts::unescape;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(crate) fn find(machine: &Machine<'_>, path: &Path, inode: Inode) -> InUse {
    let mut usage = InUse::default();
    backing(machine, inode, None, &mut usage);
    doubt_namesakes(machine, path, &mut usage);
    held(machine, path, inode, Exports::Find, &mut usage);
    twins::find(machine, path, &mut usage);
    users_of_file(&machine.roots.proc, path, inode, &mut usage);
    if let Some(mount) = mount_of(&machine.mounts, path).filter(|mount| mount.is_read_only()) {
        usage.add(UseKind::ReadOnly, &format!("{} is mounted read-only", mount.point.display()));
    }
    usage
}

/// Adds a doubt about a file of which the kernel does not say, for the reason `silence`, whether it is open for writing, if nothing
/// else says it either: processes that cannot be looked at, and loop devices over a file that cannot be found here.
pub(crate) fn doubt_unseen(machine: &Machine<'_>, silence: &str, usage: &mut InUse) {
    let mut unseen = InUse::default();
    processes::doubt_unseen(&machine.roots.proc, &mut unseen);
    for node in machine.unknown_backings() {
        unseen.doubt(format_args!("it may be what {} keeps its data in", node.shown()));
    }
    if let Some(why) = unseen.doubts.first() {
        usage.doubts.push(format!("{silence}, and {why}"));
    }
}

/// Finds who else uses the backing files of the loop devices in the stack of `node`.
pub(crate) fn find_below(machine: &Machine<'_>, node: &Node) -> InUse {
    let mut usage = InUse::default();
    for below in machine.tree.stack(node).iter().filter_map(|name| machine.tree.get(name)) {
        let file = below.backing_file.as_deref().filter(|_| machine.device_below_loop(below).is_none());
        if let Some(file) = file {
            find_below_loop(machine, below, file, &mut usage);
        }
    }
    usage
}

/// Finds who else uses the file at `path` that is served to others.
pub(crate) fn below_export(machine: &Machine<'_>, path: &Path) -> InUse {
    let mut usage = InUse::default();
    match fs::metadata(path) {
        Ok(meta) => {
            let inode = (meta.dev(), meta.ino());
            backing(machine, inode, None, &mut usage);
            held(machine, path, inode, Exports::Ours, &mut usage);
            users_of_file(&machine.roots.proc, path, inode, &mut usage);
            erofs::doubt(machine, path, inode, &mut usage);
        }
        Err(error) => {
            usage.doubt(format_args!("the file {} below it cannot be examined ({error})", shown(path)));
        }
    }
    usage
}

fn find_below_loop(machine: &Machine<'_>, below: &Node, path: &Path, usage: &mut InUse) {
    let is_other = |meta: &fs::Metadata| {
        machine.backing(below).is_some_and(|backing| backing.inode != (meta.dev(), meta.ino()))
    };
    match fs::metadata(path) {
        // A mount may hide it, and then neither who uses it is known, nor what it takes of its filesystem.
        Ok(meta) if is_other(&meta) => {
            usage.doubt(format_args!("another file is in the place of its backing file {}", shown(path)));
        }
        Ok(meta) => {
            let inode = (meta.dev(), meta.ino());
            backing(machine, inode, Some(below), usage);
            held(machine, path, inode, Exports::Find, usage);
            twins::find(machine, path, usage);
            users_of_file(&machine.roots.proc, path, inode, usage);
            // The loop device has it open, so that the kernel cannot be asked who else has.
            exports::doubt_file(machine, inode, usage);
            erofs::doubt(machine, path, inode, usage);
        }
        Err(error) => {
            usage.doubt(format_args!("its backing file {} cannot be examined ({error})", shown(path)));
        }
    }
}

/// What holds a file, except loop devices and processes.
fn held(machine: &Machine<'_>, path: &Path, inode: Inode, exported: Exports, usage: &mut InUse) {
    mounted(machine, inode, usage);
    swapped(machine, path, inode, usage);
    bitmap(machine, path, inode, usage);
    if exported == Exports::Find {
        exports::find(machine, &ExportQuery::File(inode), usage);
    }
    // A subvolume of a btrfs has a number of its own, and locks are listed under that of the filesystem.
    let numbers: Vec<DeviceNumber> =
        mount_of(&machine.mounts, path).map(|mount| mount.number).into_iter().collect();
    let uses_before = usage.uses.len();
    locks::find(&machine.roots.proc, inode, &numbers, Locks::Any, usage);
    if usage.uses.len() == uses_before {
        locks::ask(path, inode, usage);
    }
}

/// A filesystem that is mounted from a file without a loop device: EROFS, and filesystems in user space. The source of autofs is
/// the file that it reads its mounts from. The name of a source is one of its own mount namespace.
fn mounted(machine: &Machine<'_>, inode: Inode, usage: &mut InUse) {
    let is_ours = |mount: &&Mount| {
        mount.source.is_absolute()
            && mount.kind != "autofs"
            && leads_to(machine, &mount.source, &mount.namespace) == Some(Led::File(inode))
    };
    for mount in machine.mounts.iter().filter(is_ours) {
        usage.add(UseKind::Mounted, &mount.shown());
    }
}

/// Adds the loop devices over a file, except those that keep their data in another part of it than the loop device `own`.
fn backing(machine: &Machine<'_>, inode: Inode, own: Option<&Node>, usage: &mut InUse) {
    let is_other = |node: &&Node| own.is_none_or(|own| own.name != node.name);
    let may_share = |node: &&Node| own.is_none_or(|own| may_share_bytes(own, node));
    for node in machine.tree.nodes().filter(is_other).filter(may_share) {
        let Some(file) = node.backing_file.as_deref() else { continue };
        if machine.backing(node).is_some_and(|backing| backing.inode == inode) {
            usage.add(UseKind::BackingFile, &format!("{} keeps its data in {}", node.name, file.display()));
        }
    }
    for node in machine.lost_backings().filter(is_other) {
        usage.doubt(format_args!("it may be what {} keeps its data in", node.shown()));
    }
}

/// A loop device over a file that cannot be found here, as in a container, may keep its data in the file that has its name and
/// has room for it. Where the name leads somewhere, or may not be followed, it is that of another file.
fn doubt_namesakes(machine: &Machine<'_>, path: &Path, usage: &mut InUse) {
    let size_bytes = fs::metadata(path).map_or(0, |meta| meta.len());
    let is_missing = |file: &Path| {
        fs::symlink_metadata(file).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let fits = |node: &Node| range_of(node).is_none_or(|(_, end)| end <= size_bytes);
    let is_namesake = |file: &Path| file.file_name() == path.file_name() && is_missing(file);
    for node in machine.unknown_backings() {
        if node.backing_file.as_deref().is_some_and(is_namesake) && fits(node) {
            usage.doubt(format_args!("it may be what {} keeps its data in", node.shown()));
        }
    }
}

/// Where a loop device keeps its data in its file, in bytes: begin and end.
fn range_of(node: &Node) -> Option<(u64, u64)> {
    let begin = read_number::<u64>(&node.directory.join("loop/offset"))?;
    Some((begin, begin.checked_add(node.size_bytes()?)?))
}

/// Whether two loop devices over one file overlap; `losetup --offset` gives each partition of an image its own.
fn may_share_bytes(left: &Node, right: &Node) -> bool {
    range_of(left)
        .zip(range_of(right))
        .is_none_or(|((begin, end), (other_begin, other_end))| begin < other_end && other_begin < end)
}

/// An array of md may keep its write-intent bitmap in a file, which the kernel itself has open: no process shows it. Without a list
/// of arrays there are none.
fn bitmap(machine: &Machine<'_>, path: &Path, inode: Inode, usage: &mut InUse) {
    let is_ours =
        |file: &Path| file == path || fs::metadata(file).is_ok_and(|meta| (meta.dev(), meta.ino()) == inode);
    let text = fs::read(machine.roots.proc.join("mdstat")).unwrap_or_default();
    for (array, _) in bitmap_files(&text).iter().filter(|(_, file)| is_ours(file)) {
        usage.add(UseKind::OpenElsewhere, &format!("the array {array} keeps its write-intent bitmap in it"));
    }
}

/// Arrays and the files of their bitmaps, from `/proc/mdstat`: `bitmap: 0/1 pages [0KB], 64KB chunk, file: /path`
/// (drivers/md/md-bitmap.c).
fn bitmap_files(mdstat: &[u8]) -> Vec<(String, PathBuf)> {
    const FILE: &[u8] = b", file: ";
    let mut array = String::new();
    let mut files = Vec::new();
    for line in mdstat.split(|&byte| byte == b'\n') {
        if !line.starts_with(b" ") {
            let name = line.split(|&byte| byte == b' ').next().unwrap_or_default();
            array = String::from_utf8_lossy(name).into_owned();
        } else if let Some(at) = line.windows(FILE.len()).position(|part| part == FILE) {
            files.push((array.clone(), PathBuf::from(unescape(&line[at + FILE.len()..]))));
        }
    }
    files
}

fn swapped(machine: &Machine<'_>, path: &Path, inode: Inode, usage: &mut InUse) {
    let is_ours = |swap: &&std::path::PathBuf| {
        *swap == path || fs::metadata(swap).is_ok_and(|meta| (meta.dev(), meta.ino()) == inode)
    };
    if let Some(swap) = machine.swaps.iter().find(is_ours) {
        usage.add(UseKind::Swap, &swap.display().to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn a_file_is_looked_for_below_every_layer() {
        let fake = Fake::new()
            .disk("loop0", "7:0")
            .disk("loop1", "7:1")
            .disk("dm-0", "253:0")
            .stack("dm-0", "loop0");
        for (name, file) in [("a.img", "loop0"), ("a-too.img", "loop1")] {
            fs::write(fake.path("a.img"), "x").unwrap();
            if name != "a.img" {
                fs::hard_link(fake.path("a.img"), fake.path(name)).unwrap();
            }
            let path = fake.path(name);
            fake.file(&format!("sys/block/{file}/loop/backing_file"), &format!("{}\n", path.display()));
        }
        for target in ["loop0", "dm-0"] {
            fake.with(|machine, _| {
                let usage = find_below(machine, machine.tree.get(target).unwrap());
                assert_eq!(usage.uses.len(), 1, "{target}: {usage:?}");
                assert_eq!(usage.uses[0].kind, UseKind::BackingFile);
                assert!(usage.uses[0].text.starts_with("loop1 keeps its data in"), "{usage:?}");
            });
        }
    }

    #[test]
    fn loop_devices_over_other_parts_of_a_file_do_not_share_it() {
        let fake = |second: &str| {
            let mut fake = Fake::new().disk("loop0", "7:0").disk("loop1", "7:1");
            fs::write(fake.path("disk.img"), "x").unwrap();
            let file = format!("{}\n", fake.path("disk.img").display());
            for (name, offset) in [("loop0", "1048576\n"), ("loop1", second)] {
                fake = fake.attribute(&format!("{name}/loop/backing_file"), &file);
                fake = fake.attribute(&format!("{name}/loop/offset"), offset);
            }
            fake
        };
        // Each has 1 GiB.
        for (second, is_shared) in
            [("1074790400\n", false), ("1074790399\n", true), ("0\n", true), ("\n", true)]
        {
            fake(second).with(|machine, _| {
                let usage = find_below(machine, machine.tree.get("loop0").unwrap());
                assert_eq!(usage.uses.len(), usize::from(is_shared), "{second}: {usage:?}");
            });
        }
    }

    fn doubts(fake: &Fake, look: impl Fn(&Machine<'_>, &mut InUse)) -> Vec<String> {
        fake.with(|machine, _| {
            let mut usage = InUse::default();
            look(machine, &mut usage);
            usage.doubts
        })
    }

    #[test]
    fn who_may_not_ask_the_kernel_must_see_every_process_and_every_loop_device() {
        let none = Vec::<String>::new();
        let unseen =
            |fake: &Fake| doubts(fake, |machine, usage| doubt_unseen(machine, "it does not tell", usage));
        assert_eq!(unseen(&Fake::new()), none, "all is seen");
        let hidden = Fake::new();
        fs::remove_dir_all(hidden.path("proc/1")).unwrap();
        assert_eq!(unseen(&hidden), ["it does not tell, and procfs hides the processes of other users"]);
        let over = |file: &str| {
            Fake::new().disk("loop0", "7:0").attribute("loop0/loop/backing_file", &format!("{file}\n"))
        };
        let said = unseen(&over("/of/the/host/disk.img"));
        assert!(
            said.len() == 1 && said[0].ends_with("what loop0 (/of/the/host/disk.img) keeps its data in"),
            "{said:?}"
        );
        let here = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(unseen(&over(&here.path().display().to_string())), none);
    }

    #[test]
    fn a_namesake_of_a_file_that_is_not_found_here_may_be_it() {
        let fake = |file: &str, offset: &str| {
            let fake = Fake::new().disk("loop0", "7:0").attribute("loop0/loop/offset", offset);
            fs::File::create(fake.path("disk.img")).unwrap().set_len(1 << 30).unwrap();
            let file = file.replace("HERE", &fake.path("").display().to_string());
            fake.attribute("loop0/loop/backing_file", &format!("{file}\n"))
        };
        // The device has 1 GiB.
        for (file, offset, is_doubtful) in [
            ("/of/the/host/disk.img", "0\n", true),
            ("/of/the/host/disk.img", "512\n", false),
            ("/of/the/host/other.img", "0\n", false),
            ("HERE/sub/disk.img", "0\n", false),
        ] {
            let fake = fake(file, offset);
            fs::create_dir(fake.path("sub")).unwrap();
            fs::write(fake.path("sub/disk.img"), "x").unwrap();
            let said = doubts(&fake, |machine, usage| {
                let path = fake.path("disk.img");
                let meta = fs::metadata(&path).unwrap();
                usage.extend(find(machine, &path, (meta.dev(), meta.ino())));
            });
            assert_eq!(said.len(), usize::from(is_doubtful), "{file} {offset}: {said:?}");
        }
    }

    #[test]
    fn a_filesystem_in_a_file_is_mounted() {
        let fake = Fake::new();
        let [image, map] = ["image.erofs", "auto.misc"].map(|name| {
            fs::write(fake.path(name), "x").unwrap();
            fake.path(name)
        });
        let fake = fake.mount("0:50", "/mnt", "erofs", &image.display().to_string());
        let fake = fake.mount("0:51", "/misc", "autofs", &map.display().to_string());
        fake.with(|machine, _| {
            let of = |path: &Path| {
                let meta = fs::metadata(path).unwrap();
                find(machine, path, (meta.dev(), meta.ino())).uses
            };
            assert_eq!(of(&image), [crate::uses::Use::new(UseKind::Mounted, "/mnt")]);
            assert_eq!(of(&map), []);
        });
    }

    #[test]
    fn the_bitmap_of_an_array_is_in_use() {
        let fake = Fake::new();
        fs::write(fake.path("bit map"), "x").unwrap();
        let file = fake.path("bit map");
        let escaped = file.display().to_string().replace(' ', "\\040");
        let list = format!(
            "Personalities : [raid1]\nmd0 : active raid1 vdb[1] vda[0]\n      64448 blocks super 1.2 [2/2] [UU]\n      \
             bitmap: 1/1 pages [4KB], 65536KB chunk\n\nmd1 : active raid1 vdd[1] vdc[0]\n      64448 blocks [2/2] [UU]\n      \
             bitmap: 1/1 pages [4KB], 65536KB chunk, file: {escaped}\n\nunused devices: <none>\n"
        );
        fake.file("proc/mdstat", &list);
        let inode = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).unwrap();
        fs::write(fake.path("other"), "x").unwrap();
        fake.with(|machine, _| {
            let usage = find(machine, &file, inode(&file));
            let texts: Vec<_> = usage.uses.iter().map(|one| (one.kind, one.text.as_str())).collect();
            assert_eq!(
                texts,
                [(UseKind::OpenElsewhere, "the array md1 keeps its write-intent bitmap in it")]
            );
            let other = machine.roots.proc.join("../other");
            assert!(find(machine, &other, inode(&other)).uses.is_empty());
        });
    }
}
