//! The arguments of `rdsk report`. They parse words and open nothing.

use crate::cli_args::JsonPlace;
use crate::compare::fleet;
use crate::output_args::HistoryArgs;
use crate::usage::usage;
use crate::{completion, value};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_model::Problem;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  rdsk report last --open
      the page of the newest run, written to a file and shown
  rdsk report sda.json sdb.json -o both.html
      two runs over each other
  rdsk report result.json --svg figures
      every figure as an SVG file in the directory figures";

/// More would not be distinguished on one graph.
const MAX_RECORDS: usize = 16;

/// Write a page with figures of earlier runs, or the figures as files.
///
/// The page is one file that works without a network: what was measured, the headline and the findings in words, and for
/// each question the figures with their tables and their evidence. Several runs are laid over each other. --svg and --png
/// write the same figures as files, in light colours. Without -o the page is a file of the current directory that is named
/// after the run, and its name is printed. Of a directory of results, or more than 16 runs, the outliers are named as rdsk
/// compare does, as text.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Report {
    /// Write the page to FILE, or with - to standard output
    #[arg(long, short, value_name = "FILE", value_parser = value::place())]
    pub(super) output: Option<JsonPlace>,
    /// Show the page, by xdg-open
    #[arg(long)]
    pub(super) open: bool,
    /// Write each figure as an SVG file into DIR, which is created; no file there is replaced
    #[arg(long, value_name = "DIR", value_parser = value::path())]
    pub(super) svg: Option<PathBuf>,
    /// Write each figure as a PNG file into DIR, by rsvg-convert
    #[arg(long, value_name = "DIR", value_parser = value::path())]
    pub(super) png: Option<PathBuf>,
    #[command(flatten)]
    pub(super) history: HistoryArgs,
    /// Runs of rdsk list, files that rdsk wrote with --json, or directories of these
    #[arg(
        value_name = "RUN",
        required = true,
        value_parser = value::name("run", "name a run of rdsk list, or a file that rdsk wrote with --json"),
        add = ArgValueCompleter::new(completion::runs_and_files)
    )]
    pub(super) runs: Vec<String>,
}

impl Report {
    /// Whether these are the runs of a fleet: a directory of runs, or more than one graph distinguishes.
    pub(super) fn is_fleet(&self) -> bool {
        self.runs.len() > MAX_RECORDS || self.runs.iter().any(|word| fleet::is_directory(Path::new(word)))
    }

    /// Refuses what means nothing.
    ///
    /// # Errors
    /// When figures of a fleet are wanted, or a page that goes to standard output is to be shown.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let has_place = self.output.is_some() || self.open || self.svg.is_some() || self.png.is_some();
        if self.is_fleet() && has_place {
            return Err(usage(
                format!("more than {MAX_RECORDS} runs, or a directory, have a page of text only"),
                "leave out -o, --open, --svg and --png, or name fewer files",
            ));
        }
        if self.open && self.output == Some(JsonPlace::Stdout) {
            return Err(usage("--open shows a file, and -o - writes none", "leave out one of them"));
        }
        Ok(())
    }

    /// Whether there is a page, and not figures as files only.
    pub(super) fn has_page(&self) -> bool {
        self.open || self.output.is_some() || (&self.svg, &self.png) == (&None, &None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn runs_and_places() {
        let report: Report = parsed("a.json b.json -o x.html --svg s --png p --history h.db").unwrap();
        assert_eq!(report.runs, ["a.json", "b.json"]);
        assert_eq!(report.output, Some(JsonPlace::File("x.html".into())));
        assert_eq!((report.svg, report.png), (Some("s".into()), Some("p".into())));
        assert_eq!(report.history.history, Some("h.db".into()));
        assert_eq!(parsed::<Report>("a --output -").unwrap().output, Some(JsonPlace::Stdout));
        for (line, has_page) in [("a", true), ("a --svg s", false), ("a --svg s --open", true)] {
            assert_eq!(parsed::<Report>(line).unwrap().has_page(), has_page, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_a_line() {
        let many = format!("{} -o x", "a ".repeat(17));
        refuses(
            |report: Report| report.check(),
            &[
                ("-o x.html", "RUN is missing"),
                ("a.json -o - --open", "--open shows a file"),
                ("'' -o x", "the name of a run is empty"),
                ("a -o ''", "empty"),
                ("a --svg ''", "empty"),
                ("a --svg --png", "--svg: a value is missing"),
                ("a --bs 4k", "--bs"),
                (many.as_str(), "more than 16 runs"),
            ],
        );
    }
}
