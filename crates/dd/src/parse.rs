//! The operands of a dd command line: names, sizes, flags and conversions, with dd's own messages for what is wrong. It opens
//! nothing.

use crate::number::{self, NotANumber};
use crate::operands::{Amount, Conversions, Flags, Operands, Status};
use crate::quote::{self, Charset};
use crate::symbols::{self, CONVERSIONS, FLAGS, STATUS};
use rustix::fs::OFlags;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The block size where none is given.
const DEFAULT_BLOCK_BYTES: u64 = 512;
/// The longest block: a buffer must fit into a signed size.
const MOST_BLOCK_BYTES: u64 = i64::MAX as u64 - 1;

/// Why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperandError {
    /// dd adds that `--help` tells more.
    #[error("{message}")]
    Usage {
        /// dd's words.
        message: String,
        /// What dd said before.
        warnings: Vec<String>,
    },
    /// dd says only this.
    #[error("{message}")]
    Value {
        /// dd's words.
        message: String,
        /// What dd said before.
        warnings: Vec<String>,
    },
}

/// Parses operands in their order, as dd does: the first wrong one is told, in the characters of `charset`.
///
/// # Errors
/// When dd would refuse the operands, with its words, or when they ask for a conversion of characters.
pub fn parse(words: &[OsString], charset: Charset) -> Result<Operands, OperandError> {
    let mut raw = Raw { charset, ..Raw::default() };
    let result = raw.take_all(words);
    let warnings = std::mem::take(&mut raw.warnings);
    match result {
        Ok(()) => Ok(Operands { warnings, ..raw.finished() }),
        Err(Refusal::Usage(message)) => Err(OperandError::Usage { message, warnings }),
        Err(Refusal::Value(message)) => Err(OperandError::Value { message, warnings }),
    }
}

enum Refusal {
    Usage(String),
    Value(String),
}

#[derive(Default)]
struct Raw {
    input: Option<OsString>,
    output: Option<OsString>,
    input_block: Option<u64>,
    output_block: Option<u64>,
    block: Option<u64>,
    /// These three with whether they were given in bytes.
    skip: (u64, bool),
    seek: (u64, bool),
    count: Option<(u64, bool)>,
    input_flags: Flags,
    output_flags: Flags,
    convert: Conversions,
    characters: Vec<&'static str>,
    status: Status,
    warnings: Vec<String>,
    charset: Charset,
}

impl Raw {
    /// Options are looked for in the whole line before the first operand is taken; what follows `--` is none.
    fn take_all(&mut self, words: &[OsString]) -> Result<(), Refusal> {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        if let Some(refusal) = words[..end].iter().find_map(|word| option(word.as_bytes())) {
            return Err(refusal);
        }
        for word in words[..end].iter().chain(words[end..].iter().skip(1)) {
            self.take(word)?;
        }
        self.checked()
    }

    fn take(&mut self, word: &OsStr) -> Result<(), Refusal> {
        let (bytes, charset) = (word.as_bytes(), self.charset);
        let unknown = || Refusal::Usage(format!("unrecognized operand {}", quote::operand(bytes, charset)));
        let equals = bytes.iter().position(|&byte| byte == b'=').ok_or_else(unknown)?;
        let (name, value) = (&bytes[..equals], &bytes[equals + 1..]);
        match name {
            b"if" => self.input = Some(OsString::from_vec(value.to_vec())),
            b"of" => self.output = Some(OsString::from_vec(value.to_vec())),
            b"conv" => symbols::each(value, CONVERSIONS, |conversion| match conversion {
                symbols::Conversion::Bytes(set) => set(&mut self.convert),
                symbols::Conversion::Characters(name) => self.characters.push(name),
            })
            .map_err(|symbol| wrong("invalid conversion", symbol, charset))?,
            b"iflag" => symbols::each(value, FLAGS, |set| set(&mut self.input_flags))
                .map_err(|symbol| wrong("invalid input flag", symbol, charset))?,
            b"oflag" => symbols::each(value, FLAGS, |set| set(&mut self.output_flags))
                .map_err(|symbol| wrong("invalid output flag", symbol, charset))?,
            b"status" => symbols::each(value, STATUS, |&status| self.status = status)
                .map_err(|symbol| wrong("invalid status level", symbol, charset))?,
            _ => self.take_number(name, value, unknown)?,
        }
        Ok(())
    }

    fn take_number(
        &mut self,
        name: &[u8],
        value: &[u8],
        unknown: impl Fn() -> Refusal,
    ) -> Result<(), Refusal> {
        let (number, has_zero_multiplier) = number::parse(value);
        if has_zero_multiplier {
            let [zero, intended] = [&b"0x"[..], b"00x"].map(|text| quote::operand(text, self.charset));
            self.warnings
                .push(format!("warning: {zero} is a zero multiplier; use {intended} if that is intended"));
        }
        let is_in_bytes = value.contains(&b'B');
        let (least, most) = match name {
            b"ibs" | b"obs" | b"bs" => (1, MOST_BLOCK_BYTES),
            b"cbs" => (1, number::MOST),
            b"skip" | b"iseek" | b"seek" | b"oseek" | b"count" => (0, number::MOST),
            _ => return Err(unknown()),
        };
        let number = match number {
            Ok(number) if number < least => Err(NotANumber::Invalid),
            Ok(number) if number > most => Err(NotANumber::TooLarge),
            number => number,
        };
        let number = number.map_err(|why| {
            let quoted = quote::operand(value, self.charset);
            Refusal::Value(match why {
                NotANumber::Invalid => format!("invalid number: {quoted}"),
                NotANumber::TooLarge => {
                    format!("invalid number: {quoted}: Value too large for defined data type")
                }
            })
        })?;
        match name {
            b"ibs" => self.input_block = Some(number),
            b"obs" => self.output_block = Some(number),
            b"bs" => self.block = Some(number),
            // The size of records matters for conversions of characters only.
            b"cbs" => {}
            b"count" => self.count = Some((number, is_in_bytes)),
            b"skip" | b"iseek" => self.skip = (number, is_in_bytes),
            _ => self.seek = (number, is_in_bytes),
        }
        Ok(())
    }

    /// What dd refuses of the whole.
    fn checked(&mut self) -> Result<(), Refusal> {
        if self.output_flags.is_full_block {
            return Err(wrong("invalid output flag", b"fullblock", self.charset));
        }
        let cannot = |what: &str| Err(Refusal::Value(format!("cannot combine {what}")));
        let several = |names: &[&str]| names.iter().filter(|name| self.characters.contains(name)).count() > 1;
        if several(&["ascii", "ebcdic", "ibm"]) {
            return cannot("any two of {ascii,ebcdic,ibm}");
        }
        if several(&["block", "unblock"]) {
            return cannot("block and unblock");
        }
        if several(&["lcase", "ucase"]) {
            return cannot("lcase and ucase");
        }
        if self.convert.is_exclusive && self.convert.is_no_create {
            return cannot("excl and nocreat");
        }
        let is_both = |flags: &Flags| flags.is_no_cache && flags.open.contains(OFlags::DIRECT);
        if is_both(&self.input_flags) || is_both(&self.output_flags) {
            return cannot("direct and nocache");
        }
        if self.output_flags.open.contains(OFlags::APPEND) && !self.convert.is_no_truncate {
            self.warnings.push("you probably want conv=notrunc with oflag=append".into());
        }
        match self.characters.first() {
            Some(name) => Err(Refusal::Value(format!(
                "conv={name} is not supported: rdsk copies bytes and converts no characters"
            ))),
            None => Ok(()),
        }
    }

    fn finished(self) -> Operands {
        let size = |own: Option<u64>| self.block.or(own).unwrap_or(DEFAULT_BLOCK_BYTES);
        let (input_block_bytes, output_block_bytes) = (size(self.input_block), size(self.output_block));
        let (mut input_flags, mut output_flags) = (self.input_flags, self.output_flags);
        input_flags.skips_bytes |= self.skip.1;
        input_flags.counts_bytes |= self.count.is_some_and(|(_, is_in_bytes)| is_in_bytes);
        output_flags.seeks_bytes |= self.seek.1;
        if input_flags.open.intersects(OFlags::DSYNC | OFlags::SYNC) {
            input_flags.open |= OFlags::RSYNC;
        }
        Operands {
            input: self.input,
            output: self.output,
            input_block_bytes,
            output_block_bytes,
            is_one_block: self.block.is_some(),
            skip: amount(self.skip.0, input_block_bytes, input_flags.skips_bytes),
            seek: amount(self.seek.0, output_block_bytes, output_flags.seeks_bytes),
            count: self.count.map(|(count, _)| amount(count, input_block_bytes, input_flags.counts_bytes)),
            input_flags,
            output_flags,
            convert: self.convert,
            status: self.status,
            warnings: self.warnings,
            charset: self.charset,
        }
    }
}

fn amount(number: u64, block_bytes: u64, is_in_bytes: bool) -> Amount {
    if is_in_bytes {
        Amount { blocks: number / block_bytes, bytes: number % block_bytes }
    } else {
        Amount { blocks: number, bytes: 0 }
    }
}

/// A word that looks like an option, as getopt(3) complains of it.
fn option(word: &[u8]) -> Option<Refusal> {
    if word.starts_with(b"--") {
        return Some(Refusal::Usage(format!("unrecognized option '{}'", String::from_utf8_lossy(word))));
    }
    match word {
        [b'-', letter, ..] => Some(Refusal::Usage(format!("invalid option -- '{}'", char::from(*letter)))),
        _ => None,
    }
}

fn wrong(what: &str, symbol: &[u8], charset: Charset) -> Refusal {
    Refusal::Usage(format!("{what}: {}", quote::operand(symbol, charset)))
}
