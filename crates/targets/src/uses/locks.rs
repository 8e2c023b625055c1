//! Who has locked a file or a device node, from `/proc/locks`: with flock(2), with fcntl(2), or with a lease. A lock names a user
//! that no open file for writing shows: a virtual machine that reads an image, a file server that keeps it for a client, a program
//! that partitions a disk. Locks that another host has are asked for. It reads one file of procfs, opens files for reading only, and
//! takes no lock.

use crate::probe;
use crate::tools::TIMEOUT;
use crate::uses::processes::{Inode, persistent};
use crate::uses::{InUse, UseKind};
use crate::within::within;
use rdsk_sys::device_number::DeviceNumber;
use rdsk_sys::files::read_text;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Which locks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locks {
    Any,
    /// The program that reads the label of a device takes a shared lock of its node, and the program that changes it an exclusive one
    /// (systemd, "Locking Block Device Access").
    Exclusive,
}

/// A line of `/proc/locks` (fs/locks.c, `lock_get_status`): `1: FLOCK  ADVISORY  WRITE 708 00:19:1033 0 EOF`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lock {
    /// `FLOCK`, `POSIX`, `OFDLCK`, `LEASE`, `DELEG`.
    kind: String,
    is_exclusive: bool,
    /// `None` where no single process has it.
    process: Option<u32>,
    device: DeviceNumber,
    inode_number: u64,
}

/// Adds a use if another process has locked the inode, whose filesystem may have `numbers` beside that of stat(2).
pub(crate) fn find(proc: &Path, inode: Inode, numbers: &[DeviceNumber], which: Locks, usage: &mut InUse) {
    let numbers: Vec<DeviceNumber> =
        numbers.iter().copied().chain([DeviceNumber::from_raw(inode.0)]).collect();
    let is_ours = |lock: &Lock| {
        lock.inode_number == inode.1
            && numbers.contains(&lock.device)
            && lock.process != Some(std::process::id())
            && (which == Locks::Any || lock.is_exclusive)
    };
    usage.extend(persistent(|| {
        let mut now = InUse::default();
        // Without this list no process can lock anything.
        let text = read_text(&proc.join("locks")).unwrap_or_default();
        for lock in text.lines().filter_map(lock_of).filter(is_ours) {
            now.add(UseKind::OpenElsewhere, &shown(proc, &lock));
        }
        now
    }));
}

/// Adds a use if the filesystem says that a part of the file at `path` is locked (fcntl(2)). It knows of other hosts and of containers,
/// whose locks are in no list here; a lock of this process is none.
pub(crate) fn ask(path: &Path, inode: Inode, usage: &mut InUse) {
    /// The source of SMB: its client asks by taking the lock for a moment (`cifs_getlk`), in which others could not use the file.
    const TYPES_THAT_LOCK: [u64; 2] = [0xff53_4d42, 0xfe53_4d42];
    let is_it = |meta: &fs::Metadata| meta.is_file() && (meta.dev(), meta.ino()) == inode;
    let takes_locks = probe::filesystem_type(path).is_none_or(|kind| TYPES_THAT_LOCK.contains(&kind));
    if takes_locks || !fs::metadata(path).is_ok_and(|meta| is_it(&meta)) {
        return;
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // What may not be read is not written either.
    let Ok(file) = File::options().read(true).custom_flags(flags).open(path) else { return };
    usage.extend(persistent(|| {
        let mut now = InUse::default();
        match answer(&file) {
            Some(true) => now.add(
                UseKind::OpenElsewhere,
                "another host, or a process that is not seen here, has locked it",
            ),
            Some(false) => {}
            None => now.doubt("its filesystem does not answer who has locked it"),
        }
        now
    }));
}

/// Whether others have locked it; `None` if there is no answer in time, as from a server whose locks a firewall keeps back. Without
/// a server to ask none has.
fn answer(file: &File) -> Option<bool> {
    let file = file.try_clone().ok()?;
    within(TIMEOUT, move || rdsk_sys::openers::is_locked_by_others(&file).unwrap_or(false)).ok()
}

fn shown(proc: &Path, lock: &Lock) -> String {
    let kind = match lock.kind.as_str() {
        "LEASE" => "a lease of it",
        "DELEG" => "a lease of it for a client",
        _ => "it locked",
    };
    match lock.process {
        Some(process) => {
            let name = read_text(&proc.join(process.to_string()).join("comm")).unwrap_or_default();
            format!("process {process} ({name}) has {kind}")
        }
        None => format!("another program has {kind}"),
    }
}

/// A lock that is held; `None` for one that a program waits for (`->`), and for what is no lock.
fn lock_of(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let kind = words.next().filter(|kind| *kind != "->")?.to_owned();
    let is_exclusive = words.nth(1)? == "WRITE";
    let process = words.next()?.parse().ok();
    let mut place = words.next()?.split(':');
    let mut hexadecimal = || u32::from_str_radix(place.next()?, 16).ok();
    let device = DeviceNumber { major: hexadecimal()?, minor: hexadecimal()? };
    Some(Lock { kind, is_exclusive, process, device, inode_number: place.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Fake;
    use rdsk_testkit::{Hold, Holder};

    const TABLE: &str = "\
1: FLOCK  ADVISORY  WRITE 7 08:1a:77 0 EOF
1: -> FLOCK  ADVISORY  WRITE 8 08:1a:77 0 EOF
2: FLOCK  ADVISORY  READ 7 08:1a:78 0 EOF
3: OFDLCK ADVISORY  READ -1 08:1a:79 100 101
4: LEASE  ACTIVE    READ 7 08:1a:80 0 EOF
5: POSIX  ADVISORY  WRITE 7 00:2b:81 0 EOF
nonsense
";

    fn said(number: u64, which: Locks) -> Vec<String> {
        let fake = Fake::new();
        fake.file("proc/locks", TABLE);
        fake.file("proc/7/comm", "qemu\n");
        let mut usage = InUse::default();
        let btrfs = DeviceNumber { major: 0, minor: 0x2b };
        find(&fake.path("proc"), (rustix::fs::makedev(8, 0x1a), number), &[btrfs], which, &mut usage);
        usage.uses.into_iter().map(|used| used.text).collect()
    }

    #[test]
    fn locks_are_told_with_their_owner() {
        assert_eq!(said(77, Locks::Any), ["process 7 (qemu) has it locked"]);
        assert_eq!(said(79, Locks::Any), ["another program has it locked"]);
        assert_eq!(said(80, Locks::Any), ["process 7 (qemu) has a lease of it"]);
        assert_eq!(said(81, Locks::Any), ["process 7 (qemu) has it locked"], "the number of the filesystem");
        assert_eq!(said(82, Locks::Any), Vec::<String>::new());
    }

    #[test]
    #[ignore = "started by the next test"]
    fn child_that_holds() {
        rdsk_testkit::holder::hold();
    }

    /// As a lock of another host, it is in no list that is looked at here.
    #[test]
    fn a_lock_that_is_not_listed_is_asked_for() {
        let place = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let meta = fs::metadata(&place).unwrap();
        let said = |inode: Inode| {
            let mut usage = InUse::default();
            ask(&place, inode, &mut usage);
            assert_eq!(usage.doubts, Vec::<String>::new());
            usage.uses.into_iter().map(|used| used.text).collect::<Vec<_>>()
        };
        let inode = (meta.dev(), meta.ino());
        let none = Vec::<String>::new();
        let own = File::options().read(true).write(true).open(&place).unwrap();
        rustix::fs::fcntl_lock(&own, rustix::fs::FlockOperation::LockExclusive).unwrap();
        assert_eq!(said(inode), none, "our own");
        drop(own);
        let holder = Holder::start("uses::locks::tests::child_that_holds", Hold::Locking, &place);
        assert_eq!(said(inode), ["another host, or a process that is not seen here, has locked it"]);
        assert_eq!(said((inode.0, inode.1 + 1)), none, "another file has that name");
        drop(holder);
        assert_eq!(said(inode), none);
    }

    #[test]
    fn who_reads_a_label_has_no_exclusive_lock() {
        assert_eq!(said(77, Locks::Exclusive).len(), 1);
        assert_eq!(said(78, Locks::Exclusive), Vec::<String>::new());
    }
}
