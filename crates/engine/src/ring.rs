//! Creates a ring: the best set of flags that the kernel accepts, registered buffers and file where it takes them; and decides how many
//! completions one wait requests. It submits nothing.
#![allow(unsafe_code, reason = "buffers are registered by address")]

use crate::arena::Arena;
use crate::error::errno_text;
use io_uring::types::Fd;
use io_uring::{IoUring, squeue};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Where rings or AIO contexts come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueSource {
    /// `io_uring_setup(2)` or `io_setup(2)`.
    #[default]
    Kernel,
    /// Every queue is refused with `EPERM`, as a sandbox does; for tests of the fallback.
    Forbidden,
}

impl QueueSource {
    /// Refuses a queue if queues are forbidden.
    pub(crate) fn check(self) -> io::Result<()> {
        match self {
            Self::Kernel => Ok(()),
            Self::Forbidden => Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
    }
}

/// How many completions a wait requests before it returns.
///
/// One wait for several completions saves system calls and wake-ups, but the first of them is seen later: its latency
/// grows by up to the time that the others take, and its slot stays empty for as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitBatch {
    /// Every wait ends with the first completion.
    One,
    /// This many, at most the I/Os in flight; for experiments with the trade-off.
    Fixed(u32),
    /// 1/`one_in` of the queue depth, so that by Little's law a completion is seen late by half of 1/`one_in` of the mean
    /// latency on average on any device. Fewer if that many recently took longer than `max_delay_ns`, which leaves one on
    /// every slow device; and one below a queue depth of 16. If a device suddenly stalls in the middle of a batch, this is
    /// noticed after 10 ms, when every wait ends.
    ///
    /// The kernel's own `min_wait_usec` (6.12) would notice it sooner, but arms a timer that is nearly always the next
    /// to expire: on a virtual machine that cost a third of the rate (295 000 against 440 000 IOPS, 2026-11).
    Adaptive {
        /// Divisor of the queue depth: 8 for an eighth.
        one_in: u32,
        /// Completion delay that the expected batch time must not exceed.
        max_delay_ns: u64,
    },
}

/// Which kernel thread issues an I/O to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Issue {
    /// The submitting thread: the target supports `RWF_NOWAIT`.
    #[default]
    Inline,
    /// Worker threads (io-wq): the target does not. Entries carry `IOSQE_ASYNC`, which saves the attempt.
    Workers,
}

impl Default for WaitBatch {
    /// An eighth of the queue, at most 50 µs: the mean latency is at most 6 % and never more than 50 µs too long.
    fn default() -> Self {
        Self::Adaptive { one_in: 8, max_delay_ns: 50_000 }
    }
}

/// Smallest queue depth at which waiting for several completions can pay off.
const MIN_BATCH_DEPTH: u32 = 16;

/// The rate of completions, smoothed, and the batch that follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batcher {
    wait_batch: WaitBatch,
    ceiling: u32,
    interval_ns: u64,
}

impl Batcher {
    pub(crate) fn new(wait_batch: WaitBatch, depth: u32) -> Self {
        let ceiling = match wait_batch {
            WaitBatch::One => 1,
            WaitBatch::Fixed(count) => count.clamp(1, depth),
            WaitBatch::Adaptive { one_in, .. } if depth >= MIN_BATCH_DEPTH => (depth / one_in.max(1)).max(1),
            WaitBatch::Adaptive { .. } => 1,
        };
        // Nothing is known at first: wait for one.
        Self { wait_batch, ceiling, interval_ns: 1_000_000 }
    }

    /// Notes the time and the completions of a batch.
    #[inline]
    pub(crate) fn observe(&mut self, elapsed_ns: u64, completions: u32) {
        if self.ceiling > 1 {
            let interval_ns = elapsed_ns / u64::from(completions.max(1));
            self.interval_ns = (self.interval_ns * 7 + interval_ns.min(1_000_000_000)) / 8;
        }
    }

    /// How many completions the next wait requests.
    #[inline]
    pub(crate) fn want(&self) -> u32 {
        match self.wait_batch {
            WaitBatch::Adaptive { max_delay_ns, .. } if self.ceiling > 1 => {
                u32::try_from(max_delay_ns / self.interval_ns.max(1))
                    .unwrap_or(u32::MAX)
                    .clamp(1, self.ceiling)
            }
            _ => self.ceiling,
        }
    }
}

/// Why a stream got no ring.
#[derive(Debug)]
pub(crate) enum NoRing {
    /// The kernel, a sandbox or a limit forbids it, or the kernel is too old: another engine takes over. Why, as text.
    Forbidden(String),
    /// Anything else.
    Failed(io::Error),
}

/// A ring, with its buffers and its file registered where the kernel takes them.
pub(crate) struct Ring {
    pub(crate) uring: IoUring,
    /// The file as entries name it: its place among the registered ones, or its descriptor.
    pub(crate) file: Fd,
    /// Flags that entries need for that.
    pub(crate) file_flags: squeue::Flags,
    /// What the user should know: what could not be registered.
    pub(crate) note: Option<String>,
    /// Slots of the arena per registered buffer; `None` where buffers could not be registered.
    pub(crate) slots_per_buffer: Option<usize>,
}

/// Creates a ring for `depth` I/Os over the arena's slots on one file.
pub(crate) fn make(
    source: QueueSource,
    depth: u32,
    issue: Issue,
    arena: &Arena,
    fd: BorrowedFd<'_>,
) -> Result<Ring, NoRing> {
    let uring = usable_ring(source, depth)?;
    let no_file = uring.submitter().register_files(&[fd.as_raw_fd()]).err();
    let (file, file_flags) = match no_file {
        None => (Fd(0), squeue::Flags::FIXED_FILE),
        Some(_) => (Fd(fd.as_raw_fd()), squeue::Flags::empty()),
    };
    if issue == Issue::Workers {
        // Each I/O in flight occupies a worker, and the kernel's default of four per processor would keep the queue
        // shallower than requested. A kernel before 5.15 cannot change it and keeps its default.
        let _ = uring.submitter().register_iowq_max_workers(&mut [depth, 0]);
    }
    // If locked memory is limited, the buffers stay unregistered, which is slower but measures the same.
    // Blocks of ordinary pages stay so, too: a program's calls have the kernel look up their pages, and join those that happen to be
    // neighbours, and those of a registered buffer it passes on page by page.
    let registered = arena.is_in_one_piece.then(|| register_arena(&uring, arena));
    let note = unregistered(no_file.as_ref(), registered.as_ref().and_then(|result| result.as_ref().err()));
    Ok(Ring { uring, file, file_flags, note, slots_per_buffer: registered.and_then(Result::ok) })
}

/// The note if the kernel did not take the file or the buffers.
fn unregistered(file: Option<&io::Error>, buffers: Option<&io::Error>) -> Option<String> {
    let words = |what: &str, error: &io::Error| {
        format!("its {what} ({})", errno_text(error.raw_os_error().unwrap_or(0)))
    };
    let file = file.map(|error| words("file", error));
    let buffers = buffers.map(|error| words("buffers", error));
    let features: Vec<String> = file.into_iter().chain(buffers).collect();
    (!features.is_empty()).then(|| {
        format!(
            "io_uring could not register {}, and looks these up for each I/O, which costs processor time (buffers need as much \
             locked memory: ulimit -l)",
            features.join(" and ")
        )
    })
}

/// Whether a ring can be created here, tried with a small one.
pub(crate) fn probe(source: QueueSource) -> Result<(), NoRing> {
    usable_ring(source, 1).map(drop)
}

/// The best ring that the kernel makes, if it can do what is needed of it.
fn usable_ring(source: QueueSource, depth: u32) -> Result<IoUring, NoRing> {
    let uring = source.check().and_then(|()| best_ring(depth)).map_err(no_ring)?;
    check_features(uring.params().is_feature_ext_arg())?;
    Ok(uring)
}

/// Whether a ring is of use: every wait here has a limit of time (`IORING_ENTER_EXT_ARG`, Linux 5.11). The ring of an older
/// kernel can be made, and then answers each call with `EINVAL`.
fn check_features(has_ext_arg: bool) -> Result<(), NoRing> {
    if has_ext_arg { Ok(()) } else { Err(too_old()) }
}

/// What an error of io_uring_setup(2) means: `EPERM` comes from kernel.io_uring_disabled and most sandboxes, `ENOSYS`
/// from kernels built without it and some sandboxes, `EACCES` from security modules, `ENOMEM` from a limit on locked
/// memory before 5.12. `EINVAL` for every set of flags comes from kernels before 5.6, which know none of them.
fn no_ring(error: io::Error) -> NoRing {
    let errno = error.raw_os_error().unwrap_or(0);
    match errno {
        libc::EPERM | libc::EACCES | libc::ENOSYS | libc::ENOMEM => {
            NoRing::Forbidden(format!("io_uring is forbidden here ({})", errno_text(errno)))
        }
        libc::EINVAL => too_old(),
        _ => NoRing::Failed(error),
    }
}

fn too_old() -> NoRing {
    NoRing::Forbidden("io_uring of this kernel is too old (before 5.11)".into())
}

/// Tries the sets of flags from the best to none; older kernels return `EINVAL` for flags they do not know. The newer a
/// flag is, the sooner it is left out.
fn best_ring(depth: u32) -> io::Result<IoUring> {
    first_accepted(|set| {
        let mut builder = IoUring::builder();
        builder.setup_clamp();
        if set >= 1 {
            builder.setup_coop_taskrun();
        }
        if set >= 2 {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if set >= 3 {
            builder.setup_no_sqarray();
        }
        builder.build(depth.max(1))
    })
}

/// What `build` makes of the best set of flags that is not refused with `EINVAL`.
fn first_accepted<R>(mut build: impl FnMut(u32) -> io::Result<R>) -> io::Result<R> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for set in (0..=3).rev() {
        match build(set) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            other => return other,
        }
    }
    Err(refused)
}

/// Registers the arena as one buffer, or as several if it exceeds the limit of 1 GiB per buffer.
fn register_arena(uring: &IoUring, arena: &Arena) -> io::Result<usize> {
    const MAX_BYTES: usize = 1 << 30;
    let stride = arena.slot_stride_bytes;
    let slots_per_buffer = (MAX_BYTES / stride).clamp(1, arena.slots);
    let buffers: Vec<libc::iovec> = (0..arena.slots)
        .step_by(slots_per_buffer)
        .map(|slot| libc::iovec {
            iov_base: arena.slot_pointer(slot).cast(),
            iov_len: slots_per_buffer.min(arena.slots - slot) * stride,
        })
        .collect();
    // SAFETY: the arena outlives the ring: the stream drops the ring first, and a panic leaves the arena mapped.
    unsafe { uring.submitter().register_buffers(&buffers) }?;
    Ok(slots_per_buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_devices_are_waited_for_one_by_one() {
        let mut batcher = Batcher::new(WaitBatch::default(), 32);
        assert_eq!(batcher.want(), 1, "nothing is known yet");
        (0..100).for_each(|_| batcher.observe(4_000_000, 1));
        assert_eq!(batcher.want(), 1, "256 IOPS");
        (0..100).for_each(|_| batcher.observe(700_000, 32));
        assert_eq!(batcher.want(), 2, "46 000 IOPS: two in 50 µs");
        (0..100).for_each(|_| batcher.observe(100_000, 32));
        assert_eq!(batcher.want(), 4, "320 000 IOPS: an eighth of the depth at most");
        (0..100).for_each(|_| batcher.observe(4_000_000, 1));
        assert_eq!(batcher.want(), 1, "and back");
    }

    #[test]
    fn shallow_queues_wait_for_one() {
        let mut batcher = Batcher::new(WaitBatch::default(), 15);
        (0..100).for_each(|_| batcher.observe(1000, 15));
        assert_eq!(batcher.want(), 1);
    }

    #[test]
    fn every_refusal_of_a_ring_leads_to_another_engine() {
        let of = |errno| no_ring(io::Error::from_raw_os_error(errno));
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOMEM] {
            let NoRing::Forbidden(why) = of(errno) else { panic!("{errno}") };
            assert_eq!(why, format!("io_uring is forbidden here ({})", errno_text(errno)));
        }
        for errno in [libc::EMFILE, libc::ENFILE, libc::EFAULT] {
            assert!(
                matches!(of(errno), NoRing::Failed(error) if error.raw_os_error() == Some(errno)),
                "{errno}"
            );
        }
        assert!(matches!(probe(QueueSource::Forbidden), Err(NoRing::Forbidden(_))));
    }

    #[test]
    fn a_kernel_before_5_11_leads_to_another_engine() {
        const TOO_OLD: &str = "io_uring of this kernel is too old (before 5.11)";
        // 5.1 to 5.5 know no flag that is asked for, `IORING_SETUP_CLAMP` included.
        let mut tried = Vec::new();
        let none: io::Result<()> = first_accepted(|set| {
            tried.push(set);
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        });
        assert_eq!(tried, [3, 2, 1, 0]);
        assert!(matches!(no_ring(none.unwrap_err()), NoRing::Forbidden(why) if why == TOO_OLD));
        // 5.6 to 5.10 make a ring whose waits take no limit of time.
        let made =
            first_accepted(
                |set| {
                    if set == 0 { Ok(set) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
                },
            );
        assert_eq!(made.unwrap(), 0);
        assert!(matches!(check_features(false), Err(NoRing::Forbidden(why)) if why == TOO_OLD));
        assert!(check_features(true).is_ok());
    }

    #[test]
    fn what_could_not_be_registered_is_noted() {
        let error = || io::Error::from_raw_os_error(libc::ENOMEM);
        assert_eq!(unregistered(None, None), None);
        let note = unregistered(Some(&error()), Some(&error())).unwrap();
        let text = errno_text(libc::ENOMEM);
        assert!(note.contains(&format!("register its file ({text}) and its buffers ({text}),")), "{note}");
        let note = unregistered(None, Some(&error())).unwrap();
        assert!(note.contains("register its buffers (") && !note.contains("file"), "{note}");
    }

    #[test]
    fn a_fixed_batch_is_at_most_the_depth() {
        assert_eq!(Batcher::new(WaitBatch::Fixed(64), 32).want(), 32);
        assert_eq!(Batcher::new(WaitBatch::Fixed(0), 32).want(), 1);
    }
}
