//! The arguments of `rdsk watch`. They parse words and open nothing.

use crate::measuring::SOURCES;
use crate::output_args::CharsetArgs;
use crate::value;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use rdsk_analysis::columns::ColumnSet;
use rdsk_experiment::EvidenceChoice;
use rdsk_units::Nanos;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Two samples closer together say nothing of rates: the kernel's times count whole milliseconds.
const MIN_INTERVAL: Nanos = Nanos(10_000_000);
const MAX_INTERVAL: Nanos = Nanos(24 * 3_600_000_000_000);
const MAX_COUNT: u32 = 1_000_000_000;
const COLUMNS: &[(&str, ColumnSet)] =
    &[("iostat", ColumnSet::Iostat), ("old", ColumnSet::Old), ("solaris", ColumnSet::Solaris)];

const EXAMPLES: &str = "Examples:
  rdsk watch
      every disk, and every loop device that does something
  rdsk watch sda /srv/data --plain --interval 5s --count 12
      two devices as lines, for a minute
  rdsk watch --json | jq .columns
      each device and interval as JSON
  rdsk watch -- dd if=/dev/zero of=file bs=16k count=1000
      the requests that the command's writes caused
  rdsk watch --sync /srv/data -- tar -xf archive.tar -C /srv/data
      and when it was on disk
  rdsk watch --from before --to after
      one report from two copies of /proc/diskstats and /proc/uptime";

/// How the reports are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A screen on a terminal, else lines.
    Suitable,
    Plain,
    Json,
}

/// Show live what block devices do, or what the kernel did with the I/O of a command.
///
/// On a terminal it is a screen: q ends it, the arrow keys choose a device, p pauses, ? explains. Elsewhere, and with
/// --plain or --json, it is lines. The first report is of the first interval, not of the time since boot. With a COMMAND
/// it runs that, ends with its exit code, and prints to standard error which requests its calls caused, and what
/// limited it.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// Time between two reports, such as 500ms or 5
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = value::time(MIN_INTERVAL, MAX_INTERVAL),
        conflicts_with_all = ["from", "command"]
    )]
    interval: u64,
    /// End after so many reports [default: go on until interrupted]
    #[arg(
        long,
        value_name = "N",
        value_parser = value::count(MAX_COUNT),
        conflicts_with_all = ["from", "command"]
    )]
    pub(super) count: Option<u32>,
    /// Columns: those of today's iostat -x, of sysstat before version 11, or of Solaris
    #[arg(long, value_name = "SET", default_value = "iostat", value_parser = value::words(COLUMNS))]
    pub(super) columns: ColumnSet,
    /// Print lines on a terminal, too
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Print a JSON object in a line for each device and interval
    #[arg(long)]
    json: bool,
    /// Where counts come from: BPF programs, which show exact sizes, times in the device and the calls, or sysfs alone;
    /// auto takes BPF where it may
    #[arg(
        long,
        value_name = "SOURCE",
        default_value = "auto",
        value_parser = value::words(SOURCES),
        conflicts_with = "from"
    )]
    pub(super) evidence: EvidenceChoice,
    /// With a COMMAND: flush what it wrote after its end, and show how long that took
    #[arg(long, requires = "command", conflicts_with = "from")]
    pub(super) sync: bool,
    /// With --to: report from two saved copies of /proc (diskstats and uptime)
    #[arg(long, value_name = "DIR", value_parser = value::path(), requires = "to", conflicts_with = "command")]
    from: Option<PathBuf>,
    /// The later copy
    #[arg(long, value_name = "DIR", value_parser = value::path(), requires = "from")]
    to: Option<PathBuf>,
    #[command(flatten)]
    pub(super) charset: CharsetArgs,
    /// Devices by name or path, partitions, or files and directories for the device below them [default: every disk, and
    /// loop and ram devices that do something]
    #[arg(value_name = "DEV", value_parser = device())]
    pub(super) devices: Vec<OsString>,
    /// Run this command and watch until its I/O is done
    #[arg(value_name = "COMMAND", last = true)]
    pub(super) command: Vec<OsString>,
}

/// The name of a device, which need not be text.
fn device() -> impl TypedValueParser<Value = OsString> {
    OsStringValueParser::new().try_map(|name| match name.is_empty() {
        true => {
            Err(value::BadValue::new("the name of a device is empty", "name a device, a file or a directory"))
        }
        false => Ok(name),
    })
}

impl Watch {
    pub(super) const fn form(&self) -> Form {
        match (self.plain, self.json) {
            (_, true) => Form::Json,
            (true, false) => Form::Plain,
            (false, false) => Form::Suitable,
        }
    }

    pub(super) const fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// Two saved trees.
    pub(super) fn saved(&self) -> Option<(&Path, &Path)> {
        self.from.as_deref().zip(self.to.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn options_devices_and_a_command_are_told_apart() {
        let watch = |line: &str| parsed::<Watch>(line);
        let refused =
            watch("sda --interval 2 /mnt --columns solaris --json -- dd if=a --count 3").unwrap_err();
        assert!(refused.message.contains("--interval conflicts with a command"), "{refused}");
        let options = watch("sda /mnt --columns solaris --json -- dd if=a --count 3").unwrap();
        assert_eq!(options.devices, ["sda", "/mnt"]);
        assert_eq!(options.command, ["dd", "if=a", "--count", "3"]);
        assert_eq!((options.form(), options.columns), (Form::Json, ColumnSet::Solaris));
        let options = watch("--interval 2 --count 5 --evidence sysfs --plain").unwrap();
        assert_eq!((options.interval(), options.count), (Duration::from_secs(2), Some(5)));
        assert_eq!((options.evidence, options.form()), (EvidenceChoice::Sysfs, Form::Plain));
        let saved = watch("--from a --to b sda").unwrap();
        assert_eq!(saved.saved(), Some((Path::new("a"), Path::new("b"))));
        let options = watch("").unwrap();
        assert!(options.command.is_empty() && options.interval() == Duration::from_secs(1));
    }

    #[test]
    fn wrong_lines_are_one_line_and_a_hint() {
        refuses(
            |watch: Watch| Ok(watch),
            &[
                ("--interval 0", "--interval"),
                ("--interval 1ms", "--interval"),
                ("--interval", "--interval"),
                ("--count 0", "--count"),
                ("--columns hpux", "--columns"),
                ("--evidence maybe", "--evidence"),
                ("--from a", "is missing"),
                ("--to a", "is missing"),
                ("--from a --to b --count 2", "--count conflicts with --from"),
                ("--from a --to b --evidence bpf", "--evidence conflicts with --from"),
                ("--from a --to b --evidence=auto", "--evidence conflicts with --from"),
                ("--from a --to b -- true", "--from conflicts with a command"),
                ("--plain --json", "--plain conflicts with --json"),
                ("--from --to b", "--from: a value is missing"),
                ("--sync", "is missing"),
                ("--sync --from a --to b", "--sync conflicts with --from"),
                ("--bs 4k", "--bs"),
                ("''", "empty"),
            ],
        );
    }
}
