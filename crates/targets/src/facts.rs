//! The fields of [`rdsk_model::Device`] from sysfs and device mapper. It opens no device and decides nothing.
//!
//! In: the devices of a [`Machine`](crate::machine::Machine). Out: what a Record says of one: its queue, the layers below it, the arrays that it
//! is or lies on, and which of these are in another state at the end of a run.

pub(crate) mod array;
pub(crate) mod arrays_at_end;
pub(crate) mod layers;

use crate::machine::disk_names::serial;
use crate::machine::{Mapper, Node, Tree};
use crate::roots::Roots;
use rdsk_model::{Device, SECTOR_BYTES};
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::{names_in, read_flag, read_number, read_text, read_word};
use std::path::{Path, PathBuf};

/// Where drivers keep the revision of a disk's firmware: NVMe, and SCSI with SATA.
const FIRMWARE: [&str; 2] = ["device/firmware_rev", "device/rev"];

/// Reads sysfs, and what device mapper reports about an array. A partition has the queue attributes of its disk.
pub(crate) fn device(tree: &Tree, node: &Node, mapper: &Mapper<'_>) -> Device {
    let whole = tree.whole(node);
    let queue = whole.directory.join("queue");
    let number = |name: &str| read_number::<u64>(&queue.join(name));
    let flag = |name: &str| read_flag(&queue.join(name));
    let zoned = read_word(&queue.join("zoned"));
    let has_zones = zoned.as_deref().is_some_and(|zoned| zoned != "none");
    let zone_sectors = number("chunk_sectors").filter(|&sectors| has_zones && sectors != 0);
    let array = array::facts(tree, node, mapper);
    Device {
        name: node.kernel_name(),
        major_minor: node.number.to_string(),
        kind: Some(layers::kind(node)),
        mapped_name: layers::mapped_name(node),
        below: layers::below(tree, node),
        model: read_word(&whole.directory.join("device/model")),
        firmware: FIRMWARE.iter().find_map(|name| read_word(&whole.directory.join(name))),
        serial: serial(&whole.directory),
        size_bytes: node.size_bytes(),
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        alignment_offset_bytes: read_number(&node.directory.join("alignment_offset")),
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size").filter(|&bytes| bytes != 0),
        max_request_bytes: number("max_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
        max_segments: number("max_segments").filter(|&segments| segments != 0),
        zoned,
        zone_written_bytes: None,
        zone_bytes: zone_sectors.and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
        rotational: flag("rotational"),
        discards: flag("discard_max_bytes"),
        write_cache: read_word(&queue.join("write_cache")),
        fua: flag("fua"),
        scheduler: read_text(&queue.join("scheduler")).and_then(|text| active_scheduler(&text)),
        iostats: flag("iostats"),
        backing_file: whole.backing_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        arrays_below: array::facts_below(tree, node, array.as_ref(), mapper),
        arrays_at_end: Vec::new(),
        array,
        loop_direct_io: read_flag(&whole.directory.join("loop/dio")),
    }
}

/// The character devices that send commands to a disk without going through its block device, by name: SCSI generic,
/// block SCSI generic, NVMe generic, flash memory.
pub(crate) fn command_nodes(sys: &Path, node: &Node) -> Vec<(String, DeviceNumber)> {
    let mut directories: Vec<PathBuf> = ["device/scsi_generic", "device/bsg"]
        .iter()
        .map(|name| node.directory.join(name))
        .flat_map(|class| names_in(&class).into_iter().map(move |name| class.join(name)))
        .collect();
    if let Some(rest) = node.name.strip_prefix("nvme") {
        directories.push(sys.join("class/nvme-generic").join(format!("ng{rest}")));
    }
    if let Some(rest) = node.name.strip_prefix("mtdblock") {
        directories.push(sys.join("class/mtd").join(format!("mtd{rest}")));
    }
    let number = |directory: &PathBuf| {
        Some((directory.file_name()?.to_string_lossy().into_owned(), read_number(&directory.join("dev"))?))
    };
    directories.iter().filter_map(number).collect()
}

/// The disk for which a character device takes commands, by kernel name; `None` if none is known.
pub fn disk_commanded_by(number: DeviceNumber, roots: &Roots) -> Option<String> {
    let tree = Tree::read(&roots.sys).ok()?;
    let commands = |node: &&Node| {
        node.parent.is_none() && command_nodes(&roots.sys, node).iter().any(|&(_, other)| other == number)
    };
    let disk = tree.nodes().find(commands)?;
    Some(disk.kernel_name())
}

/// `none [mq-deadline] kyber` → `mq-deadline`; a single word is taken as it is.
fn active_scheduler(text: &str) -> Option<String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    Some(bracketed.unwrap_or(text).trim()).filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_nodes_are_found_beside_their_disk() {
        let fake = crate::tests::Fake::new().disk("sdb", "8:16").disk("nvme0n1", "259:0");
        let fake = fake.attribute("sdb/device/scsi_generic/sg1/dev", "21:1\n");
        let fake = fake.attribute("sdb/device/bsg/2:0:0:0/dev", "247:0\n");
        fake.file("sys/class/nvme-generic/ng0n1/dev", "242:0\n");
        fake.with(|machine, _| {
            let names = |name| -> Vec<String> {
                let nodes = command_nodes(&machine.roots.sys, machine.tree.get(name).unwrap());
                nodes.iter().map(|(name, number)| format!("{name} {number}")).collect()
            };
            assert_eq!(names("sdb"), ["sg1 21:1", "2:0:0:0 247:0"]);
            assert_eq!(names("nvme0n1"), ["ng0n1 242:0"]);
            let disk = |major| disk_commanded_by(DeviceNumber { major, minor: 0 }, machine.roots);
            assert_eq!(disk(247).as_deref(), Some("sdb"));
            assert_eq!(disk(242).as_deref(), Some("nvme0n1"));
            assert_eq!(disk(8), None, "a block device has the number");
        });
    }

    #[test]
    fn schedulers_are_read_from_their_brackets() {
        assert_eq!(active_scheduler("none [mq-deadline] kyber").as_deref(), Some("mq-deadline"));
        assert_eq!(active_scheduler("[none]").as_deref(), Some("none"));
        assert_eq!(active_scheduler("none").as_deref(), Some("none"));
        assert_eq!(active_scheduler(" "), None);
    }

    #[test]
    fn the_firmware_is_that_of_nvme_or_of_scsi() {
        let fake = crate::tests::Fake::new()
            .disk("nvme0n1", "259:0")
            .attribute("nvme0n1/device/firmware_rev", "5B2QGXA7\n")
            .disk("sda", "8:0")
            .attribute("sda/device/rev", "0003 \n")
            .disk("vda", "254:0");
        fake.with(|machine, _| {
            let firmware = |name| {
                let node = machine.tree.get(name).unwrap();
                device(&machine.tree, node, &machine.mapper).firmware
            };
            assert_eq!(firmware("nvme0n1").as_deref(), Some("5B2QGXA7"));
            assert_eq!(firmware("sda").as_deref(), Some("0003"));
            assert_eq!(firmware("vda"), None);
        });
    }

    #[test]
    fn zones_are_told_where_there_are_any() {
        let fake = crate::tests::Fake::new()
            .disk("sda", "8:0")
            .attribute("sda/queue/zoned", "host-managed\n")
            .attribute("sda/queue/chunk_sectors", "524288\n")
            .disk("md0", "9:0")
            .attribute("md0/queue/zoned", "none\n")
            .attribute("md0/queue/chunk_sectors", "1024\n");
        fake.with(|machine, _| {
            let device = |name: &str| device(&machine.tree, machine.tree.get(name).unwrap(), &machine.mapper);
            assert_eq!(device("sda").zoned.as_deref(), Some("host-managed"));
            assert_eq!(device("sda").zone_bytes, Some(256 << 20));
            // On other devices this attribute is a boundary that requests must not cross.
            assert_eq!((device("md0").zoned.as_deref(), device("md0").zone_bytes), (Some("none"), None));
        });
    }

    /// The name is the choice of the administrator who made it in configfs.
    #[test]
    fn null_blk_is_known_by_its_driver() {
        let fake = crate::tests::Fake::new().disk("slow", "252:3").disk("vda", "254:0");
        fake.file(
            "proc/devices",
            "Character devices:\n252 other\n\nBlock devices:\n252 nullb\n254 virtblk\n",
        );
        fake.with(|machine, _| {
            let kind =
                |name: &str| device(&machine.tree, machine.tree.get(name).unwrap(), &machine.mapper).kind;
            assert_eq!((kind("slow").as_deref(), kind("vda").as_deref()), (Some("null_blk"), Some("disk")));
        });
    }
}
