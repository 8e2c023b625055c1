//! Trouble with the history as a problem, for the commands that are about it.

use rdsk_model::{Problem, ProblemKind};
use rdsk_store::StoreError;
use rdsk_units::printable;

const RIGHTS: &str = "look at the rights of the file and its directory, or name another after --history";

/// The problem that an error of the history is.
pub(crate) fn of_store(error: &StoreError) -> Problem {
    Problem::new(kind(error), "history", printable(&error.to_string()), hint(error))
}

fn kind(error: &StoreError) -> ProblemKind {
    match error {
        StoreError::Foreign { .. }
        | StoreError::Newer { .. }
        | StoreError::File { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Outdated { .. }
        | StoreError::Unfinished { .. } => ProblemKind::Refused,
        StoreError::Database { .. } if error.is_denied() => ProblemKind::Refused,
        StoreError::Database { .. } | StoreError::Unreadable { .. } | StoreError::Unfit { .. } => {
            ProblemKind::Io
        }
    }
}

/// What to do. Only what is damaged is called so: a file that this user may not write is whole.
fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Foreign { .. } => "name another file after --history or in RDSK_HISTORY",
        StoreError::Newer { .. } => "use the newer rdsk, or name another file after --history",
        StoreError::Outdated { .. } => {
            "copy the file to where you may write, and name the copy after --history"
        }
        StoreError::Unfinished { .. } => {
            "copy the file and its -wal to where you may write, and name the copy after --history"
        }
        StoreError::Unfit { .. } => "rdsk show draws it from its file",
        _ if error.is_full() => "make room on its disk, or name a file elsewhere after --history",
        _ if error.is_busy() => "another rdsk writes for longer than a minute; try again",
        _ if error.is_damaged() => {
            "copy the file before anything else; sqlite3 FILE 'PRAGMA integrity_check' shows what is damaged"
        }
        StoreError::File { .. } | StoreError::ReadOnly { .. } => RIGHTS,
        _ if error.is_denied() => RIGHTS,
        _ => "see the kernel log for errors of its disk: dmesg | tail",
    }
}

/// No place for a history.
pub(crate) fn nowhere(why: &str) -> Problem {
    Problem::new(
        ProblemKind::Refused,
        "history",
        format!("there is no history: {why}"),
        "name a file after --history",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn only_what_is_damaged_is_called_so() {
        for (code, kind, word) in [
            (ffi::SQLITE_READONLY, ProblemKind::Refused, "rights"),
            (ffi::SQLITE_CANTOPEN, ProblemKind::Refused, "rights"),
            (ffi::SQLITE_PERM, ProblemKind::Refused, "rights"),
            (ffi::SQLITE_FULL, ProblemKind::Io, "room"),
            (ffi::SQLITE_BUSY, ProblemKind::Io, "another rdsk"),
            (ffi::SQLITE_CORRUPT, ProblemKind::Io, "damaged"),
            (ffi::SQLITE_NOTADB, ProblemKind::Io, "damaged"),
            (ffi::SQLITE_IOERR, ProblemKind::Io, "kernel log"),
        ] {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let problem = of_store(&StoreError::Database { path: "h.db".into(), source });
            assert_eq!(problem.kind, kind, "{code}");
            let hint = problem.hint.unwrap();
            assert!(hint.contains(word), "{code}: {hint}");
            assert_eq!(hint.contains("damage"), word == "damaged", "{code}: {hint}");
        }
    }
}
