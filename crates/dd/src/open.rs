//! Opens the input and prepares the output as dd does: flags, creation, truncation. It looks at no device: the program that may write to one
//! hands in the open file.

use crate::copier::Terminal;
use crate::errno_words;
use crate::operands::{Flags, Operands};
use crate::signals::{Done, Failure, Signals};
use crate::summary::{self, Counts};
use rdsk_units::printable;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Opens both ends of a copy. A FIFO is opened only when its other end is; signals are answered during that wait, too. What is wrong is
/// said on the terminal.
pub struct Opening<'a> {
    /// What is asked for.
    pub operands: &'a Operands,
    /// Hears of the counts, which are still zero, and of errors.
    pub terminal: &'a mut dyn Terminal,
    /// What signals ask for; their handlers must let the call return.
    pub signals: &'a Signals,
}

impl Opening<'_> {
    /// Opens the input. A directory is refused here, before the output is truncated.
    ///
    /// # Errors
    /// Where the copy ends.
    pub fn input(&mut self, name: &OsStr) -> Done<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | self.operands.input_flags.open;
        let fd = self.opened(name, flags)?;
        if kind_of(fd.as_fd()) == Some(FileType::Directory) {
            return Err(self.not_opened(name, Errno::ISDIR));
        }
        Ok(fd)
    }

    /// Opens or creates the output, and truncates it.
    ///
    /// # Errors
    /// Where the copy ends.
    pub fn output(&mut self, name: &OsStr) -> Done<OwnedFd> {
        let Operands { convert, seek, output_block_bytes, .. } = *self.operands;
        let length = seek.total(output_block_bytes).filter(|&bytes| i64::try_from(bytes).is_ok());
        // A length beyond what a file can have is refused before the file is opened.
        let Some(length) = length.or(convert.is_no_truncate.then_some(0)) else {
            return Err(self.not_opened(name, Errno::FBIG));
        };
        // As dd does it, bytes alone do not count: the file is cut to nothing, and they become a hole.
        let is_kept = seek.blocks > 0;
        let mut flags = OFlags::WRONLY | OFlags::CLOEXEC | self.operands.output_flags.open;
        flags.set(OFlags::CREATE, !convert.is_no_create);
        flags.set(OFlags::EXCL, convert.is_exclusive);
        flags.set(OFlags::TRUNC, !is_kept && !convert.is_no_truncate);
        let fd = self.opened(name, flags)?;
        // Pipes and devices have no length. What is left of a file that cannot be truncated stays, and dd goes on.
        if is_kept
            && !convert.is_no_truncate
            && kind_of(fd.as_fd()) == Some(FileType::RegularFile)
            && let Err(errno) = crate::signals::retried(|| rustix::fs::ftruncate(&fd, length))
        {
            let (name, words) = (shown(name), errno_words(errno));
            self.terminal.say(&format!("{name} is not cut to {length} bytes: {words}"));
        }
        Ok(fd)
    }

    fn opened(&mut self, name: &OsStr, flags: OFlags) -> Done<OwnedFd> {
        loop {
            let counts = summary::lines(self.operands.status, &Counts::default(), 0);
            let Self { signals, terminal, .. } = self;
            let answered = signals.answer(|| terminal.print(&counts));
            answered.inspect_err(|_| terminal.print(&counts))?;
            match rustix::fs::open(name, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.not_opened(name, errno)),
                Ok(fd) => return Ok(fd),
            }
        }
    }

    fn not_opened(&mut self, name: &OsStr, errno: Errno) -> Failure {
        self.terminal.say(&format!("cannot open {}: {}", shown(name), errno_words(errno)));
        Failure::Failed
    }

    /// Adds flags to a file that another program opened, as far as an open file takes them.
    ///
    /// # Errors
    /// Where the kernel refuses them.
    pub fn set_flags(&mut self, fd: BorrowedFd<'_>, flags: &Flags, name: &str) -> Done<()> {
        let more = flags.open & (OFlags::APPEND | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOATIME);
        if more.is_empty() {
            return Ok(());
        }
        let set = rustix::fs::fcntl_getfl(fd).and_then(|old| rustix::fs::fcntl_setfl(fd, old | more));
        set.map_err(|errno| {
            self.terminal.say(&format!(
                "the flags of {} cannot be set: {}",
                printable(name),
                errno_words(errno)
            ));
            Failure::Failed
        })
    }
}

fn shown(name: &OsStr) -> String {
    printable(&name.to_string_lossy())
}

fn kind_of(fd: BorrowedFd<'_>) -> Option<FileType> {
    Some(FileType::from_raw_mode(rustix::fs::fstat(fd).ok()?.st_mode))
}
