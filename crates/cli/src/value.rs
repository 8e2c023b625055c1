//! How the values of flags are parsed, and what is reported about a bad one: functions that clap calls, and functions that make
//! such with a limit. It knows no flag.

use crate::cli_args::JsonPlace;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use rdsk_analysis::groups::distinct;
use rdsk_units::{Bytes, Fraction, Nanos, QuantityError, printable};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A name for a run is not longer.
const MAX_LABEL: usize = 200;

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

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadValue {}

impl From<QuantityError> for BadValue {
    fn from(error: QuantityError) -> Self {
        Self::new(error.to_string(), error.hint())
    }
}

/// What clap calls for the value of a flag.
pub(crate) trait Parse<T>: Fn(&str) -> Result<T, BadValue> + Clone + Send + Sync + 'static {}

impl<T, F: Fn(&str) -> Result<T, BadValue> + Clone + Send + Sync + 'static> Parse<T> for F {}

/// A text that may start with one minus but is no flag, and is not empty.
pub(crate) fn text(value: &str) -> Result<String, BadValue> {
    plain_text(value).map(str::to_owned)
}

fn plain_text(value: &str) -> Result<&str, BadValue> {
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

/// A name that follows the command, such as that of a target: `what` it is, and what to `write` where it is empty.
pub(crate) fn name(what: &'static str, write: &'static str) -> impl Parse<String> {
    move |value: &str| match value.trim() {
        "" => Err(BadValue::new(format!("the name of a {what} is empty"), write)),
        _ => Ok(value.to_owned()),
    }
}

/// A path, which need not be text.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|path| {
        // A name that is no text is neither empty nor a flag.
        path.to_str().map(plain_text).transpose()?;
        Ok::<_, BadValue>(PathBuf::from(path))
    })
}

/// The place of a document: a file, or with `-` standard output.
pub(crate) fn place() -> impl TypedValueParser<Value = JsonPlace> {
    path().map(JsonPlace::from)
}

/// As [`place`], of a text.
pub(crate) fn json_place(value: &str) -> Result<JsonPlace, BadValue> {
    plain_text(value).map(|name| PathBuf::from(name).into())
}

/// Where a line that may mean nothing wants its JSON, so that its problem can be reported there too.
pub(crate) fn json_place_of(words: &[OsString]) -> Option<JsonPlace> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let is_flag = |word: &&str| *word == "--json" || word.starts_with("--json=");
    let index = words[..end].iter().position(is_flag)?;
    let value = words[index].strip_prefix("--json=").or_else(|| words.get(index + 1).copied())?;
    json_place(value).ok()
}

/// Where a page with figures goes: never to standard output.
pub(crate) fn page_place(value: &str) -> Result<JsonPlace, BadValue> {
    match json_place(value)? {
        JsonPlace::Stdout => {
            Err(BadValue::new("a page is no text for a terminal", "name a file, such as result.html"))
        }
        file @ JsonPlace::File(_) => Ok(file),
    }
}

/// A name for a run.
pub(crate) fn label(value: &str) -> Result<String, BadValue> {
    let label = plain_text(value)?;
    if label.chars().count() > MAX_LABEL {
        return Err(BadValue::new(
            format!("the label is longer than {MAX_LABEL} characters"),
            "write a shorter label",
        ));
    }
    Ok(label.to_owned())
}

/// A size of at least one byte and at most `max`.
pub(crate) fn size(max: u64) -> impl Parse<u64> {
    move |value: &str| within_size(value, Bytes::parse_positive(plain_text(value)?)?, max)
}

pub(crate) fn size_or_zero(max: u64) -> impl Parse<u64> {
    move |value: &str| within_size(value, Bytes::parse(plain_text(value)?)?, max)
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

/// A time between two limits, in nanoseconds. It may be zero where the first one is.
pub(crate) fn time(min: Nanos, max: Nanos) -> impl Parse<u64> {
    move |value: &str| {
        let text = plain_text(value)?;
        let time = if min == Nanos(0) { Nanos::parse(text) } else { Nanos::parse_positive(text) }?;
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
    Ok(Fraction::parse(plain_text(value)?)?.0)
}

/// A whole number between 1 and `max`.
pub(crate) fn count(max: u32) -> impl Parse<u32> {
    move |value: &str| {
        let hint = || format!("write a whole number from 1 to {max}");
        match u32::try_from(number(value, &hint())?) {
            Ok(0) => Err(BadValue::new(format!("\"{}\" is zero", printable(value)), hint())),
            Ok(count) if count <= max => Ok(count),
            _ => Err(BadValue::new(format!("\"{}\" is more than {max}", printable(value)), hint())),
        }
    }
}

/// Any whole number of 64 bits.
pub(crate) fn whole(value: &str) -> Result<u64, BadValue> {
    number(value, &format!("write a whole number from 0 to {}", u64::MAX))
}

fn number(value: &str, hint: &str) -> Result<u64, BadValue> {
    let bad = |message: String| BadValue::new(message, hint.to_owned());
    let shown = printable(value);
    let digits = plain_text(value).map_err(|unreadable| bad(unreadable.message))?;
    if let Some(rest) = digits.strip_prefix('-')
        && rest.bytes().all(|byte| byte.is_ascii_digit())
        && !rest.is_empty()
    {
        return Err(bad(format!("\"{shown}\" is negative")));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad(format!("\"{shown}\" is not a whole number")));
    }
    digits.parse().map_err(|_| bad(format!("\"{shown}\" is too large")))
}

/// One of some words, each with its value. A second word for a value is accepted too, and not shown.
pub(crate) fn words<T>(words: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T>
where
    T: Copy + PartialEq + Send + Sync + 'static,
{
    let shown = words.iter().enumerate().map(|(index, (word, value))| {
        PossibleValue::new(*word).hide(words[..index].iter().any(|(_, earlier)| earlier == value))
    });
    let value = |word: String| words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    PossibleValuesParser::new(shown).map(move |word| value(word).expect("clap accepts these words only"))
}

/// One of these values, by its word.
pub(crate) fn one_of<T>(values: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = move |word: String| values.iter().copied().find(|value| name(*value) == word);
    PossibleValuesParser::new(values.iter().map(|value| name(*value)))
        .map(move |word| named(word).expect("clap accepts these words only"))
}

/// The values of a list without repetitions, in the order given; `None` where there are none.
pub(crate) fn unique<T: Clone + PartialEq>(values: &[T]) -> Option<Vec<T>> {
    let unique = distinct(values.iter().cloned());
    (!unique.is_empty()).then_some(unique)
}

/// Processors as the kernel lists them: `0-3,8`.
pub(crate) fn cpu_list(value: &str) -> Result<Arc<[usize]>, BadValue> {
    let bad = |message: String| BadValue::new(message, "write processors as the kernel does, such as 0-3,8");
    let mut cpus = Vec::new();
    for part in plain_text(value)?.split(',') {
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
        cpus.extend(first..=last);
    }
    Ok(distinct(cpus).into())
}

/// The kernel's own limit on x86 (`CONFIG_NR_CPUS`).
const MAX_CPUS: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_document_is_found_on_wrong_lines() {
        let place = |line: &str| json_place_of(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        assert_eq!(place("rdsk run --bs --json -"), Some(JsonPlace::Stdout));
        assert_eq!(place("rdsk run --json=x --bs"), Some(JsonPlace::File("x".into())));
        assert_eq!(place("rdsk run -- --json x"), None);
        assert_eq!(place("rdsk run --json"), None);
    }

    #[test]
    fn processors_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-3,8,2"), Ok([0, 1, 2, 3, 8].into()));
        assert_eq!(cpu_list("5"), Ok([5].into()));
        for bad in ["", "-1", "3-1", "0-", "a", "0,,1", "0-9999999", "99999999999999999999", "+1", "0 1"] {
            assert!(cpu_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn counts_are_whole_and_limited() {
        assert_eq!(count(4096)("32"), Ok(32));
        for (bad, said) in [
            ("0", "zero"),
            ("-1", "negative"),
            ("4097", "more than 4096"),
            ("99999999999999999999", "too large"),
            ("1.5", "not a whole number"),
            ("4k", "not a whole number"),
            ("--json", "missing"),
        ] {
            let error = count(4096)(bad).unwrap_err();
            assert!(error.message.contains(said), "{bad}: {error:?}");
        }
        assert_eq!(whole("0"), Ok(0));
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        assert!(whole("18446744073709551616").is_err());
    }

    #[test]
    fn times_keep_to_their_limits() {
        let read = time(Nanos(10_000_000), Nanos(3_600_000_000_000));
        assert_eq!(read("10ms"), Ok(10_000_000));
        assert_eq!(read("1h"), Ok(3_600_000_000_000));
        assert_eq!(read("9ms").unwrap_err().hint, "write at least 10ms");
        assert_eq!(read("61min").unwrap_err().hint, "write at most 1h");
    }
}
