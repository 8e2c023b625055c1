//! The number by which the kernel knows a block device. It refers to a device only as long as that device exists.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// Major and minor number, spelled `8:16` as in sysfs and mountinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev` of stat(2).
    pub fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        let number: DeviceNumber = "259:1048575\n".parse().unwrap();
        assert_eq!(number.to_string(), "259:1048575");
        assert_eq!(DeviceNumber::from_raw(rustix::fs::makedev(259, 1_048_575)), number);
        for text in ["", "8", "8:", ":1", "8:x", "-1:0", "8:16:1"] {
            assert!(text.parse::<DeviceNumber>().is_err(), "{text}");
        }
    }
}
