//! Programs that get only a part of a processor: a control group with a CPU quota, of version 1 or 2, removed on drop. It never
//! touches a group that it did not create.

use crate::throttle::{command_in, remove};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The usual mount points of version 1's cpu controller and of version 2.
const V1: &str = "/sys/fs/cgroup/cpu";
const V2: &str = "/sys/fs/cgroup";
/// The kernel's own period, in µs.
const PERIOD_US: u32 = 100_000;

/// A group whose processes together get a part of one processor.
#[derive(Debug)]
pub struct CpuQuota {
    group: PathBuf,
}

impl CpuQuota {
    /// Makes a group that gets so many per cent of one processor, in each period of 100 ms. It has the largest weight
    /// there is, so that it gets them beside whatever else runs.
    ///
    /// # Errors
    /// Those of making the group; `NotFound` where no controller for processors is mounted, or version 2 does not hand
    /// it on.
    pub fn new(percent: u32) -> io::Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let name = format!("rdsk-quota-{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let quota_us = PERIOD_US / 100 * percent;
        let v1 = Path::new(V1);
        let (parent, quota, weight) = if v1.join("cpu.cfs_quota_us").exists() {
            (v1, ("cpu.cfs_quota_us", quota_us.to_string()), ("cpu.shares", "262144"))
        } else {
            let quota = format!("{quota_us} {PERIOD_US}");
            (Path::new(V2), ("cpu.max", quota), ("cpu.weight", "10000"))
        };
        let group = parent.join(name);
        fs::create_dir(&group)?;
        let made = Self { group };
        fs::write(made.group.join(quota.0), quota.1)?;
        fs::write(made.group.join(weight.0), weight.1)?;
        Ok(made)
    }

    /// A command that runs `inner` inside the group from its first instruction on: program, arguments, environment and
    /// directory are kept; standard streams must be set on what is returned.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "the command is used up: what counts is the one returned"
    )]
    pub fn command(&self, inner: Command) -> Command {
        command_in(&self.group, &inner)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        remove(&self.group);
    }
}

/// Whether such groups can be made here: makes an empty one and removes it.
pub(crate) fn probe() -> io::Result<()> {
    CpuQuota::new(50).map(drop)
}
