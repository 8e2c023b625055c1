//! `rdsk dd`: dd's operands and dd's counts, and then the answer. It opens what may be opened, lets the copy run, prints dd's
//! lines as they come, and below them what the copy measured.

mod documents;
mod open;
mod options;
mod signals;
mod stderr;

pub(crate) use options::Dd;

use crate::cli_args::JsonPlace;
use crate::exit;
use crate::history::{self, Written};
use crate::usage::usage;
use crate::{interrupt, out};
use documents::{Documents, output_failure};
use open::{Closed, Opened};
use rdsk_dd::{
    Copier, Failure, Finished, Gate, Opening, OperandError, Operands, Signals, Status, Terminal as _,
};
use rdsk_engine::{MonotonicClock, Watchdog};
use rdsk_experiment::{Copies, CopiesEnd, Leftovers, WaitFor};
use rdsk_model::{Problem, Record, plan};
use rdsk_targets::Roots;
use signal_hook::consts::{SIGINT, SIGPIPE};
use signals::Handled;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use stderr::Stderr;

/// dd's exit code for everything that went wrong.
const FAILED: u8 = 1;

/// What a longer flush waits for is said.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// One command line of dd.
struct Line {
    words: Vec<String>,
    operands: Operands,
}

/// Makes the copies that a line requests; `words` are those after `rdsk`, and `command` is all of them for the Record.
pub(crate) fn run(options: &Dd, words: &[OsString], command: Vec<String>) -> u8 {
    options.choose_history();
    match prepare(options) {
        Ok((lines, documents)) => run_all(options, &lines, &documents, command),
        Err((problem, is_recorded)) => {
            let json = options.json.as_ref().filter(|_| is_recorded);
            exit_code(failure(&problem, json, words, command))
        }
    }
}

/// Reports a line that copies nothing, in its document too.
pub(crate) fn failure(
    problem: &Problem,
    json: Option<&JsonPlace>,
    words: &[OsString],
    command: Vec<String>,
) -> u8 {
    output_failure(json, &words[1..], command, problem.clone());
    out::failure(problem)
}

/// dd's exit code in place of one of rdsk's.
pub(crate) const fn exit_code(code: u8) -> u8 {
    if code == exit::DONE { exit::DONE } else { FAILED }
}

/// Parses the operands of all lines, and checks what the options need of them.
///
/// # Errors
/// What is wrong, and whether the document of the line may say so.
fn prepare(options: &Dd) -> Result<(Vec<Line>, Documents), (Problem, bool)> {
    let mut lines = Vec::new();
    for words in options.lines() {
        let operands = rdsk_dd::parse(&words).map_err(|error| (wrong(&error, &words), true))?;
        let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        lines.push(Line { words, operands });
    }
    let operands: Vec<&Operands> = lines.iter().map(|line| &line.operands).collect();
    options.check_places(&operands).map_err(|problem| (problem, false))?;
    operands.iter().try_for_each(|line| options.check(line)).map_err(|problem| (problem, true))?;
    let names = operands.iter().flat_map(|line| [&line.input, &line.output]).flatten();
    let names: Vec<String> = names.filter_map(|name| name.to_str().map(str::to_owned)).collect();
    let documents = Documents::prepare(options, &names)?;
    Ok((lines, documents))
}

/// What is wrong with an operand, and what takes it.
fn wrong(error: &OperandError, words: &[OsString]) -> Problem {
    match error {
        OperandError::Wrong(_) => {
            usage(error.to_string(), "rdsk dd --help explains the operands and options")
        }
        OperandError::NotTaken(_) => {
            let line = words.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
            usage(error.to_string(), format!("rdsk watch -- dd {line}"))
        }
    }
}

/// An operand as a shell takes it: only its value may need quotes.
fn quoted(operand: &str) -> String {
    let quote = |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Cow::into_owned);
    match operand.split_once('=') {
        Some((name, value)) => format!("{name}={}", quote(value)),
        None => quote(operand),
    }
}

fn run_all(options: &Dd, lines: &[Line], documents: &Documents, command: Vec<String>) -> u8 {
    let mut stderr = Stderr::default();
    let handled = signals::handled();
    let interrupt = &handled.signals.interrupt;
    let is_silent = lines.iter().all(|line| line.operands.status == Status::None);
    let is_explained = options.explain && !is_silent;
    let leftovers = if is_explained { Leftovers::Flush } else { Leftovers::Leave };
    let watchdog = Watchdog::default();
    let mut copies = (is_explained || documents.are_wanted())
        .then(|| Copies::new(command, Roots::default(), leftovers, watchdog.clone()));
    let mut result = Ok(());
    // Backwards in every second round (A B B A), so that drift affects both lines alike.
    let numbers: Vec<usize> = (0..lines.len()).collect();
    for line in (0..options.rounds()).flat_map(|round| plan::turned(&numbers, round)) {
        let line = (line, &lines[line]);
        result = run_once(options, line, copies.as_mut(), (&handled, &watchdog), &mut stderr);
        if result.is_err() || interrupt.load(Ordering::Relaxed) != 0 {
            break;
        }
    }
    let signal = match result {
        Err(Failure::Interrupted(number)) => i32::try_from(number).ok(),
        Err(Failure::BrokenPipe) => Some(SIGPIPE),
        // The copy is done, and the flush after it was cut short.
        _ => i32::try_from(interrupt.load(Ordering::Relaxed)).ok().filter(|&number| number != 0),
    };
    let end = match (signal, result) {
        (Some(number), _) => CopiesEnd::Signal(number),
        (None, Ok(())) => CopiesEnd::Done,
        (None, Err(_)) => CopiesEnd::Failed,
    };
    // An endless copy is ended by Ctrl-C, and measured until then; other signals want the process gone.
    let is_ended_by_hand =
        matches!(result, Err(Failure::Interrupted(number)) if i32::try_from(number) == Ok(SIGINT));
    let is_cut_short = !is_ended_by_hand
        && matches!(result, Err(Failure::Interrupted(_) | Failure::BrokenPipe | Failure::Refused));
    let written = copies.map_or(Ok(()), |copies| {
        let record = copies.finish(end);
        let has_whole_runs = record.copies.iter().any(|copy| copy.runs.iter().any(|run| run.is_complete));
        conclude(&record, documents, is_explained && (!is_cut_short || has_whole_runs), &mut stderr)
    });
    match signal {
        // Where SIGPIPE is ignored, a pipe without readers is an error like others.
        Some(SIGPIPE) if rdsk_sys::start::ignored_broken_pipes() => {
            stderr.say("error writing standard output: Broken pipe");
            return FAILED;
        }
        // The program that started dd learns from its end what ended it.
        Some(number) => drop(signal_hook::low_level::emulate_default_handler(number)),
        None => {}
    }
    match (result, written) {
        (Ok(()), Ok(())) => stderr.code(),
        _ => FAILED,
    }
}

/// One run of one line.
fn run_once(
    options: &Dd,
    (index, line): (usize, &Line),
    mut copies: Option<&mut Copies>,
    (handled, watchdog): (&Handled, &Watchdog),
    stderr: &mut Stderr,
) -> Result<(), Failure> {
    let (signals, operands) = (&handled.signals, &line.operands);
    let opening = Opening { operands, terminal: stderr, signals };
    let opened = handled.while_opening(|| open::open(opening, &options.permission(), watchdog));
    let refuse = |copies: &mut Option<&mut Copies>, problem: Problem| {
        out::problem(&problem);
        copies.iter_mut().for_each(|copies| copies.refuse(problem.clone()));
    };
    let Opened { input, output, gate, took_ns } = match opened {
        Ok(opened) => opened,
        Err(Closed::Failed(failure)) => return Err(failure),
        Err(Closed::Refused(problem)) => {
            refuse(&mut copies, problem);
            return Err(Failure::Failed);
        }
    };
    let watching = copies
        .as_mut()
        .map(|copies| copies.begin(index, (&line.words, operands), (&input, &output), took_ns));
    let gate_of_copy = gate.as_ref().map(|gate| gate as &dyn Gate);
    let copier = Copier::new(operands, (input, output), stderr, signals, &MonotonicClock);
    let finished = copier.behind(gate_of_copy).run();
    print_counts(options, operands, &finished, stderr);
    if let Some(problem) = gate.and_then(|gate| gate.refusal()) {
        refuse(&mut copies, problem);
    }
    let not_flushed = copies.zip(watching).and_then(|(copies, watching)| {
        let mut patience = Patience { since: Instant::now(), signals, stderr, has_said: false };
        copies.end(watching, operands, &finished, &mut |wait| patience.goes_on(wait))
    });
    if let Some(problem) = not_flushed {
        stderr.say(&problem.message);
        return finished.result.and(Err(Failure::Failed));
    }
    finished.result
}

/// Those of each of several runs would hide what the runs have in common; of one that was cut short they are all there is.
fn print_counts(options: &Dd, operands: &Operands, finished: &Finished, stderr: &mut Stderr) {
    let is_shown = match finished.result {
        Ok(()) => !options.is_repeated(),
        Err(Failure::BrokenPipe) => rdsk_sys::start::ignored_broken_pipes(),
        Err(_) => true,
    };
    if is_shown {
        stderr.print(&rdsk_dd::lines(operands.status, &finished.counts, finished.times.elapsed_ns()));
    }
}

/// How long the user wants to wait for the flush after dd's last line.
struct Patience<'a> {
    since: Instant,
    signals: &'a Signals,
    stderr: &'a mut Stderr,
    has_said: bool,
}

impl Patience<'_> {
    /// Until a signal comes. On a terminal it says what is waited for.
    fn goes_on(&mut self, wait: WaitFor) -> bool {
        let is_long = wait == WaitFor::Flush && self.since.elapsed() > SAY_AFTER;
        if is_long && !self.has_said && std::io::stderr().is_terminal() {
            self.stderr
                .say("waiting until the data is on the device; an interrupt leaves that to the kernel");
            self.has_said = true;
        }
        self.signals.interrupt.load(Ordering::Relaxed) == 0
    }
}

/// Writes the documents, the answer and the history.
fn conclude(
    record: &Record,
    documents: &Documents,
    is_explained: bool,
    stderr: &mut Stderr,
) -> Result<(), ()> {
    // A limit on files ends the copy, as it ends dd's. The copy is over, and its exit code must not be lost with the history.
    interrupt::survive_file_limits();
    let (is_in_json, written) = documents.write(record);
    if is_explained {
        stderr.print(&rdsk_report::copies(&rdsk_analysis::Analysis::of(record), stderr::style()));
    }
    // What was refused, or could not be opened, measured nothing.
    if !record.copies.is_empty() {
        history::keep_finished(record, Written::when(is_in_json));
    }
    written.map_err(|problem| out::problem(&problem))
}
