//! One disk of a fake machine: what it is, and the sysfs files that follow from it. It writes nothing itself.
//! Formats: Documentation/ABI/stable/sysfs-block, and the attributes of a 6.18 kernel.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Fields of `stat` since Linux 5.5: read, write and discard (each I/Os, merges, sectors, ticks), between them in
/// flight, io_ticks and time in queue, and at the end flushes and their ticks.
pub const STAT_FIELDS: usize = 17;

/// A disk as the kernel describes it. Start with one of the constructors and change what matters:
/// `FakeDisk { size_bytes: 1 << 40, ..FakeDisk::scsi("sdb") }`.
#[derive(Clone, Debug)]
pub struct FakeDisk {
    /// Kernel name: "sda".
    pub name: String,
    /// Device number.
    pub major_minor: (u32, u32),
    /// Size in bytes, a multiple of 512.
    pub size_bytes: u64,
    /// `queue/iostats`: whether the counters count.
    pub iostats: bool,
    /// The directory of the device that the disk belongs to, from the root of the tree, if it has one.
    pub device_directory: Option<PathBuf>,
    /// Files of the disk's directory that others lack or have with another content, such as `dm/uuid`.
    pub attributes: Vec<(&'static str, String)>,
}

impl FakeDisk {
    /// A 4 TB SATA disk: "sda" is 8:0, "sdb" 8:16.
    pub fn scsi(name: &str) -> Self {
        let letter = u32::from(name.bytes().last().unwrap_or(b'a').saturating_sub(b'a'));
        let host =
            format!("sys/devices/pci0000:00/0000:00:17.0/ata{letter}/host{letter}/{letter}:0:0:0/block");
        let disk = Self::virtual_disk(name, (8, 16 * letter), 4_000_787_030_016);
        Self { device_directory: Some(host.into()), ..disk }.with("mq/0/nr_tags", 64)
    }

    /// A 1 TB NVMe drive: "nvme0n1" is 259:0. Its namespace lies directly below its controller.
    pub fn nvme(name: &str) -> Self {
        let controller = name.rsplit_once('n').map_or(name, |(controller, _)| controller);
        let directory = format!("sys/devices/pci0000:00/0000:03:00.0/nvme/{controller}");
        let disk = Self::virtual_disk(name, (259, 0), 1_000_204_886_016);
        Self { device_directory: Some(directory.into()), ..disk }.with("mq/0/nr_tags", 1023)
    }

    /// A device-mapper device "dm-N", number 253:N, named `mapper_name` with the identity `uuid` ("LVM-…", "mpath-…").
    pub fn dm(name: &str, mapper_name: &str, uuid: &str, size_bytes: u64) -> Self {
        let disk = Self::virtual_disk(name, (253, trailing_number(name)), size_bytes);
        disk.with("dm/name", mapper_name).with("dm/uuid", uuid)
    }

    /// A software RAID "mdN", number 9:N, with the layout that mdadm(8) chooses for its level: left-symmetric, two near copies.
    pub fn md(name: &str, level: &str, raid_disks: u32, chunk_bytes: u64, size_bytes: u64) -> Self {
        let layout = match level {
            "raid5" | "raid6" => 2,
            "raid10" => 0x102,
            _ => 0,
        };
        let disk = Self::virtual_disk(name, (9, trailing_number(name)), size_bytes);
        let disk = disk.with("md/level", level).with("md/raid_disks", raid_disks);
        let disk = disk.with("md/chunk_size", chunk_bytes).with("md/layout", layout);
        disk.with("md/metadata_version", "1.2").with("md/degraded", 0).with("md/sync_action", "idle")
    }

    /// A loop device "loopN", number 7:N.
    pub fn loop_device(name: &str, size_bytes: u64) -> Self {
        Self::virtual_disk(name, (7, trailing_number(name)), size_bytes).with("mq/0/nr_tags", 128)
    }

    /// A device without a parent and without hardware queues, such as zram.
    pub fn virtual_disk(name: &str, major_minor: (u32, u32), size_bytes: u64) -> Self {
        let name = name.to_owned();
        Self { name, major_minor, size_bytes, iostats: true, device_directory: None, attributes: Vec::new() }
    }

    fn with(mut self, file: &'static str, content: impl Display) -> Self {
        self.attributes.push((file, content.to_string()));
        self
    }

    /// The disk's directory from the root of the tree.
    pub(super) fn directory(&self) -> PathBuf {
        let directory = self.device_directory.as_deref();
        directory.unwrap_or(Path::new("sys/devices/virtual/block")).join(&self.name)
    }

    /// Files of the disk's own directory, except those that partitions have too.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        let of_all = [
            ("ro", "0"),
            ("removable", "0"),
            ("hidden", "0"),
            ("alignment_offset", "0"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "512"),
            ("queue/minimum_io_size", "512"),
            ("queue/optimal_io_size", "0"),
            ("queue/rotational", "0"),
            ("queue/write_cache", "write back"),
            ("queue/iostats", if self.iostats { "1" } else { "0" }),
            ("queue/zoned", "none"),
        ];
        of_all
            .map(|(file, content)| (file, content.to_owned()))
            .into_iter()
            .chain(self.attributes.clone())
            .collect()
    }
}

/// The number at the end of a name: 3 of "dm-3".
fn trailing_number(name: &str) -> u32 {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[digits..].parse().unwrap_or(0)
}
