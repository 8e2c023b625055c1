//! What the list of commands says of `rdsk watch`. Text only.

/// One line.
pub(crate) const SUMMARY: &str = "Show live what block devices do, or what the I/O of a command became";
