//! What can be wrong with a duration, and what to write instead. Never decides what a duration is; `time`
//! does.

use crate::printable;

/// Why a text is not a duration. The message says what is wrong; [`TimeError::hint`] says what to write
/// instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Nothing was written.
    #[error("the time is empty")]
    Empty,
    /// A time below zero.
    #[error("time \"{}\" is negative", printable(.input))]
    Negative {
        /// The text as given.
        input: String,
    },
    /// A time with a plus sign.
    #[error("time \"{}\" has a sign", printable(.input))]
    Sign {
        /// The text as given.
        input: String,
    },
    /// The text, or a part of it, does not begin with a decimal number.
    #[error("time \"{}\" is not a number", printable(.input))]
    NotANumber {
        /// The text as given.
        input: String,
    },
    /// A number is followed by something that is no unit of time.
    #[error("time \"{}\" has an unknown unit \"{}\"", printable(.input), printable(.unit))]
    UnknownUnit {
        /// The text as given.
        input: String,
        /// The unit as given.
        unit: String,
    },
    /// Parts that repeat, grow, or follow a fraction, such as `5s 1h` or `1.5h 3s`.
    #[error("time \"{}\" has parts out of order", printable(.input))]
    OutOfOrder {
        /// The text as given.
        input: String,
    },
    /// More nanoseconds than 64 bits can count, which is 584 years.
    #[error("time \"{}\" is too long", printable(.input))]
    Overflow {
        /// The text as given.
        input: String,
    },
    /// The time ends in the middle of a nanosecond.
    #[error("time \"{}\" is finer than a nanosecond", printable(.input))]
    TooFine {
        /// The text as given.
        input: String,
    },
    /// Zero where time must pass; only `Nanos::parse_positive` says this.
    #[error("time \"{}\" is zero", printable(.input))]
    Zero {
        /// The text as given.
        input: String,
    },
}

impl TimeError {
    /// A concrete thing to write instead, one line, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            TimeError::Empty => "write a time such as 5s, 500ms or 2m".to_owned(),
            TimeError::Negative { input } | TimeError::Sign { input } => {
                let unsigned = input.trim().trim_start_matches(['-', '+', '\u{2212}']);
                format!("write {} without a sign", printable(unsigned))
            }
            TimeError::NotANumber { .. } => "write digits first, then a unit, such as 5s, 0.5s or 500ms".to_owned(),
            TimeError::UnknownUnit { unit, .. } => match unit.as_str() {
                "M" => "write m or min for minutes, ms for milliseconds".to_owned(),
                "S" | "sec" | "secs" | "second" | "seconds" => "write s for seconds".to_owned(),
                "d" | "day" | "days" => "write days in hours, such as 24h".to_owned(),
                "H" | "hr" | "hour" | "hours" => "write h for hours".to_owned(),
                _ => "the units are ns, us or µs, ms, s, m or min, and h; a bare number is seconds".to_owned(),
            },
            TimeError::OutOfOrder { .. } => {
                "write the larger unit first and a fraction only in the last part, such as 1h 30m or 2min 5.5s"
                    .to_owned()
            }
            TimeError::Overflow { .. } => "write at most 5000000h".to_owned(),
            TimeError::TooFine { .. } => "write whole nanoseconds, such as 250ns".to_owned(),
            TimeError::Zero { .. } => "write a time above zero, such as 5s".to_owned(),
        }
    }
}
