//! Whether a file holds what a run measured: nothing else replaces such a file, least of all the document of a mistake. It only reads.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// The keys that say whether something was measured. Everything else in a document is passed over and takes no memory.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    cells: Vec<KeptCell>,
    /// The runs of `rdsk dd`, which has no cells where neither end is storage.
    #[serde(default)]
    copies: Vec<IgnoredAny>,
    /// The Records of a comparison that made its runs itself.
    #[serde(default)]
    records: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct KeptCell {
    #[serde(default)]
    result: KeptResult,
}

#[derive(Default, Deserialize)]
struct KeptResult {
    ops: Option<u64>,
    /// That I/O failed is a result, too.
    #[serde(default)]
    errors: Vec<IgnoredAny>,
}

impl Document {
    /// Whether this document may replace one that holds a run: the cells of a run that ended before its first I/O hold nothing.
    fn is_measured(&self) -> bool {
        let did_something =
            |cell: &KeptCell| cell.result.ops.is_some_and(|ops| ops > 0) || !cell.result.errors.is_empty();
        self.cells.iter().any(did_something) || !self.copies.is_empty() || !self.records.is_empty()
    }

    /// Whether nothing is lost with it.
    fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.copies.is_empty() && self.records.is_empty()
    }
}

/// Whether the file, a JSON document, stays because it holds what was measured and `document` does not. The other forms of a Record
/// can be made again from it.
pub(super) fn stays(path: &Path, document: &str) -> bool {
    !is_measured(document) && !is_expendable(path)
}

fn is_measured(document: &str) -> bool {
    serde_json::from_str(document).is_ok_and(|document: Document| document.is_measured())
}

/// Whether the file holds no run, not even its cells. One that cannot be read to its end may hold a part of one.
fn is_expendable(path: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(true);
        }
        // What lies behind the document does not matter.
        let mut reader = serde_json::Deserializer::from_reader(BufReader::new(file));
        Ok(Document::deserialize(&mut reader)?.is_empty())
    };
    read().unwrap_or(false)
}
