//! An SVG figure as PNG, by rsvg-convert (librsvg) and the fonts of this machine. It draws nothing itself: a drawing library with
//! its text shaping took longer to build than all disk models together.

use rdsk_model::{Problem, ProblemKind};
use std::io::{self, Write as _};
use std::process::{Command, Output, Stdio};
use std::thread;

/// The program and the package of Debian that has it.
const PROGRAM: &str = "rsvg-convert";
/// Pixels of the file for each pixel of the figure: sharp on paper and on dense screens.
const ZOOM: &str = "2";

/// The figure as PNG.
///
/// # Errors
/// When the program is not installed, or cannot draw the figure.
pub(super) fn png(svg: String) -> Result<Vec<u8>, Problem> {
    let output = convert(svg).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Problem::new(
            ProblemKind::Refused,
            "no-png",
            format!("PNG figures need {PROGRAM}, which is not installed"),
            "install it with a font (apt-get install librsvg2-bin fonts-dejavu-core), or write --svg",
        ),
        _ => failed(&error),
    })?;
    if output.status.success() && !output.stdout.is_empty() {
        return Ok(output.stdout);
    }
    Err(failed(&String::from_utf8_lossy(&output.stderr).trim()))
}

fn convert(svg: String) -> io::Result<Output> {
    let mut command = Command::new(PROGRAM);
    command.args(["--zoom", ZOOM, "--format", "png"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().expect("the child's standard input is a pipe");
    // Beside the reading, since a pipe holds less than either picture. What the program leaves unread it says in its own words.
    let writing = thread::spawn(move || drop(input.write_all(svg.as_bytes())));
    let output = child.wait_with_output();
    drop(writing.join());
    output
}

fn failed(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(
        ProblemKind::Io,
        "no-png",
        format!("{PROGRAM} makes no PNG of a figure: {}", rdsk_units::printable(&error.to_string())),
        "write --svg, which needs no pixels",
    )
}
