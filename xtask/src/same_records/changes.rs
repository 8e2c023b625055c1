//! What two Records of the same measurement may differ in: facts of one run, keys that a change renames, adds or removes,
//! and texts. In the patterns `[]` stands for any element of a list, and a pattern covers everything below it. The tables of
//! renamed, added and derived keys hold what changed since the last release, and are emptied with it.

use super::compare::{Changes, Derived};
use rdsk_analysis::iostat::{COLUMNS, iostat_row, waiting_mean};
use rdsk_model::DeviceEvidence;
use serde_json::{Map, Value};

/// The differences that are allowed now.
pub(super) const CHANGES: Changes<'static> = Changes {
    ignored: &["id", "command", "rdsk_version", "started_at"],
    renamed: &[("observer.rung", "observer.source"), ("cells[].evidence.rung", "cells[].evidence.source")],
    added: &[
        "cells[].evidence.device[].visits",
        "cells[].evidence.device[].diskstat",
        "cells[].evidence.device[].waiting_ns",
        "findings[].severity",
        "findings[].experiment",
        "findings[].covers_verdicts",
    ],
    derived: DERIVED,
    words: &[
        "notes[]",
        "error.message",
        "error.hint",
        "observer.why_not_higher",
        "cells[].result.why",
        "cells[].result.issuing.why",
        "cells[].evidence.counted[].why",
        "cells[].verdict.text",
        "findings[].title",
        "findings[].text",
        "findings[].advice",
    ],
    words_with_numbers: &["findings[].evidence[]"],
};

/// Keys that are no longer stored, because they follow from others: the row of iostat, and two means.
const DERIVED: &[Derived<'static>] = &[
    Derived { within: DEVICE, key: "iostat", compute: iostat },
    Derived {
        within: DEVICE,
        key: "in_flight_mean",
        compute: |device| evidence(device).and_then(|one| iostat_row(&one)).map(|row| row.aqu_sz).into(),
    },
    Derived {
        within: DEVICE,
        key: "waiting_mean",
        compute: |device| evidence(device).and_then(|one| waiting_mean(&one)).into(),
    },
];
const DEVICE: &str = "cells[].evidence.device[]";

fn iostat(device: &Map<String, Value>) -> Value {
    let Some(row) = evidence(device).and_then(|device| iostat_row(&device)) else { return Value::Null };
    COLUMNS.iter().map(|(name, column)| ((*name).to_owned(), Value::from(column(&row)))).collect()
}

fn evidence(device: &Map<String, Value>) -> Option<DeviceEvidence> {
    serde_json::from_value(Value::Object(device.clone())).ok()
}
