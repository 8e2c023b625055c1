//! Where the history is: what the command line says, else the environment. It opens nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What names the file when the command line does not; empty for no history.
const VARIABLE: &str = "RDSK_HISTORY";

/// Where the history is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// None is wanted.
    Off,
    File(PathBuf),
    /// Nothing says where this user keeps data.
    Unknown,
}

/// What the command line says; the same for the whole process.
static CHOSEN: OnceLock<Place> = OnceLock::new();

/// Takes over what the command line says: a file, or none. The first call counts.
pub(crate) fn choose(place: Place) {
    // Every command chooses once, before it uses the history.
    let _ = CHOSEN.set(place);
}

/// The place for this process.
pub(crate) fn place() -> Place {
    CHOSEN.get().cloned().unwrap_or_else(|| of_environment(&|name| std::env::var_os(name)))
}

/// The file of the history, if there is or will be one.
pub(crate) fn file() -> Option<PathBuf> {
    match place() {
        Place::File(path) => Some(path),
        Place::Off | Place::Unknown => None,
    }
}

/// The file that the command line names as the history.
pub(super) fn named() -> Option<&'static Path> {
    match CHOSEN.get() {
        Some(Place::File(path)) => Some(path),
        Some(Place::Off | Place::Unknown) | None => None,
    }
}

/// Has a child of ours, which is rdsk, keep its runs where this process would, unless its own command line says where.
pub(crate) fn pass_on(child: &mut Command) {
    match CHOSEN.get() {
        Some(Place::File(path)) => child.env(VARIABLE, path),
        Some(Place::Off) => child.env(VARIABLE, ""),
        Some(Place::Unknown) | None => child,
    };
}

fn of_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Place {
    if let Some(file) = variable(VARIABLE) {
        return if file.is_empty() { Place::Off } else { Place::File(file.into()) };
    }
    // A relative path is to be ignored (XDG Base Directory Specification 0.8); so is an empty one.
    let directory = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = directory("XDG_DATA_HOME").or_else(|| Some(directory("HOME")?.join(".local/share")));
    data.map_or(Place::Unknown, |data| Place::File(data.join(Path::new("rdsk/history.db"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_comes_first_then_the_users_data_directory() {
        let place = |set: &[(&str, &str)]| {
            of_environment(&|name| {
                set.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
            })
        };
        let file = |path: &str| Place::File(path.into());
        let home = ("HOME", "/home/u");
        assert_eq!(place(&[home]), file("/home/u/.local/share/rdsk/history.db"));
        assert_eq!(place(&[home, ("XDG_DATA_HOME", "/d")]), file("/d/rdsk/history.db"));
        assert_eq!(place(&[home, ("XDG_DATA_HOME", "d")]), file("/home/u/.local/share/rdsk/history.db"));
        assert_eq!(place(&[home, (VARIABLE, "h.db")]), file("h.db"));
        assert_eq!(place(&[home, (VARIABLE, "")]), Place::Off);
        assert_eq!(place(&[("HOME", "")]), Place::Unknown);
        assert_eq!(place(&[]), Place::Unknown);
    }
}
