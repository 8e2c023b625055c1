//! Reads a run back as the Record that was kept.

use crate::document::{DocumentError, unpack};
use crate::error::StoreError;
use crate::list::{RunLine, State};
use crate::open::History;
use rdsk_model::{CellRecord, Problem, ProblemKind, READABLE_SCHEMAS, Record, Status};
use rusqlite::{OptionalExtension as _, Transaction, params};

/// What a history holds of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The Record; of a run that did not end in order with the cells as far as they were kept, and an error that says so.
    pub record: Record,
    /// How the run stands.
    pub state: State,
}

impl History {
    /// The Record of a run.
    ///
    /// # Errors
    /// Those of the database; when the run is gone, or a document is damaged or of another schema.
    pub fn record(&mut self, run: &RunLine) -> Result<Kept, StoreError> {
        let (document, cells, state) = self.documents(&run.id)?;
        let unreadable = |why: String| StoreError::Unreadable { id: run.id.clone(), why };
        let Some(document) = document else {
            return Err(unreadable("it was deleted meanwhile".into()));
        };
        let unpacked = |error: DocumentError| unreadable(error.to_string());
        let mut record: Record = unpack(&document).map_err(unpacked)?;
        if !READABLE_SCHEMAS.contains(&record.schema.as_str()) {
            let readable = READABLE_SCHEMAS.join(" or ");
            return Err(unreadable(format!("its schema is {}, not {readable}", record.schema)));
        }
        // Those of a run that has ended are in its document, unless the version 1 kept it.
        if record.cells.is_empty() {
            let cells = cells.iter().map(|cell| unpack::<CellRecord>(cell));
            record.cells = cells.collect::<Result<_, _>>().map_err(unpacked)?;
        }
        let state = state.map_or(run.state, |word| self.state(&run.id, &word));
        if let Some(words) = words_of_no_end(state) {
            record.status = Status::Interrupted;
            record.error = Some(Problem::plain(ProblemKind::Interrupted, state.as_str(), words));
        }
        Ok(Kept { record, state })
    }

    /// Both kinds of documents and the state, as of one moment: another process may be saving the next cells.
    #[allow(clippy::type_complexity, reason = "three columns, named where they are used")]
    fn documents(&mut self, id: &str) -> Result<(Option<Vec<u8>>, Vec<Vec<u8>>, Option<String>), StoreError> {
        let read = |transaction: &Transaction<'_>| {
            let text = "SELECT status FROM run WHERE id = ?1";
            let state: Option<String> =
                transaction.query_row(text, params![id], |row| row.get(0)).optional()?;
            let text = "SELECT json FROM document WHERE run = ?1";
            let document = transaction.query_row(text, params![id], |row| row.get(0)).optional()?;
            let text = "SELECT json FROM cell_document WHERE run = ?1 ORDER BY position";
            let mut cells = transaction.prepare(text)?;
            let cells: Vec<Vec<u8>> =
                cells.query_map(params![id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok((document, cells, state))
        };
        let transaction = self.connection.transaction();
        let done = transaction.and_then(|transaction| read(&transaction));
        done.map_err(|source| self.failed(source))
    }
}

/// What the Record of a run says that has not ended in order.
fn words_of_no_end(state: State) -> Option<&'static str> {
    match state {
        State::Killed => Some("the process was killed; the record holds what was kept until then"),
        State::Running | State::Elsewhere => {
            Some("the run has not ended, as far as can be seen; the record holds what was kept so far")
        }
        State::Complete | State::Interrupted | State::Failed => None,
    }
}
