//! Records with a cell of `stripe`, for the tests of what is read out of them.

use crate::fixtures::stripe::{Layout, counted_cells, sweep_cell};
use crate::fixtures::{disk, record};
use rdsk_model::Record;

/// An array with parity, without its members' counters.
pub(crate) fn array(chunk_bytes: u64, data: u64) -> Record {
    record(vec![disk()], vec![sweep_cell(Some(Layout { chunk_bytes, data }))])
}

/// The same with them.
pub(crate) fn counted(chunk_bytes: u64, data: u64) -> Record {
    record(vec![disk()], counted_cells(Layout { chunk_bytes, data }))
}

/// One device.
pub(crate) fn single() -> Record {
    record(vec![disk()], vec![sweep_cell(None)])
}
