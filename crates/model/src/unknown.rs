//! Sizes that rdsk always knows and another program may not say: 0 in memory, where no size is 0, and null in the document.
//! Offsets likewise, which may be 0, so that another number stands for one that is not known.

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

/// An offset that another program did not say: no byte of a target has it.
pub const UNKNOWN_OFFSET: u64 = u64::MAX;

/// The same for offsets.
pub(crate) mod offset {
    use super::UNKNOWN_OFFSET;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes an offset, or null for one that is not known.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
    pub(crate) fn serialize<S: Serializer>(offset_bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*offset_bytes).filter(|&offset| offset != UNKNOWN_OFFSET).serialize(serializer)
    }

    /// Reads an offset, or the one that is not known for null.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.unwrap_or(UNKNOWN_OFFSET))
    }
}

/// The same for numbers that are at least 1 where they are known.
pub(crate) mod count {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes a number, or null for one that is not known.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
    pub(crate) fn serialize<S: Serializer>(count: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        Some(*count).filter(|&count| count > 0).serialize(serializer)
    }

    /// Reads a number, or 0 for null.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        Ok(Option::<u32>::deserialize(deserializer)?.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::UNKNOWN_OFFSET;
    use crate::{Target, Workload};

    #[test]
    fn an_offset_that_is_not_known_is_null_and_0_is_known() {
        for (offset_bytes, shown) in [(UNKNOWN_OFFSET, serde_json::Value::Null), (0, 0.into()), (7, 7.into())]
        {
            let workload = Workload { offset_bytes, ..Workload::sequential_read(1) };
            let document = serde_json::to_value(&workload).unwrap();
            assert_eq!(document["offset_bytes"], shown);
            assert_eq!(workload.known_offset_bytes(), shown.as_u64());
            assert_eq!(serde_json::from_value::<Workload>(document).unwrap(), workload);
        }
    }

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
