//! The options of `rdsk report`. They parse words and open nothing.

use crate::cli_args::JsonPlace;
use crate::own_command::{self, Parsed, base, many, path, path_of};
use crate::parse::usage;
use crate::subcommand::OwnCommand;
use clap::{ArgMatches, Command};
use rdsk_model::Problem;
use std::ffi::OsString;
use std::path::PathBuf;

const DETAILS: &str = "The page is one file that works without a network: what was measured, the headline and the findings in \
                       words, and for each question the figures with their tables and their evidence. Several runs are laid over \
                       each other. --svg and --png write the same figures as files, in light colours.";

const EXAMPLES: &str = "Examples:
  rdsk report last -o result.html
      the page of the newest run
  rdsk report sda.json sdb.json -o both.html
      two runs over each other
  rdsk report result.json --svg figures
      every figure as an SVG file in the directory figures";

/// More would not be told apart on one graph.
const MAX_RECORDS: usize = 16;

/// What one command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Records by their words; at least one.
    pub(super) words: Vec<String>,
    pub(super) page: Option<JsonPlace>,
    pub(super) svg: Option<PathBuf>,
    pub(super) png: Option<PathBuf>,
}

/// Parses the words after `rdsk`, of which the first is `report`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed<Options>, Problem> {
    own_command::parse(command(), words, options)
}

fn options(matches: &ArgMatches) -> Result<Options, Problem> {
    let words: Vec<String> = matches.get_many::<String>("RUN").unwrap_or_default().cloned().collect();
    let page = path_of(matches, "output")?
        .map(|path| if path.as_os_str() == "-" { JsonPlace::Stdout } else { JsonPlace::File(path) });
    let options = Options { words, page, svg: path_of(matches, "svg")?, png: path_of(matches, "png")? };
    if options.words.is_empty() || options.words.iter().any(String::is_empty) {
        return Err(usage(
            "report takes at least one run",
            "name a run of rdsk list, or a file that rdsk wrote with --json",
        ));
    }
    if options.words.len() > MAX_RECORDS {
        return Err(usage(
            format!("report lays at most {MAX_RECORDS} runs over each other"),
            "name fewer of them, or write several pages",
        ));
    }
    if (&options.page, &options.svg, &options.png) == (&None, &None, &None) {
        return Err(usage("nothing says where to write", "add -o FILE.html, --svg DIR or --png DIR"));
    }
    Ok(options)
}

pub(crate) fn command() -> Command {
    base(OwnCommand::Report, DETAILS, EXAMPLES)
        .arg(path("output", "FILE", "Write the page to FILE, or with - to standard output").short('o'))
        .arg(path(
            "svg",
            "DIR",
            "Write each figure as an SVG file into DIR, which is created; no file there is replaced",
        ))
        .arg(path("png", "DIR", "Write each figure as a PNG file into DIR, by rsvg-convert"))
        .arg(own_command::history())
        .arg(many("RUN", "Runs of rdsk list, or files that rdsk wrote with --json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{self, history_of, is_well_formed, refuses};

    fn parsed(line: &str) -> Result<Options, Problem> {
        testing::parsed(parse, line)
    }

    #[test]
    fn the_command_is_well_formed_and_its_examples_parse() {
        is_well_formed(parse, OwnCommand::Report, command(), EXAMPLES, 3);
    }

    #[test]
    fn runs_and_places() {
        let options = parsed("report a.json b.json -o x.html --svg s --png p").unwrap();
        assert_eq!(options.words, ["a.json", "b.json"]);
        assert_eq!(options.page, Some(JsonPlace::File("x.html".into())));
        assert_eq!((options.svg, options.png), (Some("s".into()), Some("p".into())));
        assert_eq!(parsed("report a --output -").unwrap().page, Some(JsonPlace::Stdout));
        assert_eq!(history_of(parse, "report a -o x --history h.db"), Some("h.db".into()));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_a_line() {
        let many = format!("report {} -o x", "a ".repeat(17));
        refuses(
            parse,
            &[
                ("report -o x.html", "at least one run"),
                ("report a.json", "where to write"),
                ("report '' -o x", "at least one run"),
                ("report a -o ''", "empty"),
                ("report a --svg ''", "empty"),
                ("report a --svg --png", "--svg: a value is missing"),
                ("report a --bs 4k", "--bs"),
                (many.as_str(), "at most 16"),
            ],
        );
    }
}
