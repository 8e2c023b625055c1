//! Quantities as text: how rdsk reads `4k` and `500ms`, and how it writes `4 KiB` and `1.23 ms`. This room turns text
//! into numbers and numbers into text; it never does I/O, never reads a clock and never rounds what it parses.

mod bytes;
mod decimal;
mod error;
mod fraction;
mod number_format;
mod printable;
mod rate;
mod time;

pub use bytes::Bytes;
pub use error::{Quantity, QuantityError, Reason};
pub use fraction::Fraction;
pub use number_format::{count, grouped, percent};
pub use printable::printable;
pub use rate::Rate;
pub use time::Nanos;
