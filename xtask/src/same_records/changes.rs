//! What two Records of the same measurement may differ in: facts of one run, keys that a change renames, adds or removes,
//! and texts. In the patterns `[]` stands for any element of a list, and a pattern covers everything below it. The tables of
//! renamed, added and derived keys hold what changed since the last release, and are emptied with it.

use super::compare::{Changes, Derived};

/// The differences that are allowed now.
pub(super) const CHANGES: Changes<'static> = Changes {
    ignored: &["id", "command", "rdsk_version", "started_at"],
    renamed: &[("observer.rung", "observer.source"), ("cells[].evidence.rung", "cells[].evidence.source")],
    added: &[],
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

/// Keys that are no longer stored, because they follow from others.
const DERIVED: &[Derived<'static>] = &[];
