//! What flags of several commands choose between. Plain data; it parses nothing and opens nothing.

use std::path::PathBuf;

/// Where the JSON document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Standard output, which then holds nothing else.
    Stdout,
    File(PathBuf),
}

impl From<PathBuf> for JsonPlace {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdout } else { Self::File(path) }
    }
}

/// A form in which Records leave rdsk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Csv,
    OpenMetrics,
    Markdown,
    /// With figures, for a browser.
    Page,
}

/// How much is printed during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// The progress line, on a terminal, and warnings.
    Normal,
    Quiet,
}

/// How much of a Record is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One screen.
    Short,
    /// All screens.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR`, `CLICOLOR` or `TERM` refuse.
    Auto,
    Always,
    Never,
}
