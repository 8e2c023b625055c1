//! Declares what a test needs, and skips it visibly if that is missing: the line goes to standard error and to a file for the
//! summary. If the need was promised to be available, the test fails instead.

use anyhow::anyhow;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use crate::tool::{append, find_tool};

/// Names a file to which every skip appends its line.
pub const SKIPS_VARIABLE: &str = "RDSK_SKIPS";
/// Lists, separated by commas, the needs whose absence is a failure instead of a skip: `root,loop,tool:fio`.
pub const MUST_HAVE_VARIABLE: &str = "RDSK_MUST_HAVE";

/// Something that not every machine has. Each comment gives the name used in `RDSK_MUST_HAVE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// `root`: the effective user is root.
    Root,
    /// `loop`: loop devices can be created.
    Loop,
    /// `fuse`: `/dev/fuse` can be opened.
    Fuse,
    /// `io_uring`: a ring can be created.
    IoUring,
    /// `cachestat`: the cachestat(2) system call works.
    Cachestat,
    /// `dontcache`: files in the temporary directory take `RWF_DONTCACHE`.
    DontCache,
    /// `blkio_throttle`: cgroup v1 blkio groups with throttles can be created.
    BlkioThrottle,
    /// `cpu_quota`: control groups with a CPU quota can be created, of version 1 or 2.
    CpuQuota,
    /// `ext4`: the kernel mounts it, and `mkfs.ext4` is installed.
    Ext4,
    /// `xfs`: the kernel mounts it, and `mkfs.xfs` is installed.
    Xfs,
    /// `overlay`: the kernel mounts overlays, and lets this process mount.
    Overlay,
    /// `erofs`: the kernel mounts EROFS from files without a loop device (Linux 6.12), and lets this process mount.
    Erofs,
    /// `tool:NAME`: a program of that name is installed.
    Tool(&'static str),
    /// `device:PATH`: the kernel has this device node.
    Device(&'static str),
    /// `zram`: there is a zram device, and `zramctl`.
    Zram,
    /// `bpf`: programs can be attached to the tracepoints of a kernel with BTF.
    Bpf,
    /// `gnu_dd`: GNU dd 9.1; messages of other versions differ in single words.
    GnuDd,
    /// `guest`: QEMU, a packaged kernel with its modules, and busybox, so that a guest can be booted.
    Guest,
    /// `ci`: the variable `CI` says `true` or `1`. For what computes longer than a developer waits, and is checked before anything lands.
    Ci,
    /// `guest:MAJOR.MINOR`: the same with this version of the kernel, or a later one.
    GuestSince(u32, u32),
}

impl Need {
    /// The name used in `RDSK_MUST_HAVE` and in messages.
    pub fn name(self) -> String {
        match self {
            Self::Root => "root".into(),
            Self::Loop => "loop".into(),
            Self::Fuse => "fuse".into(),
            Self::IoUring => "io_uring".into(),
            Self::Cachestat => "cachestat".into(),
            Self::DontCache => "dontcache".into(),
            Self::BlkioThrottle => "blkio_throttle".into(),
            Self::CpuQuota => "cpu_quota".into(),
            Self::Ext4 => "ext4".into(),
            Self::Xfs => "xfs".into(),
            Self::Overlay => "overlay".into(),
            Self::Erofs => "erofs".into(),
            Self::Tool(tool) => format!("tool:{tool}"),
            Self::Device(path) => format!("device:{path}"),
            Self::Zram => "zram".into(),
            Self::Bpf => "bpf".into(),
            Self::GnuDd => "gnu_dd".into(),
            Self::Guest => "guest".into(),
            Self::Ci => "ci".into(),
            Self::GuestSince(major, minor) => format!("guest:{major}.{minor}"),
        }
    }

    /// Tests whether it is available.
    ///
    /// # Errors
    /// The reason why not, in a few words.
    pub fn probe(self) -> anyhow::Result<()> {
        match self {
            Self::Root if rustix::process::geteuid().is_root() => Ok(()),
            Self::Root => Err(anyhow!("not running as root")),
            Self::Loop => opens("/dev/loop-control").and_then(|()| {
                ["losetup", "sfdisk"].into_iter().try_for_each(|tool| Self::Tool(tool).probe())
            }),
            Self::Fuse => opens("/dev/fuse"),
            Self::IoUring => {
                io_uring::IoUring::new(2).map(drop).map_err(|error| anyhow!("io_uring_setup: {error}"))
            }
            Self::Cachestat => probe_cachestat(),
            Self::DontCache => probe_dontcache(),
            Self::BlkioThrottle => Ok(crate::throttle::probe()?),
            Self::CpuQuota => Ok(crate::quota::probe()?),
            Self::Ext4 => probe_filesystem("ext4"),
            Self::Xfs => probe_filesystem("xfs"),
            Self::Overlay => probe_overlay(),
            Self::Erofs => crate::holder::probe_images(),
            Self::Tool(tool) => find_tool(tool).map(drop).ok_or_else(|| anyhow!("{tool} is not installed")),
            Self::Device(path) if Path::new(path).exists() => Ok(()),
            Self::Device(path) => Err(anyhow!("there is no {path}")),
            Self::Zram if Path::new("/sys/block/zram0").exists() => Self::Tool("zramctl").probe(),
            Self::Zram => Err(anyhow!("there is no zram0")),
            Self::Bpf => probe_bpf(),
            Self::GnuDd => probe_gnu_dd(),
            Self::Guest => crate::guest::probe((0, 0)),
            Self::Ci => match std::env::var("CI").as_deref() {
                Ok("true" | "1") => Ok(()),
                _ => Err(anyhow!("it computes for long, and CI is not set")),
            },
            Self::GuestSince(major, minor) => crate::guest::probe((major.into(), minor.into())),
        }
    }
}

/// Whether everything the test needs is available. If not, it reports that; the test then returns at once:
///
/// ```
/// use rdsk_testkit::{Need, requires};
/// if !requires(&[Need::Root, Need::Loop]) {
///     return;
/// }
/// ```
///
/// # Panics
/// When something is missing that `RDSK_MUST_HAVE` promises, and when that variable holds an unknown name.
pub fn requires(needs: &[Need]) -> bool {
    let must_have = std::env::var(MUST_HAVE_VARIABLE).unwrap_or_default();
    let skips = std::env::var_os(SKIPS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let missing: Vec<(Need, String)> = needs
        .iter()
        .filter_map(|need| need.probe().err().map(|reason| (*need, format!("{reason:#}"))))
        .collect();
    let test = std::thread::current().name().unwrap_or("a thread without a name").to_owned();
    match judge(&test, &missing, &parse_must_have(&must_have)) {
        Verdict::Run => true,
        Verdict::Fail(line) => panic!("{line}"),
        Verdict::Skip(line) => {
            eprintln!("{line}");
            if let Some(path) = skips {
                append(&path, &line);
            }
            false
        }
    }
}

/// CAP_PERFMON and CAP_BPF among the effective capabilities, and the kernel's own types.
fn probe_bpf() -> anyhow::Result<()> {
    const NEEDED: u64 = 1 << 38 | 1 << 39;
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(anyhow!("this kernel has no BTF"));
    }
    has_capabilities(NEEDED)?.then_some(()).ok_or_else(|| anyhow!("no CAP_BPF and CAP_PERFMON"))
}

/// Whether all of these are among the effective capabilities.
fn has_capabilities(needed: u64) -> anyhow::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    Ok(mask.is_some_and(|mask| mask & needed == needed))
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    Skip(String),
    Fail(String),
}

fn judge(test: &str, missing: &[(Need, String)], must_have: &BTreeSet<String>) -> Verdict {
    if missing.is_empty() {
        return Verdict::Run;
    }
    let reasons: Vec<String> =
        missing.iter().map(|(need, reason)| format!("needs {}: {reason}", need.name())).collect();
    let reasons = reasons.join("; ");
    if missing.iter().any(|(need, _)| must_have.contains(&need.name())) {
        return Verdict::Fail(format!(
            "{test} must not be skipped here ({MUST_HAVE_VARIABLE}), but {reasons}"
        ));
    }
    Verdict::Skip(format!("SKIPPED {test}: {reasons}"))
}

/// A misspelt name would silently skip a promised test, so it is a failure.
fn parse_must_have(list: &str) -> BTreeSet<String> {
    const NAMES: &str = "root loop fuse io_uring cachestat dontcache blkio_throttle cpu_quota ext4 xfs overlay erofs zram bpf \
                         gnu_dd guest";
    let names: BTreeSet<String> =
        list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    for name in &names {
        let is_kind = |kind: &str| name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty());
        let is_name = NAMES.split(' ').any(|need| need == name)
            || ["guest:", "tool:", "device:"].into_iter().any(is_kind);
        assert!(
            is_name,
            "{MUST_HAVE_VARIABLE} names `{name}`, which is none of {NAMES} guest:VERSION tool:NAME device:PATH"
        );
    }
    names
}

fn opens(path: &str) -> anyhow::Result<()> {
    OpenOptions::new().read(true).write(true).open(path).map(drop).map_err(|error| anyhow!("{path}: {error}"))
}

fn probe_gnu_dd() -> anyhow::Result<()> {
    let output = std::process::Command::new("dd").arg("--version").output();
    let output = output.map_err(|error| anyhow!("dd cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or("of an unknown version");
    if version == "dd (coreutils) 9.1" { Ok(()) } else { Err(anyhow!("dd is {version}")) }
}

fn probe_cachestat() -> anyhow::Result<()> {
    let file = tempfile::tempfile()?;
    let stat = rdsk_sys::cache::cachestat(&file, 0, 0)?;
    stat.dirty.map(drop).ok_or_else(|| anyhow!("the kernel lacks or forbids it"))
}

fn probe_dontcache() -> anyhow::Result<()> {
    let file = tempfile::tempfile()?;
    match rdsk_sys::io::supports_dontcache(&file, 0) {
        rdsk_sys::io::FlagSupport::Yes => Ok(()),
        other => Err(anyhow!("the kernel or the temporary directory lacks it ({other:?})")),
    }
}

fn probe_filesystem(name: &'static str) -> anyhow::Result<()> {
    let tool = format!("mkfs.{name}");
    find_tool(&tool).ok_or_else(|| anyhow!("{tool} is not installed"))?;
    probe_kernel(name, name)
}

/// CAP_SYS_ADMIN among the effective capabilities, and the filesystem, whose module lies in a directory of another name.
fn probe_overlay() -> anyhow::Result<()> {
    if !has_capabilities(1 << 21)? {
        return Err(anyhow!("no CAP_SYS_ADMIN"));
    }
    probe_kernel("overlay", "overlayfs")
}

fn probe_kernel(name: &str, directory: &str) -> anyhow::Result<()> {
    let filesystems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let built_in = filesystems.lines().any(|line| line.split_whitespace().last() == Some(name));
    // A filesystem in a module that is not loaded yet is listed among the modules of the running kernel.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let module = Path::new("/lib/modules").join(release.trim()).join("kernel/fs").join(directory);
    if built_in || module.exists() { Ok(()) } else { Err(anyhow!("the kernel has no {name}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Output};

    const MISSING: Need = Need::Tool("no-such-tool-anywhere");

    #[test]
    fn nothing_missing_runs() {
        assert!(requires(&[]));
        assert!(requires(&[Need::Tool("sh")]));
    }

    #[test]
    fn judgement_names_test_need_and_reason() {
        let missing = [(Need::Loop, "no".to_owned()), (Need::Tool("fio"), "not there".to_owned())];
        let line = "SKIPPED t: needs loop: no; needs tool:fio: not there";
        assert_eq!(judge("t", &missing, &parse_must_have("")), Verdict::Skip(line.into()));
        assert_eq!(judge("t", &missing, &parse_must_have("root,tool:dd")), Verdict::Skip(line.into()));
        for promised in ["loop", "tool:fio", " root , loop ,"] {
            assert!(
                matches!(judge("t", &missing, &parse_must_have(promised)), Verdict::Fail(_)),
                "{promised}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "names `lop`")]
    fn a_misspelt_promise_fails() {
        parse_must_have("root,lop");
    }

    #[test]
    fn every_need_has_a_parsable_name() {
        for need in [
            Need::Root,
            Need::Loop,
            Need::Fuse,
            Need::IoUring,
            Need::Cachestat,
            Need::BlkioThrottle,
            Need::CpuQuota,
            Need::Ext4,
            Need::Xfs,
            Need::Overlay,
            Need::Erofs,
            Need::Tool("fio"),
            Need::Device("/dev/null"),
            Need::Zram,
            Need::Bpf,
            Need::GnuDd,
            Need::Guest,
            Need::GuestSince(6, 12),
        ] {
            assert_eq!(parse_must_have(&need.name()), BTreeSet::from([need.name()]));
            if let Err(reason) = need.probe() {
                eprintln!("this machine lacks {}: {reason}", need.name());
                assert!(!reason.to_string().is_empty());
            }
        }
    }

    /// Run by the tests below in a separate process, whose environment they may set.
    #[test]
    #[ignore = "the child of other tests"]
    fn child_that_needs_the_impossible() {
        assert!(!requires(&[Need::Tool("sh"), MISSING]));
    }

    fn run_child(variable: &str, value: &std::ffi::OsStr) -> Output {
        Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "requires::tests::child_that_needs_the_impossible", "--nocapture"])
            .env_remove(SKIPS_VARIABLE)
            .env_remove(MUST_HAVE_VARIABLE)
            .env(variable, value)
            .output()
            .unwrap()
    }

    #[test]
    fn a_skip_is_printed_and_noted() {
        let notes = tempfile::NamedTempFile::new().unwrap();
        let output = run_child(SKIPS_VARIABLE, notes.path().as_os_str());
        assert!(output.status.success());
        let line = "needs tool:no-such-tool-anywhere: no-such-tool-anywhere is not installed";
        let noted = std::fs::read_to_string(notes.path()).unwrap();
        assert!(noted.starts_with("SKIPPED ") && noted.ends_with(&format!("{line}\n")), "{noted}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(noted.trim()));
    }

    #[test]
    fn a_broken_promise_fails_the_test() {
        let output = run_child(MUST_HAVE_VARIABLE, "root,tool:no-such-tool-anywhere".as_ref());
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("must not be skipped here"));
        assert!(run_child(MUST_HAVE_VARIABLE, "tool:sh".as_ref()).status.success());
    }
}
