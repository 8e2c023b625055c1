//! A document as the type that it should be, or the key at which it is not.

use crate::error::ImportError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The document of a program as the type of its kind.
pub(crate) fn typed<T: DeserializeOwned>(program: &'static str, document: Value) -> Result<T, ImportError> {
    serde_path_to_error::deserialize(document).map_err(|error| ImportError::Key {
        program,
        path: error.path().to_string(),
        why: error.into_inner().to_string(),
    })
}
