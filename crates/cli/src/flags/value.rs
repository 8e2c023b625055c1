//! How the values of flags are parsed, and what is reported about a bad one. It knows no flag.

use rdsk_units::{Bytes, Fraction, Nanos, QuantityError, printable};

/// Why a value is refused: what is wrong with it, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    /// What is wrong, without the name of the flag.
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl BadValue {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl From<QuantityError> for BadValue {
    fn from(error: QuantityError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

/// A text that may start with one minus but is no flag, and is not empty.
pub(crate) fn text(value: &str) -> Result<&str, BadValue> {
    if value.trim().is_empty() {
        return Err(BadValue::new("the value is empty", "write a value after the flag"));
    }
    if value.starts_with("--") {
        return Err(BadValue::new(
            format!("a value is missing before \"{}\"", printable(value)),
            "write a value after the flag",
        ));
    }
    Ok(value)
}

/// A size of at least one byte and at most `max`.
pub(crate) fn size(value: &str, max: u64) -> Result<u64, BadValue> {
    within_size(value, Bytes::parse_positive(text(value)?)?, max)
}

pub(crate) fn size_or_zero(value: &str, max: u64) -> Result<u64, BadValue> {
    within_size(value, Bytes::parse(text(value)?)?, max)
}

fn within_size(value: &str, bytes: Bytes, max: u64) -> Result<u64, BadValue> {
    if bytes.0 > max {
        return Err(BadValue::new(
            format!("size \"{}\" is more than {}", printable(value), Bytes(max)),
            format!("write at most {}", Bytes(max)),
        ));
    }
    Ok(bytes.0)
}

/// A time between two limits, in nanoseconds.
pub(crate) fn time_ns(value: &str, min: Nanos, max: Nanos) -> Result<u64, BadValue> {
    let time = Nanos::parse_positive(text(value)?)?;
    if time < min {
        return Err(BadValue::new(
            format!("time \"{}\" is less than {min}", printable(value)),
            format!("write at least {}", plain(min)),
        ));
    }
    if time > max {
        return Err(BadValue::new(
            format!("time \"{}\" is more than {}", printable(value), plain(max)),
            format!("write at most {}", plain(max)),
        ));
    }
    Ok(time.0)
}

/// A time that may be zero, in nanoseconds.
pub(crate) fn time_or_zero_ns(value: &str, max: Nanos) -> Result<u64, BadValue> {
    let digits = text(value)?.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    if !digits.is_empty() && digits.bytes().all(|byte| byte == b'0') {
        let unit = &value[digits.len()..];
        // The unit is checked with a 1 before it, so that a wrong one is refused for zero too.
        return time_ns(&format!("1{unit}"), Nanos(0), Nanos(u64::MAX)).map(|_| 0);
    }
    time_ns(value, Nanos(0), max)
}

/// A time as it is typed: `10ms`, `168h`.
fn plain(time: Nanos) -> String {
    const HOUR_NS: u64 = 3_600_000_000_000;
    if time.0.is_multiple_of(HOUR_NS) {
        format!("{}h", time.0 / HOUR_NS)
    } else {
        format!("{}ms", time.0 / 1_000_000)
    }
}

pub(crate) fn share(value: &str) -> Result<f64, BadValue> {
    Ok(Fraction::parse(text(value)?)?.0)
}

/// A whole number between 1 and `max`.
pub(crate) fn count(value: &str, max: u32) -> Result<u32, BadValue> {
    let hint = || format!("write a whole number from 1 to {max}");
    let number = number(value).map_err(|message| BadValue::new(message, hint()))?;
    match u32::try_from(number) {
        Ok(0) => Err(BadValue::new(format!("\"{}\" is zero", printable(value)), hint())),
        Ok(count) if count <= max => Ok(count),
        _ => Err(BadValue::new(format!("\"{}\" is more than {max}", printable(value)), hint())),
    }
}

/// Any whole number of 64 bits.
pub(crate) fn whole(value: &str) -> Result<u64, BadValue> {
    number(value)
        .map_err(|message| BadValue::new(message, format!("write a whole number from 0 to {}", u64::MAX)))
}

fn number(value: &str) -> Result<u64, String> {
    let shown = printable(value);
    let digits = text(value).map_err(|bad| bad.message)?;
    if let Some(rest) = digits.strip_prefix('-')
        && rest.bytes().all(|byte| byte.is_ascii_digit())
        && !rest.is_empty()
    {
        return Err(format!("\"{shown}\" is negative"));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("\"{shown}\" is not a whole number"));
    }
    digits.parse().map_err(|_| format!("\"{shown}\" is too large"))
}

/// The value for a word: `values` are in the order of `words`.
pub(crate) fn word<T: Copy>(value: &str, words: &[&str], values: &[T]) -> Result<T, BadValue> {
    let value = text(value)?;
    match words.iter().position(|word| *word == value) {
        Some(index) => Ok(values[index]),
        None => Err(BadValue::new(
            format!("\"{}\" is not one of {}", printable(value), words.join(", ")),
            format!("write {}", words.join(" or ")),
        )),
    }
}

/// Processors as the kernel lists them: `0-3,8`.
pub(crate) fn cpu_list(value: &str) -> Result<Vec<usize>, BadValue> {
    let bad = |message: String| BadValue::new(message, "write processors as the kernel does, such as 0-3,8");
    let mut cpus = Vec::new();
    for part in text(value)?.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let cpu = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = if plain { digits.parse::<usize>().ok() } else { None };
            number.filter(|&cpu| cpu < MAX_CPUS)
        };
        let (Some(first), Some(last)) = (cpu(first), cpu(last)) else {
            return Err(bad(format!("\"{}\" is not a list of processors", printable(value))));
        };
        if first > last {
            return Err(bad(format!("\"{}\" ends before it starts", printable(part))));
        }
        for cpu in first..=last {
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
    }
    Ok(cpus)
}

/// The kernel's own limit on x86 (`CONFIG_NR_CPUS`).
const MAX_CPUS: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-3,8,2"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("5"), Ok(vec![5]));
        for bad in ["", "-1", "3-1", "0-", "a", "0,,1", "0-9999999", "99999999999999999999", "+1", "0 1"] {
            assert!(cpu_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn counts_are_whole_and_limited() {
        assert_eq!(count("32", 4096), Ok(32));
        for (bad, said) in [
            ("0", "zero"),
            ("-1", "negative"),
            ("4097", "more than 4096"),
            ("99999999999999999999", "too large"),
            ("1.5", "not a whole number"),
            ("4k", "not a whole number"),
            ("--json", "missing"),
        ] {
            let error = count(bad, 4096).unwrap_err();
            assert!(error.message.contains(said), "{bad}: {error:?}");
        }
        assert_eq!(whole("0"), Ok(0));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        assert!(whole("18446744073709551616").is_err());
    }

    #[test]
    fn times_keep_to_their_limits() {
        let read = |value| time_ns(value, Nanos(10_000_000), Nanos(3_600_000_000_000));
        assert_eq!(read("10ms"), Ok(10_000_000));
        assert_eq!(read("1h"), Ok(3_600_000_000_000));
        assert_eq!(read("9ms").unwrap_err().hint, "write at least 10ms");
        assert_eq!(read("61min").unwrap_err().hint, "write at most 1h");
    }
}
