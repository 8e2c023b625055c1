//! The arguments of `rdsk compare`, and what they request. They parse words and open nothing.

use crate::cli_args::JsonPlace;
use crate::grammar::Parsed;
use crate::measuring;
use crate::output_args::{CharsetArgs, HistoryArgs};
use crate::usage::usage;
use crate::{completion, value};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use rdsk_compare::{BadCondition, Condition, Metric};
use rdsk_model::Problem;
use rdsk_report::compare::Extent;
use rdsk_units::printable;
use std::ffi::OsString;

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
      one test over many runs, and since when it has changed
  rdsk compare results/
      the outliers among the disks of many hosts, a file each
  rdsk compare sim:tms-ramsan sim:tms-ramsan-2 --question scale
      two simulated systems";

/// A comparison of more pairs would be given up before it ends.
const MOST_PAIRS: u32 = 1000;
const FIGURES: &[(&str, Metric)] = &[("rate", Metric::Rate), ("p50", Metric::P50), ("p99", Metric::P99)];

/// Compare runs test by test, and say what changed and how sure that is.
///
/// A RUN is what rdsk show takes: a run of rdsk list, or a file that rdsk wrote with --json. The first one is the
/// baseline. A simulated system (sim:NAME) is run. Only tests that do the same are compared; what differs between the
/// runs is listed first. A directory of such files, or more than eight runs, is a fleet: each disk is compared with the
/// others of its model, and the slow ones are named. With --repeat the two quoted command lines after -- are run in turn, A B B A, and the runs are
/// compared.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Show every test, not only what changed most
    #[arg(long)]
    details: bool,
    /// Write the comparison as JSON to a file, or with - to standard output instead of the text; with --repeat it has the
    /// results of all runs, or PLACE is a directory for them
    #[arg(long, value_name = "PLACE", value_parser = value::place())]
    pub(super) json: Option<JsonPlace>,
    /// Exit with 1 if a figure surely changed so much: 'slower>5%', 'faster>5%', 'differs>5%', with p50: or p99: before it
    /// for latencies; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition, conflicts_with = "trend")]
    pub(super) fail_if: Vec<Condition>,
    /// Exit with 1, too, if the data leave such a change open
    #[arg(long)]
    pub(super) fail_if_unsure: bool,
    /// Run the two command lines after -- so many times each, in turn
    #[arg(long, value_name = "N", value_parser = value::count(MOST_PAIRS), conflicts_with = "trend")]
    repeat: Option<u32>,
    /// What sh runs before each run of the first one
    #[arg(long, value_name = "CMD", value_parser = value::text)]
    prepare_a: Option<String>,
    /// What sh runs before each run of the second one
    #[arg(long, value_name = "CMD", value_parser = value::text)]
    prepare_b: Option<String>,
    /// Show one test over all runs in the order of time, and since when it has changed
    #[arg(long, value_name = "TEST", value_parser = value::text)]
    trend: Option<String>,
    /// With --trend: which figure of the test [default: rate]
    #[arg(long, value_name = "FIGURE", value_parser = value::words(FIGURES))]
    figure: Option<Metric>,
    /// The command that measures simulated systems among the RUNs, such as scale
    #[arg(long, value_name = "COMMAND", default_value = "run", value_parser = question)]
    pub(super) question: String,
    /// Show no progress
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) charset: CharsetArgs,
    #[command(flatten)]
    pub(super) history: HistoryArgs,
    /// Runs, the baseline first: those of rdsk list, files, or sim:NAME; or directories of files
    #[arg(
        value_name = "RUN",
        value_parser = value::name("run", "name a run of rdsk list, or a file that rdsk wrote with --json"),
        add = ArgValueCompleter::new(completion::runs_files_and_systems)
    )]
    pub(super) runs: Vec<String>,
    /// With --repeat: two command lines, each in quotes, without the word rdsk
    #[arg(value_name = "ARGS", last = true)]
    lines: Vec<String>,
}

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

impl Compare {
    pub(super) const fn extent(&self) -> Extent {
        if self.details { Extent::Full } else { Extent::Short }
    }

    /// Whether no flag is about pairs of runs, or one test.
    pub(super) fn asks_nothing_of_pairs(&self) -> bool {
        let has_trend = self.trend.is_some() || self.figure.is_some();
        let repeats = self.repeat.is_some() || self.prepare_a.is_some() || self.prepare_b.is_some();
        self.fail_if.is_empty() && !self.fail_if_unsure && !has_trend && !repeats && self.lines.is_empty()
    }

    /// What is compared.
    ///
    /// # Errors
    /// When arguments mean nothing together.
    pub(super) fn task(&self) -> Result<Task, Problem> {
        self.check()?;
        let (task, least) = match (self.repeat, &self.trend) {
            (Some(count), _) if self.runs.is_empty() => {
                let prepare = [self.prepare_a.clone(), self.prepare_b.clone()];
                return Ok(Task::Repeat(Repeat { count, prepare, lines: both_lines(&self.lines)? }));
            }
            (Some(_), _) => {
                let message = "--repeat takes command lines after -- and no runs";
                return Err(usage(message, "leave the names of runs out"));
            }
            (None, Some(cell)) => (Task::Trend(cell.clone(), self.figure.unwrap_or(Metric::Rate)), 3),
            (None, None) => (Task::Records, 2),
        };
        if self.runs.len() < least {
            let message = format!("{least} runs are needed, and {} given", are(self.runs.len()));
            let hint = "name runs of rdsk list, or files that rdsk wrote with --json, the baseline first";
            return Err(usage(message, hint));
        }
        Ok(task)
    }

    /// Refuses an argument without the one that it needs.
    fn check(&self) -> Result<(), Problem> {
        let is_prepared = self.prepare_a.is_some() || self.prepare_b.is_some();
        if self.repeat.is_none() && (is_prepared || !self.lines.is_empty()) {
            let hint = "write rdsk compare --repeat 5 -- 'ARGS' 'ARGS'";
            return Err(usage("command lines and --prepare-a or --prepare-b need --repeat", hint));
        }
        if self.trend.is_none() && self.figure.is_some() {
            return Err(usage("--figure needs --trend", "leave it out: all figures are compared"));
        }
        if self.fail_if_unsure && self.fail_if.is_empty() {
            return Err(usage("--fail-if-unsure needs --fail-if", "add --fail-if 'slower>5%'"));
        }
        Ok(())
    }
}

fn condition(text: &str) -> Result<Condition, value::BadValue> {
    text.parse().map_err(|bad: BadCondition| {
        let hint = "write 'slower>5%', 'faster>5%' or 'differs>5%', or with a latency 'p99:slower>10%'";
        value::BadValue::new(printable(&bad.to_string()), hint)
    })
}

fn question(name: &str) -> Result<String, value::BadValue> {
    let names = measuring::names();
    if names.iter().any(|measuring| measuring == name) {
        return Ok(name.to_owned());
    }
    let hint = format!("write {}", names.join(" or "));
    Err(value::BadValue::new(format!("\"{}\" measures nothing", printable(name)), hint))
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
    let refused = if !measuring::names().iter().any(|name| words[0] == **name) {
        Some("measures nothing")
    } else {
        match measuring::parse(&whole) {
            Err(problem) => {
                return Err(Problem { message: format!("'{shown}': {}", problem.message), ..problem });
            }
            Ok(Parsed::Text(_)) => Some("asks for help"),
            Ok(Parsed::Line(asked, _)) if asked.common.run.dry_run => Some("measures nothing"),
            Ok(Parsed::Line(asked, _)) if asked.common.output.json().is_some() => {
                Some("has a --json of its own")
            }
            Ok(Parsed::Line(asked, _)) if asked.common.run.resume.is_some() => {
                Some("goes on with an earlier run")
            }
            Ok(Parsed::Line(..)) => None,
        }
    };
    match refused {
        None => Ok(words),
        Some(why) => Err(usage(
            format!("'{shown}' {why}"),
            "write a command that measures, without the word rdsk and without --json, as in 'run /dev/sdb'",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    fn compare(line: &str) -> Compare {
        parsed(line).unwrap()
    }

    #[test]
    fn runs_conditions_and_command_lines_are_told_apart() {
        let options = compare("a.json b.json --fail-if 'slower>5%' c --fail-if p99:slower>10% --details");
        assert_eq!(options.runs, ["a.json", "b.json", "c"]);
        assert_eq!((options.fail_if.len(), options.extent()), (2, Extent::Full));
        let options =
            compare("--repeat 4 --prepare-b 'true; true' -- 'run sim:wd2500' 'run sim:wd2500 --budget 9s'");
        let Ok(Task::Repeat(repeat)) = options.task() else { panic!("{options:?}") };
        assert_eq!((repeat.count, &repeat.prepare), (4, &[None, Some("true; true".to_owned())]));
        assert_eq!(repeat.lines[1], ["run", "sim:wd2500", "--budget", "9s"]);
        let trend = compare("--trend x --figure p99 a b c").task();
        assert_eq!(trend.unwrap(), Task::Trend("x".into(), Metric::P99));
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            |compare: Compare| compare.task(),
            &[
                ("", "2 runs are needed, and 0"),
                ("a", "2 runs are needed, and 1"),
                ("a ''", "empty"),
                ("--trend x a b", "3 runs are needed"),
                ("a b --fail-if slower", "is no condition"),
                ("a b --fail-if-unsure", "--fail-if-unsure needs"),
                ("a b c --trend x --fail-if 'slower>5%'", "--fail-if conflicts with --trend"),
                ("a b --figure p50", "--figure needs --trend"),
                ("--trend x --figure p1 a b c", "--figure"),
                ("a b --prepare-a true", "need --repeat"),
                ("a b -- 'run .' 'run .'", "need --repeat"),
                ("--repeat 0 -- 'run .' 'run .'", "--repeat"),
                ("--repeat 3 -- 'run .'", "two command lines, and 1"),
                ("--repeat 3 a -- 'run .' 'run .'", "no runs"),
                ("--repeat 3 --trend x -- 'run .' 'run .'", "conflicts with --trend"),
                ("--repeat 3 -- 'run . --json x' 'run .'", "--json of its own"),
                ("--repeat 3 -- 'run . --dry-run' 'run .'", "measures nothing"),
                ("--repeat 3 -- 'info .' 'run .'", "measures nothing"),
                ("--repeat 3 -- 'run --help' 'run .'", "asks for help"),
                ("--repeat 3 -- 'run --bugdet 3' 'run .'", "unknown flag --bugdet"),
                ("--repeat 3 -- 'dd if=/dev/zero' 'run .'", "measures nothing"),
                ("a b --question info", "measures nothing"),
                ("a b --bs 4k", "--bs"),
                ("a b c --trend --details", "--trend: a value is missing"),
                ("a b --history ''", "--history"),
            ],
        );
    }
}
