//! What the C library does with freed memory, and a mapping that tests can detect. It measures nothing.
#![allow(unsafe_code, reason = "mallopt(3), mmap(2) and munmap(2) have no safe wrapper")]

use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

/// Allocations from this size on are returned to the kernel when they are freed: glibc's own default.
#[cfg(target_env = "gnu")]
const GIVEN_BACK_BYTES: i32 = 128 << 10;

/// Makes the C library always return large freed allocations to the kernel. glibc raises the size from which it does so
/// whenever a larger one is freed, up to 32 MiB; then lists that are needed one after the other are in memory at the same time
/// (a whole disk of 763 190 latencies: 119 MB instead of 78). With other C libraries it does nothing.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt changes a setting of the allocator and touches no allocation.
    unsafe {
        // It fails only for invalid arguments, and then changes nothing.
        let _ = libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
    }
}

/// A shared, writable mapping of an open file, held until it is dropped. It gives no access to what it maps: it is for tests
/// of code that must detect a mapped file, and so it is safe.
#[derive(Debug)]
pub struct SharedMapping {
    start: NonNull<c_void>,
    length: usize,
}

impl SharedMapping {
    /// Maps the first `length` bytes, of which no byte is touched.
    ///
    /// # Errors
    /// As mmap(2): `EACCES` when `fd` is not open for reading and writing, `EINVAL` for a length of 0.
    pub fn new(fd: impl AsFd, length: usize) -> io::Result<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so no other mapping is replaced.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), length, rights, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length })
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made; nothing points into it. A failure leaves it until the process ends.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.length) };
    }
}
