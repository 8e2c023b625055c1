//! A loop device that a task makes over a file of its own, and detaches when it goes away.

use crate::programs::{checked, text_of};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;

/// The device.
pub(crate) struct LoopDevice {
    /// `/dev/loop7`.
    pub(crate) path: String,
}

impl LoopDevice {
    /// Attaches one to the file; `is_direct` makes it read and write past the page cache.
    pub(crate) fn over(file: &Path, is_direct: bool) -> Result<Self> {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show"]).args(is_direct.then_some("--direct-io=on")).arg(file);
        let path = text_of(&mut command).context("a loop device")?;
        Ok(Self { path: path.trim().to_owned() })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Err(error) = checked(Command::new("losetup").arg("--detach").arg(&self.path)) {
            eprintln!("cannot detach {}: {error}", self.path);
        }
    }
}
