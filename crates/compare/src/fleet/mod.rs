//! Many disks at once: which of them are slower than the others of their model, surely and by enough to matter. Each Record is reduced
//! to its figures ([`Gathering`]), so that hundreds need little memory. It names no cause.

mod gather;
mod judge;
mod tail;
#[cfg(test)]
mod tests;

pub use gather::{Disk, Figure, Gathering, Series};

/// Fewer disks that are alike say nothing of how much such disks differ.
pub const MIN_ALIKE: usize = 8;
/// A disk that is slower by less than this factor is no outlier, however sure that is.
pub const MIN_FACTOR: f64 = 1.15;

/// A disk that is slower than the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// Its place in [`Fleet::disks`].
    pub disk: usize,
    /// The figure of it that stands out most.
    pub worst: Figure,
    /// The median of that figure among the disks that it is compared with.
    pub median: f64,
    /// How many times slower, or longer for a latency, the figure is than this median.
    pub factor: f64,
    /// How many of its figures are slower than their medians by [`MIN_FACTOR`].
    pub slower: usize,
    /// How many of its figures were compared.
    pub compared: usize,
    /// Chance of such a disk among all that are compared if they are alike (Holm).
    pub p_adjusted: f64,
}

/// With which disks those of a group are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedWith {
    /// Each other.
    Firmware,
    /// All of their model: of their firmware there are fewer than [`MIN_ALIKE`].
    Model,
    /// None: there are too few.
    None,
}

/// The disks of one model and firmware.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The model; `None` where it is not known.
    pub model: Option<String>,
    /// The revision of its firmware.
    pub firmware: Option<String>,
    /// How many disks.
    pub disks: usize,
    /// Median of [`Fleet::reference`], and what leaves a twentieth of the disks below and above; `None` where none has that figure.
    pub rate: Option<(f64, f64, f64)>,
    /// How many of them are outliers.
    pub outliers: usize,
    /// What they are compared with.
    pub compared_with: ComparedWith,
}

/// The disks of many Records, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Every disk once, with its latest run.
    pub disks: Vec<Disk>,
    /// What was measured of them: a figure of a test each.
    pub series: Vec<Series>,
    /// The rate that most disks have; it stands for a model.
    pub reference: Option<usize>,
    /// By model and firmware, the largest group first.
    pub groups: Vec<Group>,
    /// The slowest first.
    pub outliers: Vec<Outlier>,
    /// How many disks were compared.
    pub compared: usize,
    /// How many hosts the disks are in.
    pub hosts: usize,
    /// Runs left out because a later one measured the same disk.
    pub replaced: usize,
    /// Runs left out because they have no figure of one disk.
    pub without_figures: usize,
}

impl Fleet {
    /// A series that a figure belongs to.
    pub fn series_of(&self, figure: Figure) -> &Series {
        &self.series[figure.series]
    }
}
