//! All printing of rdsk. Data goes to standard output, messages to standard error; a reader that has closed its end
//! (`| head -1`) is no error. Nothing else in the workspace prints, except test tools. It never writes to a device that a text would
//! harm.

use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::borrow::Cow;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Writes a text to standard output, with a newline at the end.
///
/// # Errors
/// When the text cannot be written for a reason other than a closed pipe: a full disk, a closed descriptor.
pub(crate) fn data(text: &str) -> Result<(), Problem> {
    report(text).map(drop)
}

/// Refuses standard streams that lead to a device which a text would harm. `rdsk ... > /dev/sdb` is no permission to write a disk,
/// since it names no identity.
///
/// # Errors
/// When standard output or standard error is such a device.
pub(crate) fn check_streams() -> Result<(), Problem> {
    refuse_device("standard output", rustix::stdio::stdout())?;
    refuse_device("standard error", rustix::stdio::stderr())
}

fn refuse_device(name: &str, stream: BorrowedFd<'_>) -> Result<(), Problem> {
    let what = match harmed_by_text(stream) {
        None => return Ok(()),
        Some(FileType::BlockDevice) => "a block device",
        Some(_) => "a device",
    };
    Err(Problem::new(
        ProblemKind::Refused,
        "stream-refused",
        format!("refusing to write to {name}: it is {what}"),
        "redirect it to a file, and name a device that is to be measured as the target",
    ))
}

/// What a stream leads to, if a text would harm it: a block device holds another user's data, and writing to a character device may be
/// writing to a disk, to memory, to flash, or to a watchdog, unless it is a terminal or one of those that take anything.
fn harmed_by_text(stream: BorrowedFd<'_>) -> Option<FileType> {
    let stat = rustix::fs::fstat(stream).ok()?;
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let is_harmed = match file_type {
        FileType::BlockDevice => true,
        FileType::CharacterDevice => {
            let number = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
            !takes_anything(number) && !is_terminal(stream) && !is_virtio_port(number)
        }
        _ => false,
    };
    is_harmed.then_some(file_type)
}

/// Null, zero, full, random, urandom, kmsg, terminals, and printers (admin-guide/devices.txt).
const fn takes_anything(number: (u32, u32)) -> bool {
    matches!(number, (1, 3 | 5 | 7 | 8 | 9 | 11) | (4 | 5 | 6 | 136..=143, _))
}

/// Terminals of any driver; one that was hung up answers each call with an error of its own.
fn is_terminal(stream: BorrowedFd<'_>) -> bool {
    matches!(rustix::termios::tcgetattr(stream), Ok(_) | Err(Errno::IO))
}

/// The channels of a virtual machine to its host, whose numbers are given as they come.
fn is_virtio_port((major, minor): (u32, u32)) -> bool {
    let subsystem = std::fs::read_link(format!("/sys/dev/char/{major}:{minor}/subsystem"));
    subsystem.is_ok_and(|subsystem| subsystem.ends_with("virtio-ports"))
}

/// Whether standard output is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// As [`data`], one text of many: says whether another one would be read.
///
/// # Errors
/// As for [`data`].
pub(crate) fn report(text: &str) -> Result<Reader, Problem> {
    let ending = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    let stdout = rustix::stdio::stdout();
    refuse_device("standard output", stdout)?;
    let written = write_all(stdout, text.as_bytes()).and_then(|()| write_all(stdout, ending.as_bytes()));
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Problem::new(
            ProblemKind::Io,
            "stdout",
            format!("cannot write to standard output: {error}"),
            "redirect standard output to a place with room, or use --json FILE",
        )),
    }
}

/// Writes everything to one of the standard streams, without a buffer.
///
/// # Errors
/// Those of write(2). The streams of the standard library hide one of them: a descriptor that is closed, or not open for
/// writing (`EBADF`). `EPERM` for a device that a text would harm.
pub(crate) fn write_all(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    if harmed_by_text(stream).is_some() {
        return Err(Errno::PERM.into());
    }
    while !bytes.is_empty() {
        match rustix::io::write(stream, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// A path as a word of a command line to copy: quoted where a shell would take it apart.
pub(crate) fn word(path: &Path) -> String {
    let text = printable(&path.to_string_lossy());
    shlex::try_quote(&text).map_or_else(|_| text.clone(), Cow::into_owned)
}

/// A standard stream that was closed and cannot be kept so.
pub(crate) fn unusable(error: &io::Error) -> Problem {
    Problem::new(
        ProblemKind::Io,
        "closed-streams",
        format!("standard input, output or error is closed, and its place cannot be kept: {error}"),
        "redirect it to /dev/null instead of closing it",
    )
}

/// Prints an answer to standard error, for commands whose standard output belongs to another program.
pub(crate) fn answer(text: &str) {
    write_stderr(text);
}

/// Prints a problem to standard error: one `error:` line and, if something helps, one `hint:` line.
pub(crate) fn problem(problem: &Problem) {
    write_stderr(&problem_text(problem));
}

/// Prints a problem that ends the command, and gives the exit code for it.
pub(crate) fn failure(ended_by: &Problem) -> u8 {
    problem(ended_by);
    crate::exit::code_of(ended_by.kind)
}

pub(crate) fn warning(text: &str) {
    write_stderr(&format!("warning: {}\n", one_line(text)));
}

fn problem_text(problem: &Problem) -> String {
    let mut text = format!("error: {}\n", one_line(&problem.message));
    if let Some(hint) = &problem.hint {
        text.push_str("hint: ");
        text.push_str(&one_line(hint));
        text.push('\n');
    }
    text
}

/// Messages quote names from outside; a newline in one of them must not start a new line of ours.
fn one_line(text: &str) -> String {
    printable(&text.replace('\n', " "))
}

/// In one write, so that lines of two threads do not mix. If standard error is closed, no message can be written.
fn write_stderr(text: &str) {
    let _ = write_all(rustix::stdio::stderr(), text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn only_devices_that_take_anything_get_texts() {
        let (_reader, pipe) = io::pipe().unwrap();
        let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
        let file = tempfile::tempfile().unwrap();
        for stream in [pipe.as_fd(), null.as_fd(), file.as_fd()] {
            assert_eq!(harmed_by_text(stream), None);
        }
        // /dev/mem, /dev/port, a raw device, flash, a SCSI device by commands, a watchdog.
        for number in [(1, 1), (1, 4), (162, 1), (90, 0), (21, 0), (10, 130)] {
            assert!(!takes_anything(number), "{number:?}");
        }
        for number in [(1, 3), (1, 7), (4, 64), (5, 0), (136, 2)] {
            assert!(takes_anything(number), "{number:?}");
        }
    }

    #[test]
    fn a_problem_is_two_lines_whatever_it_quotes() {
        let problem = Problem::new(ProblemKind::Refused, "x", "no \u{1b}[2J\nerror: fake", "do\nthis");
        assert_eq!(problem_text(&problem), "error: no \\x1b[2J error: fake\nhint: do this\n");
        let plain = Problem::plain(ProblemKind::Io, "x", "broken");
        assert_eq!(problem_text(&plain), "error: broken\n");
    }
}
