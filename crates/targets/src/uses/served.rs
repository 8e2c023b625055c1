//! Disks that this machine serves to itself: a SCSI disk whose LUN is an object of the kernel's SCSI target (LIO) here, an NVMe
//! namespace of the kernel's NVMe target (nvmet) here. What they keep their data on is another device or a file of this machine,
//! and sysfs shows no link, only the name by which it was opened. It reads sysfs and configfs and decides nothing.

use crate::machine::disk_names;
use crate::machine::{Machine, Node};
use crate::uses::exports::{self, LioBacking};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{names_in, read_number, read_text};
use std::path::{Path, PathBuf};

/// What a disk keeps its data on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeptOn {
    Device(DeviceNumber),
    /// What this name led to when it was exported.
    Name(PathBuf),
}

/// Where the whole disk `node` keeps its data, if a target of this machine serves it.
pub(crate) fn kept_on(machine: &Machine<'_>, node: &Node) -> Option<KeptOn> {
    let config = machine.roots.sys.join("kernel/config");
    if node.parent.is_some() || !node.slaves.is_empty() {
        return None;
    }
    of_nvmet(&config, node).map(KeptOn::Name).or_else(|| of_lio(&config, node))
}

/// `subsysnqn` of the controller or subsystem, and `nsid`; a namespace of another machine has another NQN.
fn of_nvmet(config: &Path, node: &Node) -> Option<PathBuf> {
    let subsystem = read_text(&node.directory.join("device/subsysnqn"))?;
    let namespace = read_number::<u32>(&node.directory.join("nsid"))?;
    let subsystem = subsystem.trim();
    // It becomes part of a path.
    let is_name = !subsystem.is_empty() && !subsystem.contains('/') && subsystem != "..";
    let place =
        config.join("nvmet/subsystems").join(subsystem).join("namespaces").join(namespace.to_string());
    is_name.then(|| exports::nvmet_path(&place)).flatten()
}

/// `target/core/HBA/NAME/wwn/vpd_unit_serial`: `T10 VPD Unit Serial Number: 6001405…`.
fn of_lio(config: &Path, node: &Node) -> Option<KeptOn> {
    let serial = disk_names::serial(&node.directory)?;
    let core = config.join("target/core");
    names_in(&core).into_iter().find_map(|adapter| {
        let adapter = core.join(adapter);
        names_in(&adapter).into_iter().map(|name| adapter.join(name)).find_map(|object| {
            let text = read_text(&object.join("wwn/vpd_unit_serial"))?;
            let own = text.rsplit_once(": ")?.1.trim().to_owned();
            match (own == serial).then(|| exports::backing_of_lio(&object))? {
                LioBacking::Device(number) => Some(KeptOn::Device(number)),
                LioBacking::Paths(paths) => paths.into_iter().next().map(KeptOn::Name),
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;

    #[test]
    fn a_disk_of_this_machines_own_targets_is_known() {
        let fake = Fake::new().disk("sda", "8:0").disk("sdb", "8:16").disk("nvme0n1", "259:0");
        let object = "sys/kernel/config/target/core/fileio_0/disk";
        fake.file(&format!("{object}/wwn/vpd_unit_serial"), "T10 VPD Unit Serial Number: LIO-0042\n");
        fake.file(
            &format!("{object}/info"),
            "TCM FILEIO ID: 0        File: /dev/vda  Size: 1  Mode: O_DSYNC\n",
        );
        let subsystem = "sys/kernel/config/nvmet/subsystems/nqn.test/namespaces";
        fake.file(&format!("{subsystem}/7/device_path"), "/srv/a.img\n");
        std::fs::create_dir_all(fake.path("sys/block/sda/device")).unwrap();
        let serial = [b"\0\x80\0\x08".as_slice(), b"LIO-0042"].concat();
        std::fs::write(fake.path("sys/block/sda/device/vpd_pg80"), serial).unwrap();
        let fake = fake
            .attribute("sdb/device/serial", "LIO-0043\n")
            .attribute("nvme0n1/device/subsysnqn", "nqn.test\n")
            .attribute("nvme0n1/nsid", "7\n");
        let of = |fake: &Fake, name: &str| {
            fake.with(|machine, _| kept_on(machine, machine.tree.get(name).unwrap()))
        };
        let name = |name: &str| Some(KeptOn::Name(PathBuf::from(name)));
        assert_eq!(of(&fake, "sda"), name("/dev/vda"));
        assert_eq!(of(&fake, "sdb"), None);
        assert_eq!(of(&fake, "nvme0n1"), name("/srv/a.img"));
        let iblock = "sys/kernel/config/target/core/iblock_0/disk";
        fake.file(&format!("{iblock}/wwn/vpd_unit_serial"), "T10 VPD Unit Serial Number: LIO-0043\n");
        let info = "iBlock device: dm-3  UDEV PATH: /dev/vg/data  readonly: 0\n        Major: 253 Minor: 3  CLAIMED: IBLOCK\n";
        fake.file(&format!("{iblock}/info"), info);
        assert_eq!(of(&fake, "sdb"), Some(KeptOn::Device(DeviceNumber { major: 253, minor: 3 })));
        let fake = fake.attribute("nvme0n1/device/subsysnqn", "nqn.elsewhere\n");
        assert_eq!(of(&fake, "nvme0n1"), None);
    }
}
