//! Lists runs, newest first, from columns alone: no document is unpacked.

use crate::error::StoreError;
use crate::holder::{Holder, Life};
use crate::open::History;
use rdsk_model::Status;
use rusqlite::{Row, named_params, params};
use std::path::Path;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being measured.
    Running,
    /// It was noted as being measured, by a process that no process here can see: on another machine or in another container, which may
    /// be gone.
    Elsewhere,
    /// It ended, and every cell was visited.
    Complete,
    /// A signal ended it, and it ended in order.
    Interrupted,
    /// An error ended it, or a cell failed.
    Failed,
    /// Its process ended without a word, as by `kill -9` or a power failure.
    Killed,
}

impl State {
    /// Those that the database has words for: who looks decides whether a process can be seen.
    const ALL: [Self; 5] = [Self::Running, Self::Complete, Self::Interrupted, Self::Failed, Self::Killed];

    /// The word for it in lists, and but for `elsewhere` in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Elsewhere => "elsewhere",
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }

    pub(crate) fn of(status: Status) -> Self {
        match status {
            Status::Complete => Self::Complete,
            Status::Interrupted => Self::Interrupted,
            Status::Failed => Self::Failed,
        }
    }

    /// An unknown word is that of a run of which it is unknown how it ended.
    pub(crate) fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.as_str() == word).unwrap_or(Self::Killed)
    }
}

/// One run in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLine {
    /// Its Record's id.
    pub id: String,
    /// When it began, in nanoseconds since 1970 (UTC).
    pub started_ns: i64,
    /// The same as the Record has it, RFC 3339.
    pub started_at: String,
    /// Wall time; `None` for a run that has not ended, or was killed.
    pub elapsed_ns: Option<u64>,
    /// How it stands.
    pub state: State,
    /// The user's name for it; untrusted text.
    pub label: Option<String>,
    /// The command line; untrusted text.
    pub command: Vec<String>,
    /// What measured.
    pub rdsk_version: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The experiments, by their words.
    pub experiments: Vec<String>,
    /// The names of the targets; untrusted text.
    pub targets: Vec<String>,
    /// Cells that are kept.
    pub cells: u64,
    /// The sequential read rate of the headline, or, of a run without one, the highest mean rate of a reading cell; only of cells whose
    /// bytes the device moved. `None` without such a cell.
    pub read_bytes_per_s: Option<f64>,
    /// The same of writing cells.
    pub write_bytes_per_s: Option<f64>,
}

/// Which runs are wanted; the default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those with this text in the name of a target.
    pub target: Option<String>,
    /// Only those with exactly this label.
    pub label: Option<String>,
    /// Only those with cells of this experiment, by its word.
    pub experiment: Option<String>,
    /// Only those that began at this time or later, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Only those that began before this time.
    pub until_ns: Option<i64>,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

const COLUMNS: &str = "id, started_ns, started_at, elapsed_ns, status, label, command, rdsk_version, kernel, experiments, \
                       targets, cells, read_bytes_per_s, write_bytes_per_s";

impl History {
    /// The runs that a filter lets through, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub fn list(&self, filter: &Filter) -> Result<Vec<RunLine>, StoreError> {
        self.listed(filter).map_err(|source| self.failed(source))
    }

    fn listed(&self, filter: &Filter) -> rusqlite::Result<Vec<RunLine>> {
        let text = format!(
            "SELECT {COLUMNS} FROM run
             WHERE started_ns >= :since AND started_ns < :until AND (:label IS NULL OR label = :label)
               AND (:experiment IS NULL OR instr(',' || experiments || ',', ',' || :experiment || ',') > 0)
               AND (:target IS NULL
                    OR EXISTS (SELECT 1 FROM json_each(targets) WHERE instr(json_each.value, :target) > 0))
             ORDER BY started_ns DESC, id DESC LIMIT :limit"
        );
        let mut statement = self.connection.prepare(&text)?;
        let rows = statement.query_map(
            named_params! {
                ":since": filter.since_ns.unwrap_or(i64::MIN),
                ":until": filter.until_ns.unwrap_or(i64::MAX),
                ":label": filter.label,
                ":experiment": filter.experiment,
                ":target": filter.target,
                // A negative number is no limit.
                ":limit": filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            },
            |row| self.line(row),
        )?;
        rows.collect()
    }

    /// The lines of some of the runs: those that a condition on their columns selects, newest first.
    pub(crate) fn lines_where(
        &self,
        condition: &str,
        value: &str,
        limit: u32,
    ) -> Result<Vec<RunLine>, StoreError> {
        let text = format!(
            "SELECT {COLUMNS} FROM run WHERE {condition} ORDER BY started_ns DESC, id DESC LIMIT {limit}"
        );
        let lines = || -> rusqlite::Result<Vec<RunLine>> {
            let mut statement = self.connection.prepare_cached(&text)?;
            statement.query_map(params![value], |row| self.line(row))?.collect()
        };
        lines().map_err(|source| self.failed(source))
    }

    /// Notes of every run whose process ended without a word that it was killed, and remembers those whose process no
    /// process here can see. `proc` is where the kernel says which processes live. Where nothing can be written, this
    /// process alone knows it from then on.
    ///
    /// # Errors
    /// Those of the database; what it cannot note now is noted the next time.
    pub fn note_killed(&mut self, proc: &Path) -> Result<(), StoreError> {
        let held = || -> rusqlite::Result<Vec<(String, String)>> {
            let mut statement =
                self.connection.prepare("SELECT id, holder FROM run WHERE holder IS NOT NULL")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let held = held().map_err(|source| self.failed(source))?;
        let life = |holder: &str| Holder::parse(holder).map_or(Life::Ended, |holder| holder.life(proc));
        let lives: Vec<Life> = held.iter().map(|(_, holder)| life(holder)).collect();
        let runs_that = |life: Life| {
            held.iter().zip(&lives).filter(move |(_, lived)| **lived == life).map(|(run, _)| run)
        };
        self.elsewhere = runs_that(Life::Unknown).map(|(id, _)| id.clone()).collect();
        let dead: Vec<&(String, String)> = runs_that(Life::Ended).collect();
        self.killed = dead.iter().map(|(id, _)| id.clone()).collect();
        if dead.is_empty() {
            return Ok(());
        }
        self.transact(|transaction| {
            dead.iter().try_for_each(|(id, holder)| {
                transaction
                    .execute(
                        "UPDATE run SET status = 'killed', holder = NULL WHERE id = ?1 AND holder = ?2",
                        params![id, holder],
                    )
                    .map(drop)
            })
        })
    }

    /// How a run stands for which the database has this word.
    pub(crate) fn state(&self, id: &str, word: &str) -> State {
        match State::parse(word) {
            State::Running if self.killed.contains(id) => State::Killed,
            State::Running if self.elsewhere.contains(id) => State::Elsewhere,
            state => state,
        }
    }

    fn line(&self, row: &Row<'_>) -> rusqlite::Result<RunLine> {
        let texts = |text: String| serde_json::from_str(&text).unwrap_or_default();
        let (id, state, experiments): (String, String, String) =
            (row.get("id")?, row.get("status")?, row.get("experiments")?);
        Ok(RunLine {
            state: self.state(&id, &state),
            id,
            started_ns: row.get("started_ns")?,
            started_at: row.get("started_at")?,
            elapsed_ns: row.get::<_, Option<i64>>("elapsed_ns")?.and_then(|ns| u64::try_from(ns).ok()),
            label: row.get("label")?,
            command: texts(row.get("command")?),
            rdsk_version: row.get("rdsk_version")?,
            kernel: row.get("kernel")?,
            experiments: experiments.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            targets: texts(row.get("targets")?),
            cells: u64::try_from(row.get::<_, i64>("cells")?).unwrap_or(0),
            read_bytes_per_s: row.get("read_bytes_per_s")?,
            write_bytes_per_s: row.get("write_bytes_per_s")?,
        })
    }
}
