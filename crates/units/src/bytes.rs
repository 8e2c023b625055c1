//! Sizes in bytes: the one parser of sizes and the ways to write them. It never guesses what an ambiguous suffix means;
//! it refuses and names the two readings.

use std::fmt;

use crate::decimal::Decimal;
use crate::{Quantity, QuantityError, Reason, grouped};

/// Binary units from the largest, with their exponents of two.
const BINARY_UNITS: [(&str, u32); 5] = [("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// A number of bytes.
///
/// `Display` writes the largest binary unit that is exact with at most two decimals, else plain bytes, so that
/// what is printed always parses back to the same value: `4 KiB`, `1.5 MiB`, `1234567 B`.
///
/// ```
/// use rdsk_units::Bytes;
/// assert_eq!(Bytes::parse("4k"), Ok(Bytes(4096)));
/// assert_eq!(Bytes(1 << 20).to_string(), "1 MiB");
/// assert_eq!(Bytes(100 << 20).exact(), "100 MiB (104,857,600 bytes)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Reads a size: an ASCII decimal number, optionally a space, optionally a suffix.
    ///
    /// | suffix | means |
    /// |---|---|
    /// | none, `B` | bytes |
    /// | `k K M G T P`, `Ki Mi Gi Ti Pi`, `KiB MiB GiB TiB PiB` | powers of 1024 |
    /// | `kB MB GB TB PB` | powers of 1000 |
    ///
    /// Case: `k` and `K` are the same, alone and before `i` (`4k`, `4Ki`, `4kiB`). Every other letter has one case. `m`
    /// (milli), `Mb` and `kb` (bits), `mB`, `KB` (1000 to some tools, 1024 to others) and `b` (512-byte blocks to dd,
    /// bits to others) are refused. fio reads `4kB` as 4096, dd as 4000; here it is 4000, and callers echo
    /// [`Bytes::exact`]. A fraction is fine where the result is a whole number of bytes (at most 18 decimals). Spaces
    /// around the whole are ignored.
    ///
    /// # Errors
    /// [`QuantityError`] for anything else, overflow of 64 bits included. Zero is a size here; see
    /// [`Bytes::parse_positive`].
    pub fn parse(text: &str) -> Result<Bytes, QuantityError> {
        let error = |reason| QuantityError::new(Quantity::Size, text, reason);
        let trimmed = text.trim_matches(' ');
        if trimmed.is_empty() {
            return Err(error(Reason::Empty));
        }
        let (number, rest) = Decimal::take(trimmed).map_err(error)?;
        let suffix = rest.trim_start_matches(' ');
        let unknown = || Reason::UnknownUnit {
            number: trimmed[..trimmed.len() - rest.len()].to_owned(),
            unit: suffix.to_owned(),
        };
        let unit = unit_bytes(suffix).ok_or_else(|| error(unknown()))?;
        number.times(unit).map(Bytes).map_err(error)
    }

    /// As [`Bytes::parse`], for the many values that must not be zero.
    ///
    /// # Errors
    /// As [`Bytes::parse`], and [`Reason::Zero`].
    pub fn parse_positive(text: &str) -> Result<Bytes, QuantityError> {
        match Bytes::parse(text)? {
            Bytes(0) => Err(QuantityError::new(Quantity::Size, text, Reason::Zero)),
            bytes => Ok(bytes),
        }
    }

    /// The size in a binary unit and to the byte: `100 MiB (104,857,600 bytes)`. Below 1 KiB only `512 bytes`.
    pub fn exact(self) -> String {
        let bytes = if self.0 == 1 { "byte" } else { "bytes" };
        let plain = format!("{} {bytes}", grouped(self.0));
        match self.exact_binary() {
            Some(binary) => format!("{binary} ({plain})"),
            None => plain,
        }
    }

    /// The size rounded for reading, three or four significant digits, binary: `95.4 MiB`, `1023 KiB`, `512
    /// B`. Whole numbers of a unit lose their decimals: `4 KiB`. Does not parse back to the same value.
    pub fn approx(self) -> String {
        let Some(exact_at) =
            BINARY_UNITS.iter().rposition(|(_, shift)| self.0 >> shift < 1024 && self.0 >> shift > 0)
        else {
            return if self.0 < 1024 { format!("{} B", self.0) } else { self.scaled(0) };
        };
        self.scaled(exact_at)
    }

    /// The size in `BINARY_UNITS[index]`, or in the next larger unit where rounding carries that far.
    fn scaled(self, index: usize) -> String {
        let (name, shift) = BINARY_UNITS[index];
        if self.0.trailing_zeros() >= shift {
            return format!("{} {name}", self.0 >> shift);
        }
        // The cast may round: the value is about to be rounded to four digits.
        let value = self.0 as f64 / (1_u64 << shift) as f64;
        let decimals = match value {
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            v if v < 1023.5 || index == 0 => 0,
            _ => return format!("1.00 {}", BINARY_UNITS[index - 1].0),
        };
        format!("{value:.decimals$} {name}")
    }

    /// The largest binary unit, at least one of it, that is exact with at most two decimals.
    fn exact_binary(self) -> Option<String> {
        BINARY_UNITS.iter().find_map(|&(name, shift)| {
            let hundredths = u128::from(self.0) * 100;
            let exact = hundredths % (1_u128 << shift) == 0;
            (exact && self.0 >> shift > 0).then(|| {
                let (whole, rest) = ((hundredths >> shift) / 100, (hundredths >> shift) % 100);
                match (rest, rest % 10) {
                    (0, _) => format!("{whole} {name}"),
                    (_, 0) => format!("{whole}.{} {name}", rest / 10),
                    _ => format!("{whole}.{rest:02} {name}"),
                }
            })
        })
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.exact_binary().unwrap_or_else(|| format!("{} B", self.0)))
    }
}

/// How many bytes one unit of a suffix is; `None` if the suffix is unknown.
fn unit_bytes(suffix: &str) -> Option<u64> {
    Some(match suffix {
        "" | "B" => 1,
        "k" | "K" | "Ki" | "ki" | "KiB" | "kiB" => 1 << 10,
        "M" | "Mi" | "MiB" => 1 << 20,
        "G" | "Gi" | "GiB" => 1 << 30,
        "T" | "Ti" | "TiB" => 1 << 40,
        "P" | "Pi" | "PiB" => 1 << 50,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "PB" => 1_000_000_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_suffix() {
        let cases = [
            ("0", 0),
            ("512", 512),
            ("512B", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4 KiB", 4096),
            ("4kiB", 4096),
            ("4Ki", 4096),
            ("4kB", 4000),
            ("1M", 1 << 20),
            ("1MiB", 1 << 20),
            ("1MB", 1_000_000),
            ("1.5G", 3 << 29),
            ("2Ti", 2 << 40),
            ("3TB", 3_000_000_000_000),
            ("0.5P", 1 << 49),
            ("0.001kB", 1),
            (" 1M ", 1 << 20),
            ("16383P", 16383 << 50),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text:?}");
            assert_eq!(Bytes::parse_positive(text).ok(), (bytes > 0).then_some(Bytes(bytes)), "{text:?}");
        }
    }

    #[test]
    fn refuses_with_a_message_and_a_hint() {
        let cases = [
            ("", "the size is empty", "4k"),
            ("  ", "the size is empty", "4k"),
            ("-4k", "size \"-4k\" is negative", "write 4k without"),
            ("+4k", "size \"+4k\" has a sign", "write 4k without"),
            ("NaN", "size \"NaN\" is not a number", "digits first"),
            ("٤k", "size \"٤k\" is not a number", "digits first"),
            (".5M", "size \".5M\" is not a number", "0.5M"),
            ("4x", "size \"4x\" has an unknown suffix \"x\"", "KiB"),
            ("4m", "size \"4m\" has an unknown suffix \"m\"", "4MiB (powers of 1024) or 4MB"),
            ("4Mb", "size \"4Mb\" has an unknown suffix \"Mb\"", "4MiB (powers of 1024) or 4MB"),
            ("4kb", "size \"4kb\" has an unknown suffix \"kb\"", "4KiB (powers of 1024) or 4kB"),
            ("4KB", "size \"4KB\" has an unknown suffix \"KB\"", "4KiB (powers of 1024) or 4kB"),
            ("4mB", "size \"4mB\" has an unknown suffix \"mB\"", "4MiB"),
            ("4MIB", "size \"4MIB\" has an unknown suffix \"MIB\"", "4MiB"),
            ("8sectors", "size \"8sectors\" has an unknown suffix \"sectors\"", "512"),
            ("8b", "size \"8b\" has an unknown suffix \"b\"", "512"),
            ("1E", "size \"1E\" has an unknown suffix \"E\"", "1024P"),
            ("1e6", "size \"1e6\" has an unknown suffix \"e6\"", "exponent"),
            ("1,000", "size \"1,000\" has an unknown suffix \",000\"", "separators"),
            ("0x10", "size \"0x10\" has an unknown suffix \"x10\"", "suffixes"),
            ("99999999T", "size \"99999999T\" is too large", "16384P"),
            ("16384P", "size \"16384P\" is too large", "16384P"),
            ("99999999999999999999", "size \"99999999999999999999\" is too large", "16384P"),
            ("1.5", "size \"1.5\" is not a whole number of bytes", "1536"),
            ("0.3k", "size \"0.3k\" is not a whole number of bytes", "1536"),
            ("4\u{1b}[2J", "size \"4\\x1b[2J\" has an unknown suffix \"\\x1b[2J\"", "suffixes"),
        ];
        for (text, message, hint) in cases {
            let error = Bytes::parse(text).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint().contains(hint), "{text:?}: {}", error.hint());
        }
    }

    #[test]
    fn zero_is_refused_where_asked() {
        assert_eq!(Bytes::parse("0k"), Ok(Bytes(0)));
        let error = Bytes::parse_positive("0k").unwrap_err();
        assert_eq!(error.to_string(), "size \"0k\" is zero");
        assert_eq!(Bytes::parse_positive("1"), Ok(Bytes(1)));
    }

    #[test]
    fn writes_exactly() {
        let cases = [
            (0, "0 B"),
            (512, "512 B"),
            (4096, "4 KiB"),
            (1280, "1.25 KiB"),
            (3 << 19, "1.5 MiB"),
            (1_234_567, "1234567 B"),
            (1000 << 20, "1000 MiB"),
            (1028 << 10, "1028 KiB"),
            (1 << 63, "8192 PiB"),
            (u64::MAX, "18446744073709551615 B"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>8}|", Bytes(4096)), "   4 KiB|");
        assert_eq!(Bytes(1_234_567).exact(), "1,234,567 bytes");
        assert_eq!(Bytes(512).exact(), "512 bytes");
        assert_eq!(Bytes(1).exact(), "1 byte");
    }

    #[test]
    fn writes_approximately() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4 KiB"),
            (100_000_000, "95.4 MiB"),
            (1_234_567, "1.18 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            ((1023 << 10) + 1, "1023 KiB"),
            (u64::MAX, "16384 PiB"),
            (10_239_999, "9.77 MiB"),
            ((10 << 20) - 1, "10.0 MiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).approx(), text);
        }
    }

    proptest! {
        #[test]
        fn display_round_trips(bytes: u64) {
            prop_assert_eq!(Bytes::parse(&Bytes(bytes).to_string()), Ok(Bytes(bytes)));
        }

        #[test]
        fn display_round_trips_near_units(mantissa in 0_u64..5000, shift in 0_u32..52) {
            let bytes = Bytes(mantissa << shift);
            prop_assert_eq!(Bytes::parse(&bytes.to_string()), Ok(bytes));
        }

        #[test]
        fn every_suffix_round_trips(value in 0_u64..16383, space in 0_usize..3) {
            for suffix in ["", "B", "k", "K", "Ki", "ki", "KiB", "kiB", "kB", "M", "Mi", "MiB", "MB", "G", "Gi", "GiB",
                           "GB", "T", "Ti", "TiB", "TB", "P", "Pi", "PiB", "PB"] {
                let bytes = Bytes::parse(&format!("{value}{}{suffix}", &"  "[..space])).unwrap();
                let unit = unit_bytes(suffix).unwrap();
                prop_assert_eq!(bytes.0, value * unit);
                prop_assert_eq!(Bytes::parse(&bytes.to_string()), Ok(bytes));
            }
        }

        #[test]
        fn approx_is_within_half_a_percent(bytes: u64) {
            let text = Bytes(bytes).approx();
            let (number, suffix) = text.split_once(' ').unwrap();
            let read = number.parse::<f64>().unwrap() * unit_bytes(suffix).unwrap() as f64;
            prop_assert!((read - bytes as f64).abs() <= bytes as f64 * 0.0051, "{} for {}", text, bytes);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            if let Err(error) = Bytes::parse(&text) {
                prop_assert!(!error.hint().is_empty());
                prop_assert!(!error.to_string().chars().any(char::is_control));
            }
        }
    }
}
