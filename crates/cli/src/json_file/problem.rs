//! What is wrong with a place for a document, in words. It decides nothing.

use super::DocumentKind;
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::io;
use std::path::Path;

pub(super) fn refused(kind: DocumentKind, path: &Path, what: &str) -> Problem {
    Problem::new(
        ProblemKind::Refused,
        &format!("{}-refused", kind.code),
        format!("refusing to write {} to {}: it is {what}", kind.name, shown(path)),
        format!("name a new file after {}, or - for standard output", kind.flag),
    )
}

pub(super) fn unwritable(kind: DocumentKind, path: &Path, error: &io::Error) -> Problem {
    let flag = kind.flag;
    Problem::new(
        ProblemKind::Refused,
        &format!("{}-unwritable", kind.code),
        format!("cannot write {} to {}: {error}", kind.name, shown(path)),
        format!("name a file in a directory that you may write after {flag}, or - for standard output"),
    )
}

pub(super) fn beside_it(kind: DocumentKind, path: &Path, other: &Path) -> Problem {
    Problem::new(
        ProblemKind::Io,
        &format!("{}-beside", kind.code),
        format!("{} has appeared meanwhile, so {} was written to {}", shown(path), kind.name, shown(other)),
        format!("{} is not a document of this run and was left as it is; take the other file", shown(path)),
    )
}

pub(super) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}
