//! Takes the lines of a program out of the log that collected them: a prefix before each line, as `kubectl logs --timestamps`,
//! `docker compose` and the journal print it, or an object around each, as Docker's files have it. It reads no document.

use crate::fio;
use serde_json::Value;

/// Keys under which collectors keep a line: Docker, many services, the journal (`-o json`).
const LINE_KEYS: [&str; 4] = ["log", "message", "MESSAGE", "msg"];

/// The text without what stands before each of its lines; `None` where nothing stands before fio's first key, or before the
/// schema of a Record. The lines keep their numbers.
pub(crate) fn without_prefixes(text: &str) -> Option<String> {
    let keys = [format!("\"{}\"", fio::VERSION), "\"schema\"".to_owned()];
    let first = keys.iter().find_map(|key| text.find(key.as_str()))?;
    let line_start = text[..first].rfind('\n').map_or(0, |end| end + 1);
    let prefix = text[line_start..first].trim_end();
    let prefix = Prefix { text: prefix, words: prefix.split_whitespace().count() };
    (prefix.words > 0).then(|| {
        let lines = text.lines().map(|line| prefix.taken_from(line));
        lines.flat_map(|line| [line, "\n"]).collect()
    })
}

/// What stands before each line: as many words as before the first key, of which times and numbers change from line to line.
struct Prefix<'a> {
    text: &'a str,
    words: usize,
}

impl Prefix<'_> {
    /// The line behind the prefix; nothing of a line that cannot be one of a document, as those that another program or
    /// another stream of fio wrote in between.
    fn taken_from<'a>(&self, line: &'a str) -> &'a str {
        let rest = line.strip_prefix(self.text).or_else(|| self.words_taken_from(line)).unwrap_or(line);
        if may_be_json(rest) { rest } else { "" }
    }

    fn words_taken_from<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut rest = line;
        for number in 1..=self.words {
            rest = rest.trim_start();
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            let end = if number == self.words { self.end_of_last(&rest[..end]) } else { end };
            rest = &rest[end..];
        }
        Some(rest)
    }

    /// Where the last word of the prefix ends in a word to which the line's own brace may stick: `fio|{`.
    fn end_of_last(&self, word: &str) -> usize {
        let last = self.text.split_whitespace().next_back().unwrap_or_default();
        let brace = word.trim_end_matches(['{', '}', '[', ']', ',']);
        if !last.ends_with(['{', '}', '[', ']']) && !brace.is_empty() { brace.len() } else { word.len() }
    }
}

/// Whether fio may have printed such a line of a document: a key, a brace or bracket, or a number alone.
fn may_be_json(line: &str) -> bool {
    let line = line.trim();
    let is_closing = |c: char| ['}', ']', ','].contains(&c);
    match line.chars().next() {
        Some('"') => true,
        Some('{' | '[') => {
            let inside = line[1..].trim_start();
            inside.is_empty() || inside.starts_with(['"', '{', '}', '[', ']'])
        }
        Some('}' | ']') => line.trim_end_matches(is_closing).is_empty(),
        _ => line.trim_end_matches(',').parse::<f64>().is_ok(),
    }
}

/// The lines that objects hold, one on each line; `None` where they do not hold fio's first key.
pub(crate) fn of_objects(text: &str) -> Option<String> {
    let line = |line: &str| -> Option<String> {
        let object: Value = serde_json::from_str(line.trim()).ok()?;
        let held = LINE_KEYS.iter().find_map(|key| object.get(key)?.as_str())?;
        Some(format!("{}\n", held.strip_suffix('\n').unwrap_or(held)))
    };
    let held: String =
        text.lines().filter(|line| line.trim_start().starts_with('{')).filter_map(line).collect();
    held.contains(&format!("\"{}\"", fio::VERSION)).then_some(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_collectors_are_taken_away() {
        for (prefixes, between) in [
            (
                ["2026-01-01T00:00:00.1Z stdout F ", "2026-01-01T00:00:00.123Z stdout F "],
                "2026-01-01T00:00:01Z stderr F fio: note\n",
            ),
            (["fio-1  | ", "fio-1  | "], "web-1  | {GET} /\n"),
            (["[pod/a{b}/fio] ", "[pod/a{b}/fio] "], ""),
            (["Nov  7 23:00:00 host fio[12]: ", "Nov  7 23:00:01 host fio[12]: "], ""),
            (["fio|", "fio|"], "a line of its own\n"),
            (["12:00:01.5|", "12:00:01.75|"], ""),
        ] {
            let [one, two] = prefixes;
            let text = format!(
                "{one}starting {{x}}\n{one}{{\n{one}  \"fio version\" : \"fio-3.33\",\n{between}{two}  \"jobs\" : []\n{two}}}\n"
            );
            let shown = without_prefixes(&text).unwrap();
            let document: Value =
                shown.trim().parse().unwrap_or_else(|error| panic!("{error}: {text}{shown}"));
            assert_eq!(document["fio version"], "fio-3.33", "{text}");
            assert_eq!(shown.lines().count(), text.lines().count());
        }
        assert_eq!(without_prefixes("{\n  \"fio version\" : \"fio-3.33\"\n}"), None);
        assert_eq!(without_prefixes("nothing"), None);
    }

    #[test]
    fn lines_in_objects_are_taken_out() {
        let lines = ["{", "  \"fio version\" : \"fio-3.33\"", "}"];
        let log: String = lines
            .map(|line| {
                format!("{}\n", serde_json::json!({ "log": format!("{line}\n"), "stream": "stdout" }))
            })
            .concat();
        assert_eq!(
            of_objects(&format!("a note\n{log}")).unwrap(),
            lines.map(|line| format!("{line}\n")).concat()
        );
        assert_eq!(of_objects("{\"log\": \"x\"}"), None);
    }
}
