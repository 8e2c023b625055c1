//! What can be wrong with a size, and what to write instead. Never decides what a size is; `bytes` does.

use crate::printable;

/// Why a text is not a size. The message says what is wrong; [`SizeError::hint`] says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Nothing was written.
    #[error("the size is empty")]
    Empty,
    /// A size below zero.
    #[error("size \"{}\" is negative", printable(.input))]
    Negative {
        /// The text as given.
        input: String,
    },
    /// A size with a plus sign, which elsewhere means "more than" (find) or "grow by" (truncate).
    #[error("size \"{}\" has a sign", printable(.input))]
    Sign {
        /// The text as given.
        input: String,
    },
    /// The text does not begin with a decimal number.
    #[error("size \"{}\" is not a number", printable(.input))]
    NotANumber {
        /// The text as given.
        input: String,
    },
    /// The number is followed by something that is no suffix.
    #[error("size \"{}\" has an unknown suffix \"{}\"", printable(.input), printable(.suffix))]
    UnknownSuffix {
        /// The text as given.
        input: String,
        /// The number before the suffix, as given.
        number: String,
        /// The suffix as given.
        suffix: String,
    },
    /// More bytes than 64 bits can count.
    #[error("size \"{}\" is too large", printable(.input))]
    Overflow {
        /// The text as given.
        input: String,
    },
    /// The size ends in the middle of a byte.
    #[error("size \"{}\" is not a whole number of bytes", printable(.input))]
    NotWhole {
        /// The text as given.
        input: String,
    },
    /// Zero where something must be moved; only `Bytes::parse_positive` says this.
    #[error("size \"{}\" is zero", printable(.input))]
    Zero {
        /// The text as given.
        input: String,
    },
}

impl SizeError {
    /// A concrete thing to write instead, one line, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            SizeError::Empty => "write a size such as 4k, 1M or 1.5G".to_owned(),
            SizeError::Negative { input } | SizeError::Sign { input } => {
                let unsigned = input.trim().trim_start_matches(['-', '+', '\u{2212}']);
                format!("write {} without a sign", printable(unsigned))
            }
            SizeError::NotANumber { .. } => {
                "write digits first, then a suffix, such as 4096, 4k, 0.5M or 1.5GiB".to_owned()
            }
            SizeError::UnknownSuffix { number, suffix, .. } => suffix_hint(number, suffix),
            SizeError::Overflow { .. } => "write less than 16384P (2^64 bytes)".to_owned(),
            SizeError::NotWhole { .. } => {
                "write the exact bytes, such as 1536, or a fraction that comes out whole, such as 1.5k"
                    .to_owned()
            }
            SizeError::Zero { .. } => "write a size above zero, such as 4k".to_owned(),
        }
    }
}

/// What the writer of a wrong suffix most likely meant: both readings are named, none is chosen for them.
fn suffix_hint(number: &str, suffix: &str) -> String {
    let lower = suffix.to_ascii_lowercase();
    match lower.as_str() {
        "b" => {
            return format!(
                "write {number} for bytes, or the bytes of {number} blocks of 512 as {number} times 512"
            );
        }
        "s" | "sector" | "sectors" | "block" | "blocks" => {
            return "write bytes: a sector of the kernel's counters is 512 bytes, so 8 sectors are 4k"
                .to_owned();
        }
        "byte" | "bytes" => return format!("write {number} or {number}B"),
        _ => {}
    }
    let known = ["k", "m", "g", "t", "p"].iter().find(|letter| {
        let tail = lower.strip_prefix(**letter);
        matches!(tail, Some("" | "b" | "i" | "ib" | "bit" | "bits" | "byte" | "bytes" | "bps"))
    });
    match known {
        Some(letter) => {
            let binary = letter.to_ascii_uppercase();
            let decimal = if *letter == "k" { "k" } else { &binary };
            format!("write {number}{binary}iB (powers of 1024) or {number}{decimal}B (powers of 1000)")
        }
        None if lower.starts_with('e') => {
            "write exbibytes as 1024P, and numbers without an exponent".to_owned()
        }
        None if suffix.starts_with([',', '_', '\'', '.']) => {
            "write the number without separators, with a point before decimals, such as 1048576 or 1.5M"
                .to_owned()
        }
        None => "the suffixes are B, k M G T P or KiB … PiB (powers of 1024), and kB … PB (powers of 1000)"
            .to_owned(),
    }
}
