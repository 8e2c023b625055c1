//! Opens the input and prepares the output as dd does: flags, creation, truncation. A block device is never opened for writing
//! here: whoever may write to it hands in the open file.

use crate::copier::retried;
use crate::error::words;
use crate::operands::Operands;
use crate::quote::{self, Charset};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Opens the input, or sets the flags of standard input.
///
/// # Errors
/// dd's message.
pub fn open_input(operands: &Operands, stdin: BorrowedFd<'_>) -> Result<Option<OwnedFd>, String> {
    let flags = operands.input_flags.open;
    let Some(name) = &operands.input else {
        set_flags(stdin, flags, "standard input")?;
        return Ok(None);
    };
    let open = || rustix::fs::open(name.as_os_str(), OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty());
    retried(open).map(Some).map_err(|errno| not_opened(name, errno, operands.charset))
}

/// Opens or creates the output, or sets the flags of standard output, and truncates it.
///
/// # Errors
/// dd's message; ours if the file turns out to be a block device.
pub fn open_output(operands: &Operands, stdout: BorrowedFd<'_>) -> Result<Option<OwnedFd>, String> {
    let Some(name) = &operands.output else {
        set_flags(stdout, operands.output_flags.open, "standard output")?;
        return Ok(None);
    };
    check_truncation(operands)?;
    let flags = output_flags(operands);
    let mode = Mode::from_raw_mode(0o666);
    let open = |access: OFlags| retried(|| rustix::fs::open(name.as_os_str(), access | flags, mode));
    // Reading is needed only to pass what is skipped of a file without positions.
    let fd = if operands.seek.is_zero() {
        open(OFlags::WRONLY)
    } else {
        open(OFlags::RDWR).or_else(|_| open(OFlags::WRONLY))
    };
    let fd = fd.map_err(|errno| not_opened(name, errno, operands.charset))?;
    if is_block_device(&fd) {
        return Err(format!("{} has become a block device", quote::file(name.as_bytes(), operands.charset)));
    }
    truncate(operands, &fd, name)?;
    Ok(Some(fd))
}

/// Whether an open file is a block device.
pub fn is_block_device(fd: impl AsFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
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

fn truncate(operands: &Operands, fd: &OwnedFd, name: &OsStr) -> Result<(), String> {
    let seek = operands.seek;
    // As dd does it, bytes alone do not count.
    if seek.blocks == 0 || operands.convert.is_no_truncate {
        return Ok(());
    }
    let bytes = seek.total(operands.output_block_bytes).unwrap_or(u64::MAX);
    let Err(errno) = retried(|| rustix::fs::ftruncate(fd, bytes)) else { return Ok(()) };
    let is_file = rustix::fs::fstat(fd).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        kind == FileType::RegularFile || kind == FileType::Directory
    });
    // Pipes and devices have no length.
    if !is_file {
        return Ok(());
    }
    let (name, words) = (quote::file(name.as_bytes(), operands.charset), words(errno));
    Err(format!("failed to truncate to {bytes} bytes in output file {name}: {words}"))
}

/// Adds flags to a file that somebody else opened.
fn set_flags(fd: BorrowedFd<'_>, flags: OFlags, name: &str) -> Result<(), String> {
    let wanted = flags - (OFlags::NOCTTY | OFlags::NOFOLLOW);
    if wanted.is_empty() {
        return Ok(());
    }
    let result = (|| {
        let old = rustix::fs::fcntl_getfl(fd)?;
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
