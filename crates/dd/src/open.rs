//! Opens the input and prepares the output as dd does: flags, creation, truncation. A block device is never written here, and neither
//! is a disk through another node: whoever may write to it hands in the open file.

use crate::copier::{Done, Failure, Signals, Terminal, process_signals};
use crate::error::words;
use crate::operands::{Flags, Operands};
use crate::quote::{self, Charset};
use crate::summary::{self, Counts};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

/// Opens both ends of a copy. A FIFO is opened only when its other end is; signals are answered during that wait, too.
pub struct Opening<'a> {
    /// What is asked for.
    pub operands: &'a Operands,
    /// Hears of the counts, which are still zero, and of what is no error.
    pub terminal: &'a mut dyn Terminal,
    /// What signals ask for; their handlers must let the call return.
    pub signals: &'a Signals,
    /// From when on the time counts that is printed with the counts.
    pub began: Instant,
}

/// Why an end of a copy was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// dd's message.
    Because(String),
    /// A signal ended the wait, and the counts were printed.
    Ended(Failure),
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> Self {
        Self::Ended(failure)
    }
}

impl From<String> for NotOpened {
    fn from(message: String) -> Self {
        Self::Because(message)
    }
}

impl Opening<'_> {
    /// Opens the input, or sets the flags of standard input.
    ///
    /// # Errors
    /// Where dd ends.
    pub fn input(&mut self, stdin: BorrowedFd<'_>) -> Result<Option<OwnedFd>, NotOpened> {
        let flags = &self.operands.input_flags;
        let Some(name) = &self.operands.input else {
            set_flags(stdin, flags, "standard input")?;
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | flags.open;
        let opened = self.answering_signals(|| rustix::fs::open(name.as_os_str(), flags, Mode::empty()))?;
        Ok(Some(opened.map_err(|errno| not_opened(name, errno, self.operands.charset))?))
    }

    /// Opens or creates the output, or sets the flags of standard output, and truncates it.
    ///
    /// # Errors
    /// Where dd ends; and if the file turns out to be the node of a disk.
    pub fn output(&mut self, stdout: BorrowedFd<'_>) -> Result<Option<OwnedFd>, NotOpened> {
        let operands = self.operands;
        let Some(name) = &operands.output else {
            set_flags(stdout, &operands.output_flags, "standard output")?;
            return Ok(None);
        };
        check_truncation(operands)?;
        let flags = output_flags(operands);
        let mode = Mode::from_raw_mode(0o666);
        let open = |access: OFlags| rustix::fs::open(name.as_os_str(), access | flags, mode);
        // Reading is needed only to pass what is skipped of a file without positions.
        let mut opened = Err(Errno::ACCESS);
        if operands.seek.blocks > 0 {
            opened = self.answering_signals(|| open(OFlags::RDWR))?;
        }
        if opened.is_err() {
            opened = self.answering_signals(|| open(OFlags::WRONLY))?;
        }
        let fd = opened.map_err(|errno| not_opened(name, errno, operands.charset))?;
        if let Some(node) = DiskNode::behind(&fd) {
            let quoted = quote::file(name.as_bytes(), operands.charset);
            let what =
                if node == DiskNode::Block { "a block device" } else { "a character device of a disk" };
            return Err(format!("{quoted} has become {what}").into());
        }
        self.truncate(&fd, name)?;
        Ok(Some(fd))
    }

    /// What is left of a file that cannot be truncated stays, and dd goes on.
    fn truncate(&mut self, fd: &OwnedFd, name: &OsStr) -> Done<()> {
        let (operands, seek) = (self.operands, self.operands.seek);
        // As dd does it, bytes alone do not count.
        if seek.blocks == 0 || operands.convert.is_no_truncate {
            return Ok(());
        }
        let bytes = seek.total(operands.output_block_bytes).unwrap_or(u64::MAX);
        let Err(errno) = self.answering_signals(|| rustix::fs::ftruncate(fd, bytes))? else { return Ok(()) };
        let is_file = rustix::fs::fstat(fd).is_ok_and(|stat| {
            let kind = FileType::from_raw_mode(stat.st_mode);
            kind == FileType::RegularFile || kind == FileType::Directory
        });
        // Pipes and devices have no length.
        if is_file {
            let (name, words) = (quote::file(name.as_bytes(), operands.charset), words(errno));
            self.terminal.say(&format!("failed to truncate to {bytes} bytes in output file {name}: {words}"));
        }
        Ok(())
    }

    /// Repeats a call that a signal interrupted, once the signal is answered.
    fn answering_signals<T>(&mut self, mut call: impl FnMut() -> Result<T, Errno>) -> Done<Result<T, Errno>> {
        loop {
            let printed = process_signals(self.signals, || self.print_counts());
            printed.inspect_err(|_| self.print_counts())?;
            match call() {
                Err(Errno::INTR) => {}
                result => return Ok(result),
            }
        }
    }

    fn print_counts(&mut self) {
        let lines = summary::lines(self.operands.status, &Counts::default(), self.began.elapsed());
        self.terminal.print(&lines);
    }
}

/// Whether an open file is a block device.
pub fn is_block_device(fd: impl AsFd) -> bool {
    DiskNode::behind(fd) == Some(DiskNode::Block)
}

/// A node through which a disk is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskNode {
    /// A block device.
    Block,
    /// `/dev/raw/raw1`: a character device that stands for a block device, in kernels before 5.14.
    Raw,
    /// `/dev/mtd0`: flash memory.
    Flash,
    /// `/dev/sg0`: what is written are commands to a SCSI device.
    Generic,
}

impl DiskNode {
    /// What a file is, by what stat(2) tells of it; `None` if nothing is known of a disk behind it. The numbers are those of
    /// Documentation/admin-guide/devices.txt.
    pub fn of(stat: &Stat) -> Option<Self> {
        const GENERIC_MAJOR: u32 = 21;
        const FLASH_MAJOR: u32 = 90;
        const RAW_MAJOR: u32 = 162;
        match (FileType::from_raw_mode(stat.st_mode), rustix::fs::major(stat.st_rdev)) {
            (FileType::BlockDevice, _) => Some(Self::Block),
            (FileType::CharacterDevice, RAW_MAJOR) => Some(Self::Raw),
            (FileType::CharacterDevice, FLASH_MAJOR) => Some(Self::Flash),
            (FileType::CharacterDevice, GENERIC_MAJOR) => Some(Self::Generic),
            _ => None,
        }
    }

    /// The same of an open file.
    pub fn behind(fd: impl AsFd) -> Option<Self> {
        Self::of(&rustix::fs::fstat(fd).ok()?)
    }
}

fn output_flags(operands: &Operands) -> OFlags {
    let convert = operands.convert;
    let mut flags = operands.output_flags.open | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, !convert.is_no_create);
    flags.set(OFlags::EXCL, convert.is_exclusive);
    flags.set(OFlags::TRUNC, operands.seek.blocks == 0 && !convert.is_no_truncate);
    flags
}

/// A length beyond what a file can have is refused before the file is opened.
fn check_truncation(operands: &Operands) -> Result<(), String> {
    let (seek, block) = (operands.seek, operands.output_block_bytes);
    let is_too_far = seek.total(block).is_none_or(|bytes| i64::try_from(bytes).is_err());
    if is_too_far && !operands.convert.is_no_truncate {
        let blocks = seek.blocks;
        return Err(format!(
            "offset too large: cannot truncate to a length of seek={blocks} ({block}-byte) blocks"
        ));
    }
    Ok(())
}

/// Adds flags to a file that somebody else opened. As in dd, those that concern bytes show that it is closed, too.
fn set_flags(fd: BorrowedFd<'_>, flags: &Flags, name: &str) -> Result<(), String> {
    let wanted = flags.open - (OFlags::NOCTTY | OFlags::NOFOLLOW);
    if wanted.is_empty() && !(flags.counts_bytes || flags.skips_bytes || flags.seeks_bytes) {
        return Ok(());
    }
    let result = (|| {
        let old = rustix::fs::fcntl_getfl(fd)?;
        if old.contains(OFlags::PATH) {
            // What takes the place of a descriptor that was closed tells its flags, but takes none.
            return Err(Errno::BADF);
        }
        let mut new = old | wanted;
        if new == old {
            return Ok(());
        }
        if new.contains(OFlags::DIRECTORY) {
            let stat = rustix::fs::fstat(fd)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Err(Errno::NOTDIR);
            }
            new -= OFlags::DIRECTORY;
        }
        if new == old { Ok(()) } else { rustix::fs::fcntl_setfl(fd, new) }
    })();
    result.map_err(|errno| format!("setting flags for '{name}': {}", words(errno)))
}

fn not_opened(name: &OsStr, errno: Errno, charset: Charset) -> String {
    format!("failed to open {}: {}", quote::file(name.as_bytes(), charset), words(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: FileType, major: u32) -> Option<DiskNode> {
        let mut stat = rustix::fs::stat("/dev/null").unwrap();
        (stat.st_mode, stat.st_rdev) = (kind.as_raw_mode(), rustix::fs::makedev(major, 1));
        DiskNode::of(&stat)
    }

    #[test]
    fn disks_are_written_through_more_than_block_devices() {
        assert_eq!(node(FileType::BlockDevice, 8), Some(DiskNode::Block));
        assert_eq!(node(FileType::BlockDevice, 162), Some(DiskNode::Block));
        assert_eq!(node(FileType::CharacterDevice, 162), Some(DiskNode::Raw));
        assert_eq!(node(FileType::CharacterDevice, 90), Some(DiskNode::Flash));
        assert_eq!(node(FileType::CharacterDevice, 21), Some(DiskNode::Generic));
        // The null device and its like, terminals, tapes.
        for major in [1, 4, 5, 9, 136] {
            assert_eq!(node(FileType::CharacterDevice, major), None, "{major}");
        }
        assert_eq!(node(FileType::RegularFile, 162), None);
    }
}
