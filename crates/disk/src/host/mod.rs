//! A host in virtual time: calls in, their returns out, and the requests to the disks counted in between. It runs no program: the
//! caller decides what is called and when.

mod calls;
mod pages;
mod queue;
mod slab;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::counters::Counters;
use crate::error::HostError;
use crate::params::{HostParams, SystemParams};
use crate::path::Paths;
use crate::request::Fault;
use calls::CallState;
use queue::{LunState, Queued};
use rdsk_stats::rng::SplitMix64;
use slab::Slab;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `pread`.
    Read,
    /// `pwrite`.
    Write,
    /// `fdatasync`: what is dirty is written, and the device flushed.
    Sync,
    /// The last `close`; what it does is the host's [`crate::CloseAction`].
    Close,
}

/// Through the page cache or past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through the host's buffers ("block").
    Buffered,
    /// Past them ("raw").
    Direct,
}

/// Whether a write returns before it is on stable media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// It may.
    Any,
    /// It may not (`O_DSYNC`).
    Durable,
}

/// One system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// What it does; for [`Operation::Sync`] and [`Operation::Close`] only `lun` matters besides.
    pub operation: Operation,
    /// Through the cache or past it.
    pub route: Route,
    /// Whether a write must be on stable media when it returns.
    pub stability: Stability,
    /// Which LUN.
    pub lun: usize,
    /// First byte.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Which sequential reader this is, for read-ahead.
    pub stream: usize,
}

/// Identifies a call of a host, counted from 0.
pub type CallId = u64;

/// Slot of a call in progress; reused after it is done.
type CallSlot = usize;

type RequestId = usize;

/// A call that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its identifier.
    pub id: CallId,
    /// The call.
    pub call: Call,
    /// When it was made, in ns: later than it was asked for where a program is started first.
    pub start_ns: u64,
    /// When it returned, in ns.
    pub end_ns: u64,
    /// Success, or why it failed.
    pub outcome: Result<(), Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A call's processor time is over.
    Step(CallSlot),
    /// A request is done.
    Complete(RequestId),
    /// Dirty data may be old enough.
    WriteBehind(usize),
}

/// A host with its LUNs.
#[derive(Clone, Debug)]
pub struct Host {
    params: HostParams,
    paths: Paths,
    now_ns: u64,
    /// Events by time; those of the same time in the order of their creation.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events_made: u64,
    calls: Slab<CallState>,
    calls_made: CallId,
    requests: Slab<Queued>,
    luns: Vec<LunState>,
    done: Vec<Done>,
    cpu_ns: u64,
    rng: SplitMix64,
}

impl Host {
    /// The host of a checked system at time 0, its caches empty. The seed decides what is random.
    pub fn new(system: &SystemParams, seed: u64) -> Host {
        let paths = Paths::new(system, seed);
        let luns = (0..paths.luns()).map(|lun| LunState {
            capacity_bytes: paths.device(lun).capacity_bytes(),
            is_volatile: system.luns[lun].device.has_volatile_cache(),
            ..LunState::default()
        });
        Host {
            params: system.host.clone(),
            now_ns: 0,
            events: BinaryHeap::new(),
            events_made: 0,
            calls: Slab::new(),
            calls_made: 0,
            requests: Slab::new(),
            luns: luns.collect(),
            done: Vec::new(),
            cpu_ns: 0,
            rng: SplitMix64::new(seed),
            paths,
        }
    }

    /// The host's parameters.
    pub fn params(&self) -> &HostParams {
        &self.params
    }

    /// The LUNs and their devices.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The virtual time up to which everything has happened.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Processor time that calls and their copying took so far, in ns.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// When something happens next; `None` when nothing will until the next call.
    pub fn next_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    /// Makes a call at `now_ns`, which must not lie before what has already happened (else it is made now).
    ///
    /// # Errors
    /// [`HostError`] when the kernel would refuse it at once; nothing was done then.
    pub fn submit(&mut self, now_ns: u64, call: Call) -> Result<CallId, HostError> {
        self.check(&call)?;
        // Events of this very time are processed after the call is made, so that a call returning now is not delayed until
        // the next event.
        while self.next_ns().is_some_and(|at_ns| at_ns < now_ns) {
            self.happen();
        }
        self.now_ns = self.now_ns.max(now_ns);
        let begin_ns = self.now_ns.saturating_add(self.start_ns(&call));
        let cost_ns = self.call_ns(&call);
        self.cpu_ns += cost_ns;
        let id = self.calls_made;
        self.calls_made += 1;
        let slot = self.calls.insert(CallState::new(id, call, begin_ns));
        self.schedule(begin_ns.saturating_add(cost_ns), Event::Step(slot));
        Ok(id)
    }

    /// Processes all events up to and including `until_ns`; returns the calls that returned since the last time, in order.
    pub fn advance(&mut self, until_ns: u64) -> Vec<Done> {
        self.advance_to(until_ns);
        std::mem::take(&mut self.done)
    }

    /// Processes the next event; returns the calls that returned. Without an event it does nothing.
    pub fn advance_one(&mut self) -> Vec<Done> {
        self.happen();
        std::mem::take(&mut self.done)
    }

    /// Makes a call now and waits for its return: what a program with one thread does. Other calls that return
    /// meanwhile are given by the next [`Host::advance`] or [`Host::advance_one`].
    ///
    /// # Errors
    /// As [`Host::submit`].
    pub fn run(&mut self, call: Call) -> Result<Done, HostError> {
        let id = self.submit(self.now_ns, call)?;
        loop {
            if let Some(position) = self.done.iter().position(|done| done.id == id) {
                return Ok(self.done.remove(position));
            }
            assert!(self.happen(), "a call in progress always has an event ahead that brings it on");
        }
    }

    /// What happened at a LUN up to now.
    ///
    /// # Panics
    /// When there is no such LUN; so do all that follow.
    pub fn counters(&mut self, lun: usize) -> Counters {
        let now_ns = self.now_ns;
        self.luns[lun].spend(now_ns);
        self.luns[lun].counters.clone()
    }

    /// The same without the time since the last event.
    pub(crate) fn totals(&self, lun: usize) -> &Counters {
        &self.luns[lun].counters
    }

    /// Requests waiting for and active at a LUN now.
    pub fn queue(&self, lun: usize) -> (usize, usize) {
        (self.luns[lun].waiting.len(), self.luns[lun].active)
    }

    /// Size of a LUN.
    pub fn capacity_bytes(&self, lun: usize) -> u64 {
        self.luns[lun].capacity_bytes
    }

    /// Bytes of a range that the cache holds, in whole buffers.
    pub fn cached_bytes(&self, lun: usize, offset_bytes: u64, bytes: u64) -> u64 {
        self.luns[lun].pages.count(&self.page_range(offset_bytes, bytes)) * self.params.buffer_bytes
    }

    /// Bytes of the cache that are not written yet, in whole buffers.
    pub fn dirty_bytes(&self, lun: usize) -> u64 {
        self.luns[lun].pages.unsafe_pages * self.params.buffer_bytes
    }

    /// Drops clean buffers of a range from the cache, as `POSIX_FADV_DONTNEED` does; takes no time.
    pub fn drop_cache(&mut self, lun: usize, offset_bytes: u64, bytes: u64) {
        let range = self.page_range(offset_bytes, bytes);
        self.luns[lun].pages.drop_clean(range);
    }

    /// Puts a range into the cache as if it had been read before; takes no time. Of a range larger than the cache its end
    /// stays there.
    pub fn fill_cache(&mut self, lun: usize, offset_bytes: u64, bytes: u64) {
        let most = self.params.cache_bytes / self.params.buffer_bytes;
        let on_device = bytes.min(self.luns[lun].capacity_bytes.saturating_sub(offset_bytes));
        let range = self.page_range(offset_bytes, on_device);
        for page in range.start.max(range.end.saturating_sub(most))..range.end {
            self.luns[lun].pages.enter(page, most).filled = true;
        }
    }

    /// What passes before a call is made: the start of the program that makes it.
    fn start_ns(&mut self, call: &Call) -> u64 {
        let cost = &self.params.cost;
        let is_transfer = matches!(call.operation, Operation::Read | Operation::Write);
        let is_started = is_transfer && cost.program_start_ns > 0.0;
        let mut chance = || cost.program_start_chance_ns * self.rng.uniform_unfolded();
        if is_started { calls::nanos(cost.program_start_ns + chance()) } else { 0 }
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.events_made += 1;
        self.events.push(Reverse((at_ns.max(self.now_ns), self.events_made, event)));
    }

    fn advance_to(&mut self, until_ns: u64) {
        while self.next_ns().is_some_and(|at_ns| at_ns <= until_ns) {
            self.happen();
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Whether something happened.
    fn happen(&mut self) -> bool {
        let Some(Reverse((at_ns, _, event))) = self.events.pop() else { return false };
        self.now_ns = at_ns;
        match event {
            Event::Step(call) => self.step(call),
            Event::Complete(request) => self.complete(request),
            Event::WriteBehind(lun) => {
                self.luns[lun].timer_armed = false;
                self.write_behind(lun);
            }
        }
        true
    }
}
