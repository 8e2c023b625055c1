//! A zram device for one test: a block device in memory that works on bios, does not support non-blocking I/O, and completes
//! each read within the call that submits it. It is added for the test and removed with it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::tool::wait_until;

const CONTROL: &str = "/sys/class/zram-control";

/// Sets up and takes down.
#[derive(Debug)]
pub struct ZramDevice {
    number: u32,
    path: PathBuf,
}

impl ZramDevice {
    /// A device of this many bytes, all written with incompressible data, whose I/Os the kernel counts.
    ///
    /// # Errors
    /// When the kernel has no zram, or this is not root.
    pub fn create(bytes: usize) -> io::Result<Self> {
        let answer = fs::read_to_string(Path::new(CONTROL).join("hot_add"))?;
        let number: u32 = answer.trim().parse().map_err(io::Error::other)?;
        let device = Self { number, path: PathBuf::from(format!("/dev/zram{number}")) };
        fs::write(device.sysfs("disksize"), bytes.to_string())?;
        fs::write(device.sysfs("queue/iostats"), "1")?;
        let mut random = fs::File::open("/dev/urandom")?;
        let mut file = fs::OpenOptions::new().write(true).open(&device.path)?;
        let copied = io::copy(&mut io::Read::take(&mut random, bytes as u64), &mut file)?;
        file.flush()?;
        file.sync_all()?;
        if copied != bytes as u64 {
            return Err(io::Error::other(format!("only {copied} of {bytes} bytes were written")));
        }
        Ok(device)
    }

    /// `/dev/zramN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads that the kernel has counted so far: field 1 of its stat.
    ///
    /// # Errors
    /// When sysfs cannot be read.
    pub fn reads(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.sysfs("stat"))?;
        text.split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| io::Error::other(format!("no reads in {text:?}")))
    }

    fn sysfs(&self, attribute: &str) -> PathBuf {
        Path::new("/sys/block").join(format!("zram{}", self.number)).join(attribute)
    }
}

impl Drop for ZramDevice {
    fn drop(&mut self) {
        // Other programs that look at a new device may hold it open for a moment.
        let remove = || fs::write(Path::new(CONTROL).join("hot_remove"), self.number.to_string());
        if !wait_until(Duration::from_secs(60), || remove().is_ok()) {
            eprintln!("cannot remove {}", self.path.display());
        }
    }
}
