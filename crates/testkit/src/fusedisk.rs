//! A disk of known behaviour in real time: one file served through FUSE, whose requests take as long as a model of
//! `rdsk-disk` or a programmed [`Behaviour`] says, and a loop device over it. It measures nothing: it is the reference
//! for measurements.
//!
//! What is programmed is the time from a request's arrival here to its answer. The path through the kernel is added to it,
//! unless it was measured and is subtracted ([`FuseDisk::set_path_ns`]).

mod behaviour;
mod log;
mod queue;
mod serve;

pub use behaviour::{Behaviour, Bucket, Cost, Extra, Stall, Zone};
pub use log::{Counts, LOG_ENTRIES, RequestOutcome, Served};
pub use rdsk_disk::{Device, FirstAccessParams, FirstOf, Op, SleepParams};

use crate::loopdev::{DirectIo, LoopDevice};
use crate::tool::{remove_directory, unmount};
use behaviour::Programmed;
use fuser::{BackgroundSession, Config, MountOption, Session};
use queue::{Queue, lock};
use rdsk_disk::{Completion, Request};
use rustix::thread::CpuSet;
use serve::{Disk, DiskState, FILE_NAME, OneFile};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Threads that answer. One waits for the next answer's time while others may still copy data to the kernel.
const ANSWERING_THREADS: usize = 4;
/// Default capacity.
const DEFAULT_BYTES: u64 = 64 << 20;

/// The source of the times of requests: a model of a real device, or what a test programmed.
#[derive(Clone, Debug)]
pub struct Model(Source);

#[derive(Clone, Debug)]
enum Source {
    Simulated(Box<Device>),
    Programmed(Box<Programmed>),
}

impl From<Device> for Model {
    fn from(device: Device) -> Self {
        Self(Source::Simulated(Box::new(device)))
    }
}

impl From<Behaviour> for Model {
    fn from(behaviour: Behaviour) -> Self {
        Self(Source::Programmed(Box::new(Programmed::new(behaviour))))
    }
}

impl Model {
    fn capacity_bytes(&self) -> Option<u64> {
        match &self.0 {
            Source::Simulated(device) => Some(device.capacity_bytes()),
            Source::Programmed(_) => None,
        }
    }

    /// Takes a request at `now_ns`, which never goes back.
    fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        match &mut self.0 {
            Source::Simulated(device) => device.submit(now_ns, request),
            Source::Programmed(programmed) => programmed.submit(now_ns, request),
        }
    }
}

/// The options of a [`FuseDisk`].
#[derive(Clone, Debug)]
pub struct Builder {
    capacity_bytes: Option<u64>,
    model: Model,
    cpu: Option<usize>,
}

impl Builder {
    /// Size in bytes, a multiple of 512 (default: that of the model of a real device, else 64 MiB).
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity_bytes = Some(bytes);
        self
    }

    /// The source of times: a [`Device`] of `rdsk-disk` or a [`Behaviour`] (default: one that answers immediately).
    pub fn device(mut self, model: impl Into<Model>) -> Self {
        self.model = model.into();
        self
    }

    /// Serves on one CPU, [`FuseDisk::cpu`], the last allowed one. A reader bound to the same CPU has the shortest path,
    /// since no other CPU must be woken: 20 µs instead of 35 on a virtual machine with two CPUs (Linux 6.18, measured 2026-11).
    pub fn on_one_cpu(mut self) -> Self {
        let allowed = rustix::thread::sched_getaffinity(None).ok();
        self.cpu = allowed.and_then(|cpus| (0..CpuSet::MAX_CPU).rev().find(|cpu| cpus.is_set(*cpu)));
        self
    }

    /// Makes the disk and mounts the file system with its file.
    ///
    /// # Errors
    /// If the capacity is 0, not a multiple of 512 or larger than the model's; errors of mounting.
    pub fn mount(self) -> io::Result<FuseDisk> {
        let most_bytes = self.model.capacity_bytes();
        let capacity_bytes = self.capacity_bytes.or(most_bytes).unwrap_or(DEFAULT_BYTES);
        if capacity_bytes == 0
            || !capacity_bytes.is_multiple_of(512)
            || most_bytes.is_some_and(|most| capacity_bytes > most)
        {
            let what =
                format!("a disk of {capacity_bytes} bytes: not a multiple of 512, or beyond the model's end");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let content = memory(capacity_bytes)?;
        let state = Mutex::new(DiskState { model: self.model, content, path_ns: 0, last_arrival_ns: 0 });
        let disk = Arc::new(Disk { capacity_bytes, state, queue: Queue::new(self.cpu) });
        Ok(FuseDisk { mounted: Arc::new(Mounted::new(disk)?) })
    }
}

/// A disk of known behaviour. On drop it is unmounted and its directory removed, once its loop devices are gone too.
#[derive(Clone, Debug)]
pub struct FuseDisk {
    mounted: Arc<Mounted>,
}

impl FuseDisk {
    /// A builder with the defaults: 64 MiB that answer immediately.
    pub fn builder() -> Builder {
        Builder { capacity_bytes: None, model: Behaviour::default().into(), cpu: None }
    }

    /// The file. Every read and write of it is a request, of any size up to 1 MiB; larger ones come in parts.
    pub fn file(&self) -> &Path {
        &self.mounted.file
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.disk().capacity_bytes
    }

    /// The processor that serves, if it is bound to one.
    pub fn cpu(&self) -> Option<usize> {
        self.disk().queue.cpu()
    }

    /// A loop device over the file, with direct I/O. It keeps the disk alive.
    ///
    /// # Errors
    /// Those of losetup.
    pub fn loop_device(&self) -> io::Result<LoopDevice> {
        let below: Arc<Mounted> = Arc::clone(&self.mounted);
        LoopDevice::builder().over(self.file()).direct_io(DirectIo::On).keep_until_drop(below).create()
    }

    /// Every request that was answered, in the order of the answers; the last [`LOG_ENTRIES`] of them.
    pub fn log(&self) -> Vec<Served> {
        self.disk().queue.log().entries.iter().copied().collect()
    }

    /// Sums over all requests that were answered.
    pub fn counts(&self) -> Counts {
        self.disk().queue.log().counts
    }

    /// Clears log and sums.
    pub fn clear_log(&self) {
        *self.disk().queue.log() = log::Log::default();
    }

    /// Changes the behaviour for requests that arrive from now on. The new device is idle; what is in the old one is answered
    /// at its due time.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        lock(&self.disk().state).model = behaviour.into();
    }

    /// Subtracts the time of the path through the kernel, both directions, in ns: a request counts as arrived half of it
    /// earlier, and its reply is sent half of it early, so that a program at the other end sees what was programmed, and a busy
    /// server is not idle while a reply is on its way. A program independent of this disk has to measure the path; until
    /// then it is 0.
    pub fn set_path_ns(&self, path_ns: u64) {
        lock(&self.disk().state).path_ns = path_ns;
    }

    fn disk(&self) -> &Disk {
        &self.mounted.disk
    }
}

/// Up to this size a disk has all its memory from the start: the first write of a page would be slower than later ones, which no model
/// of a disk says.
const ALLOCATED_BYTES: u64 = 128 << 20;

/// An unnamed file in memory, so that the machine's own disk does not affect the times; a large one is sparse.
fn memory(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("rdsk-fusedisk", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(bytes)?;
    if bytes <= ALLOCATED_BYTES {
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    }
    Ok(file)
}

/// The mounted file system with its threads.
struct Mounted {
    directory: PathBuf,
    file: PathBuf,
    disk: Arc<Disk>,
    session: Option<BackgroundSession>,
    answering: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Mounted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mounted").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Mounted {
    fn new(disk: Arc<Disk>) -> io::Result<Self> {
        // Not a TempDir: that would remove what is inside, and inside is the mounted file system.
        let directory = tempfile::Builder::new().prefix("rdsk-fuse-").tempdir()?.keep();
        let file = directory.join(FILE_NAME);
        // From here on Drop cleans up, even if the rest fails.
        let mut mounted = Self { directory, file, disk, session: None, answering: Vec::new() };
        for number in 0..ANSWERING_THREADS {
            let disk = Arc::clone(&mounted.disk);
            let thread = std::thread::Builder::new().name(format!("fusedisk-{number}"));
            mounted.answering.push(thread.spawn(move || disk.queue.serve())?);
        }
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("rdsk-fusedisk".into())];
        let filesystem = OneFile { disk: Arc::clone(&mounted.disk) };
        mounted.session = Some(Session::new(filesystem, &mounted.directory, &config)?.spawn()?);
        Ok(mounted)
    }

    fn end_threads(&mut self) {
        self.disk.queue.end();
        for thread in self.answering.drain(..) {
            if thread.join().is_err() {
                eprintln!("a thread that answers for {} has panicked", self.file.display());
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            remove_directory(&self.directory);
            return self.end_threads();
        };
        // A process that still has the file open is served until it closes it or ends, by threads that keep running.
        if !unmount(&self.directory) {
            return;
        }
        if let Err(error) = session.join() {
            eprintln!("the FUSE session of {} ended with {error}", self.directory.display());
        }
        self.end_threads();
    }
}
