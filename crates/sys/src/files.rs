//! Small files of sysfs and procfs: texts, words, numbers, names and fields, as the kernel prints them. A file that is missing or is not
//! understood is `None`; what a value means is the caller's business.

use std::fs;
use std::path::Path;
use std::str::FromStr;

/// A text without its last line end, with what is no UTF-8 replaced; `None` if the file is missing or cannot be read.
pub fn read_text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The same without the white space and zeros around it; `None` also where nothing is left.
pub fn read_word(path: &Path) -> Option<String> {
    let text = read_text(path)?;
    let word = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!word.is_empty()).then(|| word.to_owned())
}

/// A number, or whatever else a text stands for.
pub fn read_number<T: FromStr>(path: &Path) -> Option<T> {
    read_text(path)?.trim().parse().ok()
}

/// Whether a file says a number that is not 0; `None` where it says none.
pub fn read_flag(path: &Path) -> Option<bool> {
    Some(read_number::<u64>(path)? != 0)
}

/// Sorted names in a directory; none if it is missing.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The value of the line `key: value` of a text.
pub fn field<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// A line of `/proc/meminfo` in bytes: its `kB` are 1024; `None` if the kernel does not print it.
pub fn memory_bytes(meminfo: &str, key: &str) -> Option<u64> {
    field(meminfo, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether a name is that of a driver and a number: `bcache0`, not `bcache0p1`.
pub fn is_numbered(name: &str, driver: &str) -> bool {
    let number = name.strip_prefix(driver);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Major and minor number of a version of Linux.
pub type Version = (u32, u32);

/// The version in a release such as `6.1.0-18-amd64`. Distributions mend older kernels, so a version only says what may be.
pub fn version_of(release: &str) -> Option<Version> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(|word| word.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether what `/proc/PID/ns/pid` leads to is the first namespace, in which every process has its number (include/linux/proc_ns.h,
/// `PROC_PID_INIT_INO`).
pub fn is_first_pid_namespace(link: &Path) -> bool {
    link.as_os_str() == "pid:[4026531836]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_the_kernel_prints_them() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        for (content, text, word, number) in [
            (&b"12\n"[..], "12", Some("12"), Some(12)),
            (b" a b\0\n\n", " a b\0\n", Some("a b"), None),
            (b" \n", " ", None, None),
            (b"\xff\n", "\u{fffd}", Some("\u{fffd}"), None),
        ] {
            fs::write(&file, content).unwrap();
            assert_eq!(read_text(&file).as_deref(), Some(text));
            assert_eq!((read_word(&file).as_deref(), read_number::<u64>(&file)), (word, number));
        }
        assert_eq!(read_text(&directory.path().join("none")), None);
        fs::write(directory.path().join("a"), "0\n").unwrap();
        assert_eq!(names_in(directory.path()), ["a", "file"]);
        assert_eq!((read_flag(&directory.path().join("a")), read_flag(&file)), (Some(false), None));
        assert!(names_in(&file).is_empty());
    }

    #[test]
    fn fields_and_versions_are_found() {
        let meminfo = "MemTotal:       16384 kB\nMemFree: 1 kB\nHugePages_Total:  7\n";
        assert_eq!(memory_bytes(meminfo, "MemTotal"), Some(16 << 20));
        assert_eq!((memory_bytes(meminfo, "Mem"), memory_bytes(meminfo, "HugePages_Total")), (None, None));
        assert_eq!(field(meminfo, "HugePages_Total"), Some("7"));
        for (release, version) in
            [("6.1.0-18-amd64", Some((6, 1))), ("5.15-rc1", Some((5, 15))), ("6", None), ("linux", None)]
        {
            assert_eq!(version_of(release), version, "{release}");
        }
        assert!(is_numbered("bcache0", "bcache") && !is_numbered("bcache0p1", "bcache"));
        assert!(!is_numbered("bcache", "bcache"));
    }
}
