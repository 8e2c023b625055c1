//! Whose documents a file holds, and the Records that they become.

use crate::documents::documents;
use crate::error::ImportError;
use crate::fio;
use crate::text::decoded;
use rdsk_model::{READABLE_SCHEMAS, Record};
use serde_json::Value;

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
        let (one, mut other) = (fixtures::run(), fixtures::run());
        other.label = Some("the second one".into());
        let [first, second] = [&one, &other].map(|record| serde_json::to_string_pretty(record).unwrap());
        for between in ["\n", "", " ", "\nanother note\n{\"of\": \"something else\"}\n"] {
            let text = format!("{first}{between}{second}\n");
            assert_eq!(import(&text).unwrap(), [one.clone(), other.clone()], "{between:?}");
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
