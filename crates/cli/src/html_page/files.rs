//! Figures as files of a directory: SVG, or PNG by rsvg-convert (librsvg) and the fonts of this machine. It creates files and never replaces
//! one, and draws nothing itself: a drawing library with its text shaping took longer to build than all disk models together.

use crate::out;
use rdsk_html::{Drawing, Figure};
use rdsk_model::{Problem, ProblemKind};
use rdsk_units::printable;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{fs, thread};

/// Writes each figure as `ID.EXTENSION` and says which ones there were nothing to draw for.
///
/// # Errors
/// When the directory cannot be made, a file is there already or cannot be written whole, or a picture cannot be made.
pub(super) fn write_all(
    directory: &Path,
    extension: &str,
    figures: &[Figure],
    picture: impl Fn(&Figure) -> Result<Option<Vec<u8>>, Problem>,
) -> Result<(), Problem> {
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let path_of = |figure: &Figure| directory.join(format!("{}.{extension}", figure.id));
    // All of them or none: what is there is found before the first is written.
    if let Some(there) = figures.iter().map(path_of).find(|path| fs::symlink_metadata(path).is_ok()) {
        return Err(Problem::new(
            ProblemKind::Refused,
            "figure-exists",
            format!("refusing to replace {}", printable(&there.to_string_lossy())),
            "name a new directory, or remove the old figures",
        ));
    }
    for figure in figures {
        match (picture(figure)?, &figure.drawing) {
            (Some(bytes), _) => create(&path_of(figure), &bytes)?,
            (None, Drawing::Nothing { why }) => out::warning(&format!("{} is not drawn: {why}", figure.id)),
            (None, Drawing::Plot(_)) => {}
        }
    }
    Ok(())
}

fn create(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let opened = fs::OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = opened.map_err(|error| unwritable(path, &error))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // It is ours, and half a figure is none. The first error is the one to report.
        let _ = fs::remove_file(path);
        Problem { kind: ProblemKind::Io, ..unwritable(path, &error) }
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let (kind, hint) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (ProblemKind::Io, "name a directory with room")
        }
        _ => (ProblemKind::Refused, "name a directory that you may write"),
    };
    let message = format!("cannot write {}: {error}", printable(&path.to_string_lossy()));
    Problem::new(kind, "figure-unwritable", message, hint)
}

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
