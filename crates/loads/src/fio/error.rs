//! Why a job file of fio does not run here.

use std::fmt;

/// An option that is not understood, or that would ask for I/O that rdsk does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1 on.
    pub line: u32,
    /// What it says.
    pub option: String,
    /// What is wrong with it, in words.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, option, why } = self;
        write!(formatter, "{file}:{line}: {option}: {why}")
    }
}

/// What is wrong with a value, in words that follow its option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct BadValue(String);

impl BadValue {
    pub(super) fn into_words(self) -> String {
        self.0
    }
}

impl<T: Into<String>> From<T> for BadValue {
    fn from(words: T) -> Self {
        Self(words.into())
    }
}

/// Why there is no load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FioError {
    /// Options that cannot be; never empty.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
    /// It describes no job.
    #[error("{0} has no job: a section in brackets that is not [global]")]
    Empty(String),
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("\n")
}
