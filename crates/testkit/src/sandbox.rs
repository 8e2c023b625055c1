//! A sandbox that forbids system calls with an error number of the caller's choice, as the seccomp profiles of containers
//! do. It holds for one thread and what that thread starts, never for the test program as a whole.

pub use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::collections::BTreeMap;
use std::ops::Range;
pub use syscalls::Sysno;

/// The numbers of all system calls that are newer than Linux 4.18. Since 5.1 a new call has the same number on every architecture,
/// from pidfd_send_signal(2) on. Linux 6.18 has no number above 470.
const AFTER_4_18: Range<i64> = 424..500;

/// What the default profile of container runtimes forbids a process without capabilities, as far as a program that measures disks
/// could want it (docker's and podman's seccomp profiles of 2025).
const NOT_IN_CONTAINERS: &str = "add_key bpf fanotify_init fsopen get_mempolicy io_uring_enter io_uring_register io_uring_setup kcmp keyctl \
    mbind mount move_mount move_pages open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root \
    process_vm_readv process_vm_writev ptrace quotactl request_key set_mempolicy setns swapoff swapon syslog \
    umount2 unshare userfaultfd";

/// Runs a function on a thread for which these calls fail with `errno`, and for every program that is started there.
///
/// # Panics
/// When the kernel takes no filter, and when `what` panics.
pub fn without<T: Send>(calls: &[Sysno], errno: Errno, what: impl FnOnce() -> T + Send) -> T {
    forbidding(calls.iter().map(|call| i64::from(call.id())), errno, what)
}

/// As [`without`], where every call that came after Linux 4.18 is unknown.
///
/// # Panics
/// As for [`without`].
pub fn on_linux_4_18<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    forbidding(AFTER_4_18, Errno::NOSYS, what)
}

/// As [`without`], with what a container's runtime forbids by default.
///
/// # Panics
/// As for [`without`].
pub fn in_container<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let calls = NOT_IN_CONTAINERS.split(' ').map(|name| name.parse().expect("the name of a call"));
    without(&calls.collect::<Vec<Sysno>>(), Errno::PERM, what)
}

fn forbidding<T: Send>(
    numbers: impl Iterator<Item = i64>,
    errno: Errno,
    what: impl FnOnce() -> T + Send,
) -> T {
    let arch = TargetArch::try_from(std::env::consts::ARCH).expect("an architecture with seccomp");
    let rules: BTreeMap<i64, Vec<_>> = numbers.map(|number| (number, Vec::new())).collect();
    let refuse = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).expect("a filter of bare calls");
    let program: BpfProgram = filter.try_into().expect("a filter of a few instructions for each call");
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
            let inside = without(&[Sysno::io_uring_setup], errno, || {
                io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error())
            });
            assert_eq!(inside, Err(Some(errno.raw_os_error())));
        }
        let after = io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error());
        assert_eq!(after, outside);
    }

    #[test]
    fn programs_that_are_started_there_are_inside() {
        let status = |calls: &[Sysno]| {
            without(calls, Errno::PERM, || {
                std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default()
            })
        };
        assert!(status(&[Sysno::io_setup]).contains("Seccomp:\t2"), "a filter is on");
        let child = without(&[Sysno::io_setup], Errno::PERM, || {
            std::process::Command::new("cat")
                .arg("/proc/self/status")
                .output()
                .expect("cat is everywhere")
                .stdout
        });
        assert!(String::from_utf8_lossy(&child).contains("Seccomp:\t2"));
    }

    #[test]
    fn what_is_newer_is_unknown_and_what_is_older_works() {
        let (ring, is_known) = on_linux_4_18(|| {
            let ring = io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error());
            (ring, std::fs::metadata("/proc/self").is_ok())
        });
        assert_eq!((ring, is_known), (Err(Some(Errno::NOSYS.raw_os_error())), true));
        let forbidden =
            in_container(|| io_uring::IoUring::new(2).map(drop).map_err(|error| error.raw_os_error()));
        assert_eq!(forbidden, Err(Some(Errno::PERM.raw_os_error())));
    }
}
