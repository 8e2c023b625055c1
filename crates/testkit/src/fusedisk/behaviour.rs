//! A simple device whose behaviour a test programs: the time of each part of it, how many requests it serves at once, and its
//! faults. It computes times only; it holds no content and reads no clock.

use rdsk_disk::{Completion, Fault, FirstAccessParams, FirstAccesses, Op, Request, SleepParams, Sleeper};
use std::ops::Range;

/// What requests to a part of the device cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Bytes of the device.
    pub range: Range<u64>,
    /// What they cost.
    pub cost: Cost,
}

/// The time of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cost {
    /// Per request whose first byte lies here, in ns, independent of its size.
    Latency(u64),
    /// Per byte that lies here: bytes per second, above 0.
    Rate(f64),
}

/// A device that stalls periodically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// From the end of one stall to the end of the next, in ns; longer than `lasts_ns`.
    pub every_ns: u64,
    /// Length of a stall, in ns; it lies at the end of each period.
    pub lasts_ns: u64,
}

/// Requests with an extra cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Every n-th read or write, counted from 1; 0 is never.
    pub every: u64,
    /// How much more, in ns.
    pub costs_ns: u64,
}

/// A bucket of tokens, as the burst credit of a cloud volume: so many requests at their own cost, then each at a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Requests that a full bucket lets pass.
    pub requests: u64,
    /// What each further one costs, in ns, above 0; so long at rest fills in one token.
    pub then_ns: u64,
}

/// The behaviour of the device. The default answers immediately, one request at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Behaviour {
    /// How many requests are served at once, in order of arrival: another one starts when the first of them is done. 0 counts as 1.
    pub servers: usize,
    /// What each read or write outside all zones costs, in ns.
    pub latency_ns: u64,
    /// Ranges with a cost of their own; where they overlap, the first one counts.
    pub zones: Vec<Zone>,
    /// What a flush costs, in ns, once everything before it is done.
    pub flush_ns: u64,
    /// Bytes that cannot be read or written: a request that touches them takes its time and fails with EIO.
    pub errors: Vec<Range<u64>>,
    /// When it stalls.
    pub stall: Option<Stall>,
    /// Which requests cost more.
    pub extra: Option<Extra>,
    /// What the first access of a place costs, while its server serves nothing else.
    pub first_access: Option<FirstAccessParams>,
    /// When it sleeps.
    pub sleep: Option<SleepParams>,
    /// How many are as fast as the rest says.
    pub bucket: Option<Bucket>,
}

impl Behaviour {
    /// One request at a time, each this long.
    pub fn single(latency_ns: u64) -> Self {
        Self { latency_ns, ..Self::default() }
    }

    /// This many requests at once, each this long.
    pub fn parallel(servers: usize, latency_ns: u64) -> Self {
        Self { servers, latency_ns, ..Self::default() }
    }

    /// Requests whose first byte is in `range` cost `latency_ns`.
    pub fn zone_latency(mut self, range: Range<u64>, latency_ns: u64) -> Self {
        self.zones.push(Zone { range, cost: Cost::Latency(latency_ns) });
        self
    }

    /// Bytes in `range` transfer at `bytes_per_s`.
    pub fn zone_rate(mut self, range: Range<u64>, bytes_per_s: f64) -> Self {
        self.zones.push(Zone { range, cost: Cost::Rate(bytes_per_s) });
        self
    }

    /// The time of one read or write without extra cost and stalls.
    fn service_ns(&self, request: &Request) -> f64 {
        let mut at = request.offset_bytes;
        let mut total_ns = match self.zone_at(at).map(|zone| zone.cost) {
            Some(Cost::Latency(latency_ns)) => latency_ns as f64,
            Some(Cost::Rate(_)) => 0.0,
            None => self.latency_ns as f64,
        };
        while at < request.end_bytes() {
            let zone = self.zone_at(at);
            // A piece ends where any zone starts or ends, so that zones under others count too.
            let edges = self.zones.iter().flat_map(|zone| [zone.range.start, zone.range.end]);
            let end = edges.filter(|edge| *edge > at).min().unwrap_or(u64::MAX).min(request.end_bytes());
            if let Some(Zone { cost: Cost::Rate(bytes_per_s), .. }) = zone {
                total_ns += (end - at) as f64 / bytes_per_s * 1e9;
            }
            at = end;
        }
        total_ns
    }

    fn zone_at(&self, at: u64) -> Option<&Zone> {
        self.zones.iter().find(|zone| zone.range.contains(&at))
    }

    fn fault(&self, request: &Request) -> Option<Fault> {
        let bad = self
            .errors
            .iter()
            .find(|range| request.offset_bytes < range.end && range.start < request.end_bytes())?;
        Some(Fault::Media { offset_bytes: bad.start.max(request.offset_bytes) })
    }
}

/// The state of a [`Behaviour`]: when its servers are free, and how many requests there were.
#[derive(Clone, Debug)]
pub(crate) struct Programmed {
    behaviour: Behaviour,
    /// When each server is free, in the device's own time, which stops during a stall.
    free_ns: Vec<u64>,
    count: u64,
    first_accesses: Option<FirstAccesses>,
    sleeper: Option<Sleeper>,
    /// Tokens taken from a bucket.
    taken: u64,
}

impl Programmed {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        let free_ns = vec![0; behaviour.servers.max(1)];
        let first_accesses = behaviour.first_access.map(FirstAccesses::new);
        let sleeper = behaviour.sleep.map(Sleeper::new);
        Self { behaviour, free_ns, count: 0, first_accesses, sleeper, taken: 0 }
    }

    /// Takes a request at `now_ns`, which never goes back.
    pub(crate) fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        let arrival_ns = self.own_ns(now_ns);
        let (start_ns, end_ns) = if request.op == Op::Flush {
            let start_ns = self.free_ns.iter().copied().fold(arrival_ns, u64::max);
            let end_ns = start_ns + self.behaviour.flush_ns;
            self.free_ns.fill(end_ns);
            (start_ns, end_ns)
        } else {
            self.refill(arrival_ns);
            let service_ns = self.next_service_ns(&request);
            let server = self.free_ns.iter_mut().min().expect("there is at least one server");
            let awake_ns =
                self.sleeper.as_mut().map_or(arrival_ns, |sleeper| sleeper.served_at_ns(arrival_ns));
            let start_ns = awake_ns.max(*server);
            *server = start_ns + service_ns;
            if let Some(sleeper) = &mut self.sleeper {
                sleeper.used_until(*server);
            }
            (start_ns, *server)
        };
        let start_ns = self.outer_ns(start_ns).max(now_ns);
        let end_ns = self.outer_ns(end_ns).max(start_ns);
        let fault = if request.op == Op::Flush { None } else { self.behaviour.fault(&request) };
        Completion { start_ns, end_ns, outcome: fault.map_or(Ok(()), Err) }
    }

    /// Puts back what the time at rest before an arrival gives.
    fn refill(&mut self, arrival_ns: u64) {
        let Some(bucket) = self.behaviour.bucket else { return };
        let busy_until_ns = self.free_ns.iter().copied().max().unwrap_or(0);
        let rested_ns = arrival_ns.saturating_sub(busy_until_ns);
        self.taken = self.taken.saturating_sub(rested_ns / bucket.then_ns.max(1));
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the time of one request is not negative and far below 2^53 ns"
    )]
    fn next_service_ns(&mut self, request: &Request) -> u64 {
        self.count += 1;
        let first_ns = self.first_accesses.as_mut().map_or(0, |accesses| accesses.costs_ns(request));
        let mut service_ns = self.behaviour.service_ns(request).round() as u64;
        if let Some(bucket) = self.behaviour.bucket {
            if self.taken >= bucket.requests {
                service_ns = bucket.then_ns;
            } else {
                self.taken += 1;
            }
        }
        service_ns += first_ns;
        match self.behaviour.extra {
            Some(extra) if extra.every > 0 && self.count.is_multiple_of(extra.every) => {
                service_ns + extra.costs_ns
            }
            _ => service_ns,
        }
    }

    /// The device's own time at `ns`.
    fn own_ns(&self, ns: u64) -> u64 {
        let Some((every_ns, active_ns)) = self.period() else { return ns };
        ns / every_ns * active_ns + (ns % every_ns).min(active_ns)
    }

    /// The time at which the device's own time has reached `own_ns`. A request that ends exactly
    /// when a stall starts ends before it.
    fn outer_ns(&self, own_ns: u64) -> u64 {
        let Some((every_ns, active_ns)) = self.period() else { return own_ns };
        let periods = own_ns.saturating_sub(1) / active_ns;
        periods * every_ns + (own_ns - periods * active_ns)
    }

    /// Length of a period and of the activity in it; `None` without stalls.
    fn period(&self) -> Option<(u64, u64)> {
        let stall = self.behaviour.stall?;
        let active_ns = stall.every_ns.checked_sub(stall.lasts_ns).filter(|active_ns| *active_ns > 0)?;
        Some((stall.every_ns, active_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ends(behaviour: Behaviour, requests: &[(u64, Request)]) -> Vec<u64> {
        let mut device = Programmed::new(behaviour);
        requests.iter().map(|(at_ns, request)| device.submit(*at_ns, *request).end_ns).collect()
    }

    #[test]
    fn single_server_paces_by_schedule() {
        let at_once = [(0, Request::read(0, 512)); 3];
        assert_eq!(ends(Behaviour::single(MS), &at_once), [MS, 2 * MS, 3 * MS]);
        let idle = [(0, Request::read(0, 512)), (5 * MS, Request::read(0, 512))];
        assert_eq!(ends(Behaviour::single(MS), &idle), [MS, 6 * MS]);
        assert_eq!(ends(Behaviour::parallel(2, MS), &at_once), [MS, MS, 2 * MS]);
    }

    #[test]
    fn flush_waits_for_all_before_it() {
        let behaviour = Behaviour { flush_ns: 5 * MS, ..Behaviour::parallel(2, MS) };
        let requests = [(0, Request::write(0, 512)), (10, Request::flush()), (20, Request::read(0, 512))];
        assert_eq!(ends(behaviour, &requests), [MS, 6 * MS, 7 * MS]);
    }

    #[test]
    fn zones_cost_by_their_bytes_or_by_the_first() {
        let behaviour = Behaviour::single(7)
            .zone_rate(0..1000, 1e9)
            .zone_rate(1000..2000, 1e8)
            .zone_latency(2000..3000, 50);
        let cost = |offset, bytes| behaviour.service_ns(&Request::read(offset, bytes));
        assert_eq!(cost(0, 1000), 1000.0);
        assert_eq!(cost(500, 1000), 500.0 + 5000.0);
        assert_eq!(cost(1500, 1500), 5000.0);
        assert_eq!((cost(2000, 1000), cost(2999, 5000)), (50.0, 50.0));
        assert_eq!(cost(3000, 512), 7.0);
    }

    #[test]
    fn bad_ranges_fail_with_the_first_bad_byte() {
        let behaviour = Behaviour { errors: vec![4096..8192; 1], ..Behaviour::single(MS) };
        let mut device = Programmed::new(behaviour);
        let outcome = |device: &mut Programmed, request| device.submit(0, request).outcome;
        assert_eq!(outcome(&mut device, Request::read(0, 4096)), Ok(()));
        assert_eq!(outcome(&mut device, Request::read(8192, 4096)), Ok(()));
        assert_eq!(outcome(&mut device, Request::write(0, 8192)), Err(Fault::Media { offset_bytes: 4096 }));
        assert_eq!(outcome(&mut device, Request::flush()), Ok(()));
    }

    #[test]
    fn stalls_come_at_the_end_of_each_period() {
        let stall = Some(Stall { every_ns: 100 * MS, lasts_ns: 30 * MS });
        let behaviour = Behaviour { stall, ..Behaviour::single(10 * MS) };
        let read = Request::read(0, 512);
        let seen = ends(behaviour, &[(60 * MS, read), (75 * MS, read), (165 * MS, read), (350 * MS, read)]);
        // Done just before the stall; arrived within one; begun before one; untouched.
        assert_eq!(seen, [70 * MS, 110 * MS, 205 * MS, 360 * MS]);
    }

    #[test]
    fn the_first_access_of_a_place_and_the_first_after_a_rest_cost_more() {
        let first_access =
            Some(FirstAccessParams { place_bytes: 1 << 20, costs_ns: 20 * MS, ..Default::default() });
        let sleep = Some(SleepParams { after_ns: 300 * MS, wakes_in_ns: 40 * MS });
        let read = |at_ms: u64, offset: u64| (at_ms * MS, Request::read(offset, 4096));
        let first = Behaviour { first_access, ..Behaviour::single(MS) };
        let seen = ends(first, &[read(0, 0), read(100, 4096), read(200, 1 << 20)]);
        assert_eq!(seen, [21 * MS, 101 * MS, 221 * MS]);
        let sleepy = Behaviour { sleep, ..Behaviour::single(MS) };
        let seen = ends(sleepy, &[read(0, 0), read(100, 0), read(400, 0), read(701, 0)]);
        assert_eq!(seen, [41 * MS, 101 * MS, 401 * MS, 742 * MS]);
    }

    #[test]
    fn a_bucket_runs_empty_and_fills_at_rest() {
        let bucket = Some(Bucket { requests: 3, then_ns: 10 });
        let behaviour = Behaviour { bucket, ..Behaviour::single(1) };
        let at_once = [(0, Request::read(0, 512)); 5];
        assert_eq!(ends(behaviour.clone(), &at_once), [1, 2, 3, 13, 23]);
        // At rest from 23 to 45: two tokens.
        let later = [(45, Request::read(0, 512)); 3];
        assert_eq!(ends(behaviour, &[&at_once[..], &later].concat())[5..], [46, 47, 57]);
    }

    #[test]
    fn every_third_costs_more() {
        let extra = Some(Extra { every: 3, costs_ns: 5 });
        let behaviour = Behaviour { extra, ..Behaviour::single(1) };
        let requests: Vec<_> = (0..6).map(|index| (index * 100, Request::read(0, 512))).collect();
        assert_eq!(ends(behaviour, &requests), [1, 101, 206, 301, 401, 506]);
    }
}
