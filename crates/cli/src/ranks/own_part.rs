//! The part of this rank while it goes on: kept after each turn, and at once when its end is announced; test files go then, too. It
//! measures nothing.
//!
//! mpirun of Open MPI 4 ends a job by SIGCONT, and one second later by SIGTERM and SIGKILL with some 40 ms in between (seen by strace under
//! 4.1.4), so that SIGCONT of the parent is the word that counts.

use super::parts::Parts;
use crate::interrupt;
use rdsk_model::{CellRecord, Event, Problem, ProblemKind, RankRun, Record, Status, StopFlag, Watch};
use rdsk_ranks::Myself;
use signal_hook::consts::SIGCONT;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::{Origin, WithOrigin};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a signal is the end: SIGCONT of the parent is, which never stopped this process.
fn is_end(signal: &Origin) -> bool {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    signal.signal != SIGCONT || signal.process.as_ref().map(|sender| sender.pid) == parent
}

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

    /// Ends the run as soon as a signal does or mpirun announces it, has the part kept and test files removed: a rank that stores none ended
    /// without a word.
    pub(super) fn keep_on_signal(&self) {
        let part = self.clone();
        // Without these, the part is kept at the end.
        let signals = interrupt::that_end_a_run().chain([SIGCONT]);
        let Ok(mut signals) = SignalsInfo::<WithOrigin>::new(signals) else { return };
        let keep = move || {
            if signals.forever().any(|signal| is_end(&signal)) && !part.lock().is_over {
                part.stop.raise();
                // Neither waits for the other on a disk that is busy.
                let removing = std::thread::Builder::new().name("remover".into());
                let removing = removing.spawn(rdsk_targets::remove_all_test_files_now);
                part.put(&part.lock());
                drop(removing.map(std::thread::JoinHandle::join));
            }
        };
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
