//! One child process with a time limit: its lines are passed on as they come, and it is ended with everything it started
//! when the time is over or it is interrupted. It never waits for anything without a limit.

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the limits are looked at while the child is silent.
const TICK: Duration = Duration::from_millis(100);
/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long the last lines of a program that has ended are waited for, where something that it started keeps its output open.
const DRAIN: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 20 });

/// Lines that were read and wait to be passed on.
const MOST_WAITING: usize = 4096;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With status 0.
    Succeeded,
    /// With another status, or by a signal.
    Failed(ExitStatus),
    /// It was ended because its time was over.
    TimedOut(Duration),
    /// It was ended because the task was interrupted.
    Interrupted,
}

/// Runs a command to its end, at most for `limit`. Each line of its standard output goes to `on_line`, without its line
/// feed; standard error goes where ours goes; standard input is empty.
pub(crate) fn run(
    command: &mut Command,
    limit: Duration,
    interrupted: &AtomicBool,
    on_line: &mut dyn FnMut(&str),
) -> anyhow::Result<Ending> {
    let mut child = start(command.stdout(Stdio::piped()))?;
    let lines = read_lines(child.stdout.take().expect("standard output is a pipe"));
    watch(&mut child, &lines, limit, interrupted, on_line)
}

/// The same with the lines of standard error among the others, in the order in which they were written.
pub(crate) fn run_with_errors(
    command: &mut Command,
    limit: Duration,
    interrupted: &AtomicBool,
    on_line: &mut dyn FnMut(&str),
) -> anyhow::Result<Ending> {
    let (reader, writer) = std::io::pipe()?;
    let started = start(command.stdout(writer.try_clone()?).stderr(writer));
    // Only the child shall hold the pipe open; the command holds two ends of it until it gets others.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    watch(&mut started?, &read_lines(reader), limit, interrupted, on_line)
}

fn start(command: &mut Command) -> anyhow::Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    // A group of its own, so that test programs and compilers end together with the cargo that started them.
    let started = command.stdin(Stdio::null()).process_group(0).spawn();
    started.with_context(|| format!("cannot start {program}"))
}

fn watch(
    child: &mut Child,
    lines: &Receiver<String>,
    limit: Duration,
    interrupted: &AtomicBool,
    on_line: &mut dyn FnMut(&str),
) -> anyhow::Result<Ending> {
    let deadline = Instant::now() + limit;
    loop {
        pass_on(lines, on_line);
        if let Some(status) = child.try_wait()? {
            drain(lines, on_line);
            return Ok(if status.success() { Ending::Succeeded } else { Ending::Failed(status) });
        }
        let stopped = interrupted.load(Ordering::Relaxed);
        if stopped || Instant::now() >= deadline {
            end(child)?;
            drain(lines, on_line);
            return Ok(if stopped { Ending::Interrupted } else { Ending::TimedOut(limit) });
        }
    }
}

/// A flag that SIGINT, SIGTERM and SIGHUP raise; children are in process groups of their own, which get no signals of the terminal.
pub(crate) fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

/// The lines of a pipe as they come, without their line feeds, read by a thread.
pub(crate) fn read_lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    // A program that prints without end waits for us, and not we for memory.
    let (sender, receiver) = sync_channel(MOST_WAITING);
    // The thread is not joined: something that outlives the child may keep the pipe open forever.
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.send(text).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

/// Passes on what is there, and waits one tick for the first line.
fn pass_on(lines: &Receiver<String>, on_line: &mut dyn FnMut(&str)) {
    match lines.recv_timeout(TICK) {
        Ok(line) => on_line(&line),
        Err(RecvTimeoutError::Timeout) => return,
        // The pipe is closed but the child still lives; without this pause the loop would spin.
        Err(RecvTimeoutError::Disconnected) => thread::sleep(TICK),
    }
    // No more than may wait, so that the limits are looked at beside a program that prints without end.
    lines.try_iter().take(MOST_WAITING).for_each(|line| on_line(&line));
}

fn drain(lines: &Receiver<String>, on_line: &mut dyn FnMut(&str)) {
    let deadline = Instant::now() + DRAIN;
    while Instant::now() < deadline {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => on_line(&line),
            Err(_) => return,
        }
    }
}

/// Asks the whole group to end, then kills it.
fn end(child: &mut Child) -> anyhow::Result<()> {
    let group = Pid::from_child(child);
    for signal in [Signal::TERM, Signal::KILL] {
        // The group may be gone already; then there is nothing to end.
        let _ = kill_process_group(group, signal);
        if holds_within(GRACE, || !matches!(child.try_wait(), Ok(None))) {
            let _ = kill_process_group(group, Signal::KILL);
            break;
        }
    }
    child.try_wait()?;
    Ok(())
}

/// Waits until something holds, at most for `limit`, and says whether it does.
fn holds_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        thread::sleep(TICK);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration, interrupted: bool) -> (Ending, Vec<String>, Duration) {
        let mut lines: Vec<String> = Vec::new();
        let start = Instant::now();
        let flag = AtomicBool::new(interrupted);
        let ending = run(Command::new("sh").args(["-c", script]), limit, &flag, &mut |line| {
            lines.push(line.to_owned());
        });
        (ending.unwrap(), lines, start.elapsed())
    }

    #[test]
    fn lines_and_status_arrive() {
        let (ending, lines, _) = shell("echo one; echo two", Duration::from_secs(200), false);
        assert_eq!((ending, lines), (Ending::Succeeded, vec!["one".to_owned(), "two".to_owned()]));
        let (ending, _, _) = shell("exit 3", Duration::from_secs(200), false);
        assert!(matches!(ending, Ending::Failed(status) if status.code() == Some(3)));
    }

    #[test]
    fn standard_error_is_among_the_lines_where_asked_for() {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let ending = run_with_errors(
            command.args(["-c", "echo one; echo two >&2; echo three"]),
            Duration::from_secs(200),
            &AtomicBool::new(false),
            &mut |line| lines.push(line.to_owned()),
        );
        assert_eq!(ending.unwrap(), Ending::Succeeded);
        assert_eq!(lines, ["one", "two", "three"]);
    }

    #[test]
    fn standard_input_is_empty() {
        let (ending, lines, _) = shell("cat; echo end", Duration::from_secs(200), false);
        assert_eq!((ending, lines), (Ending::Succeeded, vec!["end".to_owned()]));
    }

    #[test]
    fn a_child_that_hangs_is_ended_with_what_it_started() {
        let script = "sleep 1000 & echo $!; wait";
        let (ending, lines, took) = shell(script, Duration::from_secs(3), false);
        assert!(matches!(ending, Ending::TimedOut(_)), "{ending:?}");
        assert!(took < Duration::from_secs(300), "{took:?}");
        let grandchild = std::path::Path::new("/proc").join(&lines[0]).join("stat");
        // A signal takes effect a moment later, and an ended process that was not waited for yet is a zombie, state Z.
        let ended = || {
            let text = std::fs::read_to_string(&grandchild).unwrap_or_else(|_| "gone (gone) Z".into());
            text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
        };
        assert!(holds_within(20 * GRACE, ended), "process {} lives on", lines[0]);
    }

    #[test]
    fn an_interruption_ends_the_child() {
        let (ending, _, took) = shell("sleep 1000", Duration::from_secs(900), true);
        assert_eq!(ending, Ending::Interrupted);
        assert!(took < Duration::from_secs(300), "{took:?}");
    }

    #[test]
    fn somebody_who_keeps_the_pipe_open_does_not_hang_us() {
        let (ending, _, took) = shell("setsid sleep 60 & exit 0", Duration::from_secs(900), false);
        assert_eq!(ending, Ending::Succeeded);
        assert!(took < Duration::from_secs(55), "{took:?}");
    }
}
