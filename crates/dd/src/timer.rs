//! When calls begin and end. A plain copy does nothing between two calls, so that the end of one is the beginning of the next and the
//! clock is read once for each.

use rdsk_model::Clock;

/// The times of the calls of one copy.
pub(crate) struct Timer<'a> {
    clock: &'a dyn Clock,
    /// Whether nothing is done between two calls.
    is_plain: bool,
    last_ns: Option<u64>,
}

impl<'a> Timer<'a> {
    pub(crate) fn new(clock: &'a dyn Clock, is_plain: bool) -> Self {
        Self { clock, is_plain, last_ns: None }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// A call begins.
    #[inline]
    pub(crate) fn begin(&mut self) -> u64 {
        self.last_ns.take().unwrap_or_else(|| self.clock.now_ns())
    }

    /// It has ended.
    #[inline]
    pub(crate) fn end(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        self.last_ns = Some(now_ns).filter(|_| self.is_plain);
        now_ns
    }

    /// Something else was done since, such as printing.
    pub(crate) fn forget(&mut self) {
        self.last_ns = None;
    }
}
