//! Where a document goes: the JSON, or another form of a Record. A file is checked before anything is measured, and replaced in one
//! step at the end, where it is checked again: what appeared there meanwhile stays, and the document goes beside it. It never writes
//! to a device other than a terminal, `/dev/null` or `/dev/full`, never replaces a file that is not such a document of rdsk, and what
//! was measured only by what was measured.

mod measured;
mod problem;

use crate::cli_args::JsonPlace;
use crate::same_place::is_database;
use crate::{history, out};
use problem::{beside_it, refused, shown, unwritable};
use rdsk_model::{Problem, ProblemKind};
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::iter;
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

/// Names that are tried beside a place that something else has.
const MAX_BESIDE: u32 = 99;

/// A place that was found writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    /// A pipe or character device, written as it is.
    Stream(PathBuf),
    /// A regular file, put there by renaming a finished one; whether it replaces such a document that was there at the start.
    File {
        path: PathBuf,
        replaces: bool,
    },
}

impl Sink {
    /// Checks the place, without changing what is there.
    ///
    /// # Errors
    /// When it cannot be written, is one of the targets, or holds something that is not JSON.
    pub(crate) fn prepare(place: &JsonPlace, targets: &[String]) -> Result<Self, Problem> {
        Self::prepare_for(JSON, place, targets)
    }

    /// As [`Self::prepare`], for a document of another kind.
    ///
    /// # Errors
    /// Likewise, and when it holds something that is not of this kind.
    pub(crate) fn prepare_for(
        kind: DocumentKind,
        place: &JsonPlace,
        targets: &[String],
    ) -> Result<Self, Problem> {
        let path = match place {
            JsonPlace::Stdout => return Ok(Self::Stdout),
            JsonPlace::File(path) => path,
        };
        if history::file().is_some_and(|history| is_database(path, &history)) {
            return Err(Problem::new(
                ProblemKind::Usage,
                &format!("{}-is-history", kind.code),
                format!("{} {} is the history", kind.flag, shown(path)),
                format!("name another file after {}", kind.flag),
            ));
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return new_file(kind, path),
            Err(error) => return Err(unwritable(kind, path, &error)),
        };
        let file_type = metadata.file_type();
        if file_type.is_char_device() && !is_harmless(metadata.rdev()) {
            return Err(refused(kind, path, "a device"));
        }
        if file_type.is_char_device() || file_type.is_fifo() {
            return Ok(Self::Stream(path.clone()));
        }
        if !file_type.is_file() {
            let what = if file_type.is_dir() { "a directory" } else { "not a regular file" };
            return Err(refused(kind, path, what));
        }
        if targets.iter().any(|target| is_same(target, &metadata)) {
            return Err(Problem::new(
                ProblemKind::Usage,
                &format!("{}-is-target", kind.code),
                format!("{} {} is the target itself", kind.flag, shown(path)),
                format!("name another file after {}", kind.flag),
            ));
        }
        if !is_replaceable(kind, path).map_err(|error| unwritable(kind, path, &error))? {
            return Err(refused(kind, path, "an existing file that is not such a document of rdsk"));
        }
        // The file that a symlink names is replaced, and the symlink stays.
        existing_file(kind, &fs::canonicalize(path).map_err(|error| unwritable(kind, path, &error))?)
    }

    /// Writes the document and a newline.
    ///
    /// # Errors
    /// When the disk is full or the place is gone; when something else is there now, so that the document was written beside it; when
    /// a measured run is there, and the document is none. A closed pipe is no error.
    pub(crate) fn write(&self, document: &str) -> Result<(), Problem> {
        self.write_as(JSON, document)
    }

    /// As [`Self::write`], for a document of another kind.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn write_as(&self, kind: DocumentKind, document: &str) -> Result<(), Problem> {
        let document = format!("{}\n", document.trim_end());
        let (path, written) = match self {
            Self::Stdout => return out::data(&document),
            Self::Stream(path) => (path, streamed(path, &document).map(|()| Went::There)),
            Self::File { path, replaces } => (path, placed(kind, path, &document, *replaces)),
        };
        match written {
            Ok(Went::Nowhere) => {
                Err(refused(kind, path, "a measured run, which only another measured run replaces"))
            }
            Ok(Went::Beside(other)) => Err(beside_it(kind, path, &other)),
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Problem { kind: ProblemKind::Io, ..unwritable(kind, path, &error) })
            }
            _ => Ok(()),
        }
    }
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
    let printed = if sink == Some(&Sink::Stdout) { Ok(()) } else { out::data(&page()) };
    written.and(printed)
}

/// Writes the document of a command that failed. What it failed of is told last and decides its exit code, so what is wrong with the
/// document is a warning.
pub(crate) fn output_failure(sink: Option<&Sink>, document: impl FnOnce() -> String) {
    if let Some(Err(problem)) = sink.map(|sink| sink.write(&document())) {
        out::warning(&problem.message);
    }
}

fn new_file(kind: DocumentKind, path: &Path) -> Result<Sink, Problem> {
    // The document would replace a dangling symlink, and whoever created that meant something else.
    if fs::symlink_metadata(path).is_ok() {
        return Err(refused(kind, path, "a dangling symlink"));
    }
    if path.file_name().is_none() {
        return Err(refused(kind, path, "not a file name"));
    }
    temporary(path).map_err(|error| unwritable(kind, path, &error))?;
    Ok(Sink::File { path: path.to_owned(), replaces: false })
}

fn existing_file(kind: DocumentKind, path: &Path) -> Result<Sink, Problem> {
    // Opening without truncating changes nothing, and fails as a later write would; so does making a file beside it.
    let writable = OpenOptions::new().write(true).open(path).and_then(|_| temporary(path));
    writable.map_err(|error| unwritable(kind, path, &error))?;
    Ok(Sink::File { path: path.to_owned(), replaces: true })
}

/// Whether a file is empty or looks like a document of rdsk. Looking like JSON is not enough: Cargo.toml and every INI
/// file start with `[`, and package.json with `{`.
fn is_replaceable(kind: DocumentKind, path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4096).read_to_end(&mut start)?;
    let text: String = String::from_utf8_lossy(&start).split_whitespace().collect();
    let has_mark = kind.marks.is_empty() || kind.marks.iter().any(|mark| text.contains(mark));
    Ok(start.is_empty() || text.starts_with(kind.start) && has_mark)
}

/// Terminals, `/dev/null` and `/dev/full` (admin-guide/devices.txt). Writing to another character device may be writing to
/// memory, to flash, or to a watchdog.
fn is_harmless(rdev: u64) -> bool {
    match (rustix::fs::major(rdev), rustix::fs::minor(rdev)) {
        (1, minor) => minor == 3 || minor == 7,
        (major, _) => matches!(major, 4 | 5 | 136..=143),
    }
}

/// Where a document went.
enum Went {
    There,
    /// Something else is there.
    Beside(PathBuf),
    /// A measured run is there, and stays.
    Nowhere,
}

/// Writes a finished document to its place: over a document of this kind if one was there at the start, else only where nothing is.
fn placed(kind: DocumentKind, path: &Path, document: &str, replaces: bool) -> io::Result<Went> {
    let may_replace = || replaces && is_still(kind, path);
    let old = may_replace().then(|| fs::metadata(path).ok()).flatten();
    let finished = finished(path, document, old)?;
    // Writing may have taken long, and another run may have put its document there meanwhile.
    if !may_replace() {
        return placed_where_free(finished, path);
    }
    if kind.code == JSON.code && measured::stays(path, document) {
        return Ok(Went::Nowhere);
    }
    finished.persist(path)?;
    Ok(Went::There)
}

/// Gives a finished file the name of its place, or, if something has that, another beside it. What appears there in this moment stays.
fn placed_where_free(mut finished: NamedTempFile, path: &Path) -> io::Result<Went> {
    for place in iter::once(path.to_owned()).chain(names_beside(path)) {
        match finished.persist_noclobber(&place) {
            Ok(_) if place == path => return Ok(Went::There),
            Ok(_) => return Ok(Went::Beside(place)),
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => finished = refused.file,
            Err(refused) => return Err(refused.error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Whether a place still holds what may be replaced.
fn is_still(kind: DocumentKind, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
        && is_replaceable(kind, path).unwrap_or(false)
}

/// Writes a document to a hidden file in the directory of its place, whose owner and mode are those of the file that it replaces. It
/// is removed unless it is given its name.
fn finished(path: &Path, document: &str, old: Option<fs::Metadata>) -> io::Result<NamedTempFile> {
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

/// Names beside `path` of which one is free: `r-2.json`, `r-3.json`.
fn names_beside(path: &Path) -> impl Iterator<Item = PathBuf> {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_os_string();
    let (stem, extension) = (part(path.file_stem()), path.extension().map(OsStr::to_os_string));
    (2..=MAX_BESIDE).map(move |number| {
        let mut name = stem.clone();
        name.push(format!("-{number}"));
        if let Some(extension) = &extension {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    })
}

fn streamed(path: &Path, document: &str) -> io::Result<()> {
    // Opening a pipe that nobody reads would block for ever; this way it fails (ENXIO). Writing to one that is read may
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

fn is_same(target: &str, metadata: &fs::Metadata) -> bool {
    fs::metadata(target).is_ok_and(|other| other.dev() == metadata.dev() && other.ino() == metadata.ino())
}

#[cfg(test)]
mod tests;
