//! Finding a free loop device for a file. It detaches nothing.

use crate::tool::output_of;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Attaches a free loop device to a file, and returns its node. The caller detaches it: for files whose names lead nowhere later, or end in
/// blanks, so that a [`LoopDevice`](super::LoopDevice) would not know them again.
///
/// # Errors
/// What losetup said.
pub fn attach_file(file: &Path) -> io::Result<PathBuf> {
    attach(Command::new("losetup").args(["--find", "--show"]).arg(file)).map(PathBuf::from)
}

/// Asks losetup for a free device. Another test may take the device that losetup has found, or be about to give it back; then it is
/// called again.
pub(super) fn attach(command: &mut Command) -> io::Result<String> {
    const ATTEMPTS: u32 = 50;
    let mut attempt = 0;
    loop {
        attempt += 1;
        match output_of(command) {
            Err(error) if attempt < ATTEMPTS && is_taken(&error.to_string()) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn is_taken(said: &str) -> bool {
    ["busy", "No such device", "temporarily unavailable"].iter().any(|words| said.contains(words))
}
