//! Names and operands in messages, quoted as GNU programs quote them: what would disturb a terminal is escaped.

use std::fmt::Write;

/// The characters that a message may hold: those of the locale in which it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// ASCII; every other byte is escaped.
    #[default]
    Ascii,
    /// UTF-8; what is no valid text is escaped.
    Utf8,
}

/// An operand or a value: `'a\nb'`, with the escapes of C.
pub(crate) fn operand(text: &[u8], charset: Charset) -> String {
    let (open, close) = match charset {
        Charset::Ascii => ('\'', '\''),
        Charset::Utf8 => ('\u{2018}', '\u{2019}'),
    };
    let mut quoted = String::from(open);
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => quoted.push_str("\\\\"),
                letter if letter == close => quoted.extend(['\\', letter]),
                _ => push_escaped(&mut quoted, letter, charset),
            }
        }
        push_octal(&mut quoted, chunk.invalid());
    }
    quoted.push(close);
    quoted
}

/// The name of a file, as a shell would take it: `'a b'`, `"it's"`, `'a'$'\t''b'`.
pub fn file(name: &[u8], charset: Charset) -> String {
    let text = str::from_utf8(name).ok();
    let is_plain = |letter: char| is_shown(letter, charset) && !matches!(letter, '"' | '$' | '`' | '\\');
    if let Some(text) = text.filter(|text| text.contains('\'') && text.chars().all(is_plain)) {
        return format!("\"{text}\"");
    }
    let mut quoted = String::from("'");
    let mut escape = String::new();
    let flush = |quoted: &mut String, escape: &mut String| {
        if !escape.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(quoted, "'$'{escape}''");
            escape.clear();
        }
    };
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if !is_shown(letter, charset) {
                push_escaped(&mut escape, letter, charset);
                continue;
            }
            flush(&mut quoted, &mut escape);
            if letter == '\'' { quoted.push_str("'\\''") } else { quoted.push(letter) }
        }
        push_octal(&mut escape, chunk.invalid());
    }
    if escape.is_empty() {
        quoted.push('\'');
    } else {
        let _ = write!(quoted, "'$'{escape}'");
    }
    quoted
}

/// The same, without quotes around a name that a shell takes as it stands.
pub(crate) fn file_if_needed(name: &[u8], charset: Charset) -> String {
    let is_plain = |letter: char| {
        letter.is_ascii_alphanumeric()
            || "/._-+,:=@%".contains(letter)
            || (charset == Charset::Utf8 && !letter.is_ascii() && is_shown(letter, charset))
    };
    match str::from_utf8(name) {
        Ok(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        _ => file(name, charset),
    }
}

fn is_shown(letter: char, charset: Charset) -> bool {
    !letter.is_control() && (letter.is_ascii() || charset == Charset::Utf8)
}

fn push_escaped(text: &mut String, letter: char, charset: Charset) {
    match letter {
        '\x07' => text.push_str("\\a"),
        '\x08' => text.push_str("\\b"),
        '\x0c' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\x0b' => text.push_str("\\v"),
        letter if !is_shown(letter, charset) => {
            let mut bytes = [0; 4];
            push_octal(text, letter.encode_utf8(&mut bytes).as_bytes());
        }
        letter => text.push(letter),
    }
}

fn push_octal(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use super::Charset::{Ascii, Utf8};
    use super::*;

    #[test]
    fn operands_are_escaped_as_in_c() {
        // Seen with GNU dd 9.1 in the locales C and C.UTF-8.
        assert_eq!(operand(b"a\nb", Ascii), r"'a\nb'");
        assert_eq!(operand(b"it's", Ascii), r"'it\'s'");
        assert_eq!(operand(b"\x1b\xff", Ascii), r"'\033\377'");
        assert_eq!(operand("\u{fc}".as_bytes(), Ascii), r"'\303\274'");
        assert_eq!(operand("it's \u{fc}".as_bytes(), Utf8), "\u{2018}it's \u{fc}\u{2019}");
    }

    #[test]
    fn files_are_quoted_for_a_shell() {
        assert_eq!(file(b"nope", Ascii), "'nope'");
        assert_eq!(file(b"", Ascii), "''");
        assert_eq!(file(b"a\tb", Ascii), r"'a'$'\t''b'");
        assert_eq!(file(b"it's", Ascii), "\"it's\"");
        assert_eq!(file(b"it's$5", Ascii), r"'it'\''s$5'");
        assert_eq!(file(b"a\t", Ascii), r"'a'$'\t'");
        assert_eq!(file("\u{fc}b".as_bytes(), Ascii), r"''$'\303\274''b'");
        assert_eq!(file("\u{fc}b".as_bytes(), Utf8), "'\u{fc}b'");
        assert_eq!(file_if_needed("\u{fc}b".as_bytes(), Utf8), "\u{fc}b");
        assert_eq!(file_if_needed(b"a b", Utf8), "'a b'");
    }
}
