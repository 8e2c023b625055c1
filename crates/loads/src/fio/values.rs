//! Values as fio reads them: sizes whose units depend on `kb_base`, times with a default unit, numbers, arithmetic in parentheses, and
//! values for reads and writes apart. What fio's documentation and its program read differently is refused.

use super::arithmetic;
use super::error::BadValue;

/// How `k` and `KiB` are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KbBase {
    /// `k` is 1024 and `KiB` is 1000, fio's default.
    #[default]
    K1024,
    /// `k` is 1000 and `KiB` is 1024, as standards have it.
    K1000,
}

/// A size, or a part of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Amount {
    Bytes(u64),
    /// Between 0 and 100.
    Percent(u64),
}

/// The unit of a time without one, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Seconds = 1_000_000_000,
    Micros = 1_000,
}

/// A size: `4k`, `0x1000`, `10%`, `(4 * 1k)`.
///
/// # Errors
/// What is wrong with it, in words; likewise below.
pub(super) fn amount(text: &str, base: KbBase) -> Result<Amount, BadValue> {
    let text = text.trim();
    if text.starts_with('(') {
        return arithmetic::evaluate(text, &|suffix| bytes_of(suffix, base)).map(Amount::Bytes);
    }
    let (number, suffix) = number_and_suffix(text)?;
    if suffix == "%" {
        return if number <= 100 {
            Ok(Amount::Percent(number))
        } else {
            Err(format!("{text} is more than the whole").into())
        };
    }
    let unit = bytes_of(suffix, base)?;
    number.checked_mul(unit).map(Amount::Bytes).ok_or_else(|| format!("{text} is too large").into())
}

/// A size that is no percentage.
pub(super) fn bytes(text: &str, base: KbBase) -> Result<u64, BadValue> {
    match amount(text, base)? {
        Amount::Bytes(bytes) => Ok(bytes),
        Amount::Percent(_) => Err(format!("{text} is a percentage, and only a size can stand here").into()),
    }
}

/// A time in nanoseconds.
pub(super) fn time_ns(text: &str, unit: TimeUnit) -> Result<u64, BadValue> {
    let text = text.trim();
    if text.starts_with('(') {
        let micros =
            arithmetic::evaluate(text, &|suffix| ns_of(suffix, TimeUnit::Micros).map(|ns| ns / 1000))?;
        return micros.checked_mul(1000).ok_or_else(|| format!("{text} is too long").into());
    }
    let (number, suffix) = number_and_suffix(text)?;
    number.checked_mul(ns_of(suffix, unit)?).ok_or_else(|| format!("{text} is too long").into())
}

/// A plain number: `16`, `0x10`, `(2 * 8)`.
pub(super) fn number(text: &str) -> Result<u64, BadValue> {
    let text = text.trim();
    if text.starts_with('(') {
        return arithmetic::evaluate(text, &|suffix| {
            if suffix.is_empty() { Ok(1) } else { Err(format!("{suffix} is no number").into()) }
        });
    }
    match number_and_suffix(text)? {
        (number, "") => Ok(number),
        _ => Err(format!("{text} is no whole number").into()),
    }
}

/// A number with a fraction.
pub(super) fn decimal(text: &str) -> Result<f64, BadValue> {
    let parsed = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    parsed.ok_or_else(|| format!("{} is no number", text.trim()).into())
}

/// The values for reads, for writes and for trims of `READS`, `READS,WRITES`, `,WRITES` or `,,TRIMS`; one value is that of all, and that of
/// writes also that of trims.
pub(super) fn by_direction(text: &str) -> Result<[Option<&str>; 3], BadValue> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let some = |part: &&'_ str| !part.is_empty();
    match parts.as_slice() {
        [each] => Ok([Some(each); 3]),
        &[reads, writes] => Ok([reads, writes, writes].map(|part| Some(part).filter(some))),
        &[reads, writes, trims] => Ok([reads, writes, trims].map(|part| Some(part).filter(some))),
        _ => Err(format!("{text} has more values than reads, writes and trims").into()),
    }
}

/// The ends of `4k-16k` or `4k:16k`, the smaller first.
pub(super) fn range(text: &str, base: KbBase) -> Result<(u64, u64), BadValue> {
    let (first, last) =
        text.split_once(['-', ':']).ok_or_else(|| format!("{text} is no range such as 4k-16k"))?;
    let (first, last) = (bytes(first, base)?, bytes(last, base)?);
    Ok((first.min(last), first.max(last)))
}

fn number_and_suffix(text: &str) -> Result<(u64, &str), BadValue> {
    let wrong = || BadValue::from(format!("\"{text}\" is no whole number with a unit that fio has"));
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).map(|number| (number, "")).map_err(|_| wrong());
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    digits.parse().map(|number| (number, suffix)).map_err(|_| wrong())
}

fn bytes_of(suffix: &str, base: KbBase) -> Result<u64, BadValue> {
    let lower = suffix.to_ascii_lowercase();
    let power = |letter: char| "kmgtp".find(letter).and_then(|at| u32::try_from(at + 1).ok());
    let (si, binary) = match base {
        KbBase::K1024 => (1024u64, 1000u64),
        KbBase::K1000 => (1000, 1024),
    };
    let mut letters = lower.chars();
    match (letters.next().and_then(power), letters.as_str(), lower.as_str()) {
        (None, _, "" | "b") => Ok(1),
        (Some(power), "" | "b", _) => Ok(si.pow(power)),
        (Some(power), "ib", _) => Ok(binary.pow(power)),
        (Some(_), "i", _) => {
            Err(format!("fio's documentation and its program read {suffix} differently; write {suffix}B")
                .into())
        }
        _ if lower == "z" => Err("rdsk does not know the zones of a device".into()),
        _ => Err(format!("{suffix} is no unit of a size").into()),
    }
}

fn ns_of(suffix: &str, unit: TimeUnit) -> Result<u64, BadValue> {
    const S: u64 = 1_000_000_000;
    Ok(match suffix.to_ascii_lowercase().as_str() {
        "" => unit as u64,
        "us" | "usec" => S / 1_000_000,
        "ms" | "msec" => S / 1000,
        "s" => S,
        "m" => 60 * S,
        "h" => 3600 * S,
        "d" => 86_400 * S,
        "sec" => {
            return Err(
                "fio's documentation reads sec as seconds, its program as microseconds; write s".into()
            );
        }
        _ => return Err(format!("{suffix} is no unit of a time").into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_units_of_kb_base() {
        for (text, in_1024, in_1000) in [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1MiB", 1_000_000, 1 << 20),
            ("2G", 2 << 30, 2_000_000_000),
            ("0x1000", 4096, 4096),
            ("(2 * (1k + 1))", 2050, 2002),
            ("(2^10 - 24 % 10)", 1020, 1020),
        ] {
            assert_eq!(bytes(text, KbBase::K1024), Ok(in_1024), "{text}");
            assert_eq!(bytes(text, KbBase::K1000), Ok(in_1000), "{text}");
        }
        assert_eq!(amount("10%", KbBase::K1024), Ok(Amount::Percent(10)));
        for text in
            ["", "k", "1.5g", "-4k", "4 k", "4x", "101%", "1mi", "3z", "99999999t", "(1 +)", "(1", "(1/0)"]
        {
            assert!(amount(text, KbBase::K1024).is_err(), "{text}");
        }
        assert!(amount("1mi", KbBase::K1024).unwrap_err().into_words().contains("write miB"));
    }

    #[test]
    fn times_and_numbers_have_their_default_units() {
        assert_eq!(time_ns("30", TimeUnit::Seconds), Ok(30_000_000_000));
        assert_eq!(time_ns("30", TimeUnit::Micros), Ok(30_000));
        assert_eq!(time_ns("5ms", TimeUnit::Seconds), Ok(5_000_000));
        assert_eq!(time_ns("2M", TimeUnit::Seconds), Ok(120_000_000_000));
        assert_eq!(time_ns("(1s + 500)", TimeUnit::Seconds), Ok(1_000_500_000));
        assert!(time_ns("5sec", TimeUnit::Seconds).unwrap_err().into_words().contains("microseconds"));
        assert!(time_ns("5 min", TimeUnit::Seconds).is_err());
        assert_eq!((number("16"), number("0x10"), number("(4*4)")), (Ok(16), Ok(16), Ok(16)));
        assert!(number("16k").is_err() && number("").is_err());
    }

    #[test]
    fn values_stand_for_reads_and_writes() {
        assert_eq!(by_direction("4k"), Ok([Some("4k"); 3]));
        assert_eq!(by_direction("4k, 8k"), Ok([Some("4k"), Some("8k"), Some("8k")]));
        assert_eq!(by_direction(",8k,1m"), Ok([None, Some("8k"), Some("1m")]));
        assert!(by_direction("1,2,3,4").is_err());
        assert_eq!(range("16k-4k", KbBase::K1024), Ok((4096, 16_384)));
        assert_eq!(range("1k:2k", KbBase::K1000), Ok((1000, 2000)));
        assert!(range("4k", KbBase::K1024).is_err());
    }
}
