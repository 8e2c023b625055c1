//! What the list of commands says of `rdsk compare`. Text only.

/// One line.
pub(crate) const SUMMARY: &str = "Compare runs cell by cell, and say what changed and how sure that is";
