//! Words of a workload that another program does not say: any word in memory, of which [`Workload::untold`] says that it means
//! nothing, and null in the document. It decides nothing about what is known.

use crate::{EngineKind, IoPath, Pattern, Sync, Workload};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.untold.is_empty() {
            return Self::serialize(self, serializer);
        }
        let mut document = Self::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        for word in &self.untold {
            document[word.as_str()] = Value::Null;
        }
        document.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

/// Reads a word, or this one for null.
macro_rules! or_any {
    ($($name:ident: $word:ty = $any:expr),+ $(,)?) => {
        $(pub(crate) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$word, D::Error> {
            Ok(Option::<$word>::deserialize(deserializer)?.unwrap_or($any))
        })+
    };
}

or_any!(
    pattern: Pattern = Pattern::Sequential,
    path: IoPath = IoPath::Buffered,
    sync: Sync = Sync::None,
    engine: EngineKind = EngineKind::Sync,
);

#[cfg(test)]
mod tests {
    use crate::workload_words::Untold;
    use crate::{EngineKind, Workload};
    use serde_json::{Value, json};

    #[test]
    fn what_is_not_told_is_null_and_read_again() {
        let told = Workload::sequential_read(1 << 20);
        let document = serde_json::to_value(&told).unwrap();
        assert!(document.get("untold").is_none() && document["path"] == "direct", "{document}");
        assert_eq!(serde_json::from_value::<Workload>(document).unwrap(), told);

        let workload = Workload {
            untold: Untold::ALL.to_vec(),
            queue_depth: 0,
            streams: 0,
            path: crate::IoPath::Buffered,
            engine: EngineKind::Sync,
            ..told
        };
        let document = serde_json::to_value(&workload).unwrap();
        for key in ["pattern", "path", "sync", "engine", "queue_depth", "streams"] {
            assert_eq!(document[key], Value::Null, "{key}");
        }
        assert_eq!(document["untold"], json!(["pattern", "path", "sync", "engine"]));
        assert_eq!(document["block_bytes"], 1 << 20);
        let text = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
        assert_eq!((workload.word(Untold::Path), workload.tells(Untold::Sync)), (None, false));
    }
}
