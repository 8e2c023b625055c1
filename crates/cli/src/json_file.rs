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
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::iter;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

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
    Plain(PathBuf),
    /// A regular file that is not there yet.
    New(PathBuf),
    /// A regular file that holds such a document, replaced by renaming a finished one over it.
    Replaced(PathBuf),
    /// A regular file in a directory that takes no new files: written in place.
    InPlace(PathBuf),
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
            return Ok(Self::Plain(path.clone()));
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
            Self::Plain(path) => (path, plain(path, &document).map(|()| Went::There)),
            Self::New(path) => (path, placed(path, &document, None)),
            Self::Replaced(path) => (path, placed(path, &document, Some(kind))),
            Self::InPlace(path) => (path, in_place(kind, path, &document)),
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
    try_directory(path).map_err(|error| unwritable(kind, path, &error))?;
    Ok(Sink::New(path.to_owned()))
}

fn existing_file(kind: DocumentKind, path: &Path) -> Result<Sink, Problem> {
    // Opening without truncating changes nothing, and fails as a later write would.
    OpenOptions::new().write(true).open(path).map_err(|error| unwritable(kind, path, &error))?;
    Ok(match try_directory(path) {
        Ok(()) => Sink::Replaced(path.to_owned()),
        Err(_) => Sink::InPlace(path.to_owned()),
    })
}

/// Creates and removes a file beside `path`, the only sure way to know that one can be created.
fn try_directory(path: &Path) -> io::Result<()> {
    let temporary = beside(path);
    new_temporary(&temporary)?;
    fs::remove_file(&temporary)
}

/// Whether a file is empty or looks like a document of rdsk. Looking like JSON is not enough: Cargo.toml and every INI
/// file start with `[`, and package.json with `{`.
fn is_replaceable(kind: DocumentKind, path: &Path) -> io::Result<bool> {
    holds_document(kind, &File::open(path)?)
}

fn holds_document(kind: DocumentKind, file: &File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(4096).read_to_end(&mut start)?;
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
fn placed(path: &Path, document: &str, replaces: Option<DocumentKind>) -> io::Result<Went> {
    let temporary = beside(path);
    let still = || replaces.is_some_and(|kind| is_still(kind, path));
    if still() && measured::stays(replaces, path, document) {
        return Ok(Went::Nowhere);
    }
    let old = still().then(|| fs::metadata(path).ok()).flatten();
    let result = finished(&temporary, document, old).and_then(|()| {
        // Writing may have taken long, and another run may have put its document there meanwhile.
        if !still() {
            return moved(&temporary, path, document);
        }
        if measured::stays(replaces, path, document) {
            return Ok(Went::Nowhere);
        }
        fs::rename(&temporary, path).map(|()| Went::There)
    });
    if !matches!(result, Ok(Went::There | Went::Beside(_))) {
        // The first error is the one to report; a temporary file that cannot be removed has an unmistakable name.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Whether a place still holds what may be replaced.
fn is_still(kind: DocumentKind, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
        && is_replaceable(kind, path).unwrap_or(false)
}

/// Writes a document to a file of its own, whose owner and mode are those of the file that it replaces.
fn finished(temporary: &Path, document: &str, old: Option<fs::Metadata>) -> io::Result<()> {
    let mut file = new_temporary(temporary)?;
    if let Some(old) = old {
        // Under sudo it stays its owner's; who is not root may give it to a group of his own at most.
        let given = fchown(&file, Some(old.uid()), Some(old.gid()));
        let _ = given.or_else(|_| fchown(&file, None, Some(old.gid())));
        file.set_permissions(old.permissions())?;
    }
    file.write_all(document.as_bytes())?;
    file.sync_all()
}

/// Gives a finished file the name of its place, or, if something has that, another beside it.
fn moved(temporary: &Path, path: &Path, document: &str) -> io::Result<Went> {
    for place in iter::once(path.to_owned()).chain(free_names(path)) {
        match rename_to_free(temporary, &place, document) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Ok(()) if place == path => return Ok(Went::There),
            renamed => return renamed.map(|()| Went::Beside(place)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Gives a finished file a name that nothing has: whatever appears there in this moment stays (`AlreadyExists`).
fn rename_to_free(temporary: &Path, path: &Path, document: &str) -> io::Result<()> {
    let renamed = renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE);
    renamed_or_written(renamed, temporary, path, document)
}

/// Where renaming does not know the flag (rename(2): kernels before 3.15, NFS, 9P, FUSE servers), the file is written again.
fn renamed_or_written(
    renamed: Result<(), Errno>,
    temporary: &Path,
    path: &Path,
    document: &str,
) -> io::Result<()> {
    match renamed {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            write_new(path, document)?;
            let _ = fs::remove_file(temporary);
            Ok(())
        }
        renamed => renamed.map_err(Into::into),
    }
}

/// Writes a file that is not there yet: `O_EXCL` sees to it that it is ours, which has its name before it is whole.
fn write_new(path: &Path, document: &str) -> io::Result<()> {
    let mut file = new_temporary(path)?;
    let written = file.write_all(document.as_bytes()).and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(path)))
}

/// Names beside `path` of which one is free: `r-2.json`, `r-3.json`.
fn free_names(path: &Path) -> impl Iterator<Item = PathBuf> {
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

/// Nothing can be created beside such a file, so that a document that may not go there is lost.
fn in_place(kind: DocumentKind, path: &Path, document: &str) -> io::Result<Went> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    if !(file.metadata()?.is_file() && holds_document(kind, &file)?) {
        return Err(io::Error::other("something else is there by now"));
    }
    if measured::stays(Some(kind), path, document) {
        return Ok(Went::Nowhere);
    }
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(document.as_bytes())?;
    file.sync_all().map(|()| Went::There)
}

fn plain(path: &Path, document: &str) -> io::Result<()> {
    // Opening a pipe that nobody reads would block for ever; this way it fails (ENXIO). Writing to one that is read may
    // block again, as long as its reader does.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag of open(2) fits its argument");
    let mut file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    file.write_all(document.as_bytes())
}

fn new_temporary(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o666).open(path)
}

/// A hidden name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.rdsk-{}.tmp", std::process::id()))
}

fn is_same(target: &str, metadata: &fs::Metadata) -> bool {
    fs::metadata(target).is_ok_and(|other| other.dev() == metadata.dev() && other.ino() == metadata.ino())
}

#[cfg(test)]
mod tests;
