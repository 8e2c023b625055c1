//! The options of `rdsk compare`. They parse words and open nothing.

use crate::cli_args::{JsonPlace, RunMode};
use crate::flags::{json_place, value};
use crate::own_command::{self, Parsed, base, many, one, switch};
use crate::parse::{Parsed as ParsedLine, bad, usage};
use crate::subcommand::{MEASURING, OwnCommand};
use clap::{ArgAction, ArgMatches, Command};
use rdsk_compare::{Condition, Metric};
use rdsk_model::Problem;
use rdsk_report::Charset;
use rdsk_report::compare::Extent;
use rdsk_units::printable;
use std::ffi::OsString;

const DETAILS: &str = "A RUN is what rdsk show takes: a run of rdsk list, or a file that rdsk wrote with --json. The first one is the baseline. A simulated \
                       system (sim:NAME) is run. Only cells that ask the same are compared; what differs between the runs is listed \
                       first. With --repeat the two quoted command lines after -- are run in turn, A B B A, and the runs are compared.";

const EXAMPLES: &str = r"Examples:
  rdsk compare before.json after.json
      what changed, and how sure that is
  rdsk compare before.json after.json \
      --fail-if 'slower>5%' --fail-if 'p99:slower>10%'
      for CI: exit code 1 if a figure is surely so much slower
  rdsk compare --repeat 5 -- \
      'stream /dev/sdb --rw read' 'stream /dev/sdb --rw read --iodepth 8'
      two command lines, five times each in turn
  rdsk compare --repeat 5 \
      --prepare-a 'echo none >/sys/block/sdb/queue/scheduler' \
      --prepare-b 'echo bfq >/sys/block/sdb/queue/scheduler' \
      -- 'run /dev/sdb' 'run /dev/sdb'
      one command line before and after a change
  rdsk compare --trend headline/read/sequential \
      monday.json tuesday.json wednesday.json
      one cell over many runs, and since when it has changed
  rdsk compare sim:tms-ramsan sim:tms-ramsan-2 --question scale
      two simulated systems";

/// A comparison of more pairs would be given up before it ends.
const MOST_PAIRS: u32 = 1000;

/// Two command lines that are run in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    /// Runs of each.
    pub(super) count: u32,
    /// What a shell runs before each run of A and of B.
    pub(super) prepare: [Option<String>; 2],
    /// The words of both, without the program.
    pub(super) lines: [Vec<OsString>; 2],
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Runs with the first one.
    Records,
    /// The course of a cell.
    Trend(String, Metric),
    /// Two command lines.
    Repeat(Repeat),
}

/// What one command line requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// Names of runs, as typed.
    pub(super) words: Vec<String>,
    pub(super) task: Task,
    pub(super) extent: Extent,
    pub(super) charset: Charset,
    pub(super) json: Option<JsonPlace>,
    pub(super) conditions: Vec<Condition>,
    /// Whether data that leave a condition open fail, too.
    pub(super) fails_if_unsure: bool,
    /// The command that runs a simulated system.
    pub(super) question: String,
    pub(super) is_quiet: bool,
}

/// Parses the words after `rdsk`, of which the first is `compare`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed<Options>, Problem> {
    own_command::parse(command(), words, |matches| {
        let options = options(matches)?;
        check(&options)?;
        Ok(options)
    })
}

fn options(matches: &ArgMatches) -> Result<Options, Problem> {
    let given = |name: &str| matches.get_one::<String>(name).cloned();
    let all = |name: &str| -> Vec<String> {
        matches.get_many::<String>(name).unwrap_or_default().cloned().collect()
    };
    let text = |name: &'static str| -> Result<Option<String>, Problem> {
        let given = matches.get_one::<String>(name).map(|text| value::text(text)).transpose();
        Ok(given.map_err(bad(name))?.map(str::to_owned))
    };
    let metric = given("figure")
        .map(|text| value::word(&text, &Metric::ALL.map(Metric::as_str), &Metric::ALL))
        .transpose()
        .map_err(bad("figure"))?;
    let repeat =
        given("repeat").map(|text| value::count(&text, MOST_PAIRS)).transpose().map_err(bad("repeat"))?;
    let prepare = [text("prepare-a")?, text("prepare-b")?];
    let lines = all("ARGS");
    let task = match (repeat, text("trend")?) {
        (Some(count), None) => Task::Repeat(Repeat { count, prepare, lines: both_lines(&lines)? }),
        (None, Some(cell)) => Task::Trend(cell, metric.unwrap_or(Metric::Rate)),
        (Some(_), Some(_)) => {
            return Err(usage("--repeat conflicts with --trend", "leave one of them out"));
        }
        (None, None) => Task::Records,
    };
    let is_repeat = matches!(task, Task::Repeat(_));
    if !is_repeat && (!lines.is_empty() || given("prepare-a").is_some() || given("prepare-b").is_some()) {
        let hint = "write rdsk compare --repeat 5 -- 'ARGS' 'ARGS'";
        return Err(usage("command lines and --prepare-a or --prepare-b need --repeat", hint));
    }
    if !matches!(task, Task::Trend(..)) && metric.is_some() {
        return Err(usage("--figure needs --trend", "leave it out: all figures are compared"));
    }
    Ok(Options {
        words: all("RUN"),
        task,
        extent: if matches.get_flag("details") { Extent::Full } else { Extent::Short },
        charset: if matches.get_flag("ascii") { Charset::Ascii } else { Charset::Unicode },
        json: given("json").map(|text| json_place(&text)).transpose().map_err(bad("json"))?,
        conditions: all("fail-if").iter().map(|text| condition(text)).collect::<Result<_, _>>()?,
        fails_if_unsure: matches.get_flag("fail-if-unsure"),
        question: question(given("question"))?,
        is_quiet: matches.get_flag("quiet"),
    })
}

fn condition(text: &str) -> Result<Condition, Problem> {
    text.parse().map_err(|bad: rdsk_compare::BadCondition| {
        let hint = "write 'slower>5%', 'faster>5%' or 'differs>5%', or with a latency 'p99:slower>10%'";
        usage(format!("--fail-if: {}", printable(&bad.to_string())), hint)
    })
}

fn question(name: Option<String>) -> Result<String, Problem> {
    let name = name.unwrap_or_else(|| "run".into());
    let names: Vec<&str> = MEASURING.iter().map(|subcommand| subcommand.name).collect();
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    let message = format!("--question: \"{}\" measures nothing", printable(&name));
    Err(usage(message, format!("write {}", names.join(" or "))))
}

/// `1 is`, `2 are`.
fn are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

/// The two command lines, each one that measures.
fn both_lines(lines: &[String]) -> Result<[Vec<OsString>; 2], Problem> {
    let [a, b] = lines else {
        let message = format!("--repeat takes two command lines, and {} given", are(lines.len()));
        return Err(usage(
            message,
            "write -- 'ARGS' 'ARGS', each in quotes, as in: -- 'run /dev/sdb' 'run /dev/sdc'",
        ));
    };
    Ok([line(a)?, line(b)?])
}

/// The words of a command line that rdsk itself accepts.
fn line(text: &str) -> Result<Vec<OsString>, Problem> {
    let shown = printable(text);
    let words = shlex::split(text)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| usage(format!("'{shown}' is no command line"), "close every quote"))?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let whole: Vec<OsString> = std::iter::once("rdsk".into()).chain(words.iter().cloned()).collect();
    let parsed = crate::parse::parse(&whole)
        .map_err(|problem| Problem { message: format!("'{shown}': {}", problem.message), ..problem })?;
    let refused = match &parsed {
        ParsedLine::Text(_) => Some("asks for help"),
        ParsedLine::Args(args) if !MEASURING.contains(&args.subcommand) => Some("measures nothing"),
        ParsedLine::Args(args) if args.run_mode == RunMode::PlanOnly => Some("measures nothing"),
        ParsedLine::Args(args) if args.json.is_some() => Some("has a --json of its own"),
        ParsedLine::Args(args) if args.resume.is_some() => Some("goes on with an earlier run"),
        ParsedLine::Args(_) => None,
    };
    match refused {
        None => Ok(words),
        Some(why) => Err(usage(
            format!("'{shown}' {why}"),
            "write a command that measures, without the word rdsk and without --json, as in 'run /dev/sdb'",
        )),
    }
}

/// Refuses options that mean nothing together.
fn check(options: &Options) -> Result<(), Problem> {
    if options.words.iter().any(String::is_empty) {
        return Err(usage(
            "the name of a run is empty",
            "name a run of rdsk list, or a file that rdsk wrote with --json",
        ));
    }
    let is_trend = matches!(options.task, Task::Trend(..));
    if is_trend && (!options.conditions.is_empty() || options.fails_if_unsure) {
        return Err(usage("--fail-if conflicts with --trend", "compare two runs, or leave it out"));
    }
    if options.fails_if_unsure && options.conditions.is_empty() {
        return Err(usage("--fail-if-unsure needs --fail-if", "add --fail-if 'slower>5%'"));
    }
    let least = match &options.task {
        Task::Records => 2,
        Task::Trend(..) => 3,
        Task::Repeat(_) if options.words.is_empty() => return Ok(()),
        Task::Repeat(_) => {
            return Err(usage(
                "--repeat takes command lines after -- and no runs",
                "leave the names of runs out",
            ));
        }
    };
    if options.words.len() < least {
        let message = format!("{least} runs are needed, and {} given", are(options.words.len()));
        return Err(usage(
            message,
            "name runs of rdsk list, or files that rdsk wrote with --json, the baseline first",
        ));
    }
    Ok(())
}

pub(crate) fn command() -> Command {
    base(OwnCommand::Compare, DETAILS, EXAMPLES)
        .arg(switch("details", "Show every cell, not only what changed most"))
        .arg(one(
            "json",
            "PLACE",
            "Write the comparison as JSON to a file, or with - to standard output instead of the \
             text; with --repeat it has the Records of all runs, or PLACE is a directory for them",
        ))
        .arg(
            one(
                "fail-if",
                "CONDITION",
                "Exit with 1 if a figure surely changed so much: 'slower>5%', 'faster>5%', \
             'differs>5%', with p50: or p99: before it for latencies; may be repeated",
            )
            .action(ArgAction::Append),
        )
        .arg(switch("fail-if-unsure", "Exit with 1, too, if the data leave such a change open"))
        .arg(one("repeat", "N", "Run the two command lines after -- so many times each, in turn"))
        .arg(one("prepare-a", "CMD", "What sh runs before each run of the first one"))
        .arg(one("prepare-b", "CMD", "What sh runs before each run of the second one"))
        .arg(one(
            "trend",
            "CELL",
            "Show one cell over all runs in the order of time, and since when it has changed",
        ))
        .arg(one(
            "figure",
            "FIGURE",
            "With --trend: which figure of the cell [possible values: rate, p50, p99] \
             [default: rate]",
        ))
        .arg(one(
            "question",
            "COMMAND",
            "What simulated systems among the RUNs are asked, such as scale [default: run]",
        ))
        .arg(switch("quiet", "Show no progress").short('q'))
        .arg(switch("ascii", "Use only ASCII characters"))
        .arg(own_command::history())
        .arg(many("RUN", "Runs, the baseline first: those of rdsk list, files, or sim:NAME"))
        .arg(
            many("ARGS", "With --repeat: two command lines, each in quotes, without the word rdsk")
                .last(true),
        )
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
        is_well_formed(parse, OwnCommand::Compare, command(), EXAMPLES, 6);
    }

    #[test]
    fn runs_conditions_and_command_lines_are_told_apart() {
        let options =
            parsed("compare a.json b.json --fail-if 'slower>5%' c --fail-if p99:slower>10% --details")
                .unwrap();
        assert_eq!(options.words, ["a.json", "b.json", "c"]);
        assert_eq!((options.conditions.len(), options.extent), (2, Extent::Full));
        let options = parsed(
            "compare --repeat 4 --prepare-b 'true; true' -- 'run sim:wd2500' 'run sim:wd2500 --budget 9s'",
        )
        .unwrap();
        let Task::Repeat(repeat) = options.task else { panic!("{options:?}") };
        assert_eq!((repeat.count, &repeat.prepare), (4, &[None, Some("true; true".to_owned())]));
        assert_eq!(repeat.lines[1], ["run", "sim:wd2500", "--budget", "9s"]);
        let options = parsed("compare --trend x --figure p99 a b c").unwrap();
        assert_eq!(options.task, Task::Trend("x".into(), Metric::P99));
        assert_eq!(history_of(parse, "compare a b --history h.db"), Some("h.db".into()));
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            parse,
            &[
                ("compare", "2 runs are needed, and 0"),
                ("compare a", "2 runs are needed, and 1"),
                ("compare a ''", "empty"),
                ("compare --trend x a b", "3 runs are needed"),
                ("compare a b --fail-if slower", "is no condition"),
                ("compare a b --fail-if-unsure", "--fail-if-unsure needs"),
                ("compare a b c --trend x --fail-if 'slower>5%'", "conflicts with --trend"),
                ("compare a b --figure p50", "--figure needs --trend"),
                ("compare --trend x --figure p1 a b c", "--figure"),
                ("compare a b --prepare-a true", "need --repeat"),
                ("compare a b -- 'run .' 'run .'", "need --repeat"),
                ("compare --repeat 0 -- 'run .' 'run .'", "--repeat"),
                ("compare --repeat 3 -- 'run .'", "two command lines, and 1"),
                ("compare --repeat 3 a -- 'run .' 'run .'", "no runs"),
                ("compare --repeat 3 --trend x -- 'run .' 'run .'", "conflicts with --trend"),
                ("compare --repeat 3 -- 'run . --json x' 'run .'", "--json of its own"),
                ("compare --repeat 3 -- 'run . --dry-run' 'run .'", "measures nothing"),
                ("compare --repeat 3 -- 'info .' 'run .'", "measures nothing"),
                ("compare --repeat 3 -- 'run --help' 'run .'", "asks for help"),
                ("compare --repeat 3 -- 'run --bugdet 3' 'run .'", "unknown flag --bugdet"),
                ("compare --repeat 3 -- 'dd if=/dev/zero' 'run .'", "dd"),
                ("compare a b --question info", "measures nothing"),
                ("compare a b --bs 4k", "--bs"),
                ("compare a b c --trend --details", "--trend: a value is missing"),
                ("compare a b --history ''", "--history"),
            ],
        );
    }
}
