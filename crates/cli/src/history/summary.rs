//! What the list of commands says of the commands about the history.

pub(crate) const LIST: &str = "List the runs in the history, newest first";
pub(crate) const DELETE: &str = "Delete runs from the history";
