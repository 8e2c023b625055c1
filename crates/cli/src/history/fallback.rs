//! Where a Record goes that the history could not take: a new file in a directory for temporary files. It never replaces one.

use rdsk_model::Record;
use rdsk_report::Compactness;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes the Record as `--json` would, and gives the file.
///
/// # Errors
/// When no directory takes it.
pub(super) fn write(record: &Record) -> io::Result<PathBuf> {
    let document = rdsk_report::json(record, Compactness::Full);
    let mut last = None;
    for directory in [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()] {
        let path = directory.join(format!("rdsk-{}.json", record.id));
        match write_new(&path, &document) {
            Ok(()) => return Ok(path),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("at least one directory was tried"))
}

fn write_new(path: &Path, document: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(document.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half of a document helps nobody.
        let _ = fs::remove_file(path);
    }
    written
}
