//! A sandbox that forbids system calls with an error number of the caller's choice, as the seccomp profiles of containers
//! do. It holds for one thread and what that thread starts, never for the test program as a whole.

pub use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::collections::BTreeMap;

/// A system call that can be forbidden. The numbers are those of arch/*/include/uapi/asm/unistd.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// io_uring_setup(2); 425 on every architecture.
    IoUringSetup,
    /// io_setup(2).
    IoSetup,
    /// bpf(2).
    Bpf,
    /// sync_file_range(2).
    SyncFileRange,
}

impl Call {
    fn number(self) -> i64 {
        match self {
            Self::IoUringSetup => 425,
            Self::IoSetup if cfg!(target_arch = "x86_64") => 206,
            Self::IoSetup => 0,
            Self::Bpf if cfg!(target_arch = "x86_64") => 321,
            Self::Bpf => 280,
            Self::SyncFileRange if cfg!(target_arch = "x86_64") => 277,
            Self::SyncFileRange => 84,
        }
    }
}

/// Runs a function on a thread for which these calls fail with `errno`, and for every program that is started there.
///
/// # Panics
/// When the kernel takes no filter, and when `what` panics.
pub fn without<T: Send>(calls: &[Call], errno: Errno, what: impl FnOnce() -> T + Send) -> T {
    let arch = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture with seccomp");
    let rules: BTreeMap<i64, Vec<_>> = calls.iter().map(|call| (call.number(), Vec::new())).collect();
    let refuse = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).expect("a filter of bare calls");
    let program: BpfProgram = filter.try_into().expect("a filter of a few instructions");
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            seccompiler::apply_filter(&program).expect("the kernel has seccomp");
            what()
        });
        match inside.join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_forbidden_inside_and_nowhere_else() {
        let outside = io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error());
        for errno in [Errno::PERM, Errno::NOSYS] {
            let inside = without(&[Call::IoUringSetup], errno, || {
                io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error())
            });
            assert_eq!(inside, Err(Some(errno.raw_os_error())));
        }
        let after = io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error());
        assert_eq!(after, outside);
    }

    #[test]
    fn programs_that_are_started_there_are_inside() {
        let status = |calls: &[Call]| {
            without(calls, Errno::PERM, || {
                std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default()
            })
        };
        assert!(status(&[Call::IoSetup]).contains("Seccomp:\t2"), "a filter is on");
        let child = without(&[Call::IoSetup], Errno::PERM, || {
            std::process::Command::new("cat")
                .arg("/proc/self/status")
                .output()
                .expect("cat is everywhere")
                .stdout
        });
        assert!(String::from_utf8_lossy(&child).contains("Seccomp:\t2"));
    }
}
