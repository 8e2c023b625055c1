//! A page in the reader's browser, by xdg-open. It writes nothing.

use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program of the desktop that shows a file, and the package of Debian that has it.
const PROGRAM: &str = "xdg-open";

/// Shows the page.
///
/// # Errors
/// When the program is not installed, or shows nothing. The page is there all the same.
pub(super) fn open(page: &Path) -> Result<(), Problem> {
    let shown = printable(&page.to_string_lossy());
    let problem =
        |message: String, hint: String| Err(Problem::new(ProblemKind::Io, "not-shown", message, &hint));
    let by_hand = format!("open {shown} in a browser");
    // A name that begins with a minus would be an option.
    let absolute = std::path::absolute(page).unwrap_or_else(|_| page.to_path_buf());
    match Command::new(PROGRAM).arg(absolute).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => problem(format!("{PROGRAM} does not show {shown} ({status})"), by_hand),
        Err(error) if error.kind() == io::ErrorKind::NotFound => problem(
            format!("--open needs {PROGRAM}, which is not installed; the page is in {shown}"),
            format!("{by_hand}, or install it (apt-get install xdg-utils)"),
        ),
        Err(error) => problem(format!("{PROGRAM} does not start: {error}"), by_hand),
    }
}
