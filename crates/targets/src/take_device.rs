//! How the processes of a host come to their common hold of a block device: one of them takes it, and the others get the same open file from
//! the kernel.

use crate::device_hold::DeviceHold;
use crate::display::shown;
use crate::error::TargetError;
use crate::examined::{Examined, Place};
use crate::probe;
use rdsk_sys::device_number::DeviceNumber;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use std::os::fd::OwnedFd;

impl DeviceHold {
    /// Takes the device that was examined and authorized; nothing is written.
    ///
    /// # Errors
    /// Where it is no block device or another one by now, or where another program holds it.
    pub fn take(examined: &Examined) -> Result<Self, TargetError> {
        let path = &examined.path;
        let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = probe::open_retrying_busy(path, flags)
            .map_err(|errno| TargetError::from_io(path, "opened", errno.into()))?;
        Self::checked(file, examined)
    }

    /// The hold that another process of this host has as this descriptor.
    ///
    /// # Errors
    /// Where the kernel does not give it, or it leads to another device.
    pub fn of_process(process: u32, descriptor: i32, examined: &Examined) -> Result<Self, TargetError> {
        let failed = |errno: Errno| {
            TargetError::from_io(&examined.path, "shared with another rank of this host", errno.into())
        };
        let number = i32::try_from(process).ok().and_then(Pid::from_raw);
        let process = number.ok_or(Errno::SRCH).map_err(failed)?;
        let process = rustix::process::pidfd_open(process, PidfdFlags::empty()).map_err(failed)?;
        let file =
            rustix::process::pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).map_err(failed)?;
        let hold = Self::checked(file, examined)?;
        // Only a hold keeps this process from taking the device itself.
        match rustix::fs::open(&examined.path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty())
        {
            Err(Errno::BUSY) => Ok(hold),
            _ => Err(TargetError::Changed { path: shown(&examined.path), what: "no other rank holds it" }),
        }
    }

    fn checked(file: OwnedFd, examined: &Examined) -> Result<Self, TargetError> {
        let Place::Block { major_minor: number, .. } = examined.place else {
            return Err(TargetError::NotMeasurable {
                path: shown(&examined.path),
                what: "is no block device",
            });
        };
        let stat = rustix::fs::fstat(&file)
            .map_err(|errno| TargetError::from_io(&examined.path, "examined", errno.into()))?;
        let is_it = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
            && DeviceNumber::from_raw(stat.st_rdev) == number;
        if is_it {
            return Ok(Self::new(file, number));
        }
        Err(TargetError::Changed { path: shown(&examined.path), what: "its path leads to another device" })
    }
}
