//! A disk of the benchmark's own whose times are known: the FUSE disk of `testkit` under a loop device. It is a process of its own,
//! since `testkit` is for tests only, and both go when that process is told to end.

use crate::step::{holds_within, read_lines};
use crate::tools::search_path;
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the disk may take to start and to stop.
const GRACE: Duration = Duration::from_secs(15);

/// The disk, while it is there.
pub(crate) struct Disk {
    server: Child,
    /// The loop device.
    pub(crate) device: PathBuf,
}

impl Disk {
    /// Starts it with so many bytes and these further flags of the program.
    pub(crate) fn start(program: &Path, bytes: u64, flags: impl Iterator<Item = String>) -> Result<Self> {
        let mut command = tied(program);
        command.arg("--loop").arg("--capacity").arg(bytes.to_string()).args(flags);
        let mut server = command.stdout(Stdio::piped()).spawn().context("cannot start the FUSE disk")?;
        let output = server.stdout.take().context("standard output is a pipe")?;
        // From here on Drop ends it, also when it says nothing.
        let mut disk = Self { server, device: PathBuf::new() };
        let lines = read_lines(output);
        for _file_then_device in 0..2 {
            let line = lines.recv_timeout(GRACE);
            disk.device = line.context("the FUSE disk did not start; it reported why above")?.into();
        }
        ensure!(disk.device.starts_with("/dev"), "{} is no device", disk.device.display());
        Ok(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to tell.
        let _ = kill_process(Pid::from_child(&self.server), Signal::TERM);
        if !holds_within(GRACE, || !matches!(self.server.try_wait(), Ok(None))) {
            eprintln!("process {} still serves {}", self.server.id(), self.device.display());
        }
    }
}

/// A program that is killed when this process ends.
pub(crate) fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command.env("PATH", search_path()).env("LC_ALL", "C").stdin(Stdio::null());
    command
}
