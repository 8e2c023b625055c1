//! Removes runs from a history, and gives their room back to the filesystem.

use crate::error::StoreError;
use crate::list::RunLine;
use crate::open::History;
use rusqlite::params;

impl History {
    /// Removes these runs with all their cells. A run that is gone already is none to remove.
    ///
    /// # Errors
    /// Those of the database; then none is removed.
    pub fn delete(&mut self, runs: &[RunLine]) -> Result<(), StoreError> {
        self.transact(|transaction| {
            let mut statement = transaction.prepare("DELETE FROM run WHERE id = ?1")?;
            runs.iter().try_for_each(|run| statement.execute(params![run.id]).map(drop))
        })?;
        self.give_back_room()
    }
}
