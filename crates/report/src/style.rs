//! How a page may look: width, colour, characters. It decides nothing of what is shown.

/// Whether a page carries ANSI escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// Headings bold, warnings yellow, errors red.
    Always,
}

/// The characters that a page may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// `±`, `µ`, `×` and blocks for curves.
    Unicode,
    /// ASCII only: `+/-`, `u`, `x`, and `...` where something was cut off.
    Ascii,
}

/// How a page may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns; used between 40 and 120. Tables are laid out for 80.
    pub width: usize,
    /// Colour.
    pub color: Color,
    /// Characters.
    pub charset: Charset,
}

impl Default for Style {
    /// 80 columns, plain, Unicode.
    fn default() -> Self {
        Self { width: 80, color: Color::Never, charset: Charset::Unicode }
    }
}

/// The text with every character outside ASCII replaced by ASCII of the same width, but for `…` and `±`, which take three columns: a
/// page replaces them before it lays out columns.
pub fn ascii(text: &str) -> String {
    use unicode_width::UnicodeWidthChar as _;
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => plain.push(c),
            '±' => plain.push_str("+/-"),
            'µ' => plain.push('u'),
            '×' => plain.push('x'),
            '·' | '–' | '−' | '─' => plain.push('-'),
            '•' => plain.push('*'),
            '→' => plain.push('>'),
            '≤' => plain.push('<'),
            '≥' => plain.push('>'),
            '…' => plain.push_str("..."),
            c => match crate::spark::BARS.iter().position(|&bar| bar == c) {
                Some(level) => plain.push(crate::spark::ASCII_BARS[level]),
                None => plain.extend(std::iter::repeat_n('?', c.width().unwrap_or(0))),
            },
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn ascii_keeps_the_width() {
        assert_eq!(ascii("±1.2%…"), "+/-1.2%...");
        for (text, expected) in [
            ("1.2% of 3 µs × 2 · x", "1.2% of 3 us x 2 - x"),
            ("▁▄█", "_-#"),
            ("ディスク", "????????"),
            ("plain", "plain"),
        ] {
            assert_eq!(ascii(text), expected);
            assert_eq!(ascii(text).width(), text.width(), "{text}");
        }
    }
}
