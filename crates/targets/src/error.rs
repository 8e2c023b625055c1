//! What can go wrong with a target, with messages and hints. It prints nothing.

use crate::display::shown;
use crate::permission::Refusal;
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::Bytes;
use std::io;
use std::path::Path;

/// An error of this room. The paths in it are safe to print.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what the messages above them say; sizes are in bytes")]
pub enum TargetError {
    #[error("sim:{name} cannot be simulated")]
    Sim { name: String, source: rdsk_disk::ParamError },
    #[error("{name} has no LUN {lun}; it has {luns}, numbered from 0")]
    NoLun { name: String, lun: usize, luns: usize },
    #[error("the file {path} of a simulated system cannot be read: {reason}")]
    SimFile { path: String, reason: String },
    #[error("{name} is simulated and cannot be opened")]
    NotOpenable { name: String },
    #[error("{path} does not exist")]
    NotFound { path: String },
    #[error("{name} is the name of several devices: {}", crate::display::listed(candidates, 6))]
    Ambiguous { name: String, candidates: Vec<String> },
    #[error("{name} does not exist here, and a kernel name is not accepted as a path")]
    KernelName { name: String },
    #[error("{path} is missing or is another device, although the kernel has a device of this name")]
    NoNode { path: String },
    #[error("{path} {what}")]
    NotMeasurable { path: String, what: &'static str },
    #[error("{path} is empty: it has 0 bytes")]
    Empty { path: String },
    #[error("{path} cannot be used now: {device} is suspended, so that I/O to it waits until it is resumed")]
    Suspended { path: String, device: String },
    #[error("{path} is a directory: a test file must be created in it first")]
    IsDirectory { path: String },
    #[error("{path} is not a directory")]
    NotDirectory { path: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{path} cannot be {action}")]
    Denied { path: String, action: &'static str, source: io::Error },
    #[error("a test file of {} does not fit in {path}, where {} may be used", Bytes(*wanted_bytes), Bytes(*free_bytes).approx())]
    TooLarge { path: String, wanted_bytes: u64, free_bytes: u64 },
    #[error("no space is left in {path} after {} of the test file", Bytes(*done_bytes).approx())]
    NoSpace { path: String, done_bytes: u64, source: io::Error },
    #[error("{path} has changed since it was examined: {what}")]
    Changed { path: String, what: &'static str },
    #[error("{path} is gone: the kernel no longer lists it")]
    Gone { path: String, source: io::Error },
    #[error("{path} was claimed for reading and cannot be opened for writing")]
    ReadOnlyClaim { path: String },
    #[error("{path} does not support direct I/O (O_DIRECT)")]
    DirectUnsupported { path: String },
    #[error(
        "the test file {path} was not really written: {hole_bytes} bytes of holes, {unwritten_bytes} unwritten"
    )]
    NotWritten { path: String, hole_bytes: u64, unwritten_bytes: u64 },
    #[error("/proc is not mounted here, and without it the target that was checked cannot be opened")]
    NoProc,
    #[error("interrupted while the test file was created")]
    Interrupted,
    #[error("{path} cannot be {action}")]
    Io { path: String, action: &'static str, source: io::Error },
}

impl TargetError {
    /// The error of a system call on `path`, which could not be `action` ("opened").
    pub(crate) fn from_io(path: &Path, action: &'static str, source: io::Error) -> Self {
        let path = shown(path);
        match source.raw_os_error() {
            Some(libc::ENOENT) => Self::NotFound { path },
            Some(libc::EBUSY) => busy(&path, "another program or a mount holds it exclusively"),
            Some(libc::ETXTBSY) => busy(&path, "it is a program that runs, or swap"),
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Self::NoSpace { path, done_bytes: 0, source },
            Some(libc::EIO | libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => {
                Self::Io { path, action, source }
            }
            _ => Self::Denied { path, action, source },
        }
    }

    /// Stable kebab-case name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Sim { source: rdsk_disk::ParamError::UnknownName { .. }, .. } => "unknown-sim",
            Self::Sim { .. } => "bad-sim",
            Self::SimFile { .. } => "unreadable-sim",
            Self::NoLun { .. } => "no-lun",
            Self::NotOpenable { .. } => "simulated",
            Self::NotFound { .. } | Self::KernelName { .. } => "not-found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NoNode { .. } => "no-node",
            Self::NotMeasurable { .. } => "not-measurable",
            Self::Empty { .. } => "empty",
            Self::Suspended { .. } => "suspended",
            Self::IsDirectory { .. } => "is-directory",
            Self::NotDirectory { .. } => "not-directory",
            Self::Refused(refusal) => refusal.code,
            Self::Denied { .. } => "denied",
            Self::TooLarge { .. } | Self::NoSpace { .. } => "no-space",
            Self::Changed { .. } => "changed",
            Self::Gone { .. } => "gone",
            Self::ReadOnlyClaim { .. } => "read-only-claim",
            Self::DirectUnsupported { .. } => "no-direct-io",
            Self::NotWritten { .. } => "not-written",
            Self::NoProc => "no-proc",
            Self::Interrupted => "interrupted",
            Self::Io { source, .. } if source.raw_os_error() == Some(libc::EIO) => "eio",
            Self::Io { .. } => "io",
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Refused(refusal) => return Some(refusal.hint.clone()),
            Self::TooLarge { free_bytes, .. } => return Some(size_hint(*free_bytes)),
            Self::Sim { source, .. } => return Some(source.hint()),
            Self::KernelName { name } => return Some(format!("name it by its path: /dev/{name}")),
            Self::Ambiguous { .. } => "name one of them by its path; rdsk info shows which is which",
            Self::NoNode { .. } => {
                "let udev create its node, or create it with mknod and the number in sysfs"
            }
            Self::NoLun { .. } => "leave the number out to measure the first one",
            Self::SimFile { .. } => {
                "name a file as in sim:./mydisk.toml, or a system that rdsk sim list shows"
            }
            Self::NotFound { .. } => {
                "name a directory, a file or a block device, by its path or an identity that rdsk info shows"
            }
            Self::NotMeasurable { .. } => {
                "name a directory, a file or a block device; lsblk lists the devices"
            }
            Self::Empty { .. } => {
                "name a file with content, or a directory to have a test file created there; a loop device needs a file"
            }
            Self::Suspended { .. } => {
                "wait for the program that suspended it, or resume it with dmsetup resume"
            }
            Self::IsDirectory { .. } | Self::NotDirectory { .. } => {
                "name a directory to have a test file created in it"
            }
            Self::Denied { source, .. } => match source.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => "run as root, or as a member of the group that owns it",
                Some(libc::EROFS) => "name a directory on a filesystem that is mounted read-write",
                Some(libc::EMFILE) => {
                    "this process may open no more files: ulimit -n shows the limit, ulimit -n 1024 raises it"
                }
                Some(libc::ENFILE) => {
                    "the system has no more open files to give: compare /proc/sys/fs/file-nr with fs.file-max"
                }
                _ => "check the name with ls -lL, and that its filesystem is mounted",
            },
            Self::NoSpace { source, .. } => match source.raw_os_error() {
                Some(libc::EDQUOT) => "your quota is used up: see quota, or choose a smaller --size",
                Some(libc::EFBIG) => {
                    "the filesystem or ulimit -f allows no file that large: choose a smaller --size"
                }
                _ => "free some space, choose a smaller --size, or name another directory",
            },
            Self::Changed { .. } => "examine it again with rdsk info",
            Self::DirectUnsupported { .. } => {
                "measure it through the page cache, or name a file on a disk filesystem"
            }
            Self::NoProc => "mount -t proc proc /proc",
            Self::NotWritten { .. } => "name a directory on a filesystem without deduplication or thin files",
            Self::Io { .. } | Self::Gone { .. } => "see dmesg for what the kernel says about the device",
            Self::Interrupted => {
                "nothing was measured yet, and the file is removed; a smaller --size takes less time"
            }
            Self::ReadOnlyClaim { .. } | Self::NotOpenable { .. } => return None,
        };
        Some(hint.to_owned())
    }

    /// The same in the shape that all rooms share, causes included.
    pub fn problem(&self) -> Problem {
        let kind = match self {
            Self::Sim { .. } | Self::SimFile { .. } | Self::NoLun { .. } => ProblemKind::Usage,
            Self::Io { .. } | Self::Gone { .. } | Self::NotWritten { .. } => ProblemKind::Io,
            Self::Interrupted => ProblemKind::Interrupted,
            _ => ProblemKind::Refused,
        };
        let message = match std::error::Error::source(self) {
            // A refusal is its own whole message.
            Some(cause) if !matches!(self, Self::Refused(_)) => format!("{self}: {cause}"),
            _ => self.to_string(),
        };
        Problem { kind, code: self.code().to_owned(), message, hint: self.hint() }
    }
}

/// Why not all of the free space may be used.
const KEPT: &str = "rdsk leaves a tenth of the filesystem free, or 16 GiB if that is less";

fn size_hint(free_bytes: u64) -> String {
    match free_bytes >> 20 {
        0 => format!("{KEPT}: free some space, or name another directory"),
        mib => format!("{KEPT}: ask for at most {mib}MiB"),
    }
}

fn busy(path: &str, reason: &str) -> TargetError {
    TargetError::Refused(Refusal {
        code: "in-use",
        message: format!("refusing to write to {path}: {reason}"),
        hint: "measure reads, or name an unused device".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_hints_and_kinds_are_complete() {
        let error =
            |number| TargetError::from_io(Path::new("/x\n"), "opened", io::Error::from_raw_os_error(number));
        for (number, code, kind) in [
            (libc::ENOENT, "not-found", ProblemKind::Refused),
            (libc::EACCES, "denied", ProblemKind::Refused),
            (libc::EROFS, "denied", ProblemKind::Refused),
            (libc::EBUSY, "in-use", ProblemKind::Refused),
            (libc::EDQUOT, "no-space", ProblemKind::Refused),
            (libc::EIO, "eio", ProblemKind::Io),
            (libc::ENODEV, "io", ProblemKind::Io),
        ] {
            let problem = error(number).problem();
            assert_eq!((problem.code.as_str(), problem.kind), (code, kind), "{number}");
            assert!(problem.message.contains("/x\\x0a") && !problem.message.contains('\n'), "{problem:?}");
            assert!(problem.hint.is_some());
        }
        for (number, limit) in [(libc::EMFILE, "ulimit -n"), (libc::ENFILE, "fs.file-max")] {
            assert!(error(number).problem().hint.is_some_and(|hint| hint.contains(limit)), "{number}");
        }
        assert_eq!(
            error(libc::EIO).problem().message,
            "/x\\x0a cannot be opened: Input/output error (os error 5)"
        );
    }

    #[test]
    fn a_device_that_was_taken_away_is_said_to_be_gone() {
        let source = io::Error::from_raw_os_error(libc::ENXIO);
        let problem = TargetError::Gone { path: "/dev/sdq".into(), source }.problem();
        assert_eq!((problem.code.as_str(), problem.kind), ("gone", ProblemKind::Io));
        assert!(
            problem.message.starts_with("/dev/sdq is gone: the kernel no longer lists it"),
            "{problem:?}"
        );
    }

    #[test]
    fn a_size_that_does_not_fit_says_which_would() {
        let error = TargetError::TooLarge { path: "/d".into(), wanted_bytes: 1 << 30, free_bytes: 5 << 20 };
        assert_eq!(error.to_string(), "a test file of 1 GiB does not fit in /d, where 5 MiB may be used");
        assert!(error.hint().unwrap().contains("at most 5MiB"));
    }
}
