//! Numbers as dd takes them: decimal digits with a suffix, and products of such numbers. It knows no operand.
//!
//! A suffix alone is one of it (`k` is 1024), a `B` after a letter makes it decimal (`kB` is 1000), a `B` behind the first factor says
//! that bytes are counted, and `x` multiplies: `2x80x18b` are 1,474,560.

/// The greatest number that dd takes.
pub(crate) const MOST: u64 = i64::MAX as u64;

/// The whole text as a number; `None` for what is none, and for one that is too large.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let mut factors = text.split('x');
    let first = factors.next()?;
    let in_bytes = first.strip_suffix('B').filter(|rest| !rest.ends_with('B'));
    let first = factor(first).or_else(|| factor(in_bytes?))?;
    let product = factors.try_fold(first, |product, text| product.checked_mul(factor(text)?))?;
    (product <= MOST).then_some(product)
}

fn factor(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, suffix) =
        text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let number = match (digits, suffix) {
        ("", "") => None,
        ("", _) => Some(1),
        _ => digits.parse::<u64>().ok(),
    };
    number?.checked_mul(scale(suffix)?)
}

fn scale(suffix: &str) -> Option<u64> {
    let mut letters = suffix.chars();
    let power = match (letters.next(), letters.as_str()) {
        (None | Some('c'), "") => return Some(1),
        (Some('w'), "") => return Some(2),
        (Some('b'), "") => return Some(512),
        (Some('k'), _) => 1,
        (Some(letter), _) => u32::try_from("KMGTPE".find(letter)?).ok()? + 1,
        (None, _) => return None,
    };
    let base: u64 = match letters.as_str() {
        "" | "iB" => 1024,
        "B" | "D" => 1000,
        _ => return None,
    };
    base.checked_pow(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_scale() {
        let rows = [
            ("7", 7),
            ("+7", 7),
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
            ("0x10", 0),
            ("2Bx3", 6),
            ("2x3kB", 6000),
            ("9223372036854775807", MOST),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "+",
            "x",
            "1x",
            "x1",
            "-1",
            "0x1F",
            "1kk",
            "2kBB",
            "5i",
            "1,5",
            "12 ",
            "B",
            "2x3B",
            "2x3bB",
            "1Q",
            "9223372036854775808",
            "99999999999999999999",
            "1Z",
            "8E",
            "9999999999x9999999999",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
