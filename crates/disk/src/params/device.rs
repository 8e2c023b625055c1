//! The parameters of devices: disks, memory, flash and arrays. It simulates nothing.

use super::{Checker, MAX_BYTES, MAX_DEVICES, MAX_PLACES, MAX_REQUEST_BYTES, Wrong};
use crate::request::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

/// Which model a LUN is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceParams {
    /// A disk with mechanics.
    Disk(DiskParams),
    /// A store of memory: no mechanics.
    Ram(RamParams),
    /// Flash.
    Ssd(SsdParams),
    /// RAID over equal members.
    Array(ArrayParams),
}

/// Tracks of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneParams {
    /// Cylinders, from the outer edge inwards.
    pub cylinders: u64,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u64,
}

/// The order in which cached writes go to the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DestageOrder {
    /// In the order of their arrival.
    Fifo,
    /// The one that the head reaches first, rotation included.
    Nearest,
}

/// A volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheParams {
    /// Size; 0 when it is switched off.
    pub bytes: u64,
    /// Separate pieces that the firmware tracks.
    pub extents: usize,
    /// Destage order.
    pub order: DestageOrder,
    /// How long the disk must be idle before it empties a cache that is not full, in ns.
    pub delay_ns: u64,
    /// Most bytes of one sequential run that the cache holds: its segment. A run that filled its segment is written out
    /// completely. 0: a run may fill the cache.
    #[serde(default)]
    pub segment_bytes: u64,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskParams {
    /// Size; of the partition, where it is one.
    pub capacity_bytes: u64,
    /// Position of the first byte on the disk: the start of a partition; 0 for a whole disk.
    #[serde(default)]
    pub partition_start_bytes: u64,
    /// Unit in which the media are written. A partial write costs a revolution: the disk reads the sector and writes it
    /// when it comes round again.
    #[serde(default = "sector_bytes")]
    pub physical_sector_bytes: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Surfaces, which are tracks per cylinder.
    pub heads: u64,
    /// Zones from the outer edge inwards.
    pub zones: Vec<ZoneParams>,
    /// Time to the next track of the cylinder; tracks are skewed by it, in ns.
    pub head_switch_ns: u64,
    /// Seek to the next cylinder, settled; cylinders are skewed by it, in ns.
    pub seek_track_ns: u64,
    /// Seek over a third of the cylinders, in ns.
    pub seek_average_ns: u64,
    /// Seek over all cylinders, in ns.
    pub seek_full_ns: u64,
    /// Time that each command costs, in ns.
    pub command_ns: u64,
    /// Bytes per second between host and cache.
    pub interface_bytes_per_s: f64,
    /// How far a read runs ahead; 0 for none.
    pub read_ahead_bytes: u64,
    /// Read segments kept.
    pub read_segments: usize,
    /// The write cache; `None` when it is off.
    pub write_cache: Option<WriteCacheParams>,
}

fn sector_bytes() -> u64 {
    SECTOR_BYTES
}

/// A store of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RamParams {
    /// Size.
    pub capacity_bytes: u64,
    /// Time that a read occupies a server before its bytes, in ns.
    pub read_command_ns: u64,
    /// Time that a write occupies a server before its bytes, in ns.
    pub write_command_ns: u64,
    /// Bytes per second out of each server.
    pub read_bytes_per_s: f64,
    /// Bytes per second into each server.
    pub write_bytes_per_s: f64,
    /// Requests served at once.
    pub servers: usize,
    /// Room for writes that are complete when they are received and stored later; 0 for none.
    #[serde(default)]
    pub write_buffer_bytes: u64,
}

/// Flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParams {
    /// Size.
    pub capacity_bytes: u64,
    /// Flash page.
    pub page_bytes: u64,
    /// Dies that work in parallel; pages are distributed over them in turn.
    pub dies: usize,
    /// Time to read a page, in ns.
    pub read_ns: u64,
    /// Time to program a page in its final form, in ns.
    pub program_ns: u64,
    /// Time that each command costs, in ns.
    pub command_ns: u64,
    /// Bytes per second of the interface.
    pub interface_bytes_per_s: f64,
    /// Size of the fast (SLC) part that writes fill first; 0 for none.
    pub slc_bytes: u64,
    /// Time to program a page of it, in ns.
    pub slc_program_ns: u64,
    /// Bytes per second at which the fast part is emptied while the device is idle.
    pub slc_drain_bytes_per_s: f64,
    /// Bytes written between two garbage collections; 0 for none.
    pub gc_every_bytes: u64,
    /// How long one blocks all dies, in ns.
    pub gc_ns: u64,
}

/// How an array distributes its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RaidLevel {
    /// Striped.
    Raid0,
    /// Mirrored over all members.
    Raid1,
    /// One parity chunk per stripe.
    Raid5,
    /// Two parity chunks per stripe.
    Raid6,
}

/// RAID over equal members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayParams {
    /// Level.
    pub level: RaidLevel,
    /// Number of members, parity included.
    pub members: usize,
    /// Consecutive bytes on one member.
    pub chunk_bytes: u64,
    /// Time that each command costs, in ns.
    pub command_ns: u64,
    /// Bytes per second between host and array.
    pub interface_bytes_per_s: f64,
    /// A protected cache that completes writes at once while it has room; 0 for none.
    #[serde(default)]
    pub write_back_bytes: u64,
    /// How long that cache holds a part of a stripe back for the rest of it, in ns, so that whole stripes go straight out; 0:
    /// the members get each write at once.
    #[serde(default)]
    pub gather_ns: u64,
    /// Each member.
    pub member: Box<DeviceParams>,
}

impl DeviceParams {
    /// Whether what it has accepted may be lost with the power, so that a flush is needed. The cache of a disk may; that of an
    /// array is protected.
    pub fn has_volatile_cache(&self) -> bool {
        match self {
            DeviceParams::Disk(disk) => disk.write_cache.is_some_and(|cache| cache.bytes > 0),
            DeviceParams::Ram(_) | DeviceParams::Ssd(_) => false,
            DeviceParams::Array(array) => array.write_back_bytes == 0 && array.member.has_volatile_cache(),
        }
    }

    /// Size of the device.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceParams::Disk(disk) => disk.capacity_bytes,
            DeviceParams::Ram(ram) => ram.capacity_bytes,
            DeviceParams::Ssd(ssd) => ssd.capacity_bytes,
            DeviceParams::Array(array) => array.capacity_bytes(),
        }
    }

    /// Devices that are simulated for it: itself, and an array's members.
    pub(super) fn devices(&self) -> u64 {
        match self {
            DeviceParams::Disk(_) | DeviceParams::Ram(_) | DeviceParams::Ssd(_) => 1,
            DeviceParams::Array(array) => {
                (array.members as u64).saturating_mul(array.member.devices()).saturating_add(1)
            }
        }
    }

    pub(super) fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        match self {
            DeviceParams::Disk(disk) => c.within("disk", |c| disk.check(c)),
            DeviceParams::Ram(ram) => c.within("ram", |c| ram.check(c)),
            DeviceParams::Ssd(ssd) => c.within("ssd", |c| ssd.check(c)),
            DeviceParams::Array(array) => c.within("array", |c| array.check(c)),
        }
    }
}

impl DiskParams {
    fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        c.size("capacity_bytes", self.capacity_bytes)?;
        if self.partition_start_bytes > 0 {
            c.size("partition_start_bytes", self.partition_start_bytes)?;
        }
        c.sectors("physical_sector_bytes", self.physical_sector_bytes)?;
        c.at_most("physical_sector_bytes", self.physical_sector_bytes, 65_536)?;
        let is_power = self.physical_sector_bytes.is_power_of_two();
        c.require("physical_sector_bytes", is_power, "is no power of two")?;
        c.rate("rpm", self.rpm, (1.0, 1e6))?;
        c.count("heads", self.heads, 1024)?;
        c.bytes_per_s("interface_bytes_per_s", self.interface_bytes_per_s)?;
        for (key, ns) in [
            ("head_switch_ns", self.head_switch_ns),
            ("seek_full_ns", self.seek_full_ns),
            ("command_ns", self.command_ns),
        ] {
            c.time(key, ns)?;
        }
        c.positive("seek_track_ns", self.seek_track_ns)?;
        let (track_ns, average_ns) = (self.seek_track_ns, self.seek_average_ns);
        c.require("seek_average_ns", average_ns >= track_ns, "is less than the seek to the next track")?;
        c.require("seek_full_ns", self.seek_full_ns >= average_ns, "is less than the average seek")?;
        let has_segments = self.read_ahead_bytes == 0 || self.read_segments > 0;
        c.require("read_segments", has_segments, "read-ahead needs at least one segment")?;
        c.at_most("read_segments", self.read_segments as u64, MAX_PLACES)?;
        c.at_most("read_ahead_bytes", self.read_ahead_bytes, MAX_BYTES)?;
        self.check_zones(c)?;
        let Some(cache) = &self.write_cache else { return Ok(()) };
        c.within("write_cache", |c| {
            c.require("bytes", cache.bytes.is_multiple_of(SECTOR_BYTES), "is no multiple of 512 bytes")?;
            // A gibibyte is destaged in 16 384 steps.
            c.at_most("bytes", cache.bytes, 64 << 30)?;
            c.at_most("segment_bytes", cache.segment_bytes, 64 << 30)?;
            c.time("delay_ns", cache.delay_ns)?;
            c.count("extents", cache.extents as u64, MAX_PLACES)
        })
    }

    fn check_zones(&self, c: &mut Checker) -> Result<(), Wrong> {
        let (mut held_bytes, mut cylinders) = (0_u64, 0_u64);
        for (index, zone) in self.zones.iter().enumerate() {
            c.within(&format!("zones[{index}]"), |c| {
                c.positive("cylinders", zone.cylinders)?;
                c.positive("sectors_per_track", zone.sectors_per_track)
            })?;
            let bytes = [zone.cylinders, self.heads, zone.sectors_per_track, SECTOR_BYTES]
                .into_iter()
                .fold(1_u64, u64::saturating_mul);
            held_bytes = held_bytes.saturating_add(bytes);
            cylinders = cylinders.saturating_add(zone.cylinders);
        }
        // The last physical sector is there as a whole.
        let end_bytes = self.partition_start_bytes + self.capacity_bytes;
        let end_bytes = end_bytes.next_multiple_of(self.physical_sector_bytes);
        let held =
            format_args!("the zones do not cover the disk: they hold {held_bytes} bytes of its {end_bytes}");
        c.require("zones", held_bytes >= end_bytes, held)?;
        let held = format_args!("the zones hold {held_bytes} bytes, more than any disk");
        c.require("zones", held_bytes <= 4 * MAX_BYTES, held)?;
        // Positions are times of reading the whole disk, exact to a nanosecond as long as they are below 2^53.
        let cylinder_ns =
            self.heads as f64 * (60e9 / self.rpm + self.head_switch_ns as f64) + self.seek_track_ns as f64;
        let is_long = cylinders as f64 * cylinder_ns > 4e15;
        c.require("zones", !is_long, "reading the disk once would take more than a month")
    }
}

impl RamParams {
    fn check(&self, c: &Checker) -> Result<(), Wrong> {
        c.size("capacity_bytes", self.capacity_bytes)?;
        c.bytes_per_s("read_bytes_per_s", self.read_bytes_per_s)?;
        c.bytes_per_s("write_bytes_per_s", self.write_bytes_per_s)?;
        c.time("read_command_ns", self.read_command_ns)?;
        c.time("write_command_ns", self.write_command_ns)?;
        c.at_most("write_buffer_bytes", self.write_buffer_bytes, 64 << 30)?;
        c.count("servers", self.servers as u64, MAX_PLACES)
    }
}

impl SsdParams {
    fn check(&self, c: &Checker) -> Result<(), Wrong> {
        c.size("capacity_bytes", self.capacity_bytes)?;
        c.sectors("page_bytes", self.page_bytes)?;
        c.at_most("page_bytes", self.page_bytes, MAX_REQUEST_BYTES)?;
        c.count("dies", self.dies as u64, MAX_PLACES)?;
        c.bytes_per_s("interface_bytes_per_s", self.interface_bytes_per_s)?;
        for (key, ns) in [
            ("read_ns", self.read_ns),
            ("program_ns", self.program_ns),
            ("command_ns", self.command_ns),
            ("slc_program_ns", self.slc_program_ns),
            ("gc_ns", self.gc_ns),
        ] {
            c.time(key, ns)?;
        }
        c.at_most("slc_bytes", self.slc_bytes, MAX_BYTES)?;
        let is_enough = self.gc_every_bytes == 0 || self.gc_every_bytes >= self.page_bytes;
        c.require("gc_every_bytes", is_enough, "is less than a page")?;
        c.at_most("gc_every_bytes", self.gc_every_bytes, MAX_BYTES)?;
        c.cost("slc_drain_bytes_per_s", self.slc_drain_bytes_per_s)
    }
}

impl ArrayParams {
    /// Members of a stripe that hold data.
    pub fn data_members(&self) -> usize {
        match self.level {
            RaidLevel::Raid0 => self.members,
            RaidLevel::Raid1 => 1,
            RaidLevel::Raid5 => self.members.saturating_sub(1),
            RaidLevel::Raid6 => self.members.saturating_sub(2),
        }
    }

    /// Whole stripes of all data members.
    pub fn capacity_bytes(&self) -> u64 {
        let chunks = self.member.capacity_bytes() / self.chunk_bytes.max(1);
        (chunks * self.chunk_bytes).saturating_mul(self.data_members() as u64)
    }

    fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        c.size("chunk_bytes", self.chunk_bytes)?;
        c.bytes_per_s("interface_bytes_per_s", self.interface_bytes_per_s)?;
        c.time("command_ns", self.command_ns)?;
        c.at_most("write_back_bytes", self.write_back_bytes, 64 << 30)?;
        c.span("gather_ns", self.gather_ns)?;
        let has_place = self.gather_ns == 0 || self.write_back_bytes > 0;
        c.require("gather_ns", has_place, "needs a cache that holds the parts: write_back_bytes")?;
        c.at_most("members", self.members as u64, MAX_DEVICES)?;
        let least = match self.level {
            RaidLevel::Raid0 => 1,
            RaidLevel::Raid1 => 2,
            RaidLevel::Raid5 => 3,
            RaidLevel::Raid6 => 4,
        };
        c.require("members", self.members >= least, format_args!("this level needs at least {least}"))?;
        c.within("member", |c| self.member.check(c))?;
        let capacity_bytes = self.capacity_bytes();
        c.require("chunk_bytes", capacity_bytes > 0, "is larger than a member")?;
        c.require("members", capacity_bytes <= MAX_BYTES, "the array is larger than any")
    }
}
