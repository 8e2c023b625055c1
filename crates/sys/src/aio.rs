//! Linux AIO: io_setup(2), io_submit(2), io_getevents(2), io_destroy(2), and the ring of completions that the kernel maps
//! into the process. The numbers and layouts are the kernel's (include/uapi/linux/aio_abi.h, and `struct
//! aio_ring` of fs/aio.c). It decides nothing: what an error means, and how long to wait, is the caller's business.
#![allow(unsafe_code, reason = "system calls that carry addresses, and the kernel's ring")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Direction of one transfer, with its number in the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Into memory: `IOCB_CMD_PREAD`.
    Read = 0,
    /// Out of memory: `IOCB_CMD_PWRITE`.
    Write = 1,
}

/// One request: the kernel's `struct iocb`. The order of its key and flag words depends on the byte order of the machine;
/// both are 0 here.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Request {
    data: u64,
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

impl Request {
    /// A transfer between `buffer` and the file at `offset`; `data` comes back with its completion.
    #[inline]
    pub fn new(
        transfer: Transfer,
        fd: BorrowedFd<'_>,
        buffer: *mut u8,
        bytes: usize,
        offset: u64,
        data: u64,
    ) -> Self {
        Self {
            data,
            opcode: transfer as u16,
            fd: fd.as_raw_fd().unsigned_abs(),
            buffer: buffer.expose_provenance() as u64,
            bytes: bytes as u64,
            offset: offset.cast_signed(),
            ..Self::default()
        }
    }
}

/// One completion: the kernel's `struct io_event`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Completion {
    /// As given with the request.
    pub data: u64,
    request: u64,
    /// Bytes moved, or a negative error number.
    pub result: i64,
    more: i64,
}

/// `AIO_RING_MAGIC`.
const RING_MAGIC: u32 = 0xa10a_10a1;

/// The head of the ring of completions; `events` completions follow it.
#[repr(C)]
struct RingHead {
    id: u32,
    events: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    head_bytes: u32,
}

/// An AIO context. Destroying it waits for what is in flight.
#[derive(Debug)]
pub struct Context {
    id: libc::c_ulong,
    /// The ring, which can be read without a system call; `None` if its layout is not the expected one.
    ring: Option<*const RingHead>,
}

// SAFETY: a context belongs to the process, and the pointer into its ring is used through `&mut self` only.
unsafe impl Send for Context {}

impl Context {
    /// A context for `requests` requests in flight.
    ///
    /// # Errors
    /// Those of io_setup(2): `EAGAIN` beyond `fs.aio-max-nr`, `ENOSYS` where the kernel has no AIO, `EPERM` in
    /// sandboxes.
    pub fn new(requests: u32) -> io::Result<Self> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the call writes the id of the new context and nothing else.
        checked(unsafe { libc::syscall(libc::SYS_io_setup, libc::c_ulong::from(requests), &raw mut id) })?;
        // The id of a context is the address at which its ring is mapped.
        let ring: *const RingHead = std::ptr::with_exposed_provenance(usize::try_from(id).unwrap_or(0));
        // SAFETY: the kernel maps the ring at this address for as long as the context lives, page-aligned; its head has
        // had this layout and this magic number since Linux 2.5.
        let is_known = !ring.is_null()
            && unsafe {
                (*ring).magic == RING_MAGIC
                    && (*ring).incompatible == 0
                    && (*ring).events > 0
                    && (*ring).head_bytes as usize == size_of::<RingHead>()
            };
        Ok(Self { id, ring: is_known.then_some(ring) })
    }

    /// Submits requests in order; returns how many the kernel accepted, which may be fewer.
    ///
    /// # Safety
    /// Each request's buffer must stay valid, and be used by nothing else, until its completion was reaped; so must each
    /// request's place in memory until this returns: the kernel copies it, and writes into it.
    ///
    /// # Errors
    /// Those of io_submit(2), about the first request that was not accepted: `EAGAIN` when the context is full,
    /// `EINVAL` and `EBADF` for a request that makes no sense.
    #[inline]
    pub unsafe fn submit(&mut self, requests: &[*mut Request]) -> io::Result<usize> {
        let count = libc::c_long::try_from(requests.len()).unwrap_or(libc::c_long::MAX);
        // SAFETY: the caller vouches for the requests; the kernel is done with their places when the call returns.
        checked(unsafe { libc::syscall(libc::SYS_io_submit, self.id, count, requests.as_ptr()) })
    }

    /// Appends the completions in the ring to `into` up to its capacity, without a system call; returns how many.
    #[inline]
    pub fn reap(&mut self, into: &mut Vec<Completion>) -> usize {
        let Some(ring) = self.ring else { return 0 };
        let mut taken = 0;
        // SAFETY: the ring stays mapped while the context lives. Only `&mut self` moves its head; the kernel moves the
        // tail after it has written the completions before it, which the fence pairs with. Positions are below `events`,
        // which the kernel keeps inside the mapping.
        unsafe {
            let events = (*ring).events;
            let mut head = (*ring).head.load(Ordering::Relaxed);
            let tail = (*ring).tail.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            let first = ring.add(1).cast::<Completion>();
            while head != tail && head < events && into.len() < into.capacity() {
                into.push(first.add(head as usize).read());
                head = if head + 1 == events { 0 } else { head + 1 };
                taken += 1;
            }
            if taken > 0 {
                (*ring).head.store(head, Ordering::Release);
            }
        }
        taken
    }

    /// Waits for `least` completions or until the time is over; appends them up to the capacity of `into`; returns how
    /// many.
    ///
    /// # Errors
    /// Those of io_getevents(2): `EINTR` when a signal came first.
    pub fn wait(&mut self, least: usize, most_ns: u32, into: &mut Vec<Completion>) -> io::Result<usize> {
        let room = into.capacity() - into.len();
        let most = libc::c_long::try_from(room).unwrap_or(libc::c_long::MAX);
        let least = libc::c_long::try_from(least.min(room)).unwrap_or(libc::c_long::MAX);
        let timeout = libc::timespec {
            tv_sec: libc::time_t::from(most_ns / 1_000_000_000),
            tv_nsec: libc::c_long::from(most_ns % 1_000_000_000),
        };
        let free = into.spare_capacity_mut().as_mut_ptr();
        // SAFETY: the kernel writes at most `most` completions, for which there is room behind the vector's end.
        let count = checked(unsafe {
            libc::syscall(libc::SYS_io_getevents, self.id, least, most, free, &raw const timeout)
        })?;
        // SAFETY: so many were written, and there was room for them.
        unsafe { into.set_len(into.len() + count.min(room)) };
        Ok(count)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is given up here; the call waits for whatever is still in flight.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

fn checked(answer: libc::c_long) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    const BLOCK: usize = 4096;

    fn context() -> Option<Context> {
        match Context::new(8) {
            Ok(context) => Some(context),
            Err(error) => {
                eprintln!("SKIPPED: no AIO context can be made: {error}");
                None
            }
        }
    }

    #[test]
    fn what_is_written_comes_back() {
        let Some(mut context) = context() else { return };
        let file = tempfile::tempfile().unwrap();
        let mut data = [7u8; BLOCK];
        let mut back = [0u8; BLOCK];
        let buffers = [(Transfer::Write, data.as_mut_ptr()), (Transfer::Read, back.as_mut_ptr())];
        for (number, (transfer, buffer)) in (0..).zip(buffers) {
            let mut request = Request::new(transfer, file.as_fd(), buffer, BLOCK, 8192, 40 + number);
            // SAFETY: both buffers live until the completion is seen below.
            assert_eq!(unsafe { context.submit(&[&raw mut request]) }.unwrap(), 1);
            let mut seen = Vec::with_capacity(8);
            while seen.is_empty() {
                context.wait(1, 10_000_000, &mut seen).unwrap();
            }
            assert_eq!((seen.len(), seen[0].data, seen[0].result), (1, 40 + number, 4096));
        }
        assert_eq!(data, back);
    }

    #[test]
    fn the_ring_gives_each_completion_once_and_the_context_takes_more_than_its_size() {
        let Some(mut context) = context() else { return };
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut buffers = vec![[0u8; BLOCK]; 8];
        let mut seen = Vec::with_capacity(8);
        for round in 0..200u64 {
            let mut requests: Vec<Request> = (0..)
                .zip(&mut buffers)
                .map(|(slot, buffer)| {
                    let offset = (round * 8 + slot) % 256 * 4096;
                    Request::new(Transfer::Read, file.as_fd(), buffer.as_mut_ptr(), BLOCK, offset, slot)
                })
                .collect();
            let pointers: Vec<*mut Request> = requests.iter_mut().map(std::ptr::from_mut).collect();
            // SAFETY: the buffers live until all eight completions are seen.
            assert_eq!(unsafe { context.submit(&pointers) }.unwrap(), 8);
            seen.clear();
            while seen.len() < 8 {
                if context.reap(&mut seen) == 0 {
                    context.wait(1, 10_000_000, &mut seen).unwrap();
                }
            }
            let mut slots: Vec<u64> = seen.iter().map(|completion| completion.data).collect();
            slots.sort_unstable();
            assert_eq!(slots, (0..8).collect::<Vec<_>>());
            assert!(seen.iter().all(|completion| completion.result == 4096), "{seen:?}");
        }
        seen.clear();
        assert_eq!((context.reap(&mut seen), context.wait(1, 1_000_000, &mut seen).unwrap()), (0, 0));
    }

    #[test]
    fn failures_are_results() {
        let Some(mut context) = context() else { return };
        // No handle for reading: the request is refused by the call itself.
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("written only")).unwrap();
        let mut buffer = [0u8; BLOCK];
        let mut request = Request::new(Transfer::Read, file.as_fd(), buffer.as_mut_ptr(), BLOCK, 0, 0);
        // SAFETY: the buffer outlives the call, and nothing is in flight after its failure.
        let error = unsafe { context.submit(&[&raw mut request]) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        // Beyond the end nothing is moved.
        let empty = tempfile::tempfile().unwrap();
        let mut request = Request::new(Transfer::Read, empty.as_fd(), buffer.as_mut_ptr(), BLOCK, 0, 0);
        // SAFETY: as above, and the completion is waited for.
        assert_eq!(unsafe { context.submit(&[&raw mut request]) }.unwrap(), 1);
        let mut seen = Vec::with_capacity(1);
        while seen.is_empty() {
            context.wait(1, 10_000_000, &mut seen).unwrap();
        }
        assert_eq!(seen[0].result, 0);
    }

    #[test]
    fn more_than_the_system_has_is_an_error() {
        assert!(Context::new(u32::MAX).is_err());
    }
}
