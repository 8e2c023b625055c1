//! What the history of its accesses makes of a device: the first access to a place that takes longer, and sleep. It keeps times and
//! places, and serves nothing.

use crate::params::{FirstAccessParams, FirstOf, SleepParams};
use crate::request::{Op, Request};
use std::collections::HashSet;

/// Which places of a device were accessed.
#[derive(Clone, Debug)]
pub struct FirstAccesses {
    params: FirstAccessParams,
    places: HashSet<u64>,
}

impl FirstAccesses {
    /// Of a device that nothing has accessed.
    pub fn new(params: FirstAccessParams) -> Self {
        Self { params, places: HashSet::new() }
    }

    /// Takes a request; how much longer it takes for the places that it is the first to reach, in ns.
    pub fn costs_ns(&mut self, request: &Request) -> u64 {
        let counts = match request.op {
            Op::Read => self.params.of == FirstOf::Any,
            Op::Write => true,
            Op::Flush => false,
        };
        if !counts || request.bytes == 0 {
            return 0;
        }
        let place = |byte: u64| byte / self.params.place_bytes;
        let (first, last) = (place(request.offset_bytes), place(request.end_bytes() - 1));
        let new = (first..=last).filter(|&place| self.places.insert(place)).count();
        self.params.costs_ns.saturating_mul(new as u64)
    }
}

/// When a device was used last, and when it is awake.
#[derive(Clone, Debug)]
pub struct Sleeper {
    params: SleepParams,
    used_until_ns: u64,
    awake_ns: u64,
}

impl Sleeper {
    /// Of a device that sleeps.
    pub fn new(params: SleepParams) -> Self {
        Self { params, used_until_ns: 0, awake_ns: 0 }
    }

    /// When a read or write that arrives at `now_ns` is served: at once, or when the device is awake.
    pub fn served_at_ns(&mut self, now_ns: u64) -> u64 {
        let has_begun = self.awake_ns > 0;
        if !has_begun || now_ns.saturating_sub(self.used_until_ns) >= self.params.after_ns {
            self.awake_ns = now_ns.saturating_add(self.params.wakes_in_ns).max(1);
        }
        now_ns.max(self.awake_ns)
    }

    /// Notes until when it is used.
    pub fn used_until(&mut self, end_ns: u64) {
        self.used_until_ns = self.used_until_ns.max(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_costs_once() {
        let of = |of| FirstAccesses::new(FirstAccessParams { place_bytes: 1000, costs_ns: 7, of });
        let mut any = of(FirstOf::Any);
        let costs = |accesses: &mut FirstAccesses, request| accesses.costs_ns(&request);
        assert_eq!(costs(&mut any, Request::read(0, 512)), 7);
        assert_eq!(costs(&mut any, Request::read(512, 1024)), 7, "one of its two places is known");
        assert_eq!(costs(&mut any, Request::write(0, 512)), 0);
        assert_eq!(costs(&mut any, Request::write(5000, 2000)), 14);
        assert_eq!(costs(&mut any, Request::flush()), 0);
        let mut writes = of(FirstOf::Writes);
        assert_eq!(costs(&mut writes, Request::read(0, 512)), 0);
        assert_eq!(costs(&mut writes, Request::write(0, 512)), 7);
    }

    #[test]
    fn it_sleeps_after_a_rest_and_wakes_once() {
        let mut sleeper = Sleeper::new(SleepParams { after_ns: 300, wakes_in_ns: 40 });
        let mut served = |now_ns: u64| {
            let at_ns = sleeper.served_at_ns(now_ns);
            sleeper.used_until(at_ns + 10);
            at_ns
        };
        assert_eq!(served(5), 45, "asleep at first");
        assert_eq!(served(20), 45, "it is waking up");
        assert_eq!(served(100), 100);
        assert_eq!(served(409), 409, "299 of rest");
        assert_eq!(served(719), 759);
    }
}
