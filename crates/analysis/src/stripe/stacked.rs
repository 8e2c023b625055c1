//! What the counters of the devices directly below one cannot show: a device that is no array, such as a cache, and arrays further
//! down, with stripes of their own. It takes the kernel's words for what is there, and counts nothing.

use crate::groups::by_key;
use crate::words::{list, plural};
use rdsk_model::ArrayFacts;
use rdsk_units::{Bytes, printable};

/// Devices that keep what is fast, and pass on the rest (Documentation/admin-guide/device-mapper and bcache.rst).
const CACHES: [&str; 3] = ["bcache", "cache", "writecache"];
/// Other targets of device mapper with several devices below, of which none is a member of an array.
const NO_ARRAYS: [&str; 9] =
    ["clone", "era", "integrity", "log-writes", "snapshot", "thin", "thin-pool", "verity", "zoned"];
/// Arrays that are named one by one; of more, only their number follows.
const MAX_NAMED: usize = 4;

/// Why no count of the devices below this one is a layout; `None` if it may be an array.
pub(super) fn of_no_array(words: &ArrayFacts) -> Option<String> {
    let kind = words.level.as_deref()?;
    let what = if CACHES.contains(&kind) {
        "a cache".to_owned()
    } else {
        NO_ARRAYS.contains(&kind).then(|| format!("a device of the kind {kind}"))?
    };
    Some(format!(
        "{} is {what} and no array: which of its devices a request reaches is no layout",
        printable(&words.device)
    ))
}

/// The arrays further down whose stripes the counts do not show, a sentence for those that are alike.
pub(super) fn hidden(below: &[ArrayFacts]) -> Vec<String> {
    let striped = below.iter().filter(|array| has_stripes(array));
    let alike = by_key(striped.map(|array| ((array.level.clone(), array.chunk_bytes), array)));
    let sentence = |((level, chunk_bytes), arrays): ((Option<String>, Option<u64>), Vec<&ArrayFacts>)| {
        let mut names: Vec<String> =
            arrays.iter().take(MAX_NAMED).map(|array| printable(&array.device)).collect();
        if arrays.len() > MAX_NAMED {
            names.push(plural((arrays.len() - MAX_NAMED) as u64, "other"));
        }
        let is = if arrays.len() == 1 { "is" } else { "are" };
        let level = level.map_or_else(|| "striped".to_owned(), |level| printable(&level));
        let chunks =
            chunk_bytes.map_or_else(String::new, |bytes| format!(" with chunks of {}", Bytes(bytes)));
        format!("{} below {is} {level}{chunks}, which these counts do not show", list(&names))
    };
    alike.into_iter().map(sentence).collect()
}

/// Whether an array further down has parity, so that partial stripes may cost reads that nothing counted.
pub(super) fn have_parity(below: &[ArrayFacts]) -> bool {
    below.iter().any(has_parity)
}

fn has_parity(array: &ArrayFacts) -> bool {
    array.level.as_deref().is_some_and(|level| ["raid4", "raid5", "raid6"].contains(&level))
}

/// Copies and devices in a row have none, though md may name a chunk for them.
fn has_stripes(array: &ArrayFacts) -> bool {
    let is_plain = array.level.as_deref().is_some_and(|level| ["raid1", "linear"].contains(&level));
    has_parity(array) || (array.chunk_bytes.is_some() && !is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(device: &str, level: &str, chunk_bytes: Option<u64>) -> ArrayFacts {
        ArrayFacts { device: device.into(), level: Some(level.into()), chunk_bytes, ..ArrayFacts::default() }
    }

    #[test]
    fn arrays_that_are_alike_are_told_of_together_and_mirrors_not_at_all() {
        let below = [
            array("md1", "raid5", Some(64 << 10)),
            array("md2", "raid5", Some(64 << 10)),
            array("md3", "raid1", None),
            array("md4", "linear", Some(64 << 10)),
            array("dm-1", "striped", Some(4 << 10)),
            array("dm-2", "multipath", None),
        ];
        assert_eq!(
            hidden(&below),
            [
                "md1 and md2 below are raid5 with chunks of 64 KiB, which these counts do not show",
                "dm-1 below is striped with chunks of 4 KiB, which these counts do not show"
            ]
        );
        assert!(have_parity(&below) && !have_parity(&below[2..]));
        let many: Vec<ArrayFacts> =
            (0..9).map(|number| array(&format!("md{number}"), "raid6", None)).collect();
        let said = hidden(&many);
        assert_eq!(said, ["md0, md1, md2, md3 and 5 others below are raid6, which these counts do not show"]);
    }

    #[test]
    fn caches_and_their_like_are_no_arrays() {
        for kind in ["cache", "writecache", "bcache", "snapshot", "era", "clone", "log-writes", "integrity"] {
            let why = of_no_array(&array("dm-3", kind, None)).unwrap();
            assert!(why.starts_with("dm-3 is a ") && why.ends_with("is no layout"), "{why}");
        }
        for kind in ["raid0", "raid1", "linear", "striped", "mirror"] {
            assert_eq!(of_no_array(&array("dm-3", kind, Some(64 << 10))), None, "{kind}");
        }
        assert_eq!(of_no_array(&ArrayFacts::default()), None, "who may not ask is told nothing");
    }
}
