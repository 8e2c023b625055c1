//! Turns: what only one test on the machine, or a few, shall do at a time, whichever test program and user it is of. A lock
//! within a program cannot say that, since `cargo xtask test` runs several programs side by side. It never decides who is next.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::thread;
use std::time::Duration;

/// How often a turn is tried that others have.
const LOOK: Duration = Duration::from_millis(20);

/// What is done by few at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A guest runs: without KVM each one keeps about one processor busy and waits now and then, so that three make use of two.
    Guest,
    /// BPF programs count, and a test asks for exact counts. On some machines the kernel passes over a tracepoint once in some ten
    /// thousand events: the program's own count of its runs lacks it, while `recursion_misses` stays 0. Beside two busy loops it
    /// was one completion in 500 to 5000, some thirty in a row (6.18 on two processors, 2026-11-25). Why is not known; more
    /// programs at once make it likelier, and slow each other down.
    Bpf,
}

impl Turn {
    /// Waits for the turn, which lasts until the file is dropped or its holder ends, however it ends.
    ///
    /// # Errors
    /// When a file that stands for the turn can be neither made nor opened.
    pub fn wait(self) -> io::Result<File> {
        loop {
            if let Some(file) = lock_any(self.names())? {
                return Ok(file);
            }
            thread::sleep(LOOK);
        }
    }

    /// [`Turn::wait`], for tests.
    ///
    /// # Panics
    /// With the error of waiting.
    pub fn take(self) -> File {
        self.wait().unwrap_or_else(|error| panic!("no turn {self:?}: {error}"))
    }

    /// Its files, each of which one test has at a time.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Guest => &["rdsk-guest.turn", "rdsk-guest-2.turn", "rdsk-guest-3.turn"],
            Self::Bpf => &["rdsk-bpf.turn"],
        }
    }
}

/// Locks the first of the files that no process has locked.
fn lock_any(names: &[&str]) -> io::Result<Option<File>> {
    for name in names {
        let file = open(name)?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

fn open(name: &str) -> io::Result<File> {
    let path = std::env::temp_dir().join(name);
    let made = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    // A file of another user can be locked, too.
    made.or_else(|_| File::open(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The variable that makes the child of the test below look.
    const LOOKS: &str = "RDSK_TURN_LOOKS";

    fn is_taken(turn: Turn) -> bool {
        lock_any(turn.names()).unwrap().is_none()
    }

    /// Another test of the suite may hold a turn, but no process takes one that is held.
    #[test]
    fn a_turn_excludes_other_threads_and_programs() {
        let turn = Turn::Bpf;
        if std::env::var_os(LOOKS).is_some() {
            println!("taken: {}", is_taken(turn));
            return;
        }
        let held = turn.take();
        assert!(std::thread::spawn(move || is_taken(turn)).join().unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap());
        let name = "turn::tests::a_turn_excludes_other_threads_and_programs";
        let output = child.args(["--exact", name, "--nocapture"]).env(LOOKS, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("taken: true"), "{text}");
        drop(held);
        // It can be had again.
        drop(turn.take());
    }

    #[test]
    fn of_two_turns_two_are_had_at_a_time() {
        let names = ["a", "b"].map(|which| format!("rdsk-test-{}-{which}.turn", std::process::id()));
        let names = names.each_ref().map(String::as_str);
        let lock = || lock_any(&names).unwrap();
        let (first, second) = (lock(), lock());
        assert!(first.is_some() && second.is_some() && lock().is_none());
        drop(first);
        // A program that another test is just starting holds a copy for a moment.
        assert!(crate::wait_until(Duration::from_secs(600), || lock().is_some()));
        for name in names {
            std::fs::remove_file(std::env::temp_dir().join(name)).unwrap();
        }
    }
}
