//! What one command line asks for, parsed and checked. Plain data; it looks at no target and opens nothing.

use crate::verb::Verb;
use rdsk_experiment::PlanOptions;
use rdsk_model::Experiment;
use rdsk_report::Compactness;
use rdsk_targets::Permission;
use std::path::PathBuf;

/// Where the JSON document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Standard output, which then holds nothing else.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// Whether anything is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Do it.
    Measure,
    /// Show the plan and stop.
    PlanOnly,
}

/// How much is said while the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Talk {
    /// The progress line, where there is a terminal, and warnings.
    Normal,
    /// Errors only.
    Quiet,
}

/// Whether the page is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorWish {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is dumb.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The characters of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// Lines, bars and signs of Unicode.
    Unicode,
    /// Plain ASCII drawings.
    Ascii,
}

/// One command line.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The command.
    pub(crate) verb: Verb,
    /// Names as typed; empty where none was given.
    pub(crate) targets: Vec<String>,
    /// The questions; empty for `info`.
    pub(crate) experiments: Vec<Experiment>,
    /// What the plan is to look like.
    pub(crate) options: PlanOptions,
    /// Size of the test file.
    pub(crate) size_bytes: Option<u64>,
    /// The Record whose passes are continued.
    pub(crate) resume: Option<PathBuf>,
    /// What may be overwritten.
    pub(crate) permission: Permission,
    /// Where the document goes, if anywhere.
    pub(crate) json: Option<JsonPlace>,
    /// What the document leaves out.
    pub(crate) compactness: Compactness,
    /// Measure, or only plan.
    pub(crate) aim: Aim,
    /// The user's name for the run.
    pub(crate) label: Option<String>,
    /// How much is said.
    pub(crate) talk: Talk,
    /// Colour.
    pub(crate) color: ColorWish,
    /// Characters.
    pub(crate) letters: Letters,
}

impl Wanted {
    /// A command with nothing but defaults.
    pub(crate) fn new(verb: Verb) -> Self {
        Self {
            verb,
            targets: Vec::new(),
            experiments: verb.experiments(),
            options: PlanOptions::default(),
            size_bytes: None,
            resume: None,
            permission: Permission::default(),
            json: None,
            compactness: Compactness::Full,
            aim: Aim::Measure,
            label: None,
            talk: Talk::Normal,
            color: ColorWish::Auto,
            letters: Letters::Unicode,
        }
    }
}
