//! The operands of a dd command line: names, sizes, flags and conversions. What changes the data, and measures nothing, is not taken.
//! It opens nothing.

use crate::operands::{Amount, Conversions, Flags, Operands, Status};
use rdsk_units::printable;
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The block size where none is given.
const DEFAULT_BLOCK_BYTES: u64 = 512;

/// Why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperandError {
    /// It is wrong for dd, too.
    #[error("{0}")]
    Wrong(String),
    /// dd takes it, and this loop does not.
    #[error("{0} is not taken: it measures nothing")]
    NotTaken(String),
}

type SetFlag = fn(&mut Flags);

const FLAGS: &[(&str, SetFlag)] = &[
    ("append", |flags| flags.open |= OFlags::APPEND),
    ("direct", |flags| flags.open |= OFlags::DIRECT),
    ("dsync", |flags| flags.open |= OFlags::DSYNC),
    ("noatime", |flags| flags.open |= OFlags::NOATIME),
    ("nocache", |flags| flags.is_no_cache = true),
    ("noctty", |flags| flags.open |= OFlags::NOCTTY),
    ("nofollow", |flags| flags.open |= OFlags::NOFOLLOW),
    ("nonblock", |flags| flags.open |= OFlags::NONBLOCK),
    ("sync", |flags| flags.open |= OFlags::SYNC),
    ("fullblock", |flags| flags.is_full_block = true),
    ("count_bytes", |flags| flags.in_bytes[0] = true),
    ("skip_bytes", |flags| flags.in_bytes[1] = true),
    ("seek_bytes", |flags| flags.in_bytes[2] = true),
];

type SetConversion = fn(&mut Conversions);

const CONVERSIONS: &[(&str, SetConversion)] = &[
    ("sparse", |convert| convert.is_sparse = true),
    ("noerror", |convert| convert.is_no_error = true),
    ("nocreat", |convert| convert.is_no_create = true),
    ("excl", |convert| convert.is_exclusive = true),
    ("notrunc", |convert| convert.is_no_truncate = true),
    ("sync", |convert| convert.is_sync = true),
    ("fdatasync", |convert| convert.is_fdatasync = true),
    ("fsync", |convert| convert.is_fsync = true),
];

const STATUS: &[(&str, Status)] =
    &[("none", Status::None), ("noxfer", Status::NoTransfer), ("progress", Status::Progress)];

/// Words of dd on this system and on others that this loop does not take.
const NOT_TAKEN: &str = "ascii ebcdic ibm block unblock lcase ucase swab binary text cio nolinks directory";

/// Parses operands in their order; of two of one name the later one counts.
///
/// # Errors
/// What is wrong with the first operand that is, or that it is one of dd's own.
pub fn parse(words: &[OsString]) -> Result<Operands, OperandError> {
    let mut given = Given::default();
    for word in words {
        given.take(word)?;
    }
    given.check()?;
    Ok(given.finished())
}

/// A number, and whether it counts bytes.
#[derive(Clone, Copy, Default)]
struct Number(u64, bool);

/// Operands, with the numbers as they were given.
#[derive(Default)]
struct Given {
    operands: Operands,
    input_block: Option<u64>,
    output_block: Option<u64>,
    block: Option<u64>,
    skip: Number,
    seek: Number,
    count: Option<Number>,
}

impl Given {
    fn take(&mut self, word: &OsStr) -> Result<(), OperandError> {
        let text = word.to_string_lossy();
        let Some((name, value)) = text.split_once('=') else {
            return Err(wrong(format!("unknown operand {}", printable(&text))));
        };
        let operands = &mut self.operands;
        match name {
            // A name need not be text; the three bytes before it are.
            "if" => operands.input = Some(OsStr::from_bytes(&word.as_bytes()[3..]).to_owned()),
            "of" => operands.output = Some(OsStr::from_bytes(&word.as_bytes()[3..]).to_owned()),
            "conv" => each(name, value, CONVERSIONS, |set| set(&mut operands.convert))?,
            "iflag" => each(name, value, FLAGS, |set| set(&mut operands.input_flags))?,
            "oflag" => each(name, value, FLAGS, |set| set(&mut operands.output_flags))?,
            "status" => each(name, value, STATUS, |&status| operands.status = status)?,
            "cbs" => return Err(OperandError::NotTaken("cbs=".into())),
            _ => self.take_number(name, value)?,
        }
        Ok(())
    }

    fn take_number(&mut self, name: &str, value: &str) -> Result<(), OperandError> {
        let is_block = matches!(name, "ibs" | "obs" | "bs");
        if !is_block && !matches!(name, "skip" | "iseek" | "seek" | "oseek" | "count") {
            return Err(wrong(format!("unknown operand {}=", printable(name))));
        }
        let shown = printable(value);
        let number = number(value).ok_or_else(|| wrong(format!("{name}={shown} is not a number")))?;
        if is_block && number == 0 {
            return Err(wrong(format!("{name}={shown} is not allowed: a block has at least 1 byte")));
        }
        if is_block && number == MOST {
            return Err(wrong(format!("{name}={shown} is too large")));
        }
        let counted = Number(number, value.contains('B'));
        match name {
            "ibs" => self.input_block = Some(number),
            "obs" => self.output_block = Some(number),
            "bs" => self.block = Some(number),
            "count" => self.count = Some(counted),
            "skip" | "iseek" => self.skip = counted,
            _ => self.seek = counted,
        }
        Ok(())
    }

    fn check(&self) -> Result<(), OperandError> {
        let Operands { convert, input_flags, output_flags, .. } = &self.operands;
        let is_both = |flags: &Flags| flags.is_no_cache && flags.open.contains(OFlags::DIRECT);
        if output_flags.is_full_block {
            return Err(wrong("oflag=fullblock: only reads are filled up".into()));
        }
        if convert.is_exclusive && convert.is_no_create {
            return Err(wrong("conv=excl and conv=nocreat exclude each other".into()));
        }
        if is_both(input_flags) || is_both(output_flags) {
            return Err(wrong(
                "direct and nocache exclude each other: direct I/O leaves nothing in the cache".into(),
            ));
        }
        Ok(())
    }

    fn finished(self) -> Operands {
        let size = |own: Option<u64>| self.block.or(own).unwrap_or(DEFAULT_BLOCK_BYTES);
        let (input_block_bytes, output_block_bytes) = (size(self.input_block), size(self.output_block));
        let [in_input, in_output] =
            [self.operands.input_flags, self.operands.output_flags].map(|flags| flags.in_bytes);
        Operands {
            input_block_bytes,
            output_block_bytes,
            is_one_block: self.block.is_some(),
            count: self.count.map(|count| amount(count, input_block_bytes, in_input[0])),
            skip: amount(self.skip, input_block_bytes, in_input[1]),
            seek: amount(self.seek, output_block_bytes, in_output[2]),
            ..self.operands
        }
    }
}

fn amount(Number(number, is_in_bytes): Number, block_bytes: u64, flag: bool) -> Amount {
    if is_in_bytes || flag {
        Amount { blocks: number / block_bytes, bytes: number % block_bytes }
    } else {
        Amount { blocks: number, bytes: 0 }
    }
}

/// Hands out the meaning of each word of a list with commas.
fn each<T>(
    name: &str,
    value: &str,
    table: &'static [(&'static str, T)],
    mut take: impl FnMut(&'static T),
) -> Result<(), OperandError> {
    for word in value.split(',') {
        match table.iter().find(|(name, _)| *name == word) {
            Some((_, meaning)) => take(meaning),
            None if NOT_TAKEN.split(' ').any(|other| other == word) => {
                return Err(OperandError::NotTaken(format!("{name}={word}")));
            }
            None => return Err(wrong(format!("{name}={} is unknown", printable(word)))),
        }
    }
    Ok(())
}

fn wrong(message: String) -> OperandError {
    OperandError::Wrong(message)
}

/// The greatest number that dd takes.
const MOST: u64 = i64::MAX as u64;

/// The whole text as a number; `None` for what is none, and for one that is too large. A suffix alone is one of it (`k` is 1024), a `B`
/// after a letter makes it decimal (`kB` is 1000), a `B` behind the first factor says that bytes are counted, and `x` multiplies:
/// `2x80x18b` are 1,474,560.
fn number(text: &str) -> Option<u64> {
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

    fn parsed(line: &str) -> Result<Operands, OperandError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&words)
    }

    #[test]
    fn blocks_and_bytes_are_told_apart() {
        let operands =
            parsed("ibs=1k obs=3 count=10 skip=1500B oseek=7 iflag=count_bytes if=a=b bs=8 bs=4").unwrap();
        assert_eq!((operands.input_block_bytes, operands.output_block_bytes), (4, 4), "the later bs counts");
        assert_eq!(operands.count, Some(Amount { blocks: 2, bytes: 2 }));
        assert_eq!(
            (operands.skip, operands.seek),
            (Amount { blocks: 375, bytes: 0 }, Amount { blocks: 7, bytes: 0 })
        );
        assert_eq!(operands.input, Some("a=b".into()));
    }

    #[test]
    fn what_dd_takes_and_this_loop_does_not_is_told_apart_from_what_is_wrong() {
        for line in ["conv=swab", "conv=sync,ascii", "iflag=directory", "cbs=80"] {
            assert!(matches!(parsed(line), Err(OperandError::NotTaken(_))), "{line}");
        }
        for line in [
            "conv=bogus", "iflag=", "oflag=fullblock", "status=x", "bs=0", "ibs=0", "bs=x", "count=-1",
            "foo", "foo=1", "=", "conv=excl,nocreat", "iflag=direct,nocache", "bs=9223372036854775807", "",
        ] {
            let words = [OsString::from(line)];
            assert!(matches!(parse(&words), Err(OperandError::Wrong(_))), "{line}");
        }
        for (line, why) in [
            ("bs=0", "bs=0 is not allowed: a block has at least 1 byte"),
            ("bs=9223372036854775807", "is too large"),
            ("bs=x", "bs=x is not a number"),
        ] {
            let error = parse(&[OsString::from(line)]).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

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
            assert_eq!(number(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "", "+", "x", "1x", "x1", "-1", "0x1F", "1kk", "2kBB", "5i", "1,5", "12 ", "B", "2x3B", "2x3bB",
            "1Q", "9223372036854775808", "99999999999999999999", "1Z", "8E", "9999999999x9999999999",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
