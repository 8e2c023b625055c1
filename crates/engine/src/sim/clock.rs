//! The virtual clock of simulated hosts. It advances only when a program sleeps or an event happens.

use rdsk_disk::SharedLab;
use rdsk_model::{Clock, StopFlag};

/// The time of a lab, as programs on its hosts read it.
#[derive(Clone, Debug)]
pub struct SimClock {
    pub(super) lab: SharedLab,
    pub(super) resolution_ns: u64,
}

impl SimClock {
    /// What the clock shows at a time of the lab.
    pub(super) fn reading_ns(&self, true_ns: u64) -> u64 {
        true_ns - true_ns % self.resolution_ns
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> u64 {
        self.reading_ns(self.lab.lock().now_ns())
    }

    fn sleep_until_ns(&self, at_ns: u64, stop: &StopFlag) {
        if !stop.is_raised() {
            self.lab.lock().advance(at_ns);
        }
    }
}
