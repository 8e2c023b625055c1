//! Numbers as GNU dd takes them: decimal digits with a suffix, and products of such numbers. It knows no operand.
//!
//! The rules are those of the manual of coreutils 9 and of what 9.1 does: a suffix alone is one of it (`k` is 1024), a `B` after a
//! letter makes it decimal (`kB` is 1000), a `B` behind the first factor counts bytes, and `x` multiplies. `R` and `Q` came
//! later.

/// The greatest number that dd takes.
pub(crate) const MOST: u64 = i64::MAX as u64;

/// Why a text is not a number for dd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotANumber {
    Invalid,
    TooLarge,
}

/// Parses the whole text. Beside an error stands whether `0x` was seen, since dd warns first.
pub(crate) fn parse(text: &[u8]) -> (Result<u64, NotANumber>, bool) {
    let mut has_zero_multiplier = false;
    let result = product(text, Place::First, &mut has_zero_multiplier);
    (result, has_zero_multiplier)
}

/// Where a factor stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

fn product(text: &[u8], place: Place, has_zero_multiplier: &mut bool) -> Result<u64, NotANumber> {
    let Some((factor, mut rest)) = factor(text) else { return Err(NotANumber::Invalid) };
    let used = text.len() - rest.len();
    if place == Place::First && rest.first() == Some(&b'B') && used > 0 && text[used - 1] != b'B' {
        rest = &rest[1..];
    }
    let Some((&b'x', more)) = rest.split_first() else {
        return match factor {
            _ if !rest.is_empty() => Err(NotANumber::Invalid),
            Some(value) if value <= MOST => Ok(value),
            _ => Err(NotANumber::TooLarge),
        };
    };
    let other = product(more, Place::Later, has_zero_multiplier);
    if other == Err(NotANumber::Invalid) {
        return other;
    }
    // Zero times what is too large is zero.
    let is_zero = factor == Some(0) || other == Ok(0);
    let value = factor.zip(other.ok()).and_then(|(a, b)| a.checked_mul(b)).filter(|&value| value <= MOST);
    let value = if is_zero { Some(0) } else { value };
    *has_zero_multiplier |= value == Some(0) && text.starts_with(b"0x");
    value.ok_or(NotANumber::TooLarge)
}

/// One factor, `None` inside if it is too large, and the rest of the text; nothing if there is neither digit nor suffix.
fn factor(text: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let signed = &text[blank..];
    let unsigned = signed.strip_prefix(b"+").unwrap_or(signed);
    let digits = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = if digits > 0 {
        let number = unsigned[..digits]
            .iter()
            .try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
        (number, &unsigned[digits..])
    } else if text.first().is_some_and(|&first| unit(first).is_some()) {
        (Some(1), text)
    } else {
        return None;
    };
    let Some((&first, after)) = rest.split_first() else { return Some((number, rest)) };
    let Some(unit) = unit(first) else { return Some((number, rest)) };
    let (scale, rest) = match unit {
        Unit::Plain(scale) => (Some(scale), after),
        Unit::Power(power) => {
            let (base, taken): (u64, usize) = match after {
                [b'i', b'B', ..] => (1024, 2),
                [b'B' | b'D', ..] => (1000, 1),
                _ => (1024, 0),
            };
            (base.checked_pow(power), &after[taken..])
        }
    };
    let value = match (number, scale) {
        (Some(0), _) => Some(0),
        (number, scale) => number.zip(scale).and_then(|(number, scale)| number.checked_mul(scale)),
    };
    Some((value, rest))
}

enum Unit {
    Plain(u64),
    /// A power of 1000 or 1024.
    Power(u32),
}

fn unit(letter: u8) -> Option<Unit> {
    Some(match letter {
        b'c' => Unit::Plain(1),
        b'w' => Unit::Plain(2),
        b'b' => Unit::Plain(512),
        b'k' | b'K' => Unit::Power(1),
        b'M' => Unit::Power(2),
        b'G' => Unit::Power(3),
        b'T' => Unit::Power(4),
        b'P' => Unit::Power(5),
        b'E' => Unit::Power(6),
        b'Z' => Unit::Power(7),
        b'Y' => Unit::Power(8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<u64, NotANumber> {
        parse(text.as_bytes()).0
    }

    #[test]
    fn suffixes_scale() {
        let rows = [
            ("7", 7),
            ("+7", 7),
            (" 7", 7),
            ("7c", 7),
            ("7w", 14),
            ("7b", 3584),
            ("k", 1024),
            ("7k", 7168),
            ("7K", 7168),
            ("7kB", 7000),
            ("7KiB", 7168),
            ("7KD", 7000),
            ("2M", 2 << 20),
            ("2MB", 2_000_000),
            ("1G", 1 << 30),
            ("1T", 1 << 40),
            ("1P", 1 << 50),
            ("1E", 1 << 60),
            ("10B", 10),
            ("2bB", 1024),
            ("2x80x18b", 2 * 80 * 18 * 512),
            ("0Y", 0),
            ("2Bx3", 6),
            ("2x3kB", 6000),
            ("0x99999999999999999999", 0),
            ("9223372036854775807", MOST),
        ];
        for (text, expected) in rows {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", "x", "1x", "x1", "-1", "0x1F", "1kk", "2kBB", "5i", "1,5", "12 ", "B", "2x3B", "2x3bB", "1Q",
            "0R",
        ] {
            assert_eq!(value(text), Err(NotANumber::Invalid), "{text}");
        }
        for text in ["9223372036854775808", "99999999999999999999", "1Z", "1Y", "8E", "9999999999x9999999999"]
        {
            assert_eq!(value(text), Err(NotANumber::TooLarge), "{text}");
        }
    }

    #[test]
    fn a_zero_multiplier_is_told() {
        assert_eq!(parse(b"0x10"), (Ok(0), true));
        assert_eq!(parse(b"00x10"), (Ok(0), false));
        assert_eq!(parse(b"10"), (Ok(10), false));
    }
}
