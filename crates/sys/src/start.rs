//! What the process was given at its start and Rust's runtime hides before `main`: standard descriptors that were closed, on
//! which it opens /dev/null, and SIGPIPE, which it ignores. It looks and remembers; what follows from it is the caller's.
#![allow(
    unsafe_code,
    reason = "only what runs before the runtime sees what it was given; a descriptor by number"
)]

use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// A bit for each standard descriptor that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// The C runtime calls the functions of this section before `main`, and Rust's runtime begins within `main`.
#[used]
// SAFETY: the section holds pointers to functions of this signature; further arguments that the C runtime passes are ignored.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mut closed = 0;
    for standard in [Standard::Input, Standard::Output, Standard::Error] {
        // SAFETY: F_GETFD takes any number, and fails for one that is not open.
        if unsafe { libc::fcntl(standard.number(), libc::F_GETFD) } == -1 {
            closed |= standard.bit();
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    // SAFETY: all zeros is a valid `sigaction`, and a null pointer asks for the present one without changing it.
    let handler = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut present);
        present.sa_sigaction
    };
    IGNORES_PIPE.store(handler == libc::SIG_IGN, Ordering::Relaxed);
}

/// A standard descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// 0.
    Input,
    /// 1.
    Output,
    /// 2.
    Error,
}

impl Standard {
    fn number(self) -> RawFd {
        match self {
            Self::Input => 0,
            Self::Output => 1,
            Self::Error => 2,
        }
    }

    fn bit(self) -> u8 {
        1 << self.number()
    }
}

/// Whether the process was started with this descriptor closed.
pub fn was_closed(standard: Standard) -> bool {
    CLOSED.load(Ordering::Relaxed) & standard.bit() != 0
}

/// Whether the process was started with SIGPIPE ignored, so that a pipe without readers is an error and not its end.
pub fn ignored_broken_pipes() -> bool {
    IGNORES_PIPE.load(Ordering::Relaxed)
}

/// Makes reads and writes of the standard descriptors that were closed at the start fail with `EBADF`, as the caller of
/// the program meant it. They stay taken, so that no file that is opened later becomes standard output.
///
/// # Errors
/// Those of open(2) and dup2(2); the others may then be as the runtime left them.
pub fn restore_closed() -> io::Result<()> {
    for standard in [Standard::Input, Standard::Output, Standard::Error] {
        if was_closed(standard) {
            make_dead(standard)?;
        }
    }
    Ok(())
}

/// Takes what a standard descriptor leads to, as an open file with one owner. The descriptor fails from then on as one
/// that was closed at the start.
///
/// # Errors
/// `EBADF` if it was closed at the start; else those of dup(2) and open(2).
pub fn take(standard: Standard) -> io::Result<OwnedFd> {
    if was_closed(standard) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it was open at the start, and is left open until `make_dead` below puts another file in its place.
    let present = unsafe { BorrowedFd::borrow_raw(standard.number()) };
    let taken = rustix::io::fcntl_dupfd_cloexec(present, FIRST_FREE)?;
    make_dead(standard)?;
    Ok(taken)
}

/// The first descriptor that is no standard one.
const FIRST_FREE: RawFd = 3;

/// Puts a file that can only be looked at (`O_PATH`) in the place of a standard descriptor.
fn make_dead(standard: Standard) -> io::Result<()> {
    let dead = rustix::fs::open("/", OFlags::PATH, Mode::empty())?;
    if dead.as_raw_fd() == standard.number() {
        // It took the free number by itself, and stays there.
        let _ = OwnedFd::into_raw_fd(dead);
        return Ok(());
    }
    match standard {
        Standard::Input => rustix::stdio::dup2_stdin(&dead),
        Standard::Output => rustix::stdio::dup2_stdout(&dead),
        Standard::Error => rustix::stdio::dup2_stderr(&dead),
    }?;
    Ok(())
}
