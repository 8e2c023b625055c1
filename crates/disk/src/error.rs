//! Errors in a system's parameters and in a call to a host. They name what and where; the caller prints.

use crate::request::Fault;

/// How like a name must be to be meant, by Jaro and Winkler: 1 for the same letters.
const LIKE: f64 = 0.85;
/// Names that are proposed.
const PROPOSED: usize = 3;

/// Why a system cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "a name as given, a key with its tables, a reason in words, a line from 1")]
pub enum ParamError {
    /// No built-in system has this name.
    #[error("no simulated system is named \"{}\"", rdsk_units::printable(.name))]
    UnknownName { name: String },
    /// The text is not TOML, or has unknown keys or wrong types. The key is known where the text is TOML; the line is not
    /// where the text is a variant of another.
    #[error("{}: {}", place(*.line, key.as_deref()), rdsk_units::printable(.reason))]
    Malformed { line: Option<usize>, key: Option<String>, reason: String },
    /// A value that no device or host can have. The line is unknown where the key `luns[0].device.disk.rpm` does not stand
    /// in the text, but in a variant's base, or is a default.
    #[error("{}: {reason}", place(*.line, Some(.key)))]
    Impossible { line: Option<usize>, key: String, reason: String },
}

impl ParamError {
    /// What to do about it: one line, without a full stop.
    pub fn hint(&self) -> String {
        match self {
            ParamError::UnknownName { name } => {
                let near = match nearest(name).as_slice() {
                    [] => String::new(),
                    names => format!("did you mean {}? ", names.join(", ")),
                };
                format!("{near}rdsk sim list shows the systems; a file of your own starts with ./")
            }
            ParamError::Malformed { .. } => {
                "start from one of the built-in systems, whose files name every key".to_owned()
            }
            ParamError::Impossible { key, .. } => format!("correct {key}"),
        }
    }
}

fn place(line: Option<usize>, key: Option<&str>) -> String {
    match (line, key) {
        (Some(line), Some(key)) => format!("line {line}: {}", rdsk_units::printable(key)),
        (Some(line), None) => format!("line {line}"),
        (None, Some(key)) => rdsk_units::printable(key),
        (None, None) => "malformed".to_owned(),
    }
}

/// Why a host refused a call, before any request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what the messages above them say")]
pub enum HostError {
    /// Direct I/O must be whole sectors (EINVAL).
    #[error(
        "direct I/O of {bytes} bytes at byte {offset_bytes} is not made of whole {sector_bytes}-byte sectors"
    )]
    Misaligned { offset_bytes: u64, bytes: u64, sector_bytes: u64 },
    /// The system has no direct I/O.
    #[error("this system has no direct I/O")]
    NoDirect,
    /// The system has fewer LUNs.
    #[error("there is no LUN {lun}")]
    NoSuchLun { lun: usize },
    /// A call of no bytes, or past the end (the device's own answer).
    #[error(transparent)]
    Device(#[from] Fault),
    /// A read or write of no bytes.
    #[error("a call of no bytes")]
    Empty,
}

/// The built-in systems whose names are most like this one, the nearest first.
fn nearest(name: &str) -> Vec<&'static str> {
    let mut names: Vec<(f64, &str)> = crate::builtin::NAMES
        .iter()
        .map(|built_in| (strsim::jaro_winkler(name, built_in), *built_in))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .collect();
    names.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    names.into_iter().take(PROPOSED).map(|(_, built_in)| built_in).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_alike_are_proposed_and_no_long_list() {
        let hint = |name: &str| ParamError::UnknownName { name: name.into() }.hint();
        for (name, first) in [("hpux", "hpux-k460,"), ("linx-disk", "linux-disk,"), ("raid-5", "raid5,")] {
            assert!(hint(name).starts_with(&format!("did you mean {first}")), "{}", hint(name));
            assert!(hint(name).split(", ").count() <= PROPOSED, "{}", hint(name));
        }
        for name in ["nope", ""] {
            assert_eq!(hint(name), "rdsk sim list shows the systems; a file of your own starts with ./");
        }
    }
}
