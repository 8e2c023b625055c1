//! Sizes as fio reads them, where the same letters do not mean the same as in rdsk.

/// The bytes of a text such as `4k`, `1MiB` or `0x1000`; `None` for a percentage, an expression, and whatever else is no size.
///
/// By default `k` and `kb` are 1024 and `Ki` and `KiB` are 1000: fio keeps old job files as they were, and its `kb_base=1000`
/// turns that round (fio's documentation, kb_base).
pub(super) fn bytes(text: &str, has_si_units: bool) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number: u64 = digits.parse().ok()?;
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, has_i) = unit.strip_suffix('i').map_or((unit, false), |letter| (letter, true));
    let power = match letter {
        "" if !has_i => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if has_i == has_si_units { 1024 } else { 1000 };
    number.checked_mul(base.checked_pow(power)?)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn letters_mean_what_fio_means() {
        for (text, plain, si) in [
            ("512", Some(512), Some(512)),
            ("512b", Some(512), Some(512)),
            ("4k", Some(4096), Some(4000)),
            ("4KB", Some(4096), Some(4000)),
            ("4Ki", Some(4000), Some(4096)),
            ("4KiB", Some(4000), Some(4096)),
            ("2g", Some(2 << 30), Some(2_000_000_000)),
            ("0x1000", Some(4096), Some(4096)),
            ("10%", None, None),
            ("(4*1024)", None, None),
            ("", None, None),
            ("k", None, None),
            ("i", None, None),
            ("20000p", None, None),
            ("99999999999999999999", None, None),
        ] {
            assert_eq!((bytes(text, false), bytes(text, true)), (plain, si), "{text}");
        }
    }
}
