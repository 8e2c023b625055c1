//! What is on a device, as `wipefs --no-act --json` finds it. It only reads the answer.

use rdsk_units::printable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A sign that a device holds something: a filesystem, a partition table, a member of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What: `ext4`, `gpt`, `LVM2_member`; safe to print.
    pub kind: String,
    /// Where the signature is; `None` if only `lsblk` could be asked.
    pub offset_bytes: Option<u64>,
    /// Its label; safe to print.
    pub label: Option<String>,
    /// The UUID of what it is a sign of, as the program printed it.
    #[serde(skip)]
    pub(crate) uuid: Option<String>,
    /// For messages: `ext4 "home"`; safe to print.
    #[serde(skip)]
    pub text: String,
}

impl Signature {
    /// A signature from untrusted text.
    pub(crate) fn new(kind: &str, offset_bytes: Option<u64>, label: Option<&str>) -> Self {
        let kind = printable(kind);
        let label = label.filter(|label| !label.is_empty()).map(printable);
        let text = label.as_ref().map_or_else(|| kind.clone(), |label| format!("{kind} \"{label}\""));
        Self { kind, offset_bytes, label, uuid: None, text }
    }
}

/// Reads the answer; an empty one is no signature.
pub(crate) fn parse(answer: &str) -> serde_json::Result<Vec<Signature>> {
    #[derive(Deserialize)]
    struct Answer {
        signatures: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        offset: Option<String>,
        #[serde(rename = "type")]
        kind: Option<String>,
        label: Option<String>,
        uuid: Option<String>,
    }
    if answer.trim().is_empty() {
        return Ok(Vec::new());
    }
    let answer: Answer = serde_json::from_str(answer)?;
    Ok(answer
        .signatures
        .into_iter()
        .map(|row| {
            let offset = row.offset.as_deref().and_then(|text| text.strip_prefix("0x"));
            let offset = offset.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let signature =
                Signature::new(row.kind.as_deref().unwrap_or("unknown"), offset, row.label.as_deref());
            Signature { uuid: row.uuid, ..signature }
        })
        .collect())
}

/// Each content once, for a message.
pub(crate) fn summary(signatures: &[Signature]) -> String {
    let mut places = BTreeSet::new();
    let texts = signatures.iter().map(|signature| signature.text.as_str());
    let texts: Vec<&str> = texts.filter(|text| places.insert(*text)).collect();
    crate::display::listed(&texts, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(parse("\n").unwrap(), []);
        let answer = r#"{"signatures": [
            {"device":"a", "offset":"0x438", "type":"ext4", "uuid":"175c8840", "label":"ho\"me\u001b[2J"},
            {"device":"a", "offset":"0x200", "type":"gpt", "uuid":null, "label":null},
            {"device":"a", "offset":"0x3fffe00", "type":"gpt", "uuid":null, "label":null}]}"#;
        let signatures = parse(answer).unwrap();
        assert_eq!(signatures[0].offset_bytes, Some(0x438));
        assert_eq!((signatures[0].uuid.as_deref(), &signatures[1].uuid), (Some("175c8840"), &None));
        assert_eq!(summary(&signatures), "ext4 \"ho\"me\\x1b[2J\", gpt");
        assert!(parse("{}").is_err() && parse("[").is_err());
    }
}
