//! Words that no page, help text, finding or document for users has: nouns of our code, and words that leave open who acts. Code
//! spans and blocks of documents are left out, since they name keys and quote programs. Pure functions of the texts.

/// Words by themselves. The nouns of the code have others on pages (docs/glossary.md).
const WORDS: &[&str] = &[
    "cell", "cells", "visit", "visits", "visited", "verdict", "verdicts", "whoever", "somebody", "nobody",
    "anybody", "everybody", "tell", "tells", "told", "become", "becomes",
];
const PHRASES: &[&str] = &[
    "round by round", "rests in", "durable write", "durable writes", "until stable", "told apart",
    "as far as it goes", "one too many",
];
/// What stands before a pass that is a noun; a call may pass its data on.
const BEFORE_A_PASS: &[&str] = &[
    "a", "an", "each", "every", "per", "one", "the", "first", "last", "single", "whole", "another", "next",
    "of", "all", "many", "more", "few", "these", "such", "later", "complete",
];

/// Each such word of a text, as `path:line: what`.
pub(crate) fn violations(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in unwanted(line) {
            violations.push(format!("{path}:{}: \"{word}\" is no word for users", index + 1));
        }
    }
    violations
}

/// The unwanted words of a line, in small letters.
fn unwanted(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || "'-_/.@".contains(c);
    let words: Vec<String> = line
        .split(|c| !is_part(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let is_noun = |index: usize| {
        let before = &words[index];
        BEFORE_A_PASS.contains(&before.as_str()) || before.chars().all(|c| c.is_ascii_digit())
    };
    let mut matches: Vec<String> =
        words.iter().filter(|word| WORDS.contains(&word.as_str())).cloned().collect();
    for (index, pair) in words.windows(2).enumerate() {
        if ["pass", "passes"].contains(&pair[1].as_str()) && is_noun(index) {
            matches.push(pair.join(" "));
        }
    }
    let whole = format!(" {} ", words.join(" "));
    matches.extend(
        PHRASES.iter().filter(|phrase| whole.contains(&format!(" {phrase} "))).map(ToString::to_string),
    );
    matches
}

/// A Markdown document with empty lines in place of its blocks of code, and spaces in place of code spans and of the targets of links.
pub(crate) fn prose(document: &str) -> String {
    let (mut is_fenced, mut was_empty) = (false, true);
    let mut prose = String::new();
    for line in document.lines() {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        // An indented line after an empty one, or after another such line, is code.
        let is_code = is_fenced || is_fence || (was_empty && line.starts_with("    "));
        was_empty = is_code || line.trim().is_empty();
        prose.push_str(if is_code { "" } else { line });
        prose.push('\n');
    }
    let mut is_span = false;
    let mut without: String = prose
        .chars()
        .map(|c| {
            is_span ^= c == '`';
            if (is_span || c == '`') && c != '\n' { ' ' } else { c }
        })
        .collect();
    while let Some(start) = without.find("](") {
        let end = without[start..].find(')').map_or(without.len(), |length| start + length + 1);
        without.replace_range(start..end, " ");
    }
    without
}

/// A snapshot without the lines that say where it is from.
pub(crate) fn shown(snapshot: &str) -> String {
    let head = snapshot.match_indices("---\n").nth(1).map_or(0, |(start, rule)| start + rule.len());
    let lines = snapshot[..head].lines().count();
    format!("{}{}", "\n".repeat(lines), &snapshot[head..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_code_are_found_and_others_are_not() {
        for (line, expected) in [
            ("The cell's verdict", &["verdict"][..]),
            ("Each visit: 3 passes over the disk", &["visit", "3 passes"]),
            ("it passes signals on, and PASS of a check is none", &[]),
            ("see passes-differ and headline/read/cells", &[]),
            ("Durable writes take twice as long", &["durable writes"]),
            ("nobody tells", &["nobody", "tells"]),
        ] {
            assert_eq!(unwanted(line), expected, "{line}");
        }
    }

    #[test]
    fn code_is_left_out_and_lines_keep_their_numbers() {
        let document = "a\n\n    cell\n\n```\ncell\n```\n`cells[]` and [x](cell.md)\n- cell\n";
        assert_eq!(violations("p", &prose(document)), ["p:9: \"cell\" is no word for users"]);
        assert_eq!(
            violations("s", &shown("---\nexpression: cell\n---\ncell\n")),
            ["s:4: \"cell\" is no word for users"]
        );
    }
}
