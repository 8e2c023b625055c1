//! Opens both ends of a copy. Files are opened as dd does it; a block device is written only if it may be destroyed, and only
//! through its claim. A disk is not written through character devices.

use crate::history;
use crate::same_place::is_database;
use rdsk_dd::{Failure, Gate, Opening, Operands, Side};
use rdsk_engine::{MonotonicClock, Watchdog, WriteGuard};
use rdsk_model::{Clock as _, IoPath, Problem, ProblemKind, Sync};
use rdsk_sys::start::{Standard, take};
use rdsk_targets::{Access, Claim, DeviceNumber, OpenMode, Permission, Roots, TargetError};
use rdsk_units::printable;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, Stat};
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Both ends, open.
pub(super) struct Opened {
    pub(super) input: Side,
    pub(super) output: Side,
    /// Of a block device that is written.
    pub(super) gate: Option<DeviceGate>,
    /// How long that took, without the checks of a block device.
    pub(super) took_ns: u64,
}

/// Why there is nothing to copy between.
pub(super) enum Closed {
    /// What the terminal has heard of, or the signal that ended the wait for a FIFO.
    Failed(Failure),
    /// What rdsk does not write, and dd would.
    Refused(Problem),
}

/// The claim on a block device while a copy writes it: after a time in which this process did not run, it is judged again first.
pub(super) struct DeviceGate {
    claim: Claim,
    guard: WriteGuard,
    /// When the last write was allowed; 0 before the first.
    allowed_ns: Cell<u64>,
}

impl DeviceGate {
    /// Why nothing more may be written, if that is so.
    pub(super) fn refusal(&self) -> Option<Problem> {
        self.guard.take_refusal().map(|refusal| refusal.problem())
    }
}

impl Gate for DeviceGate {
    fn may_write(&self, output: BorrowedFd<'_>, now_ns: u64) -> bool {
        let allowed_ns = self.allowed_ns.replace(now_ns);
        if !self.guard.is_due(now_ns) {
            return true;
        }
        // What was copied may bear labels of its own.
        let judge_again = || match allowed_ns {
            0 => self.claim.judge_again(output),
            _ => self.claim.judge_copied_again(output),
        };
        let may_write = self.guard.judge([now_ns, allowed_ns], &self.claim.target.name, judge_again);
        self.allowed_ns.set(MonotonicClock.now_ns());
        may_write
    }
}

impl From<Failure> for Closed {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// # Errors
/// What ends the copy before it begins, or why a device or the history is refused.
pub(super) fn open(
    mut opening: Opening<'_>,
    permission: &Permission,
    watchdog: &Watchdog,
) -> Result<Opened, Closed> {
    let operands = opening.operands;
    let shown = |name: &Option<_>, standard: &str| name.as_deref().map_or(standard.to_owned(), text_of);
    let names = [shown(&operands.input, "standard input"), shown(&operands.output, "standard output")];
    if operands.output.as_deref().is_some_and(is_history) {
        let hint = "name another file, or another history after --history";
        return Err(refused("target-is-history", &names[1], "it is the history of rdsk", hint));
    }
    let began_ns = MonotonicClock.now_ns();
    let input = match operands.input.as_deref() {
        Some(name) => opening.input(name)?,
        None => inherited(&mut opening, Standard::Input, &names[0])?,
    };
    let mut took_ns = MonotonicClock.now_ns() - began_ns;
    // The input may have been waited for, so that this is what the output is now.
    let stat = match operands.output.as_deref() {
        Some(name) => rustix::fs::statat(CWD, name, AtFlags::empty()).ok(),
        None => rustix::fs::fstat(rustix::stdio::stdout()).ok(),
    };
    check_node(stat.as_ref(), &names[1], permission)?;
    let (output, gate) = match operands.output.as_deref() {
        Some(name) if stat.as_ref().is_some_and(is_block) => {
            let (output, gate) = open_device(name, operands, permission, watchdog)?;
            (output, Some(gate))
        }
        name => {
            let began_ns = MonotonicClock.now_ns();
            let output = match name {
                Some(name) => opening.output(name)?,
                None => inherited(&mut opening, Standard::Output, &names[1])?,
            };
            took_ns += MonotonicClock.now_ns() - began_ns;
            let stat = rustix::fs::fstat(&output).ok();
            if stat.as_ref().is_some_and(is_block) {
                let what = "it is a block device, which is written only as of= with --destroy";
                let hint = "name the device after of=, and its identity after --destroy; rdsk info lists it";
                return Err(refused("stream-refused", &names[1], what, hint));
            }
            check_node(stat.as_ref(), &names[1], permission)?;
            (output, None)
        }
    };
    let [from, to] = names;
    Ok(Opened { input: Side::new(input, from), output: Side::new(output, to), gate, took_ns })
}

fn text_of(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// What the process was started with, which the copy closes at its end: the reader of a pipe is not to wait for more.
fn inherited(opening: &mut Opening<'_>, standard: Standard, name: &str) -> Result<OwnedFd, Failure> {
    let fd = take(standard).map_err(|error| {
        opening.terminal.say(&format!("{name}: {error}"));
        Failure::Failed
    })?;
    let operands = opening.operands;
    let flags = if standard == Standard::Input { operands.input_flags } else { operands.output_flags };
    opening.set_flags(fd.as_fd(), &flags, name)?;
    Ok(fd)
}

fn is_block(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

/// Refuses nodes through which a disk would be written without its checks, and with `--destroy` all that is no block device. Where the
/// node of a disk is missing, dd makes a regular file of that name, in the memory that /dev lies in, and that file takes what is written
/// there later, too.
fn check_node(stat: Option<&Stat>, name: &str, permission: &Permission) -> Result<(), Closed> {
    let refusal = stat.and_then(|stat| refusal_of(stat, &Roots::default()));
    let is_no_device = permission.destroy.is_some() && !stat.is_some_and(is_block);
    let (what, hint) = match (&refusal, stat) {
        (Some((what, hint)), _) => (what.as_str(), hint.as_str()),
        (None, _) if !is_no_device => return Ok(()),
        (None, Some(_)) => (
            "it is no block device, and --destroy is for one",
            "name the block device after of=, or leave out --destroy",
        ),
        (None, None) => (
            "--destroy is for a block device, and none of this name can be seen",
            "look at rdsk info and name the block device after of=, or leave out --destroy to write a file",
        ),
    };
    Err(refused("no-block-device", name, what, hint))
}

fn refused(code: &str, name: &str, what: &str, hint: &str) -> Closed {
    let message = format!("refusing to write to {}: {what}", printable(name));
    Closed::Refused(Problem::new(ProblemKind::Refused, code, message, hint))
}

/// Writing it would destroy the runs that were kept, and with them this one.
fn is_history(name: &OsStr) -> bool {
    history::file().is_some_and(|history| is_database(Path::new(name), &history))
}

/// Nodes of disks that are no block devices (Documentation/admin-guide/devices.txt): `/dev/sg0`, `/dev/mtd0`, and in kernels before 5.14
/// `/dev/raw/raw1`.
const GENERIC_MAJOR: u32 = 21;
const FLASH_MAJOR: u32 = 90;
const RAW_MAJOR: u32 = 162;
/// Drivers without a number of their own get one from here on.
const FIRST_DYNAMIC_MAJOR: u32 = 234;

/// Why a disk is not written through a node like this, and what helps; `None` for a block device, which is checked otherwise.
fn refusal_of(stat: &Stat, roots: &Roots) -> Option<(String, String)> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::CharacterDevice {
        return None;
    }
    let (what, hint) = match rustix::fs::major(stat.st_rdev) {
        RAW_MAJOR => (
            "it is a raw device, through which a disk would be written without its checks",
            "name its block device, which raw -qa shows the number of, with oflag=direct and --destroy",
        ),
        FLASH_MAJOR => (
            "it is the character device of flash memory, which rdsk does not write",
            "name its block device, such as /dev/mtdblock0, with --destroy, or write it with flashcp",
        ),
        // What is written to such a device are commands, and any command may be among them.
        major if major == GENERIC_MAJOR || major >= FIRST_DYNAMIC_MAJOR => {
            let number = DeviceNumber::from_raw(stat.st_rdev);
            if let Some(disk) = rdsk_targets::disk_commanded_by(number, roots) {
                let disk = printable(&disk);
                let what = format!("it takes commands for {disk}, and what is written to it is no data");
                return Some((what, format!("name the block device, /dev/{disk}, with --destroy")));
            }
            if major != GENERIC_MAJOR {
                return None;
            }
            (
                "it takes commands for a SCSI device, and what is written to it is no data",
                "if it is a disk, name its block device, which lsscsi -g shows, with --destroy",
            )
        }
        _ => return None,
    };
    Some((what.to_owned(), hint.to_owned()))
}

/// A block device is written only if it may be destroyed, and through its claim.
fn open_device(
    name: &OsStr,
    operands: &Operands,
    permission: &Permission,
    watchdog: &Watchdog,
) -> Result<(OwnedFd, DeviceGate), Closed> {
    let text = text_of(name);
    let flags = operands.output_flags.open;
    let problem = |error: TargetError| Closed::Refused(error.problem());
    if operands.convert.is_exclusive || flags.contains(OFlags::NOFOLLOW) || name.to_str().is_none() {
        let what = "a block device goes neither with conv=excl, oflag=nofollow nor a name that is no text";
        return Err(refused(
            "no-block-device",
            &text,
            what,
            "leave the operand out, or name another node of it",
        ));
    }
    let roots = Roots::default();
    let mut examined = rdsk_targets::examine(&text, &roots).map_err(problem)?;
    // Without a count it may be all of the device.
    examined.write_bytes = operands.count.and_then(|count| count.total(operands.input_block_bytes));
    rdsk_targets::authorize(&examined, Access::Write, permission)
        .and_then(|()| rdsk_targets::check_growth(&[&examined]))
        .map_err(|refusal| Closed::Refused(refusal.into()))?;
    let claim = rdsk_targets::claim(examined, Access::Write, permission, &roots).map_err(problem)?;
    let path = if flags.contains(OFlags::DIRECT) { IoPath::Direct } else { IoPath::Buffered };
    let is_durable = flags.intersects(OFlags::DSYNC | OFlags::SYNC);
    let sync = if is_durable { Sync::Dsync } else { Sync::None };
    watchdog.start().map_err(|error| {
        let message = format!("the thread cannot be started that notices pauses of rdsk: {error}");
        Closed::Refused(Problem::plain(ProblemKind::Io, "thread", message))
    })?;
    let guard = WriteGuard::new(watchdog);
    let fd = claim.open(OpenMode { access: Access::Write, path, sync }).map_err(problem)?;
    // The claim knows no other flags; these can be set later.
    let later = flags & (OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOATIME);
    if !later.is_empty() {
        let set = rustix::fs::fcntl_getfl(&fd).and_then(|old| rustix::fs::fcntl_setfl(&fd, old | later));
        set.map_err(|errno| {
            let message =
                format!("the flags of {} cannot be set: {}", printable(&text), rdsk_dd::errno_words(errno));
            Closed::Refused(Problem::plain(ProblemKind::Io, "flags", message))
        })?;
    }
    Ok((fd, DeviceGate { claim, guard, allowed_ns: Cell::new(0) }))
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
