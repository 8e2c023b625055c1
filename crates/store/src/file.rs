//! The file of a history before SQLite sees it: whether it may be opened at all. SQLite repairs and grows whatever it opens, so
//! that a file of another program must be recognized by its first bytes.

use crate::error::StoreError;
use crate::schema::{APPLICATION_ID, VERSION};
use rustix::fs::{Access, access};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The header of a database (<https://www.sqlite.org/fileformat2.html#the_database_header>), and where its numbers stand.
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;

/// How often a header that is being written is read again, and how long that takes in all: a second.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What SQLite calls the files beside a database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// A Record holds paths and serial numbers, which are no other program's business.
const OWNER_ONLY: u32 = 0o600;
/// The rights of every user but the owner.
const OTHERS: u32 = 0o077;

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// Nothing yet.
    Empty,
    /// A history of this version.
    History(u32),
    /// A part of a header, or a database that no process has claimed: another process may be creating it.
    Unfinished,
    /// Something else.
    Foreign,
}

/// What a file holds that may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Nothing yet.
    Nothing,
    /// A history; of which version, the database knows better than its header.
    History,
}

/// Types of filesystems on which other hosts may use a file at the same time, as statfs(2) gives them: NFS, SMB (three clients of it),
/// 9P, Ceph, FUSE (sshfs, GlusterFS), AFS (two clients), Lustre, GPFS, GFS2, OCFS2, BeeGFS.
const SHARED: [u32; 14] = [
    0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x6573_5546, 0x5346_414f,
    0x6b41_4653, 0x0bd0_0bd0, 0x4750_4653, 0x0116_1970, 0x7461_636f, 0x1983_0326,
];

/// Whether other hosts may use a file, which then share no memory with this one.
pub(crate) fn may_be_shared(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|facts| is_shared(facts.f_type))
}

fn is_shared(kind: impl TryInto<i64>) -> bool {
    // Some platforms give it as a signed number of 32 bits.
    let low = |kind: i64| u32::try_from(kind & i64::from(u32::MAX)).ok();
    kind.try_into().ok().and_then(low).is_some_and(|kind| SHARED.contains(&kind))
}

/// Makes sure that there is a file that may become or is a history, and that no other program may read what becomes
/// one.
///
/// # Errors
/// When it is something else or of a newer version, can only be read, or cannot be created.
pub(crate) fn prepare(path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::File { path: path.to_owned(), source };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    }
    // SQLite removes the companions of an empty database; before there is one, they are another user's files.
    let has_companions = COMPANIONS.iter().any(|end| beside(path, end).symlink_metadata().is_ok());
    match OpenOptions::new().read(true).write(true).create_new(true).mode(OWNER_ONLY).open(path) {
        Ok(_) if has_companions => {
            fs::remove_file(path).map_err(failed)?;
            Err(StoreError::Foreign { path: path.to_owned() })
        }
        Ok(created) => {
            keep_open(created);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let contents = check(path)?;
            check_writable(path).map_err(|source| StoreError::ReadOnly { path: path.to_owned(), source })?;
            if contents == Contents::Nothing { make_private(path).map_err(failed) } else { Ok(()) }
        }
        Err(error) => Err(failed(error)),
    }
}

/// The program that made the empty file may have left it open to every user. The companions take over its mode.
fn make_private(path: &Path) -> io::Result<()> {
    let mode = path.metadata()?.permissions().mode();
    if mode & OTHERS == 0 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY)) }
}

/// Looks whether a file that is there, and its directory, which takes the companions, may be written.
///
/// # Errors
/// Why not, in words.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    let file = path.canonicalize()?;
    access(&file, Access::WRITE_OK)?;
    let directory = file.parent().unwrap_or(Path::new("/"));
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("its directory takes no files: {error}"))
    })
}

/// Whether a companion holds writes that the file itself does not have yet. SQLite removes companions with the last connection. Errors:
/// when the file is gone.
pub(crate) fn has_unfinished_writes(path: &Path) -> io::Result<bool> {
    let file = path.canonicalize()?;
    let holds_some = |end: &&str| beside(&file, end).metadata().is_ok_and(|facts| facts.len() > 0);
    Ok(["-journal", "-wal"].iter().any(holds_some))
}

/// Looks what a file that is there holds, and whether it may be opened as a history.
///
/// # Errors
/// When it is something else or of a newer version, or cannot be read.
pub(crate) fn check(path: &Path) -> Result<Contents, StoreError> {
    let failed = |source| StoreError::File { path: path.to_owned(), source };
    // Opening a pipe may wait for ever, and a device holds no history.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    for _ in 0..LOOKS {
        match header(path).map_err(failed)? {
            Header::Empty => return Ok(Contents::Nothing),
            Header::History(version) if version > VERSION => {
                return Err(StoreError::Newer { path: path.to_owned(), version });
            }
            Header::History(_) => return Ok(Contents::History),
            Header::Foreign => break,
            Header::Unfinished => std::thread::sleep(LOOK_AGAIN),
        }
    }
    Err(StoreError::Foreign { path: path.to_owned() })
}

/// Files whose first bytes were read. Closing any descriptor of a file takes away the locks that SQLite holds on it in the same
/// process (<https://www.sqlite.org/howtocorrupt.html>, 2.2), so that they stay open until the process ends.
static OPEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

fn keep_open(file: File) {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(file);
}

fn header(path: &Path) -> io::Result<Header> {
    let place = |facts: &Metadata| (facts.dev(), facts.ino());
    let wanted = place(&path.metadata()?);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_this = |file: &File| file.metadata().is_ok_and(|facts| place(&facts) == wanted);
    if !open.iter().any(is_this) {
        open.push(File::open(path)?);
    }
    let file = open.iter().rfind(|file| is_this(file)).ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = [0; HEADER_BYTES];
    // One call gets all of a regular file that is there.
    let read = file.read_at(&mut bytes, 0)?;
    Ok(parse(&bytes[..read]))
}

fn parse(bytes: &[u8]) -> Header {
    let is_database = bytes.iter().zip(MAGIC).all(|(byte, expected)| byte == expected);
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(four.try_into().expect("the range has four bytes")))
    };
    match (number(APPLICATION_ID_AT), number(USER_VERSION_AT)) {
        _ if bytes.is_empty() => Header::Empty,
        _ if !is_database => Header::Foreign,
        (Some(APPLICATION_ID), Some(version)) => Header::History(version),
        (Some(0), Some(0)) | (None, _) | (_, None) => Header::Unfinished,
        _ => Header::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(application_id: u32, version: u32) -> Vec<u8> {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[APPLICATION_ID_AT..][..4].copy_from_slice(&application_id.to_be_bytes());
        bytes[USER_VERSION_AT..][..4].copy_from_slice(&version.to_be_bytes());
        bytes.to_vec()
    }

    #[test]
    fn the_first_bytes_tell_a_history_from_everything_else() {
        assert_eq!(parse(b""), Header::Empty);
        assert_eq!(parse(b"hello"), Header::Foreign);
        assert_eq!(parse(&[0; 4096]), Header::Foreign);
        assert_eq!(parse(&database(APPLICATION_ID, 7)), Header::History(7));
        assert_eq!(parse(&database(0, 0)), Header::Unfinished);
        assert_eq!(parse(&database(APPLICATION_ID, 1)[..40]), Header::Unfinished);
        assert_eq!(parse(&database(0, 3)), Header::Foreign, "somebody else's database");
        assert_eq!(parse(&database(1, 1)), Header::Foreign);
    }

    #[test]
    fn filesystems_of_several_hosts_are_known() {
        assert!(is_shared(0x6969_i64) && is_shared(0xff53_4d42_i64) && is_shared(-0x00ac_b2be_i32));
        // ext4, tmpfs, btrfs.
        for kind in [0xef53_i64, 0x0102_1994, 0x9123_683e] {
            assert!(!is_shared(kind), "{kind:x}");
        }
    }
}
