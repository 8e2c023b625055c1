//! Threads that share no open files with the process. It decides nothing of what they do.
#![allow(unsafe_code, reason = "close_range(2) has no safe wrapper")]

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread whose table of open files is its own, and empty (Linux 5.9; before, it shares the process's). It
/// keeps nothing open, so that the last close of a file stays the last; and where no other thread shares the table of
/// the first one, the kernel takes no lock and no reference for each of its system calls.
///
/// # Errors
/// When no thread can be started.
pub fn spawn_without_files(
    builder: Builder,
    act: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    builder.spawn(move || {
        // SAFETY: the thread began a moment ago and shares the table of the one that started it, so that the kernel closes the files of a
        // copy; nothing in this process owns a descriptor of that copy.
        let _ =
            unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) };
        act();
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn such_a_thread_keeps_no_file_open() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let thread = spawn_without_files(Builder::new(), move || {
            begin.send(()).unwrap();
            wait.recv().unwrap();
        });
        begun.recv().unwrap();
        drop(writer);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the end of the pipe that was closed was its last");
        release.send(()).unwrap();
        thread.unwrap().join().unwrap();
    }
}
