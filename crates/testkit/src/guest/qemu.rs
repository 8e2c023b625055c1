//! QEMU as a child that never outlives the test: it is killed by its process number on drop, and by the kernel when the
//! test program dies. It does not know what happens in the guest.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::tool::find_tool;

/// Lines of the console that a message shows: a kernel that gives up prints up to seventy after the one that says why.
const LAST_LINES: usize = 120;

/// The emulator.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";
/// How often the keeper checks whether QEMU has ended by itself.
const TICK: Duration = Duration::from_millis(20);
/// Kernel messages after which the guest is unusable. An oops becomes a panic, and a panic ends QEMU.
const FATAL: &[&str] = &["Kernel panic", "BUG: unable to handle", "general protection fault", "Oops: "];

/// A running QEMU.
#[derive(Debug)]
pub(crate) struct Qemu {
    ended: Arc<Mutex<Option<ExitStatus>>>,
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
    console: PathBuf,
    talk: PathBuf,
}

impl Qemu {
    /// Starts it with these arguments. The console and its own output go to files in the directory.
    pub(crate) fn start(arguments: &[String], directory: &Path) -> io::Result<Self> {
        let (console, talk) = (directory.join("console"), directory.join("qemu"));
        let program = find_tool(PROGRAM).ok_or_else(|| io::Error::other("QEMU is not installed"))?;
        // The kernel ends it when the thread that started it ends, which is the keeper's.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command.args(arguments).arg("-serial").arg(format!("file:{}", console.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&talk)?);
        let ended = Arc::new(Mutex::new(None));
        let (stop, stopped) = channel();
        let (started, is_started) = channel();
        let status = Arc::clone(&ended);
        let keeper = std::thread::spawn(move || {
            let child = command.spawn();
            let (child, said) = match child {
                Ok(child) => (Some(child), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // The caller waits for this answer.
            let _ = started.send(said);
            if let Some(child) = child {
                keep(child, &stopped, &status);
            }
        });
        let said = is_started.recv().unwrap_or_else(|_| Err(io::Error::other("QEMU's keeper died")));
        let qemu = Self { ended, stop: Some(stop), keeper: Some(keeper), console, talk };
        said.map(|()| qemu)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line in which the guest's kernel gave up, if it did.
    pub(crate) fn fatal_line(&self) -> Option<String> {
        let text = lossy(&self.console);
        let line = text.lines().find(|line| FATAL.iter().any(|words| line.contains(words)));
        line.map(|line| line.trim().to_owned())
    }

    /// The last lines of its output and of the guest's console, for messages.
    pub(crate) fn last_output(&self) -> String {
        let console = lossy(&self.console);
        let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        format!("QEMU: {}\nconsole of the guest:\n{last}", lossy(&self.talk).trim())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Waits for the child's end or for the request to end it.
fn keep(mut child: Child, stopped: &Receiver<()>, ended: &Mutex<Option<ExitStatus>>) {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            return;
        }
        if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            // Not reaped yet, so the number is still its own.
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
    }
}

fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
