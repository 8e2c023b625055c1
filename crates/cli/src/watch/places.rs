//! Where a command may write, as far as its line says: what is judged, and flushed after it. It looks and opens nothing.

use super::options::Watch;
use super::{PROC, SYS};
use rdsk_observe::watch::flush_places;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Places that a command names at most; each costs a look at sysfs.
const MAX_PLACES: usize = 16;

/// What the line names before the command, else what the command's own words name and the directory that it starts in.
pub(super) fn of_command(options: &Watch) -> Vec<PathBuf> {
    let (sys, proc) = (Path::new(SYS), Path::new(PROC));
    if !options.devices.is_empty() {
        return options.devices.iter().flat_map(|name| flush_places(name, sys, proc)).collect();
    }
    // A command writes to its working directory without a word that says so.
    let here = OsString::from(".");
    in_words(options.command[1..].iter().chain([&here]))
}

/// The directories and block devices that words name, one for each filesystem: of a file its directory.
fn in_words<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Vec<PathBuf> {
    let mut places: Vec<(u64, PathBuf)> = Vec::new();
    let paths = words.into_iter().map(|word| path_in(word));
    for path in paths.filter(|path| !path.as_os_str().is_empty()) {
        let Some((number, place)) = place_of(path) else { continue };
        if places.len() < MAX_PLACES && places.iter().all(|(other, _)| *other != number) {
            places.push((number, place.to_owned()));
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// `/dev/sdb` of `of=/dev/sdb`, and all of a word without a value.
fn path_in(word: &OsStr) -> &Path {
    let bytes = word.as_bytes();
    let from = bytes.iter().position(|&byte| byte == b'=').map_or(0, |at| at + 1);
    Path::new(OsStr::from_bytes(&bytes[from..]))
}

/// The number of the device or filesystem that a path leads to, and a place of it. A file that the command may create is in its
/// directory, if that is named: a single word may mean anything.
fn place_of(path: &Path) -> Option<(u64, &Path)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let of_directory = |place, metadata: Metadata| Some((metadata.dev(), place));
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() => Some((metadata.rdev(), path)),
        Ok(metadata) if metadata.is_dir() => of_directory(path, metadata),
        Ok(metadata) if metadata.is_file() => of_directory(parent.unwrap_or(Path::new(".")), metadata),
        Ok(_) => None,
        // A script is a word, too, and no path: `dd if=/dev/zero of=file`.
        Err(_) if path.as_os_str().as_bytes().contains(&b' ') => None,
        Err(_) => of_directory(parent?, fs::metadata(parent?).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_directories() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("there");
        fs::write(&file, "x").unwrap();
        let places = |words: &[&str]| in_words(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let (file, new) = (file.display().to_string(), scratch.path().join("new").display().to_string());
        for words in [&[&*file][..], &[&format!("of={new}"), "bs=1M"], &["-o", &new, &file, "--x=1"]] {
            assert_eq!(places(words), [scratch.path()], "{words:?}");
        }
        assert_eq!(places(&["if=/dev/zero", "count=1", "-v", "", "no-such-word"]), Vec::<PathBuf>::new());
        let script = "dd if=/dev/zero of=z bs=1M count=64";
        assert_eq!(places(&["-c", script]), Vec::<PathBuf>::new());
    }
}
