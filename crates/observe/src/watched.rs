//! One block device whose counters are watched: where they are, and how far they can be trusted. It says why where they
//! cannot, and never guesses.

use crate::diskstat::{DiskStat, StatFile};
use crate::limits::block_path;
use crate::read_trimmed;
use rdsk_model::Target;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How far the counters can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// They count.
    Full,
    /// The driver counts nothing, or not on every kernel: counters that stand still show nothing.
    OnlyIfMoved(&'static str),
}

/// A device below a target.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) target: u32,
    pub(crate) name: String,
    /// Whether it is the target's own device, and not one below that.
    pub(crate) own: bool,
    directory: PathBuf,
    is_partition: bool,
    trust: Trust,
    file: Option<Arc<StatFile>>,
}

/// The targets' own devices first, then those below them.
pub(crate) fn watched_devices(targets: &[Target], sys: &Path) -> Vec<Watched> {
    let own = targets.iter().filter_map(|target| {
        let device = target.device.as_ref()?;
        let directory = sys.join("dev/block").join(&device.major_minor);
        Some(Watched::new(target.index, &device.name, directory, sys, true))
    });
    let below = targets.iter().filter(|target| target.device.is_some()).flat_map(|target| {
        let names = target.stack.iter().skip(1);
        names.map(|name| Watched::new(target.index, name, block_path(sys, name), sys, false))
    });
    own.chain(below).collect()
}

impl Watched {
    fn new(target: u32, name: &str, directory: PathBuf, sys: &Path, own: bool) -> Self {
        let is_partition = directory.join("partition").exists();
        let trust = trust_in(name, sys);
        Self { target, name: name.to_owned(), own, directory, is_partition, trust, file: None }
    }

    /// One sample, or why there is none. The file is opened anew where it was closed by an error before: a device that
    /// went away and came back has another one.
    pub(crate) fn read(&mut self) -> Result<DiskStat, String> {
        let iostats =
            self.directory.join(if self.is_partition { "../queue/iostats" } else { "queue/iostats" });
        if read_trimmed(&iostats).as_deref() == Some("0") {
            return Err(format!("queue/iostats of {} is 0, so the kernel does not count its I/O", self.name));
        }
        let sample = self.open().and_then(|file| file.read());
        let mut stat = sample.map_err(|error| {
            self.file = None;
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            format!("no counters of {}: {error}{cause}", self.name)
        })?;
        if self.is_partition {
            // The kernel prints zeros here because it counts flushes for whole disks only.
            (stat.flush_ios, stat.flush_ticks_ms) = (None, None);
        }
        Ok(stat)
    }

    /// The open file of the last good sample, to share with the sampler.
    pub(crate) fn file(&self) -> Option<Arc<StatFile>> {
        self.file.clone()
    }

    /// Why a difference of zero means nothing for this device; `None` where it means that nothing happened.
    pub(crate) fn why_zero_is_unknown(&self) -> Option<String> {
        match self.trust {
            Trust::Full => None,
            Trust::OnlyIfMoved(why) => Some(format!("the counters of {} stood still, and {why}", self.name)),
        }
    }

    fn open(&mut self) -> Result<Arc<StatFile>, crate::ObserveError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(StatFile::open(self.directory.join("stat"))?);
        self.file = Some(Arc::clone(&file));
        Ok(file)
    }
}

fn trust_in(name: &str, sys: &Path) -> Trust {
    if name.strip_prefix("ram").is_some_and(is_number) {
        return Trust::OnlyIfMoved("the ram disk driver counts no I/O");
    }
    if nvme_paths_of(name, sys) {
        return Trust::OnlyIfMoved("not every kernel counts the I/O of an NVMe multipath device");
    }
    Trust::Full
}

/// Whether `nvme0n1` has hidden devices `nvme0c0n1`, … for its paths: then it is the multipath device above them.
fn nvme_paths_of(name: &str, sys: &Path) -> bool {
    let Some((subsystem, namespace)) = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n')) else {
        return false;
    };
    if !is_number(subsystem) || !is_number(namespace) {
        return false;
    }
    let Ok(entries) = std::fs::read_dir(sys.join("class/block")) else { return false };
    let (prefix, suffix) = (format!("nvme{subsystem}c"), format!("n{namespace}"));
    entries.flatten().any(|entry| {
        let entry = entry.file_name();
        let controller = entry.to_str().and_then(|entry| entry.strip_prefix(&prefix)?.strip_suffix(&suffix));
        controller.is_some_and(is_number)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
