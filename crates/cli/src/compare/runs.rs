//! Runs that `rdsk compare` makes itself: rdsk as a child of its own, so that each command line goes the way that it always goes,
//! and what a shell does before. It measures nothing itself.

use super::options::Repeat;
use crate::forwarding::{Forwarding, wait_for_end};
use crate::{exit, history, out};
use rdsk_model::{Problem, ProblemKind, Record, Status};
use rdsk_units::printable;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The program itself, whatever became of its file.
const SELF: &str = "/proc/self/exe";

/// Of what a preparation wrote, so much is shown.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// What came of a number of runs.
#[derive(Debug)]
pub(super) enum Ended {
    /// All were made.
    Whole,
    /// A signal ended them.
    Interrupted,
    /// One failed, or what prepares it; those before it are whole.
    Failed(Problem),
}

/// The runs of both command lines, in their order.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) sides: [Vec<Record>; 2],
}

/// Makes programs run, one after the other.
pub(super) struct Runner {
    forwarding: Forwarding,
    is_quiet: bool,
}

impl Runner {
    /// Begins to pass signals on.
    ///
    /// # Errors
    /// When the kernel does not let us handle signals.
    pub(super) fn new(is_quiet: bool) -> Result<Self, Problem> {
        Ok(Self { forwarding: Forwarding::begin()?, is_quiet })
    }

    /// Runs two command lines in turn, every second time the other one first, so that neither always comes first. What ends that
    /// early costs none of the runs before.
    pub(super) fn in_turn(&self, repeat: &Repeat) -> (Runs, Ended) {
        let mut runs = Runs::default();
        for number in 0..repeat.count {
            let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                self.tell(repeat, number, side);
                match self.prepared(repeat, number, side) {
                    Ok(Some(record)) => runs.sides[side].push(record),
                    Ok(None) => return (runs, Ended::Interrupted),
                    Err(problem) => return (runs, Ended::Failed(problem)),
                }
            }
        }
        (runs, Ended::Whole)
    }

    /// One run, with what prepares it; `None` if a signal ended it.
    fn prepared(&self, repeat: &Repeat, number: u32, side: usize) -> Result<Option<Record>, Problem> {
        if let Some(line) = &repeat.prepare[side] {
            self.prepare(line)?;
        }
        // Both of a pair have the same offsets, and every pair others.
        self.record(&repeat.lines[side], Some(u64::from(number) + 1))
    }

    /// The Record of one command line; `None` if a signal ended it.
    ///
    /// # Errors
    /// When it failed.
    pub(super) fn record(&self, words: &[OsString], seed: Option<u64>) -> Result<Option<Record>, Problem> {
        let mut command = Command::new(SELF);
        command.args(child_words(words, seed, self.is_quiet)).stdin(Stdio::null()).stdout(Stdio::piped());
        history::pass_on(&mut command);
        let line = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let failed = |why: String| {
            let message = format!("rdsk {} {why}", printable(&line));
            Problem::new(ProblemKind::Io, "run", message, "run it by itself to see more")
        };
        if self.comes_too_late() {
            return Ok(None);
        }
        let mut child = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
        let output = child.stdout.take();
        let (document, status) =
            self.finish(&mut child, output).map_err(|error| failed(format!("was lost: {error}")))?;
        let code = status.code();
        if self.is_interrupted() || code == Some(i32::from(exit::INTERRUPTED)) {
            return Ok(None);
        }
        let record: Record = serde_json::from_slice(&document)
            .map_err(|_| failed(format!("left no Record; it ended with {}", ending(code))))?;
        // Its own words are on standard error already; a cell that failed in a run that went on is data.
        match &record.error {
            Some(problem) => Err(Problem {
                message: format!("rdsk {} failed: {}", printable(&line), problem.message),
                ..problem.clone()
            }),
            None if record.status == Status::Interrupted => Ok(None),
            None => Ok(Some(record)),
        }
    }

    /// What the child writes, and how it ends.
    fn finish(&self, child: &mut Child, output: Option<impl io::Read>) -> io::Result<(Vec<u8>, ExitStatus)> {
        self.forwarding.to(child);
        let mut text = Vec::new();
        let read = output.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text));
        // It has closed its output, so it ends now; once it was waited for, another process may have its number.
        self.forwarding.end();
        let status = child.wait()?;
        read?;
        Ok((text, status))
    }

    /// Runs what a user wants done before a run.
    fn prepare(&self, line: &str) -> Result<(), Problem> {
        if self.comes_too_late() {
            return Ok(());
        }
        let shown = printable(line);
        let problem = |why: String| {
            let hint = "it must end with exit code 0; what it wrote is above";
            Problem::new(ProblemKind::Usage, "prepare", format!("preparing by '{shown}' {why}"), hint)
        };
        let run = || {
            // A program that it leaves behind may hold its output for ever, and write there: a pipe would not end, or end that program.
            let text = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
            let mut command = Command::new("sh");
            command
                .args(["-c", line])
                .stdin(Stdio::null())
                .stdout(text.try_clone()?)
                .stderr(text.try_clone()?);
            let mut child = command.spawn()?;
            self.forwarding.to(&child);
            wait_for_end(&child)?;
            self.forwarding.end();
            let status = child.wait()?;
            // From its place on a program that was left behind goes on writing, so that place stays.
            let mut words =
                vec![0; usize::try_from(text.metadata()?.len().min(MAX_OUTPUT_BYTES)).unwrap_or(0)];
            text.read_exact_at(&mut words, 0)?;
            Ok((words, status))
        };
        let (text, status) = run().map_err(|error: io::Error| problem(format!("cannot be run: {error}")))?;
        if status.success() || self.is_interrupted() {
            return Ok(());
        }
        for line in String::from_utf8_lossy(&text).lines() {
            out::answer(&format!("  {}\n", printable(line)));
        }
        Err(problem(format!("ended with {}", ending(status.code()))))
    }

    fn tell(&self, repeat: &Repeat, number: u32, side: usize) {
        if self.is_quiet {
            return;
        }
        let line: Vec<_> = repeat.lines[side].iter().map(|word| word.to_string_lossy()).collect();
        let name = ["A", "B"][side];
        let line = printable(&line.join(" "));
        out::answer(&format!("pair {} of {}, {name}: rdsk {line}\n", number + 1, repeat.count));
    }

    /// Whether a signal came before a command that is about to be started. One that comes later is for the command, even if it comes
    /// before we know its number.
    fn comes_too_late(&self) -> bool {
        self.forwarding.next();
        self.is_interrupted()
    }

    fn is_interrupted(&self) -> bool {
        self.forwarding.has_any()
    }
}

/// The command line of the child: the Record to its output, and the seed of a simulated target where the user chose none. Both runs of
/// a pair on a real one draw offsets of their own: the second would find what the first has read in a cache that is not seen.
fn child_words(words: &[OsString], seed: Option<u64>, is_quiet: bool) -> Vec<OsString> {
    let (name, rest) = words.split_first().expect("a command line that was parsed has a command");
    let has = |flag: &str| {
        let is_it = |word: &OsString| {
            word == OsStr::new(flag) || word.to_string_lossy().starts_with(&format!("{flag}="))
        };
        rest.iter().take_while(|word| *word != OsStr::new("--")).any(is_it)
    };
    let is_simulated = rest.iter().any(|word| word.to_string_lossy().starts_with("sim:"));
    let mut child: Vec<OsString> = vec![name.clone(), "--json".into(), "-".into()];
    if let Some(seed) = seed.filter(|_| !has("--seed") && is_simulated) {
        child.extend(["--seed".into(), seed.to_string().into()]);
    }
    if is_quiet && !has("--quiet") && !has("-q") {
        child.push("--quiet".into());
    }
    child.extend(rest.iter().cloned());
    child
}

fn ending(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".into(), |code| format!("exit code {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_writes_its_record_to_its_output_and_keeps_the_users_seed() {
        let child_line = |line: &str, is_quiet| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let own_words = child_words(&words, Some(3), is_quiet);
            own_words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(child_line("run . --rw read", false), "run --json - . --rw read");
        assert_eq!(
            child_line("run sim:linux-disk --rw read", false),
            "run --json - --seed 3 sim:linux-disk --rw read"
        );
        assert_eq!(child_line("run --seed 9 .", true), "run --json - --quiet --seed 9 .");
        assert_eq!(child_line("run --seed=9 . -q", true), "run --json - --seed=9 . -q");
        assert_eq!(child_line("run -- --seed", false), "run --json - -- --seed");
    }
}
