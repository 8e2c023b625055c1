//! The options of `rdsk report`. They parse words and open nothing.

use super::summary::SUMMARY;
use crate::cli_args::JsonPlace;
use crate::parse::{HELP_WIDTH, usage, usage_problem};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ColorChoice, Command};
use rdsk_model::Problem;
use std::ffi::OsString;
use std::path::PathBuf;

const DETAILS: &str = "The page is one file that works without a network: what was measured, the headline and the findings in \
                       words, and for each question the figures with their tables and their evidence. Several runs are laid over \
                       each other. --svg and --png write the same figures as files, in light colours.";

const EXAMPLES: &str = "Examples:
  rdsk report result.json -o result.html
      the page of one run
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

#[derive(Debug)]
pub(super) enum Parsed {
    Options(Options),
    /// The help.
    Text(String),
}

/// Parses the words after `rdsk`, of which the first is `report`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed, Problem> {
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Parsed::Text(error.to_string()));
        }
        Err(error) => return Err(usage_problem(&error, "report")),
    };
    options(&matches).map(Parsed::Options)
}

fn options(matches: &ArgMatches) -> Result<Options, Problem> {
    let words: Vec<String> = matches.get_many::<String>("WORD").unwrap_or_default().cloned().collect();
    let directory = |name: &str| matches.get_one::<OsString>(name).map(PathBuf::from);
    let page = matches.get_one::<OsString>("output").map(|place| match place.to_str() {
        Some("-") => JsonPlace::Stdout,
        _ => JsonPlace::File(PathBuf::from(place)),
    });
    let options = Options { words, page, svg: directory("svg"), png: directory("png") };
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
    let empty = [&options.svg, &options.png].into_iter().flatten().any(|path| path.as_os_str().is_empty());
    if empty || options.page == Some(JsonPlace::File(PathBuf::new())) {
        return Err(usage(
            "the name of the output is empty",
            "name a file after -o, or a directory after --svg and --png",
        ));
    }
    if (&options.page, &options.svg, &options.png) == (&None, &None, &None) {
        return Err(usage("nothing says where to write", "add -o FILE.html, --svg DIR or --png DIR"));
    }
    Ok(options)
}

fn command() -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .num_args(1)
            .value_parser(clap::value_parser!(OsString))
            .help(help)
    };
    Command::new("rdsk report")
        .bin_name("rdsk report")
        .about(SUMMARY)
        .long_about(format!("{SUMMARY}.\n\n{DETAILS}"))
        .after_help(EXAMPLES)
        .color(ColorChoice::Never)
        .term_width(HELP_WIDTH)
        .arg(path("output", "FILE", "Write the page to FILE, or with - to standard output").short('o'))
        .arg(path(
            "svg",
            "DIR",
            "Write each figure as an SVG file into DIR, which is created; no file there is replaced",
        ))
        .arg(path("png", "DIR", "Write each figure as a PNG file into DIR; needs a font on this machine"))
        .arg(
            Arg::new("WORD")
                .value_name("WORD")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("Runs of rdsk list, or files that rdsk wrote with --json"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, Problem> {
        let words: Vec<OsString> = shlex::split(line).unwrap().into_iter().map(Into::into).collect();
        match parse(&words)? {
            Parsed::Options(options) => Ok(options),
            Parsed::Text(text) => panic!("{text}"),
        }
    }

    #[test]
    fn the_command_is_well_formed_and_its_examples_parse() {
        command().debug_assert();
        let lines: Vec<&str> =
            EXAMPLES.lines().filter_map(|line| line.trim().strip_prefix("rdsk ")).collect();
        assert_eq!(lines.len(), 3);
        for line in lines {
            parsed(line).unwrap();
        }
    }

    #[test]
    fn runs_and_places() {
        let options = parsed("report a.json b.json -o x.html --svg s --png p").unwrap();
        assert_eq!(options.words, ["a.json", "b.json"]);
        assert_eq!(options.page, Some(JsonPlace::File("x.html".into())));
        assert_eq!((options.svg, options.png), (Some("s".into()), Some("p".into())));
        assert_eq!(parsed("report a --output -").unwrap().page, Some(JsonPlace::Stdout));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_a_line() {
        let many = format!("report {} -o x", "a ".repeat(17));
        for (line, said) in [
            ("report -o x.html", "at least one run"),
            ("report a.json", "where to write"),
            ("report '' -o x", "at least one run"),
            ("report a -o ''", "empty"),
            ("report a --svg ''", "empty"),
            ("report a --bs 4k", "--bs"),
            (many.as_str(), "at most 16"),
        ] {
            let problem = parsed(line).expect_err(line);
            assert!(problem.message.contains(said), "{line}: {problem}");
            assert!(problem.hint.is_some() && !problem.message.contains('\n'), "{line}");
        }
    }
}
