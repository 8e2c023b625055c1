//! What can go wrong with a history, in words that name the file.

use std::io;
use std::path::PathBuf;

/// Why the history could not be used.
#[allow(missing_docs, reason = "the fields are what the message says")]
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is something else, and was not changed.
    #[error("{} is not a history of rdsk, and is left as it is", .path.display())]
    Foreign { path: PathBuf },
    /// A later version of rdsk wrote it.
    #[error("{} was written by a newer rdsk (history version {version}; this one knows up to {})", .path.display(), crate::VERSION)]
    Newer { path: PathBuf, version: u32 },
    /// The file or its directory cannot be opened or created.
    #[error("cannot open the history {}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// It is there, and may be read only.
    #[error("the history {} can only be read: {source}", .path.display())]
    ReadOnly { path: PathBuf, source: io::Error },
    /// An older version of rdsk wrote it, and it may be read only, so that its tables cannot become today's.
    #[error("the history {} is of an older rdsk (history version {version}), and cannot be brought up to date: {source}", .path.display())]
    Outdated { path: PathBuf, version: u32, source: io::Error },
    /// What was written last is in its companion `-wal`, which cannot be read where no other companion can be made.
    #[error("the last writes of the history {} are in {}-wal, which cannot be read in a directory that cannot be written: {source}", .path.display(), .path.display())]
    Unfinished { path: PathBuf, source: rusqlite::Error },
    /// The database failed: a full disk, damage, a lock that was never released.
    #[error("the history {} failed: {source}", .path.display())]
    Database { path: PathBuf, source: rusqlite::Error },
    /// What the history holds of a run cannot be read.
    #[error("run {id} in the history cannot be read: {why}")]
    Unreadable { id: String, why: String },
    /// A Record cannot be kept as it is.
    #[error("record {id} cannot be kept: {why}")]
    Unfit { id: String, why: String },
}

impl StoreError {
    /// Whether there was no room left on the disk.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Database { source, .. } => {
                source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
            }
            Self::File { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// Whether this user, or the filesystem, does not permit what was to be done.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Database { source, .. } => is_denied(source),
            _ => false,
        }
    }

    /// Whether what the file holds cannot be read.
    pub fn is_damaged(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(self, Self::Unreadable { .. })
            || matches!(self.database_code(), Some(DatabaseCorrupt | NotADatabase))
    }

    fn database_code(&self) -> Option<rusqlite::ErrorCode> {
        match self {
            Self::Database { source, .. } => source.sqlite_error_code(),
            _ => None,
        }
    }

    /// Whether another process held the database for longer than this one waited.
    pub fn is_busy(&self) -> bool {
        matches!(
            self.database_code(),
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
        )
    }
}

/// Whether this user, or the filesystem, does not permit what was to be done.
pub(crate) fn is_denied(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
}
