//! Why a description of I/O contradicts itself.

/// Why jobs contradict themselves, in words: the end of a sentence that names the job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub(crate) String);

impl From<&str> for Contradiction {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}
