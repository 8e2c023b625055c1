//! Why a text is no Record: one sentence each, without the name of the file, which the caller knows.

/// What keeps a text from becoming a Record.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say, with the unit last")]
pub enum ImportError {
    /// It holds no document that is known.
    #[error("it holds neither a Record of rdsk nor the JSON of fio (--output-format=json or json+)")]
    Unknown,
    /// It is what fio prints in another format.
    #[error("it is fio's {format} output; rdsk reads its JSON (--output-format=json or json+)")]
    FioFormat { format: &'static str },
    /// It begins like a document, and then is none.
    #[error("its JSON is damaged or cut off: {why} at line {line} column {column}")]
    Json { why: String, line: usize, column: usize },
    /// A document of rdsk that is no Record, or one of a later version.
    #[error("its schema is \"{schema}\", and this version reads {readable}", readable = rdsk_model::READABLE_SCHEMAS.join(" and "))]
    Schema { schema: String },
    /// A document of rdsk with something in it that a Record does not hold.
    #[error("rdsk writes no such document: {0}")]
    Record(String),
    /// A key does not hold what belongs there.
    #[error("{program} writes no such document, at {path}: {why}")]
    Key { program: &'static str, path: String, why: String },
    /// A version of fio that counts in other units, or of which they are not known.
    #[error("it is of {version}, and in which units that counts is not known; rdsk reads fio 2 and 3")]
    OldFio { version: String },
    /// More jobs than fio runs.
    #[error("it has {count} jobs, and fio runs at most {most}")]
    ManyJobs { count: usize, most: usize },
    /// There is nothing in it.
    #[error("it has no jobs")]
    NoJobs,
}
