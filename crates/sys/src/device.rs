//! What the kernel reports about an open block device. It never opens one, and never changes one.
#![allow(unsafe_code, reason = "these ioctls have no safe wrapper")]

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

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
    fn a_regular_file_is_refused() {
        let file = tempfile::tempfile().unwrap();
        for error in [block_device_size(&file).unwrap_err(), logical_block_size(&file).unwrap_err()] {
            assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        }
    }
}
