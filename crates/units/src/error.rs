//! What can be wrong with a written quantity, and what to write instead. `bytes`, `time` and `fraction` decide.

use crate::printable;

/// What a text was expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A number of bytes.
    Size,
    /// A duration.
    Time,
    /// A share of one.
    Share,
}

/// What is wrong with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was written.
    Empty,
    /// It starts with `-`.
    Negative,
    /// It starts with `+`, which elsewhere means "more than" (find) or "grow by" (truncate).
    Sign,
    /// No ASCII digits where they must be, such as `NaN`, `.5`, `5.` or digits of another script.
    NotANumber,
    /// The number is followed by something that is not a unit.
    UnknownUnit {
        /// The number before it, as given.
        number: String,
        /// The unit as given.
        unit: String,
    },
    /// Parts of a duration that repeat, grow, or follow a fraction, such as `5s 1h` or `1.5h 3s`.
    OutOfOrder,
    /// More than 64 bits can count: 16 EiB, or 584 years in nanoseconds.
    Overflow,
    /// It ends in the middle of a byte or a nanosecond.
    NotWhole,
    /// Zero where something must be moved or time must pass; only `parse_positive` reports this.
    Zero,
    /// A share that is not above zero and below one.
    OutOfRange,
}

/// Why a text is not the expected quantity: the message; [`QuantityError::hint`] says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", message(*.quantity, .input, .reason))]
pub struct QuantityError {
    /// What was expected.
    pub quantity: Quantity,
    /// The text as given.
    pub input: String,
    /// What is wrong with it.
    pub reason: Reason,
}

fn message(quantity: Quantity, input: &str, reason: &Reason) -> String {
    let noun = match quantity {
        Quantity::Size => "size",
        Quantity::Time => "time",
        Quantity::Share => "share",
    };
    let what = match (reason, quantity) {
        (Reason::Empty, _) => return format!("the {noun} is empty"),
        (Reason::Negative, _) => "is negative",
        (Reason::Sign, _) => "has a sign",
        (Reason::NotANumber, _) => "is not a number",
        (Reason::UnknownUnit { unit, .. }, Quantity::Size) => {
            &format!("has an unknown suffix \"{}\"", printable(unit))
        }
        (Reason::UnknownUnit { unit, .. }, _) => &format!("has an unknown unit \"{}\"", printable(unit)),
        (Reason::OutOfOrder, _) => "has parts out of order",
        (Reason::Overflow, Quantity::Time) => "is too long",
        (Reason::Overflow, _) => "is too large",
        (Reason::NotWhole, Quantity::Time) => "is finer than a nanosecond",
        (Reason::NotWhole, _) => "is not a whole number of bytes",
        (Reason::Zero, _) => "is zero",
        (Reason::OutOfRange, _) => "is not between 0 and 1",
    };
    format!("{noun} \"{}\" {what}", printable(input))
}

impl QuantityError {
    /// What is wrong with the text `input`.
    pub(crate) fn new(quantity: Quantity, input: &str, reason: Reason) -> Self {
        Self { quantity, input: input.to_owned(), reason }
    }

    /// A concrete thing to write instead, one line, without a full stop.
    pub fn hint(&self) -> String {
        if let Reason::Negative | Reason::Sign = self.reason {
            let unsigned = self.input.trim().trim_start_matches(['-', '+', '\u{2212}']);
            return format!("write {} without a sign", printable(unsigned));
        }
        match self.quantity {
            Quantity::Size => self.size_hint(),
            Quantity::Time => self.time_hint().to_owned(),
            Quantity::Share => self.share_hint(),
        }
    }

    fn size_hint(&self) -> String {
        let hint = match &self.reason {
            Reason::UnknownUnit { number, unit } => return suffix_hint(number, unit),
            Reason::NotANumber => "write digits first, then a suffix, such as 4096, 4k, 0.5M or 1.5GiB",
            Reason::Overflow => "write less than 16384P (2^64 bytes)",
            Reason::NotWhole => {
                "write the exact bytes, such as 1536, or a fraction that comes out whole, such as 1.5k"
            }
            Reason::Zero => "write a size above zero, such as 4k",
            _ => "write a size such as 4k, 1M or 1.5G",
        };
        hint.to_owned()
    }

    fn time_hint(&self) -> &'static str {
        match &self.reason {
            Reason::NotANumber => "write digits first, then a unit, such as 5s, 0.5s or 500ms",
            Reason::UnknownUnit { unit, .. } => match unit.as_str() {
                "M" => "write m or min for minutes, ms for milliseconds",
                "S" | "sec" | "secs" | "second" | "seconds" => "write s for seconds",
                "d" | "day" | "days" => "write days in hours, such as 24h",
                "H" | "hr" | "hour" | "hours" => "write h for hours",
                _ => "the units are ns, us or µs, ms, s, m or min, and h; a bare number is seconds",
            },
            Reason::OutOfOrder => {
                "write the larger unit first and a fraction only in the last part, such as 1h 30m or 2min 5.5s"
            }
            Reason::Overflow => "write at most 5000000h",
            Reason::NotWhole => "write whole nanoseconds, such as 250ns",
            Reason::Zero => "write a time above zero, such as 5s",
            _ => "write a time such as 5s, 500ms or 2m",
        }
    }

    fn share_hint(&self) -> String {
        let number = self.input.trim();
        // Most likely a percentage without its sign.
        let is_percent = number.parse().is_ok_and(|value: f64| (1.0..100.0).contains(&value));
        match self.reason {
            Reason::OutOfRange if is_percent => format!("write {number}% for {number} percent"),
            Reason::OutOfRange => "write more than 0% and less than 100%, such as 2%".to_owned(),
            _ => "write a percentage or a share of one, such as 2% or 0.02".to_owned(),
        }
    }
}

/// What a wrong suffix most likely meant: both readings are named, none is chosen.
fn suffix_hint(number: &str, suffix: &str) -> String {
    let lower = suffix.to_ascii_lowercase();
    let prefix = ["k", "m", "g", "t", "p"].iter().find(|letter| {
        let tail = lower.strip_prefix(**letter);
        matches!(tail, Some("" | "b" | "i" | "ib" | "bit" | "bits" | "byte" | "bytes" | "bps"))
    });
    if let Some(letter) = prefix {
        let binary = letter.to_ascii_uppercase();
        let decimal = if *letter == "k" { "k" } else { &binary };
        return format!("write {number}{binary}iB (powers of 1024) or {number}{decimal}B (powers of 1000)");
    }
    let hint = match lower.as_str() {
        "b" => {
            &format!("write {number} for bytes, or the bytes of {number} blocks of 512 as {number} times 512")
        }
        "byte" | "bytes" => &format!("write {number} or {number}B"),
        "s" | "sector" | "sectors" | "block" | "blocks" => {
            "write bytes: a sector of the kernel's counters is 512 bytes, so 8 sectors are 4k"
        }
        other if other.starts_with('e') => "write exbibytes as 1024P, and numbers without an exponent",
        other if other.starts_with([',', '_', '\'', '.']) => {
            "write the number without separators, with a point before decimals, such as 1048576 or 1.5M"
        }
        _ => "the suffixes are B, k M G T P or KiB … PiB (powers of 1024), and kB … PB (powers of 1000)",
    };
    hint.to_owned()
}
