//! Where a document goes: the JSON, or another form of a Record. A file is checked before anything is measured, and replaced in one
//! step at the end by a finished one. It never writes to a device other than a terminal, `/dev/null` or `/dev/full`, never replaces a
//! file that is not such a document of rdsk, and what was measured only by what was measured.

use crate::cli_args::JsonPlace;
use crate::same_place::is_database;
use crate::{history, out};
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What kind of document goes to a place: how messages call it, and which files it may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentKind {
    /// The first part of the codes of its problems.
    pub(crate) code: &'static str,
    /// What messages call it.
    pub(crate) name: &'static str,
    /// The flag that names its place.
    pub(crate) flag: &'static str,
    /// How every such document begins, without white space.
    pub(crate) start: &'static str,
    /// Of these, likewise, each has one near its beginning; none if the beginning says enough.
    pub(crate) marks: &'static [&'static str],
}

/// A document with a schema.
pub(crate) const JSON: DocumentKind =
    DocumentKind { code: "json", name: "the JSON", flag: "--json", start: "{\"schema\":\"rdsk.", marks: &[] };

/// A page with figures.
pub(crate) const PAGE: DocumentKind = DocumentKind {
    code: "report",
    name: "the page",
    flag: "--report or -o",
    start: "<!doctypehtml><!--rdskreport-->",
    marks: &[],
};

impl DocumentKind {
    fn problem(self, kind: ProblemKind, code: &str, message: String, hint: &str) -> Problem {
        Problem::new(kind, &format!("{}-{code}", self.code), message, hint)
    }

    /// The place is something else that the line names.
    fn taken(self, path: &Path, code: &str, what: &str) -> Problem {
        let hint = format!("name another file after {}", self.flag);
        self.problem(ProblemKind::Usage, code, format!("{} {} is {what}", self.flag, shown(path)), &hint)
    }

    fn refused(self, path: &Path, what: &str) -> Problem {
        let message = format!("refusing to write {} to {}: it is {what}", self.name, shown(path));
        let hint = format!("name a new file after {}, or - for standard output", self.flag);
        self.problem(ProblemKind::Refused, "refused", message, &hint)
    }

    fn unwritable(self, path: &Path, error: &io::Error) -> Problem {
        let flag = self.flag;
        let hint =
            format!("name a file in a directory that you may write after {flag}, or - for standard output");
        let message = format!("cannot write {} to {}: {error}", self.name, shown(path));
        self.problem(ProblemKind::Refused, "unwritable", message, &hint)
    }

    fn not_written(self, path: &Path, error: &io::Error) -> Problem {
        Problem { kind: ProblemKind::Io, ..self.unwritable(path, error) }
    }

    fn beside(self, path: &Path, other: &Path) -> Problem {
        let (path, other) = (shown(path), shown(other));
        let message = format!("{path} has appeared meanwhile, so {} was written to {other}", self.name);
        let hint = format!("{path} is not a document of this run and was left as it is; take the other file");
        self.problem(ProblemKind::Io, "beside", message, &hint)
    }

    /// Whether a file is empty or looks like a document of this kind. Looking like JSON is not enough: Cargo.toml and every INI file
    /// start with `[`, and package.json with `{`.
    fn may_replace(self, path: &Path) -> io::Result<bool> {
        let mut start = Vec::new();
        File::open(path)?.take(4096).read_to_end(&mut start)?;
        let text: String = String::from_utf8_lossy(&start).split_whitespace().collect();
        let has_mark = self.marks.is_empty() || self.marks.iter().any(|mark| text.contains(mark));
        Ok(start.is_empty() || text.starts_with(self.start) && has_mark)
    }
}

/// A place that was found writable, for a document of this kind.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    kind: DocumentKind,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Stdout,
    /// A pipe or character device, written as it is.
    Stream(PathBuf),
    /// A regular file, put there by renaming a finished one.
    File(PathBuf),
}

impl Sink {
    /// Checks the place, without changing what is there.
    ///
    /// # Errors
    /// When it cannot be written, is one of the targets, or holds something that is not of this kind.
    pub(crate) fn prepare(
        kind: DocumentKind,
        place: &JsonPlace,
        targets: &[String],
    ) -> Result<Self, Problem> {
        let way = match place {
            JsonPlace::Stdout => Way::Stdout,
            JsonPlace::File(path) => way_to(kind, path, targets)?,
        };
        Ok(Self { kind, way })
    }

    /// The same of a place that may not be named.
    ///
    /// # Errors
    /// As [`Sink::prepare`].
    pub(crate) fn wanted(
        kind: DocumentKind,
        place: Option<&JsonPlace>,
        targets: &[String],
    ) -> Result<Option<Self>, Problem> {
        place.map(|place| Self::prepare(kind, place, targets)).transpose()
    }

    /// Whether the document takes the place of the page.
    pub(crate) const fn is_stdout(&self) -> bool {
        matches!(self.way, Way::Stdout)
    }

    /// Writes the document and a newline.
    ///
    /// # Errors
    /// When the disk is full or the place is gone; when something else is there now, so that the document was written beside it; when
    /// a measured run is there, and the document is none. A closed pipe is no error.
    pub(crate) fn write(&self, document: &str) -> Result<(), Problem> {
        let document = format!("{}\n", document.trim_end());
        match &self.way {
            Way::Stdout => out::data(&document),
            Way::File(path) => placed(self.kind, path, &document),
            Way::Stream(path) => match streamed(path, &document) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    Err(self.kind.not_written(path, &error))
                }
                _ => Ok(()),
            },
        }
    }
}

fn way_to(kind: DocumentKind, path: &Path, targets: &[String]) -> Result<Way, Problem> {
    if history::file().is_some_and(|history| is_database(path, &history)) {
        return Err(kind.taken(path, "is-history", "the history"));
    }
    let unwritable = |error: io::Error| kind.unwritable(path, &error);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
        // The document would replace a dangling symlink, which was made for another purpose.
        Err(_) if fs::symlink_metadata(path).is_ok() => {
            return Err(kind.refused(path, "a dangling symlink"));
        }
        Err(_) if path.file_name().is_none() => return Err(kind.refused(path, "not a file name")),
        Err(_) => {
            temporary(path).map_err(unwritable)?;
            return Ok(Way::File(path.to_owned()));
        }
    };
    let file_type = metadata.file_type();
    if file_type.is_char_device() && !is_harmless(metadata.rdev()) {
        return Err(kind.refused(path, "a device"));
    }
    if file_type.is_char_device() || file_type.is_fifo() {
        return Ok(Way::Stream(path.to_owned()));
    }
    if !file_type.is_file() {
        return Err(kind.refused(path, if file_type.is_dir() { "a directory" } else { "not a regular file" }));
    }
    let is_it = |other: Metadata| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino());
    if targets.iter().any(|target| fs::metadata(target).is_ok_and(is_it)) {
        return Err(kind.taken(path, "is-target", "the target itself"));
    }
    if !kind.may_replace(path).map_err(unwritable)? {
        return Err(kind.refused(path, "an existing file that is not such a document of rdsk"));
    }
    // The file that a symlink names is replaced, and the symlink stays. Opening without truncating changes nothing, and fails as a later
    // write would; so does making a file beside it.
    let path = fs::canonicalize(path).map_err(unwritable)?;
    let writable = OpenOptions::new().write(true).open(&path).and_then(|_| temporary(&path));
    writable.map_err(unwritable)?;
    Ok(Way::File(path))
}

/// Writes the document if one was requested, and prints the page unless the document takes its place. The page is there, too, where
/// the document cannot be written.
///
/// # Errors
/// When either cannot be written.
pub(crate) fn output(
    sink: Option<&Sink>,
    document: impl FnOnce() -> String,
    page: impl FnOnce() -> String,
) -> Result<(), Problem> {
    let written = sink.map_or(Ok(()), |sink| sink.write(&document()));
    let printed = if sink.is_some_and(Sink::is_stdout) { Ok(()) } else { out::data(&page()) };
    written.and(printed)
}

/// Writes the document of a command that failed. What it failed of is reported last and decides its exit code, so what is wrong with the
/// document is a warning.
pub(crate) fn output_failure(sink: Option<&Sink>, document: impl FnOnce() -> String) {
    if let Some(Err(problem)) = sink.map(|sink| sink.write(&document())) {
        out::warning(&problem.message);
    }
}

/// Terminals, `/dev/null` and `/dev/full` (admin-guide/devices.txt). Writing to another character device may be writing to
/// memory, to flash, or to a watchdog.
fn is_harmless(rdev: u64) -> bool {
    matches!((rustix::fs::major(rdev), rustix::fs::minor(rdev)), (1, 3 | 7) | (4 | 5 | 136..=143, _))
}

/// Writes a finished document over one of this kind, or where nothing is. What else has appeared there meanwhile stays, and the document
/// keeps the name under which it was written.
fn placed(kind: DocumentKind, path: &Path, document: &str) -> Result<(), Problem> {
    let old = fs::symlink_metadata(path).ok();
    let old = old.filter(|old| old.is_file() && kind.may_replace(path).unwrap_or(false));
    let has_old = old.is_some();
    if has_old && kind.code == JSON.code && stays(path, document) {
        return Err(kind.refused(path, "a measured run, which only another measured run replaces"));
    }
    let not_written = |error: io::Error| kind.not_written(path, &error);
    let finished = finished(path, document, old).map_err(not_written)?;
    let placed = if has_old { finished.persist(path) } else { finished.persist_noclobber(path) };
    match placed {
        Ok(_) => Ok(()),
        Err(refused) if !has_old && refused.error.kind() == io::ErrorKind::AlreadyExists => {
            let (_, other) = refused.file.keep().map_err(|kept| not_written(kept.error))?;
            Err(kind.beside(path, &other))
        }
        Err(refused) => Err(not_written(refused.error)),
    }
}

/// Writes a document to a hidden file in the directory of its place, whose owner and mode are those of the file that it replaces. It
/// is removed unless it is given its name.
fn finished(path: &Path, document: &str, old: Option<Metadata>) -> io::Result<NamedTempFile> {
    let mut file = temporary(path)?;
    if let Some(old) = old {
        // Under sudo it stays its owner's; who is not root may give it to a group of his own at most.
        let given = fchown(&file, Some(old.uid()), Some(old.gid()));
        let _ = given.or_else(|_| fchown(&file, None, Some(old.gid())));
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(document.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn streamed(path: &Path, document: &str) -> io::Result<()> {
    // Opening a pipe that no process reads would block for ever; this way it fails (ENXIO). Writing to one that is read may
    // block again, as long as its reader does.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of open(2) fits its argument");
    let mut file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    file.write_all(document.as_bytes())
}

/// A new file with a hidden name in the directory of `path`, readable as far as the umask lets it.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".rdsk-document-").suffix(".tmp").permissions(mode).tempfile_in(directory)
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// The keys that say whether something was measured. Everything else in a document is passed over and takes no memory.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    cells: Vec<KeptCell>,
    /// The runs of `rdsk dd`, which has no cells where neither end is storage.
    #[serde(default)]
    copies: Vec<IgnoredAny>,
    /// The Records of a comparison that made its runs itself.
    #[serde(default)]
    records: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct KeptCell {
    #[serde(default)]
    result: KeptResult,
}

#[derive(Default, Deserialize)]
struct KeptResult {
    ops: Option<u64>,
    /// That I/O failed is a result, too.
    #[serde(default)]
    errors: Vec<IgnoredAny>,
}

impl Document {
    /// Whether this document may replace one that holds a run: the cells of a run that ended before its first I/O hold nothing.
    fn is_measured(&self) -> bool {
        let did_something =
            |cell: &KeptCell| cell.result.ops.is_some_and(|ops| ops > 0) || !cell.result.errors.is_empty();
        self.cells.iter().any(did_something) || !self.copies.is_empty() || !self.records.is_empty()
    }

    /// Whether nothing is lost with it.
    fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.copies.is_empty() && self.records.is_empty()
    }
}

/// Whether the file, a JSON document, stays because it holds what was measured and `document` does not. The other forms of a Record
/// can be made again from it.
fn stays(path: &Path, document: &str) -> bool {
    !is_measured(document) && !is_expendable(path)
}

fn is_measured(document: &str) -> bool {
    serde_json::from_str(document).is_ok_and(|document: Document| document.is_measured())
}

/// Whether the file holds no run, not even its cells. One that cannot be read to its end may hold a part of one.
fn is_expendable(path: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(true);
        }
        // What lies behind the document does not matter.
        let mut reader = serde_json::Deserializer::from_reader(BufReader::new(file));
        Ok(Document::deserialize(&mut reader)?.is_empty())
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests;
