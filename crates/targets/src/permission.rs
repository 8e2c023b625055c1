//! What a plan does to a target and what the user has allowed. Data only; `authorize` decides.

/// What a plan does to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes, and may read.
    Write,
}

/// Whether a regular file may be overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// `--overwrite` was given.
    Allowed,
    /// It was not.
    #[default]
    Refused,
}

/// What the user allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// The word after `--destroy`: the identity of the one device that may be overwritten.
    pub destroy: Option<String>,
    /// Whether a regular file may be overwritten.
    pub overwrite: Overwrite,
}
