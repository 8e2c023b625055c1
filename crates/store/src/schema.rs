//! The tables, and how those of older versions become today's. The views are what docs/history.md promises to users of
//! sqlite3; the tables behind them may change with the version.

/// The version of the tables that this program writes (`PRAGMA user_version`).
pub const VERSION: u32 = 2;

/// `PRAGMA application_id`: the letters `rdsk`.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"rdsk");

/// What makes each version from the one before, beginning with an empty database.
pub(crate) const MIGRATIONS: [&str; VERSION as usize] = [VERSION_1, VERSION_2];

const VERSION_1: &str = "
CREATE TABLE run (
    id TEXT PRIMARY KEY NOT NULL,
    started_ns INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    elapsed_ns INTEGER,
    status TEXT NOT NULL,
    holder TEXT,
    label TEXT,
    command TEXT NOT NULL,
    rdsk_version TEXT NOT NULL,
    kernel TEXT,
    experiments TEXT NOT NULL,
    targets TEXT NOT NULL,
    cells INTEGER NOT NULL,
    read_bytes_per_s REAL,
    write_bytes_per_s REAL
) STRICT;
CREATE INDEX run_by_start ON run (started_ns);
CREATE INDEX run_by_label ON run (label) WHERE label IS NOT NULL;
CREATE INDEX run_held ON run (id) WHERE holder IS NOT NULL;

-- The Record without its cells: JSON, compressed by zlib.
CREATE TABLE document (
    run TEXT PRIMARY KEY NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    json BLOB NOT NULL
) STRICT;

CREATE TABLE cell (
    run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    experiment TEXT NOT NULL,
    op TEXT NOT NULL,
    pattern TEXT NOT NULL,
    path TEXT NOT NULL,
    sync TEXT NOT NULL,
    block_bytes INTEGER NOT NULL,
    queue_depth INTEGER NOT NULL,
    streams INTEGER NOT NULL,
    target TEXT,
    stop TEXT NOT NULL,
    bytes INTEGER,
    ops INTEGER,
    elapsed_ns INTEGER,
    bytes_per_s REAL,
    bytes_per_s_low REAL,
    bytes_per_s_high REAL,
    ops_per_s REAL,
    latency_mean_ns REAL,
    latency_p50_ns INTEGER,
    latency_p99_ns INTEGER,
    latency_p999_ns INTEGER,
    latency_max_ns INTEGER,
    to_stable_ns INTEGER,
    errors INTEGER NOT NULL,
    verdict TEXT,
    device_share REAL,
    json BLOB NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;

CREATE VIEW runs AS
SELECT id, started_at, status, label, command, rdsk_version, kernel, experiments, targets, cells,
       elapsed_ns / 1e9 AS elapsed_s, read_bytes_per_s, write_bytes_per_s
FROM run;

CREATE VIEW cells AS
SELECT run, position, id, experiment, target, op, pattern, path, sync, block_bytes, queue_depth, streams, stop, bytes, ops,
       elapsed_ns, bytes_per_s, bytes_per_s_low, bytes_per_s_high, ops_per_s, latency_mean_ns, latency_p50_ns,
       latency_p99_ns, latency_p999_ns, latency_max_ns, to_stable_ns, errors, verdict, device_share
FROM cell;
";

/// A run that has ended has its cells in its document, where what they have in common is compressed once. Only those of a run that
/// goes on have documents of their own, beside their columns, so that the view of cells reads no document.
const VERSION_2: &str = "
CREATE TABLE cell_document (
    run TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    json BLOB NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;
INSERT INTO cell_document (run, position, json) SELECT run, position, json FROM cell;
ALTER TABLE cell DROP COLUMN json;
";
