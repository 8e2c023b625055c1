//! The words of `iflag`, `oflag`, `conv` and `status`, and what each sets.

use crate::operands::{Conversions, Flags, Status};
use rustix::fs::OFlags;

/// What a word of `conv` asks for.
pub(crate) enum Conversion {
    Bytes(fn(&mut Conversions)),
    /// A conversion of characters, which rdsk does not do.
    Characters(&'static str),
}

type SetFlag = fn(&mut Flags);

pub(crate) const FLAGS: &[(&str, SetFlag)] = &[
    ("append", |flags| flags.open |= OFlags::APPEND),
    ("direct", |flags| flags.open |= OFlags::DIRECT),
    ("directory", |flags| flags.open |= OFlags::DIRECTORY),
    ("dsync", |flags| flags.open |= OFlags::DSYNC),
    ("noatime", |flags| flags.open |= OFlags::NOATIME),
    ("nocache", |flags| flags.is_no_cache = true),
    ("noctty", |flags| flags.open |= OFlags::NOCTTY),
    ("nofollow", |flags| flags.open |= OFlags::NOFOLLOW),
    ("nonblock", |flags| flags.open |= OFlags::NONBLOCK),
    ("sync", |flags| flags.open |= OFlags::SYNC),
    ("fullblock", |flags| flags.is_full_block = true),
    ("count_bytes", |flags| flags.counts_bytes = true),
    ("skip_bytes", |flags| flags.skips_bytes = true),
    ("seek_bytes", |flags| flags.seeks_bytes = true),
];

pub(crate) const CONVERSIONS: &[(&str, Conversion)] = &[
    ("ascii", Conversion::Characters("ascii")),
    ("ebcdic", Conversion::Characters("ebcdic")),
    ("ibm", Conversion::Characters("ibm")),
    ("block", Conversion::Characters("block")),
    ("unblock", Conversion::Characters("unblock")),
    ("lcase", Conversion::Characters("lcase")),
    ("ucase", Conversion::Characters("ucase")),
    ("sparse", Conversion::Bytes(|convert| convert.is_sparse = true)),
    ("swab", Conversion::Bytes(|convert| convert.is_swab = true)),
    ("noerror", Conversion::Bytes(|convert| convert.is_no_error = true)),
    ("nocreat", Conversion::Bytes(|convert| convert.is_no_create = true)),
    ("excl", Conversion::Bytes(|convert| convert.is_exclusive = true)),
    ("notrunc", Conversion::Bytes(|convert| convert.is_no_truncate = true)),
    ("sync", Conversion::Bytes(|convert| convert.is_sync = true)),
    ("fdatasync", Conversion::Bytes(|convert| convert.is_fdatasync = true)),
    ("fsync", Conversion::Bytes(|convert| convert.is_fsync = true)),
];

pub(crate) const STATUS: &[(&str, Status)] =
    &[("none", Status::None), ("noxfer", Status::NoTransfer), ("progress", Status::Progress)];

/// Hands out the meaning of each word of a list with commas; the word that has none otherwise.
pub(crate) fn each<'v, T>(
    value: &'v [u8],
    table: &'static [(&'static str, T)],
    mut take: impl FnMut(&'static T),
) -> Result<(), &'v [u8]> {
    for word in value.split(|&byte| byte == b',') {
        let (_, meaning) = table.iter().find(|(name, _)| name.as_bytes() == word).ok_or(word)?;
        take(meaning);
    }
    Ok(())
}
