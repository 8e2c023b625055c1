//! The environment of the benchmark: its own zram device and page-cached file, on one processor. Both are removed afterwards;
//! nothing that existed before is touched.

use crate::programs::{checked, rdsk_command};
use anyhow::{Context as _, Result};
use rdsk_testkit::{ZramDevice, wait_until};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Small enough for the processor's caches, so that issuing I/O is compared and not the memory behind it.
const BYTES: usize = 16 << 20;

/// What is read: something of the benchmark's own, which goes away with it.
pub(crate) struct BenchTarget {
    pub(crate) path: PathBuf,
    /// `direct` or `buffered`.
    pub(crate) io_path: &'static str,
    pub(crate) about: &'static str,
    _device: Option<ZramDevice>,
    _file: Option<NamedTempFile>,
}

impl BenchTarget {
    /// A zram device full of data that does not compress.
    pub(crate) fn zram() -> Result<Self> {
        let device = ZramDevice::create(BYTES).context("a zram device, which needs root and its driver")?;
        Ok(Self {
            path: device.path().to_owned(),
            io_path: "direct",
            about: "a zram device of 16 MiB, direct (it has no NOWAIT: io_uring gives every read to the kernel's workers)",
            _device: Some(device),
            _file: None,
        })
    }

    /// A file that is in the page cache as a whole.
    pub(crate) fn file() -> Result<Self> {
        let mut file = NamedTempFile::with_prefix("rdsk-bench-")?;
        io::copy(&mut File::open("/dev/urandom")?.take(BYTES as u64), file.as_file_mut())?;
        file.as_file().sync_all()?;
        fs::read(file.path())?;
        let (path, about) = (file.path().to_owned(), "a page-cached file of 16 MiB, buffered");
        Ok(Self { path, io_path: "buffered", about, _device: None, _file: Some(file) })
    }
}

/// Keeps a program and the kernel's workers for it on one processor, and others off it as far as possible.
pub(crate) struct Confinement {
    /// A cpuset of cgroup v1 with the one processor.
    group: Option<PathBuf>,
    /// Whether programs run with real-time priority (`SCHED_FIFO`).
    realtime: bool,
}

impl Confinement {
    pub(crate) fn to(cpu: usize) -> Self {
        let group = PathBuf::from(format!("/sys/fs/cgroup/cpuset/rdsk-bench-{}", std::process::id()));
        let is_made = fs::create_dir(&group).is_ok();
        let is_set = is_made
            && fs::write(group.join("cpuset.cpus"), cpu.to_string()).is_ok()
            && fs::write(group.join("cpuset.mems"), "0").is_ok();
        if is_made && !is_set {
            remove_group(&group);
        }
        let realtime = checked(Command::new("chrt").args(["-f", "10", "true"])).is_ok();
        Self { group: is_set.then_some(group), realtime }
    }

    pub(crate) fn describe(&self) -> String {
        let workers = match self.group {
            Some(_) => "the kernel's workers are confined to the same processor",
            None => "the kernel's workers are not confined (no cpuset group can be created)",
        };
        let others = match self.realtime {
            true => "runs have real-time priority",
            false => "runs share the processor with others",
        };
        format!("{workers}; {others}")
    }

    /// The program, confined.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut words: Vec<PathBuf> = Vec::new();
        if let Some(group) = &self.group {
            let script = r#"echo $$ > "$1" || exit 126; shift; exec "$@""#;
            words.extend(["sh", "-c", script, "sh"].map(PathBuf::from));
            words.push(group.join("tasks"));
        }
        if self.realtime {
            words.extend(["chrt", "-f", "10"].map(PathBuf::from));
        }
        words.push(program.to_owned());
        let mut command = rdsk_command(&words[0]);
        command.args(&words[1..]);
        command
    }
}

impl Drop for Confinement {
    fn drop(&mut self) {
        self.group.iter().for_each(|group| remove_group(group));
    }
}

fn remove_group(group: &Path) {
    // A group is busy for a moment after its last program has gone.
    if !wait_until(Duration::from_secs(1), || fs::remove_dir(group).is_ok()) {
        eprintln!("cannot remove {}", group.display());
    }
}
