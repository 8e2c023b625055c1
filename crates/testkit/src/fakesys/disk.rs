//! One disk of a fake machine: what it is, and the sysfs files that follow from it. It writes nothing itself.
//! Formats: Documentation/ABI/stable/sysfs-block, and the attributes of a 6.18 kernel.

use std::path::{Path, PathBuf};

/// Fields of `stat` since Linux 5.5: read, write and discard (each I/Os, merges, sectors, ticks), between them in
/// flight, io_ticks and time in queue, and at the end flushes and their ticks.
pub const STAT_FIELDS: usize = 17;

/// The kind of driver, which decides the disk's place in sysfs and the files with its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FakeKind {
    /// SCSI, SATA, SAS, iSCSI: `device/{vendor,model,rev,wwid,vpd_pg80}`.
    Scsi,
    /// NVMe: `device/{model,serial,firmware_rev}`; beside them `wwid`, `nsid` and, where the namespace has one, `uuid`.
    Nvme,
    /// A virtual machine's disk: `serial`, no model.
    Virtio,
    /// Device mapper: `dm/{name,uuid,suspended}`, and a link in `/dev/mapper`.
    DeviceMapper {
        /// As in `/dev/mapper`: "vg0-home".
        name: String,
        /// "LVM-…", "CRYPT-LUKS2-…", "mpath-…".
        uuid: String,
    },
    /// Linux software RAID: `md/{level,raid_disks,chunk_size,uuid,…}`.
    Md {
        /// "raid5".
        level: String,
        /// Members in use.
        raid_disks: u32,
        /// Consecutive bytes on one member.
        chunk_bytes: u64,
    },
    /// A loop device; its file is set by [`super::FakeSys::loop_backing`].
    Loop,
    /// Anything else without a parent device: zram, brd.
    Virtual,
}

/// A disk as the kernel describes it. Start with one of the constructors and change what matters:
/// `FakeDisk { size_bytes: 1 << 40, ..FakeDisk::scsi("sdb") }`.
#[derive(Clone, Debug)]
pub struct FakeDisk {
    /// Kernel name: "sda".
    pub name: String,
    /// Kind of driver.
    pub kind: FakeKind,
    /// Device number.
    pub major_minor: (u32, u32),
    /// Size in bytes, a multiple of 512.
    pub size_bytes: u64,
    /// Model, where the kind has one.
    pub model: Option<String>,
    /// Serial number, where the kind has one.
    pub serial: Option<String>,
    /// World-wide name with its prefix ("naa.5000c500a1b2c3d4", "eui.0025385b01234567"), where the kind has one.
    pub wwn: Option<String>,
    /// UUID of an NVMe namespace or an array, as sysfs writes it, with hyphens.
    pub uuid: Option<String>,
    /// Names under `/dev` that are links to this disk: "disk/by-id/ata-MODEL_SERIAL".
    pub links: Vec<String>,
    /// `queue/logical_block_size`, bytes.
    pub logical_block_bytes: u32,
    /// `queue/physical_block_size`, bytes.
    pub physical_block_bytes: u32,
    /// `alignment_offset`, bytes.
    pub alignment_offset_bytes: u32,
    /// `queue/minimum_io_size`, bytes.
    pub minimum_io_bytes: u64,
    /// `queue/optimal_io_size`, bytes; 0 if the disk names none.
    pub optimal_io_bytes: u64,
    /// `queue/rotational`.
    pub rotational: bool,
    /// `ro`.
    pub ro: bool,
    /// `removable`.
    pub removable: bool,
    /// `queue/write_cache`: "write back" or "write through".
    pub write_cache: String,
    /// `queue/fua`.
    pub fua: bool,
    /// `queue/scheduler`, the current one in brackets: `[none] mq-deadline`.
    pub scheduler: String,
    /// `queue/max_sectors_kb`.
    pub max_sectors_kb: u32,
    /// `queue/max_hw_sectors_kb`.
    pub max_hw_sectors_kb: u32,
    /// `queue/max_segments`.
    pub max_segments: u32,
    /// `queue/nr_requests`.
    pub nr_requests: u32,
    /// `queue/read_ahead_kb`.
    pub read_ahead_kb: u32,
    /// `queue/iostats`: whether the counters count.
    pub iostats: bool,
    /// `queue/zoned`: "none", "host-aware", "host-managed".
    pub zoned: String,
    /// The counters of `stat` and `/proc/diskstats`.
    pub stat: [u64; STAT_FIELDS],
}

impl FakeDisk {
    /// A 4 TB rotational SATA disk: "sda" is 8:0, "sdb" 8:16.
    pub fn scsi(name: &str) -> Self {
        let letter = u32::from(name.bytes().last().unwrap_or(b'a').saturating_sub(b'a'));
        Self {
            model: Some("ST4000NM0035-1V4".into()),
            serial: Some("ZC1A2B3C".into()),
            wwn: Some("naa.5000c500a1b2c3d4".into()),
            physical_block_bytes: 4096,
            minimum_io_bytes: 4096,
            rotational: true,
            scheduler: "none [mq-deadline] kyber bfq".into(),
            max_hw_sectors_kb: 32767,
            max_segments: 168,
            nr_requests: 64,
            ..Self::plain(name, FakeKind::Scsi, (8, 16 * letter), 4_000_787_030_016)
        }
    }

    /// A 1 TB NVMe drive: "nvme0n1" is 259:0.
    pub fn nvme(name: &str) -> Self {
        Self {
            model: Some("Samsung SSD 980 PRO 1TB".into()),
            serial: Some("S5GXNX0T123456A".into()),
            wwn: Some("eui.002538ba11b2c3d4".into()),
            fua: true,
            max_sectors_kb: 128,
            max_hw_sectors_kb: 128,
            max_segments: 33,
            nr_requests: 1023,
            ..Self::plain(name, FakeKind::Nvme, (259, 0), 1_000_204_886_016)
        }
    }

    /// A 256 GiB disk of a virtual machine: "vda" is 254:0, "vdb" 254:16.
    pub fn virtio(name: &str) -> Self {
        let letter = u32::from(name.bytes().last().unwrap_or(b'a').saturating_sub(b'a'));
        Self {
            serial: Some("virtio-disk-0".into()),
            rotational: true,
            scheduler: "none [mq-deadline] kyber bfq".into(),
            max_hw_sectors_kb: 2_147_483_647,
            max_segments: 254,
            ..Self::plain(name, FakeKind::Virtio, (254, 16 * letter), 256 << 30)
        }
    }

    /// A device-mapper device "dm-N", number 253:N, named `mapper_name` with the identity `uuid`.
    pub fn dm(name: &str, mapper_name: &str, uuid: &str, size_bytes: u64) -> Self {
        let kind = FakeKind::DeviceMapper { name: mapper_name.into(), uuid: uuid.into() };
        Self { max_segments: 128, ..Self::plain(name, kind, (253, trailing_number(name)), size_bytes) }
    }

    /// A software RAID "mdN", number 9:N; its I/O sizes follow from chunk and data disks.
    pub fn md(name: &str, level: &str, raid_disks: u32, chunk_bytes: u64, size_bytes: u64) -> Self {
        let parity = match level {
            "raid4" | "raid5" => 1,
            "raid6" => 2,
            _ => 0,
        };
        let kind = FakeKind::Md { level: level.into(), raid_disks, chunk_bytes };
        Self {
            minimum_io_bytes: chunk_bytes.max(512),
            optimal_io_bytes: chunk_bytes * u64::from(raid_disks.saturating_sub(parity)),
            write_cache: "write back".into(),
            ..Self::plain(name, kind, (9, trailing_number(name)), size_bytes)
        }
    }

    /// A loop device "loopN", number 7:N.
    pub fn loop_device(name: &str, size_bytes: u64) -> Self {
        let number = (7, trailing_number(name));
        Self { max_segments: 128, nr_requests: 128, ..Self::plain(name, FakeKind::Loop, number, size_bytes) }
    }

    /// A device without a parent, such as zram.
    pub fn plain(name: &str, kind: FakeKind, major_minor: (u32, u32), size_bytes: u64) -> Self {
        Self {
            name: name.into(),
            kind,
            major_minor,
            size_bytes,
            model: None,
            serial: None,
            wwn: None,
            uuid: None,
            links: Vec::new(),
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            alignment_offset_bytes: 0,
            minimum_io_bytes: 512,
            optimal_io_bytes: 0,
            rotational: false,
            ro: false,
            removable: false,
            write_cache: "write back".into(),
            fua: false,
            scheduler: "[none] mq-deadline kyber bfq".into(),
            max_sectors_kb: 1280,
            max_hw_sectors_kb: 1280,
            max_segments: 128,
            nr_requests: 256,
            read_ahead_kb: 128,
            iostats: true,
            zoned: "none".into(),
            stat: [0; STAT_FIELDS],
        }
    }

    /// The disk's directory from the root of the tree.
    pub(super) fn directory(&self) -> PathBuf {
        match self.device_directory() {
            // An NVMe namespace lies directly below its controller; other disks have a directory `block` in between.
            Some(device) if self.kind == FakeKind::Nvme => device.join(&self.name),
            Some(device) => device.join("block").join(&self.name),
            None => Path::new("sys/devices/virtual/block").join(&self.name),
        }
    }

    /// The directory of the device that the disk belongs to, if the kind has one.
    pub(super) fn device_directory(&self) -> Option<PathBuf> {
        let pci = Path::new("sys/devices/pci0000:00");
        // The number keeps two disks of a kind apart.
        let number = self.major_minor.1;
        match self.kind {
            FakeKind::Scsi => Some(
                pci.join(format!("0000:00:17.0/ata{n}/host{n}/target{n}:0:0/{n}:0:0:0", n = number / 16)),
            ),
            FakeKind::Nvme => {
                let controller =
                    self.name.rsplit_once('n').map_or(self.name.as_str(), |(controller, _)| controller);
                Some(pci.join("0000:00:1d.0/0000:03:00.0/nvme").join(controller))
            }
            FakeKind::Virtio => Some(pci.join(format!("0000:00:02.0/virtio{}", number / 16))),
            _ => None,
        }
    }

    /// Files of [`FakeDisk::device_directory`].
    pub(super) fn device_attributes(&self) -> Vec<(&'static str, Vec<u8>)> {
        let model = self.model.as_deref().unwrap_or_default();
        let serial = self.serial.as_deref().unwrap_or_default();
        match self.kind {
            FakeKind::Scsi => {
                let mut files = vec![
                    ("vendor", b"ATA     \n".to_vec()),
                    // The kernel keeps SCSI's 16 columns, blanks included.
                    ("model", format!("{model:<16}\n").into_bytes()),
                    ("rev", b"TN03\n".to_vec()),
                ];
                if let Some(wwn) = &self.wwn {
                    files.push(("wwid", format!("{wwn}\n").into_bytes()));
                }
                if let Ok(len) = u16::try_from(serial.len())
                    && len > 0
                {
                    // Vital product data page 0x80 as the disk sent it: type, page, length, text.
                    files
                        .push(("vpd_pg80", [&[0, 0x80], &len.to_be_bytes()[..], serial.as_bytes()].concat()));
                }
                files
            }
            FakeKind::Nvme => vec![
                ("model", format!("{model:<40}\n").into_bytes()),
                ("serial", format!("{serial:<20}\n").into_bytes()),
                ("firmware_rev", b"5B2QGXA7\n".to_vec()),
                ("transport", b"pcie\n".to_vec()),
            ],
            _ => vec![("vendor", b"0x1af4\n".to_vec())],
        }
    }

    /// Files of the disk's own directory, except those that partitions have too.
    pub(super) fn attributes(&self) -> Vec<(String, String)> {
        let line = |text: &dyn std::fmt::Display| format!("{text}\n");
        let mut files: Vec<(String, String)> = vec![
            ("ro".into(), line(&u8::from(self.ro))),
            ("removable".into(), line(&u8::from(self.removable))),
            ("hidden".into(), line(&0)),
            ("alignment_offset".into(), line(&self.alignment_offset_bytes)),
            ("discard_alignment".into(), line(&0)),
            ("queue/hw_sector_size".into(), line(&self.logical_block_bytes)),
            ("queue/logical_block_size".into(), line(&self.logical_block_bytes)),
            ("queue/physical_block_size".into(), line(&self.physical_block_bytes)),
            ("queue/minimum_io_size".into(), line(&self.minimum_io_bytes)),
            ("queue/optimal_io_size".into(), line(&self.optimal_io_bytes)),
            ("queue/rotational".into(), line(&u8::from(self.rotational))),
            ("queue/write_cache".into(), line(&self.write_cache)),
            ("queue/fua".into(), line(&u8::from(self.fua))),
            ("queue/scheduler".into(), line(&self.scheduler)),
            ("queue/max_sectors_kb".into(), line(&self.max_sectors_kb)),
            ("queue/max_hw_sectors_kb".into(), line(&self.max_hw_sectors_kb)),
            ("queue/max_segments".into(), line(&self.max_segments)),
            ("queue/max_segment_size".into(), line(&65536)),
            ("queue/nr_requests".into(), line(&self.nr_requests)),
            ("queue/read_ahead_kb".into(), line(&self.read_ahead_kb)),
            ("queue/iostats".into(), line(&u8::from(self.iostats))),
            ("queue/zoned".into(), line(&self.zoned)),
            ("queue/nomerges".into(), line(&0)),
            ("queue/chunk_sectors".into(), line(&0)),
            ("queue/discard_granularity".into(), line(&0)),
            ("queue/discard_max_bytes".into(), line(&0)),
            ("queue/dma_alignment".into(), line(&511)),
        ];
        let (major, minor) = self.major_minor;
        let uevent = format!("MAJOR={major}\nMINOR={minor}\nDEVNAME={}\nDEVTYPE=disk\n", self.name);
        files.push(("uevent".into(), uevent));
        files.extend(self.attributes_of_kind());
        if matches!(self.kind, FakeKind::Scsi | FakeKind::Nvme | FakeKind::Virtio | FakeKind::Loop) {
            // Drivers that take requests have hardware queues; those that take bios have none.
            files.push(("mq/0/nr_tags".into(), line(&self.nr_requests)));
        }
        files
    }

    fn attributes_of_kind(&self) -> Vec<(String, String)> {
        let file = |name: &str, text: &dyn std::fmt::Display| (name.to_owned(), format!("{text}\n"));
        match &self.kind {
            FakeKind::Nvme => {
                let namespace = self.name.rsplit_once('n').map_or("1", |(_, number)| number);
                let mut files = vec![file("nsid", &namespace)];
                files.extend(self.wwn.iter().map(|wwn| file("wwid", wwn)));
                files.extend(self.uuid.iter().map(|uuid| file("uuid", uuid)));
                files
            }
            // virtio_blk prints its serial without a newline.
            FakeKind::Virtio => {
                self.serial.iter().map(|serial| ("serial".to_owned(), serial.clone())).collect()
            }
            FakeKind::DeviceMapper { name, uuid } => {
                // As of a 6.1 kernel in a guest, 2026-11-21; without a UUID the file holds an empty line.
                vec![
                    file("dm/name", name),
                    file("dm/uuid", uuid),
                    file("dm/suspended", &0),
                    file("dm/rq_based_seq_io_merge_deadline", &0),
                    file("dm/use_blk_mq", &1),
                ]
            }
            FakeKind::Md { level, raid_disks, chunk_bytes } => {
                let mut files = vec![
                    file("md/level", level),
                    file("md/raid_disks", raid_disks),
                    file("md/chunk_size", chunk_bytes),
                    file("md/layout", &layout_of(level)),
                    file("md/metadata_version", &"1.2"),
                    file("md/array_state", &"clean"),
                    file("md/degraded", &0),
                    file("md/sync_action", &"idle"),
                ];
                files.extend(self.uuid.iter().map(|uuid| file("md/uuid", uuid)));
                files
            }
            FakeKind::Scsi | FakeKind::Loop | FakeKind::Virtual => Vec::new(),
        }
    }

    /// Links under `/dev`, those that follow from the kind included.
    pub(super) fn device_links(&self) -> Vec<String> {
        let mut links = self.links.clone();
        if let FakeKind::DeviceMapper { name, .. } = &self.kind {
            links.push(format!("mapper/{name}"));
        }
        links
    }
}

/// The number at the end of a name: 3 of "dm-3".
/// md's number for the default layout of mdadm(8) for an array of this level: left-symmetric, two near copies.
fn layout_of(level: &str) -> u32 {
    match level {
        "raid5" | "raid6" => 2,
        "raid10" => 0x102,
        _ => 0,
    }
}

fn trailing_number(name: &str) -> u32 {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[digits..].parse().unwrap_or(0)
}
