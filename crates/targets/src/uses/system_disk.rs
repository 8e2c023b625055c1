//! Whether a device shares a whole disk with the running system. Such a disk is never written, unused partitions included: what boots
//! the system, and what it needs next, need not be mounted. It reads labels where the mount table names a pool instead of a device.

use crate::labels::signature::Signature;
use crate::machine::{Machine, Mount, Namespace, Node};
use crate::tools;
use crate::uses::{InUse, UseKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Mount points whose disk carries the running system. Where `/` is an overlay without a disk, it lies elsewhere: OSTree, and the
/// media that the live systems of Debian, Fedora, Ubuntu (casper) and Arch Linux (archiso) run from.
const SYSTEM_POINTS: [&str; 10] = [
    "/", "/usr", "/boot", "/boot/efi", "/efi", "/sysroot", "/run/live/medium", "/run/initramfs/live",
    "/cdrom", "/run/archiso/bootmnt",
];
/// Filesystems whose mounts may name no device, with the label of the devices that they lie on.
const POOLED: [(&str, &str); 2] = [("zfs", "zfs_member"), ("bcachefs", "bcachefs")];

/// Adds a use for each mount of the system that lies on a disk of `node`.
pub(crate) fn find(machine: &Machine<'_>, node: &Node, usage: &mut InUse) {
    let own = media(machine, node);
    for mount in system_mounts(machine) {
        for device in machine.devices_under(mount) {
            if !media_below_loops(machine, device).is_disjoint(&own) {
                usage.add(UseKind::SystemDisk, &mount.shown_on(device));
            }
        }
    }
}

/// Adds a use for each device on the disks of `node`, mapped ones included, that is a member of the pool that the system lies in, by the
/// name in its label: which devices a pool lies on only its own programs know. `place` says where the node of a device is. What cannot
/// be looked at becomes a doubt.
pub(crate) fn find_pooled(
    machine: &Machine<'_>,
    node: &Node,
    place: impl Fn(&Node) -> PathBuf,
    usage: &mut InUse,
) {
    let pooled = |mount: &Mount| POOLED.iter().find(|(kind, _)| mount.kind == *kind).map(|(_, label)| *label);
    let mounts: Vec<(&Mount, &str)> = system_mounts(machine)
        .filter(|mount| machine.devices_of_mount(mount).is_empty())
        .filter_map(|mount| Some((mount, pooled(mount)?)))
        .collect();
    if mounts.is_empty() {
        return;
    }
    let own = media(machine, node);
    let is_beside = |other: &&Node| !media(machine, other).is_disjoint(&own);
    for other in machine.tree.nodes().filter(is_beside) {
        let labels =
            tools::wipefs(&machine.roots.tools, &place(other), &other.name).unwrap_or_else(|reason| {
                usage.doubt(format_args!("{}: {reason}", other.kernel_name()));
                Vec::new()
            });
        for (mount, kind) in &mounts {
            let is_of_pool = |label: &&Signature| label.kind == *kind && may_be_pool_of(mount, label);
            if let Some(label) = labels.iter().find(is_of_pool) {
                let (point, source) = (mount.point.display(), mount.source.display());
                let text =
                    format!("{point} in the pool of {source}, and {} has {}", other.shown(), label.text);
                usage.add(UseKind::SystemDisk, &text);
            }
        }
    }
}

/// Whether a label may be that of the pool of a mount, whose source begins with the name of the pool (`rpool/ROOT/pve-1`); that of
/// bcachefs is no name. A pool that was imported under another name (`zpool import -t`) is not known by it.
fn may_be_pool_of(mount: &Mount, label: &Signature) -> bool {
    let source = mount.source.to_string_lossy();
    let pool = source.split('/').next().filter(|_| mount.kind == "zfs");
    pool.zip(label.label.as_deref()).is_none_or(|(pool, name)| pool == name)
}

fn system_mounts<'machine>(machine: &'machine Machine<'_>) -> impl Iterator<Item = &'machine Mount> {
    let is_system = |mount: &&Mount| SYSTEM_POINTS.iter().any(|point| mount.point == Path::new(point));
    machine.mounts.iter().filter(is_system).filter(|mount| mount.namespace == Namespace::Own)
}

/// The disks at the bottom of a device, and those below the files of the loop devices there. A target is not followed so far: what is
/// written to a loop device changes its file, not the disk around that.
fn media_below_loops(machine: &Machine<'_>, device: &Node) -> BTreeSet<String> {
    let mut tops = vec![device];
    let mut disks = BTreeSet::new();
    let mut index = 0;
    while let Some(top) = tops.get(index).copied() {
        index += 1;
        disks.extend(media(machine, top));
        for bottom in machine.tree.bottoms(top).iter().filter_map(|name| machine.tree.get(name)) {
            for below in machine.devices_below_loop(bottom) {
                if tops.iter().all(|other| other.name != below.name) {
                    tops.push(below);
                }
            }
        }
    }
    disks
}

/// The disks at the bottom of a device; one for all paths of a LUN.
fn media(machine: &Machine<'_>, node: &Node) -> BTreeSet<String> {
    machine.tree.bottoms(node).iter().map(|disk| machine.luns.medium(disk).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examine::{Hold, examine_node};
    use crate::tests::Fake;
    use rdsk_sys::device_number::DeviceNumber;

    fn label(kind: &str, name: &str) -> String {
        format!(r#"{{"signatures":[{{"offset":"0x3f000","type":"{kind}","uuid":"1","label":"{name}"}}]}}"#)
    }

    /// As Proxmox lays its disk out: sda2 is the ESP, which is not mounted, sda3 has the pool. sdb is free.
    fn proxmox(fake: Fake) -> Fake {
        fake.disk("sda", "8:0")
            .disk("sda/sda2", "8:2")
            .disk("sda/sda3", "8:3")
            .disk("sdb", "8:16")
            .answer("wipefs sda", r#"{"signatures":[{"offset":"0x200","type":"gpt"}]}"#)
            .answer("wipefs sda2", &label("vfat", ""))
            .answer("wipefs sda3", &label("zfs_member", "rpool"))
            .answer("wipefs sdb", "")
    }

    fn said(fake: &Fake, name: &str) -> (Vec<String>, Vec<String>) {
        fake.with(|machine, usage| {
            let node = machine.tree.get(name).unwrap();
            find_pooled(machine, node, |other| machine.roots.dev.join(other.kernel_name()), usage);
            let uses = usage.uses.iter().map(|used| format!("{:?}: {}", used.kind, used.text)).collect();
            (uses, usage.doubts.clone())
        })
    }

    #[test]
    fn the_disk_under_a_root_on_zfs_is_never_free() {
        let fake = proxmox(Fake::new()).mount("0:30", "/", "zfs", "rpool/ROOT/pve-1");
        let text = "SystemDisk: / in the pool of rpool/ROOT/pve-1, and sda3 has zfs_member \"rpool\"";
        for name in ["sda", "sda2", "sda3"] {
            assert_eq!(said(&fake, name), (vec![text.to_owned()], vec![]), "{name}");
        }
        assert_eq!(said(&fake, "sdb"), (vec![], vec![]));
        // Another pool's disk, and a pool in a mapped device over an encrypted partition.
        let fake = fake.disk("sdb/sdb1", "8:17").answer("wipefs sdb1", &label("zfs_member", "tank"));
        assert_eq!(said(&fake, "sdb"), (vec![], vec![]));
        let fake = fake
            .disk("sdc", "8:32")
            .disk("sdc/sdc1", "8:33")
            .disk("sdc/sdc2", "8:34")
            .disk("dm-0", "253:0")
            .stack("dm-0", "sdc/sdc2")
            .answer("wipefs sdc", "")
            .answer("wipefs sdc1", &label("vfat", ""))
            .answer("wipefs sdc2", &label("crypto_LUKS", ""))
            .answer("wipefs dm-0", &label("zfs_member", "rpool"));
        let mapped = said(&fake, "sdc1");
        assert!(
            mapped.0.len() == 1 && mapped.0[0].ends_with("and dm-0 has zfs_member \"rpool\""),
            "{mapped:?}"
        );
        let unasked = fake.without_answer("wipefs sda3");
        assert_eq!(said(&unasked, "sda2"), (vec![], vec!["sda3: wipefs is not installed".to_owned()]));
    }

    #[test]
    fn whoever_examines_a_device_is_told() {
        let fake = proxmox(Fake::new())
            .mount("0:30", "/", "zfs", "rpool/ROOT/pve-1")
            .answer("lsblk sda2", r#"{"blockdevices":[{"name":"sda2"}]}"#);
        fake.with(|machine, usage| {
            let node = machine.tree.get("sda2").unwrap();
            examine_node(machine, node, Path::new("/dev/sda2"), Hold::NotYet, usage);
            usage.sort_uses();
            assert_eq!((usage.uses[0].kind, usage.doubts.len()), (UseKind::SystemDisk, 0), "{usage:?}");
        });
    }

    #[test]
    fn a_pool_that_is_not_the_system_says_nothing() {
        let fake =
            proxmox(Fake::new()).mount("8:2", "/", "ext4", "/dev/sda2").mount("0:30", "/tank", "zfs", "tank");
        assert_eq!(said(&fake, "sda2"), (vec![], vec![]));
        let none = Fake::new().disk("sda", "8:0").mount("0:30", "/", "overlay", "overlay");
        assert_eq!(said(&none, "sda"), (vec![], vec![]), "nobody is asked");
    }

    #[test]
    fn the_disks_of_a_root_on_btrfs_are_never_free() {
        let fake = Fake::new()
            .disk("sda", "8:0")
            .disk("sda/sda1", "8:1")
            .disk("sda/sda2", "8:2")
            .disk("sdb", "8:16")
            .disk("sdb/sdb1", "8:17")
            .disk("sdb/sdb2", "8:18")
            .disk("sdc", "8:32")
            .mount("0:30", "/", "btrfs", "/dev/sda1");
        fake.file("sys/fs/btrfs/f00-1/devices/sda1/x", "");
        fake.file("sys/fs/btrfs/f00-1/devices/sdb1/x", "");
        fake.file("sys/fs/btrfs/f00-2/devices/sdc/x", "");
        assert_eq!(fake.uses("sda2"), ["SystemDisk: / on sda1"]);
        assert_eq!(fake.uses("sdb2"), ["SystemDisk: / on sdb1"]);
        assert_eq!(fake.uses("sdc"), ["Mounted: a btrfs filesystem over sdc"]);
    }

    /// The root is in a file of a filesystem on sda1, whose number is the one that the file really has. The others have numbers that no
    /// device has.
    #[test]
    fn the_disk_below_the_file_of_a_root_is_never_free() {
        use std::os::unix::fs::MetadataExt as _;
        let with_root = |first: &str| {
            let fake = Fake::new();
            fake.file("root.img", "x");
            let file = format!("{}\n", fake.path("root.img").display());
            fake.disk("sda", "4000:0")
                .disk("sda/sda1", first)
                .disk("sda/sda2", "4000:2")
                .disk("sdb", "4001:0")
                .disk("loop0", "4002:0")
                .disk("loop1", "4002:1")
                .attribute("loop0/loop/backing_file", &file)
                .attribute("loop1/loop/backing_file", &file)
                .mount("4002:0", "/", "ext4", "/dev/loop0")
        };
        let scratch = Fake::new();
        let meta = std::fs::metadata(scratch.path("sys")).unwrap();
        let number = DeviceNumber::from_raw(meta.dev()).to_string();
        let by_number = with_root(&number);
        // Without such a device by the mount of the file, and, as for a subvolume of a btrfs, by the place of that.
        let by_mount = |of_mount: &str| {
            let fake = with_root("4000:1");
            let point = fake.path("proc").parent().unwrap().display().to_string();
            fake.mount(of_mount, &point, "btrfs", "/dev/sda1")
        };
        for fake in [by_number, by_mount(&number), by_mount("0:4000")] {
            let text = format!("SystemDisk: / on loop0 ({})", fake.path("root.img").display());
            assert_eq!(fake.uses("sda2"), [text]);
            assert_eq!(fake.uses("sdb"), Vec::<String>::new());
            assert_eq!(fake.uses("loop1"), Vec::<String>::new(), "its file is not the disk");
        }
        // A btrfs lies on all of its devices, whichever the mount names.
        let of_two = by_mount("0:4000").disk("sdc", "4003:0").disk("sdc/sdc1", "4003:1");
        let of_two = of_two.disk("sdc/sdc2", "4003:2");
        for member in ["sda1", "sdc1"] {
            of_two.file(&format!("sys/fs/btrfs/f00-1/devices/{member}/x"), "");
        }
        let text = format!("SystemDisk: / on loop0 ({})", of_two.path("root.img").display());
        assert_eq!(of_two.uses("sdc2"), [text]);
    }

    #[test]
    fn bcachefs_names_its_devices() {
        let disks = || {
            Fake::new()
                .disk("sda", "8:0")
                .disk("sda/sda1", "8:1")
                .disk("sda/sda2", "8:2")
                .disk("sdb", "8:16")
                .disk("sdb/sdb1", "8:17")
                .disk("sdb/sdb2", "8:18")
        };
        let fake = disks().mount("0:30", "/", "bcachefs", "/dev/sda2:/dev/sdb2");
        assert_eq!(fake.uses("sda1"), ["SystemDisk: / on sda2"]);
        assert_eq!(fake.uses("sdb1"), ["SystemDisk: / on sdb2"]);
        assert_eq!(fake.uses("sdb2"), ["SystemDisk: / on sdb2", "Mounted: / on sdb2"]);
        assert_eq!(said(&fake, "sdb1"), (vec![], vec![]), "no label is needed");
        let unnamed = disks()
            .mount("0:30", "/", "bcachefs", "none")
            .answer("wipefs sda", "")
            .answer("wipefs sda1", "")
            .answer("wipefs sda2", &label("bcachefs", "root"));
        assert_eq!(
            said(&unnamed, "sda1").0,
            ["SystemDisk: / in the pool of none, and sda2 has bcachefs \"root\""]
        );
    }
}
