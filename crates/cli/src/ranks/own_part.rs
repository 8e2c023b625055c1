//! The part of this rank while it goes on: kept after each turn, and at once when a signal comes, as mpirun kills one second later. It
//! measures nothing.

use super::parts::Parts;
use rdsk_model::{CellRecord, Event, Problem, ProblemKind, RankRun, Record, Status, StopFlag, Watch};
use rdsk_ranks::Myself;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether a signal came.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
struct SoFar {
    record: Option<Record>,
    cells: BTreeMap<usize, CellRecord>,
    /// The whole part is in place, and nothing replaces it.
    is_over: bool,
}

/// The part of this rank so far. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct OwnPart {
    parts: Option<Parts>,
    myself: Myself,
    stop: StopFlag,
    so_far: Arc<Mutex<SoFar>>,
}

impl OwnPart {
    /// One without figures; without `parts`, none is kept.
    pub(super) fn new(parts: Option<Parts>, myself: Myself, stop: StopFlag) -> Self {
        Self { parts, myself, stop, so_far: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the part kept as soon as a signal comes: a rank that stores none ended without a word.
    pub(super) fn keep_on_signal(&self) {
        let part = self.clone();
        let keep = move || {
            while !part.lock().is_over {
                if part.stop.is_raised() {
                    return part.put(&part.lock());
                }
                std::thread::sleep(LOOK);
            }
        };
        // Without the thread, the part is kept at the end.
        let _ = std::thread::Builder::new().name("part".into()).spawn(keep);
    }

    /// Puts the part so far in place. What cannot be kept now is kept later, or at the end, which says what is wrong.
    fn put(&self, so_far: &SoFar) {
        let (Some(parts), Some(record)) = (&self.parts, &so_far.record) else { return };
        if so_far.is_over {
            return;
        }
        let status = self.stop.is_raised().then_some(Status::Interrupted);
        let run = RankRun { status, ..self.myself.so_far() };
        let why = format!("rank {} of {} did not come to its end", run.rank, run.ranks);
        let hint = "rdsk show DIR merges the parts of all ranks";
        let part = Record {
            cells: so_far.cells.values().cloned().collect(),
            status: status.unwrap_or(Status::Failed),
            error: Some(Problem::new(ProblemKind::Io, "rank-unfinished", why, hint)),
            ranks: vec![run.clone()],
            ..record.clone()
        };
        let _ = parts.put(run.rank, &part);
    }

    /// Puts the whole part in place.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn finish(&self, whole: &Record) -> io::Result<()> {
        let mut so_far = self.lock();
        so_far.is_over = true;
        self.parts.as_ref().map_or(Ok(()), |parts| parts.put(self.myself.so_far().rank, whole))
    }
}

impl Watch for OwnPart {
    fn event(&mut self, event: &Event<'_>) {
        let mut so_far = self.lock();
        match *event {
            Event::Planned { record } => so_far.record = Some(record.clone()),
            Event::TurnEnded { position, cells } => _ = so_far.cells.insert(position, cells.get(position)),
            _ => return,
        }
        self.put(&so_far);
    }
}
