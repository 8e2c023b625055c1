//! The exclusive hold of a block device that several processes of a host share. As long as one of them has it, no other program can mount
//! the device or take it exclusively, however the others end. Nothing is read or written through it.

use rdsk_sys::device_number::DeviceNumber;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A block device that is open with `O_EXCL`, for as long as any process has this open file.
#[derive(Debug)]
pub struct DeviceHold {
    file: OwnedFd,
    number: DeviceNumber,
}

/// Two holds of one device are alike.
impl PartialEq for DeviceHold {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for DeviceHold {}

impl DeviceHold {
    /// What has this device open exclusively.
    pub(crate) const fn new(file: OwnedFd, number: DeviceNumber) -> Self {
        Self { file, number }
    }

    /// The descriptor by which other processes of this host get it.
    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// The device.
    pub(crate) const fn number(&self) -> DeviceNumber {
        self.number
    }
}
