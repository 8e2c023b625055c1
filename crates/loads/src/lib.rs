//! The room `loads`: descriptions of loads and needs as data. It turns the words of a command line, of a TOML file or of a job file of fio into jobs, and holds
//! the needs that were published. It opens no file, and judges nothing.

mod document;
mod error;
mod fio;
mod job_words;
mod needs;
mod wording;

pub use document::{LoadDocument, NeedDocument, load, need};
pub use error::LoadError;
pub use fio::{FioError, FioLoad, FioPlace, FioTarget, JobFile, Refusal, Surroundings};
pub use job_words::JobWords;
pub use needs::{NAMES, built_in, text};
