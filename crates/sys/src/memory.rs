//! What the C library does with freed memory, pages that were not used before, a mapping of a file, and numbers in memory that the kernel shares.
//! It measures nothing.
#![allow(unsafe_code, reason = "mallopt(3), madvise(2), mmap(2) and munmap(2) have no safe wrapper")]

use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

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

/// A huge page of most machines. Where it is another size, memory that is laid out by this one is in small pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Numbers that the kernel or another process may read and write at any time: an open file, such as an array of BPF, as
/// 64-bit words of the machine's own order. Looking at them takes no system call.
#[derive(Debug)]
pub struct SharedWords {
    mapping: Mapping,
    count: usize,
}

impl SharedWords {
    /// Maps the first `count` words of a file that is as long. A file that becomes shorter ends the process (SIGBUS)
    /// when what is gone is read; arrays of BPF never do.
    ///
    /// # Errors
    /// As [`Mapping::new`].
    pub fn new(fd: impl AsFd, count: usize) -> io::Result<Self> {
        let length = count.checked_mul(size_of::<AtomicU64>());
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Self { mapping: Mapping::new(fd, length)?, count })
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `count` words long and lives as long as `self`; any bits are a number, and atomic
        // access is sound while others write.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr().cast(), self.count) }
    }
}

/// A writable mapping, held until it is dropped. It gives no access to what it maps, and so it is safe: [`SharedWords`]
/// are reached through one, and tests of code that must detect a mapped file hold one.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    /// Shares the first `length` bytes of an open file, of which no byte is touched.
    ///
    /// # Errors
    /// As mmap(2): `EACCES` when `fd` is not open for reading and writing, `EINVAL` for a length of 0.
    pub fn new(fd: impl AsFd, length: usize) -> io::Result<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, so no other mapping is replaced.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), length, rights, MapFlags::SHARED, fd, 0) }?;
        Self::map(start, length)
    }

    /// What the kernel mapped at this place.
    fn map(start: *mut c_void, length: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, length })
    }
}

// SAFETY: the mapping belongs to the process, not to a thread, and the type itself accesses nothing.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is what the kernel mapped; nothing points into it any more. A failure leaves it until the process ends.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn shared_words_are_those_of_the_file() {
        let mut file = tempfile::tempfile().expect("a scratch file");
        file.set_len(4096).expect("it has a page");
        let words = SharedWords::new(&file, 3).expect("a file can be mapped");
        assert_eq!(words.len(), 3);
        words[2].store(u64::MAX, Relaxed);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("it can be read");
        assert_eq!((bytes[15], bytes[16], bytes[23], bytes[24]), (0, 255, 255, 0));
        assert!(SharedWords::new(&file, 0).is_err(), "nothing cannot be mapped");
    }
}
