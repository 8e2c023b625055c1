//! Whose documents a text holds, and the Records that they become. Notes that a program prints around its documents are passed
//! over; a document never is.

use crate::error::ImportError;
use crate::fio;
use crate::typed::typed;
use rdsk_model::{Record, SCHEMA};
use serde_json::Value;

/// What some programs put before a text in UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The Records in a text, in its order: those that rdsk wrote, and what documents of fio (version 3, `--output-format=json` or
/// `json+`) say, with what fio cannot show as null. There is at least one.
///
/// # Errors
/// [`ImportError`] for any other text, and for one in which a further document is damaged or cut off.
pub fn import(text: &str) -> Result<Vec<Record>, ImportError> {
    documents(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))?.into_iter().map(record).collect()
}

fn record(document: Value) -> Result<Record, ImportError> {
    let Some(schema) = document.get("schema") else { return fio::record(document) };
    match schema.as_str() {
        Some(SCHEMA) => typed("rdsk", document),
        other => Err(ImportError::Schema { schema: other.unwrap_or("no text").into() }),
    }
}

/// The objects that are documents of rdsk or of fio. Each begins a line or follows another one, and other text may stand around
/// them.
fn documents(text: &str) -> Result<Vec<Value>, ImportError> {
    let mut found = Vec::new();
    let mut next = if text.starts_with('{') { Some(0) } else { next_line_with_object(text, 0) };
    while let Some(start) = next {
        let rest = &text[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let end = match values.next() {
            Some(Ok(value)) => {
                if value.get("schema").or(value.get(fio::VERSION)).is_some() {
                    found.push(value);
                }
                start + values.byte_offset()
            }
            Some(Err(error)) if begins_like_document(rest) => return Err(damaged(&error, &text[..start])),
            _ => start + 1,
        };
        let after = text[end..].trim_start();
        let follows = end > start + 1 && after.starts_with('{');
        next = if follows { Some(text.len() - after.len()) } else { next_line_with_object(text, end) };
    }
    if found.is_empty() { Err(fio::other_format(text).unwrap_or(ImportError::Unknown)) } else { Ok(found) }
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

/// Where the next line begins that begins with an object.
fn next_line_with_object(text: &str, from: usize) -> Option<usize> {
    text[from..].find("\n{").map(|at| from + at + 1)
}

/// Whether a text begins with an object that has keys: a note in braces has none.
fn begins_like_document(text: &str) -> bool {
    let inside = text.strip_prefix('{').unwrap_or(text).trim_start();
    inside.starts_with('"') || inside.is_empty()
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
        let around = format!("warning: something\n{{this}} is a note\n{written}\ndone\n");
        assert_eq!(import(&around).unwrap(), records);
        let on_one_line = serde_json::to_string(&records[0]).unwrap();
        assert_eq!(import(&on_one_line).unwrap(), records);
        assert_eq!(import(&format!("\u{feff}{written}")).unwrap(), records, "behind a byte order mark");
    }

    #[test]
    fn every_document_of_a_text_is_a_record() {
        let (one, mut other) = (fixtures::run(), fixtures::run());
        other.label = Some("the second one".into());
        let [first, second] = [&one, &other].map(|record| serde_json::to_string_pretty(record).unwrap());
        for between in ["\n", "", " ", "\nanother note\n{\"of\": \"something else\"}\n"] {
            let text = format!("{first}{between}{second}\n");
            assert_eq!(import(&text).unwrap(), [one.clone(), other.clone()], "{between:?}");
        }
        // What is cut off is told of, whatever stands before it.
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
        for text in ["", "hello", "[1, 2]", "{}", "{\"a\": 1}\n", "  {\"schema\": \"rdsk.record/1\"}"] {
            assert!(
                said(text).starts_with("it holds neither a Record of rdsk nor the JSON of fio"),
                "{text}"
            );
        }
        assert_eq!(
            said("{\"schema\": \"rdsk.record/2\"}"),
            "its schema is \"rdsk.record/2\", and this version reads \"rdsk.record/1\""
        );
        assert!(said("{\"schema\": 7}").starts_with("its schema is \"no text\""));
        assert!(said("{\"schema\": \"rdsk.re").starts_with("its JSON is damaged or cut off: EOF"));
        let mut document = serde_json::to_value(fixtures::run()).unwrap();
        document["cells"][0]["workload"]["block_bytes"] = "4k".into();
        assert_eq!(
            said(&document.to_string()),
            "rdsk writes no such document, at cells[0].workload.block_bytes: invalid type: string \"4k\", expected u64"
        );
    }
}
