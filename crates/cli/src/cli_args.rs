//! What one command line requests, parsed and checked. Plain data; it looks at no target and opens nothing.

use crate::subcommand::Subcommand;
use rdsk_experiment::PlanOptions;
use rdsk_model::Experiment;
use rdsk_report::{Charset, Compactness};
use rdsk_targets::Permission;
use std::path::PathBuf;

/// Where the JSON document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Standard output, which then holds nothing else.
    Stdout,
    File(PathBuf),
}

/// A form in which Records leave rdsk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Csv,
    OpenMetrics,
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    Measure,
    PlanOnly,
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

#[derive(Clone, Debug)]
pub(crate) struct CliArgs {
    pub(crate) subcommand: &'static Subcommand,
    /// The names of the flags that were given.
    pub(crate) given: Vec<&'static str>,
    /// Names as typed; empty if none was given.
    pub(crate) targets: Vec<String>,
    /// What to measure; empty for `show`, `info` and `sim`.
    pub(crate) experiments: Vec<Experiment>,
    pub(crate) options: PlanOptions,
    pub(crate) size_bytes: Option<u64>,
    /// The Record whose passes are continued.
    pub(crate) resume: Option<PathBuf>,
    /// What may be overwritten.
    pub(crate) permission: Permission,
    pub(crate) json: Option<JsonPlace>,
    pub(crate) compactness: Compactness,
    /// Where further forms of the Record go.
    pub(crate) forms: Vec<(Form, JsonPlace)>,
    pub(crate) run_mode: RunMode,
    /// The user's name for the run.
    pub(crate) label: Option<String>,
    pub(crate) verbosity: Verbosity,
    pub(crate) detail: Detail,
    pub(crate) color: ColorWhen,
    pub(crate) charset: Charset,
}

impl CliArgs {
    /// A command with nothing but defaults.
    pub(crate) fn new(subcommand: &'static Subcommand) -> Self {
        Self {
            subcommand,
            given: Vec::new(),
            targets: Vec::new(),
            experiments: subcommand.experiments.to_vec(),
            options: PlanOptions::default(),
            size_bytes: None,
            resume: None,
            permission: Permission::default(),
            json: None,
            compactness: Compactness::Full,
            forms: Vec::new(),
            run_mode: RunMode::Measure,
            label: None,
            verbosity: Verbosity::Normal,
            detail: Detail::Short,
            color: ColorWhen::Auto,
            charset: Charset::Unicode,
        }
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.given.contains(&flag)
    }
}
