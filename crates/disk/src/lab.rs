//! Several simulated hosts on one virtual clock, shared by the engine that makes the calls and the observer that reads the
//! counters. It does not decide what is called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::counters::Counters;
use crate::error::HostError;
use crate::host::{Call, CallId, Done, Host};
use crate::systems::System;

/// Identifies a LUN of one of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LunId {
    /// Position of the host in the lab.
    pub host: usize,
    /// The host's own number of the LUN.
    pub lun: usize,
}

/// The activity of a LUN during one step of a sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Bytes moved in the step, both directions.
    pub bytes: u64,
    /// Requests waiting and active at its end.
    pub in_flight: usize,
}

/// Samples of one LUN at equal steps.
#[derive(Clone, Debug)]
struct Sampling {
    lun: LunId,
    width_ns: u64,
    next_ns: u64,
    bytes_before: u64,
    samples: Vec<Sample>,
}

/// Maximum number of samples kept of one LUN, since the duration is not known in advance. Even, so that samples can be
/// merged in pairs.
const MAX_SAMPLES: usize = 1 << 16;

impl Sampling {
    /// Merges two samples into one, for steps of twice the width.
    fn fold(&mut self) {
        let folded = |pair: &[Sample]| Sample {
            bytes: pair.iter().map(|sample| sample.bytes).sum(),
            in_flight: pair[pair.len() - 1].in_flight,
        };
        self.samples = self.samples.chunks(2).map(folded).collect();
        self.width_ns = self.width_ns.saturating_mul(2);
    }
}

/// Hosts that share their time.
#[derive(Clone, Debug, Default)]
pub struct Lab {
    names: Vec<String>,
    hosts: Vec<Host>,
    now_ns: u64,
    samplings: Vec<Sampling>,
}

impl Lab {
    /// The host of a system: the existing one of this name, or a new one seeded with `seed`.
    pub fn host_of(&mut self, system: &System, seed: u64) -> usize {
        if let Some(place) = self.names.iter().position(|name| *name == system.name) {
            return place;
        }
        self.names.push(system.name.clone());
        self.hosts.push(Host::new(&system.params, seed));
        self.hosts.len() - 1
    }

    /// The name of a LUN's device: that of its system and its number.
    pub fn device_name(&self, id: LunId) -> String {
        device_name(&self.names[id.host], id.lun)
    }

    /// The virtual time up to which everything has happened.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A host.
    ///
    /// # Panics
    /// When there is no such host; so do all that take a [`LunId`].
    pub fn host(&self, host: usize) -> &Host {
        &self.hosts[host]
    }

    /// The same, to change its caches.
    pub fn host_mut(&mut self, host: usize) -> &mut Host {
        &mut self.hosts[host]
    }

    /// What happened at a LUN up to now.
    pub fn counters(&mut self, id: LunId) -> Counters {
        let now_ns = self.now_ns;
        self.advance(now_ns);
        self.hosts[id.host].counters(id.lun)
    }

    /// Processor time that the hosts' calls took so far.
    pub fn cpu_ns(&self) -> u64 {
        self.hosts.iter().map(Host::cpu_ns).sum()
    }

    /// Makes a call now. `call.lun` is the host's own number.
    ///
    /// # Errors
    /// [`HostError`] when the kernel would refuse it at once.
    pub fn submit(&mut self, host: usize, call: Call) -> Result<CallId, HostError> {
        let now_ns = self.now_ns;
        self.hosts[host].submit(now_ns, call)
    }

    /// When something happens next; `None` when nothing will until the next call.
    pub fn next_ns(&self) -> Option<u64> {
        self.hosts.iter().filter_map(Host::next_ns).min()
    }

    /// Processes the next event and advances the time to it; returns the calls that returned, with the position of their
    /// host. Without an event it does nothing.
    pub fn advance_one(&mut self) -> (usize, Vec<Done>) {
        let ahead = |(index, host): (usize, &Host)| host.next_ns().map(|at_ns| (at_ns, index));
        let Some((at_ns, index)) = self.hosts.iter().enumerate().filter_map(ahead).min() else {
            return (0, Vec::new());
        };
        self.sample_until(at_ns);
        self.now_ns = self.now_ns.max(at_ns);
        (index, self.hosts[index].advance_one())
    }

    /// Samples a LUN every `width_ns` from now on, until [`Lab::take_samples`].
    pub fn sample(&mut self, lun: LunId, width_ns: u64) {
        let bytes_before = self.moved_bytes(lun);
        let (width_ns, samples) = (width_ns.max(1), Vec::new());
        self.samplings.retain(|sampling| sampling.lun != lun);
        let next_ns = self.now_ns + width_ns;
        self.samplings.push(Sampling { lun, width_ns, next_ns, bytes_before, samples });
    }

    /// The samples of a LUN since [`Lab::sample`], one per whole step, and the width of a step in ns, which is a power of two
    /// times the requested one; ends the sampling.
    pub fn take_samples(&mut self, lun: LunId) -> (u64, Vec<Sample>) {
        self.sample_until(self.now_ns);
        match self.samplings.iter().position(|sampling| sampling.lun == lun) {
            Some(position) => {
                let sampling = self.samplings.swap_remove(position);
                (sampling.width_ns, sampling.samples)
            }
            None => (1, Vec::new()),
        }
    }

    fn moved_bytes(&self, lun: LunId) -> u64 {
        let counters = self.hosts[lun.host].totals(lun.lun);
        counters.read_bytes + counters.write_bytes
    }

    /// Takes every sample that is due before the event at `at_ns`; nothing changes between two events.
    fn sample_until(&mut self, at_ns: u64) {
        for position in 0..self.samplings.len() {
            while self.samplings[position].next_ns <= at_ns {
                let lun = self.samplings[position].lun;
                let bytes = self.moved_bytes(lun);
                let (waiting, active) = self.hosts[lun.host].queue(lun.lun);
                let sampling = &mut self.samplings[position];
                sampling
                    .samples
                    .push(Sample { bytes: bytes - sampling.bytes_before, in_flight: waiting + active });
                sampling.bytes_before = bytes;
                if sampling.samples.len() >= MAX_SAMPLES {
                    sampling.fold();
                }
                sampling.next_ns += sampling.width_ns;
            }
        }
    }

    /// Processes all events up to `until_ns`; calls that return meanwhile are dropped.
    pub fn advance(&mut self, until_ns: u64) {
        while self.next_ns().is_some_and(|at_ns| at_ns <= until_ns) {
            self.advance_one();
        }
        for host in &mut self.hosts {
            drop(host.advance(until_ns));
        }
        self.sample_until(until_ns);
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Makes a call now and waits for its return; returns of other calls are dropped.
    ///
    /// # Errors
    /// As [`Lab::submit`].
    ///
    /// # Panics
    /// Never: a call in progress always has an event ahead that brings it on.
    pub fn run(&mut self, host: usize, call: Call) -> Result<Done, HostError> {
        let id = self.submit(host, call)?;
        loop {
            assert!(self.next_ns().is_some(), "a call in progress has an event ahead");
            let (at, done) = self.advance_one();
            if let Some(done) = done.into_iter().find(|done| at == host && done.id == id) {
                return Ok(done);
            }
        }
    }
}

/// The name of a LUN of a system: what a kernel's `sda` is to a real disk.
pub fn device_name(system: &str, lun: usize) -> String {
    format!("{system}:lun{lun}")
}

/// A lab that engine, observer and clock share.
#[derive(Clone, Debug, Default)]
pub struct SharedLab(Arc<Mutex<Lab>>);

impl SharedLab {
    /// The lab itself. The guard must not be held across a call into another room.
    pub fn lock(&self) -> MutexGuard<'_, Lab> {
        // A panic elsewhere ends the run anyway; the lab's data is consistent between its calls.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, Route, Stability, load};

    fn read(lun: usize, offset_bytes: u64) -> Call {
        Call {
            operation: Operation::Read,
            route: Route::Direct,
            stability: Stability::Any,
            lun,
            offset_bytes,
            bytes: 65_536,
            stream: 0,
        }
    }

    #[test]
    fn two_hosts_share_their_time_and_one_name_is_one_host() {
        let (slow, fast) = (load("linux-disk").unwrap(), load("tms-ramsan").unwrap());
        let mut lab = Lab::default();
        let (a, b) = (lab.host_of(&slow, 1), lab.host_of(&fast, 1));
        assert_eq!(lab.host_of(&slow, 2), a);
        let first = lab.run(a, read(0, 1 << 30)).unwrap();
        assert_eq!(lab.now_ns(), first.end_ns);
        let second = lab.run(b, read(0, 0)).unwrap();
        assert_eq!(second.start_ns, first.end_ns, "the second host begins where the clock stands");
        assert!(lab.now_ns() > first.end_ns);
        assert_eq!(lab.counters(LunId { host: a, lun: 0 }).reads, 1);
    }

    #[test]
    fn calls_on_two_hosts_overlap() {
        let system = load("linux-disk").unwrap();
        let other = System { name: "twin".into(), ..system.clone() };
        let mut lab = Lab::default();
        let (a, b) = (lab.host_of(&system, 1), lab.host_of(&other, 1));
        lab.submit(a, read(0, 1 << 30)).unwrap();
        lab.sample(LunId { host: a, lun: 0 }, 1_000_000);
        let alone_ns = lab.clone().run(b, read(0, 1 << 30)).unwrap().end_ns;
        assert_eq!(lab.run(b, read(0, 1 << 30)).unwrap().end_ns, alone_ns);
        let (width_ns, samples) = lab.take_samples(LunId { host: a, lun: 0 });
        assert_eq!((width_ns, samples.len() as u64), (1_000_000, alone_ns / 1_000_000));
        assert!(samples.iter().all(|sample| sample.in_flight <= 1));
        assert!(lab.take_samples(LunId { host: a, lun: 0 }).1.is_empty(), "sampling ended");
    }

    #[test]
    fn a_long_time_has_no_more_samples_than_a_short_one() {
        let system = load("tms-ramsan").unwrap();
        let mut lab = Lab::default();
        let lun = LunId { host: lab.host_of(&system, 1), lun: 0 };
        lab.sample(lun, 1_000);
        lab.run(lun.host, read(0, 0)).unwrap();
        lab.advance(1_000_000_000_000);
        let (width_ns, samples) = lab.take_samples(lun);
        assert!(samples.len() <= MAX_SAMPLES && samples.len() > MAX_SAMPLES / 4, "{}", samples.len());
        assert_eq!(samples.iter().map(|sample| sample.bytes).sum::<u64>(), 65_536);
        assert!((samples.len() as u64 * width_ns).abs_diff(1_000_000_000_000) <= width_ns);
    }
}
