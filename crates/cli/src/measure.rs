//! The commands that measure: passes the request on, shows progress, and outputs the Record as document and page. What is
//! measured, and how, is up to `experiment`.

use crate::cli_args::{Detail, JsonPlace, Verbosity};
use crate::exchange::Outputs;
use crate::grammar::Parsed;
use crate::history::{self, Keeper, Written};
use crate::interrupt::{Guard, OnAbandon};
use crate::json_file::{self, JSON, Sink};
use crate::measuring::{self, Measurement};
use crate::progress::Progress;
use crate::same_place::is_database;
use crate::{exit, out, panic_hook, record_file, screen};
use rdsk_experiment::{Request, execute, failed_record, plan_only};
use rdsk_model::{Plan, Problem, ProblemKind, Record, StopFlag, Target};
use rdsk_report::Further;
use rdsk_targets::{Overwrite, Roots};
use rdsk_units::printable;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

/// What is left of a random number of 64 bits can be copied by hand.
const SEED_SHIFT: u32 = 40;

/// Runs a measuring command and gives its exit code. `command` is the command line for the Record.
pub(crate) fn measure(asked: &Measurement, command: Vec<String>) -> u8 {
    if let Some(place) = asked.common.place() {
        history::choose(place);
    }
    let resumed = resumed(asked);
    let asked = resumed.as_ref().map_or(asked, |(asked, _)| asked);
    let stop = StopFlag::new();
    let mut request = request(asked, command, &stop);
    let sink = Sink::wanted(JSON, asked.common.output.json(), &request.targets);
    let sink = match sink.and_then(|sink| keeps_history(&request).map(|()| sink)) {
        Ok(sink) => sink,
        // The document cannot be written, so the problem goes to standard error alone.
        Err(problem) => return out::failure(&problem),
    };
    let outputs = match Outputs::prepare(&asked.common.forms(), &request.targets) {
        Ok(outputs) => outputs,
        Err(problem) => return failed(&problem, &request, sink.as_ref(), asked),
    };
    match &resumed {
        Ok((_, earlier)) => request.resume.clone_from(earlier),
        Err(problem) => return failed(problem, &request, sink.as_ref(), asked),
    }
    request.options.seed = request.options.seed.or_else(|| seed(&request));
    if asked.common.run.dry_run {
        show_plan(asked, &request, sink.as_ref())
    } else {
        run(asked, &request, sink.as_ref(), &outputs, stop)
    }
}

/// Refuses to overwrite the history: it would be gone, and with it this run.
fn keeps_history(request: &Request) -> Result<(), Problem> {
    let Some(history) = history::file() else { return Ok(()) };
    let is_history = |target: &&String| is_database(Path::new(target), &history);
    let overwritten = request.targets.iter().find(is_history);
    match overwritten.filter(|_| request.permission.overwrite == Overwrite::Allowed) {
        Some(target) => Err(Problem::new(
            ProblemKind::Usage,
            "target-is-history",
            format!("{} is the history of rdsk", printable(target)),
            "name another file, or another history after --history",
        )),
        None => Ok(()),
    }
}

pub(crate) fn request(asked: &Measurement, command: Vec<String>, stop: &StopFlag) -> Request {
    let common = &asked.common;
    let targets = if common.targets.is_empty() { vec![".".to_owned()] } else { common.targets.clone() };
    Request {
        command,
        label: common.run.label.clone(),
        experiments: asked.experiments.clone(),
        targets,
        permission: common.permission(),
        size_bytes: common.size,
        resume: None,
        options: asked.options.clone(),
        roots: Roots::default(),
        stop: stop.clone(),
    }
}

/// The seed where none was requested: that of the run that goes on, else another one for each run, as offsets that are drawn again may
/// still lie in a cache of a hypervisor, an array or a disk. Runs on simulated targets are repeatable.
pub(crate) fn seed(request: &Request) -> Option<u64> {
    if request.targets.iter().all(|target| target.starts_with("sim:")) {
        return None;
    }
    let earlier = request.resume.as_ref().and_then(|earlier| earlier.seed);
    earlier.or_else(|| Some(RandomState::new().build_hasher().finish() >> SEED_SHIFT))
}

fn run(asked: &Measurement, request: &Request, sink: Option<&Sink>, outputs: &Outputs, stop: StopFlag) -> u8 {
    let guard = match Guard::new(stop, on_abandon(asked, request, sink)) {
        Ok(guard) => guard,
        Err(error) => {
            let problem = cannot_start("watch for signals", &error);
            return failed(&problem, request, sink, asked);
        }
    };
    let mut keeper = Keeper::new(Progress::new(asked.common.verbosity()));
    // The kernel delivers a signal to the main thread. If that one waited for a disk in uninterruptible sleep, the signal
    // would wait too; so another thread runs the I/O.
    let ended = std::thread::scope(|scope| {
        let work = std::thread::Builder::new().name("run".into());
        let work = work
            .spawn_scoped(scope, || panic_hook::catch(|| execute(request, &mut keeper)))
            .map_err(|error| cannot_start("start a thread for the run", &error))?;
        work.join().expect("a panic is caught inside")
    });
    keeper.progress.clear();
    guard.run_ended();
    match ended {
        Ok(record) => output_record(&Arc::new(record), (keeper, &guard), asked, (sink, outputs)),
        Err(problem) => {
            rdsk_targets::remove_all_test_files_now();
            failed(&problem, request, sink, asked)
        }
    }
}

pub(crate) fn cannot_start(action: &str, error: &std::io::Error) -> Problem {
    let hint = "raise the limits on threads (ulimit -u), open files (ulimit -n) and memory (ulimit -v)";
    Problem::new(ProblemKind::Refused, "signals", format!("cannot {action}: {error}"), hint)
}

/// The documents first, since what they take cannot be produced again; then the page; then the history, which may have to wait for
/// other processes; then errors, so that they are last on the screen.
pub(crate) fn output_record(
    record: &Arc<Record>,
    (keeper, guard): (Keeper, &Guard),
    asked: &Measurement,
    (sink, outputs): (Option<&Sink>, &Outputs),
) -> u8 {
    // All of it may wait: for a reader, for a disk, for other processes.
    guard.set_last_act(keeper.instead(record, Written::Nowhere));
    let mut code = exit::of_record(record);
    let mut complain = |problem: &Problem| {
        out::problem(problem);
        if code == exit::DONE {
            code = exit::code_of(problem.kind);
        }
    };
    let written = sink.map(|sink| sink.write(&rdsk_report::json(record, asked.common.output.compactness())));
    let in_document = Written::when(matches!(written, Some(Ok(()))));
    if let Some(Err(problem)) = written {
        complain(&problem);
    }
    guard.set_last_act(keeper.instead(record, in_document));
    if let Err(problem) = outputs.write(record) {
        complain(&problem);
    }
    let shown_again = shown_again(record, &keeper, asked, in_document);
    if !sink.is_some_and(Sink::is_stdout)
        && !outputs.take_stdout()
        && !record.cells.is_empty()
        && let Err(problem) = out::data(&page(record, asked, shown_again.as_deref()))
    {
        complain(&problem);
    }
    keeper.finish(record, in_document);
    guard.set_last_act(None);
    if let Some(problem) = record.error.clone().or_else(|| cell_errors(record)) {
        complain(&problem);
    }
    if let Some(problem) = leftover_test_file() {
        complain(&problem);
    }
    if let Some(text) = panic_hook::unreported()
        && asked.common.verbosity() == Verbosity::Normal
    {
        out::warning(&text);
    }
    code
}

/// The command that draws the run again, where something keeps it.
fn shown_again(record: &Record, keeper: &Keeper, asked: &Measurement, written: Written) -> Option<String> {
    keeper.show_command(record).or_else(|| match asked.common.output.json() {
        Some(JsonPlace::File(path)) if written == Written::InDocument => {
            Some(format!("rdsk show {}", out::word(path)))
        }
        _ => None,
    })
}

/// A run is summed up on one screen; a single question has a screen of its own.
fn page(record: &Record, asked: &Measurement, shown_again: Option<&str>) -> String {
    let style = screen::style(asked.common.output.look());
    let further = shown_again.map_or(Further::Nowhere, Further::By);
    let analysis = rdsk_analysis::Analysis::of(record);
    match asked.detail {
        // One screen has no room for ranks.
        _ if asked.command != "run" || !record.ranks.is_empty() => {
            rdsk_report::topic(&analysis, further, style)
        }
        Detail::Short => rdsk_report::short(&analysis, further, style),
        Detail::Full => rdsk_report::text(&analysis, style),
    }
}

/// A test file that is still there, as on a filesystem that turned read-only during the run.
fn leftover_test_file() -> Option<Problem> {
    let left = rdsk_targets::test_files_left().into_iter().next()?;
    let path = left.path.display();
    Some(Problem::new(
        ProblemKind::Io,
        "file-left",
        format!("the test file {path} could not be removed: {}", left.reason),
        format!(
            "remove it when the filesystem is writable again, or let the next run there do it: rm {path}"
        ),
    ))
}

/// The errors of cells in a run that went on after them.
fn cell_errors(record: &Record) -> Option<Problem> {
    let failed: Vec<_> = record.cells.iter().filter(|cell| !cell.result.errors.is_empty()).collect();
    let first = failed.first()?;
    let error = first.result.errors.first()?;
    Some(Problem::new(
        ProblemKind::Io,
        "cells-failed",
        format!(
            "I/O failed in {} of {} tests, first in {} at offset {}: {}",
            failed.len(),
            record.cells.len(),
            rdsk_analysis::words::test(first),
            error.offset_bytes,
            error.message
        ),
        "see the kernel log: dmesg | tail",
    ))
}

fn show_plan(asked: &Measurement, request: &Request, sink: Option<&Sink>) -> u8 {
    let (plan, targets) = match panic_hook::catch(|| plan_only(request)).and_then(|planned| planned) {
        Ok(planned) => planned,
        Err(problem) => return failed(&problem, request, sink, asked),
    };
    let style = screen::style(asked.common.output.look());
    let page = || rdsk_report::plan_text(&plan, &targets, style);
    let shown = json_file::output(sink, || plan_document(&plan, &targets, request.options.seed()), page);
    shown.map_or_else(|problem| out::failure(&problem), |()| exit::DONE)
}

/// The plan, and the seed with which a run has the same offsets.
fn plan_document(plan: &Plan, targets: &[Target], seed: u64) -> String {
    let document = serde_json::json!({
        "schema": "rdsk.plan/1",
        "rdsk_version": env!("CARGO_PKG_VERSION"),
        "seed": seed,
        "targets": targets,
        "plan": plan,
    });
    format!("{document:#}")
}

/// Reports a command that ended before there was a Record, in the document too.
fn failed(problem: &Problem, request: &Request, sink: Option<&Sink>, asked: &Measurement) -> u8 {
    json_file::output_failure(sink, || {
        let record = failed_record(request.command.clone(), request.label.clone(), problem.clone());
        rdsk_report::json(&record, asked.common.output.compactness())
    });
    out::failure(problem)
}

/// What the watchdog reports for a run that does not end.
fn on_abandon(asked: &Measurement, request: &Request, sink: Option<&Sink>) -> OnAbandon {
    let (request, sink, asked) = (request.clone(), sink.cloned(), asked.clone());
    Box::new(move || {
        let problem = Problem::new(
            ProblemKind::Interrupted,
            "abandoned",
            "interrupted, and the run did not stop by itself; its latest figures are lost",
            "the test file is removed; an I/O may still hang in the kernel: dmesg | tail",
        );
        failed(&problem, &request, sink.as_ref(), &asked);
    })
}

/// The arguments that count, and the Record that the run goes on with, if any.
///
/// # Errors
/// When the Record cannot be found or read, or its command line does not say what to measure.
fn resumed(asked: &Measurement) -> Result<(Measurement, Option<Box<Record>>), Problem> {
    let Some(word) = &asked.common.run.resume else { return Ok((asked.clone(), None)) };
    let earlier = record_file::named(word, "--resume", "no-resume")?;
    // With flags of output alone, the command line of the earlier run counts.
    let mut asked = if asked.says_what { asked.clone() } else { replayed(asked, &earlier)? };
    // A new test file is as large as the one that is gone.
    if asked.common.size.is_none() {
        let made = earlier.targets.iter().find(|target| target.made_by_rdsk);
        asked.common.size = made.map(|target| target.size_bytes);
    }
    Ok((asked, Some(Box::new(earlier))))
}

/// What the earlier run measured, with the output that is wanted now.
fn replayed(now: &Measurement, earlier: &Record) -> Result<Measurement, Problem> {
    let id = printable(&earlier.id);
    let unclear = |why: String| {
        let hint = "name the target and the flags of that run beside --resume";
        Problem::new(ProblemKind::Usage, "no-resume", format!("run {id} cannot go on by itself: {why}"), hint)
    };
    let words: Vec<OsString> = earlier.command.iter().map(OsString::from).collect();
    let mut then = match measuring::parse(&words) {
        Ok(Parsed::Line(then, _)) => then,
        _ => return Err(unclear("its command line is not understood".into())),
    };
    if then.command != now.command {
        return Err(unclear(format!("it is one of rdsk {}", then.command)));
    }
    if then.common.run.resume.is_some() {
        return Err(unclear("it went on with another run".into()));
    }
    // Permission to overwrite something is given once, not for ever.
    if then.common.may_overwrite() {
        return Err(unclear("it was allowed to write to its target".into()));
    }
    let label = then.common.run.label.take();
    then.common.output = now.common.output.clone();
    then.common.run = now.common.run.clone();
    then.common.run.label = then.common.run.label.or(label);
    Ok(Measurement { detail: now.detail, says_what: now.says_what, ..then })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Parsed;
    use rdsk_experiment::failed_record;
    use std::collections::BTreeSet;

    fn understood(line: &[&str]) -> Parsed<Measurement> {
        let words: Vec<_> = std::iter::once("rdsk").chain(line.iter().copied()).map(Into::into).collect();
        crate::measuring::parse(&words).unwrap()
    }

    fn parsed(line: &[&str]) -> Measurement {
        let Parsed::Line(asked, _) = understood(line) else { panic!("{line:?} prints a text") };
        asked
    }

    #[test]
    fn no_target_is_the_current_directory() {
        let args = parsed(&["run"]);
        let request = request(&args, vec!["rdsk".into()], &StopFlag::new());
        assert_eq!(request.targets, ["."]);
        assert_eq!(request.experiments.len(), 6);
    }

    #[test]
    fn the_help_names_the_default_block_sizes() {
        for (subcommand, sizes) in [
            ("paths", "1M"),
            ("stream", "16k"),
            ("zones", "1M,5M,10M,20M"),
            ("align", "1,27,512,2k,4k,8k,16k,64k"),
            ("scale", "16k,32k,64k,128k,256k,512k,1M,2M"),
        ] {
            let blocks = |line: &[&str]| {
                let args = parsed(line);
                let (plan, _) = plan_only(&request(&args, vec![], &StopFlag::new())).unwrap();
                plan.cells.iter().map(|cell| cell.workload.block_bytes).collect::<BTreeSet<_>>()
            };
            let line = [subcommand, "sim:wd2500", "--budget", "2h"];
            assert_eq!(blocks(&line), blocks(&[&line[..], &["--bs", sizes]].concat()), "{subcommand}");
            let sizes = if subcommand == "scale" { "16k to 2M in powers of 2" } else { sizes };
            let Parsed::Text(help) = understood(&[subcommand, "-h"]) else { panic!("no help") };
            let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("Block sizes [default: {sizes}")), "{subcommand}: {help}");
        }
    }

    fn record(command: &str) -> Record {
        let words = command.split(' ').map(str::to_owned).collect();
        failed_record(words, Some("then".into()), Problem::plain(ProblemKind::Interrupted, "x", "x"))
    }

    #[test]
    fn the_command_line_of_the_earlier_run_counts_with_the_output_of_now() {
        let now = parsed(&["run", "--resume", "last", "--quiet"]);
        let asked =
            replayed(&now, &record("rdsk run sim:wd2500 --budget 7s --label then --json old.json")).unwrap();
        assert!(!now.says_what && parsed(&["run", "--resume", "last", "--seed", "1"]).says_what);
        let common = asked.common;
        assert_eq!(
            (&common.targets[..], asked.options.budget_ns),
            (&["sim:wd2500".to_owned()][..], 7_000_000_000)
        );
        assert_eq!((common.run.label.as_deref(), common.output.json()), (Some("then"), None));
        assert_eq!(common.verbosity(), now.common.verbosity());
    }

    #[test]
    fn a_command_line_that_would_not_mean_the_same_is_not_repeated() {
        let now = parsed(&["run", "--resume", "last"]);
        for (command, why) in [
            ("rdsk zones sim:wd2500", "rdsk zones"),
            ("rdsk run --resume 01ABCDEF", "another run"),
            ("rdsk run /dev/sdb --destroy X", "allowed to write"),
            ("rdsk run file --overwrite", "allowed to write"),
            ("rdsk dd if=a of=b", "not understood"),
            ("rdsk run --nonsense", "not understood"),
        ] {
            let problem = replayed(&now, &record(command)).unwrap_err();
            assert!(problem.message.contains(why) && problem.hint.is_some(), "{command}: {problem}");
        }
    }
}
