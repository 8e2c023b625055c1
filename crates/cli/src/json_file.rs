//! Where a document goes: the JSON, or another form of a Record. A file is checked before anything is measured, and replaced in one
//! step at the end. It never writes to a device other than a terminal, `/dev/null` or `/dev/full`, and never replaces a file that
//! is not such a document of rdsk.

use crate::cli_args::JsonPlace;
use crate::same_place::is_database;
use crate::{history, out};
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
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

/// A place that was found writable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    /// A pipe or character device, written as it is.
    Plain(PathBuf),
    /// A regular file, new or replaced by renaming a finished one over it.
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
    /// When the disk is full or the place is gone. A closed pipe is no error.
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
            Self::Plain(path) => (path, plain(path, &document)),
            Self::Replaced(path) => (path, replaced(path, &document)),
            Self::InPlace(path) => (path, in_place(path, &document)),
        };
        match written {
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

fn new_file(kind: DocumentKind, path: &Path) -> Result<Sink, Problem> {
    // The document would replace a dangling symlink, and whoever created that meant something else.
    if fs::symlink_metadata(path).is_ok() {
        return Err(refused(kind, path, "a dangling symlink"));
    }
    if path.file_name().is_none() {
        return Err(refused(kind, path, "not a file name"));
    }
    try_directory(path).map_err(|error| unwritable(kind, path, &error))?;
    Ok(Sink::Replaced(path.to_owned()))
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

fn replaced(path: &Path, document: &str) -> io::Result<()> {
    let temporary = beside(path);
    let result = new_temporary(&temporary)
        .and_then(|mut file| {
            if let Ok(old) = fs::metadata(path) {
                // Under sudo it stays its owner's; who is not root may give it to a group of his own at most.
                let given = fchown(&file, Some(old.uid()), Some(old.gid()));
                let _ = given.or_else(|_| fchown(&file, None, Some(old.gid())));
                file.set_permissions(old.permissions())?;
            }
            file.write_all(document.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one to report; a temporary file that cannot be removed has an unmistakable name.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn in_place(path: &Path, document: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(document.as_bytes())?;
    file.sync_all()
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

fn refused(kind: DocumentKind, path: &Path, what: &str) -> Problem {
    Problem::new(
        ProblemKind::Refused,
        &format!("{}-refused", kind.code),
        format!("refusing to write {} to {}: it is {what}", kind.name, shown(path)),
        format!("name a new file after {}, or - for standard output", kind.flag),
    )
}

fn unwritable(kind: DocumentKind, path: &Path, error: &io::Error) -> Problem {
    let flag = kind.flag;
    Problem::new(
        ProblemKind::Refused,
        &format!("{}-unwritable", kind.code),
        format!("cannot write {} to {}: {error}", kind.name, shown(path)),
        format!("name a file in a directory that you may write after {flag}, or - for standard output"),
    )
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn sink(path: &Path) -> Result<Sink, Problem> {
        Sink::prepare(&JsonPlace::File(path.to_owned()), &[])
    }

    #[test]
    fn a_new_file_is_made_only_when_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        let sink = sink(&path).unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
        sink.write("{}").unwrap();
        sink.write("{\"a\":1}").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_document_that_is_replaced_stays_its_owners() {
        if !rdsk_testkit::requires(&[rdsk_testkit::Need::Root]) {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        let sink = sink(&path).unwrap();
        sink.write("{}").unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_533)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        super::replaced(&path, "{\"a\":1}").unwrap();
        let new = fs::metadata(&path).unwrap();
        assert_eq!((new.uid(), new.gid(), new.mode() & 0o777), (65_534, 65_533, 0o640));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}");
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_no_hang() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(sink(&path).unwrap().write("{}").unwrap_err().kind, ProblemKind::Io);
        // With a reader a document larger than the pipe gets through.
        let reading = path.clone();
        let reader = std::thread::spawn(move || fs::read_to_string(reading).unwrap());
        let document = "x".repeat(1 << 20);
        while sink(&path).unwrap().write(&document).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(reader.join().unwrap().len(), document.len() + 1);
    }

    #[test]
    fn only_json_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        for (content, replaceable) in [
            ("", true),
            ("{\n  \"schema\": \"rdsk.record/1\",", true),
            ("data", false),
            ("\0\0", false),
            ("[package]\nname = \"mine\"\n", false),
            ("{ \"name\": \"web\" }", false),
            (" ".repeat(300).as_str(), false),
        ] {
            let path = scratch.path().join("file");
            fs::write(&path, content).unwrap();
            assert_eq!(sink(&path).is_ok(), replaceable, "{content:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_symlink_stays_and_its_file_is_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        let (file, link) = (scratch.path().join("file"), scratch.path().join("link"));
        fs::write(&file, "{\"schema\":\"rdsk.record/1\"}").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        sink(&link).unwrap().write("[1]").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "[1]\n");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600, "what was private stays private");
        fs::remove_file(&file).unwrap();
        assert_eq!(sink(&link).unwrap_err().code, "json-refused");
    }

    #[test]
    fn what_cannot_be_written_is_refused_before() {
        let scratch = tempfile::tempdir().unwrap();
        assert_eq!(sink(scratch.path()).unwrap_err().code, "json-refused");
        let missing = sink(&scratch.path().join("no/such/file")).unwrap_err();
        assert_eq!((missing.kind, missing.code.as_str()), (ProblemKind::Refused, "json-unwritable"));
        assert_eq!(sink(Path::new("/dev/zero")).unwrap_err().code, "json-refused", "a device");
        assert_eq!(sink(Path::new("/dev/null")), Ok(Sink::Plain("/dev/null".into())));
    }

    #[test]
    fn the_target_is_never_the_document() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("target");
        fs::write(&path, "{}").unwrap();
        let target = scratch.path().join("./target").to_string_lossy().into_owned();
        let problem = Sink::prepare(&JsonPlace::File(path), &[target]).unwrap_err();
        assert_eq!(problem.kind, ProblemKind::Usage);
    }
}
