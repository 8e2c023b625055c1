//! All printing of rdsk. Data goes to standard output, talk to standard error; a reader that has left (`| head -1`) is
//! a quiet end and not an error. Nothing else in the workspace prints but test tools.

use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::io::{self, Write};

/// Whether the reader of standard output is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Everything was written.
    There,
    /// The pipe is closed; nobody will read more.
    Gone,
}

/// Writes a text to standard output, with a line end where it has none.
///
/// # Errors
/// When the text cannot be written for another reason than that nobody reads: a full disk, a closed descriptor.
pub(crate) fn data(text: &str) -> Result<Reader, Problem> {
    let ending = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(ending.as_bytes()))
        .and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Problem::new(
            ProblemKind::Io,
            "stdout",
            format!("cannot write to standard output: {error}"),
            "point standard output at a place with room, or use --json FILE",
        )),
    }
}

/// Says a problem on standard error: one `error:` line and, where something helps, one `hint:` line.
pub(crate) fn problem(problem: &Problem) {
    write_stderr(&problem_text(problem));
}

/// Says a warning on standard error.
pub(crate) fn warning(text: &str) {
    write_stderr(&format!("warning: {}\n", one_line(text)));
}

fn problem_text(problem: &Problem) -> String {
    let mut text = format!("error: {}\n", one_line(&problem.message));
    if let Some(hint) = &problem.hint {
        text.push_str("hint: ");
        text.push_str(&one_line(hint));
        text.push('\n');
    }
    text
}

/// Messages quote names that come from outside; a line end in one of them must not begin a line of ours.
fn one_line(text: &str) -> String {
    printable(&text.replace('\n', " "))
}

/// In one write, so that lines of two threads do not mix. When standard error is closed there is nobody left to tell.
fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_two_lines_whatever_it_quotes() {
        let problem = Problem::new(ProblemKind::Refused, "x", "no \u{1b}[2J\nerror: fake", "do\nthis");
        assert_eq!(problem_text(&problem), "error: no \\x1b[2J error: fake\nhint: do this\n");
        let plain = Problem::plain(ProblemKind::Io, "x", "broken");
        assert_eq!(problem_text(&plain), "error: broken\n");
    }
}
