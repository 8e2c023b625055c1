//! What can prevent an engine from issuing any I/O. A failed I/O is not an error here: it is data of the Run.

use rdsk_model::{Problem, ProblemKind};
use rdsk_targets::TargetError;
use std::io;

/// Why an engine is not available here, in words for a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unavailable(pub(crate) String);

/// Why a job could not be run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub enum EngineError {
    /// The target could not be opened.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The workload names a target for which the job has no claim.
    #[error("the workload names target {index}, but only {claims} were claimed")]
    NoClaim { index: u32, claims: usize },
    /// The workload contradicts itself; what is wrong, in words.
    #[error("this workload cannot be issued: {0}")]
    Workload(String),
    /// The span has no room for one block per stream.
    #[error(
        "{span_bytes} bytes from offset {offset_bytes} have no room for a block of {block_bytes} bytes for each of {streams} streams"
    )]
    Span { offset_bytes: u64, span_bytes: u64, block_bytes: u64, streams: u64 },
    /// No memory for the I/O buffers.
    #[error("cannot get {bytes} bytes of memory for I/O buffers")]
    Memory { bytes: u64, source: io::Error },
    /// A thread could not be started or pinned.
    #[error("cannot start the thread of stream {stream}")]
    Thread { stream: u32, source: io::Error },
    /// A ring stopped working, or could not be created for a reason other than being forbidden.
    #[error("io_uring failed in stream {stream}")]
    Ring { stream: u32, source: io::Error },
    /// An AIO context stopped working.
    #[error("Linux AIO failed in stream {stream}")]
    Aio { stream: u32, source: io::Error },
    /// A thread panicked: a bug in rdsk.
    #[error("the thread of stream {stream} panicked: {message}")]
    Panicked { stream: u32, message: String },
    /// The page cache could not be brought into the requested state.
    #[error("cannot prepare the page cache of {target}")]
    Cache { target: String, source: io::Error },
    /// The space of a log in the test file could not be allocated anew.
    #[error("cannot allocate space in {target}")]
    Allocate { target: String, source: io::Error },
    /// The action, `close` or `flush`, failed after writing.
    #[error("{action} of {target} failed: written data may be lost")]
    Flush { action: &'static str, target: String, source: io::Error },
    /// Another rank of the run could not start its streams, so this one did not either.
    #[error("not started: another rank could not")]
    NotStarted,
    /// The stop flag was raised before the first I/O to the target of this name.
    #[error("interrupted while preparing {0}")]
    Interrupted(String),
}

impl EngineError {
    /// The error as the Record and the command line show it.
    pub fn problem(&self) -> Problem {
        let (kind, code, hint) = match self {
            Self::Target(error) => return error.problem(),
            Self::NoClaim { .. } | Self::Panicked { .. } => {
                let hint = "this is a bug in rdsk; please report it with the command line";
                (ProblemKind::Io, "internal", Some(hint))
            }
            Self::Workload(_) => (ProblemKind::Usage, "bad-workload", None),
            Self::Span { .. } => {
                let hint = "choose a smaller --bs, fewer --streams or a larger --size";
                (ProblemKind::Usage, "span-too-small", Some(hint))
            }
            Self::Memory { .. } => {
                (ProblemKind::Refused, "no-memory", Some("choose a smaller --bs, --iodepth or --streams"))
            }
            Self::Thread { .. } => {
                (ProblemKind::Refused, "no-thread", Some("choose fewer --streams or a smaller --iodepth"))
            }
            Self::Ring { .. } => (ProblemKind::Io, "io-uring", Some("try --engine aio or threads")),
            Self::Aio { .. } => (ProblemKind::Io, "aio", Some("try --engine threads")),
            Self::Cache { .. } => (ProblemKind::Io, "page-cache", None),
            Self::Allocate { .. } => {
                (ProblemKind::Io, "no-space", Some("free some space on the filesystem: df -h"))
            }
            Self::Flush { .. } => (ProblemKind::Io, "flush", Some("check the kernel log with dmesg")),
            Self::NotStarted => (ProblemKind::Io, "rank-failed", None),
            Self::Interrupted(_) => (ProblemKind::Interrupted, "interrupted", None),
        };
        Problem { kind, code: code.into(), message: with_causes(self), hint: hint.map(str::to_owned) }
    }
}

/// An error and its causes in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// The system's text for an error number, without the number, and what the block layer means by it where the text is about something
/// else (block/blk-core.c, `blk_errors`).
pub(crate) fn errno_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    match errno {
        libc::EILSEQ => "checksums do not match what is stored (EILSEQ)".to_owned(),
        libc::ENODATA => format!("{text}: the medium cannot be read there (ENODATA)"),
        libc::EREMOTEIO => format!("{text}: the device refuses the request (EREMOTEIO)"),
        libc::EBADE => "another host has reserved the device (EBADE)".to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_disks_are_told_in_words_of_disks() {
        assert_eq!(errno_text(libc::EIO), "Input/output error");
        assert_eq!(errno_text(libc::EILSEQ), "checksums do not match what is stored (EILSEQ)");
        assert!(errno_text(libc::ENODATA).ends_with("the medium cannot be read there (ENODATA)"));
    }

    #[test]
    fn causes_are_part_of_the_message() {
        let error = EngineError::Flush {
            action: "flush",
            target: "disk.img".into(),
            source: io::Error::from_raw_os_error(5),
        };
        let problem = error.problem();
        assert_eq!(problem.kind, ProblemKind::Io);
        assert!(
            problem
                .message
                .starts_with("flush of disk.img failed: written data may be lost: Input/output error"),
            "{}",
            problem.message
        );
    }

    #[test]
    fn a_span_without_room_is_a_usage_problem_with_a_way_out() {
        let error = EngineError::Span { offset_bytes: 0, span_bytes: 512, block_bytes: 4096, streams: 1 };
        let problem = error.problem();
        assert_eq!(problem.kind, ProblemKind::Usage);
        assert!(problem.hint.is_some_and(|hint| hint.contains("--bs")));
    }
}
