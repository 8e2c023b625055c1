//! Durations in nanoseconds: their parser and how they are written. It never reads a clock.

use std::fmt;

use crate::decimal::Decimal;
use crate::{Quantity, QuantityError, Reason};

const NS_PER_S: u64 = 1_000_000_000;

/// A duration in nanoseconds; 64 bits last 584 years.
///
/// `Display` gives three significant digits, `850 ns`, `85.2 µs`, `1.23 ms`, `12.0 s`, and from two minutes on
/// whole seconds, `2 min 05 s`, `1 h 00 min 07 s`. What it writes parses back within 0.5 %.
///
/// ```
/// use rdsk_units::Nanos;
/// assert_eq!(Nanos::parse("1.5s"), Ok(Nanos(1_500_000_000)));
/// assert_eq!(Nanos(85_240).to_string(), "85.2 µs");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Reads a duration: a decimal number and a unit (`ns`, `us`/`µs`, `ms`, `s`, `m`/`min`, `h`), or several of these
    /// from the largest unit to the smallest (`1h30m`, `2 min 05 s`). A bare number means seconds. Units are lower case
    /// only; spaces are allowed between the parts.
    ///
    /// # Errors
    /// [`QuantityError`] for anything else, overflow of 64 bits and fractions of a nanosecond included.
    pub fn parse(text: &str) -> Result<Nanos, QuantityError> {
        let error = |reason| QuantityError::new(Quantity::Time, text, reason);
        let mut rest = text.trim_matches(' ');
        if rest.is_empty() {
            return Err(error(Reason::Empty));
        }
        let mut total_ns = 0_u64;
        let mut previous: Option<(u64, Decimal)> = None;
        while !rest.is_empty() {
            let (number, after_number) = Decimal::take(rest).map_err(error)?;
            let unit_and_rest = after_number.trim_start_matches(' ');
            let end = unit_and_rest.find(|c: char| !c.is_alphabetic()).unwrap_or(unit_and_rest.len());
            let (unit, after_unit) = unit_and_rest.split_at(end);
            let bare = unit.is_empty() && after_unit.is_empty() && previous.is_none();
            let unit_ns = if bare { Some(NS_PER_S) } else { unit_ns(unit) };
            let unit_ns = unit_ns.ok_or_else(|| {
                // If no letter follows the number, whatever does follow it is the unknown unit.
                let unit = if unit.is_empty() { after_unit } else { unit };
                let number = rest[..rest.len() - after_number.len()].to_owned();
                error(Reason::UnknownUnit { number, unit: unit.to_owned() })
            })?;
            if previous.is_some_and(|(larger_ns, number)| larger_ns <= unit_ns || number.has_fraction()) {
                return Err(error(Reason::OutOfOrder));
            }
            let part_ns = number.times(unit_ns).map_err(error)?;
            total_ns = total_ns.checked_add(part_ns).ok_or_else(|| error(Reason::Overflow))?;
            previous = Some((unit_ns, number));
            rest = after_unit.trim_start_matches(' ');
        }
        Ok(Nanos(total_ns))
    }

    /// As [`Nanos::parse`], for the values that must not be zero.
    ///
    /// # Errors
    /// As [`Nanos::parse`], and [`Reason::Zero`].
    pub fn parse_positive(text: &str) -> Result<Nanos, QuantityError> {
        match Nanos::parse(text)? {
            Nanos(0) => Err(QuantityError::new(Quantity::Time, text, Reason::Zero)),
            nanos => Ok(nanos),
        }
    }

    /// The duration in seconds, to divide by.
    // The cast may round: 53 bits hold 104 days of nanoseconds exactly, and rates need fewer.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&words(self.0))
    }
}

fn words(ns: u64) -> String {
    // Below 120 s. Each limit is where three digits would round up into the next unit.
    for (name, unit_ns, limit_ns) in [
        ("ns", 1, 1_000),
        ("µs", 1_000, 999_500),
        ("ms", 1_000_000, 999_500_000),
        ("s", NS_PER_S, 119_500_000_000),
    ] {
        if ns < limit_ns {
            return if unit_ns == 1 { format!("{ns} ns") } else { three_digits(ns, unit_ns, name) };
        }
    }
    // The last, incomplete second of the range has no whole second above it to round to.
    let seconds = ns.saturating_add(NS_PER_S / 2).min(u64::MAX / NS_PER_S * NS_PER_S) / NS_PER_S;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes} min {seconds:02} s")
    } else {
        format!("{hours} h {minutes:02} min {seconds:02} s")
    }
}

/// Three significant digits in integers, so that halves round the same way on every machine.
fn three_digits(ns: u64, unit_ns: u64, name: &str) -> String {
    let rounded = |per_unit: u64| (ns * per_unit + unit_ns / 2) / unit_ns;
    let (hundredths, tenths) = (rounded(100), rounded(10));
    if hundredths < 1_000 {
        format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
    } else if tenths < 1_000 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", rounded(1))
    }
}

fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // Both the micro sign and the Greek letter are on keyboards.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => NS_PER_S,
        "m" | "min" => 60 * NS_PER_S,
        "h" => 3600 * NS_PER_S,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_units_and_parts() {
        let cases = [
            ("500ms", 500_000_000),
            ("5s", 5 * NS_PER_S),
            ("5", 5 * NS_PER_S),
            ("0.25", NS_PER_S / 4),
            ("2m", 120 * NS_PER_S),
            ("1h", 3600 * NS_PER_S),
            ("1.5s", 3 * NS_PER_S / 2),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("250μs", 250_000),
            ("10 ns", 10),
            ("1h30m", 5400 * NS_PER_S),
            ("2 min 05 s", 125 * NS_PER_S),
            ("0", 0),
        ];
        for (text, ns) in cases {
            assert_eq!(Nanos::parse(text), Ok(Nanos(ns)), "{text:?}");
        }
    }

    #[test]
    fn refuses_with_a_message_and_a_hint() {
        let cases = [
            ("", "the time is empty", "5s"),
            ("-5s", "time \"-5s\" is negative", "write 5s"),
            ("+5s", "time \"+5s\" has a sign", "write 5s"),
            ("soon", "time \"soon\" is not a number", "digits first"),
            ("NaN", "time \"NaN\" is not a number", "digits first"),
            ("5x", "time \"5x\" has an unknown unit \"x\"", "bare number"),
            ("5M", "time \"5M\" has an unknown unit \"M\"", "min for minutes"),
            ("5 sec", "time \"5 sec\" has an unknown unit \"sec\"", "write s"),
            ("1d", "time \"1d\" has an unknown unit \"d\"", "24h"),
            ("5%", "time \"5%\" has an unknown unit \"%\"", "bare number"),
            ("1h 30", "time \"1h 30\" has an unknown unit \"\"", "units are"),
            ("5s 1h", "time \"5s 1h\" has parts out of order", "larger unit first"),
            ("1s 1s", "time \"1s 1s\" has parts out of order", "larger unit first"),
            ("1.5h 3s", "time \"1.5h 3s\" has parts out of order", "last part"),
            ("5124096h", "time \"5124096h\" is too long", "5000000h"),
            ("5124095h 3599s", "time \"5124095h 3599s\" is too long", "5000000h"),
            ("0.5ns", "time \"0.5ns\" is finer than a nanosecond", "whole"),
        ];
        for (text, message, hint) in cases {
            let error = Nanos::parse(text).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint().contains(hint), "{text:?}: {}", error.hint());
        }
        assert_eq!(Nanos::parse_positive("0s").unwrap_err().to_string(), "time \"0s\" is zero");
        assert_eq!(Nanos::parse_positive("1ns"), Ok(Nanos(1)));
    }

    #[test]
    fn writes_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_234_000, "1.23 ms"),
            (85_240, "85.2 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (9_995, "10.0 µs"),
            (12_000_000_000, "12.0 s"),
            (119_499_999_999, "119 s"),
            (119_500_000_000, "2 min 00 s"),
            (125_000_000_000, "2 min 05 s"),
            (3_607_000_000_000, "1 h 00 min 07 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn gives_seconds_to_divide_by() {
        assert!((Nanos(2_500_000_000).as_secs_f64() - 2.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn display_parses_back(mantissa: u64, shift in 0_u32..64) {
            let ns = mantissa >> shift;
            let text = Nanos(ns).to_string();
            let back = Nanos::parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(back.0.abs_diff(ns) as f64 <= ns as f64 * 0.005, "{} for {}", text, ns);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            if let Err(error) = Nanos::parse(&text) {
                prop_assert!(!error.hint().is_empty());
            }
        }
    }
}
