//! The arguments of `rdsk dd`, and its help. They are words, and open nothing.

use crate::cli_args::JsonPlace;
use crate::completion;
use crate::history::{self, Place};
use crate::output_args::HistoryArgs;
use crate::same_place::is_same_place;
use crate::usage::usage;
use crate::value::{self, BadValue};
use clap::{ArgAction, Args, value_parser};
use clap_complete::engine::ArgValueCompleter;
use rdsk_dd::Operands;
use rdsk_model::Problem;
use rdsk_targets::Permission;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, fstat, statat};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Runs at most; each is kept in memory.
const MAX_REPEAT: u32 = 10_000;
/// Rounds of a comparison that says no number: as many as give an interval of some use.
const DEFAULT_ROUNDS: u32 = 6;

const BELOW: &str = "Operands:
  if=FILE, of=FILE     Input and output [default: standard input and output]
  bs=N                 Bytes per read and write [default: ibs and obs]
  ibs=N, obs=N         Bytes per read, bytes per write [default: 512]
  count=N              Copy N input blocks only
  skip=N, iseek=N      Skip N input blocks
  seek=N, oseek=N      Skip N output blocks
  iflag=, oflag=LIST   append direct dsync sync fullblock nonblock noatime
                       nocache noctty nofollow count_bytes skip_bytes seek_bytes
  conv=LIST            notrunc fsync fdatasync sparse nocreat excl noerror sync
  status=WORD          none (no answer either), noxfer or progress

N takes the suffixes c (1), w (2), b (512), kB, K or KiB, MB, M or MiB, and so
on for G, T, P, E; 2x80x18b is a product; a B at the end counts bytes. SIGUSR1
prints the counts so far; SIGINT prints them and ends the copy. What dd takes
besides, rdsk watch -- dd ... runs and shows.

Examples:
  rdsk dd if=/dev/zero of=file bs=1M count=1024
      dd's figure, and how much later the disk had the data
  rdsk dd --repeat 5 if=/dev/sdb of=/dev/null bs=1M count=1000 iflag=direct
      the mean of five runs, with its interval
  rdsk dd --compare iflag=direct if=file of=/dev/null bs=64k
      through the page cache and past it, in turn
  rdsk dd --json r.json if=file of=/dev/null bs=1M
      the Record, for rdsk and for programs

Exit codes are dd's: 0 done, 1 for everything else.";

/// The operands that a shell completes.
const OPERANDS: &str = "if= of= bs= ibs= obs= count= skip= iseek= seek= oseek= iflag= oflag= conv= status=none status=noxfer status=progress";

/// Copy as dd does with dd's own operands, and say what that measured.
///
/// Copies with dd's operands, prints dd's counts, and then says on standard error what was really measured: where the time
/// went, what the device saw, and which operand gives the figure that was wanted. For this the output is flushed after
/// dd's last line. Files are opened, truncated and overwritten as dd does it, without a question. A block device is
/// written only with --destroy, and never one in use.
#[derive(Args, Clone, Debug)]
#[command(after_help = BELOW)]
pub(crate) struct Dd {
    /// Print the answer below dd's lines; off leaves the output in memory as dd does
    #[arg(
        long,
        value_name = "on|off",
        default_value = "on",
        action = ArgAction::Set,
        value_parser = value::words(&[("on", true), ("off", false)])
    )]
    pub(super) explain: bool,
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE", value_parser = value::place())]
    pub(super) json: Option<JsonPlace>,
    /// Write a page with figures for a browser
    #[arg(long, value_name = "FILE", value_parser = value::page_place)]
    pub(super) report: Option<JsonPlace>,
    /// Run N times: mean, interval and spread of the times
    #[arg(long, value_name = "N", value_parser = value::count(MAX_REPEAT))]
    repeat: Option<u32>,
    /// Run a second copy in turn with the first (A B B A) and compare their times; OPERANDS replace those of the same name,
    /// or are added
    #[arg(long, value_name = "OPERANDS", value_parser = differing)]
    compare: Option<Differing>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Do not keep the result in the history; with --explain off and without --json and --report there is none
    #[arg(long)]
    no_history: bool,
    /// Allow writing to the block device with this identity, and to nothing else; rdsk info DEVICE lists the identities
    #[arg(long, value_name = "IDENTITY", value_parser = value::text)]
    destroy: Option<String>,
    /// dd's operands
    #[arg(
        value_name = "OPERAND",
        value_parser = value_parser!(OsString),
        add = ArgValueCompleter::new(|typed: &OsStr| completion::operands(&OPERANDS.split(' ').collect::<Vec<_>>(), typed))
    )]
    operands: Vec<OsString>,
}

/// The operands in which the second line differs.
#[derive(Clone, Debug)]
struct Differing(Vec<OsString>);

fn differing(line: &str) -> Result<Differing, BadValue> {
    let hint = "quote the operands in which the second copy differs: --compare 'iflag=direct bs=1M'";
    let words = shlex::split(line).filter(|words| !words.is_empty());
    let words =
        words.ok_or_else(|| BadValue::new("there are no operands, or quotes that do not match", hint))?;
    Ok(Differing(words.into_iter().map(OsString::from).collect()))
}

impl Dd {
    /// What the line allows.
    pub(super) fn permission(&self) -> Permission {
        Permission { destroy: self.destroy.clone(), ..Permission::default() }
    }

    /// Takes the history that the line names, or none, for the whole process.
    pub(super) fn choose_history(&self) {
        if self.no_history {
            history::choose(Place::Off);
        } else {
            self.history.choose();
        }
    }

    /// The operands of each line: those given, and for a comparison those with the differing ones in their place.
    pub(super) fn lines(&self) -> Vec<Vec<OsString>> {
        let first = self.operands.clone();
        let Some(Differing(differing)) = &self.compare else { return vec![first] };
        let is_kept = |word: &&OsString| differing.iter().all(|other| name_of(word) != name_of(other));
        let second = first.iter().filter(is_kept).chain(differing).cloned().collect();
        vec![first, second]
    }

    /// Whether there are several runs.
    pub(super) fn is_repeated(&self) -> bool {
        self.rounds() > 1 || self.compare.is_some()
    }

    pub(super) fn rounds(&self) -> u32 {
        self.repeat.unwrap_or(if self.compare.is_some() { DEFAULT_ROUNDS } else { 1 })
    }

    /// Refuses runs of which no two would be alike.
    ///
    /// # Errors
    /// What the operands of a line do not allow.
    pub(super) fn check(&self, line: &Operands) -> Result<(), Problem> {
        if !self.is_repeated() {
            return Ok(());
        }
        let refused = |what: &str, hint: &str| Err(usage(format!("--repeat and --compare {what}"), hint));
        if line.input.is_none() || line.output.is_none() {
            return refused("need if= and of=", "name both ends, so that every run begins anew");
        }
        if line.output_flags.open.contains(OFlags::APPEND) {
            return refused(
                "do not go with oflag=append",
                "leave it out: every run would write behind the last one",
            );
        }
        if line.convert.is_exclusive {
            return refused(
                "do not go with conv=excl",
                "leave it out: the second run would find the output of the first",
            );
        }
        Ok(())
    }

    /// Refuses documents that would lie where the copy does, or over each other.
    ///
    /// # Errors
    /// What is wrong; no document may be written then.
    pub(super) fn check_places(&self, lines: &[&Operands]) -> Result<(), Problem> {
        const HINT: &str = "name another file for the document";
        let outputs: Vec<&OsStr> = lines.iter().filter_map(|line| line.output.as_deref()).collect();
        let file = |place: &'_ Option<JsonPlace>| match place {
            Some(JsonPlace::File(path)) => Some(path.clone()),
            _ => None,
        };
        let (json, report) = (file(&self.json), file(&self.report));
        for (flag, document) in [("--json", &json), ("--report", &report)] {
            let is_output =
                |document: &Path| outputs.iter().any(|output| is_same_place(document, Path::new(output)));
            if document.as_deref().is_some_and(is_output) {
                return Err(usage(format!("{flag} names the output of the copy itself"), HINT));
            }
        }
        if json.zip(report).is_some_and(|(json, report)| is_same_place(&json, &report)) {
            return Err(usage("--json and --report name the same file", HINT));
        }
        if self.json != Some(JsonPlace::Stdout) {
            return Ok(());
        }
        if outputs.len() < lines.len() {
            return Err(usage("--json - needs of=, since the copy goes to standard output without it", HINT));
        }
        if outputs.into_iter().any(is_standard_output) {
            return Err(usage("--json - and of= lead to the same file", HINT));
        }
        Ok(())
    }
}

/// The name of an operand; two names of one thing are one.
fn name_of(word: &OsStr) -> &[u8] {
    match word.as_bytes().split(|&byte| byte == b'=').next() {
        Some(b"iseek") => b"skip",
        Some(b"oseek") => b"seek",
        name => name.unwrap_or_default(),
    }
}

/// Whether a name is that of the file, pipe or device behind standard output. Character devices are not looked at: what comes
/// to a terminal or to /dev/null twice destroys nothing.
pub(super) fn is_standard_output(name: &OsStr) -> bool {
    let (Ok(named), Ok(standard)) = (statat(CWD, name, AtFlags::empty()), fstat(rustix::stdio::stdout()))
    else {
        return false;
    };
    let is_character = FileType::from_raw_mode(standard.st_mode) == FileType::CharacterDevice;
    !is_character && (named.st_dev, named.st_ino) == (standard.st_dev, standard.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::{parsed, refuses};

    #[test]
    fn every_operand_that_shells_complete_is_explained() {
        for operand in OPERANDS.split(' ') {
            let (name, _) = operand.split_once('=').unwrap();
            assert!(BELOW.contains(&format!("{name}=")), "{operand}");
        }
    }

    #[test]
    fn options_and_operands_are_told_apart() {
        let dd: Dd = parsed("--repeat 3 --explain=off if=a of=--b bs=1M --destroy S").unwrap();
        assert_eq!((dd.rounds(), dd.explain), (3, false));
        assert_eq!(dd.permission().destroy.as_deref(), Some("S"));
        assert_eq!(dd.lines(), [["if=a", "of=--b", "bs=1M"]]);
        let plain: Dd = parsed("").unwrap();
        assert!(plain.explain && !plain.no_history && !plain.is_repeated());
        let operand: Dd = parsed("-- --x").unwrap();
        assert_eq!(operand.lines(), [["--x"]], "an operand, which is wrong");
    }

    #[test]
    fn wrong_values_are_refused() {
        let lines = [
            ("--repeat 0", "--repeat"),
            ("--repeat x", "--repeat"),
            ("--explain maybe", "--explain"),
            ("--json", "--json"),
            ("--report -", "--report"),
            ("--report=", "--report"),
            ("--history=", "--history"),
            ("--compare ''", "--compare"),
            ("--compare \"'\"", "--compare"),
            ("-x if=a", "-x"),
        ];
        refuses(|dd: Dd| Ok(dd), &lines);
    }

    #[test]
    fn the_second_line_replaces_what_it_names() {
        let dd: Dd = parsed("--compare 'iflag=direct skip=2' if=a of=b iflag=fullblock iseek=1").unwrap();
        let [first, second] = &dd.lines()[..] else { panic!("two lines") };
        assert_eq!(first, &["if=a", "of=b", "iflag=fullblock", "iseek=1"]);
        assert_eq!(second, &["if=a", "of=b", "iflag=direct", "skip=2"]);
        assert_eq!(dd.rounds(), DEFAULT_ROUNDS);
    }
}
