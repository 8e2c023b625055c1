//! The documents of rdsk and of fio in a text, whatever stands around them (notes, other output, the object or array of a script that
//! wrapped them, the prefixes of a log), and the Records that they become. A document is never passed over: one that is damaged is an
//! error.

use crate::error::ImportError;
use crate::text::{BYTE_ORDER_MARK, decoded};
use crate::{fio, logs};
use rdsk_model::{READABLE_SCHEMAS, Record};
use serde_json::Value;

/// Texts within texts that are looked into: a log of a log.
const MAX_NESTED: usize = 4;

/// The objects that are documents of rdsk or of fio, in their order. There is at least one.
///
/// # Errors
/// For a text without any, and for one in which one is damaged or cut off.
fn documents(text: &str) -> Result<Vec<Value>, ImportError> {
    let plain = scanned(text, 0);
    if plain.as_ref().is_ok_and(|documents| !documents.is_empty()) {
        return plain;
    }
    for without_log in [logs::without_prefixes(text), logs::of_objects(text)].into_iter().flatten() {
        let inside = scanned(&without_log, 0)?;
        if !inside.is_empty() {
            return Ok(inside);
        }
    }
    plain?;
    Err(fio::other_format(text).unwrap_or(ImportError::Unknown))
}

/// The documents in a text that is itself inside of as many others.
fn scanned(text: &str, nested: usize) -> Result<Vec<Value>, ImportError> {
    let mut documents = Vec::new();
    let mut starts = Starts::within(text);
    let mut next = starts.after(0, Place::LineStart);
    while let Some(start) = next {
        let rest = &text[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        next = match values.next() {
            Some(Ok(value)) => {
                take(value, nested, &mut documents)?;
                starts.after(start + values.byte_offset(), Place::BehindValue)
            }
            Some(Err(error)) if begins_like_document(rest) => return Err(damaged(&error, &text[..start])),
            _ => starts.after(start + 1, Place::WithinLine),
        };
    }
    Ok(documents)
}

/// What stands before the place where the search goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    BehindValue,
    WithinLine,
}

/// The places in a text at which a document may begin.
struct Starts<'a> {
    text: &'a str,
    /// fio's first key, in quotes.
    key: String,
    /// Where the next key stands, and where the next line begins with a value, from the place on that was looked at last.
    next_key: Option<usize>,
    next_line: Option<usize>,
}

impl<'a> Starts<'a> {
    fn within(text: &'a str) -> Self {
        let key = format!("\"{}\"", fio::VERSION);
        let next_key = text.find(&key);
        Self { text, key, next_key, next_line: next_line_with_value(text, 0) }
    }

    /// The next one from here on: an object or array that begins a line or follows another one, or the brace before fio's first
    /// key, wherever it stands on its line.
    fn after(&mut self, from: usize, place: Place) -> Option<usize> {
        let between = |c: char| c.is_whitespace() || c == ',' || c == BYTE_ORDER_MARK;
        let here = self.text[from..].trim_start_matches(between);
        if place != Place::WithinLine && here.starts_with(['{', '[']) {
            return Some(self.text.len() - here.len());
        }
        while let Some(at) = self.next_line.filter(|&at| at < from) {
            self.next_line = next_line_with_value(self.text, from.max(at));
        }
        self.next_line.into_iter().chain(self.brace_of_key(from)).min()
    }

    fn brace_of_key(&mut self, from: usize) -> Option<usize> {
        loop {
            let at = self.next_key?;
            let before = self.text[..at].trim_end();
            let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
            let brace = match before.strip_suffix('{') {
                Some(before) => Some(before.len()),
                None => self.text[line..at].find('{').map(|within| line + within),
            };
            if let Some(brace) = brace.filter(|&brace| brace >= from) {
                return Some(brace);
            }
            self.next_key = self.text[at + 1..].find(&self.key).map(|further| at + 1 + further);
        }
    }
}

/// Keeps a value that is a document, or the documents inside of it.
fn take(value: Value, nested: usize, documents: &mut Vec<Value>) -> Result<(), ImportError> {
    if value.get(fio::VERSION).is_some() || is_of_rdsk(&value) {
        documents.push(value);
        return Ok(());
    }
    match value {
        Value::Object(mut keys) => {
            let schema = keys.remove("schema").filter(|schema| nested == 0 && !schema.is_object());
            let before = documents.len();
            keys.into_iter().try_for_each(|(_, inner)| take(inner, nested, documents))?;
            // What names a schema and holds nothing that is known is refused by that name.
            if let Some(schema) = schema.filter(|_| documents.len() == before) {
                documents.push(serde_json::json!({ "schema": schema }));
            }
        }
        Value::Array(values) => values.into_iter().try_for_each(|inner| take(inner, nested, documents))?,
        Value::String(text) if nested < MAX_NESTED && text.contains(fio::VERSION) => {
            documents.extend(scanned(&text, nested + 1)?);
        }
        _ => {}
    }
    Ok(())
}

/// Whether it calls itself a document of rdsk, of whatever kind.
fn is_of_rdsk(value: &Value) -> bool {
    value.get("schema").and_then(Value::as_str).is_some_and(|schema| schema.starts_with("rdsk."))
}

/// What is wrong with a document that begins after `before`: its own lines are counted from its start.
fn damaged(error: &serde_json::Error, before: &str) -> ImportError {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    let bytes_on_its_line = before.rsplit('\n').next().map_or(0, str::len);
    let column = if error.line() > 1 { error.column() } else { bytes_on_its_line + error.column() };
    ImportError::Json { why, line: before.matches('\n').count() + error.line(), column }
}

/// Where the next line that begins with an object or an array has it.
fn next_line_with_value(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text[at..].find('\n')? + 1;
        let line = text[at..].trim_start_matches(|c: char| c == BYTE_ORDER_MARK || c.is_whitespace());
        let begin = text.len() - line.len();
        if line.starts_with(['{', '[']) {
            return Some(begin);
        }
        at = begin.max(at);
    }
}

/// Whether a text begins with an object that has keys, or an array of such: a note in braces has none.
fn begins_like_document(text: &str) -> bool {
    let inside = text.strip_prefix('[').map_or(text, str::trim_start);
    let Some(keys) = inside.strip_prefix('{') else { return false };
    let keys = keys.trim_start();
    keys.starts_with('"') || keys.is_empty()
}

/// The Records in a file, in its order: those that rdsk wrote, and what documents of fio (version 2 or 3, `--output-format=json`
/// or `json+`) say, with what fio cannot show as null. There is at least one.
///
/// # Errors
/// [`ImportError`] for any other file, and for one in which a document is damaged or cut off.
pub fn import(file: &(impl AsRef<[u8]> + ?Sized)) -> Result<Vec<Record>, ImportError> {
    let documents = documents(&decoded(file.as_ref()))?;
    fio::whole_runs(documents).into_iter().map(|(document, reports)| record(document, reports)).collect()
}

/// Whether a file holds what fio printed, so that another command than `import` can say what reads it.
pub fn is_of_fio(file: &[u8]) -> bool {
    let text = decoded(file);
    text.contains(fio::VERSION) || fio::other_format(&text).is_some()
}

fn record(document: Value, reports: usize) -> Result<Record, ImportError> {
    if document.get(fio::VERSION).is_some() {
        return fio::record(document, reports);
    }
    match document.get("schema").and_then(Value::as_str) {
        // The key of a mistake would make the program half a megabyte larger: no person writes Records.
        Some(schema) if READABLE_SCHEMAS.contains(&schema) => {
            serde_json::from_value(document).map_err(|error| ImportError::Record(error.to_string()))
        }
        other => Err(ImportError::Schema { schema: other.unwrap_or("no text").into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let records = [fixtures::run()];
        let written = serde_json::to_string_pretty(&records[0]).unwrap();
        assert_eq!(import(&written).unwrap(), records);
        let around = format!("warning: something\n{{this}} is a note\n[INFO] another\n{written}\ndone\n");
        assert_eq!(import(&around).unwrap(), records);
        let on_one_line = serde_json::to_string(&records[0]).unwrap();
        assert_eq!(import(&on_one_line).unwrap(), records);
        assert_eq!(import(&format!("\u{feff}{written}")).unwrap(), records, "behind a byte order mark");
    }

    #[test]
    fn every_document_of_a_text_is_a_record() {
        let (run, mut other) = (fixtures::run(), fixtures::run());
        other.label = Some("the second one".into());
        let [first, second] = [&run, &other].map(|record| serde_json::to_string_pretty(record).unwrap());
        for between in ["\n", "", " ", "\nanother note\n{\"of\": \"something else\"}\n"] {
            let text = format!("{first}{between}{second}\n");
            assert_eq!(import(&text).unwrap(), [run.clone(), other.clone()], "{between:?}");
        }
        // What is cut off is reported, whatever stands before it.
        let cut = &second[..second.len() / 2];
        let error = import(&format!("{first}\n{cut}")).unwrap_err();
        assert!(matches!(error, ImportError::Json { .. }), "{error}");
        assert!(matches!(import(&format!("{first}\n{{")).unwrap_err(), ImportError::Json { .. }));
        // Where, in the whole text.
        for (text, place) in [
            ("{\"schema\": oops}", "line 1 column 12"),
            ("a note\n\n{\n\"schema\": oops}", "line 4 column 11"),
            ("a note\n{\"a\": 1} {\"schema\": oops}", "line 2 column 21"),
        ] {
            let said = import(text).unwrap_err().to_string();
            assert_eq!(said, format!("its JSON is damaged or cut off: expected value at {place}"));
        }
    }

    #[test]
    fn what_is_no_record_is_said_in_words() {
        let said = |text: &str| import(text).unwrap_err().to_string();
        for text in ["", "hello", "[1, 2]", "{}", "{\"a\": 1}\n", "{\"schema\": {}}"] {
            assert!(
                said(text).starts_with("it holds neither a Record of rdsk nor the JSON of fio"),
                "{text}"
            );
        }
        assert_eq!(
            said("{\"schema\": \"rdsk.record/3\"}"),
            "its schema is \"rdsk.record/3\", and this version reads rdsk.record/1 and rdsk.record/2"
        );
        assert!(said("{\"schema\": 7}").starts_with("its schema is \"no text\""));
        assert!(said("{\"schema\": \"rdsk.re").starts_with("its JSON is damaged or cut off: EOF"));
        let mut document = serde_json::to_value(fixtures::run()).unwrap();
        document["cells"][0]["workload"]["block_bytes"] = "4k".into();
        assert_eq!(
            said(&document.to_string()),
            "rdsk writes no such document: invalid type: string \"4k\", expected u64"
        );
    }
}
