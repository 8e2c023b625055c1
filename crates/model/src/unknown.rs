//! Sizes that rdsk always knows and another program may not tell: 0 in memory, where no size is 0, and null in the document.

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

/// Writes a size, or null for one that is not known.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
pub(crate) fn serialize<S: Serializer>(size_bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*size_bytes).filter(|&size| size > 0).serialize(serializer)
}

/// Reads a size, or 0 for null.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use crate::{Target, Workload};

    #[test]
    fn a_size_that_is_not_known_is_null_and_no_zero() {
        let (target, workload) = (Target::default(), Workload::sequential_read(0));
        let document = serde_json::json!({ "target": target, "workload": workload });
        assert!(document["target"]["size_bytes"].is_null() && document["workload"]["span_bytes"].is_null());
        assert_eq!(serde_json::from_value::<Target>(document["target"].clone()).unwrap(), target);
        assert_eq!(serde_json::from_value::<Workload>(document["workload"].clone()).unwrap(), workload);
        let known = serde_json::to_value(Workload::sequential_read(4096)).unwrap();
        assert_eq!(known["span_bytes"], 4096);
        assert_eq!(serde_json::from_value::<Workload>(known).unwrap().span_bytes, 4096);
    }
}
