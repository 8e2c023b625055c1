//! Checks the parameters of a system and tracks the path of keys, so that an error names the key. It reads no text.
//!
//! Every parameter has a maximum far above any real device or host: within these limits nothing overflows, no request takes more
//! steps than it has sectors, and memory use stays small.

use std::fmt::Display;

/// Longest time that a device or a call may take for one thing.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// Longest time that anything may wait in a queue: eleven and a half days.
const LONGEST_SPAN_NS: u64 = 1_000_000_000_000_000;

/// Largest device, 2^60 bytes.
pub(crate) const MAX_BYTES: u64 = 1 << 60;

/// Largest request that a host makes.
pub(crate) const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// Longest list that is kept: servers, dies, segments, pieces.
pub(crate) const MAX_PLACES: u64 = 4096;

/// An impossible parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The key with its tables: `luns[0].device.disk.rpm`.
    pub(crate) key: String,
    /// Why.
    pub(crate) reason: String,
}

/// The table being checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checker {
    tables: Vec<String>,
}

impl Checker {
    /// Checks a table inside this one.
    pub(crate) fn within(
        &mut self,
        table: &str,
        check: impl FnOnce(&mut Checker) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        self.tables.push(table.to_owned());
        let checked = check(self);
        self.tables.pop();
        checked
    }

    /// The error for a parameter of this table.
    pub(crate) fn wrong(&self, key: &str, reason: impl Display) -> Wrong {
        let mut path = self.tables.clone();
        path.push(key.to_owned());
        Wrong { key: path.join("."), reason: reason.to_string() }
    }

    /// What must hold of a parameter of this table, and the reason if it does not.
    pub(crate) fn require(&self, key: &str, holds: bool, reason: impl Display) -> Result<(), Wrong> {
        if holds { Ok(()) } else { Err(self.wrong(key, reason)) }
    }

    /// A rate, a speed or a factor: above zero, and within `least` and `most`.
    pub(crate) fn rate(&self, key: &str, value: f64, (least, most): (f64, f64)) -> Result<(), Wrong> {
        self.number(key, value)?;
        self.require(key, value != 0.0, "must be above zero")?;
        self.require(key, value >= least, format_args!("is less than {least}"))?;
        self.require(key, value <= most, format_args!("is more than {most}"))
    }

    /// Bytes per second of anything that moves data.
    pub(crate) fn bytes_per_s(&self, key: &str, value: f64) -> Result<(), Wrong> {
        self.rate(key, value, (1e3, 1e15))
    }

    /// A cost that may be zero, in ns.
    pub(crate) fn cost(&self, key: &str, value: f64) -> Result<(), Wrong> {
        self.number(key, value)?;
        self.require(key, value <= LONGEST_NS as f64, "is more than a thousand seconds")
    }

    /// A time that may be zero.
    pub(crate) fn time(&self, key: &str, ns: u64) -> Result<(), Wrong> {
        self.require(key, ns <= LONGEST_NS, "is more than a thousand seconds")
    }

    /// A waiting time that may be zero.
    pub(crate) fn span(&self, key: &str, ns: u64) -> Result<(), Wrong> {
        self.require(key, ns <= LONGEST_SPAN_NS, "is more than eleven days")
    }

    /// A count or size that may be zero, at most `most`.
    pub(crate) fn at_most(&self, key: &str, value: u64, most: u64) -> Result<(), Wrong> {
        self.require(key, value <= most, format_args!("is more than {most}"))
    }

    /// A count or size above zero, at most `most`.
    pub(crate) fn count(&self, key: &str, value: u64, most: u64) -> Result<(), Wrong> {
        self.positive(key, value)?;
        self.at_most(key, value, most)
    }

    fn number(&self, key: &str, value: f64) -> Result<(), Wrong> {
        let reason = match value {
            value if value.is_nan() => "is not a number",
            value if value < 0.0 => "is negative",
            value if value.is_infinite() => "is infinite",
            _ => return Ok(()),
        };
        Err(self.wrong(key, reason))
    }

    /// A count or size: above zero.
    pub(crate) fn positive(&self, key: &str, value: u64) -> Result<(), Wrong> {
        self.require(key, value > 0, "must be above zero")
    }

    /// A size of a device or a part of one: whole sectors, above zero.
    pub(crate) fn size(&self, key: &str, bytes: u64) -> Result<(), Wrong> {
        self.sectors(key, bytes)?;
        self.at_most(key, bytes, MAX_BYTES)
    }

    /// A size in whole sectors of 512 bytes, above zero.
    pub(crate) fn sectors(&self, key: &str, bytes: u64) -> Result<(), Wrong> {
        self.positive(key, bytes)?;
        self.require(key, bytes.is_multiple_of(512), "is no multiple of 512 bytes")
    }
}
