//! Reads a document of a run that a user names: a regular file, or standard input. It never waits for a pipe, reads no device, and
//! takes no more memory than a document of a run may need.

use rdsk_units::Bytes;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A larger file is no document of a run: ten passes over 500 000 positions are some 300 MiB of JSON.
const MAX_BYTES: u64 = 1 << 30;

/// All of a regular file.
///
/// # Errors
/// When it cannot be read, is no regular file, or is larger than any document of a run.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
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
