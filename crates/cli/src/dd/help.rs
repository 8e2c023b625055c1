//! The help of `rdsk dd`, and what shells and man(1) are told of it. Its words are parsed by `options`.

use crate::completion;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use clap_complete::engine::ArgValueCompleter;
use std::ffi::OsStr;

const SUMMARY: &str = "Copy as dd does with dd's own operands, and say what that measured";

/// The operands that a shell completes.
const OPERANDS: [&str; 16] = [
    "if=",
    "of=",
    "bs=",
    "ibs=",
    "obs=",
    "count=",
    "skip=",
    "iseek=",
    "seek=",
    "oseek=",
    "iflag=",
    "oflag=",
    "conv=",
    "status=none",
    "status=noxfer",
    "status=progress",
];

/// The entry of dd in the grammar, for the list of commands, the manual and shells; `options` parses its words.
#[derive(Clone, Debug)]
pub(crate) struct Dd;

impl FromArgMatches for Dd {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl Args for Dd {
    fn augment_args(command: Command) -> Command {
        described(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        described(command)
    }
}

fn described(command: Command) -> Command {
    let (details, rest) = TEXT.split_once("\nUsage:").expect("the text is a constant");
    let (_, rest) = rest.split_once("\nOperands:\n").expect("the text is a constant");
    let (operands, examples) = rest.split_once("\nExamples:\n").expect("the text is a constant");
    let option = |name, value, help| Arg::new(name).long(name).value_name(value).help(help);
    let operand = Arg::new("OPERAND").num_args(0..).help("dd's operands");
    command
        .about(SUMMARY)
        .long_about(format!("{SUMMARY}.\n\n{details}"))
        .after_help(format!("Operands:\n{operands}\nExamples:\n{examples}"))
        .arg(
            option("explain", "on|off", "Print the answer below dd's lines [default: on]")
                .value_parser(PossibleValuesParser::new(["on", "off"])),
        )
        .arg(option("json", "FILE", "Write the Record as JSON; - is standard output"))
        .arg(option("report", "FILE", "Write a page with figures for a browser"))
        .arg(option("repeat", "N", "Run N times: mean, interval and spread of the times"))
        .arg(option(
            "compare",
            "OPERANDS",
            "Run a second copy in turn with the first, and compare their times",
        ))
        .arg(option("history", "FILE", "The history that keeps the Record [default: as rdsk run]"))
        .arg(
            Arg::new("no-history")
                .long("no-history")
                .action(ArgAction::SetTrue)
                .help("Do not keep the Record in the history"),
        )
        .arg(option("destroy", "IDENTITY", "Allow writing to the block device with this identity"))
        .arg(operand.add(ArgValueCompleter::new(|current: &OsStr| completion::operands(&OPERANDS, current))))
        // A shell shows the short help, a manual page the whole.
        .mut_args(|arg| match arg.get_long().and_then(said) {
            Some(said) => arg.long_help(said),
            None => arg,
        })
}

/// What the text says of an option, on one line.
fn said(option: &str) -> Option<String> {
    let start = format!("  --{option} ");
    let mut lines = TEXT.lines().skip_while(|line| !line.starts_with(&start));
    let first = lines.next()?.get(TEXT_COLUMN..)?;
    let more = lines.take_while(|line| line.starts_with("     ")).map(str::trim);
    Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join(" "))
}

/// Where the text of an option begins on its line.
const TEXT_COLUMN: usize = 23;

/// The whole help.
pub(super) const TEXT: &str = "\
Copy as dd does, with dd's own operands and dd's own output, and then say on
standard error what was really measured: where the time went, what the device
saw, and which operand gives the figure that was wanted.

Usage: rdsk dd [OPTIONS] [OPERAND]...

Options, which stand before the operands:
  --explain on|off     Print the answer below dd's lines [default: on]. For it
                       the output is flushed after dd's last line; with off it
                       stays in memory as dd leaves it
  --json FILE          Write the Record as JSON; - is standard output
  --report FILE        Write a page with figures for a browser
  --repeat N           Run N times: mean, interval and spread of the times
  --compare OPERANDS   Run a second copy in turn with the first (A B B A) and
                       compare their times; OPERANDS replace those of the same
                       name, or are added
  --history FILE       The history that keeps the Record [default: as rdsk run]
  --no-history         Do not keep the Record in the history; with --explain off
                       and without --json and --report there is none
  --destroy IDENTITY   Allow writing to the block device with this identity,
                       and to nothing else; rdsk info DEVICE lists the
                       identities
  --help, --version    Print this help, or the version

Operands:
  if=FILE, of=FILE     Input and output [default: standard input and output]
  bs=N                 Bytes per read and write [default: ibs and obs]
  ibs=N, obs=N         Bytes per read, bytes per write [default: 512]
  count=N              Copy N input blocks only
  skip=N, iseek=N      Skip N input blocks
  seek=N, oseek=N      Skip N output blocks
  iflag=, oflag=LIST   append direct directory dsync sync fullblock nonblock
                       noatime nocache noctty nofollow count_bytes skip_bytes
                       seek_bytes
  conv=LIST            notrunc fsync fdatasync sparse nocreat excl noerror sync
                       swab; characters are not converted
  status=WORD          none (no answer either), noxfer or progress

N takes the suffixes c (1), w (2), b (512), kB, K or KiB, MB, M or MiB, and so
on for G, T, P, E, Z, Y; 2x80x18b is a product; a B at the end counts bytes.
SIGUSR1 prints the counts so far; SIGINT prints them and ends the copy.

Files are opened, truncated and overwritten as dd does it, without a question. A
block device is written only with --destroy, and never one in use.

Examples:
  rdsk dd if=/dev/zero of=file bs=1M count=1024
      dd's figure, and how much later the disk had the data
  rdsk dd --repeat 5 if=/dev/sdb of=/dev/null bs=1M count=1000 iflag=direct
      the mean of five runs, with its interval
  rdsk dd --compare iflag=direct if=file of=/dev/null bs=64k
      through the page cache and past it, in turn
  rdsk dd --json r.json if=file of=/dev/null bs=1M
      the Record, for rdsk and for programs

Exit codes are dd's: 0 done, 1 for everything else.
";

#[cfg(test)]
mod tests {
    use super::{OPERANDS, TEXT, described};
    use crate::dd::options::{Parsed, parse};
    use clap::Arg;
    use std::ffi::OsString;

    #[test]
    fn every_example_parses_and_no_line_is_wide() {
        let mut examples = 0;
        for line in TEXT.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            let Some(example) = line.strip_prefix("  rdsk dd ") else { continue };
            examples += 1;
            let words: Vec<OsString> = example.split_whitespace().map(Into::into).collect();
            let Ok(Parsed::Options(options)) = parse(&words) else { panic!("{line}") };
            for operands in options.lines() {
                rdsk_dd::parse(&operands, rdsk_dd::Charset::Ascii)
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
        assert_eq!(examples, 4);
    }

    #[test]
    fn shells_are_told_what_the_help_tells() {
        let command = described(clap::Command::new("dd"));
        let options = TEXT.lines().filter_map(|line| line.strip_prefix("  --"));
        let names: Vec<&str> = options.filter_map(|line| line.split([' ', ',']).next()).collect();
        assert!(names.len() > 8, "{names:?}");
        for name in names.into_iter().filter(|name| *name != "help") {
            assert!(command.get_arguments().any(|arg| arg.get_long() == Some(name)), "--{name}");
        }
        let compare = command.get_arguments().find(|arg| arg.get_id() == "compare");
        let whole = compare.and_then(Arg::get_long_help).map(ToString::to_string);
        let told = "Run a second copy in turn with the first (A B B A) and compare their times; OPERANDS replace those of \
                    the same name, or are added";
        assert_eq!(whole.as_deref(), Some(told));
        for operand in OPERANDS {
            let (name, _) = operand.split_once('=').unwrap();
            assert!(TEXT.contains(&format!("{name}=")), "{operand}");
        }
    }
}
