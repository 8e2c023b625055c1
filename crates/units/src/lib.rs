//! Quantities and their words: how rdsk reads `4k` and `500ms`, and how it writes `4 KiB` and `1.23 ms`.
//! This room turns text into numbers and numbers into text; it never does I/O, never reads a clock and
//! never rounds what it parses.

mod bytes;
mod fraction;
mod number;
mod printable;
mod rate;
mod size_error;
mod time;
mod time_error;
mod words;

pub use bytes::Bytes;
pub use fraction::{Fraction, FractionError};
pub use printable::printable;
pub use rate::Rate;
pub use size_error::SizeError;
pub use time::Nanos;
pub use time_error::TimeError;
pub use words::{count, grouped, percent};
