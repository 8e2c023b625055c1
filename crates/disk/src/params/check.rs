//! Walks a system's figures and remembers where it is, so that a wrong one is named with its key. It reads no text.

/// A figure that cannot be.
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

    /// Names a figure of this table as wrong.
    pub(crate) fn wrong(&self, key: &str, reason: &str) -> Wrong {
        let mut path = self.tables.clone();
        path.push(key.to_owned());
        Wrong { key: path.join("."), reason: reason.to_owned() }
    }

    /// A rate, a speed or a factor: above zero and finite.
    pub(crate) fn rate(&self, key: &str, value: f64) -> Result<(), Wrong> {
        if value < 0.0 {
            return Err(self.wrong(key, "is negative"));
        }
        if value > 0.0 && value.is_finite() { Ok(()) } else { Err(self.wrong(key, "must be above zero")) }
    }

    /// A time or cost that may be nothing: not negative and finite.
    pub(crate) fn cost(&self, key: &str, value: f64) -> Result<(), Wrong> {
        if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(self.wrong(key, "is negative")) }
    }

    /// A count or size: above zero.
    pub(crate) fn positive(&self, key: &str, value: u64) -> Result<(), Wrong> {
        if value > 0 { Ok(()) } else { Err(self.wrong(key, "must be above zero")) }
    }

    /// A size in whole sectors of 512 bytes, above zero.
    pub(crate) fn sectors(&self, key: &str, bytes: u64) -> Result<(), Wrong> {
        self.positive(key, bytes)?;
        if bytes.is_multiple_of(512) { Ok(()) } else { Err(self.wrong(key, "is no multiple of 512 bytes")) }
    }
}
