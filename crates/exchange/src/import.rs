//! Whose document a text is, and the Record that it becomes. Notes that a program prints around its document are passed over.

use crate::error::ImportError;
use crate::fio;
use crate::typed::typed;
use rdsk_model::{Record, SCHEMA};
use serde_json::Value;

/// Lines that look like the start of a document; a text with more is none.
const MAX_STARTS: usize = 64;

/// The Record in a text: one that rdsk wrote, or what a document of fio (version 3, `--output-format=json` or `json+`) says,
/// with what fio cannot show as null.
///
/// # Errors
/// [`ImportError`] for any other text.
pub fn import(text: &str) -> Result<Record, ImportError> {
    let document = document(text)?;
    let Some(schema) = document.get("schema") else { return fio::record(document) };
    match schema.as_str() {
        Some(SCHEMA) => typed("rdsk", document),
        other => Err(ImportError::Schema { schema: other.unwrap_or("no text").into() }),
    }
}

/// The first object that is a document of rdsk or of fio. It begins a line, and other text may stand before and behind it.
fn document(text: &str) -> Result<Value, ImportError> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let mut damage = None;
    for start in starts.filter(|&start| text[start..].starts_with('{')).take(MAX_STARTS) {
        match serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>().next() {
            Some(Ok(value)) if value.get("schema").or(value.get(fio::VERSION)).is_some() => return Ok(value),
            Some(Err(error)) => damage = damage.or(Some(error)),
            _ => {}
        }
    }
    Err(damage.map_or(ImportError::Unknown, ImportError::Json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdsk_finding::fixtures;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = fixtures::run();
        let written = serde_json::to_string_pretty(&record).unwrap();
        assert_eq!(import(&written).unwrap(), record);
        assert_eq!(import(&format!("warning: something\n{written}\ndone\n")).unwrap(), record);
        let read: Record = import(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(read, record, "on one line");
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
