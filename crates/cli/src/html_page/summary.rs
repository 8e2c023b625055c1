//! What the list of commands says of `rdsk report`. Text only.

/// One line.
pub(crate) const SUMMARY: &str = "Write a page with figures of earlier runs, or the figures as files";
