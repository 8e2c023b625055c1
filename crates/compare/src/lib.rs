//! Runs compared with each other: which cells of two or more Records are alike ([`matching`]), what differs between the runs
//! ([`differences`]), how each figure changed and how sure that is ([`compare`]), what a condition makes of it ([`Condition`]), the course
//! of one cell over many runs ([`Course`]), and the outliers among many disks ([`fleet`]). A pure function of Records: it draws nothing, and it names no cause.

mod change;
mod compared;
mod condition;
mod course;
mod differing;
mod figure;
pub mod fleet;
mod log_ratio;
mod matching;
mod missing;
mod parts;
mod repeated;
mod spread;
#[cfg(test)]
mod testing;

pub use change::{Answer, CellChange, Certainty, Change, Unknown};
pub use compared::{Basis, Compared, MOST_OCTAVES, RunPair, compare};
pub use condition::{BadCondition, Condition, Direction, Judgement, judge};
pub use course::{Course, CourseError, LeftOut, Point, Shape, course};
pub use differing::{Difference, differences};
pub use figure::Metric;
pub use matching::{Matched, matching};
pub use missing::{Missing, OneRun, WhyMissing};
pub use parts::with_parts;
pub use repeated::repeated;

/// The chance that any of all figures of a comparison is called changed although none has.
pub const ALPHA: f64 = 0.05;
