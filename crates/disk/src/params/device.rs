//! The figures of devices: disks, memory, flash, arrays, and what goes wrong with them. It computes nothing.

use super::{Checker, Wrong};
use crate::mechanics::SECTOR_BYTES;
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
    /// As they came.
    Fifo,
    /// Whatever the head reaches soonest, rotation included.
    Nearest,
}

/// A volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheParams {
    /// Size; 0 when it is switched off.
    pub bytes: u64,
    /// Separate pieces that the firmware keeps track of.
    pub extents: usize,
    /// Order of destage.
    pub order: DestageOrder,
    /// How long the disk must be idle before it empties a cache that is not full, in ns.
    pub delay_ns: u64,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskParams {
    /// Size.
    pub capacity_bytes: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Surfaces, which is tracks per cylinder.
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
    /// The write cache; none when it is off.
    #[serde(default)]
    pub write_cache: Option<WriteCacheParams>,
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
}

/// Flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParams {
    /// Size.
    pub capacity_bytes: u64,
    /// Flash page.
    pub page_bytes: u64,
    /// Dies that work in parallel; pages are dealt round them.
    pub dies: usize,
    /// Time to read a page, in ns.
    pub read_ns: u64,
    /// Time to program a page in its lasting form, in ns.
    pub program_ns: u64,
    /// Time that each command costs, in ns.
    pub command_ns: u64,
    /// Bytes per second of the interface.
    pub interface_bytes_per_s: f64,
    /// Size of the fast (SLC) part that writes fill first; 0 for none.
    pub slc_bytes: u64,
    /// Time to program a page of it, in ns.
    pub slc_program_ns: u64,
    /// Bytes per second at which the fast part is emptied while the device idles.
    pub slc_drain_bytes_per_s: f64,
    /// Bytes written between two garbage collections; 0 for none.
    pub gc_every_bytes: u64,
    /// How long one holds up all dies, in ns.
    pub gc_ns: u64,
}

/// How an array spreads its data.
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
    /// Bytes that lie on one member before the next.
    pub chunk_bytes: u64,
    /// Time that each command costs, in ns.
    pub command_ns: u64,
    /// Bytes per second between host and array.
    pub interface_bytes_per_s: f64,
    /// A protected cache that completes writes at once while it has room; 0 for none.
    #[serde(default)]
    pub write_back_bytes: u64,
    /// Each member.
    pub member: Box<DeviceParams>,
}

/// Bytes that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRange {
    /// First byte.
    pub offset_bytes: u64,
    /// Size.
    pub bytes: u64,
}

/// A device that stands still again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StallParams {
    /// From the begin of one stall to the next, in ns.
    pub every_ns: u64,
    /// How long each lasts, in ns; it ends the period.
    pub lasts_ns: u64,
}

/// A device that silently becomes slower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowDown {
    /// When, in ns.
    pub after_ns: u64,
    /// By which factor everything takes longer, above 1.
    pub factor: f64,
}

/// What goes wrong with a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultParams {
    /// Bad ranges.
    #[serde(default)]
    pub errors: Vec<ErrorRange>,
    /// Stalls.
    #[serde(default)]
    pub stall: Option<StallParams>,
    /// A slow-down.
    #[serde(default)]
    pub slow_down: Option<SlowDown>,
}

impl DeviceParams {
    /// Size of the device.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceParams::Disk(disk) => disk.capacity_bytes,
            DeviceParams::Ram(ram) => ram.capacity_bytes,
            DeviceParams::Ssd(ssd) => ssd.capacity_bytes,
            DeviceParams::Array(array) => array.capacity_bytes(),
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
        c.sectors("capacity_bytes", self.capacity_bytes)?;
        c.rate("rpm", self.rpm)?;
        c.positive("heads", self.heads)?;
        c.rate("interface_bytes_per_s", self.interface_bytes_per_s)?;
        c.positive("seek_track_ns", self.seek_track_ns)?;
        if self.seek_average_ns < self.seek_track_ns {
            return Err(c.wrong("seek_average_ns", "is less than the seek to the next track"));
        }
        if self.seek_full_ns < self.seek_average_ns {
            return Err(c.wrong("seek_full_ns", "is less than the average seek"));
        }
        if self.read_ahead_bytes > 0 && self.read_segments == 0 {
            return Err(c.wrong("read_segments", "read-ahead needs at least one segment"));
        }
        self.check_zones(c)?;
        let Some(cache) = &self.write_cache else { return Ok(()) };
        c.within("write_cache", |c| {
            if !cache.bytes.is_multiple_of(SECTOR_BYTES) {
                return Err(c.wrong("bytes", "is no multiple of 512 bytes"));
            }
            c.positive("extents", cache.extents as u64)
        })
    }

    fn check_zones(&self, c: &mut Checker) -> Result<(), Wrong> {
        let mut held_bytes = 0_u64;
        for (index, zone) in self.zones.iter().enumerate() {
            c.within(&format!("zones[{index}]"), |c| {
                c.positive("cylinders", zone.cylinders)?;
                c.positive("sectors_per_track", zone.sectors_per_track)
            })?;
            let bytes = [zone.cylinders, self.heads, zone.sectors_per_track, SECTOR_BYTES]
                .into_iter()
                .fold(1_u64, u64::saturating_mul);
            held_bytes = held_bytes.saturating_add(bytes);
        }
        if held_bytes < self.capacity_bytes {
            let reason = format!(
                "the zones do not cover the disk: they hold {held_bytes} bytes of its {}",
                self.capacity_bytes
            );
            return Err(c.wrong("zones", &reason));
        }
        Ok(())
    }
}

impl RamParams {
    fn check(&self, c: &Checker) -> Result<(), Wrong> {
        c.sectors("capacity_bytes", self.capacity_bytes)?;
        c.rate("read_bytes_per_s", self.read_bytes_per_s)?;
        c.rate("write_bytes_per_s", self.write_bytes_per_s)?;
        c.positive("servers", self.servers as u64)
    }
}

impl SsdParams {
    fn check(&self, c: &Checker) -> Result<(), Wrong> {
        c.sectors("capacity_bytes", self.capacity_bytes)?;
        c.sectors("page_bytes", self.page_bytes)?;
        c.positive("dies", self.dies as u64)?;
        c.rate("interface_bytes_per_s", self.interface_bytes_per_s)?;
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
        c.sectors("chunk_bytes", self.chunk_bytes)?;
        c.rate("interface_bytes_per_s", self.interface_bytes_per_s)?;
        let least = match self.level {
            RaidLevel::Raid0 | RaidLevel::Raid1 => 2,
            RaidLevel::Raid5 => 3,
            RaidLevel::Raid6 => 4,
        };
        if self.members < least {
            return Err(c.wrong("members", &format!("this level needs at least {least}")));
        }
        c.within("member", |c| self.member.check(c))?;
        if self.capacity_bytes() == 0 {
            return Err(c.wrong("chunk_bytes", "is larger than a member"));
        }
        Ok(())
    }
}

impl FaultParams {
    pub(super) fn check(&self, c: &mut Checker) -> Result<(), Wrong> {
        for (index, range) in self.errors.iter().enumerate() {
            c.within(&format!("errors[{index}]"), |c| c.positive("bytes", range.bytes))?;
        }
        if let Some(stall) = &self.stall {
            c.within("stall", |c| {
                c.positive("lasts_ns", stall.lasts_ns)?;
                if stall.lasts_ns >= stall.every_ns {
                    return Err(c.wrong("every_ns", "the device would stand still for ever"));
                }
                Ok(())
            })?;
        }
        if let Some(slow) = &self.slow_down {
            c.within("slow_down", |c| {
                c.rate("factor", slow.factor)?;
                if slow.factor < 1.0 { Err(c.wrong("factor", "is less than 1")) } else { Ok(()) }
            })?;
        }
        Ok(())
    }
}
