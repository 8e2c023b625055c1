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
    let has_apostrophe = name.contains(&b'\'');
    if let Ok(text) = str::from_utf8(name)
        && has_apostrophe
        && text.char_indices().all(|(at, letter)| is_plain_in_double_quotes(at, letter, charset))
    {
        return format!("\"{text}\"");
    }
    let mut body = Body::default();
    body.push_all(name, charset);
    if has_apostrophe {
        // GNU goes through such a name twice, and begins the second time as the first time ended.
        body = Body { text: String::new(), is_escaped: body.is_escaped };
        body.push_all(name, charset);
    }
    format!("'{}'", body.text)
}

/// What stands between the outer quotes of a name.
#[derive(Default)]
struct Body {
    text: String,
    /// Whether `$'` is open.
    is_escaped: bool,
}

impl Body {
    fn push_all(&mut self, name: &[u8], charset: Charset) {
        for chunk in name.utf8_chunks() {
            for letter in chunk.valid().chars() {
                self.push(letter, charset);
            }
            for &byte in chunk.invalid() {
                self.begin_escape();
                push_octal(&mut self.text, &[byte]);
            }
        }
    }

    fn push(&mut self, letter: char, charset: Charset) {
        if !is_shown(letter, charset) {
            self.begin_escape();
            push_escaped(&mut self.text, letter, charset);
        } else if letter == '\'' {
            self.is_escaped = false;
            self.text.push_str("'\\''");
        } else {
            if std::mem::take(&mut self.is_escaped) {
                self.text.push_str("''");
            }
            self.text.push(letter);
        }
    }

    fn begin_escape(&mut self) {
        if !std::mem::replace(&mut self.is_escaped, true) {
            self.text.push_str("'$'");
        }
    }
}

/// Whether a letter means the same to C and to a shell, so that a name with an apostrophe may stand in double quotes.
fn is_plain_in_double_quotes(at: usize, letter: char, charset: Charset) -> bool {
    match letter {
        '#' | '~' => at == 0,
        '{' | '}' | '\\' => false,
        letter => is_shown(letter, charset) && !SPECIAL.contains(letter),
    }
}

/// What a shell would not take as it stands, beside a blank, an apostrophe and a backslash.
const SPECIAL: &str = "!\"$&()*;<=>?[^`|";

/// The same, without quotes around a name that a shell takes as it stands.
pub(crate) fn file_if_needed(name: &[u8], charset: Charset) -> String {
    let is_plain = |(at, letter): (usize, char)| match letter {
        '#' | '~' => at > 0,
        '{' | '}' => name.len() > 1,
        ' ' | '\'' | '\\' => false,
        letter => is_shown(letter, charset) && !SPECIAL.contains(letter),
    };
    match str::from_utf8(name) {
        Ok(text) if !text.is_empty() && text.char_indices().all(is_plain) => text.to_owned(),
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

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        // Seen with GNU dd 9.1.
        for plain in ["a~b", "{}", "a{b", "a#b", "a]b", "a@b", "a%b", "a:b"] {
            assert_eq!(file_if_needed(plain.as_bytes(), Ascii), plain);
        }
        for special in ["a=b", "~a", "#a", "{", "a[b", "a?b", "a\\b", "a^b", "a!b"] {
            assert_eq!(file_if_needed(special.as_bytes(), Ascii), format!("'{special}'"));
        }
        for double in ["~it's", "it's@", "it's:", "it's]"] {
            assert_eq!(file(double.as_bytes(), Ascii), format!("\"{double}\""));
        }
        for (name, quoted) in [
            ("it's=", r"'it'\''s='"),
            ("it's~x", r"'it'\''s~x'"),
            ("it's{x", r"'it'\''s{x'"),
            ("x~it's", r"'x~it'\''s'"),
            ("\t'", r"''$'\t'\'''"),
            ("'\t", r"''\'''$'\t'"),
            ("x'\t", r"'''x'\'''$'\t'"),
            ("a'\tb'", r"'a'\'''$'\t''b'\'''"),
            ("xit's \u{e9}", r"'''xit'\''s '$'\303\251'"),
        ] {
            assert_eq!(file(name.as_bytes(), Ascii), quoted, "{name:?}");
        }
    }
}
