//! The Record that a word on the command line names: a file that an earlier run wrote with `--json`, or a run in the history; and any
//! document of a run that a user names. It never waits for a pipe, reads no device, takes no more memory than a document of a run may
//! need, and looks at no target.

use crate::history::{self, Picked};
use crate::out;
use rdsk_model::{Problem, ProblemKind, READABLE_SCHEMAS, Record};
use rdsk_units::{Bytes, printable};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The Record that a word on the command line names: that of a regular file, else that of the run whose id, beginning of an id,
/// or label the word is, or the newest for the word `last`. `asked` is the command or flag, and `code` that of the problem.
///
/// # Errors
/// A usage error when there is none, or this version does not understand it; what is wrong with the history.
pub(crate) fn named(word: &str, asked: &str, code: &'static str) -> Result<Record, Problem> {
    let path = Path::new(word);
    if crate::ranks::parts::is_directory(path) {
        return crate::ranks::parts::merged(path, asked, code, |part| read(part, asked, code));
    }
    if path.is_file() {
        if let Ok(Picked::Record(run)) = history::pick(word) {
            out::warning(&format!(
                "{} is a file, which is taken, and names run {} of the history too",
                printable(word),
                printable(&run.id)
            ));
        }
        return read(path, asked, code);
    }
    let problem = |why: &str, hint: &str| {
        Problem::new(ProblemKind::Usage, code, format!("{asked} {}: {why}", printable(word)), hint)
    };
    match history::pick(word)? {
        Picked::Record(record) => Ok(*record),
        Picked::Several(ids) => Err(problem(
            &format!("it begins the ids of several runs: {}", ids.join(", ")),
            "write more of the id",
        )),
        // What is there, and is no file, says itself why it is none.
        Picked::Nothing(_) | Picked::NoHistory if path.exists() => read(path, asked, code),
        Picked::Nothing(history) => Err(problem(
            &format!("there is no such file, and no such run in {}", printable(&history.to_string_lossy())),
            "rdsk list shows the runs; or name a file that rdsk wrote with --json",
        )),
        Picked::NoHistory => {
            Err(problem("there is no such file, and no history", "name a file that rdsk wrote with --json"))
        }
    }
}

/// Reads the Record; `asked` is what named the file, and `code` that of the problem.
///
/// # Errors
/// A usage error when it is no regular file, cannot be read, or holds no Record that this version understands.
pub(crate) fn read(path: &Path, asked: &str, code: &'static str) -> Result<Record, Problem> {
    let shown = printable(&path.to_string_lossy());
    let problem = |why: String| {
        let hint = "name a file that rdsk wrote with --json";
        Problem::new(ProblemKind::Usage, code, format!("{asked} {shown}: {why}"), hint)
    };
    let document = read_document(path).map_err(|error| problem(error.to_string()))?;
    let of_fio = || {
        let message = format!("{asked} {shown}: it is what fio printed, and no Record of rdsk");
        let hint = format!(
            "rdsk import {shown} shows it and keeps it in the history; with -o RECORD.json it is written as a Record"
        );
        Problem::new(ProblemKind::Usage, code, message, hint)
    };
    let record: Result<Record, _> = serde_json::from_slice(&document);
    // A document of another version may also lack a field that this one needs.
    let schema = match &record {
        Ok(record) => Some(record.schema.clone()),
        Err(_) => schema_of(&document),
    };
    if let Some(other) = schema.filter(|schema| !READABLE_SCHEMAS.contains(&schema.as_str())) {
        let readable = READABLE_SCHEMAS.join(" and ");
        return Err(problem(format!(
            "its schema is {}, and this version reads {readable}",
            printable(&other)
        )));
    }
    record.map_err(|error| match rdsk_exchange::is_of_fio(&document) {
        true => of_fio(),
        false => problem(format!("it is not a Record of rdsk: {error}")),
    })
}

/// The schema that a document names.
fn schema_of(document: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(document).ok()?;
    value.get("schema")?.as_str().map(str::to_owned)
}

/// A larger file is no document of a run: ten passes over 500 000 positions are some 300 MiB of JSON.
const MAX_BYTES: u64 = 1 << 30;

/// All of a regular file.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than any document of a run.
pub(crate) fn read_document(path: &Path) -> io::Result<Vec<u8>> {
    let facts = std::fs::metadata(path)?;
    // A pipe may never end, and a device holds no document.
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // What is too large is reported before it is read.
    if facts.len() > MAX_BYTES {
        return Err(too_large());
    }
    limited(File::open(path)?)
}

/// All of standard input.
///
/// # Errors
/// When it cannot be read, or is larger than any document of a run.
pub(crate) fn read_stdin() -> io::Result<Vec<u8>> {
    limited(io::stdin().lock())
}

fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut document = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut document)?;
    if document.len() as u64 > MAX_BYTES { Err(too_large()) } else { Ok(document) }
}

fn too_large() -> io::Error {
    io::Error::other(format!("it is larger than {}, and so no document of a run", Bytes(MAX_BYTES)))
}
