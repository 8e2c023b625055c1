//! Whether two paths on a command line lead to the same file, whatever their spelling and whether it exists or not. It looks and
//! opens nothing.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Symlinks to missing files that are followed; the kernel follows as many (path_resolution(7)).
const MAX_LINKS: u32 = 40;
/// What SQLite keeps beside a database.
const COMPANIONS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Whether both are the same file, or would be once they are created: through symlinks, hard links and `./`.
pub(crate) fn is_same_place(left: &Path, right: &Path) -> bool {
    match (fs::metadata(left), fs::metadata(right)) {
        (Ok(left), Ok(right)) => (left.dev(), left.ino()) == (right.dev(), right.ino()),
        _ => resolved(left) == resolved(right),
    }
}

/// Whether a path is the database at `database`, or one of the files that SQLite keeps beside it.
pub(crate) fn is_database(path: &Path, database: &Path) -> bool {
    // The companions lie beside the file that a symlink names.
    let database = resolved(database);
    COMPANIONS.iter().any(|suffix| {
        let mut name = OsString::from(&database);
        name.push(suffix);
        is_same_place(path, Path::new(&name))
    })
}

/// The path without symlinks, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(whole) = fs::canonicalize(&path) {
            return whole;
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new(".")).to_owned();
        match fs::read_link(&path) {
            Ok(link) => path = directory.join(link),
            Err(_) => {
                let directory = fs::canonicalize(&directory).unwrap_or(directory);
                return path.file_name().map_or_else(|| path.clone(), |name| directory.join(name));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn spelling_and_links_do_not_hide_a_file() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("there"), "x").unwrap();
        fs::create_dir(at("sub")).unwrap();
        symlink("there", at("link")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        symlink(scratch.path(), at("sub/up")).unwrap();
        fs::hard_link(at("there"), at("hard")).unwrap();
        for (left, right) in [
            ("there", "./there"),
            ("there", "link"),
            ("there", "hard"),
            ("there", "sub/../there"),
            ("missing", "./missing"),
            ("missing", "sub/../missing"),
            ("missing", "dangling"),
            ("missing", "sub/up/missing"),
        ] {
            assert!(is_same_place(&at(left), &at(right)), "{left} {right}");
        }
        for (left, right) in
            [("there", "missing"), ("missing", "sub/missing"), ("there", "sub"), ("missing", "other")]
        {
            assert!(!is_same_place(&at(left), &at(right)), "{left} {right}");
        }
        // The directory of a bare name is the one that the process is in.
        assert!(is_same_place(Path::new("surely-missing"), Path::new("./surely-missing")));
    }

    #[test]
    fn the_companions_of_a_database_are_part_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/real.db"), "").unwrap();
        symlink("sub/real.db", at("h.db")).unwrap();
        for name in ["h.db", "sub/real.db", "sub/real.db-wal", "sub/real.db-shm", "sub/real.db-journal"] {
            assert!(is_database(&at(name), &at("h.db")), "{name}");
        }
        assert!(!is_database(&at("h.db-wal"), &at("h.db")), "nobody keeps that");
        assert!(!is_database(&at("h.json"), &at("h.db")));
        assert!(is_database(&at("new.db-wal"), &at("./new.db")));
    }
}
