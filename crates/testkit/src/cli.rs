//! Runs a program as a user's shell would, with a timeout, and reports how it ended. It interprets nothing of the output; that the
//! documents of rdsk in it keep their schemas is checked here, once for all tests.

use signal_hook::consts::SIGINT;
use signal_hook::flag::register_conditional_default;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::schema;
pub use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which the harness did not send.
    Signalled(i32),
    /// It did not end in time and was killed by the harness.
    Hung,
}

/// What a program did.
#[derive(Clone, Debug)]
pub struct Run {
    /// The command, for messages.
    pub command: String,
    /// Exit code; `None` when a signal ended it.
    pub status_code: Option<i32>,
    /// How it ended.
    pub ended: Ended,
    /// Standard output; invalid UTF-8 is replaced.
    pub stdout: String,
    /// Standard error; invalid UTF-8 is replaced.
    pub stderr: String,
    /// Time from the start to the observed end, to within 2 ms.
    pub elapsed: Duration,
}

/// A command that runs `binary` (a caller's `env!("CARGO_BIN_EXE_rdsk")`) without colour, in the C locale, without a history, and
/// without the variables with which a terminal affects its output.
pub fn rdsk(binary: impl AsRef<OsStr>) -> Command {
    heed_interrupts();
    let mut command = Command::new(binary);
    command.env("NO_COLOR", "1").env("LC_ALL", "C").env("RDSK_HISTORY", "");
    for variable in ["COLUMNS", "LINES", "CLICOLOR_FORCE", "RUST_BACKTRACE"] {
        command.env_remove(variable);
    }
    command
}

/// What tests start takes SIGINT as at a terminal. A shell that starts the tests in its background makes them ignore it, and with them
/// what they start, which leaves it so; a signal that is handled here is the default there.
fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where it cannot be handled, the tests that send it say.
        let _ = register_conditional_default(SIGINT, Arc::new(AtomicBool::new(true)));
    });
}

/// Runs the command to its end, or kills it and everything that it started after `timeout`.
///
/// # Panics
/// When the program cannot be started.
pub fn run(command: Command, timeout: Duration) -> Run {
    start(command).finish(timeout)
}

/// Starts the command, for tests that do something while it runs. Standard input is empty, and both outputs are kept.
///
/// # Panics
/// When the program cannot be started.
pub fn start(mut command: Command) -> Running {
    let text = format!("{command:?}");
    let document = document_of(&command).map(|file| (state_of(&file), file));
    let started = Instant::now();
    // A process group of its own, so that killing a hung program also kills what it started.
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {text}: {error}"));
    let stdout = collect(child.stdout.take().expect("stdout was asked to be a pipe"));
    let stderr = collect(child.stderr.take().expect("stderr was asked to be a pipe"));
    Running { child, started, text, document, stdout: Some(stdout), stderr: Some(stderr) }
}

/// A running program. It is killed on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
    text: String,
    /// The file that is to get its document, and what it was at the start.
    document: Option<(Option<FileState>, PathBuf)>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// The program's process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended; it is not waited for.
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Waits for its end, or kills it `timeout` after its start.
    ///
    /// # Panics
    /// If a document that it wrote does not keep its schema, or the kernel reports that it is not our child.
    pub fn finish(mut self, timeout: Duration) -> Run {
        let hung = !self.ends_within(timeout);
        let elapsed = self.started.elapsed();
        // Any process that it left running would hold the pipes open and block the harness. The child is not reaped yet, so
        // the number of its group cannot have been reused.
        self.kill_group();
        let status = self.child.wait().expect("a child can be waited for");
        let ended = match (hung, status.code(), status.signal()) {
            (true, _, _) => Ended::Hung,
            (false, Some(code), _) => Ended::Exited(code),
            (false, None, signal) => Ended::Signalled(signal.unwrap_or(0)),
        };
        let run = Run {
            command: std::mem::take(&mut self.text),
            status_code: if hung { None } else { status.code() },
            ended,
            stdout: joined(self.stdout.take()),
            stderr: joined(self.stderr.take()),
            elapsed,
        };
        schema::assert_kept(&run.stdout);
        schema::assert_kept(&run.stderr);
        schema::assert_kept(&self.document.take().and_then(written).unwrap_or_default());
        run
    }

    /// Waits without reaping; returns whether the child ended in time.
    fn ends_within(&self, timeout: Duration) -> bool {
        let child = WaitId::Pid(pid_of(self.child.id()).expect("a child has a process number"));
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            if rustix::process::waitid(child.clone(), look).expect("a child can be waited for").is_some() {
                return true;
            }
            if self.started.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill_group(&self) {
        if let Ok(group) = pid_of(self.child.id()) {
            // The group may have ended already, which is just as good.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After finish() the child is reaped and its number may have been reused: only a running child is killed.
        if let Ok(None) = self.child.try_wait() {
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}

/// Sends a signal to the process `pid`.
///
/// # Errors
/// `ESRCH` when it has ended; `EINVAL` for the number 0.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    Ok(rustix::process::kill_process(pid_of(pid)?, signal)?)
}

/// Parses standard output as one JSON document.
///
/// # Panics
/// If it is not one; the message holds all output of the program.
pub fn json(run: &Run) -> serde_json::Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| {
        panic!(
            "standard output is no JSON document: {error}\n{}\nended: {:?}\nstdout: {}\nstderr: {}",
            run.command, run.ended, run.stdout, run.stderr
        )
    })
}

/// The file after `--json`, whatever it is.
fn document_of(command: &Command) -> Option<PathBuf> {
    let words: Vec<&OsStr> = command.get_args().collect();
    let after = || words.windows(2).find(|pair| pair[0] == "--json").map(|pair| pair[1].to_owned());
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--json=").map(OsString::from));
    Some(command.get_current_dir().unwrap_or(Path::new("")).join(joined.or_else(after)?))
}

/// Inode, size and time of change of a regular file. The clock of filesystems goes in steps of milliseconds, so a time alone says not which of
/// two writes was first.
type FileState = (u64, u64, i64, i64);

fn state_of(file: &Path) -> Option<FileState> {
    let facts = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    Some((facts.ino(), facts.size(), facts.mtime(), facts.mtime_nsec()))
}

/// What a program wrote into a regular file that was in this state when it was started.
fn written((before, file): (Option<FileState>, PathBuf)) -> Option<String> {
    let after = state_of(&file)?;
    (before != Some(after)).then(|| std::fs::read_to_string(file).ok())?
}

fn pid_of(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Read and write system calls so far (`/proc/PID/io`); `None` once the process has ended.
pub fn io_calls(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let counter =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(counter("syscr:")? + counter("syscw:")?)
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

fn joined(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(200);

    fn shell(script: &str) -> Command {
        let mut command = rdsk("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn code_and_both_streams_are_kept_apart() {
        let run = run(shell("echo out; echo err >&2; exit 3"), LONG);
        assert_eq!((run.status_code, run.ended), (Some(3), Ended::Exited(3)));
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "err\n"));
        assert!(run.elapsed < LONG);
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        let run = run(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"), LONG);
        assert_eq!((run.stdout.len(), run.stderr.len()), (1_000_000, 1_000_000));
    }

    #[test]
    fn a_hung_program_is_killed_with_what_it_started() {
        let run = run(shell("echo $$; sleep 3000 & wait"), Duration::from_secs(30));
        assert_eq!((run.ended, run.status_code), (Ended::Hung, None));
        assert!(run.elapsed < LONG, "{:?}", run.elapsed);
        let group = pid_of(run.stdout.trim().parse().unwrap()).unwrap();
        let gone = || rustix::process::test_kill_process_group(group).is_err();
        assert!(crate::tool::wait_until(LONG, gone), "the group {group:?} still lives");
    }

    #[test]
    fn what_a_program_leaves_behind_does_not_hang_the_harness() {
        let run = run(shell("sleep 3000 & echo done"), LONG);
        assert_eq!((run.ended, run.stdout.as_str()), (Ended::Exited(0), "done\n"));
        assert!(run.elapsed < LONG);
    }

    #[test]
    fn signals_arrive() {
        let directory = tempfile::tempdir().unwrap();
        let ready = directory.path().join("ready");
        let mut trapping = shell("trap 'exit 130' INT; : > \"$READY\"; while :; do sleep 0.01; done");
        trapping.env("READY", &ready);
        let running = start(trapping);
        assert!(crate::tool::wait_until(LONG, || ready.exists()), "the shell sets its trap");
        signal(running.pid(), Signal::INT).unwrap();
        assert_eq!(running.finish(LONG).status_code, Some(130));

        let running = start(shell("exec sleep 300"));
        signal(running.pid(), Signal::TERM).unwrap();
        assert_eq!(running.finish(LONG).ended, Ended::Signalled(15));
    }

    #[test]
    fn a_dropped_program_is_killed() {
        let running = start(shell("exec sleep 300"));
        let pid = running.pid();
        drop(running);
        assert!(signal(pid, Signal::TERM).is_err());
        assert!(signal(0, Signal::TERM).is_err());
    }

    #[test]
    fn output_is_parsed() {
        assert_eq!(json(&run(shell(r#"echo '{"a": [1]}'"#), LONG))["a"][0], 1);
    }

    #[test]
    #[should_panic(expected = "woe")]
    fn no_document_panics_with_what_was_said() {
        let _ = json(&run(shell("echo woe >&2"), LONG));
    }

    #[test]
    #[should_panic(expected = "/id is missing")]
    fn a_document_in_a_file_keeps_its_schema() {
        let directory = tempfile::tempdir().unwrap();
        let mut writing = shell(r#"echo '{"schema": "rdsk.record/2"}' > "$2""#);
        writing.current_dir(directory.path()).args(["sh", "--json", "r.json"]);
        let _ = run(writing, LONG);
    }

    #[test]
    fn a_document_that_was_there_before_is_not_the_programs() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("r.json");
        std::fs::write(&there, r#"{"schema": "rdsk.record/2"}"#).unwrap();
        let mut reading = shell("exit 3");
        reading.arg("sh").arg(format!("--json={}", there.display()));
        assert_eq!(run(reading, LONG).status_code, Some(3));
    }

    #[test]
    fn the_terminal_does_not_show_through() {
        let run = run(shell("echo \"$NO_COLOR $LC_ALL [$COLUMNS]\""), LONG);
        assert_eq!(run.stdout, "1 C []\n");
    }
}
