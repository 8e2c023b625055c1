//! Several processes that measure as one, its ranks: messages between them, clocks compared by round trips, a common start, and the
//! result of all. It measures nothing itself, opens no file and prints nothing.

mod agree;
mod clocks;
mod error;
mod lockstep;
mod merge;
mod merge_cell;
#[cfg(feature = "mpi")]
mod mpi;
mod parts;
mod ranks;
mod summary;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;
mod tree;

pub use agree::agree;
pub use clocks::{GATE_TRIPS, RUN_TRIPS, compare_clocks};
pub use error::RanksError;
pub use lockstep::{Lockstep, Myself};
pub use merge::Merge;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use parts::{PIECE_BYTES, receive_document, send_document};
pub use ranks::{Ranks, Tag, Traffic};
pub use summary::{ClockShown, SlowRank, Starts, Summary, VisitShare, shares, slow_rank, summary};
pub use tree::{all_gather_is_true, broadcast, from_all};
