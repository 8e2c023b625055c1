//! Delayed replies: each request is answered no earlier than the device completes it, and as little later as the machine
//! allows. It does not compute these times.

use crate::fusedisk::log::{Log, RequestOutcome, Served};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long before its due time the leader starts polling for a reply. The kernel wakes a sleeping thread some tens of µs
/// late (on a virtual machine with two CPUs up to 50 µs, measured 2025).
const SPIN_NS: u64 = 60_000;
/// Maximum number of spare buffers.
const SPARE_BUFFERS: usize = 64;

/// The reply to one request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The data of a read.
    Data(ReplyData, Vec<u8>),
    /// This many bytes were written.
    Written(ReplyWrite, u32),
    /// A flush is done.
    Flushed(ReplyEmpty),
}

/// A request that is in the device.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Its log entry, except for the actual time of the reply.
    pub(crate) served: Served,
    /// When the reply is due.
    pub(crate) due_ns: u64,
    pub(crate) answer: Answer,
}

/// Requests in the device, by the due time of their replies. One thread at a time, the leader, waits for the first of them;
/// when it sends the reply, the next thread becomes the leader.
#[derive(Debug)]
pub(crate) struct Queue {
    born: Instant,
    /// The processor that serves; any where there is none.
    cpu: Option<usize>,
    state: Mutex<State>,
    leader: Condvar,
    followers: Condvar,
    /// When the first is due, for a leader that polls without the lock.
    first_due_ns: AtomicU64,
    log: Mutex<Log>,
    spare: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct State {
    /// By due time; the second number keeps the order of requests that are due at the same time.
    pending: BTreeMap<(u64, u64), Pending>,
    pushed: u64,
    /// Whether a thread waits for the first of them.
    is_led: bool,
    /// Whether threads end once nothing is left.
    is_ending: bool,
}

impl Queue {
    pub(crate) fn new(cpu: Option<usize>) -> Self {
        Self {
            born: Instant::now(),
            cpu,
            state: Mutex::default(),
            leader: Condvar::new(),
            followers: Condvar::new(),
            first_due_ns: AtomicU64::new(u64::MAX),
            log: Mutex::default(),
            spare: Mutex::default(),
        }
    }

    /// The processor that serves, where it is always the same.
    pub(crate) fn cpu(&self) -> Option<usize> {
        self.cpu
    }

    /// Gives the calling thread precise wake-ups: 1 ns of timer slack, and a higher priority than the programs that use the
    /// disk, since a real disk does not compete with them either. Without the right to do so, times are a little less precise.
    pub(crate) fn prioritize_this_thread(&self) {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let _ = rustix::process::setpriority_process(Some(gettid()), -20);
        if let Some(cpu) = self.cpu {
            let mut cpus = CpuSet::new();
            cpus.set(cpu);
            let _ = sched_setaffinity(None, &cpus);
        }
    }

    /// ns since the queue was made.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The log of what was answered.
    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// A buffer of `bytes` bytes with unspecified content.
    pub(crate) fn buffer(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = lock(&self.spare).pop().unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    /// Adds a request that is to be answered at its due time.
    pub(crate) fn push(&self, pending: Pending) {
        let mut state = lock(&self.state);
        let key = (pending.due_ns, state.pushed);
        state.pushed += 1;
        state.pending.insert(key, pending);
        self.note_first(&state);
        if state.pending.first_key_value().is_some_and(|(first, _)| *first == key) {
            if state.is_led { self.leader.notify_one() } else { self.followers.notify_one() }
        }
    }

    /// Lets [`Queue::serve`] return once nothing is left.
    pub(crate) fn end(&self) {
        lock(&self.state).is_ending = true;
        self.leader.notify_all();
        self.followers.notify_all();
    }

    /// Answers requests at their due times until [`Queue::end`]; to be called by several threads.
    pub(crate) fn serve(&self) {
        self.prioritize_this_thread();
        let mut state = lock(&self.state);
        loop {
            if state.is_ending && state.pending.is_empty() {
                return;
            }
            if state.is_led {
                state = self.followers.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_led = true;
            let (mut after, first) = self.lead(state);
            after.is_led = false;
            if !after.pending.is_empty() {
                self.followers.notify_one();
            }
            drop(after);
            if let Some(pending) = first {
                self.answer(pending);
            }
            state = lock(&self.state);
        }
    }

    /// Waits until the first request is due and takes it; `None` if there is none and never will be.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, Option<Pending>) {
        loop {
            let Some((&(due_ns, _), _)) = state.pending.first_key_value() else {
                if state.is_ending {
                    return (state, None);
                }
                state = self.leader.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left_ns = due_ns.saturating_sub(self.now_ns());
            if left_ns == 0 {
                let first = state.pending.pop_first().map(|(_, pending)| pending);
                self.note_first(&state);
                return (state, first);
            }
            if left_ns > SPIN_NS {
                let asleep = Duration::from_nanos(left_ns - SPIN_NS);
                state = self.leader.wait_timeout(state, asleep).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(state);
                while self.now_ns() < due_ns && self.first_due_ns.load(Ordering::Acquire) == due_ns {
                    std::hint::spin_loop();
                }
                state = lock(&self.state);
            }
        }
    }

    fn note_first(&self, state: &State) {
        let due_ns = state.pending.first_key_value().map_or(u64::MAX, |((due_ns, _), _)| *due_ns);
        self.first_due_ns.store(due_ns, Ordering::Release);
    }

    /// Logs, then answers: a program that has a reply finds it in the log.
    fn answer(&self, pending: Pending) {
        let Pending { mut served, answer, .. } = pending;
        served.answered_ns = self.now_ns();
        self.log().add(served);
        match (answer, served.outcome) {
            (Answer::Data(reply, buffer), outcome) => {
                match outcome {
                    RequestOutcome::Done => reply.data(&buffer),
                    RequestOutcome::Bad(_) => reply.error(Errno::EIO),
                }
                let mut spare = lock(&self.spare);
                if spare.len() < SPARE_BUFFERS {
                    spare.push(buffer);
                }
            }
            (Answer::Written(reply, bytes), RequestOutcome::Done) => reply.written(bytes),
            (Answer::Written(reply, _), _) => reply.error(Errno::EIO),
            (Answer::Flushed(reply), RequestOutcome::Done) => reply.ok(),
            (Answer::Flushed(reply), _) => reply.error(Errno::EIO),
        }
    }
}

/// A panic elsewhere leaves the data under these locks consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
