//! Runs the system's tools for the rest of the room, and waits for the kernel. It never guesses what went wrong: the error
//! is the tool's own message.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a tool to its end and returns its standard output, trimmed.
///
/// # Errors
/// That of starting it, or one that quotes its standard error when it did not exit with 0.
pub(crate) fn output_of(command: &mut Command) -> io::Result<String> {
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot run {}: {error}", command.get_program().display()))
    })?;
    if !output.status.success() {
        let talk = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{command:?}: {}: {}", output.status, talk.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Unmounts what is mounted on a directory of the caller's own, and removes that; a busy filesystem is unmounted from the tree only
/// (lazily). Returns whether it is unmounted wholly. What goes wrong is said, since this is called on drop.
pub(crate) fn unmount(directory: &Path) -> bool {
    let umount = |options: &[&str]| output_of(Command::new("umount").args(options).arg(directory));
    let is_whole = wait_until(Duration::from_secs(3), || umount(&[]).is_ok());
    if !is_whole {
        eprintln!("{} is busy: it leaves the tree now and goes at its last close", directory.display());
        if let Err(error) = umount(&["--lazy"]) {
            eprintln!("cannot unmount: {error}");
        }
    }
    remove_directory(directory);
    is_whole
}

/// Removes an empty directory, or says why not.
pub(crate) fn remove_directory(directory: &Path) {
    if let Err(error) = std::fs::remove_dir(directory) {
        eprintln!("cannot remove {}: {error}", directory.display());
    }
}

/// Appends a line to a file by one write, so that parallel tests do not mix their lines.
///
/// # Panics
/// If it cannot be written.
pub(crate) fn append(path: &Path, line: &str) {
    let mut file = OpenOptions::new();
    let written = file.create(true).append(true).open(path);
    let written = written.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot note a result in {}: {error}", path.display()));
}

/// The path of a tool, from PATH and the directories of the administrator's tools.
pub(crate) fn find_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
}

/// Checks every few milliseconds until `holds` returns true or the time is up; returns whether it did.
pub fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_tool_is_quoted() {
        let error = output_of(Command::new("sh").args(["-c", "echo woe >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("woe") && error.to_string().contains('3'), "{error}");
        assert_eq!(output_of(Command::new("sh").args(["-c", "echo ' well '"])).unwrap(), "well");
        let missing = output_of(&mut Command::new("/nonexistent/tool")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn finds_what_is_there_only() {
        assert!(find_tool("sh").is_some());
        assert_eq!(find_tool("no-such-tool-anywhere"), None);
    }

    #[test]
    fn waiting_ends_either_way() {
        let mut looks = 0;
        assert!(wait_until(Duration::from_secs(300), || {
            looks += 1;
            looks == 3
        }));
        assert!(!wait_until(Duration::from_millis(10), || false));
    }
}
