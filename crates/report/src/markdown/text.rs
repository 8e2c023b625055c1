//! Text inside Markdown that stays text, whatever it holds: every character that could begin markup, HTML, a link, a formula or a
//! list is escaped, in GitHub's Markdown as in CommonMark.

use rdsk_units::printable;

/// Characters of one text; longer ones are cut, so that a name cannot fill a ticket.
const MAX_CHARS: usize = 400;

/// A text within a line.
pub(super) fn plain(text: &str) -> String {
    let text = cut(&printable(text));
    let mut escaped = String::with_capacity(text.len());
    let starts_list = starts_block(&text);
    for (at, c) in text.char_indices() {
        let is_markup = matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '&' | '~' | '#' | '$' | '@' | '!'
        );
        // `https://` and `www.` become links by themselves.
        let is_link = c == ':' && text[at..].starts_with("://")
            || c == '.' && text[..at].to_lowercase().ends_with("www");
        if is_markup || is_link || starts_list == Some(at) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A row of a table.
pub(super) fn row<const N: usize>(texts: [&str; N]) -> String {
    cells(&texts.map(plain))
}

/// The same of texts that are escaped already.
pub(super) fn cells(texts: &[String]) -> String {
    format!("| {} |", texts.join(" | "))
}

/// A block of code with one line, behind a fence that it cannot close.
pub(super) fn block(line: &str) -> [String; 3] {
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    [format!("{fence}sh"), line.to_owned(), fence]
}

/// Where a text that begins a line would begin a list, a heading of the line above, or a rule.
fn starts_block(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (at, signs): (usize, &[u8]) = if digits > 0 { (digits, b".)") } else { (0, b"-+=") };
    // A number has digits behind its point, and a list a space.
    let is_number = digits > 0 && text.as_bytes().get(at + 1).is_some_and(|byte| !byte.is_ascii_whitespace());
    text.as_bytes().get(at).filter(|byte| signs.contains(byte) && !is_number).map(|_| at)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARS {
        return text.trim().to_owned();
    }
    let kept: String = text.chars().take(MAX_CHARS).collect();
    format!("{}…", kept.trim())
}
