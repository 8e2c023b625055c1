//! Names made safe for messages: paths, and identities that a shell must read back unchanged. It decides nothing.

use rdsk_units::printable;
use std::path::Path;

/// A path for a message: no control characters, bytes that are not text replaced.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// A word for a hint that the user may copy to a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:+@%=,-".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", printable(word).replace('\'', "'\\''"))
}

/// `a, b, c and 2 more`: the first `limit` of a list.
pub(crate) fn listed<T: AsRef<str>>(items: &[T], limit: usize) -> String {
    let first: Vec<&str> = items.iter().take(limit).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(limit) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_survive_a_shell() {
        assert_eq!(quoted("S3Z9NB0K"), "S3Z9NB0K");
        assert_eq!(quoted("/srv/disk 1.img"), "'/srv/disk 1.img'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("--help"), "'--help'");
        assert_eq!(quoted("$(reboot)\n"), "'$(reboot)\\x0a'");
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(&["a", "b"], 3), "a, b");
        assert_eq!(listed(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }
}
