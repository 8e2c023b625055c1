//! A Record from a file that an earlier run wrote with `--json`. It looks at no target.

use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_units::printable;
use std::path::Path;

/// The Record that a word on the command line names; `asked` is the command or flag, and `code` that of the problem.
///
/// # Errors
/// A usage error when there is none, or this version does not understand it.
pub(crate) fn named(word: &str, asked: &str, code: &'static str) -> Result<Record, Problem> {
    read(Path::new(word), asked, code)
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
    let facts = std::fs::metadata(path).map_err(|error| problem(error.to_string()))?;
    // A pipe may never end, and a device holds no Record.
    if !facts.is_file() {
        return Err(problem("it is not a regular file".into()));
    }
    let document = std::fs::read(path).map_err(|error| problem(error.to_string()))?;
    serde_json::from_slice(&document).map_err(|error| problem(format!("it is not a Record of rdsk: {error}")))
}
