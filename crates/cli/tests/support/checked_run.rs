//! Runs the real binary and checks every answer against the contract: it ends in time, its document follows the contract
//! and matches the exit code, its messages are an `error:` and a `hint:` line. It checks no figures.

#[path = "consistency.rs"]
pub(crate) mod consistency;
#[path = "contract.rs"]
pub(crate) mod contract;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rdsk_testkit::cli::{self, Ended, Run, Running};
use serde_json::Value;
use tempfile::TempDir;

/// Whatever takes longer than this hangs. Every run here has a budget of a few seconds at most.
pub(crate) const LIMIT: Duration = Duration::from_secs(400);

/// What one command line gave.
#[derive(Debug)]
pub(crate) struct Answer {
    /// How the program ended, and its output.
    pub(crate) run: Run,
    /// Its document, checked against the contract.
    pub(crate) record: Value,
}

impl Answer {
    /// The exit code.
    pub(crate) fn code(&self) -> i32 {
        self.run.status_code.expect("checked when the answer was taken")
    }

    /// Asserts the exit code, with everything that was printed as the message.
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.run.status_code, Some(code), "{}\n{}", self.run.command, self.said());
        self
    }

    /// The `code` of the Record's error.
    pub(crate) fn error_code(&self) -> &str {
        self.record["error"]["code"].as_str().unwrap_or_default()
    }

    /// The one `error:` line and the one `hint:` line, without these words.
    pub(crate) fn error_and_hint(&self) -> (String, String) {
        error_and_hint(&self.run)
    }

    /// The cells of the Record.
    pub(crate) fn cells(&self) -> &[Value] {
        contract::list(&self.record["cells"])
    }

    /// Talk and error, for messages.
    pub(crate) fn said(&self) -> String {
        format!(
            "stderr: {}\nerror: {}\nnotes: {}",
            self.run.stderr, self.record["error"], self.record["notes"]
        )
    }
}

/// The binary with the words of `line`; no word may hold a space.
pub(crate) fn rdsk(line: &str) -> Command {
    let mut command = cli::rdsk(env!("CARGO_BIN_EXE_rdsk"));
    command.args(line.split_whitespace());
    command
}

/// Runs `rdsk LINE --json -` to its end.
pub(crate) fn ask(line: &str) -> Answer {
    answer(cli::run(rdsk(&format!("{line} --json -")), LIMIT))
}

/// Starts `rdsk LINE --json -`, for [`Started::answer`].
pub(crate) fn start(line: &str) -> Started {
    start_command(rdsk(&format!("{line} --json -")))
}

/// Starts a command built by [`rdsk`], which must write its document to standard output.
pub(crate) fn start_command(command: Command) -> Started {
    Started { running: cli::start(command) }
}

/// A command line under way.
#[derive(Debug)]
pub(crate) struct Started {
    running: Running,
}

impl Started {
    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: cli::Signal) {
        cli::signal(self.pid(), signal).expect("it is under way");
    }

    /// Whether it has ended, and will never do what a test waits for.
    pub(crate) fn is_over(&self) -> bool {
        fs::read_link(format!("/proc/{}/exe", self.pid())).is_err()
    }

    /// Waits until `holds`, or until it has ended, which [`Started::answer`] then explains.
    pub(crate) fn wait_until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        wait_until(what, || holds() || self.is_over());
    }

    /// Waits until it has issued `more` reads or writes than now, which only the hot loop does so often.
    pub(crate) fn wait_for_io(&self, more: u64) {
        let before = cli::io_calls(self.pid());
        wait_until("it measures", || {
            cli::io_calls(self.pid()).is_none_or(|now| Some(now) >= before.map(|before| before + more))
        });
    }

    /// Waits for the end.
    pub(crate) fn answer(self) -> Answer {
        answer(self.running.finish(LIMIT))
    }

    /// Waits for the end of a run whose document went elsewhere, or that was killed.
    pub(crate) fn end(self) -> Run {
        self.running.finish(LIMIT)
    }
}

fn answer(run: Run) -> Answer {
    assert_ne!(run.ended, Ended::Hung, "{} hung: {}", run.command, run.stderr);
    let record = cli::json(&run);
    let code = run.status_code.unwrap_or_else(|| panic!("{} died: {:?}", run.command, run.ended));
    let mut wrong = contract::complaints(&record);
    wrong.extend(contract::exit_complaints(&record, code));
    assert!(wrong.is_empty(), "{}\n{}\n{}", run.command, wrong.join("\n"), run.stderr);
    Answer { run, record }
}

/// The one `error:` line and the one `hint:` line of a run, without these words.
pub(crate) fn error_and_hint(run: &Run) -> (String, String) {
    let only = |word: &str| {
        let lines: Vec<&str> = run.stderr.lines().filter_map(|line| line.strip_prefix(word)).collect();
        assert_eq!(lines.len(), 1, "lines that begin with {word:?} in {}: {}", run.command, run.stderr);
        assert!(!lines[0].trim().is_empty(), "{}", run.stderr);
        lines[0].trim().to_owned()
    };
    (only("error:"), only("hint:"))
}

/// Checks every millisecond until `holds` does; panics if it never does.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A directory on the disk that carries the build, so that it is in no memory filesystem.
pub(crate) fn directory() -> TempDir {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    tempfile::Builder::new().prefix("faults-").tempdir_in(base).expect("the build's directory takes files")
}

/// A path without spaces as a word of a command line.
pub(crate) fn word(path: &Path) -> &str {
    let text = path.to_str().expect("test paths are plain text");
    assert!(!text.contains(char::is_whitespace), "{text} would fall into two words");
    text
}

/// The test files of rdsk in a directory.
pub(crate) fn test_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".rdsk-test-")))
        .collect();
    files.sort();
    files
}

/// Asserts that nothing of rdsk's was left in a directory: no test file, and no unfinished document either.
pub(crate) fn assert_nothing_left(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory)
        .expect("the directory is there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("rdsk"))
        .collect();
    assert!(left.is_empty(), "left behind in {}: {left:?}", directory.display());
}

/// Waits until the test file in `place` has `bytes`, and gives its path.
pub(crate) fn wait_for_file(started: &Started, place: &Path, bytes: u64) -> PathBuf {
    let mut failures = None;
    started.wait_until("the test file is there", || {
        failures = test_files(place)
            .into_iter()
            .find(|file| fs::metadata(file).is_ok_and(|file| file.len() >= bytes));
        failures.is_some()
    });
    failures.unwrap_or_else(|| {
        panic!("process {} ended without a test file in {}", started.pid(), place.display())
    })
}

/// A long run over a file of 16 MiB in `place`, in the middle of a cell.
pub(crate) fn in_a_cell(place: &Path, more: &str) -> Started {
    let line = format!("stream {} --size 16M --runtime 10m --precision 0.1% {more}", word(place));
    let started = start_command(rdsk(&line));
    wait_for_file(&started, place, 16 << 20);
    started.wait_for_io(4000);
    started
}

/// A hash of a regular file's content.
pub(crate) fn file_hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(path).expect("a test's own file can be read"));
    hasher.finish()
}

/// Makes a file of `bytes` that are really written and differ from block to block.
pub(crate) fn written_file(path: &Path, bytes: usize) {
    let content: Vec<u8> = (0..bytes).map(|index| ((index * 31) ^ (index >> 9)).to_le_bytes()[0]).collect();
    fs::write(path, content).expect("a test's own directory takes files");
    File::open(path).and_then(|file| file.sync_all()).expect("it can be synced");
}
