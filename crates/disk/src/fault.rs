//! Faults of a device: bad ranges, stalls, a silent slow-down, a pace that varies, late requests. The device itself is unchanged:
//! it has its own time, which stops during a stall and runs slower after a slow-down.

use crate::access::{FirstAccesses, Sleeper};
use crate::device::Device;
use crate::pace::Pace;
use crate::params::{FaultParams, LateParams};
use crate::request::{Completion, Fault, Op, Request};
use rdsk_stats::rng::SplitMix64;

#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    inner: Device,
    params: FaultParams,
    pace: Option<Pace>,
    first_accesses: Option<FirstAccesses>,
    sleeper: Option<Sleeper>,
    rng: SplitMix64,
}

impl Faulty {
    /// Adds faults with checked parameters to a device; the seed decides what is random in them.
    pub(crate) fn new(inner: Device, params: &FaultParams, seed: u64) -> Faulty {
        let pace = params.pace.as_ref().map(|pace| Pace::new(pace, seed));
        Faulty {
            inner,
            params: params.clone(),
            pace,
            first_accesses: params.first_access.map(FirstAccesses::new),
            sleeper: params.sleep.map(Sleeper::new),
            rng: SplitMix64::new(seed ^ 0x6c61_7465),
        }
    }

    pub(crate) fn inner(&self) -> &Device {
        &self.inner
    }

    /// Takes a request at `now_ns`. A bad range fails after the time that the request takes anyway.
    pub(crate) fn submit(&mut self, now_ns: u64, request: Request) -> Completion {
        let is_use = request.op != Op::Flush;
        let sleeper = self.sleeper.as_mut().filter(|_| is_use);
        let served_ns = sleeper.map_or(now_ns, |sleeper| sleeper.served_at_ns(now_ns));
        let own_ns = self.inner_ns(served_ns);
        let done = self.inner.submit(own_ns, request);
        let is_late = |late: &LateParams| self.rng.uniform() < late.share;
        let late_ns = self.params.late.filter(is_late).map_or(0, |late| late.by_ns);
        let first_ns = self.first_accesses.as_mut().map_or(0, |accesses| accesses.costs_ns(&request));
        let start_ns = self.outer_ns(done.start_ns).max(now_ns);
        let end_ns =
            self.outer_ns(done.end_ns.saturating_add(late_ns).saturating_add(first_ns)).max(start_ns);
        if let Some(sleeper) = self.sleeper.as_mut().filter(|_| is_use) {
            sleeper.used_until(end_ns);
        }
        let bad = self.params.errors.iter().find(|range| {
            let end = range.offset_bytes.saturating_add(range.bytes);
            request.op != Op::Flush && request.offset_bytes < end && range.offset_bytes < request.end_bytes()
        });
        let outcome = match bad {
            Some(range) => Err(Fault::Media { offset_bytes: range.offset_bytes.max(request.offset_bytes) }),
            None => done.outcome,
        };
        Completion { start_ns, end_ns, outcome }
    }

    /// The device's own time at `ns`.
    fn inner_ns(&mut self, ns: u64) -> u64 {
        let stalled = match &self.params.stall {
            Some(stall) => {
                let active_ns = stall.every_ns - stall.lasts_ns;
                ns / stall.every_ns * active_ns + (ns % stall.every_ns).min(active_ns)
            }
            None => ns,
        };
        let paced = match &mut self.pace {
            Some(pace) => scaled(pace.own_ns(stalled as f64)),
            None => stalled,
        };
        match &self.params.slow_down {
            Some(slow) if paced > slow.after_ns => {
                slow.after_ns + scaled((paced - slow.after_ns) as f64 / slow.factor)
            }
            _ => paced,
        }
    }

    /// The time at which the device's own time reaches `inner_ns`.
    fn outer_ns(&mut self, inner_ns: u64) -> u64 {
        let paced = match &self.params.slow_down {
            Some(slow) if inner_ns > slow.after_ns => {
                slow.after_ns.saturating_add(scaled((inner_ns - slow.after_ns) as f64 * slow.factor))
            }
            _ => inner_ns,
        };
        let stalled = match &mut self.pace {
            Some(pace) => scaled(pace.at_ns(paced as f64)),
            None => paced,
        };
        match &self.params.stall {
            Some(stall) => {
                let active_ns = stall.every_ns - stall.lasts_ns;
                (stalled / active_ns).saturating_mul(stall.every_ns).saturating_add(stalled % active_ns)
            }
            None => stalled,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "virtual times are not negative and far below 2^53 ns; rounding keeps their order"
)]
fn scaled(time_ns: f64) -> u64 {
    time_ns.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DeviceParams, ErrorRange, RamParams, SlowDown, StallParams};

    fn ram() -> Device {
        let params = RamParams {
            capacity_bytes: 1 << 30,
            read_command_ns: 1_000_000,
            write_command_ns: 1_000_000,
            read_bytes_per_s: 1e12,
            write_bytes_per_s: 1e12,
            servers: 1,
            write_buffer_bytes: 0,
        };
        Device::new(&DeviceParams::Ram(params), 0)
    }

    fn latencies(faults: &FaultParams, until_ns: u64) -> Vec<(u64, u64)> {
        let mut faulty = Faulty::new(ram(), faults, 1);
        let mut now_ns = 0;
        let mut seen = Vec::new();
        while now_ns < until_ns {
            let end_ns = faulty.submit(now_ns, Request::read(0, 512)).end_ns;
            seen.push((now_ns, end_ns - now_ns));
            now_ns = end_ns;
        }
        seen
    }

    #[test]
    fn a_stall_comes_on_time_and_costs_its_length() {
        let stall = Some(StallParams { every_ns: 30_000_000_000, lasts_ns: 2_000_000_000 });
        let seen = latencies(&FaultParams { stall, ..FaultParams::default() }, 90_000_000_000);
        let slow: Vec<_> = seen.iter().filter(|(_, took_ns)| *took_ns > 1_500_000_000).collect();
        assert_eq!(slow.len(), 3);
        assert!(slow.iter().all(|(_, took_ns)| took_ns.abs_diff(2_001_000_000) < 2_000_000));
        assert!(slow[0].0.abs_diff(28_000_000_000) < 2_000_000);
    }

    #[test]
    fn a_slow_down_begins_when_it_should() {
        let slow_down = Some(SlowDown { after_ns: 60_000_000, factor: 3.0 });
        let seen = latencies(&FaultParams { slow_down, ..FaultParams::default() }, 120_000_000);
        assert!(seen.iter().all(|&(at, took)| at > 58_900_000 || took.abs_diff(1_000_001) < 5));
        assert!(seen.iter().all(|&(at, took)| at < 60_500_000 || took.abs_diff(3_000_003) < 10));
    }

    #[test]
    fn a_bad_range_fails_what_touches_it() {
        let errors = vec![ErrorRange { offset_bytes: 8192, bytes: 512 }];
        let mut faulty = Faulty::new(ram(), &FaultParams { errors, ..FaultParams::default() }, 1);
        assert_eq!(faulty.submit(0, Request::read(0, 8192)).outcome, Ok(()));
        let failed = faulty.submit(0, Request::read(4096, 8192));
        assert_eq!(failed.outcome, Err(Fault::Media { offset_bytes: 8192 }));
        assert!(failed.end_ns > 0);
    }
}
