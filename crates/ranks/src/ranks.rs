//! Messages between ranks, whatever carries them.

use crate::error::RanksError;

/// What a message is about; messages of one tag between two ranks keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A round trip.
    Clock = 1,
    /// From all ranks towards rank 0.
    Up = 2,
    /// From rank 0 to all.
    Down = 3,
    /// A document in pieces.
    Document = 4,
}

/// Messages that a rank has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The ranks of a run, as one of them sees them.
pub trait Ranks: Send + Sync {
    /// Its number, from 0.
    fn rank(&self) -> u32;
    /// How many there are, at least 1.
    fn size(&self) -> u32;
    /// Sends a message; may return before it is received.
    ///
    /// # Errors
    /// When that rank is gone.
    fn send(&self, to: u32, tag: Tag, bytes: &[u8]) -> Result<(), RanksError>;
    /// Waits for the next message of that rank with this tag.
    ///
    /// # Errors
    /// When that rank is gone, or a signal came.
    fn receive(&self, from: u32, tag: Tag) -> Result<Vec<u8>, RanksError>;
    /// What it has sent so far.
    fn traffic(&self) -> Traffic;
}
