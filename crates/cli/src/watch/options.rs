//! The options of `rdsk watch`. They parse words and open nothing.

use super::help::{DETAILS, EXAMPLES};
use crate::flags::value;
use crate::own_command::{self, Parsed, base, many, one, path, path_of, switch};
use crate::parse::{bad, usage};
use crate::subcommand::OwnCommand;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, value_parser};
use rdsk_analysis::columns::ColumnSet;
use rdsk_experiment::EvidenceChoice;
use rdsk_model::Problem;
use rdsk_report::Charset;
use rdsk_units::Nanos;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Two samples closer together say nothing of rates: the kernel's times count whole milliseconds.
const MIN_INTERVAL: Nanos = Nanos(10_000_000);
const MAX_INTERVAL: Nanos = Nanos(24 * 3_600_000_000_000);
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const MAX_COUNT: u32 = 1_000_000_000;

const COLUMNS: &[&str] = &["iostat", "old", "solaris"];
const EVIDENCE: &[&str] = &["auto", "bpf", "sysfs"];

/// How the reports are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// A screen on a terminal, else lines.
    #[default]
    Suitable,
    Plain,
    Json,
}

/// What one command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Devices as typed; all if there are none.
    pub(super) devices: Vec<OsString>,
    pub(super) form: Form,
    pub(super) columns: ColumnSet,
    pub(super) charset: Charset,
    pub(super) interval: Duration,
    /// Reports until the end; `None` without an end.
    pub(super) count: Option<u32>,
    pub(super) evidence: EvidenceChoice,
    /// Two saved trees.
    pub(super) saved: Option<(PathBuf, PathBuf)>,
    /// A command and its arguments; empty without one.
    pub(super) command: Vec<OsString>,
}

/// Parses the words after `rdsk`, of which the first is `watch`.
///
/// # Errors
/// A problem of kind `Usage`, with a message of one line and a hint.
pub(super) fn parse(words: &[OsString]) -> Result<Parsed<Options>, Problem> {
    own_command::parse(command(), words, |matches| {
        let options = options(matches)?;
        check(&options, matches)?;
        Ok(options)
    })
}

fn options(matches: &ArgMatches) -> Result<Options, Problem> {
    let given = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let words = |name: &str| matches.get_many::<OsString>(name).unwrap_or_default().cloned().collect();
    let interval = given("interval").map(|text| value::time_ns(text, MIN_INTERVAL, MAX_INTERVAL)).transpose();
    let columns = given("columns")
        .map(|text| value::word(text, COLUMNS, &[ColumnSet::Iostat, ColumnSet::Old, ColumnSet::Solaris]));
    let evidence = given("evidence").map(|text| {
        value::word(text, EVIDENCE, &[EvidenceChoice::Auto, EvidenceChoice::Bpf, EvidenceChoice::Sysfs])
    });
    let count = given("count").map(|text| value::count(text, MAX_COUNT)).transpose();
    Ok(Options {
        devices: words("DEV"),
        form: match (matches.get_flag("plain"), matches.get_flag("json")) {
            (_, true) => Form::Json,
            (true, false) => Form::Plain,
            (false, false) => Form::Suitable,
        },
        columns: columns.transpose().map_err(bad("columns"))?.unwrap_or_default(),
        charset: if matches.get_flag("ascii") { Charset::Ascii } else { Charset::Unicode },
        interval: interval.map_err(bad("interval"))?.map_or(DEFAULT_INTERVAL, Duration::from_nanos),
        count: count.map_err(bad("count"))?,
        evidence: evidence.transpose().map_err(bad("evidence"))?.unwrap_or(EvidenceChoice::Auto),
        saved: path_of(matches, "from")?.zip(path_of(matches, "to")?),
        command: words("COMMAND"),
    })
}

/// Refuses options that mean nothing together.
fn check(options: &Options, matches: &ArgMatches) -> Result<(), Problem> {
    let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    if options.devices.iter().any(|name| name.is_empty()) {
        return Err(usage("the name of a device is empty", "name a device, a file or a directory"));
    }
    if is_given("plain") && is_given("json") {
        return Err(usage("--plain conflicts with --json", "leave one of them out"));
    }
    if is_given("from") != is_given("to") {
        return Err(usage("--from and --to go together", "give both, with a directory each"));
    }
    if options.saved.is_some() && is_given("evidence") {
        return Err(usage(
            "--evidence conflicts with --from",
            "leave --evidence out: saved files are all that is read",
        ));
    }
    if options.saved.is_some() && !options.command.is_empty() {
        return Err(usage("--from conflicts with a command", "leave one of them out"));
    }
    let one_report = [(options.saved.is_some(), "--from"), (!options.command.is_empty(), "a command")];
    for (_, what) in one_report.into_iter().filter(|(is_one, _)| *is_one) {
        for flag in ["interval", "count"] {
            if is_given(flag) {
                return Err(usage(
                    format!("--{flag} conflicts with {what}"),
                    format!("leave --{flag} out: there is one report"),
                ));
            }
        }
    }
    Ok(())
}

pub(crate) fn command() -> Command {
    let words = |name, help| many(name, help).value_parser(value_parser!(OsString));
    base(OwnCommand::Watch, DETAILS, EXAMPLES)
        .arg(one("interval", "TIME", "Time between two reports, such as 500ms or 5 [default: 1s]"))
        .arg(one("count", "N", "End after so many reports [default: go on until interrupted]"))
        .arg(one(
            "columns",
            "SET",
            "Columns: those of today's iostat -x, of sysstat before version 11, or of Solaris [possible values: iostat, \
             old, solaris] [default: iostat]",
        ))
        .arg(switch("plain", "Print lines on a terminal, too"))
        .arg(switch("json", "Print a JSON object in a line for each device and interval"))
        .arg(one(
            "evidence",
            "SOURCE",
            "Where counts come from: BPF programs, which show exact sizes, times in the device and the calls, or sysfs \
             alone; auto takes BPF where it may [possible values: auto, bpf, sysfs] [default: auto]",
        ))
        .arg(path("from", "DIR", "With --to: report from two saved copies of /proc (diskstats and uptime)"))
        .arg(path("to", "DIR", "The later copy"))
        .arg(switch("ascii", "Use only ASCII characters"))
        .arg(words(
            "DEV",
            "Devices by name or path, partitions, or files and directories for the device below them [default: every disk, and \
             loop and ram devices that do something]",
        ))
        .arg(words("COMMAND", "Run this command and watch until its I/O is done").last(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_command::testing::{self, is_well_formed, refuses};

    fn parsed(line: &str) -> Result<Options, Problem> {
        testing::parsed(parse, line)
    }

    #[test]
    fn the_command_is_well_formed_and_its_examples_parse() {
        is_well_formed(parse, OwnCommand::Watch, command(), EXAMPLES, 5);
    }

    #[test]
    fn options_devices_and_a_command_are_told_apart() {
        let options =
            parsed("watch sda --interval 2 /mnt --columns solaris --json -- dd if=a --count 3").unwrap_err();
        assert!(options.message.contains("--interval conflicts with a command"), "{options}");
        let options = parsed("watch sda /mnt --columns solaris --json -- dd if=a --count 3").unwrap();
        assert_eq!(options.devices, ["sda", "/mnt"]);
        assert_eq!(options.command, ["dd", "if=a", "--count", "3"]);
        assert_eq!((options.form, options.columns), (Form::Json, ColumnSet::Solaris));
        let options = parsed("watch --interval 2 --count 5 --evidence sysfs --plain").unwrap();
        assert_eq!((options.interval, options.count), (Duration::from_secs(2), Some(5)));
        assert_eq!((options.evidence, options.form), (EvidenceChoice::Sysfs, Form::Plain));
        let saved = parsed("watch --from a --to b sda").unwrap();
        assert_eq!(saved.saved, Some(("a".into(), "b".into())));
        assert!(parsed("watch").unwrap().command.is_empty());
    }

    #[test]
    fn the_hint_is_of_watch_whatever_a_device_is_called() {
        for (line, message, hint) in [
            ("watch --intervall 2", "unknown flag --intervall", "did you mean --interval? rdsk watch --help"),
            ("watch run --bs 4k", "--bs does not apply to rdsk watch", "--bs applies to rdsk paths"),
            ("watch -x", "unknown flag -x", "rdsk watch --help lists the flags"),
        ] {
            let problem = parsed(line).expect_err(line);
            assert_eq!(problem.message, message, "{line}");
            assert!(problem.hint.as_ref().is_some_and(|said| said.starts_with(hint)), "{line}: {problem:?}");
        }
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            parse,
            &[
                ("watch --interval 0", "--interval"),
                ("watch --interval 1ms", "--interval"),
                ("watch --interval", "--interval"),
                ("watch --count 0", "--count"),
                ("watch --columns hpux", "--columns"),
                ("watch --evidence maybe", "--evidence"),
                ("watch --from a", "--from and --to"),
                ("watch --to a", "--from and --to"),
                ("watch --from a --to b --count 2", "--count conflicts with --from"),
                ("watch --from a --to b --evidence bpf", "--evidence conflicts with --from"),
                ("watch --from a --to b --evidence=auto", "--evidence conflicts with --from"),
                ("watch --from a --to b -- true", "--from conflicts with a command"),
                ("watch --plain --json", "--plain conflicts with --json"),
                ("watch --from --to b", "--from: a value is missing"),
                ("watch --bs 4k", "--bs"),
                ("watch ''", "empty"),
            ],
        );
    }
}
