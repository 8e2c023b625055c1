//! The request queue of one LUN: waiting and active requests, within the limits. It knows requests, not what calls mean.

use std::collections::{HashMap, VecDeque};

use super::pages::Pages;
use super::{CallSlot, Event, Host, RequestId};
use crate::counters::Counters;
use crate::request::{Completion, Fault, Op, Request};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A call waits for it itself.
    Call(CallSlot),
    /// It fills buffers.
    Fill,
    /// It cleans buffers.
    WriteBehind,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) lun: usize,
    pub(super) request: Request,
    pub(super) purpose: Purpose,
    pub(super) completion: Option<Completion>,
    pub(super) made_ns: u64,
}

/// What a stream of buffered reads has requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    /// Last position of the reader; it may repeat it after a wait.
    pub(super) last: Option<u64>,
    /// Where the next sequential read would start.
    pub(super) next: u64,
    /// Up to where reads were issued.
    pub(super) end: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LunState {
    pub(super) capacity_bytes: u64,
    /// Whether the device has a cache that a durable write must flush.
    pub(super) is_volatile: bool,
    pub(super) waiting: VecDeque<RequestId>,
    pub(super) active: usize,
    pub(super) pages: Pages,
    /// Whether write-behind submits no request until the queue is below its limit again.
    pub(super) is_paused: bool,
    pub(super) timer_armed: bool,
    /// Calls that found the queue full.
    pub(super) starved: VecDeque<CallSlot>,
    /// Writers that found too much dirty.
    pub(super) blocked: VecDeque<CallSlot>,
    /// Calls that wait for everything to be clean.
    pub(super) syncing: Vec<CallSlot>,
    /// Direct calls that wait until what was dirty in their range is written.
    pub(super) settling: Vec<CallSlot>,
    pub(super) ahead: HashMap<usize, Ahead>,
    /// A background write that failed; the next sync or close reports it.
    pub(super) write_fault: Option<Fault>,
    pub(super) counters: Counters,
}

impl LunState {
    pub(super) fn queued(&self) -> usize {
        self.waiting.len() + self.active
    }

    pub(super) fn spend(&mut self, now_ns: u64) {
        self.counters.spend(now_ns, self.waiting.len(), self.active);
    }
}

impl Host {
    /// Restarts the maximum of a LUN's queue from its present length.
    pub fn forget_peaks(&mut self, lun: usize) {
        let state = &mut self.luns[lun];
        state.counters.queue_max = state.queued();
        state.counters.active_max = state.active;
    }

    pub(super) fn has_room(&self, lun: usize) -> bool {
        self.luns[lun].queued() < self.params.queue_limit + self.params.queue_batch
    }

    pub(super) fn enqueue(&mut self, lun: usize, request: Request, purpose: Purpose) {
        let now_ns = self.now_ns;
        let id = self.requests.insert(Queued { lun, request, purpose, completion: None, made_ns: now_ns });
        let state = &mut self.luns[lun];
        state.spend(now_ns);
        state.waiting.push_back(id);
        self.dispatch(lun);
        let state = &mut self.luns[lun];
        state.counters.queue_max = state.counters.queue_max.max(state.queued());
    }

    /// Issues waiting requests to the device up to its limit.
    fn dispatch(&mut self, lun: usize) {
        while self.luns[lun].active < self.params.active_limit {
            let state = &mut self.luns[lun];
            let Some(id) = state.waiting.pop_front() else { return };
            state.active += 1;
            state.counters.active_max = state.counters.active_max.max(state.active);
            let queued = self.requests.get_mut(id);
            let completion = self.paths.submit(self.now_ns, lun, queued.request);
            queued.completion = Some(completion);
            self.schedule(completion.end_ns, Event::Complete(id));
        }
    }

    /// A request is done: counts it, issues the next one, wakes the waiting calls.
    pub(super) fn complete(&mut self, id: RequestId) {
        let queued = self.requests.remove(id);
        let outcome = queued.completion.map_or(Ok(()), |completion| completion.outcome);
        let now_ns = self.now_ns;
        let state = &mut self.luns[queued.lun];
        state.spend(now_ns);
        state.active -= 1;
        count(&mut state.counters, &queued.request, now_ns - queued.made_ns, outcome.is_err());
        self.dispatch(queued.lun);
        let pages = self.page_range(queued.request.offset_bytes, queued.request.bytes);
        match queued.purpose {
            Purpose::Call(call) => self.piece_done(call, outcome),
            Purpose::Fill => {
                for page in pages {
                    let state = &mut self.luns[queued.lun].pages;
                    let waiters = if outcome.is_ok() { state.fill(page) } else { state.forget_read(page) };
                    for call in waiters {
                        if let Err(fault) = outcome {
                            self.calls.get_mut(call).outcome = Err(fault);
                        }
                        self.step(call);
                    }
                }
            }
            Purpose::WriteBehind => {
                if let Err(fault) = outcome {
                    self.luns[queued.lun].write_fault = Some(fault);
                }
                for page in pages {
                    self.luns[queued.lun].pages.written(page, now_ns);
                }
                self.written_back(queued.lun);
            }
        }
        self.write_behind(queued.lun);
        while self.has_room(queued.lun) {
            let Some(call) = self.luns[queued.lun].starved.pop_front() else { break };
            self.step(call);
        }
    }

    /// Submits write requests for dirty buffers while it is due and the queue has room.
    pub(super) fn write_behind(&mut self, lun: usize) {
        loop {
            let state = &mut self.luns[lun];
            if state.is_paused && state.queued() >= self.params.queue_limit {
                return;
            }
            state.is_paused = false;
            let Some(oldest_ns) = state.pages.oldest_ns() else { return };
            let due_ns = oldest_ns.saturating_add(self.params.write_behind_ns);
            let much = state.pages.dirty_pages * self.params.buffer_bytes > self.params.write_behind_bytes;
            if !much && state.syncing.is_empty() && due_ns > self.now_ns {
                if !state.timer_armed {
                    state.timer_armed = true;
                    self.schedule(due_ns, Event::WriteBehind(lun));
                }
                return;
            }
            if !self.has_room(lun) {
                self.luns[lun].is_paused = true;
                return;
            }
            let most = self.params.merge_bytes / self.params.buffer_bytes;
            let Some(taken) = self.luns[lun].pages.take_dirty(most) else { return };
            self.write_pages(lun, taken);
        }
    }

    /// Makes one write request of neighbouring buffers, given as the first and how many.
    pub(super) fn write_pages(&mut self, lun: usize, (first, count): (u64, u64)) {
        let state = &mut self.luns[lun];
        state.counters.write_merges += count - 1;
        let offset_bytes = first * self.params.buffer_bytes;
        let bytes = (count * self.params.buffer_bytes).min(state.capacity_bytes - offset_bytes);
        self.enqueue(lun, Request::write(offset_bytes, bytes), Purpose::WriteBehind);
    }

    /// Wakes calls that waited for fewer dirty buffers.
    fn written_back(&mut self, lun: usize) {
        for call in std::mem::take(&mut self.luns[lun].settling) {
            self.step(call);
        }
        for call in std::mem::take(&mut self.luns[lun].blocked) {
            self.step(call);
        }
        if self.luns[lun].pages.unsafe_pages == 0 {
            for call in std::mem::take(&mut self.luns[lun].syncing) {
                self.step(call);
            }
        }
    }

    /// Indices of the buffers that a range of bytes touches.
    pub(super) fn page_range(&self, offset_bytes: u64, bytes: u64) -> std::ops::Range<u64> {
        let end = offset_bytes.saturating_add(bytes).div_ceil(self.params.buffer_bytes);
        offset_bytes / self.params.buffer_bytes..end
    }
}

/// A waiting request is counted when it completes, as the kernel counts.
fn count(counters: &mut Counters, request: &Request, taken_ns: u64, failed: bool) {
    if failed {
        counters.errors += 1;
    }
    match request.op {
        Op::Read => {
            counters.reads += 1;
            counters.read_bytes += request.bytes;
            counters.read_ns += u128::from(taken_ns);
        }
        Op::Write => {
            counters.writes += 1;
            counters.write_bytes += request.bytes;
            counters.write_ns += u128::from(taken_ns);
        }
        Op::Flush => {
            counters.flushes += 1;
            counters.flush_ns += u128::from(taken_ns);
            return;
        }
    }
    *counters.sizes.entry((request.op, request.bytes)).or_insert(0) += 1;
}
