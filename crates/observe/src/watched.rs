//! One block device and its counters: where they are, and whether they can be trusted. If not, it says why; it never
//! guesses.

use crate::CountersError;
use crate::delta::delta;
use crate::diskstat::{StatFile, without_flushes};
use crate::last_look::Sample;
use crate::loop_files::LoopWatch;
use crate::stack::Stack;
use crate::still::{doubt_in, doubted, why_off};
use crate::sysfs::{block_path, counts_flushes, why_unnamed};
use crate::visit::DeviceCounts;
use rdsk_model::{IntervalCounters, Target};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A device below a target.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) target: u32,
    pub(crate) name: String,
    /// Whether it is the target's own device rather than one below it.
    pub(crate) own: bool,
    directory: PathBuf,
    counts_flushes: bool,
    /// Why BPF programs cannot say when its I/O ends.
    pub(crate) why_unnamed: Option<&'static str>,
    /// Why its driver counts nothing, or not on every kernel, so that unchanged counters prove nothing.
    doubt: Option<&'static str>,
    /// Whether its counters have changed so far.
    pub(crate) has_moved: bool,
    /// The open file of the last successful sample, shared with the sampler.
    pub(crate) file: Option<Arc<StatFile>>,
}

/// The targets' own devices first, then the other devices of their filesystems, then those below them.
pub(crate) fn watched_devices(
    targets: &[Target],
    stacks: &[Stack],
    loops: &[LoopWatch],
    sys: &Path,
) -> Vec<Watched> {
    let mut watched: Vec<Watched> = Vec::new();
    for target in targets {
        let Some(device) = &target.device else { continue };
        let directory = sys.join("dev/block").join(&device.major_minor);
        watched.push(Watched::new(target.index, &device.name, directory, sys, true));
    }
    let mut add = |target: u32, name: &str, own: bool| {
        if !watched.iter().any(|device| device.target == target && device.name == name) {
            watched.push(Watched::new(target, name, block_path(sys, name), sys, own));
        }
    };
    for stack in stacks {
        stack.tops.iter().for_each(|name| add(stack.target, name, true));
    }
    for target in targets.iter().filter(|target| target.device.is_some()) {
        target.stack.iter().skip(1).for_each(|name| add(target.index, name, false));
        let stack = stacks.iter().find(|stack| stack.target == target.index);
        stack.map(Stack::lower).unwrap_or_default().iter().for_each(|name| add(target.index, name, false));
        // A partition's counters are not its disk's: a loop device below a partition must be counted itself.
        let of_target = loops.iter().filter(|watch| watch.target() == target.index);
        of_target.flat_map(LoopWatch::devices).for_each(|name| add(target.index, name, false));
    }
    watched
}

impl Watched {
    fn new(target: u32, name: &str, directory: PathBuf, sys: &Path, own: bool) -> Self {
        Self {
            target,
            name: name.to_owned(),
            own,
            counts_flushes: counts_flushes(&directory),
            why_unnamed: why_unnamed(name, sys),
            doubt: doubt_in(name, sys),
            has_moved: false,
            directory,
            file: None,
        }
    }

    /// Its directory in sysfs.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The differences between three samples: at the start, at the end of the I/O, and when everything was stable.
    ///
    /// # Errors
    /// What is missing or went back.
    pub(crate) fn counts(
        &self,
        [first, io, last]: [&Sample; 3],
        interval_ns: u64,
    ) -> Result<DeviceCounts, CountersError> {
        let first = first.as_ref().map_err(Clone::clone)?;
        let between = |after: &Sample| {
            delta(first, after.as_ref().map_err(Clone::clone)?)
                .map_err(|back| CountersError::WentBack { device: self.name.clone(), back })
        };
        let during_io = IntervalCounters { interval_ns, diskstat: between(io)? };
        Ok(DeviceCounts { until_stable: between(last)?, during_io, ..DeviceCounts::default() })
    }

    /// One sample, or why there is none. After an error the file is opened again, because a device that was removed and came
    /// back has a new one.
    pub(crate) fn read(&mut self) -> Sample {
        let sample = self.open().and_then(|file| file.read());
        let stat = sample.map_err(|error| {
            self.file = None;
            let cause =
                std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            CountersError::Unreadable { device: self.name.clone(), cause: format!("{error}{cause}") }
        })?;
        Ok(if self.counts_flushes { stat } else { without_flushes(stat) })
    }

    /// Why a difference of zero proves nothing for this device; `None` if it means that nothing happened.
    pub(crate) fn why_zero_is_unknown(&self) -> Option<CountersError> {
        if self.has_moved {
            return None;
        }
        self.doubt.map(|why| doubted(&self.name, why)).or_else(|| why_off(&self.name, &self.directory))
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
