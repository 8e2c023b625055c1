//! When calls begin and end. A plain copy does nothing between two calls, so the end of one is the beginning of the next: a
//! reading of the clock takes 20 ns, and two fewer for each block are 1 % of a copy of 16 KiB blocks in memory.

use std::time::Instant;

/// The times of the calls of one copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// Whether nothing is done between two calls.
    is_plain: bool,
    last: Option<Instant>,
}

impl Stamps {
    pub(crate) fn new(is_plain: bool) -> Self {
        Self { is_plain, last: None }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self) -> Instant {
        self.last.take().unwrap_or_else(Instant::now)
    }

    /// It has ended.
    pub(crate) fn end(&mut self) -> Instant {
        let now = Instant::now();
        self.last = Some(now).filter(|_| self.is_plain);
        now
    }

    /// Something else was done since, such as printing.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_call_is_the_beginning_of_the_next_unless_something_came_between() {
        let mut stamps = Stamps::new(true);
        stamps.begin();
        let end = stamps.end();
        assert_eq!(stamps.begin(), end);
        let end = stamps.end();
        stamps.forget();
        assert!(stamps.begin() >= end);
        let mut apart = Stamps::new(false);
        apart.end();
        assert_eq!(apart.last, None);
    }
}
