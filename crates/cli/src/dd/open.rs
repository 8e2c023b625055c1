//! Opens both ends of a copy. Files are opened as dd does it; a block device is written only if it may be destroyed, and only
//! through its claim. A disk is not written through character devices.

use crate::history;
use crate::same_place::is_database;
use rdsk_dd::{DiskNode, NotOpened, OpenFile, Opening, Operands, Side};
use rdsk_model::{IoPath, Problem, ProblemKind, Sync};
use rdsk_sys::start::{Standard, was_closed};
use rdsk_targets::{Access, DeviceNumber, OpenMode, Permission, Roots, TargetError};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Both ends, open.
pub(super) struct Opened {
    pub(super) input: Side,
    pub(super) output: Side,
    /// How long that took, without the checks of a block device.
    pub(super) took: Duration,
}

/// Why there is nothing to copy between.
pub(super) enum Closed {
    /// dd's message, or the signal that ended the wait for a FIFO.
    NotOpened(NotOpened),
    /// What rdsk does not write, and dd would.
    Refused(Problem),
}

impl From<NotOpened> for Closed {
    fn from(why: NotOpened) -> Self {
        Self::NotOpened(why)
    }
}

impl From<String> for Closed {
    fn from(message: String) -> Self {
        Self::NotOpened(message.into())
    }
}

/// # Errors
/// dd's message, or why a device or the history is refused; the signal that ended the wait for a FIFO.
pub(super) fn open(mut opening: Opening<'_>, permission: &Permission) -> Result<Opened, Closed> {
    let operands = opening.operands;
    let stdout = rustix::stdio::stdout();
    if let Some(name) = operands.output.as_deref().filter(|name| is_history(name)) {
        let quoted = rdsk_dd::quoted_file(name.as_encoded_bytes(), operands.charset);
        let hint = "name another file, or another history after --history";
        return Err(refused("target-is-history", &quoted, "it is the history of rdsk", hint));
    }
    refuse_closed(operands.input.as_deref(), operands)?;
    let began = Instant::now();
    let input = opening.input(rustix::stdio::stdin())?;
    let mut took = began.elapsed();
    if operands.output.is_none() && rdsk_dd::is_block_device(stdout) {
        let why = "standard output is a block device, which rdsk writes only as of= with --destroy";
        return Err(Closed::Refused(Problem::plain(ProblemKind::Refused, "stream-refused", why)));
    }
    refuse_closed(operands.output.as_deref(), operands)?;
    let stat = match operands.output.as_deref() {
        Some(name) => rustix::fs::statat(CWD, name, AtFlags::empty()),
        None => rustix::fs::fstat(stdout),
    };
    let stat = stat.ok();
    let refusal = stat.as_ref().and_then(|stat| refusal_of(stat, &Roots::default()));
    let refusal =
        refusal.or_else(|| permission.destroy.as_ref().and_then(|_| no_device_to_destroy(stat.as_ref())));
    if let Some((what, hint)) = refusal {
        let quoted = operands.output.as_deref().map_or_else(
            || "standard output".to_owned(),
            |name| rdsk_dd::quoted_file(name.as_encoded_bytes(), operands.charset),
        );
        return Err(refused("no-block-device", &quoted, &what, &hint));
    }
    let is_block = stat.is_some_and(|stat| DiskNode::of(&stat) == Some(DiskNode::Block));
    let output = match operands.output.as_deref().filter(|_| is_block) {
        Some(name) => Some(open_device(name, operands, permission)?),
        None => {
            let began = Instant::now();
            let output = opening.output(stdout)?;
            took += began.elapsed();
            output
        }
    };
    let own = |fd: Option<OwnedFd>, standard, inherited| {
        fd.map_or(OpenFile::Inherited(standard, inherited), OpenFile::Own)
    };
    let input = own(input, Standard::Input, rustix::stdio::stdin());
    let output = own(output, Standard::Output, stdout);
    let name = |name: &Option<OsString>, standard: &str| name.clone().unwrap_or_else(|| standard.into());
    Ok(Opened {
        input: Side::new(input, name(&operands.input, "standard input"), operands.charset),
        output: Side::new(output, name(&operands.output, "standard output"), operands.charset),
        took,
    })
}

fn refused(code: &str, quoted: &str, what: &str, hint: &str) -> Closed {
    let message = format!("refusing to write to {quoted}: {what}");
    Closed::Refused(Problem::new(ProblemKind::Refused, code, message, hint))
}

/// A name of a standard descriptor that was closed, such as /dev/stdin. What keeps its place is no file of the user's; dd finds none
/// there, and ends before it truncates the other end.
fn refuse_closed(name: Option<&OsStr>, operands: &Operands) -> Result<(), NotOpened> {
    let Some(name) = name.filter(|name| names_closed(name)) else { return Ok(()) };
    let quoted = rdsk_dd::quoted_file(name.as_encoded_bytes(), operands.charset);
    Err(format!("failed to open {quoted}: {}", rdsk_dd::errno_words(Errno::NOENT)).into())
}

fn names_closed(name: &OsStr) -> bool {
    let streams = [
        (Standard::Input, rustix::stdio::stdin()),
        (Standard::Output, rustix::stdio::stdout()),
        (Standard::Error, rustix::stdio::stderr()),
    ];
    let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let Ok(named) = rustix::fs::statat(CWD, name, AtFlags::empty()).map(identity) else { return false };
    // The root directory keeps the place, and can be named by itself.
    let is_itself = Path::new(name) == Path::new("/");
    let keeps = |stream| rustix::fs::fstat(stream).map(identity) == Ok(named);
    !is_itself && streams.into_iter().any(|(standard, stream)| was_closed(standard) && keeps(stream))
}

/// Writing it would destroy the runs that were kept, and with them this one.
fn is_history(name: &OsStr) -> bool {
    history::file().is_some_and(|history| is_database(Path::new(name), &history))
}

/// Why a disk is not written through a node like this, and what helps; `None` for a block device, which is checked otherwise.
fn refusal_of(stat: &Stat, roots: &Roots) -> Option<(String, String)> {
    let (what, hint) = match DiskNode::of(stat) {
        Some(DiskNode::Block) => return None,
        Some(DiskNode::Raw) => (
            "it is a raw device, through which a disk would be written without its checks",
            "name its block device, which raw -qa shows the number of, with oflag=direct and --destroy",
        ),
        Some(DiskNode::Flash) => (
            "it is the character device of flash memory, which rdsk does not write",
            "name its block device, such as /dev/mtdblock0, with --destroy, or write it with flashcp",
        ),
        Some(DiskNode::Generic) | None => return refusal_of_commands(stat, roots),
    };
    Some((what.to_owned(), hint.to_owned()))
}

/// Why a place that `--destroy` is given for is not written; `None` for a block device. Where the node of a disk is missing, dd makes a
/// regular file of that name, in the memory that /dev lies in, and that file takes what is written there later, too.
fn no_device_to_destroy(stat: Option<&Stat>) -> Option<(String, String)> {
    let (what, hint) = match stat.map(DiskNode::of) {
        Some(Some(DiskNode::Block)) => return None,
        Some(_) => (
            "it is no block device, and --destroy is for one",
            "name the block device after of=, or leave out --destroy",
        ),
        None => (
            "--destroy is for a block device, and none of this name can be seen",
            "look at rdsk info and name the block device after of=, or leave out --destroy to write a file",
        ),
    };
    Some((what.to_owned(), hint.to_owned()))
}

/// Drivers without a number of their own get one from here on (Documentation/admin-guide/devices.txt).
const FIRST_DYNAMIC_MAJOR: u32 = 234;

/// What is written to such a device are commands, and any command may be among them.
fn refusal_of_commands(stat: &Stat, roots: &Roots) -> Option<(String, String)> {
    let is_generic = DiskNode::of(stat) == Some(DiskNode::Generic);
    let is_dynamic = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && rustix::fs::major(stat.st_rdev) >= FIRST_DYNAMIC_MAJOR;
    // For the null device and terminals no disk is looked at.
    if !is_generic && !is_dynamic {
        return None;
    }
    if let Some(disk) = rdsk_targets::disk_commanded_by(DeviceNumber::from_raw(stat.st_rdev), roots) {
        let disk = rdsk_units::printable(&disk);
        let what = format!("it takes commands for {disk}, and what is written to it is no data");
        return Some((what, format!("name the block device, /dev/{disk}, with --destroy")));
    }
    is_generic.then(|| {
        let what = "it takes commands for a SCSI device, and what is written to it is no data";
        let hint = "if it is a disk, name its block device, which lsscsi -g shows, with --destroy";
        (what.to_owned(), hint.to_owned())
    })
}

fn kind_of(name: &OsStr, flags: AtFlags) -> Option<FileType> {
    let stat = rustix::fs::statat(CWD, name, flags).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// A block device is written only if it may be destroyed, and through its claim.
fn open_device(name: &OsStr, operands: &Operands, permission: &Permission) -> Result<OwnedFd, Closed> {
    let quoted = rdsk_dd::quoted_file(name.as_encoded_bytes(), operands.charset);
    let flags = operands.output_flags.open;
    let refused = |why: &str| Err(Closed::from(format!("failed to open {quoted}: {why}")));
    let told = |error: TargetError| Closed::Refused(error.problem());
    if operands.convert.is_exclusive {
        return refused("File exists");
    }
    if flags.contains(OFlags::DIRECTORY) {
        return refused("Not a directory");
    }
    if flags.contains(OFlags::NOFOLLOW) && kind_of(name, AtFlags::SYMLINK_NOFOLLOW) == Some(FileType::Symlink)
    {
        return refused("Too many levels of symbolic links");
    }
    let roots = Roots::default();
    let text = name.to_str().ok_or_else(|| format!("{quoted} is no name that rdsk can check"))?;
    let mut examined = rdsk_targets::examine(text, &roots).map_err(told)?;
    // Without a count it may be all of the device.
    examined.write_bytes = operands.count.and_then(|count| count.total(operands.input_block_bytes));
    rdsk_targets::authorize(&examined, Access::Write, permission)
        .and_then(|()| rdsk_targets::check_growth(&[&examined]))
        .map_err(|refusal| Closed::Refused(refusal.into()))?;
    let claim = rdsk_targets::claim(examined, Access::Write, permission, &roots).map_err(told)?;
    let path = if flags.contains(OFlags::DIRECT) { IoPath::Direct } else { IoPath::Buffered };
    let is_durable = flags.intersects(OFlags::DSYNC | OFlags::SYNC);
    let sync = if is_durable { Sync::Dsync } else { Sync::None };
    let fd = claim.open(OpenMode { access: Access::Write, path, sync }).map_err(told)?;
    // The claim knows no other flags; these can be set later.
    let later = flags & (OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOATIME);
    if !later.is_empty() {
        let set = rustix::fs::fcntl_getfl(&fd).and_then(|old| rustix::fs::fcntl_setfl(&fd, old | later));
        set.map_err(|errno| format!("setting flags for {quoted}: {}", rdsk_dd::errno_words(errno)))?;
    }
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_testkit::{Need, requires};
    use rustix::fs::Mode;

    /// No driver has these numbers here: the refusal comes before anything is opened.
    #[test]
    fn a_disk_is_not_written_through_character_devices() {
        if !requires(&[Need::Root]) {
            return;
        }
        let directory = tempfile::tempdir().expect("a place for nodes");
        let fake = tempfile::tempdir().expect("a place for a fake sysfs");
        let disk = fake.path().join("sys/block/sdb");
        for (file, text) in [("dev", "8:16"), ("size", "2048"), ("device/bsg/2:0:0:0/dev", "247:1")] {
            let file = disk.join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            std::fs::write(file, text).expect("a file");
        }
        let roots = Roots::under(fake.path());
        let refused = |name: &Path| {
            let stat = rustix::fs::stat(name).expect("a node");
            refusal_of(&stat, &roots)
        };
        for (major, words) in [
            (162, "raw device"),
            (90, "flash memory"),
            (21, "it takes commands for a SCSI device"),
            (247, "it takes commands for sdb"),
        ] {
            let node = directory.path().join(format!("node{major}"));
            let number = rustix::fs::makedev(major, 1);
            let mode = Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(CWD, &node, FileType::CharacterDevice, mode, number).expect("a node");
            let link = directory.path().join(format!("link{major}"));
            std::os::unix::fs::symlink(&node, &link).expect("a link");
            for name in [&node, &link] {
                let (what, hint) = refused(name).expect("it is refused");
                assert!(what.contains(words) && hint.contains("--destroy"), "{what}: {hint}");
            }
        }
        assert_eq!(refused(Path::new("/dev/null")), None);
        let mut block = rustix::fs::stat("/dev/null").expect("a node");
        block.st_mode = FileType::BlockDevice.as_raw_mode();
        assert_eq!(refusal_of(&block, &roots), None);
    }
}
