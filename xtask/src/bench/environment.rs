//! The environment of the benchmark: its own zram device and page-cached file, on one processor. Both are removed afterwards;
//! nothing that existed before is touched.

use crate::programs::{checked, rdsk_command};
use crate::step::holds_within;
use anyhow::{Context as _, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Small enough for the processor's caches, so that issuing I/O is compared and not the memory behind it.
const BYTES: usize = 16 << 20;

const ZRAM_CONTROL: &str = "/sys/class/zram-control";

/// What is read: something of the benchmark's own, which goes away with it.
pub(crate) struct BenchTarget {
    pub(crate) path: PathBuf,
    /// `direct` or `buffered`.
    pub(crate) io_path: &'static str,
    pub(crate) about: &'static str,
    /// The number of a zram device.
    zram: Option<u32>,
    _file: Option<NamedTempFile>,
}

impl BenchTarget {
    /// A zram device full of data that does not compress.
    pub(crate) fn zram() -> Result<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new(ZRAM_CONTROL).exists() {
            bail!("no zram device can be created: that needs root and the zram driver");
        }
        let number =
            fs::read_to_string(format!("{ZRAM_CONTROL}/hot_add")).context("cannot add a zram device")?;
        let number: u32 = number.trim().parse().context("hot_add gives a number")?;
        let target = Self {
            path: format!("/dev/zram{number}").into(),
            io_path: "direct",
            about: "a zram device of 16 MiB, direct (it has no NOWAIT: io_uring gives every read to the kernel's workers)",
            zram: Some(number),
            _file: None,
        };
        fs::write(format!("/sys/block/zram{number}/disksize"), BYTES.to_string())?;
        fill(&mut OpenOptions::new().write(true).open(&target.path)?)?;
        Ok(target)
    }

    /// A file that is in the page cache as a whole.
    pub(crate) fn file() -> Result<Self> {
        let mut file = NamedTempFile::with_prefix("rdsk-bench-")?;
        fill(file.as_file_mut())?;
        fs::read(file.path())?;
        let (path, about) = (file.path().to_owned(), "a page-cached file of 16 MiB, buffered");
        Ok(Self { path, io_path: "buffered", about, zram: None, _file: Some(file) })
    }
}

impl Drop for BenchTarget {
    fn drop(&mut self) {
        if let Some(number) = self.zram
            && let Err(error) = fs::write(format!("{ZRAM_CONTROL}/hot_remove"), number.to_string())
        {
            eprintln!("cannot remove {}: {error}", self.path.display());
        }
    }
}

fn fill(file: &mut File) -> Result<()> {
    let mut data = vec![0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut data)?;
    file.write_all(&data)?;
    file.sync_all()?;
    Ok(())
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
    if !holds_within(Duration::from_secs(1), || fs::remove_dir(group).is_ok()) {
        eprintln!("cannot remove {}", group.display());
    }
}
