//! What the kernel reports about an open block device, and the call that discards a part of one. It never opens one.
#![allow(unsafe_code, reason = "these ioctls have no safe wrapper")]

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, Setter, Updater, ioctl, opcode};

// The kernel defines it with size_t in the number, whatever it really returns.
const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);

/// Size of the device in bytes (`BLKGETSIZE64`).
///
/// # Errors
/// `ENOTTY` when `fd` is no block device.
pub fn block_device_size(fd: impl AsFd) -> io::Result<u64> {
    // SAFETY: BLKGETSIZE64 writes one u64 through its argument, on every architecture.
    Ok(unsafe { ioctl(fd, Getter::<BLKGETSIZE64, u64>::new()) }?)
}

/// Smallest unit in bytes that the device addresses (`BLKSSZGET`): 512 or 4096 on nearly all.
///
/// # Errors
/// `ENOTTY` when `fd` is no block device.
pub fn logical_block_size(fd: impl AsFd) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blksszget(fd)?)
}

/// Discards a part of the device (`BLKDISCARD`), whose data are lost; the kernel drops what its page cache has of it.
///
/// # Errors
/// `EBADF` when `fd` may not write, `EINVAL` when the part is not of whole logical blocks, `EOPNOTSUPP` when the device discards nothing.
pub fn discard(fd: impl AsFd, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    const BLKDISCARD: Opcode = opcode::none(0x12, 119);
    // SAFETY: BLKDISCARD reads two u64 through its argument.
    Ok(unsafe { ioctl(fd, Setter::<BLKDISCARD, [u64; 2]>::new([offset_bytes, bytes])) }?)
}

/// The backing file of a loop device, by numbers as in stat(2): its name may be gone, or belong to another file by now.
/// This is `struct loop_info64` of include/uapi/linux/loop.h, 232 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBacking {
    /// `st_dev` of the backing file.
    pub dev: u64,
    /// `st_ino` of the backing file.
    pub ino: u64,
    /// `st_rdev` of the backing file: the block device that it is, or 0.
    pub rdev: u64,
    rest: [u64; 26],
}

/// The backing file of the open loop device (`LOOP_GET_STATUS64`).
///
/// # Errors
/// `ENXIO` when nothing is attached; `ENOTTY` when `fd` is no loop device.
pub fn loop_backing(fd: impl AsFd) -> io::Result<LoopBacking> {
    // `_IO` numbers of include/uapi/linux/loop.h carry no size.
    const LOOP_GET_STATUS64: Opcode = 0x4c05;
    // SAFETY: LOOP_GET_STATUS64 writes one struct loop_info64, whose layout is that of LoopBacking.
    Ok(unsafe { ioctl(fd, Getter::<LOOP_GET_STATUS64, LoopBacking>::new()) }?)
}

/// One zone of a zoned device: `struct blk_zone` of include/uapi/linux/blkzoned.h, 64 bytes, in sectors of 512 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    start: u64,
    len: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    flags: [u8; 2],
    reserved: [u8; 4],
    capacity: u64,
    rest: [u8; 24],
}

/// Zones that are asked for at once.
const ZONES: u32 = 256;

/// `struct blk_zone_report` with room behind it.
#[repr(C)]
struct ZoneReport {
    sector: u64,
    count: u32,
    flags: u32,
    zones: [Zone; ZONES as usize],
}

impl Zone {
    /// Bytes that it holds: up to the write pointer. A conventional zone has none, and one that is read-only or offline hides it.
    fn written_bytes(&self) -> u64 {
        const CONVENTIONAL: u8 = 1;
        const NO_POINTER: [u8; 3] = [0xd, 0xe, 0xf];
        let is_whole = self.kind == CONVENTIONAL || NO_POINTER.contains(&self.condition);
        let sectors =
            if is_whole { self.len } else { self.write_pointer.saturating_sub(self.start).min(self.len) };
        sectors.saturating_mul(512)
    }
}

/// Bytes that the zones of the open zoned device hold (`BLKREPORTZONE`).
///
/// # Errors
/// `ENOTTY` or `EOPNOTSUPP` when `fd` is no zoned block device.
pub fn zone_written_bytes(fd: impl AsFd) -> io::Result<u64> {
    /// The number has the size of the head alone.
    const BLKREPORTZONE: Opcode = opcode::read_write::<[u64; 2]>(0x12, 130);
    let size_sectors = block_device_size(&fd)? / 512;
    let mut report =
        Box::new(ZoneReport { sector: 0, count: 0, flags: 0, zones: [Zone::default(); ZONES as usize] });
    let mut written = 0_u64;
    let mut sector = 0;
    while sector < size_sectors {
        (report.sector, report.count) = (sector, ZONES);
        // SAFETY: BLKREPORTZONE writes its head and at most `count` zones behind it, for which there is room.
        unsafe { ioctl(&fd, Updater::<BLKREPORTZONE, ZoneReport>::new(&mut report)) }?;
        let zones = report.zones.iter().take(report.count as usize);
        let Some(last) = zones.clone().next_back() else { break };
        written = zones.fold(written, |sum, zone| sum.saturating_add(zone.written_bytes()));
        let next = last.start.saturating_add(last.len);
        if next <= sector {
            break;
        }
        sector = next;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;

    /// Compares the ioctls with sysfs on every disk of this machine that may be opened for reading.
    #[test]
    fn ioctls_agree_with_sysfs() {
        let mut seen = 0;
        for entry in std::fs::read_dir("/sys/block").unwrap() {
            let sys = entry.unwrap().path();
            let Some(disk) = sys.file_name().and_then(|name| File::open(Path::new("/dev").join(name)).ok())
            else {
                continue;
            };
            let number = |file: &str| -> u64 {
                std::fs::read_to_string(sys.join(file)).unwrap().trim().parse().unwrap()
            };
            // A loop device of another test may appear and go between two looks, so what changes meanwhile is not compared.
            let told = || (number("size") * 512, number("queue/logical_block_size"));
            let before = told();
            let found = (block_device_size(&disk).unwrap(), logical_block_size(&disk).unwrap().into());
            if before == told() {
                assert_eq!(found, before, "{}", sys.display());
                seen += 1;
            }
        }
        eprintln!("compared {seen} disks");
    }

    #[test]
    fn a_zone_holds_what_is_before_its_write_pointer() {
        assert_eq!((size_of::<Zone>(), std::mem::offset_of!(ZoneReport, zones)), (64, 16));
        let zone = |kind, condition, written: u64| Zone {
            start: 1 << 15,
            len: 1 << 15,
            write_pointer: (1 << 15) + written,
            kind,
            condition,
            ..Zone::default()
        };
        let sequential = 2;
        assert_eq!(zone(sequential, 1, 0).written_bytes(), 0, "empty");
        assert_eq!(zone(sequential, 2, 8).written_bytes(), 4096);
        assert_eq!(
            zone(sequential, 0xe, u64::MAX >> 20).written_bytes(),
            16 << 20,
            "full: it has no pointer"
        );
        assert_eq!(zone(1, 0, 0).written_bytes(), 16 << 20, "conventional");
    }

    #[test]
    fn a_regular_file_is_refused() {
        let file = tempfile::tempfile().unwrap();
        let errors = [
            block_device_size(&file).unwrap_err(),
            zone_written_bytes(&file).unwrap_err(),
            logical_block_size(&file).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
