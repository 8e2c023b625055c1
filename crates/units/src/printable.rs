//! Names from devices, files and other people made safe for a terminal. Never changes ordinary text. It does not escape
//! HTML: that is the report's business.

use std::fmt::Write as _;

/// The text with everything replaced that moves a cursor, hides, or reorders: control characters become
/// `\x1b`, invisible format characters and bidirectional overrides `\u{202e}`. Letters of every script stay,
/// with the joiners (U+200C, U+200D) that some of them need.
///
/// ```
/// assert_eq!(rdsk_units::printable("sda\u{1b}[2J\n"), "sda\\x1b[2J\\x0a");
/// ```
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        let written = match c {
            c if c.is_ascii_control() => write!(safe, "\\x{:02x}", u32::from(c)),
            c if c.is_control() || misleads(c) => write!(safe, "\\u{{{:x}}}", u32::from(c)),
            c => {
                safe.push(c);
                Ok(())
            }
        };
        written.expect("writing to a String cannot fail");
    }
    safe
}

/// Format characters that change how their neighbours look or are invisible (Unicode Standard Annex #9 for the
/// bidirectional ones; the separators break lines in some terminals; the tags hide whole texts).
fn misleads(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_stays() {
        for text in ["", "WDC WD2500JS", "Büro-Daten (été) データ", "नमस्ते", "می‌خواهم", "👩‍🔧 ok", "a\\b"]
        {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn dangerous_text_is_shown() {
        let cases = [
            ("\u{1b}]0;title\u{7}", "\\x1b]0;title\\x07"),
            ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
            ("\u{7f}\0", "\\x7f\\x00"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("gpj\u{202e}exe", "gpj\\u{202e}exe"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("a\u{200b}b\u{2028}", "a\\u{200b}b\\u{2028}"),
            ("\u{e0041}", "\\u{e0041}"),
        ];
        for (text, safe) in cases {
            assert_eq!(printable(text), safe);
        }
    }

    proptest! {
        #[test]
        fn nothing_dangerous_is_left(text: String) {
            prop_assert!(!printable(&text).chars().any(|c| c.is_control() || misleads(c)));
        }

        #[test]
        fn twice_is_once(text: String) {
            prop_assert_eq!(printable(&printable(&text)), printable(&text));
        }
    }
}
