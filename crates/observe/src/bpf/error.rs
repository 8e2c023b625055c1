//! Why there is no evidence from BPF, in words, and what helps. What the kernel answers is a number; whether a capability, a filter of
//! system calls, lockdown or the age of the kernel is behind it is asked of `/proc` and `/sys`.

use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::{BtfError, EbpfError};
use rdsk_sys::files::{field, is_first_pid_namespace, version_of};
use rustix::io::Errno;
use std::error::Error as _;
use std::io;
use std::path::PathBuf;

/// Why there is no evidence from BPF.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum BpfError {
    /// It is not wanted.
    #[error("BPF was not asked for")]
    NotAskedFor,
    /// There is nothing that the programs could count; why, in words.
    #[error("{0}")]
    NoDevice(&'static str),
    /// The counts of so many devices are read only where that is asked for.
    #[error("reading BPF's counts of {devices} devices takes long")]
    TakesLong { devices: usize },
    /// The kernel says nothing of its own types.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux)")]
    NoBtf(#[source] BtfError),
    /// It is forbidden.
    #[error("{denied}")]
    Forbidden { denied: Denied, source: io::Error },
    /// The programs use what came with this version of Linux.
    #[error("Linux {release} is too old for the BPF programs, which need 5.15")]
    OldKernel { release: String },
    /// The kernel's programs see the process by another number than it has itself.
    #[error("in a PID namespace, as in containers, BPF programs cannot see whose I/O it is")]
    PidNamespace,
    /// The object does not fit this kernel.
    #[error("the BPF programs cannot be loaded")]
    Load(#[from] EbpfError),
    /// One program does not fit it.
    #[error("the BPF program for {event} is refused")]
    Program { event: &'static str, source: ProgramError },
    /// A map cannot be read or written.
    #[error("the BPF map {map} cannot be used")]
    Map { map: &'static str, source: MapError },
    /// A map cannot be read at once.
    #[error("the BPF map {map} cannot be read")]
    Entries { map: &'static str, source: io::Error },
    /// A map cannot be mapped.
    #[error("the BPF map {map} cannot be mapped")]
    Mapping { map: &'static str, source: io::Error },
    /// The processors cannot be counted.
    #[error("the processors are not known")]
    Processors(#[source] io::Error),
    /// It holds more devices, or larger ones, than the maps can.
    #[error("too many devices or queues for BPF")]
    TooMany,
}

/// What forbids BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The process lacks a capability.
    #[error("no permission for BPF (CAP_BPF and CAP_PERFMON are missing)")]
    Capabilities,
    /// A filter of system calls.
    #[error("bpf(2) is forbidden by a seccomp filter, as in containers")]
    Seccomp,
    /// Lockdown in confidentiality mode: programs may not read the kernel's memory.
    #[error("kernel lockdown (confidentiality) forbids BPF programs that read kernel memory")]
    Lockdown,
    /// The process has what it takes, and is refused nevertheless.
    #[error(
        "the kernel refuses BPF although CAP_BPF and CAP_PERFMON are there (a user namespace or a security module?)"
    )]
    Other,
    /// No kernel since 3.18 lacks the call, but for those built without it.
    #[error("this kernel has no bpf(2)")]
    Absent,
}

impl BpfError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Forbidden { denied: Denied::Capabilities, .. } => {
                Some("run as root, or after: setcap cap_bpf,cap_perfmon+ep rdsk")
            }
            Self::Forbidden { denied: Denied::Seccomp, .. } => {
                Some("run outside of the container, or allow bpf(2) in its seccomp profile")
            }
            Self::PidNamespace => {
                Some("run outside of the container, or in the host's PID namespace (docker run --pid=host)")
            }
            Self::TakesLong { .. } => Some("--evidence bpf does it nevertheless"),
            _ => None,
        }
    }

    /// The error with its causes, and behind them what can be done about it.
    pub fn words_and_hint(&self) -> String {
        let hint = self.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{}{hint}", self.words())
    }

    /// The error with its causes, in one line; what the kernel's verifier says at length is left out.
    pub fn words(&self) -> String {
        let mut words = self.to_string();
        // What the kernel's number means has been said.
        let mut cause = if matches!(self, Self::Forbidden { .. }) { None } else { self.source() };
        while let Some(error) = cause {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let more = first.split("Verifier output").next().unwrap_or_default().trim();
            if !words.contains(more) {
                words = format!("{words}: {more}");
            }
            cause = error.source();
        }
        words
    }

    /// The same, with what stands behind the kernel's answer.
    pub(super) fn explained(self, process: &Surroundings) -> Self {
        let code = self.errno();
        if let Some(denied) = code.and_then(|code| process.denied(code)) {
            return Self::Forbidden { denied, source: code.unwrap_or(Errno::PERM).into() };
        }
        match (&self, &process.old_release) {
            (Self::Load(_) | Self::Program { .. } | Self::Mapping { .. }, Some(release)) => {
                Self::OldKernel { release: release.clone() }
            }
            _ => self,
        }
    }

    /// The kernel's error behind it.
    fn errno(&self) -> Option<Errno> {
        let mut error: &dyn std::error::Error = self;
        loop {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return io.raw_os_error().map(Errno::from_raw_os_error);
            }
            error = error.source()?;
        }
    }
}

/// What decides about BPF beside the kernel's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, are effective.
    has_capabilities: bool,
    /// System calls of this thread are filtered.
    is_filtered: bool,
    /// Lockdown is in confidentiality mode.
    is_confidential: bool,
    /// The release of this kernel, if it is older than the programs.
    old_release: Option<String>,
}

impl Surroundings {
    /// Those of this thread.
    pub(super) fn here() -> Self {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::from(
            &text("/proc/thread-self/status"),
            &text("/sys/kernel/security/lockdown"),
            &text("/proc/sys/kernel/osrelease"),
        )
    }

    fn from(status: &str, lockdown: &str, release: &str) -> Self {
        const SYS_ADMIN: u64 = 1 << 21;
        const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
        let effective =
            field(status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0);
        Self {
            has_capabilities: effective & SYS_ADMIN != 0 || effective & PERFMON_AND_BPF == PERFMON_AND_BPF,
            is_filtered: field(status, "Seccomp") == Some("2"),
            is_confidential: lockdown.contains("[confidentiality]"),
            old_release: is_old(release.trim()).then(|| release.trim().to_owned()),
        }
    }

    /// What this error of bpf(2) means; `None` if it does not mean that something is forbidden.
    fn denied(&self, code: Errno) -> Option<Denied> {
        match code {
            Errno::PERM | Errno::ACCESS if !self.has_capabilities => Some(Denied::Capabilities),
            Errno::PERM | Errno::ACCESS | Errno::NOSYS if self.is_filtered => Some(Denied::Seccomp),
            Errno::NOSYS => Some(Denied::Absent),
            // The verifier knows no helper that reads the kernel's memory then.
            Errno::PERM | Errno::ACCESS | Errno::INVAL if self.is_confidential => Some(Denied::Lockdown),
            Errno::PERM | Errno::ACCESS => Some(Denied::Other),
            _ => None,
        }
    }
}

/// Whether the link `/proc/self/ns/pid` says that this process is in the namespace whose numbers the programs see. That one's inode
/// is fixed (`PROC_PID_INIT_INO`), and a kernel without such namespaces (CONFIG_PID_NS) has no link.
pub(super) fn in_first_pid_namespace(link: &io::Result<PathBuf>) -> bool {
    match link {
        Ok(link) => is_first_pid_namespace(link),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether a release such as `5.10.0-32-amd64` lacks what the programs use. What came last is `bpf_task_pt_regs` and
/// `request_queue::disk`, both with 5.15; before them `bio::bi_bdev` and atomic operations that return the old value (5.12), the
/// arguments of the tracepoints and `bpf_get_current_task_btf` (5.11), CAP_BPF (5.8), `BPF_MAP_LOOKUP_BATCH` (5.6), tp_btf and
/// arrays that can be mapped (5.5). Kernels of distributions have newer parts than their release says, so this only explains a
/// refusal and causes none.
fn is_old(release: &str) -> bool {
    version_of(release).is_some_and(|version| version < (5, 15))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
    const TWO: &str = "CapEff:\t000000c000000000\nSeccomp:\t0\n";
    const NONE: &str = "CapEff:\t0000000000000000\nSeccomp:\t2\n";
    const FILTERED: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t2\n";
    const CONFIDENTIAL: &str = "none integrity [confidentiality]\n";

    fn denied(status: &str, lockdown: &str, code: Errno) -> Option<Denied> {
        Surroundings::from(status, lockdown, "6.1.0\n").denied(code)
    }

    #[test]
    fn the_same_number_has_many_reasons() {
        assert_eq!(denied(NONE, "", Errno::PERM), Some(Denied::Capabilities));
        assert_eq!(denied("", "", Errno::ACCESS), Some(Denied::Capabilities));
        assert_eq!(denied(FILTERED, "", Errno::PERM), Some(Denied::Seccomp));
        assert_eq!(denied(FILTERED, "", Errno::NOSYS), Some(Denied::Seccomp));
        assert_eq!(denied(ALL, "", Errno::NOSYS), Some(Denied::Absent));
        assert_eq!(denied(TWO, CONFIDENTIAL, Errno::INVAL), Some(Denied::Lockdown));
        assert_eq!(denied(TWO, "[none] integrity confidentiality\n", Errno::INVAL), None);
        assert_eq!(denied(TWO, "", Errno::PERM), Some(Denied::Other));
        assert_eq!(denied(ALL, "", Errno::NOMEM), None);
    }

    #[test]
    fn the_hint_names_the_capabilities_where_they_are_missing() {
        let error = BpfError::Entries { map: "BIOS", source: Errno::PERM.into() };
        let error = error.explained(&Surroundings::from(NONE, "", "6.1.0"));
        assert_eq!(error.words(), "no permission for BPF (CAP_BPF and CAP_PERFMON are missing)");
        assert!(error.hint().is_some_and(|hint| hint.contains("setcap cap_bpf,cap_perfmon+ep rdsk")));
    }

    #[test]
    fn an_old_kernel_is_named() {
        assert!(is_old("5.10.0-32-amd64") && is_old("4.18.0-553.el8_10.x86_64"));
        assert!(
            is_old("5.14.21")
                && !is_old("5.15.0")
                && !is_old("6.1.0-41-amd64")
                && !is_old("10.0")
                && !is_old("next")
        );
        let error = BpfError::Mapping { map: "LIVE", source: Errno::INVAL.into() };
        let error = error.explained(&Surroundings::from(ALL, "", "5.10.0-32-amd64\n"));
        assert_eq!(error.words(), "Linux 5.10.0-32-amd64 is too old for the BPF programs, which need 5.15");
        let error = BpfError::Mapping { map: "LIVE", source: Errno::INVAL.into() };
        let words = error.explained(&Surroundings::from(ALL, "", "6.1.0\n")).words();
        assert!(words.starts_with("the BPF map LIVE cannot be mapped: Invalid argument"), "{words}");
    }

    #[test]
    fn the_first_pid_namespace_has_a_fixed_number() {
        assert!(in_first_pid_namespace(&Ok("pid:[4026531836]".into())));
        assert!(!in_first_pid_namespace(&Ok("pid:[4026532201]".into())));
        assert!(!in_first_pid_namespace(&Ok(PathBuf::new())));
    }

    #[test]
    fn a_kernel_without_pid_namespaces_has_only_one() {
        assert!(in_first_pid_namespace(&Err(io::ErrorKind::NotFound.into())));
        assert!(!in_first_pid_namespace(&Err(io::ErrorKind::PermissionDenied.into())));
    }
}
