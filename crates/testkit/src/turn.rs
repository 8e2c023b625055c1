//! Turns: what only one test on the machine shall do at a time, whichever test program and user it is of. A lock within a
//! program cannot say that, since `cargo xtask test` runs several programs side by side. It never decides who is next.

use std::fs::{File, OpenOptions};
use std::io;

/// What is done one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A guest runs: without KVM each one uses all CPUs.
    Guest,
    /// BPF programs count, and a test asks for exact counts. On some machines the kernel passes over a tracepoint once in some ten
    /// thousand events: the program's own count of its runs lacks it, while `recursion_misses` stays 0. Why is not known; more
    /// programs at once make it likelier, and slow each other down.
    Bpf,
}

impl Turn {
    /// Waits for the turn, which lasts until the file is dropped or its holder ends, however it ends.
    ///
    /// # Errors
    /// When the file that stands for the turn can be neither made nor opened.
    pub fn wait(self) -> io::Result<File> {
        let file = self.open()?;
        file.lock()?;
        Ok(file)
    }

    /// [`Turn::wait`], for tests.
    ///
    /// # Panics
    /// With the error of waiting.
    pub fn take(self) -> File {
        self.wait().unwrap_or_else(|error| panic!("no turn {self:?}: {error}"))
    }

    fn open(self) -> io::Result<File> {
        let name = match self {
            Self::Guest => "rdsk-guest.turn",
            Self::Bpf => "rdsk-bpf.turn",
        };
        let path = std::env::temp_dir().join(name);
        let made = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        // A file of another user can be locked, too.
        made.or_else(|_| File::open(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::TryLockError;
    use std::process::Command;

    /// The variable that makes the child of the test below look.
    const LOOKS: &str = "RDSK_TURN_LOOKS";

    fn is_taken(turn: Turn) -> bool {
        matches!(turn.open().unwrap().try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Another test of the suite may hold a turn, but nobody takes one that is held.
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
}
