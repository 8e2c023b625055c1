//! Who else has a file open, as far as the kernel itself says so. It ends no process, changes no file, and names nobody:
//! procfs does that.
#![allow(
    unsafe_code,
    reason = "leases and kcmp(2) have no safe wrapper, and that of locks takes no owner on another host"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Whether any process has the regular file open for writing, the kernel itself included: its servers for other hosts, process
/// accounting, a file below a device. `fd` must be open for reading only, and no writer may be this process.
///
/// A read lease is only given while no process can write (fcntl(2), "Leases"). It is given back at once; who opens the
/// file for writing in between waits for that. Clients of file servers refuse leases by rules of their own, so that
/// `true` holds on local filesystems only; `false` holds, for this machine, on all.
///
/// # Errors
/// `EACCES` for the file of another user, `EINVAL` where there are no leases, and others of fcntl(2).
pub fn has_writers(fd: impl AsFd) -> io::Result<bool> {
    is_lease_refused(fd, libc::F_RDLCK)
}

/// Whether the regular file is open anywhere else, for reading too: in a process, in a descriptor on its way through a socket, in a ring of
/// `io_uring`, or in the kernel. Names for the file (`O_PATH`) do not count. `fd` must be open for reading only.
///
/// A write lease is only given while no other program has the file open (fcntl(2), "Leases"). It is given back at once,
/// as that of [`has_writers`] is.
///
/// # Errors
/// Those of [`has_writers`].
pub fn is_open_elsewhere(fd: impl AsFd) -> io::Result<bool> {
    is_lease_refused(fd, libc::F_WRLCK)
}

fn is_lease_refused(fd: impl AsFd, kind: i32) -> io::Result<bool> {
    // include/uapi/asm-generic/fcntl.h
    const F_SETSIG: i32 = 10;
    let fd = fd.as_fd().as_raw_fd();
    let control = |command: i32, argument: i32| {
        // SAFETY: these commands take an integer, and no memory.
        if unsafe { libc::fcntl(fd, command, argument) } < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    };
    // Who opens it in between makes the kernel send a signal: one that is ignored unless a program handles it, not SIGIO.
    control(F_SETSIG, libc::SIGURG)?;
    match control(libc::F_SETLEASE, kind) {
        Ok(()) => control(libc::F_SETLEASE, libc::F_UNLCK).map(|()| false),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether any process but this one has locked a part of the file with fcntl(2), on this host or on another one that shares the
/// filesystem: NFS, Ceph, GFS2, OCFS2 and FUSE ask their server or cluster. Nothing is locked, except on SMB, whose clients can only try.
///
/// Closing `fd` gives back locks of this process on the file, if it has any (fcntl(2)).
///
/// # Errors
/// Those of fcntl(2): `ENOLCK` where there is no process to ask.
pub fn is_locked_by_others(fd: impl AsFd) -> io::Result<bool> {
    // SAFETY: the structure is made of integers, of which all bits may be zero; so it stands for the whole file, from its beginning.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::c_short::try_from(libc::F_WRLCK).map_err(io::Error::other)?;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: this command reads and writes the structure, which outlives the call.
    if unsafe { libc::fcntl(fd, libc::F_GETLK, &raw mut lock) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

/// Whether two descriptors, of one process or of two, are one open file (`KCMP_FILE`), as those of dup(2) and fork(2)
/// are.
///
/// # Errors
/// As [`same_open_files`], and `EBADF`.
pub fn same_open_file((process, fd): (i32, u32), (other, other_fd): (i32, u32)) -> io::Result<bool> {
    // include/uapi/linux/kcmp.h
    const KCMP_FILE: i32 = 0;
    kcmp(process, other, KCMP_FILE, (fd, other_fd))
}

/// Whether two threads, of one process or of two, have the same table of open files (`KCMP_FILES`). One that has ended
/// has none, which is no table of a thread that has not.
///
/// # Errors
/// Those of kcmp(2): `EPERM`, `ESRCH`, and `ENOSYS` where the kernel was built without it.
pub fn same_open_files(thread: i32, other: i32) -> io::Result<bool> {
    // include/uapi/linux/kcmp.h
    const KCMP_FILES: i32 = 2;
    kcmp(thread, other, KCMP_FILES, (0, 0))
}

fn kcmp(process: i32, other: i32, what: i32, (fd, other_fd): (u32, u32)) -> io::Result<bool> {
    // SAFETY: these comparisons take numbers, and no memory.
    match unsafe { libc::syscall(libc::SYS_kcmp, process, other, what, u64::from(fd), u64::from(other_fd)) } {
        0 => Ok(true),
        1.. => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::OpenOptionsExt as _;

    /// The temporary directory may lie where there are no leases; then there is nothing to compare.
    #[test]
    fn a_writer_shows_until_it_has_gone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = File::open(file.path()).unwrap();
        let Ok(answer) = has_writers(&reader) else { return };
        assert!(answer, "this process writes to it");
        let path = file.into_temp_path();
        // A program that another test starts just now has our descriptors until it executes.
        let is_free = || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !has_writers(&reader).unwrap()
        };
        assert!((0..3000).any(|_| is_free()), "its writer has gone");
        assert!(is_free(), "the lease was given back");
        let other = File::open(&path).unwrap();
        assert!(is_free(), "readers do not count");
        drop(other);
    }

    #[test]
    fn a_reader_shows_wherever_its_descriptor_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.into_temp_path();
        let reader = File::open(&path).unwrap();
        if is_open_elsewhere(&reader).is_err() {
            return;
        }
        let settles = |wanted: bool| {
            (0..3000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                is_open_elsewhere(&reader).unwrap() == wanted
            })
        };
        assert!(settles(false), "it is open here alone");
        let name = File::options().read(true).custom_flags(libc::O_PATH).open(&path).unwrap();
        assert!(settles(false), "a name for it is not open");
        let other = File::open(&path).unwrap();
        assert!(is_open_elsewhere(&reader).unwrap() && !has_writers(&reader).unwrap());
        drop((name, other));
        assert!(settles(false));
    }

    /// Sets a lock of the open file itself, which another open file of the same process conflicts with.
    fn set_lock(file: &File, kind: i32) {
        // SAFETY: the structure is made of integers, of which all bits may be zero.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::c_short::try_from(kind).unwrap();
        (lock.l_start, lock.l_len) = (100, 1);
        // SAFETY: this command reads the structure, which outlives the call.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) }, 0);
    }

    #[test]
    fn locks_of_others_show_and_our_own_do_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = File::open(file.path()).unwrap();
        assert!(!is_locked_by_others(&reader).unwrap());
        rustix::fs::fcntl_lock(file.as_file(), rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert!(!is_locked_by_others(&reader).unwrap(), "our own");
        rustix::fs::fcntl_lock(file.as_file(), rustix::fs::FlockOperation::Unlock).unwrap();
        let other = File::open(file.path()).unwrap();
        set_lock(&other, libc::F_RDLCK);
        assert!(is_locked_by_others(&reader).unwrap(), "one byte, for reading");
        set_lock(&other, libc::F_UNLCK);
        assert!(!is_locked_by_others(&reader).unwrap());
    }

    #[test]
    fn threads_of_a_process_have_the_same_open_files() {
        let own = i32::try_from(std::process::id()).unwrap();
        let Ok(same) = same_open_files(own, own) else { return };
        assert!(same);
        assert!(!same_open_files(own, 1).unwrap_or(false));
        let file = tempfile::tempfile().unwrap();
        let (copy, number) = (file.try_clone().unwrap(), |file: &File| file.as_raw_fd().unsigned_abs());
        assert!(same_open_file((own, number(&file)), (own, number(&copy))).unwrap());
        let other = File::open(format!("/proc/self/fd/{}", number(&file))).unwrap();
        assert!(!same_open_file((own, number(&file)), (own, number(&other))).unwrap());
    }
}
