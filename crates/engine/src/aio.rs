//! The Linux AIO engine: one context per stream, a batch of I/Os per `io_submit`, completions read from the kernel's ring
//! without a system call if they are already there. For direct I/O: with buffered I/O `io_submit` blocks. The loop is in
//! `async_loop`.
#![allow(unsafe_code, reason = "requests carry addresses")]

use crate::arena::Arena;
use crate::async_loop;
use crate::error::{EngineError, errno_text};
use crate::io_queue::{IoQueue, MAX_WAIT_NS, Memory};
use crate::load::RequestSource;
use crate::ring::{QueueSource, WaitBatch};
use crate::work::{StreamOutcome, Work};
use rdsk_sys::aio::{Completion, Context, Request, Transfer};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Idle contexts, for the next visit of the same depth. Destroying one waits tens of milliseconds for an RCU grace period,
/// which must not happen between visits or during a flush.
#[derive(Clone, Debug, Default)]
pub struct Contexts(Arc<Mutex<Vec<(usize, Context)>>>);

/// Idle contexts that are kept.
const MAX_IDLE: usize = 64;

impl Contexts {
    /// A context for `depth` I/Os, an idle one if there is one.
    ///
    /// # Errors
    /// When the kernel creates none: another engine takes over.
    pub(crate) fn take(&self, source: QueueSource, depth: usize) -> io::Result<Context> {
        source.check()?;
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = idle.iter().position(|(its, _)| *its == depth) {
            return Ok(idle.swap_remove(index).1);
        }
        let requests = u32::try_from(depth).unwrap_or(u32::MAX);
        Context::new(requests).or_else(|error| {
            // Idle contexts of other depths may use up the system's limit.
            if idle.is_empty() || error.raw_os_error() != Some(libc::EAGAIN) {
                return Err(error);
            }
            idle.clear();
            Context::new(requests)
        })
    }

    /// Keeps a context that has nothing in flight and no completion left to read.
    pub(crate) fn give_back(&self, depth: usize, context: Context) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push((depth, context));
        }
    }
}

/// Why there is no context, as text.
pub(crate) fn forbidden_message(error: &io::Error) -> String {
    let errno = error.raw_os_error().unwrap_or(0);
    let words = errno_text(errno);
    if errno == libc::EAGAIN {
        return format!("Linux AIO has no room for this many requests here ({words}; see fs.aio-max-nr)");
    }
    format!("Linux AIO is forbidden here ({words})")
}

/// Issues the I/O of one stream, the whole blocks first, then the shorter one.
///
/// # Errors
/// [`EngineError::Aio`] when the context itself stops working. I/O may then be in flight, so the arena is leaked.
pub(crate) fn run(
    mut work: Work<'_>,
    arena: Arena,
    context: Context,
    contexts: &Contexts,
    wait_batch: WaitBatch,
    requests: Option<RequestSource>,
) -> Result<StreamOutcome, EngineError> {
    // The context is dropped before the memory, whichever way this function ends.
    let mut arena = ManuallyDrop::new(arena);
    let spec = work.spec;
    let mut queue = AioQueue::new(context, spec.fd, spec.depth);
    let depth = u32::try_from(spec.depth).unwrap_or(u32::MAX);
    let end = async_loop::run(&mut work, &mut arena, &mut queue, depth, wait_batch, requests)
        .map_err(|source| EngineError::Aio { stream: spec.stream, source })?;
    work.outcome.within_submit = Some(queue.within_submit);
    contexts.give_back(spec.depth, queue.context);
    let mut outcome = work.finish(end);
    outcome.look_at(&mut arena, &spec);
    drop(ManuallyDrop::into_inner(arena));
    Ok(outcome)
}

/// A context in use.
struct AioQueue<'a> {
    context: Context,
    fd: BorrowedFd<'a>,
    /// How long a wait may take.
    longest_ns: u32,
    /// One for each I/O in flight.
    requests: Box<[Request]>,
    /// The batch in which an I/O was pushed last.
    batches: Box<[u64]>,
    batch: u64,
    /// I/Os in line; those before `sent` have been submitted.
    line: Vec<u32>,
    /// Addresses of the requests of a submission; kept only to reuse its memory.
    pointers: Vec<*mut Request>,
    sent: usize,
    /// Completions not handed over yet.
    completed: Vec<Completion>,
    /// I/Os that `io_submit` refused, with the negative error number.
    refused: Vec<(u32, i64)>,
    /// I/Os that were complete when the call that submitted them returned.
    within_submit: u64,
}

impl<'a> AioQueue<'a> {
    fn new(context: Context, fd: BorrowedFd<'a>, depth: usize) -> Self {
        Self {
            context,
            fd,
            longest_ns: MAX_WAIT_NS,
            requests: vec![Request::default(); depth].into_boxed_slice(),
            batches: vec![0; depth].into_boxed_slice(),
            batch: 0,
            line: Vec::with_capacity(depth),
            pointers: Vec::with_capacity(depth),
            sent: 0,
            completed: Vec::with_capacity(depth),
            refused: Vec::with_capacity(depth),
            within_submit: 0,
        }
    }

    /// Submits what is in line, as far as the context accepts it.
    #[inline]
    fn submit(&mut self) {
        let first = self.requests.as_mut_ptr();
        self.pointers.clear();
        self.pointers
            .extend(self.line[self.sent..].iter().map(|&number| first.wrapping_add(number as usize)));
        let mut taken = 0;
        while taken < self.pointers.len() {
            // SAFETY: every request and its slot were free and stay taken until its completion; the arena and the requests
            // outlive the context, which waits for what is in flight when it is dropped.
            match unsafe { self.context.submit(&self.pointers[taken..]) } {
                Ok(0) => break,
                Ok(more) => taken += more,
                Err(error) => match error.raw_os_error() {
                    // The context is full; reaping makes room.
                    Some(libc::EAGAIN) => break,
                    Some(libc::EINTR) => {}
                    errno => {
                        let number = self.line[self.sent + taken];
                        self.refused.push((number, -i64::from(errno.unwrap_or(libc::EIO))));
                        taken += 1;
                    }
                },
            }
        }
        self.sent += taken;
        if self.sent == self.line.len() {
            self.line.clear();
            self.sent = 0;
        }
    }
}

impl IoQueue for AioQueue<'_> {
    #[inline]
    fn push<const WRITE: bool>(&mut self, number: u32, memory: Memory, offset: u64) {
        let Memory { pointer, len, .. } = memory;
        let transfer = if WRITE { Transfer::Write } else { Transfer::Read };
        let index = number as usize;
        self.requests[index] = Request::new(transfer, self.fd, pointer, len, offset, u64::from(number));
        self.batches[index] = self.batch;
        self.line.push(number);
    }

    #[inline]
    fn wait_at_most(&mut self, longest_ns: u32) {
        self.longest_ns = longest_ns.min(MAX_WAIT_NS);
    }

    #[inline]
    fn submit_and_wait(&mut self, want: u32, interrupted_calls: &mut u64) -> io::Result<()> {
        if !self.line.is_empty() {
            self.submit();
            self.context.reap(&mut self.completed);
            let batch = self.batch;
            let of_this =
                self.completed.iter().filter(|done| self.batches[number(done.data) as usize] == batch);
            self.within_submit += of_this.count() as u64;
            self.batch += 1;
        }
        let want = want as usize;
        let have = self.completed.len() + self.refused.len();
        if have >= want {
            return Ok(());
        }
        match self.context.wait(want - have, self.longest_ns, &mut self.completed) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => *interrupted_calls += 1,
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(())
    }

    #[inline]
    fn completions(&mut self, mut each: impl FnMut(u32, i64)) {
        // What completed since the wait is in the ring and costs nothing to read.
        self.context.reap(&mut self.completed);
        for completion in self.completed.drain(..) {
            each(number(completion.data), completion.result);
        }
        for (number, result) in self.refused.drain(..) {
            each(number, result);
        }
    }
}

/// The number that a request carried.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the number of an I/O went in, and comes back")]
fn number(data: u64) -> u32 {
    data as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_contexts_are_used_again_by_depth() {
        let contexts = Contexts::default();
        let Ok(first) = contexts.take(QueueSource::Kernel, 8) else {
            eprintln!("SKIPPED: no AIO context can be made");
            return;
        };
        let name = format!("{first:?}");
        contexts.give_back(8, first);
        let other = contexts.take(QueueSource::Kernel, 9).unwrap();
        assert_ne!(format!("{other:?}"), name);
        assert_eq!(format!("{:?}", contexts.take(QueueSource::Kernel, 8).unwrap()), name);
        assert!(contexts.take(QueueSource::Forbidden, 9).is_err());
    }
}
