//! Keeps a run: its beginning, its cells as far as they are, and its end. Each is one transaction, so that a kill loses what
//! came after the last one and nothing else.

use crate::document::pack;
use crate::error::StoreError;
use crate::holder::Holder;
use crate::list::State;
use crate::open::{History, Patience};
use rdsk_model::{CellRecord, Record, Target, Untold};
use rusqlite::{Transaction, named_params, params};

/// Letters of a ULID.
const ID_LETTERS: usize = 26;

/// A cell of a run that goes on: its position among the run's cells, and what it has seen so far.
pub type CellSoFar = (usize, CellRecord);

/// A row of the table of cells.
struct CellRow<'a> {
    position: usize,
    cell: &'a CellRecord,
    /// The name of its first target.
    target: Option<&'a str>,
}

/// A cell as a document of its own.
type CellDocument = (usize, Vec<u8>);

/// The names of a Record's targets, in their order; what was named from the directory of that moment, by its whole path, since
/// histories are read elsewhere.
fn target_names(record: &Record) -> Vec<&str> {
    record.targets.iter().map(lasting_name).collect()
}

fn lasting_name(target: &Target) -> &str {
    let Some(path) = target.path.as_deref().filter(|path| path.starts_with('/')) else {
        return &target.name;
    };
    match path.rsplit_once('/') {
        _ if target.name.starts_with('/') => &target.name,
        // The file that rdsk made in a directory is gone.
        Some((directory, _)) if target.made_by_rdsk && !directory.is_empty() => directory,
        Some(_) if target.made_by_rdsk => "/",
        _ => path,
    }
}

impl History {
    /// Keeps the beginning of a run that `holder` measures. `record` holds what is known so far.
    ///
    /// # Errors
    /// Those of the database, and a Record that cannot be kept.
    pub fn begin(&mut self, record: &Record, holder: &Holder) -> Result<(), StoreError> {
        self.put(record, State::Running, Some(holder))
    }

    /// Keeps the cells of a run that goes on, in place of what was kept of them. `record` is that of
    /// [`History::begin`].
    ///
    /// # Errors
    /// Those of the database, and a cell that cannot be kept.
    pub fn save_cells(&mut self, record: &Record, cells: &[CellSoFar]) -> Result<(), StoreError> {
        let names = target_names(record);
        // All that takes time is done before other processes have to wait.
        let documents = cells.iter().map(|(position, cell)| document(record, *position, cell));
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        self.transact(|transaction| {
            for (position, cell) in cells {
                insert_cell(transaction, &record.id, &row(*position, cell, &names))?;
            }
            documents.iter().try_for_each(|document| insert_document(transaction, &record.id, document))?;
            sum_up(transaction, &record.id)
        })
    }

    /// Keeps a run that has ended, whether or not its beginning was kept.
    ///
    /// # Errors
    /// Those of the database, and a Record that cannot be kept.
    pub fn finish(&mut self, record: &Record) -> Result<(), StoreError> {
        self.put(record, State::of(record.status), None)?;
        // The documents of its cells were larger than that of the run. Who cannot give back their room leaves it to the next one.
        let patience = self.patience;
        let _ = self.wait(Patience::Short).and_then(|()| self.give_back_room());
        self.wait(patience)
    }

    /// Keeps a Record from elsewhere, unless there is a run of its id; whether there was none.
    ///
    /// # Errors
    /// Those of the database, and a Record that cannot be kept, such as one whose id is none of rdsk.
    pub fn add(&mut self, record: &Record) -> Result<bool, StoreError> {
        let is_id = |id: &str| {
            id.len() == ID_LETTERS
                && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        };
        if !is_id(&record.id) {
            let why = "its id is not 26 capital letters and digits".to_owned();
            return Err(StoreError::Unfit { id: record.id.clone(), why });
        }
        let count = self.transact(|transaction| {
            transaction
                .query_row("SELECT count(*) FROM run WHERE id = ?1", params![record.id], |row| row.get(0))
        });
        let count: i64 = count?;
        if count > 0 {
            return Ok(false);
        }
        self.finish(record).map(|()| true)
    }

    fn put(&mut self, record: &Record, state: State, holder: Option<&Holder>) -> Result<(), StoreError> {
        let unfit = |why: String| StoreError::Unfit { id: record.id.clone(), why };
        let started: jiff::Timestamp = record
            .started_at
            .parse()
            .map_err(|_| unfit("its started_at is no time as RFC 3339 writes it".into()))?;
        let started_ns = i64::try_from(started.as_nanosecond())
            .map_err(|_| unfit("its started_at is too far from today".into()))?;
        // All that takes time is done before other processes have to wait.
        let names = target_names(record);
        let cells = || (0..).zip(&record.cells);
        let (whole, of_cells) = if state == State::Running {
            let documents = cells().map(|(position, cell)| document(record, position, cell));
            let mut without_cells = record.clone();
            without_cells.cells.clear();
            (pack(&without_cells), documents.collect::<Result<Vec<_>, _>>()?)
        } else {
            (pack(record), Vec::new())
        };
        let whole = whole.map_err(|error| unfit(error.to_string()))?;
        self.transact(|transaction| {
            insert_run(transaction, record, (started_ns, state, holder))?;
            transaction.execute(
                "INSERT INTO document (run, json) VALUES (?1, ?2)
                 ON CONFLICT (run) DO UPDATE SET json = excluded.json",
                params![record.id, whole],
            )?;
            transaction.execute("DELETE FROM cell WHERE run = ?1", params![record.id])?;
            transaction.execute("DELETE FROM cell_document WHERE run = ?1", params![record.id])?;
            for (position, cell) in cells() {
                insert_cell(transaction, &record.id, &row(position, cell, &names))?;
            }
            of_cells.iter().try_for_each(|document| insert_document(transaction, &record.id, document))?;
            sum_up(transaction, &record.id)
        })
    }
}

fn row<'a>(position: usize, cell: &'a CellRecord, names: &[&'a str]) -> CellRow<'a> {
    let target = cell.workload.targets.first().and_then(|&index| names.get(index as usize)).copied();
    CellRow { position, cell, target }
}

fn document(record: &Record, position: usize, cell: &CellRecord) -> Result<CellDocument, StoreError> {
    let json =
        pack(cell).map_err(|error| StoreError::Unfit { id: record.id.clone(), why: error.to_string() })?;
    Ok((position, json))
}

fn insert_document(
    transaction: &Transaction<'_>,
    run: &str,
    (position, json): &CellDocument,
) -> rusqlite::Result<()> {
    let mut statement = transaction
        .prepare_cached("INSERT OR REPLACE INTO cell_document (run, position, json) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![run, whole(*position as u64), json]).map(drop)
}

fn insert_run(
    transaction: &Transaction<'_>,
    record: &Record,
    (started_ns, state, holder): (i64, State, Option<&Holder>),
) -> rusqlite::Result<()> {
    let names = serde_json::to_string(&target_names(record)).unwrap_or_default();
    let command = serde_json::to_string(&record.command).unwrap_or_default();
    transaction.execute(
        "INSERT INTO run (id, started_ns, started_at, elapsed_ns, status, holder, label, command, rdsk_version, kernel, targets,
                          experiments, cells)
         VALUES (:id, :started_ns, :started_at, :elapsed_ns, :status, :holder, :label, :command, :rdsk_version, :kernel,
                 :targets, '', 0)
         ON CONFLICT (id) DO UPDATE SET
             started_ns = excluded.started_ns, started_at = excluded.started_at, elapsed_ns = excluded.elapsed_ns,
             status = excluded.status, holder = excluded.holder, label = excluded.label, command = excluded.command,
             rdsk_version = excluded.rdsk_version, kernel = excluded.kernel, targets = excluded.targets",
        named_params! {
            ":id": record.id,
            ":started_ns": started_ns,
            ":started_at": record.started_at,
            ":elapsed_ns": whole(record.elapsed_ns).filter(|_| state != State::Running),
            ":status": state.as_str(),
            ":holder": holder.map(Holder::text),
            ":label": record.label,
            ":command": command,
            ":rdsk_version": record.rdsk_version,
            ":kernel": record.host.as_ref().map(|host| &host.kernel),
            ":targets": names,
        },
    )?;
    Ok(())
}

/// What the row of a run says of its cells: how many they are, which experiments, and for each direction the sequential rate of the
/// headline, which is the figure that the page shows first. A run without one has the highest mean rate instead. Both are of cells whose
/// bytes the device moved: what memory moved, or nothing, says nothing about a target.
fn sum_up(transaction: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE run SET
             cells = (SELECT count(*) FROM cell WHERE run = ?1),
             experiments = (SELECT coalesce(group_concat(experiment, ','), '') FROM
                 (SELECT experiment FROM cell WHERE run = ?1 GROUP BY experiment ORDER BY min(position))),
             read_bytes_per_s =
                 coalesce(
                     (SELECT bytes_per_s FROM cell WHERE run = ?1 AND op = 'read' AND verdict = 'device'
                          AND experiment = 'headline' AND pattern = 'sequential' AND sync = 'none'
                          AND bytes_per_s IS NOT NULL ORDER BY position LIMIT 1),
                     (SELECT max(bytes_per_s) FROM cell WHERE run = ?1 AND op = 'read' AND verdict = 'device')),
             write_bytes_per_s =
                 coalesce(
                     (SELECT bytes_per_s FROM cell WHERE run = ?1 AND op = 'write' AND verdict = 'device'
                          AND experiment = 'headline' AND pattern = 'sequential' AND sync = 'none'
                          AND bytes_per_s IS NOT NULL ORDER BY position LIMIT 1),
                     (SELECT max(bytes_per_s) FROM cell WHERE run = ?1 AND op = 'write' AND verdict = 'device'))
         WHERE id = ?1",
        params![run],
    )?;
    Ok(())
}

fn insert_cell(transaction: &Transaction<'_>, run: &str, row: &CellRow<'_>) -> rusqlite::Result<()> {
    let CellRow { position, cell, target } = row;
    let (workload, result) = (&cell.workload, &cell.result);
    let latency = result.latency_ns.as_ref();
    let verdict = cell.verdict.as_ref();
    let word = |word| workload.word(word).unwrap_or("unknown");
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO cell (
             run, position, id, experiment, op, pattern, path, sync, block_bytes, queue_depth, streams, target, stop, bytes, ops,
             elapsed_ns, bytes_per_s, bytes_per_s_low, bytes_per_s_high, ops_per_s, latency_mean_ns, latency_p50_ns,
             latency_p99_ns, latency_p999_ns, latency_max_ns, to_stable_ns, errors, verdict, device_share)
         VALUES (:run, :position, :id, :experiment, :op, :pattern, :path, :sync, :block_bytes, :queue_depth, :streams, :target,
                 :stop, :bytes, :ops, :elapsed_ns, :rate, :rate_low, :rate_high, :ops_per_s, :mean, :p50, :p99, :p999, :max,
                 :to_stable_ns, :errors, :verdict, :device_share)",
    )?;
    statement.execute(named_params! {
        ":run": run,
        ":position": whole(*position as u64),
        ":id": cell.id,
        ":experiment": cell.experiment.as_str(),
        ":op": workload.direction(),
        ":pattern": word(Untold::Pattern),
        ":path": word(Untold::Path),
        ":sync": word(Untold::Sync),
        ":block_bytes": whole(workload.block_bytes).unwrap_or(i64::MAX),
        ":queue_depth": workload.queue_depth,
        ":streams": workload.streams,
        ":target": target,
        ":stop": result.stop.as_str(),
        ":bytes": result.bytes.and_then(whole),
        ":ops": result.ops.and_then(whole),
        ":elapsed_ns": result.elapsed_ns.and_then(whole),
        ":rate": result.bytes_per_s.map(|rate| rate.mean),
        ":rate_low": result.bytes_per_s.and_then(|rate| rate.low),
        ":rate_high": result.bytes_per_s.and_then(|rate| rate.high),
        ":ops_per_s": result.ops_per_s.map(|rate| rate.mean),
        ":mean": latency.and_then(|latency| latency.mean),
        ":p50": latency.and_then(|latency| latency.p50).and_then(whole),
        ":p99": latency.and_then(|latency| latency.p99).and_then(whole),
        ":p999": latency.and_then(|latency| latency.p999).and_then(whole),
        ":max": latency.and_then(|latency| latency.max).and_then(whole),
        ":to_stable_ns": result.to_stable_ns.and_then(whole),
        ":errors": whole(result.errors.len() as u64),
        ":verdict": verdict.map(|verdict| verdict.code.as_str()),
        ":device_share": verdict.and_then(|verdict| verdict.device_share),
    })?;
    Ok(())
}

/// A count as the database holds it; `None` beyond 2^63.
fn whole(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}
