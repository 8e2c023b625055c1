//! Folds a JSON value into one that compresses better, and back: a list of alike objects, such as the visits of a cell, becomes one
//! object with a list for each key, and histograms, which are base64 in a Record, become bytes beside it. It compresses nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The key whose text is a histogram.
const HISTOGRAM: &str = "histogram";
/// The key by which an object that stands for a list is known, with its length. No key of a Record begins so.
const LENGTH: &str = "#";

/// Folds a value, and gives the bytes of its histograms; `None` for one that could not be told from a folded one, which then is
/// spoiled.
pub(crate) fn fold(value: &mut Value) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    take_histograms(value, &mut bytes)?;
    fold_lists(value);
    Some(bytes)
}

/// The value that was folded.
///
/// # Errors
/// When it is none that was folded.
pub(crate) fn unfold(value: &mut Value, mut histograms: &[u8]) -> Result<(), String> {
    unfold_lists(value)?;
    put_histograms(value, &mut histograms)?;
    if histograms.is_empty() { Ok(()) } else { Err("it has more histograms than places for them".into()) }
}

/// Puts the number of its bytes in the place of each histogram.
fn take_histograms(value: &mut Value, bytes: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Array(values) => values.iter_mut().try_for_each(|value| take_histograms(value, bytes)),
        Value::Object(map) if map.contains_key(LENGTH) => None,
        Value::Object(map) => map.iter_mut().try_for_each(|(key, value)| match value {
            Value::Number(_) if key == HISTOGRAM => None,
            Value::String(text) if key == HISTOGRAM => {
                // A text of another spelling would not come back as it was.
                let raw = STANDARD.decode(&*text).ok().filter(|raw| STANDARD.encode(raw) == *text);
                if let Some(raw) = raw {
                    bytes.extend_from_slice(&raw);
                    *value = raw.len().into();
                }
                Some(())
            }
            value => take_histograms(value, bytes),
        }),
        _ => Some(()),
    }
}

fn put_histograms(value: &mut Value, bytes: &mut &[u8]) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter_mut().try_for_each(|value| put_histograms(value, bytes)),
        Value::Object(map) => map.iter_mut().try_for_each(|(key, value)| match value {
            Value::Number(length) if key == HISTOGRAM => {
                let length = length.as_u64().and_then(|length| usize::try_from(length).ok());
                let (raw, rest) = length
                    .and_then(|length| bytes.split_at_checked(length))
                    .ok_or("a histogram is missing")?;
                (*value, *bytes) = (STANDARD.encode(raw).into(), rest);
                Ok(())
            }
            value => put_histograms(value, bytes),
        }),
        _ => Ok(()),
    }
}

fn fold_lists(value: &mut Value) {
    match value {
        Value::Array(rows) => {
            if let Some(columns) = columns_of(rows) {
                *value = Value::Object(columns);
            } else {
                rows.iter_mut().for_each(fold_lists);
            }
        }
        Value::Object(map) => map.values_mut().for_each(fold_lists),
        _ => {}
    }
}

/// A list for each key of at least two objects that have the same keys.
fn columns_of(rows: &mut [Value]) -> Option<Map<String, Value>> {
    let (Some(Value::Object(first)), true) = (rows.first(), rows.len() > 1) else { return None };
    let keys: Vec<String> = first.keys().cloned().collect();
    let has_keys =
        |row: &Value| row.as_object().is_some_and(|row| row.keys().eq(keys.iter()) && !row.is_empty());
    if !rows.iter().all(has_keys) {
        return None;
    }
    let mut columns = Map::new();
    columns.insert(LENGTH.into(), rows.len().into());
    for key in keys {
        let mut column: Value = rows.iter_mut().map(|row| row[&key].take()).collect();
        fold_lists(&mut column);
        columns.insert(key, column);
    }
    Some(columns)
}

fn unfold_lists(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter_mut().try_for_each(unfold_lists),
        Value::Object(map) => {
            let length = map.remove(LENGTH);
            map.values_mut().try_for_each(unfold_lists)?;
            if let Some(length) = length {
                *value = rows_of(std::mem::take(map), &length)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn rows_of(columns: Map<String, Value>, length: &Value) -> Result<Value, String> {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    for (key, column) in columns {
        let Value::Array(column) = column else { return Err(format!("{key} is no list")) };
        rows.resize_with(column.len().max(rows.len()), Map::new);
        for (row, value) in rows.iter_mut().zip(column) {
            row.insert(key.clone(), value);
        }
    }
    let is_whole = rows.windows(2).all(|pair| pair[0].len() == pair[1].len());
    if !is_whole || Some(rows.len() as u64) != length.as_u64() {
        return Err("a list has lost some of its values".into());
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn back(value: &Value) -> Value {
        let mut folded = value.clone();
        let histograms = fold(&mut folded).expect("it can be folded");
        let mut text = serde_json::from_str(&folded.to_string()).unwrap();
        unfold(&mut text, &histograms).unwrap();
        text
    }

    #[test]
    fn every_value_comes_back() {
        for value in [
            json!(null),
            json!([]),
            json!([{}]),
            json!([{}, {}]),
            json!([{ "a": 1 }]),
            json!([{ "a": 1, "b": [] }, { "a": null, "b": [1, 2] }, { "a": "x", "b": {} }]),
            json!([{ "a": 1 }, { "b": 1 }]),
            json!([{ "a": 1 }, 2, [{ "a": 1 }, { "a": 2 }]]),
            json!({ "a": [{ "b": [{ "c": 1.5 }, { "c": -1 }] }, { "b": [{ "c": 0.1 }, { "c": u64::MAX }] }] }),
            json!({ "histogram": "AAEC", "rounds": [{ "histogram": "" }, { "histogram": "/w==" }] }),
            json!([{ "histogram": null }, { "histogram": "no base64" }, { "histogram": "/x==" }]),
        ] {
            assert_eq!(back(&value), value);
        }
        let mut folded = json!([{ "a": 1, "histogram": "AAEC" }, { "a": 2, "histogram": "/w==" }]);
        assert_eq!(fold(&mut folded), Some(vec![0, 1, 2, 255]));
        assert_eq!(folded, json!({ "#": 2, "a": [1, 2], "histogram": [3, 1] }));
    }

    #[test]
    fn what_looks_folded_is_not_folded_and_what_is_not_whole_is_refused() {
        for value in [json!({ "#": 1 }), json!([{ "a": { "#": [] } }]), json!({ "histogram": 3 })] {
            assert_eq!(fold(&mut value.clone()), None, "{value}");
        }
        for (value, histograms) in [
            (json!({ "#": 2, "a": [1] }), &[][..]),
            (json!({ "#": 2, "a": [1, 2], "b": [1] }), &[]),
            (json!({ "#": 2, "a": [1], "b": [1, 2] }), &[]),
            (json!({ "#": 1, "a": 7 }), &[]),
            (json!({ "histogram": 3 }), &[0, 1]),
            (json!({ "histogram": 1 }), &[0, 1]),
            (json!({ "histogram": -1 }), &[]),
        ] {
            assert!(unfold(&mut value.clone(), histograms).is_err(), "{value}");
        }
    }
}
