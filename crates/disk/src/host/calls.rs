//! The steps of a call: split into requests past the cache, or buffer by buffer through it. Processor time is spent between the
//! steps.

use super::pages::Unsafe;
use super::queue::Purpose;
use super::{Call, CallId, CallSlot, Done, Event, Host, Operation, Route, Stability};
use crate::error::HostError;
use crate::params::{CloseAction, Partial};
use crate::request::{Fault, Request};

/// The unit that a processor moves between memory and its cache.
const CACHE_LINE_BYTES: u64 = 64;

#[derive(Clone, Debug)]
pub(super) struct CallState {
    id: CallId,
    call: Call,
    start_ns: u64,
    /// The first byte not handled yet.
    at: u64,
    in_flight: usize,
    phase: Phase,
    pub(super) outcome: Result<(), Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Dirty data in the range of a direct call is written to the device first, so that the call and the cache agree (Linux:
    /// `filemap_write_and_wait_range`). The next sync or close reports a write that fails here.
    WritingOut,
    /// Moving data, or looking for the buffer to move it to.
    Moving,
    /// The processor copies into or out of the buffer at `at`.
    Copying,
    /// Waiting until nothing is dirty.
    Cleaning,
    Flushing,
}

impl CallState {
    pub(super) fn new(id: CallId, call: Call, start_ns: u64) -> CallState {
        let phase = match call.operation {
            Operation::Read | Operation::Write if call.route == Route::Direct => Phase::WritingOut,
            Operation::Read | Operation::Write => Phase::Moving,
            Operation::Sync | Operation::Close => Phase::Cleaning,
        };
        CallState { id, call, start_ns, at: call.offset_bytes, in_flight: 0, phase, outcome: Ok(()) }
    }

    fn end(&self) -> u64 {
        self.call.offset_bytes + self.call.bytes
    }
}

impl Host {
    pub(super) fn check(&self, call: &Call) -> Result<(), HostError> {
        let Some(lun) = self.luns.get(call.lun) else { return Err(HostError::NoSuchLun { lun: call.lun }) };
        if matches!(call.operation, Operation::Sync | Operation::Close) {
            return Ok(());
        }
        let (offset_bytes, bytes, sector_bytes) = (call.offset_bytes, call.bytes, self.params.sector_bytes);
        if bytes == 0 {
            return Err(HostError::Empty);
        }
        let end_bytes = offset_bytes.saturating_add(bytes);
        if end_bytes > lun.capacity_bytes {
            return Err(Fault::PastEnd { end_bytes, capacity_bytes: lun.capacity_bytes }.into());
        }
        let whole = offset_bytes.is_multiple_of(sector_bytes) && bytes.is_multiple_of(sector_bytes);
        if call.route == Route::Direct && self.params.direct_request_bytes == 0 {
            return Err(HostError::NoDirect);
        }
        if call.route == Route::Direct && !whole {
            return Err(HostError::Misaligned { offset_bytes, bytes, sector_bytes });
        }
        Ok(())
    }

    pub(super) fn call_ns(&mut self, call: &Call) -> u64 {
        let cost = &self.params.cost;
        match (call.operation, call.route) {
            (Operation::Read | Operation::Write, Route::Direct) => {
                let chance_ns = cost.direct_chance_ns * self.rng.uniform_unfolded();
                nanos(cost.direct_call_ns + call.bytes as f64 * cost.direct_byte_ns + chance_ns)
            }
            _ => nanos(cost.buffered_call_ns),
        }
    }

    /// Advances a call as far as possible without waiting.
    pub(super) fn step(&mut self, id: CallSlot) {
        let state = self.calls.get(id);
        match (state.phase, state.call.route) {
            _ if state.outcome.is_err() && state.in_flight == 0 => self.finish(id),
            (Phase::WritingOut, _) => self.step_writing_out(id),
            (Phase::Moving, Route::Direct) => self.step_direct(id),
            (Phase::Moving, Route::Buffered) if state.at == state.end() => self.moved(id),
            (Phase::Moving, Route::Buffered) => match state.call.operation {
                Operation::Write => self.step_buffered_write(id),
                _ => self.step_buffered_read(id),
            },
            (Phase::Copying, _) => self.copied(id),
            (Phase::Cleaning, _) => self.step_cleaning(id),
            (Phase::Flushing, _) => self.finish(id),
        }
    }

    /// One of a call's own requests is done.
    pub(super) fn piece_done(&mut self, id: CallSlot, outcome: Result<(), Fault>) {
        let state = self.calls.get_mut(id);
        state.in_flight -= 1;
        if outcome.is_err() {
            state.outcome = outcome;
        }
        self.step(id);
    }

    fn step_writing_out(&mut self, id: CallSlot) {
        let call = self.calls.get(id).call;
        let range = self.page_range(call.offset_bytes, call.bytes);
        while self.has_room(call.lun) && self.luns[call.lun].pages.dirty_pages > 0 {
            let most = self.params.merge_bytes / self.params.buffer_bytes;
            let Some(taken) = self.luns[call.lun].pages.take_dirty_in(&range, most) else { break };
            self.write_pages(call.lun, taken);
        }
        match self.luns[call.lun].pages.unsafe_in(&range) {
            Unsafe::Writing => self.luns[call.lun].settling.push(id),
            Unsafe::Dirty => self.luns[call.lun].starved.push_back(id),
            Unsafe::Nothing => {
                if call.operation == Operation::Write && !self.luns[call.lun].pages.is_empty() {
                    self.luns[call.lun].pages.drop_clean(range);
                }
                self.calls.get_mut(id).phase = Phase::Moving;
                self.step_direct(id);
            }
        }
    }

    fn step_direct(&mut self, id: CallSlot) {
        loop {
            let state = self.calls.get(id);
            let (call, at, end) = (state.call, state.at, state.end());
            if at == end || state.outcome.is_err() {
                if state.in_flight == 0 {
                    self.moved(id);
                }
                return;
            }
            if state.in_flight >= self.params.direct_in_flight {
                return;
            }
            if !self.has_room(call.lun) {
                // One that has requests in flight is stepped again when they are done.
                if state.in_flight == 0 {
                    self.luns[call.lun].starved.push_back(id);
                }
                return;
            }
            let bytes = (end - at).min(self.params.direct_request_bytes);
            let state = self.calls.get_mut(id);
            state.at += bytes;
            state.in_flight += 1;
            if at > call.offset_bytes {
                self.luns[call.lun].counters.splits += 1;
            }
            let request = match call.operation {
                Operation::Write => Request::write(at, bytes),
                _ => Request::read(at, bytes),
            };
            self.enqueue(call.lun, request, Purpose::Call(id));
        }
    }

    /// The part of a call that lies in the buffer at `at`: the buffer's index and the bytes.
    fn part(&self, id: CallSlot) -> (u64, u64) {
        let state = self.calls.get(id);
        let page = state.at / self.params.buffer_bytes;
        (page, state.end().min((page + 1) * self.params.buffer_bytes) - state.at)
    }

    fn step_buffered_write(&mut self, id: CallSlot) {
        let (page, bytes) = self.part(id);
        let lun = self.calls.get(id).call.lun;
        let state = &self.luns[lun];
        let cached = state.pages.get(page);
        if cached.is_some_and(|page| page.reading) {
            self.luns[lun].pages.wait_for(page, id);
            return;
        }
        let filled = cached.is_some_and(|page| page.filled);
        let is_unsafe = cached.is_some_and(|page| page.dirty || page.writing);
        let reads = match self.params.partial_write {
            Partial::ReadAlways => true,
            Partial::ReadIfPartial => bytes < self.params.buffer_bytes,
            Partial::Never => false,
        };
        if !filled && reads {
            if !self.has_room(lun) {
                self.luns[lun].starved.push_back(id);
                return;
            }
            self.luns[lun].counters.reads_caused_by_writes += 1;
            self.read_pages(lun, page..page + 1);
            self.luns[lun].pages.wait_for(page, id);
            return;
        }
        if !is_unsafe && state.pages.unsafe_pages * self.params.buffer_bytes >= self.params.dirty_limit_bytes
        {
            self.luns[lun].blocked.push_back(id);
            self.write_behind(lun);
            return;
        }
        let new = cached.is_none();
        // From now on a reader may use it: it holds its old content, or what is being copied into it.
        self.luns[lun].pages.enter(page, self.params.cache_bytes / self.params.buffer_bytes).filled = true;
        self.copy(id, bytes, new);
    }

    fn step_buffered_read(&mut self, id: CallSlot) {
        let (page, bytes) = self.part(id);
        let state = self.calls.get(id);
        let (call, at, end) = (state.call, state.at, state.end());
        self.read_ahead(&call, at);
        let cached = self.luns[call.lun].pages.get(page);
        if cached.is_some_and(|page| page.filled) {
            return self.copy(id, bytes, false);
        }
        if cached.is_some_and(|page| page.reading) {
            self.luns[call.lun].pages.wait_for(page, id);
            return;
        }
        if !self.has_room(call.lun) {
            self.luns[call.lun].starved.push_back(id);
            return;
        }
        let most = self.params.merge_bytes / self.params.buffer_bytes;
        let last = end.div_ceil(self.params.buffer_bytes).min(page + most);
        let missing =
            (page..last).take_while(|&page| self.luns[call.lun].pages.get(page).is_none()).count() as u64;
        self.read_pages(call.lun, page..page + missing);
        self.luns[call.lun].pages.wait_for(page, id);
    }

    /// Keeps a sequential reader's window ahead of it, refilled when half of it is used.
    fn read_ahead(&mut self, call: &Call, at: u64) {
        let window = self.params.read_ahead_bytes;
        if window == 0 {
            return;
        }
        let buffer_bytes = self.params.buffer_bytes;
        let capacity_bytes = self.luns[call.lun].capacity_bytes;
        let mut ahead = self.luns[call.lun].ahead.get(&call.stream).copied().unwrap_or_default();
        if ahead.last == Some(at) {
            return;
        }
        ahead.last = Some(at);
        let sequential = at == ahead.next;
        let to_next_buffer = buffer_bytes - at % buffer_bytes;
        if !sequential {
            ahead.end = at;
        } else if at + window / 2 >= ahead.end {
            let from = ahead.end.max(at) / buffer_bytes;
            let to = (at + window).min(capacity_bytes).div_ceil(buffer_bytes);
            let most = self.params.merge_bytes / buffer_bytes;
            let mut page = from;
            while page < to && self.has_room(call.lun) {
                let absent = |page: &u64| self.luns[call.lun].pages.get(*page).is_none();
                let count = (page..to.min(page + most)).take_while(absent).count() as u64;
                if count > 0 {
                    self.read_pages(call.lun, page..page + count);
                }
                page += count.max(1);
            }
            ahead.end = page * buffer_bytes;
        }
        ahead.next = (at + to_next_buffer).min(call.offset_bytes + call.bytes);
        self.luns[call.lun].ahead.insert(call.stream, ahead);
    }

    /// Makes one request that fills absent buffers.
    fn read_pages(&mut self, lun: usize, pages: std::ops::Range<u64>) {
        let most = self.params.cache_bytes / self.params.buffer_bytes;
        let state = &mut self.luns[lun];
        state.counters.read_merges += pages.end - pages.start - 1;
        for page in pages.clone() {
            state.pages.enter(page, most).reading = true;
        }
        let offset_bytes = pages.start * self.params.buffer_bytes;
        let end = (pages.end * self.params.buffer_bytes).min(state.capacity_bytes);
        self.enqueue(lun, Request::read(offset_bytes, end - offset_bytes), Purpose::Fill);
    }

    /// Begins to copy between the call and its buffer.
    fn copy(&mut self, id: CallSlot, bytes: u64, new: bool) {
        let cost = &self.params.cost;
        let lines = bytes.div_ceil(CACHE_LINE_BYTES).min(cost.prefetch_lines);
        let new_ns = if new { cost.new_buffer_ns } else { 0.0 };
        let copy_ns = new_ns + lines as f64 * cost.line_ns + bytes as f64 * cost.byte_ns;
        self.calls.get_mut(id).phase = Phase::Copying;
        let copy_ns = nanos(copy_ns);
        self.cpu_ns += copy_ns;
        self.schedule(self.now_ns.saturating_add(copy_ns), Event::Step(id));
    }

    fn copied(&mut self, id: CallSlot) {
        let (page, bytes) = self.part(id);
        let now_ns = self.now_ns;
        let state = self.calls.get_mut(id);
        state.at += bytes;
        state.phase = Phase::Moving;
        let (lun, operation) = (state.call.lun, state.call.operation);
        if operation == Operation::Write {
            let most = self.params.cache_bytes / self.params.buffer_bytes;
            self.luns[lun].pages.enter(page, most);
            self.luns[lun].pages.dirty(page, now_ns);
            self.write_behind(lun);
        }
        self.step(id);
    }

    /// All data is moved; what must be stable is made stable.
    fn moved(&mut self, id: CallSlot) {
        let state = self.calls.get_mut(id);
        let call = state.call;
        if call.operation != Operation::Write || call.stability == Stability::Any || state.outcome.is_err() {
            return self.finish(id);
        }
        match call.route {
            Route::Direct => self.flush_device(id),
            Route::Buffered => {
                state.phase = Phase::Cleaning;
                self.step_cleaning(id);
            }
        }
    }

    fn step_cleaning(&mut self, id: CallSlot) {
        let call = self.calls.get(id).call;
        if call.operation == Operation::Close && self.params.close == CloseAction::Nothing {
            return self.finish(id);
        }
        if self.luns[call.lun].pages.unsafe_pages > 0 {
            self.luns[call.lun].syncing.push(id);
            return self.write_behind(call.lun);
        }
        if call.operation == Operation::Close {
            self.luns[call.lun].pages.drop_clean(0..u64::MAX);
            return self.finish(id);
        }
        self.flush_device(id);
    }

    fn flush_device(&mut self, id: CallSlot) {
        let lun = self.calls.get(id).call.lun;
        if !self.luns[lun].is_volatile {
            return self.finish(id);
        }
        if !self.has_room(lun) {
            // Stepped again as soon as there is; nothing is dirty, so it comes straight back here.
            self.calls.get_mut(id).phase = Phase::Cleaning;
            self.luns[lun].starved.push_back(id);
            return;
        }
        let state = self.calls.get_mut(id);
        state.phase = Phase::Flushing;
        state.in_flight += 1;
        self.enqueue(lun, Request::flush(), Purpose::Call(id));
    }

    fn finish(&mut self, id: CallSlot) {
        let state = self.calls.remove(id);
        let call = state.call;
        let answers = matches!(call.operation, Operation::Sync | Operation::Close)
            || (call.operation == Operation::Write && call.stability == Stability::Durable);
        let behind = if answers { self.luns[call.lun].write_fault.take() } else { None };
        self.done.push(Done {
            id: state.id,
            call,
            start_ns: state.start_ns,
            end_ns: self.now_ns,
            outcome: state.outcome.and(behind.map_or(Ok(()), Err)),
        });
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked costs are not negative, and a call's are far below 2^53 ns"
)]
pub(super) fn nanos(cost_ns: f64) -> u64 {
    cost_ns.round() as u64
}
