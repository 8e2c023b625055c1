//! Text for a place on the screen: in the characters that may be used, and no wider than the place. It chooses no words.

use rdsk_report::Charset;
use unicode_width::UnicodeWidthChar as _;

/// The text in the characters that may be used.
pub(super) fn plain(text: &str, charset: Charset) -> String {
    match charset {
        Charset::Unicode => text.to_owned(),
        Charset::Ascii => rdsk_report::ascii(text),
    }
}

/// As much of a line as fits.
pub(super) fn cut(line: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    line.chars().take_while(fits).collect()
}
