//! Folds a JSON value into one that compresses better, and back: a list of alike objects, such as the visits of a cell, becomes one
//! object with a list for each key, and histograms, which are base64 in a Record, become bytes beside it. It compresses nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The key whose text is a histogram.
const HISTOGRAM: &str = "histogram";
/// The key by which an object that stands for a list is known, with its length. No key of a Record begins so.
const LENGTH: &str = "#";

/// How much the lists of a value may become again. A few bytes that are folded can stand for many rows, and for a long key in each
/// of them, so that a hostile document would take all memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Rows in all lists.
    pub(crate) rows: usize,
    /// Bytes of the keys in all rows.
    pub(crate) key_bytes: usize,
}

/// Lists that would become more than this are not folded.
pub(crate) const MOST: Budget = Budget { rows: 1 << 20, key_bytes: 64 << 20 };

impl Budget {
    /// Takes a list off; `None`, which takes nothing, for one that is too large.
    fn take<'a>(&mut self, rows: usize, keys: impl Iterator<Item = &'a String>) -> Option<()> {
        let key_bytes = keys.map(String::len).sum::<usize>().checked_mul(rows)?;
        let (rows, key_bytes) = (self.rows.checked_sub(rows)?, self.key_bytes.checked_sub(key_bytes)?);
        *self = Self { rows, key_bytes };
        Some(())
    }
}

/// Folds a value, and gives the bytes of its histograms; `None` for one that could not be told from a folded one, which then is
/// spoiled.
pub(crate) fn fold(value: &mut Value, mut budget: Budget) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    take_histograms(value, &mut bytes)?;
    fold_lists(value, &mut budget);
    Some(bytes)
}

/// The value that was folded.
///
/// # Errors
/// When it is none that was folded within this budget.
pub(crate) fn unfold(value: &mut Value, mut histograms: &[u8], mut budget: Budget) -> Result<(), String> {
    unfold_lists(value, &mut budget)?;
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

fn fold_lists(value: &mut Value, budget: &mut Budget) {
    match value {
        Value::Array(rows) => {
            if let Some(columns) = columns_of(rows, budget) {
                *value = Value::Object(columns);
            } else {
                rows.iter_mut().for_each(|row| fold_lists(row, budget));
            }
        }
        Value::Object(map) => map.values_mut().for_each(|value| fold_lists(value, budget)),
        _ => {}
    }
}

/// A list for each key of at least two objects that have the same keys, if they are within the budget.
fn columns_of(rows: &mut [Value], budget: &mut Budget) -> Option<Map<String, Value>> {
    let (Some(Value::Object(first)), true) = (rows.first(), rows.len() > 1) else { return None };
    let keys: Vec<String> = first.keys().cloned().collect();
    let has_keys =
        |row: &Value| row.as_object().is_some_and(|row| row.keys().eq(keys.iter()) && !row.is_empty());
    if !rows.iter().all(has_keys) {
        return None;
    }
    budget.take(rows.len(), keys.iter())?;
    let mut columns = Map::new();
    columns.insert(LENGTH.into(), rows.len().into());
    for key in keys {
        let mut column: Value = rows.iter_mut().map(|row| row[&key].take()).collect();
        fold_lists(&mut column, budget);
        columns.insert(key, column);
    }
    Some(columns)
}

fn unfold_lists(value: &mut Value, budget: &mut Budget) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter_mut().try_for_each(|value| unfold_lists(value, budget)),
        Value::Object(map) => {
            let length = map.remove(LENGTH);
            map.values_mut().try_for_each(|value| unfold_lists(value, budget))?;
            if let Some(length) = length {
                *value = rows_of(std::mem::take(map), &length, budget)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn rows_of(columns: Map<String, Value>, length: &Value, budget: &mut Budget) -> Result<Value, String> {
    let length = columns.values().next().and_then(Value::as_array).map(Vec::len).filter(|&known| {
        let is_whole = |column: &Value| column.as_array().is_some_and(|column| column.len() == known);
        length.as_u64() == Some(known as u64) && columns.values().all(is_whole)
    });
    let length = length.ok_or("a list has lost some of its values")?;
    budget.take(length, columns.keys()).ok_or("its lists are longer than those of any run")?;
    let mut rows = vec![Map::new(); length];
    for (key, column) in columns {
        let Value::Array(column) = column else { unreachable!("each column was found to be a list") };
        for (row, value) in rows.iter_mut().zip(column) {
            row.insert(key.clone(), value);
        }
    }
    Ok(rows.into_iter().map(Value::Object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn back(value: &Value) -> Value {
        back_within(MOST, value)
    }

    fn back_within(budget: Budget, value: &Value) -> Value {
        let mut folded = value.clone();
        let histograms = fold(&mut folded, budget).expect("it can be folded");
        let mut text = serde_json::from_str(&folded.to_string()).unwrap();
        unfold(&mut text, &histograms, budget).unwrap();
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
        assert_eq!(fold(&mut folded, MOST), Some(vec![0, 1, 2, 255]));
        assert_eq!(folded, json!({ "#": 2, "a": [1, 2], "histogram": [3, 1] }));
    }

    #[test]
    fn what_looks_folded_is_not_folded_and_what_is_not_whole_is_refused() {
        for value in [json!({ "#": 1 }), json!([{ "a": { "#": [] } }]), json!({ "histogram": 3 })] {
            assert_eq!(fold(&mut value.clone(), MOST), None, "{value}");
        }
        for (value, histograms) in [
            (json!({ "#": 2, "a": [1] }), &[][..]),
            (json!({ "#": 2, "a": [1, 2], "b": [1] }), &[]),
            (json!({ "#": 2, "a": [1], "b": [1, 2] }), &[]),
            (json!({ "#": 1, "a": 7 }), &[]),
            (json!({ "#": 1 }), &[]),
            (json!({ "histogram": 3 }), &[0, 1]),
            (json!({ "histogram": 1 }), &[0, 1]),
            (json!({ "histogram": -1 }), &[]),
        ] {
            assert!(unfold(&mut value.clone(), histograms, MOST).is_err(), "{value}");
        }
    }

    #[test]
    fn lists_beyond_the_budget_stay_as_they_are_and_are_refused_where_they_are_folded() {
        let row = json!({ "key": 1, "of": [{ "x": 1 }, { "x": 2 }] });
        let value = json!({ "few": [row, row], "more": [row, row, row] });
        for (rows, key_bytes) in
            [(0, 100), (4, 100), (5, 100), (6, 100), (9, 100), (15, 100), (15, 9), (15, 14)]
        {
            assert_eq!(back_within(Budget { rows, key_bytes }, &value), value, "{rows} {key_bytes}");
        }
        let mut folded = value.clone();
        fold(&mut folded, MOST).unwrap();
        for (rows, key_bytes, fits) in [(15, 35, true), (14, 35, false), (15, 34, false)] {
            let unfolded = unfold(&mut folded.clone(), &[], Budget { rows, key_bytes });
            assert_eq!(unfolded.is_ok(), fits, "{rows} {key_bytes}: {unfolded:?}");
        }
        // More keys than any memory takes.
        let bomb = json!({ "#": 100_000, "k".repeat(1 << 20): vec![0; 100_000] });
        assert!(unfold(&mut bomb.clone(), &[], MOST).unwrap_err().contains("longer"));
    }
}
