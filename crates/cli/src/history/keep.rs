//! Keeps what is measured in the history: a Watch beside the progress line. It writes between the turns of cells, never while
//! one is measured, and never makes a run fail.

use super::{ID_CHARACTERS, PROC, Place, place};
use crate::interrupt::{LastAct, is_ignored};
use crate::out;
use crate::progress::Progress;
use rdsk_model::{CellRecord, Event, Record, Watch};
use rdsk_report::Compactness;
use rdsk_store::{Found, History, Holder, Patience, StoreError};
use rdsk_units::printable;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Cells are saved no more often than this, and so that saving takes a fiftieth of the time at most.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const PAUSES_PER_SAVE: u32 = 50;

/// How often a wait for the history looks for a signal.
const LOOK_FOR_SIGNAL: Duration = Duration::from_millis(50);
const SIGNAL_CAME: &str = "a signal came before the history had this run";

/// Whether a Record is somewhere already when the history is to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    InDocument,
    Nowhere,
}

impl Written {
    /// Of whether a document with the whole Record was written.
    pub(crate) fn when(is_written: bool) -> Self {
        if is_written { Self::InDocument } else { Self::Nowhere }
    }
}

/// Shows progress, and keeps the run.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) progress: Progress,
    place: Place,
    /// Open while a run goes on and nothing went wrong.
    history: Option<History>,
    /// The run, once there is something to keep.
    begun: Option<Record>,
    /// Positions of the cells that were measured since the last save.
    unsaved: BTreeSet<usize>,
    /// When the next save is due.
    due: Instant,
    /// Whether the user knows why nothing is kept.
    is_given_up: bool,
}

impl Keeper {
    /// Nothing is opened before there is something to keep.
    pub(crate) fn new(progress: Progress) -> Self {
        Self {
            progress,
            place: place::place(),
            history: None,
            begun: None,
            unsaved: BTreeSet::new(),
            due: Instant::now() + MIN_PAUSE,
            is_given_up: false,
        }
    }

    /// The command line that shows the run, if it is in the history: with the letters of its id that `rdsk list` has, if no other
    /// run's id begins so.
    pub(crate) fn show_command(&self, record: &Record) -> Option<String> {
        let history = self.history.as_ref()?;
        let short: String = record.id.chars().take(ID_CHARACTERS).collect();
        let is_enough = matches!(history.find(&short), Ok(Found::Run(run)) if run.id == record.id);
        Some(super::show_command(if is_enough { &short } else { &record.id }))
    }

    fn begin(&mut self, record: &Record) {
        let begun = match &self.place {
            Place::Off => return,
            Place::Unknown => {
                return self.give_up("neither RDSK_HISTORY nor XDG_DATA_HOME nor HOME names a place");
            }
            // The run does not wait for others: what cannot be noted now is kept at the end.
            Place::File(path) => History::open_within(path, Patience::Short).and_then(|mut history| {
                history.note_killed(Path::new(PROC))?;
                if let Some(holder) = Holder::this(Path::new(PROC)) {
                    history.begin(record, &holder)?;
                }
                Ok(history)
            }),
        };
        self.begun = Some(record.clone());
        match begun {
            Ok(history) => self.history = Some(history),
            Err(error) if is_hopeless(&error) => self.give_up(&printable(&error.to_string())),
            // The end of the run tries again, and saves the Record elsewhere if that fails too.
            Err(_) => {}
        }
    }

    fn give_up(&mut self, why: &str) {
        self.is_given_up = true;
        self.progress.tell(&format!("this run is not kept: {why}"));
    }

    fn save(&mut self, cell: &dyn Fn(usize) -> CellRecord) {
        let (Some(history), Some(record)) = (&mut self.history, &self.begun) else { return };
        let began = Instant::now();
        let cells: Vec<(usize, CellRecord)> =
            self.unsaved.iter().map(|&position| (position, cell(position))).collect();
        // Without success the cells stay unsaved. The end of the run tries again, and shows what lasts.
        match history.save_cells(record, &cells) {
            Ok(()) => self.unsaved.clear(),
            Err(error) if error.is_busy() => {}
            Err(_) => self.history = None,
        }
        self.due = Instant::now() + MIN_PAUSE.max(began.elapsed() * PAUSES_PER_SAVE);
    }

    /// What saves the Record elsewhere if a signal ends the process before the history has it, which may have to wait for others;
    /// `None` where the history is not to have it.
    pub(crate) fn instead(&self, record: &Arc<Record>, written: Written) -> Option<LastAct> {
        let is_wanted = matches!(self.place, Place::File(_)) && self.begun.is_some() && !self.is_given_up;
        let record = is_wanted.then(|| Arc::clone(record))?;
        Some(Box::new(move || save_elsewhere(SIGNAL_CAME, &record, written)))
    }

    /// Keeps the Record of a run that has ended. Trouble is reported and changes nothing else.
    pub(crate) fn finish(mut self, record: &Record, written: Written) {
        let Place::File(path) = &self.place else { return };
        if self.begun.is_none() || self.is_given_up {
            return;
        }
        if let Err(error) = put(self.history.take(), path, record) {
            tell(&error, path, record, written);
        }
    }
}

impl Watch for Keeper {
    fn event(&mut self, event: &Event<'_>) {
        self.progress.event(event);
        match *event {
            Event::Planned { record } => self.begin(record),
            Event::TurnEnded { position, cells } => {
                self.unsaved.insert(position);
                if self.history.is_some() && Instant::now() >= self.due {
                    self.save(&|position| cells.get(position));
                }
            }
            _ => {}
        }
    }
}

/// Keeps the Record of a command that has nothing to show before its end, and that handles no signal meanwhile.
pub(crate) fn keep_finished(record: &Record, written: Written) {
    match place::place() {
        Place::Off => {}
        Place::Unknown => {
            out::warning(
                "this run is not kept: neither RDSK_HISTORY nor XDG_DATA_HOME nor HOME names a place",
            );
        }
        Place::File(path) => match put_before_signal(&path, record) {
            None => save_elsewhere(SIGNAL_CAME, record, written),
            Some(Ok(())) => {}
            Some(Err(error)) if is_hopeless(&error) => {
                out::warning(&printable(&format!("this run is not kept: {error}")));
            }
            Some(Err(error)) => tell(&error, &path, record, written),
        },
    }
}

/// Keeps a Record; `None` if a signal came before the history had it, which may have to wait for others.
fn put_before_signal(path: &Path, record: &Record) -> Option<Result<(), StoreError>> {
    let has_come = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)) {
        // A signal that cannot be handled does what it does elsewhere.
        let _ = flag::register(signal, Arc::clone(&has_come));
    }
    let (sender, done) = mpsc::channel();
    let (file, copy) = (path.to_owned(), record.clone());
    // The process may end before this thread does, which the history survives as it survives a kill.
    let keeping = std::thread::Builder::new().name("history".into()).spawn(move || {
        let _ = sender.send(put(None, &file, &copy));
    });
    if keeping.is_err() {
        return Some(put(None, path, record));
    }
    loop {
        match done.recv_timeout(LOOK_FOR_SIGNAL) {
            Ok(kept) => return Some(kept),
            Err(RecvTimeoutError::Timeout) if !has_come.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Keeps a Record that was read from a document; a run of the same id stays as it is.
pub(crate) fn keep_imported(record: &Record) {
    let id = printable(&record.id);
    let Place::File(path) = place::place() else { return };
    match History::open(&path).and_then(|mut history| history.add(record)) {
        Ok(true) => {}
        Ok(false) => out::warning(&format!("run {id} is in the history already, and stays as it is")),
        Err(error) => out::warning(&printable(&format!("the record is not kept: {error}"))),
    }
}

/// Whether there can be no history at this place, as against trouble with the one that is there.
fn is_hopeless(error: &StoreError) -> bool {
    use StoreError::{Database, Unfit, Unreadable};
    !matches!(error, Database { .. } | Unreadable { .. } | Unfit { .. }) && !error.is_full()
}

fn put(history: Option<History>, path: &Path, record: &Record) -> Result<(), StoreError> {
    // A file that a program removed meanwhile takes the run, and no process could find it there.
    let history = history.filter(|_| path.exists());
    let mut history = history.map_or_else(|| History::open(path), Ok)?;
    history.wait(Patience::Long)?;
    history.finish(record)
}

/// Says that the history did not take a Record, and where the Record is instead.
fn tell(error: &StoreError, history: &Path, record: &Record, written: Written) {
    // SQLite calls many things an I/O error that are only a lack of room for one of its files.
    let has_room = rustix::fs::statvfs(history).is_ok_and(|facts| facts.f_bavail > 0);
    let error = if has_room { error.to_string() } else { format!("{error}, since its disk is full") };
    save_elsewhere(&error, record, written);
}

/// Writes the Record as `--json` would to a new file in a directory for temporary files, and gives the file.
fn write_elsewhere(record: &Record) -> io::Result<PathBuf> {
    let document = rdsk_report::json(record, Compactness::Full);
    let name = format!("rdsk-{}", record.id);
    let written = |directory: &Path| -> io::Result<PathBuf> {
        let mut file = tempfile::Builder::new();
        let mut file = file.prefix(&name).suffix(".json").rand_bytes(0).tempfile_in(directory)?;
        file.write_all(document.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file.keep()?.1)
    };
    let others = ["/var/tmp", "/dev/shm"].into_iter().map(Path::new);
    others.fold(written(&std::env::temp_dir()), |first, directory| first.or_else(|_| written(directory)))
}

/// Says why the history has no copy of a Record, and where the Record is instead.
fn save_elsewhere(why: &str, record: &Record, written: Written) {
    if written == Written::InDocument {
        out::warning(&format!("{why}; the record is only in the document that was written"));
        return;
    }
    match write_elsewhere(record) {
        Ok(file) => out::warning(&format!(
            "{why}; the record is in {} instead, and rdsk show draws it",
            file.display()
        )),
        Err(error) => {
            out::warning(&format!("{why}; the record is lost, since no other place takes it: {error}"));
        }
    }
}
