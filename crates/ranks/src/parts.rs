//! A document from one rank to another in pieces, so that the one that receives it never holds it whole.

use crate::error::RanksError;
use crate::ranks::{Ranks, Tag};

/// Bytes of a piece at most.
pub const PIECE_BYTES: usize = 1 << 18;

/// Sends a document: its pieces, and an empty one.
///
/// # Errors
/// When that rank is gone.
pub fn send_document(ranks: &dyn Ranks, to: u32, document: &[u8]) -> Result<(), RanksError> {
    for piece in document.chunks(PIECE_BYTES) {
        ranks.send(to, Tag::Document, piece)?;
        // That rank takes one piece at a time, and none waits there in memory.
        ranks.receive(to, Tag::Document)?;
    }
    ranks.send(to, Tag::Document, &[])
}

/// Receives a document piece by piece. Where a piece cannot be kept, the others are still received.
///
/// # Errors
/// When that rank is gone; what the first piece that could not be kept gave.
pub fn receive_document<E>(
    ranks: &dyn Ranks,
    from: u32,
    mut keep: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Result<(), E>, RanksError> {
    let mut kept = Ok(());
    loop {
        let piece = ranks.receive(from, Tag::Document)?;
        if piece.is_empty() {
            return Ok(kept);
        }
        if kept.is_ok() {
            kept = keep(&piece);
        }
        ranks.send(from, Tag::Document, &[])?;
    }
}
