//! Processor time used by the process and its threads, as getrusage(2) counts it. It never samples by itself: the
//! caller takes two readings and their difference.
#![allow(unsafe_code, reason = "getrusage(2) has no safe wrapper")]

use std::io;

/// Processor time used since the start of the process or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode, nanoseconds.
    pub user_ns: u64,
    /// Processor time in the kernel on behalf of the caller, nanoseconds.
    pub system_ns: u64,
}

/// Usage of the whole process (`RUSAGE_SELF`), all threads, those that have ended included.
///
/// io_uring worker threads are included, because the kernel creates them in the thread group of the process
/// (`create_io_thread` in kernel/fork.c clones with `CLONE_THREAD`). A kernel thread that polls a submission queue
/// (`IORING_SETUP_SQPOLL`) is made the same way. Work that the kernel does in its own threads (write-back, interrupts)
/// is in no process's usage.
///
/// # Errors
/// Those of getrusage(2), which has none for valid arguments.
pub fn process_usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_SELF)
}

/// Usage of all children that have ended and were waited for, with theirs (`RUSAGE_CHILDREN`).
///
/// # Errors
/// As [`process_usage`].
pub fn children_usage() -> io::Result<Usage> {
    usage_of(libc::RUSAGE_CHILDREN)
}

/// Time in nanoseconds in which the calling thread was ready to run and waited for a processor, since it began: the second
/// number of `/proc/thread-self/schedstat`. `None` where the kernel does not count it (`CONFIG_SCHED_INFO`) or `/proc` is not
/// mounted. On an idle machine it grows by the few microseconds that a wake-up takes.
pub fn thread_wait_ns() -> Option<u64> {
    wait_in(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// [`thread_wait_ns`] of the thread that opened it, read again and again without memory of its own.
#[derive(Debug)]
pub struct ThreadWait(std::fs::File);

impl ThreadWait {
    /// That of the calling thread; `None` without `/proc`.
    pub fn of_this_thread() -> Option<Self> {
        std::fs::File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    /// The time so far.
    pub fn wait_ns(&self) -> Option<u64> {
        use std::os::unix::fs::FileExt as _;
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0).ok()?;
        wait_in(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// `run_ns wait_ns slices`.
fn wait_in(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn usage_of(who: libc::c_int) -> io::Result<Usage> {
    let mut raw = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the whole structure at the pointer, which is valid for it.
    if unsafe { libc::getrusage(who, raw.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, a valid value of a structure of integers, and then filled.
    let raw = unsafe { raw.assume_init() };
    Ok(Usage { user_ns: nanoseconds(raw.ru_utime), system_ns: nanoseconds(raw.ru_stime) })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000
}

/// The kernel's counters are never negative although their type is signed; a negative one would be an error and is read as 0.
fn count(value: impl TryInto<u64>) -> u64 {
    value.try_into().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Usage of the calling thread alone.
    fn thread_usage() -> io::Result<Usage> {
        usage_of(libc::RUSAGE_THREAD)
    }

    fn burn_processor(duration: Duration) {
        let start = Instant::now();
        let mut value = 1u64;
        while start.elapsed() < duration {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005));
        }
    }

    #[test]
    fn the_wait_for_a_processor_is_the_second_number() {
        assert_eq!(wait_in("1200 42694 7\n"), Some(42_694));
        assert_eq!((wait_in(""), wait_in("0 many 1")), (None, None));
        let before = thread_wait_ns();
        assert!(before.is_some() || !std::path::Path::new("/proc/thread-self/schedstat").exists());
        std::thread::sleep(Duration::from_millis(1));
        assert!(thread_wait_ns() >= before, "it only grows");
    }

    #[test]
    fn a_thread_counts_its_own_work_and_the_process_all() {
        let process_before = process_usage().unwrap();
        let thread_before = thread_usage().unwrap();
        let of_worker = std::thread::spawn(|| {
            // Until it has used the processor, however long it waits for it.
            loop {
                burn_processor(Duration::from_millis(20));
                let usage = thread_usage().unwrap();
                if usage.user_ns + usage.system_ns >= 20_000_000 {
                    return usage.user_ns + usage.system_ns;
                }
            }
        })
        .join()
        .unwrap();
        let process_after = process_usage().unwrap();
        let thread_after = thread_usage().unwrap();
        assert!(of_worker > 0);
        let process_ns = process_after.user_ns + process_after.system_ns
            - process_before.user_ns
            - process_before.system_ns;
        // The kernel scales user against system time by its ticks, so allow one tick of difference.
        assert!(process_ns + 10_000_000 >= of_worker, "{process_ns} of {of_worker}");
        let waiting_ns =
            thread_after.user_ns + thread_after.system_ns - thread_before.user_ns - thread_before.system_ns;
        assert!(waiting_ns < of_worker, "the waiting thread used {waiting_ns} of {of_worker}");
    }

    /// A ring worker is a thread of this process, which is what puts its time into `RUSAGE_SELF`.
    #[test]
    fn ring_workers_belong_to_the_process() {
        use std::os::fd::AsRawFd as _;
        let Ok(mut ring) = io_uring::IoUring::new(2) else {
            eprintln!("SKIPPED ring_workers_belong_to_the_process: io_uring is not available");
            return;
        };
        let file = tempfile::tempfile().unwrap();
        let mut buffer = vec![0u8; 4096];
        let read =
            io_uring::opcode::Read::new(io_uring::types::Fd(file.as_raw_fd()), buffer.as_mut_ptr(), 4096)
                .build()
                .flags(io_uring::squeue::Flags::ASYNC);
        // SAFETY: buffer and file outlive the completion awaited on the next line.
        unsafe { ring.submission().push(&read) }.unwrap();
        ring.submit_and_wait(1).unwrap();
        let names: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
            .collect();
        assert!(names.iter().any(|name| name.starts_with("iou-wrk")), "{names:?}");
    }
}
