//! `rdsk dd`: dd's operands and dd's output, and then the answer. It opens what may be opened, lets the copy run, prints dd's
//! lines as they come, and below them what the copy measured.

mod help;
mod open;
mod options;
mod order;
mod signals;
mod stderr;

pub(crate) use help::Dd;

use crate::cli_args::{Form, JsonPlace};
use crate::exchange::Outputs;
use crate::history::{self, Written};
use crate::json_file::{self, JSON, Sink};
use crate::same_place::is_same_place;
use crate::{exit, interrupt, out};
use open::Closed;
use options::{Explain, Options, Parsed};
use rdsk_dd::{
    Block, Copier, Failure, NotOpened, Opening, OperandError, Operands, Signals, Status, Terminal as _,
    TickRate, TickStart,
};
use rdsk_experiment::{Copies, CopiesEnd, Leftovers, WaitFor, failed_record};
use rdsk_model::{Problem, ProblemKind, Record};
use rdsk_report::Compactness;
use rdsk_targets::Roots;
use signal_hook::consts::SIGPIPE;
use signals::Handled;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use stderr::{Counts, Stderr};

/// dd's exit code for everything that went wrong.
const FAILED: u8 = 1;

/// A flush that takes longer is told of.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// What the calls are timed by: the processor's counter once its rate is known.
#[derive(Clone, Copy)]
enum Timing {
    /// A single copy waits for nothing.
    Single(Option<TickStart>),
    /// Copies that are compared are timed alike, so that this is decided before the first.
    Alike(Option<TickRate>),
}

impl Timing {
    fn of(options: &Options) -> Self {
        let start = TickStart::now();
        if options.is_repeated() {
            Self::Alike(start.and_then(|start| start.settled()))
        } else {
            Self::Single(start)
        }
    }

    fn rate(self) -> Option<TickRate> {
        match self {
            Self::Single(start) => start.and_then(|start| start.rate()),
            Self::Alike(rate) => rate,
        }
    }
}

/// One command line of dd.
struct Line {
    words: Vec<String>,
    operands: Operands,
}

/// Where the Record goes beside the history.
struct Documents {
    json: Option<Sink>,
    page: Outputs,
}

impl Documents {
    /// Checks the places; `names` are those of both ends of every line.
    fn prepare(options: &Options, names: &[String]) -> Result<Self, Problem> {
        let page: Vec<_> = options.report.iter().map(|place| (Form::Page, place.clone())).collect();
        Ok(Self {
            json: options.json.as_ref().map(|place| Sink::prepare(place, names)).transpose()?,
            page: Outputs::prepare(&page, names)?,
        })
    }

    fn are_wanted(&self) -> bool {
        self.json.is_some() || !self.page.is_empty()
    }
}

/// Runs a command line, whose first word is `dd`; `command` is the whole of it for the Record.
pub(crate) fn run(words: &[OsString], command: Vec<String>) -> u8 {
    let mut stderr = Stderr::default();
    let options = match options::parse(&words[1..]) {
        Ok(Parsed::Options(options)) => options,
        Ok(Parsed::Text(text)) => {
            let printed = out::data(&text).inspect_err(out::problem);
            return if printed.is_ok() { exit::DONE } else { FAILED };
        }
        Err(message) => {
            let code = refuse(&mut stderr, &message);
            output_failure(crate::value::json_place_of(words).as_ref(), &words[1..], command, usage(message));
            return code;
        }
    };
    if let Some(place) = &options.history {
        history::choose(place.clone());
    }
    match prepare(&options, &mut stderr) {
        Ok((lines, documents)) => run_all(&options, &lines, &documents, command, &mut stderr),
        Err(problem) => {
            if let Some(problem) = problem {
                output_failure(options.json.as_ref(), &words[1..], command, problem);
            }
            FAILED
        }
    }
}

fn usage(message: String) -> Problem {
    let hint = "rdsk dd --help explains the operands and options";
    Problem::new(ProblemKind::Usage, "usage", message, hint)
}

/// Writes the document of a line that copies nothing, if its place is none of those that the words name as ends of a copy, and not
/// standard output unless they all name another output: who reads that waits for the copy, and may write it to a disk.
fn output_failure(json: Option<&JsonPlace>, words: &[OsString], command: Vec<String>, problem: Problem) {
    let values = values_of(words);
    let is_end = |path: &Path| values.iter().any(|(_, value)| is_same_place(path, Path::new(value)));
    let is_of_copy = match json {
        None => return,
        Some(JsonPlace::Stdout) => is_copied_to_stdout(&values),
        Some(JsonPlace::File(path)) => {
            is_end(path) || (options::is_standard_output(path.as_os_str()) && is_copied_to_stdout(&values))
        }
    };
    let names: Vec<String> = values.into_iter().map(|(_, value)| value).collect();
    let place = json.filter(|_| !is_of_copy);
    let Some(Ok(sink)) = place.map(|place| Sink::prepare(place, &names)) else { return };
    json_file::output_failure(Some(&sink), || {
        rdsk_report::json(&failed_record(command, None, problem), Compactness::Full)
    });
}

/// The operands among the words, and among those of each word, since `--compare` takes a whole line as one.
fn values_of(words: &[OsString]) -> Vec<(String, String)> {
    let texts = words.iter().filter_map(|word| word.to_str());
    let lines = texts.map(|text| shlex::split(text).unwrap_or_else(|| vec![text.to_owned()]));
    let operands = lines.flatten().filter(|text| !text.starts_with("--"));
    operands
        .filter_map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect()
}

/// Whether a copy may go to standard output: without `of=` it does, and `of=` may lead there.
fn is_copied_to_stdout(operands: &[(String, String)]) -> bool {
    let mut outputs = operands.iter().filter(|(name, _)| name == "of").peekable();
    outputs.peek().is_none() || outputs.any(|(_, value)| options::is_standard_output(OsStr::new(value)))
}

fn refuse(stderr: &mut Stderr, message: &str) -> u8 {
    stderr.say(message);
    stderr.print("Try 'rdsk dd --help' for more information.\n");
    FAILED
}

/// Parses the operands of all lines, and checks what the options need of them.
///
/// # Errors
/// What was told on standard error, for the document; `None` where that has no place.
fn prepare(options: &Options, stderr: &mut Stderr) -> Result<(Vec<Line>, Documents), Option<Problem>> {
    let mut lines = Vec::new();
    let charset = options::charset(rdsk_sys::locale::codeset().as_deref());
    for words in options.lines() {
        let parsed = rdsk_dd::parse(&words, charset);
        let (Ok(Operands { warnings, .. })
        | Err(OperandError::Usage { warnings, .. } | OperandError::Value { warnings, .. })) = &parsed;
        warnings.iter().for_each(|warning| stderr.say(warning));
        let operands = match parsed {
            Ok(operands) => operands,
            Err(error) => {
                let message = error.to_string();
                if matches!(error, OperandError::Usage { .. }) {
                    refuse(stderr, &message);
                } else {
                    stderr.say(&message);
                }
                return Err(Some(usage(message)));
            }
        };
        let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        lines.push(Line { words, operands });
    }
    let operands: Vec<&Operands> = lines.iter().map(|line| &line.operands).collect();
    options::check_places(options, &operands).map_err(|message| {
        refuse(stderr, &message);
        None::<Problem>
    })?;
    options::check(options, &operands).map_err(|message| {
        refuse(stderr, &message);
        Some(usage(message))
    })?;
    let names = operands.iter().flat_map(|one| [&one.input, &one.output]).flatten();
    let names: Vec<String> = names.filter_map(|name| name.to_str().map(str::to_owned)).collect();
    let documents = Documents::prepare(options, &names).map_err(|problem| {
        out::problem(&problem);
        // A place that is not fit for the document gets none.
        Some(problem).filter(|problem| !problem.code.starts_with(JSON.code))
    })?;
    Ok((lines, documents))
}

fn run_all(
    options: &Options,
    lines: &[Line],
    documents: &Documents,
    command: Vec<String>,
    stderr: &mut Stderr,
) -> u8 {
    // Of runs that are compared each takes its own when it begins.
    let mut block = if options.is_repeated() { None } else { Block::in_pages(&lines[0].operands) };
    let timing = Timing::of(options);
    let handled = signals::handled();
    let signals = &handled.signals;
    let is_silent = lines.iter().all(|line| line.operands.status == Status::None);
    let is_explained = options.explain == Explain::On && !is_silent;
    let leftovers = if is_explained { Leftovers::Flush } else { Leftovers::Leave };
    let mut copies =
        (is_explained || documents.are_wanted()).then(|| Copies::new(command, Roots::default(), leftovers));
    stderr.counts = if options.is_repeated() { Counts::Hidden } else { Counts::Shown };
    let mut result = Ok(());
    for line in order::order(options.rounds(), lines.len()) {
        result = run_once(
            options,
            (line, &lines[line]),
            copies.as_mut(),
            (&handled, timing),
            block.take(),
            stderr,
        );
        if result.is_err() || signals.interrupt.load(Ordering::Relaxed) != 0 {
            break;
        }
    }
    let signal = match result {
        Err(Failure::Interrupted(number)) => i32::try_from(number).ok(),
        Err(Failure::BrokenPipe) => Some(SIGPIPE),
        // The copy is done, and the flush after it was cut short.
        _ => i32::try_from(signals.interrupt.load(Ordering::Relaxed)).ok().filter(|&number| number != 0),
    };
    let end = match (signal, result) {
        (Some(number), _) => CopiesEnd::Signal(number),
        (None, Ok(())) => CopiesEnd::Done,
        (None, Err(_)) => CopiesEnd::Failed,
    };
    let is_cut_short = matches!(result, Err(Failure::Interrupted(_) | Failure::BrokenPipe));
    if is_cut_short {
        stderr.show_hidden();
    }
    let record = copies.map(|copies| copies.finish(end));
    let told = record.as_ref().map_or(Ok(()), |record| {
        let has_whole_runs = record.copies.iter().any(|copy| copy.runs.iter().any(|run| run.is_complete));
        tell(record, documents, is_explained && (!is_cut_short || has_whole_runs), stderr)
    });
    if let Some(number) = signal {
        // Whoever started dd learns from its end what ended it.
        let _ = signal_hook::low_level::emulate_default_handler(number);
    }
    match (result, told) {
        (Ok(()), Ok(())) => stderr.code(),
        _ => FAILED,
    }
}

/// One run of one line.
fn run_once(
    options: &Options,
    (index, line): (usize, &Line),
    copies: Option<&mut Copies>,
    (handled, timing): (&Handled, Timing),
    block: Option<Block>,
    stderr: &mut Stderr,
) -> Result<(), Failure> {
    let signals = &handled.signals;
    let opening = Opening { operands: &line.operands, terminal: stderr, signals, began: Instant::now() };
    let opened = handled.while_opening(|| open::open(opening, &options.permission));
    let (open::Opened { input, output, took }, copies) = match opened {
        Ok(opened) => (opened, copies),
        Err(why) => return Err(not_begun(why, copies, stderr)),
    };
    let mut watched = copies.map(|copies| {
        let watching = copies.begin(index, (&line.words, &line.operands), (&input, &output), took);
        (copies, watching)
    });
    let takes_one_piece = watched
        .as_ref()
        .is_some_and(|(_, watching)| watching.takes_one_piece(line.operands.input_block_bytes));
    let block = takes_one_piece.then(|| Block::in_one_piece(&line.operands)).flatten().or(block);
    let mut copier = Copier::new(&line.operands, input, output, stderr, signals, (timing.rate(), block));
    let result = copier.run();
    let finished = copier.finish(result);
    let not_flushed = watched.take().and_then(|(copies, watching)| {
        let mut patience = Patience::new(signals, stderr);
        copies.end(watching, &line.operands, &finished, &mut |wait| patience.goes_on(wait))
    });
    if let Some(problem) = not_flushed {
        stderr.say(&problem.message);
        return finished.result.and(Err(Failure::Told));
    }
    finished.result
}

/// Tells why a copy does not begin: to the Record, too, where that is more than dd's message.
fn not_begun(why: Closed, copies: Option<&mut Copies>, stderr: &mut Stderr) -> Failure {
    match why {
        Closed::NotOpened(NotOpened::Because(message)) => stderr.say(&message),
        Closed::NotOpened(NotOpened::Ended(failure)) => return failure,
        Closed::Refused(problem) => {
            let hint = problem.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            stderr.say(&format!("{}{hint}", problem.message));
            if let Some(copies) = copies {
                copies.refuse(problem);
            }
        }
    }
    Failure::BeforeCopy
}

/// How long the user wants to wait for the flush after dd's last line.
struct Patience<'a> {
    since: Instant,
    signals: &'a Signals,
    stderr: &'a mut Stderr,
    has_told: bool,
}

impl<'a> Patience<'a> {
    fn new(signals: &'a Signals, stderr: &'a mut Stderr) -> Self {
        Self { since: Instant::now(), signals, stderr, has_told: false }
    }

    /// Until a signal comes. Whoever waits at a terminal learns what for.
    fn goes_on(&mut self, wait: WaitFor) -> bool {
        let is_flush = wait == WaitFor::Flush;
        if is_flush && !self.has_told && self.since.elapsed() > TELL_AFTER && std::io::stderr().is_terminal()
        {
            self.stderr
                .say("waiting until the data is on the device; an interrupt leaves that to the kernel");
            self.has_told = true;
        }
        self.signals.interrupt.load(Ordering::Relaxed) == 0
    }
}

/// Writes the documents and the answer.
fn tell(record: &Record, documents: &Documents, is_explained: bool, stderr: &mut Stderr) -> Result<(), ()> {
    // It ends the copy, as it ends dd's. The copy is over, and its exit code must not be lost with the history.
    interrupt::survive_file_limits();
    let json = documents.json.as_ref();
    let written = json.map_or(Ok(()), |sink| sink.write(&rdsk_report::json(record, Compactness::Full)));
    let is_in_json = json.is_some() && written.is_ok();
    let written = written.and(documents.page.write(record));
    if is_explained {
        stderr.answer(&rdsk_report::copies(record, stderr::style()));
    }
    // What was refused, or could not be opened, measured nothing.
    if !record.copies.is_empty() {
        history::keep_finished(record, Written::of(is_in_json));
    }
    written.map_err(|problem| out::problem(&problem))
}
