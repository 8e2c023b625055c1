//! The room `loads`: descriptions of loads and needs as data. It turns the words of a command line or of a TOML file into jobs, and holds
//! the needs that were published. It opens no file, and judges nothing.

mod document;
mod error;
mod job_words;
mod needs;
mod wording;

pub use document::{LoadDocument, NeedDocument, load, need};
pub use error::LoadError;
pub use job_words::JobWords;
pub use needs::{NAMES, built_in, text};
