//! What the list of commands says of `rdsk export` and `rdsk import`. Text only.

/// One line on `rdsk export`.
pub(crate) const EXPORT: &str = "Write Records as CSV, OpenMetrics, Markdown or JSON";
/// One line on `rdsk import`.
pub(crate) const IMPORT: &str = "Read what fio measured, or a Record, and explain it as far as it goes";
