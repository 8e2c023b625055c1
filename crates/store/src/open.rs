//! Opens the database of a history: with the settings that make it safe beside other processes and at any kill, and with the
//! tables of this version.

use crate::error::{StoreError, is_denied};
use crate::file::{self, Contents};
use crate::schema::{APPLICATION_ID, MIGRATIONS, VERSION};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for other processes that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as hundreds of runs that end at once need: a minute.
    Long,
    /// Not noticeably, since a measurement waits: a tenth of a second.
    Short,
}

impl Patience {
    fn timeout(self) -> Duration {
        match self {
            Self::Long => Duration::from_secs(60),
            Self::Short => Duration::from_millis(100),
        }
    }
}

/// An open history.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    path: PathBuf,
    pub(crate) patience: Patience,
    /// Runs that were found to be killed and that no process could note, as in a history that can only be read.
    pub(crate) killed: BTreeSet<String>,
    /// Runs whose process no process here can see.
    pub(crate) elsewhere: BTreeSet<String>,
}

impl History {
    /// Opens the history at `path`, or creates it, and its directory, for this user alone. Older tables become today's.
    ///
    /// # Errors
    /// When it is something else or of a newer version, which stay as they are, or cannot be opened or created.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_within(path, Patience::Long)
    }

    /// As [`History::open`], and waits for others only so long, as for one who brings older tables up to date.
    ///
    /// # Errors
    /// Likewise, and when another process has it for longer.
    pub fn open_within(path: &Path, patience: Patience) -> Result<Self, StoreError> {
        file::prepare(path)?;
        Self::connect(path, patience)
    }

    /// Opens the history at `path` if there is one; an empty file is none. One that cannot be written is opened to be
    /// read.
    ///
    /// # Errors
    /// As for [`History::open`], and when it can only be read and has the tables of an older version.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if matches!(path.try_exists(), Ok(false)) {
            return Ok(None);
        }
        if file::check(path)? == Contents::Nothing {
            return Ok(None);
        }
        match file::check_writable(path) {
            Ok(()) => Self::connect(path, Patience::Long).map(Some),
            Err(source) => Self::connect_to_read(path, source).map(Some),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets how long to wait for other processes.
    ///
    /// # Errors
    /// Those of the database.
    pub fn wait(&mut self, patience: Patience) -> Result<(), StoreError> {
        self.connection.busy_timeout(patience.timeout()).map_err(|source| self.failed(source))?;
        self.patience = patience;
        Ok(())
    }

    fn connect(path: &Path, patience: Patience) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Database { path: path.to_owned(), source };
        // Without SQLITE_OPEN_CREATE: the file is there, with the mode that its companions -wal and -shm take over.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(patience.timeout()).map_err(failed)?;
        refuse_newer(&connection, path)?;
        set_up(&mut connection, Journal::for_file(path)).map_err(failed)?;
        // A newer rdsk may have been quicker to bring older tables up to date.
        refuse_newer(&connection, path)?;
        Ok(Self::over(connection, path, patience))
    }

    fn over(connection: Connection, path: &Path, patience: Patience) -> Self {
        let path = path.to_owned();
        Self { connection, path, patience, killed: BTreeSet::new(), elsewhere: BTreeSet::new() }
    }

    /// `unwritable` is what keeps it from being written.
    fn connect_to_read(path: &Path, unwritable: io::Error) -> Result<Self, StoreError> {
        let failed = |source| StoreError::File { path: path.to_owned(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let is_unfinished = file::has_unfinished_writes(path).map_err(failed)?;
        let opened = if is_unfinished {
            Connection::open_with_flags(path, flags)
        } else {
            // No process writes it at this moment. Only so does SQLite do without companions, which have no place here.
            let absolute = std::path::absolute(path).map_err(failed)?;
            Connection::open_with_flags(immutable(&absolute), flags | OpenFlags::SQLITE_OPEN_URI)
        };
        let connection = opened.and_then(|connection| {
            connection.busy_timeout(Patience::Long.timeout())?;
            Ok(connection)
        });
        let connection =
            connection.map_err(|source| StoreError::Database { path: path.to_owned(), source })?;
        // SQLite opens a file at the first look into it.
        let version = refuse_newer(&connection, path).map_err(|error| match error {
            StoreError::Database { path, source } if is_unfinished && is_denied(&source) => {
                StoreError::Unfinished { path, source }
            }
            error => error,
        })?;
        if version < VERSION {
            return Err(StoreError::Outdated { path: path.to_owned(), version, source: unwritable });
        }
        let patience = Patience::Long;
        Ok(Self::over(connection, path, patience))
    }

    /// Gives the room that is free in the file back to the filesystem.
    ///
    /// # Errors
    /// Those of the database; the room is used by the next runs then.
    pub(crate) fn give_back_room(&self) -> Result<(), StoreError> {
        give_back_room(&self.connection).map_err(|source| self.failed(source))
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), source }
    }

    /// Does something in one transaction that takes the right to write at its beginning, so that it cannot fail half-way for
    /// another writer.
    pub(crate) fn transact<T>(
        &mut self,
        action: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let done = write(&mut self.connection, action);
        done.map_err(|source| self.failed(source))
    }
}

fn write<T>(
    connection: &mut Connection,
    action: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = action(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

/// How SQLite makes a change whole (<https://www.sqlite.org/wal.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Journal {
    /// New pages in the companion `-wal`, with an index in memory that all processes share.
    WriteAhead,
    /// Old pages in the companion `-journal`, where hosts share no memory.
    Rollback,
}

impl Journal {
    fn for_file(path: &Path) -> Self {
        if file::may_be_shared(path) { Self::Rollback } else { Self::WriteAhead }
    }

    /// How SQLite is to treat a file of which it says this; `None` if that fits. A rollback journal that is found stays: the file may be
    /// exported by this host, and in use on others.
    fn word(self, mode: &str, is_new: bool) -> Option<&'static str> {
        match (self, mode) {
            (Self::WriteAhead, "wal") => None,
            (Self::WriteAhead, _) => is_new.then_some("WAL"),
            (Self::Rollback, "wal") => Some("DELETE"),
            (Self::Rollback, _) => None,
        }
    }
}

/// How often a new file is made one with `-wal`, which other processes that open it at this moment prevent; and how long to wait then.
const JOURNAL_ATTEMPTS: u32 = 20;
const JOURNAL_PAUSE: Duration = Duration::from_millis(10);

fn set_up(connection: &mut Connection, journal: Journal) -> rusqlite::Result<()> {
    // A commit is on the disk when it returns: nothing of it is written back later, while the next cell is measured.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let from = version(connection)?;
    let is_new = from == 0;
    if from < VERSION {
        // Only an empty database takes this; room that deleted runs leave is given back.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        write(connection, migrate)?;
        // Older tables leave room behind; without success the next runs use it.
        let _ = give_back_room(connection);
    }
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    match (journal, journal.word(&mode, is_new)) {
        (_, None) => Ok(()),
        // The program that uses it with `-wal` at this moment prevents the change, and then it is not safe here.
        (Journal::Rollback, Some(word)) => connection.pragma_update(None, "journal_mode", word),
        (Journal::WriteAhead, Some(word)) => begin_write_ahead(connection, word),
    }
}

/// Has a new file changed as quickly as many writers like it. It is as safe without, only slower.
fn begin_write_ahead(connection: &Connection, word: &str) -> rusqlite::Result<()> {
    let is_busy =
        |error: &rusqlite::Error| error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy);
    for _ in 0..JOURNAL_ATTEMPTS {
        match connection.pragma_update(None, "journal_mode", word) {
            Err(error) if is_busy(&error) => std::thread::sleep(JOURNAL_PAUSE),
            ended => return ended,
        }
    }
    Ok(())
}

fn give_back_room(connection: &Connection) -> rusqlite::Result<()> {
    // It gives back one page for each row that is read.
    let mut statement = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// The name by which SQLite opens a file that no process changes (<https://www.sqlite.org/uri.html>): without locks and companions.
fn immutable(absolute: &Path) -> String {
    let mut name = String::from("file://");
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name.push_str("?immutable=1");
    name
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The version of the tables, as the database has it: what was written last may not be in the file yet, whose header
/// [`file::check`] has read, but in its companion.
fn refuse_newer(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let failed = |source| StoreError::Database { path: path.to_owned(), source };
    let version = version(connection).map_err(failed)?;
    if version <= VERSION {
        return Ok(version);
    }
    // The last connection that closes would move what the companion holds into the file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    Err(StoreError::Newer { path: path.to_owned(), version })
}

/// Brings the tables to this version, from that which is found once no other program can change it.
fn migrate(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let from = version(transaction)?;
    if from > VERSION {
        return Ok(());
    }
    for step in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)
}
