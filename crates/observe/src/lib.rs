//! The room `observe`: what the kernel counted while a cell ran. It reads sysfs and procfs and returns raw evidence. It never
//! opens anything for writing, derives no rates, draws no conclusions and prints nothing.
//!
//! [`KernelObserver`] takes BPF programs in the block layer where it may, and the counters of sysfs and procfs in any case; the
//! runner knows only the trait [`Observer`] and [`EvidenceSum`].

pub mod bpf;
mod cgroups;
pub mod counted;
pub mod delta;
pub mod diskstat;
pub mod host;
pub mod kernel;
mod last_look;
pub mod limits;
mod loop_files;
pub mod place;
mod price;
pub mod process;
mod processor;
mod quota;
mod sampler;
pub mod series;
pub mod sim;
mod split_parts;
pub mod stack;
mod still;
pub mod sum;
mod sysfs;
pub mod visit;
pub mod watch;
mod watched;

pub use counted::counted;
pub use delta::{CountersWentBack, delta};
pub use diskstat::parse_stat;
pub use host::{available_memory_bytes, host};
pub use kernel::{DEFAULT_SAMPLE_WIDTH_NS, KernelObserver};
pub use limits::limits;
pub use series::Series;
pub use sim::SimObserver;
pub use stack::Stack;
pub use sum::EvidenceSum;
pub use visit::{DeviceCounts, DeviceVisit, Observer, VisitEvidence};

use std::path::{Path, PathBuf};

/// What can go wrong while counters are read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum ObserveError {
    /// A file of the kernel could not be read.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A line of counters has fewer fields than any kernel since 2.6 prints.
    #[error("{found} counters where at least {wanted} were expected")]
    TooFewFields { found: usize, wanted: usize },
    /// This field is not a number.
    #[error("{0:?} is not a counter")]
    NotANumber(String),
    /// A path leads to no block device: memory, a network, or what the kernel does not show here.
    #[error("no block device is known below {}", path.display())]
    NoDevice { path: PathBuf },
    /// A saved tree whose `diskstats` has no line, as in a container that hides it.
    #[error("{} lists no device", path.display())]
    NoDiskstats { path: PathBuf },
    /// Two saved trees in the wrong order, or of two boots.
    #[error(
        "the second tree is not later than the first: uptime {}.{:02} s, then {}.{:02} s",
        from_ticks / 100, from_ticks % 100, to_ticks / 100, to_ticks % 100
    )]
    NotLater { from_ticks: u64, to_ticks: u64 },
    /// No saved tree has counters of this device.
    #[error("neither tree has a device {name:?}")]
    NotInTree { name: String },
}

/// Why the counters of a device do not say what it did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what the messages say")]
pub enum CountersError {
    /// They cannot be read.
    #[error("no counters of {device}: {cause}")]
    Unreadable { device: String, cause: String },
    /// The device was registered anew.
    #[error("counters of {device}: {back}")]
    WentBack { device: String, back: CountersWentBack },
    /// They did not move, which proves nothing of this driver.
    #[error("the counters of {device} stood still, and {why}")]
    StoodStill { device: String, why: &'static str },
    /// They did not move, and the kernel is known not to count.
    #[error("queue/iostats of {device} is 0, and its counters stood still")]
    SwitchedOff { device: String },
    /// An array has counted a part of what its members moved.
    #[error(
        "{device} counted less than its members moved: before Linux 6.6, RAID 0 may not count the part of an I/O that it cuts off at \
         the end of a chunk"
    )]
    Partial { device: String },
}

/// A small text file, or the error with its path.
fn read_text(path: &Path) -> Result<String, ObserveError> {
    std::fs::read_to_string(path).map_err(|source| ObserveError::Read { path: path.to_owned(), source })
}
