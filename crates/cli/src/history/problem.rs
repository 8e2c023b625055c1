//! Trouble with the history as a problem, for the commands that are about it.

use rdsk_model::{Problem, ProblemKind};
use rdsk_store::StoreError;
use rdsk_units::printable;

/// The problem that an error of the history is.
pub(super) fn of(error: &StoreError) -> Problem {
    let kind = match error {
        StoreError::Foreign { .. } | StoreError::Newer { .. } | StoreError::File { .. } => {
            ProblemKind::Refused
        }
        StoreError::Database { .. } | StoreError::Unreadable { .. } | StoreError::Unfit { .. } => {
            ProblemKind::Io
        }
    };
    let hint = match error {
        StoreError::Foreign { .. } => "name another file after --history or in RDSK_HISTORY",
        StoreError::Newer { .. } => "use the newer rdsk, or name another file after --history",
        StoreError::File { .. } => {
            "look at the rights of the file and its directory, or name another after --history"
        }
        _ if error.is_full() => "make room on its disk, or name a file elsewhere after --history",
        _ if error.is_busy() => "another rdsk writes for longer than a minute; try again",
        _ => {
            "copy the file before anything else; sqlite3 FILE 'PRAGMA integrity_check' tells what is damaged"
        }
    };
    Problem::new(kind, "history", printable(&error.to_string()), hint)
}

/// No place for a history.
pub(super) fn nowhere(why: &str) -> Problem {
    Problem::new(
        ProblemKind::Refused,
        "history",
        format!("there is no history: {why}"),
        "name a file after --history",
    )
}
