//! A share between 0 and 1, both excluded, as `--precision` takes it. Never accepts a bare `2` for 2 %.

use std::fmt;

use crate::{Quantity, QuantityError, Reason, percent};

/// A share of one, above 0 and below 1; `Fraction::parse` holds to that range.
///
/// ```
/// use rdsk_units::Fraction;
/// assert_eq!(Fraction::parse("2%"), Ok(Fraction(0.02)));
/// assert_eq!(Fraction::parse("0.02"), Ok(Fraction(0.02)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fraction(pub f64);

impl Fraction {
    /// Reads `2%`, `2 %` or `0.02`: digits, at most one point between digits, no sign, no exponent.
    ///
    /// # Errors
    /// [`QuantityError`] for anything else and for shares outside (0, 1).
    pub fn parse(text: &str) -> Result<Fraction, QuantityError> {
        let error = |reason| QuantityError::new(Quantity::Share, text, reason);
        let trimmed = text.trim_matches(' ');
        if trimmed.is_empty() {
            return Err(error(Reason::Empty));
        }
        let (number, divisor) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim_end_matches(' '), 100.0),
            None => (trimmed, 1.0),
        };
        // A negative number is understood well enough to report that it is out of range.
        let unsigned = number.strip_prefix('-').unwrap_or(number);
        let value = plain_number(unsigned).ok_or_else(|| error(Reason::NotANumber))?;
        let share = value / divisor;
        if share > 0.0 && share < 1.0 && unsigned == number {
            Ok(Fraction(share))
        } else {
            Err(error(Reason::OutOfRange))
        }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&percent(self.0))
    }
}

/// The standard parser also takes `inf`, `1e-3` and `.5`; what they mean here would be a guess.
fn plain_number(text: &str) -> Option<f64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if digits(whole) && digits(decimals) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_shares() {
        for (text, share) in [("2%", 0.02), ("2%", 0.02), ("0.02", 0.02), ("0.5%", 0.005), (" 99.9% ", 0.999)]
        {
            assert!((Fraction::parse(text).unwrap().0 - share).abs() < 1e-12, "{text}");
        }
        assert_eq!(Fraction::parse(" 2% "), Ok(Fraction(0.02)));
        assert_eq!(Fraction(0.02).to_string(), "2.0%");
    }

    #[test]
    fn refuses_with_a_message_and_a_hint() {
        let cases = [
            ("", "the share is empty", "2%"),
            ("2", "share \"2\" is not between 0 and 1", "write 2% for 2 percent"),
            ("0", "share \"0\" is not between 0 and 1", "more than 0%"),
            ("0%", "share \"0%\" is not between 0 and 1", "more than 0%"),
            ("1", "share \"1\" is not between 0 and 1", "write 1%"),
            ("100%", "share \"100%\" is not between 0 and 1", "less than 100%"),
            ("-2%", "share \"-2%\" is not between 0 and 1", "more than 0%"),
            ("NaN", "share \"NaN\" is not a number", "0.02"),
            ("inf", "share \"inf\" is not a number", "0.02"),
            ("1e-2", "share \"1e-2\" is not a number", "0.02"),
            (".5", "share \".5\" is not a number", "0.02"),
            ("%", "share \"%\" is not a number", "0.02"),
            ("2%%", "share \"2%%\" is not a number", "0.02"),
        ];
        for (text, message, hint) in cases {
            let error = Fraction::parse(text).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert!(error.hint().contains(hint), "{text:?}: {}", error.hint());
        }
    }
}
