//! Signals for a command that rdsk runs: they are passed on to it, and reported to the user who runs it. It starts and ends nothing.

use crate::interrupt::is_ignored;
use rdsk_model::{Problem, ProblemKind};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::Cause;
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of a command that has not been waited for.
fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Waits for the end of a command without taking its status, so that no other program gets its number.
///
/// # Errors
/// When it is not our child.
pub(crate) fn wait_for_end(child: &Child) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid_of(child)), options) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whom signals are for.
#[derive(Debug)]
enum Receiver {
    /// The command is being started, and gets these as soon as it is.
    Starting(Vec<Signal>),
    /// It runs, or it has not been waited for yet: no other program has its number.
    Running(Pid),
    /// It has ended.
    Ended,
}

/// Passes signals on to a command while it runs; one after the other may be given to it.
#[derive(Debug)]
pub(crate) struct Forwarding {
    receiver: Arc<Mutex<Receiver>>,
    /// Whether a signal came that the command cannot get any more.
    has_more: Arc<AtomicBool>,
    /// Whether any came.
    has_any: Arc<AtomicBool>,
}

impl Forwarding {
    /// Begins to receive signals, which the next command gets as soon as it is there.
    ///
    /// # Errors
    /// When the kernel does not let us handle the signals or start a thread.
    pub(crate) fn begin() -> Result<Self, Problem> {
        Self::started().map_err(|error| no_signals(&error))
    }

    fn started() -> io::Result<Self> {
        let forwarded = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];
        let mut signals =
            SignalsInfo::<WithOrigin>::new(forwarded.into_iter().filter(|&signal| !is_ignored(signal)))?;
        // Inherited as ignored, it would let the kernel forget how the command ended.
        signal_hook::flag::register(SIGCHLD, Arc::default())?;
        let receiver = Arc::new(Mutex::new(Receiver::Starting(Vec::new())));
        let forwarding = Self { receiver, has_more: Arc::default(), has_any: Arc::default() };
        let (receiver, has_more) = (Arc::clone(&forwarding.receiver), Arc::clone(&forwarding.has_more));
        let has_any = Arc::clone(&forwarding.has_any);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in signals.forever() {
                has_any.store(true, Ordering::Relaxed);
                let signal = Signal::from_named_raw(origin.signal).filter(|_| !comes_from_terminal(&origin));
                match &mut *locked(&receiver) {
                    Receiver::Starting(early) => early.extend(signal),
                    Receiver::Running(pid) => pass_on(*pid, signal),
                    Receiver::Ended => has_more.store(true, Ordering::Relaxed),
                }
            }
        })?;
        Ok(forwarding)
    }

    /// Another command is about to be started: it gets what comes from now on. What came before is in [`Self::has_any`], which is to
    /// be looked at after this and before the start.
    pub(crate) fn next(&self) {
        *locked(&self.receiver) = Receiver::Starting(Vec::new());
    }

    /// From now on signals are for this command.
    pub(crate) fn to(&self, child: &Child) {
        let pid = pid_of(child);
        let before = std::mem::replace(&mut *locked(&self.receiver), Receiver::Running(pid));
        if let Receiver::Starting(early) = before {
            pass_on(pid, early);
        }
    }

    /// The command has ended, or is about to be waited for.
    pub(crate) fn end(&self) {
        *locked(&self.receiver) = Receiver::Ended;
    }

    /// Whether a signal came that no command got.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more.load(Ordering::Relaxed)
    }

    /// Whether any signal came, to a command or not.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }
}

/// The problem that signals cannot be handled.
pub(crate) fn no_signals(error: &io::Error) -> Problem {
    Problem::plain(ProblemKind::Io, "signals", format!("signals cannot be handled: {error}"))
}

fn pass_on(pid: Pid, signals: impl IntoIterator<Item = Signal>) {
    for signal in signals {
        // A command that has ended meanwhile needs none.
        let _ = kill_process(pid, signal);
    }
}

fn locked(receiver: &Mutex<Receiver>) -> MutexGuard<'_, Receiver> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the key of a terminal sent it: then the kernel did, and the whole group in front has it already, and so has the command. What
/// a process sends is taken to be for us alone; if it was for the group, the command has it twice, since nothing distinguishes these.
fn comes_from_terminal(origin: &Origin) -> bool {
    let is_key = origin.signal == SIGINT || origin.signal == SIGQUIT;
    is_key && matches!(origin.cause, Cause::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;
    use std::time::Duration;

    /// The moment between the start of a command and [`Forwarding::to`] may be long on a busy machine.
    #[test]
    fn a_signal_before_a_later_command_is_known_reaches_it() {
        let forwarding = Forwarding::begin().unwrap();
        let mut first = Command::new("true").spawn().unwrap();
        forwarding.to(&first);
        forwarding.end();
        first.wait().unwrap();
        forwarding.next();
        assert!(!forwarding.has_any());
        let mut second = Command::new("sleep").arg("1000").spawn().unwrap();
        // To this process, which a user's program would ignore.
        kill_process(getpid(), Signal::USR2).unwrap();
        assert!(rdsk_testkit::wait_until(Duration::from_secs(180), || forwarding.has_any()));
        forwarding.to(&second);
        let ended = rdsk_testkit::wait_until(Duration::from_secs(180), || {
            second.try_wait().unwrap().is_some_and(|status| status.signal() == Some(SIGUSR2))
        });
        let _ = second.kill();
        assert!(ended, "the command did not get the signal");
    }
}
