//! What is wrong with the description of a load.

use rdsk_units::QuantityError;

/// Why a description is no load or need.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The text is no TOML, or has a key or a type that does not belong there.
    #[error("{0}")]
    Document(String),
    /// A value of a key cannot be used.
    #[error("{key}: {why}")]
    Value {
        /// The key, as in the file; flags have the same names.
        key: &'static str,
        /// What is wrong, in words.
        why: String,
    },
    /// A job contradicts itself.
    #[error("job {job} {why}")]
    Job {
        /// Its name.
        job: String,
        /// What is wrong, as the rest of the sentence.
        why: String,
    },
}

impl LoadError {
    /// The error of a quantity under a key.
    pub(crate) fn quantity(key: &'static str, error: &QuantityError) -> Self {
        Self::Value { key, why: error.to_string() }
    }
}
