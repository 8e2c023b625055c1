//! Exact decimal numbers at the start of a text, as every quantity here begins with one. Never uses floating point:
//! `1.1G` is either a whole number of bytes or it is not.

use crate::Reason;

/// The maximum number of decimals; ten to this power times any unit here still fits 128 bits.
const MAX_DECIMALS: usize = 18;

/// An unsigned decimal number as it was written: `whole + fraction / 10^decimals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    whole: u128,
    fraction: u128,
    decimals: u32,
}

impl Decimal {
    /// Reads a number from the start of `text`; gives it and the rest of the text.
    pub(crate) fn take(text: &str) -> Result<(Decimal, &str), Reason> {
        match text.chars().next() {
            Some('-' | '\u{2212}') => return Err(Reason::Negative),
            Some('+') => return Err(Reason::Sign),
            _ => {}
        }
        let (whole_digits, rest) = take_digits(text)?;
        let whole = parse_u64(whole_digits)?;
        let Some(after_dot) = rest.strip_prefix('.') else {
            return Ok((Decimal { whole, fraction: 0, decimals: 0 }, rest));
        };
        let (fraction_digits, rest) = take_digits(after_dot)?;
        let significant = fraction_digits.trim_end_matches('0');
        if significant.len() > MAX_DECIMALS {
            return Err(Reason::NotWhole);
        }
        let fraction = if significant.is_empty() { 0 } else { parse_u64(significant)? };
        let decimals = u32::try_from(significant.len()).expect("at most MAX_DECIMALS");
        Ok((Decimal { whole, fraction, decimals }, rest))
    }

    /// The number times `unit`, if that is whole and fits.
    pub(crate) fn times(self, unit: u64) -> Result<u64, Reason> {
        let scale = 10_u128.pow(self.decimals);
        let scaled_fraction = self.fraction * u128::from(unit);
        let whole = self.whole * u128::from(unit) + scaled_fraction / scale;
        let total = u64::try_from(whole).map_err(|_| Reason::Overflow)?;
        if scaled_fraction.is_multiple_of(scale) { Ok(total) } else { Err(Reason::NotWhole) }
    }

    /// Whether the number has decimals other than zeros.
    pub(crate) fn has_fraction(self) -> bool {
        self.fraction != 0
    }
}

fn take_digits(text: &str) -> Result<(&str, &str), Reason> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 { Err(Reason::NotANumber) } else { Ok(text.split_at(end)) }
}

/// Digits only, so it can fail only by being too large.
fn parse_u64(digits: &str) -> Result<u128, Reason> {
    digits.parse::<u64>().map(u128::from).map_err(|_| Reason::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_number_and_leaves_the_rest() {
        let (number, rest) = Decimal::take("1.50 MiB").unwrap();
        assert_eq!(rest, " MiB");
        assert_eq!(number.times(1024), Ok(1536));
        assert!(number.has_fraction());
        assert!(!Decimal::take("2.00").unwrap().0.has_fraction());
    }

    #[test]
    fn refuses_what_is_no_plain_number() {
        let cases = [
            ("", Reason::NotANumber),
            ("NaN", Reason::NotANumber),
            ("inf", Reason::NotANumber),
            (".5", Reason::NotANumber),
            ("5.", Reason::NotANumber),
            ("٤", Reason::NotANumber),
            ("-1", Reason::Negative),
            ("−1", Reason::Negative),
            ("+1", Reason::Sign),
            ("18446744073709551616", Reason::Overflow),
            ("1.0000000000000000001", Reason::NotWhole),
        ];
        for (text, reason) in cases {
            assert_eq!(Decimal::take(text).unwrap_err(), reason, "{text:?}");
        }
    }

    #[test]
    fn the_largest_fraction_does_not_overflow() {
        let (number, _) = Decimal::take("18446744073709551615.999999999999999999").unwrap();
        assert_eq!(number.times(1 << 50), Err(Reason::Overflow));
    }
}
