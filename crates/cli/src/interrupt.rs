//! Signals: the first one stops the run, which keeps what it has; a second one, or five seconds without an end, removes the
//! test files and ends the process. It never touches a target.

use crate::exit;
use rdsk_model::StopFlag;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a run may take to stop: a slow disk must finish the I/O in flight and its flush.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// A second signal so soon after the first counts as the same: a terminal and a parent process both send it.
const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// How long output may take to finish; it may block on a reader that does not read.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Signals that end a run unless they are ignored at the start, as SIGHUP is under nohup, and SIGINT in the background of a script. Most
/// of them mean nothing to rdsk; without a handler they end the process at once, which leaves the test file: USR1 by the program that takes rdsk
/// for dd, USR2 and XCPU by batch systems.
const UNLESS_IGNORED: [i32; 10] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const ABANDONED: u8 = 2;

/// What is done for a run that does not end: telling the user and writing the document.
pub(crate) type OnAbandon = Box<dyn Fn() + Send + Sync>;

/// What is done at the end of a process that a signal ends during its output, once.
pub(crate) type LastAct = Box<dyn FnOnce() + Send>;

type SharedLastAct = Arc<Mutex<Option<LastAct>>>;

/// Handles signals until the process ends.
pub(crate) struct Guard {
    state: Arc<AtomicU8>,
    last_act: SharedLastAct,
}

impl Guard {
    /// Starts to handle signals.
    ///
    /// # Errors
    /// When the kernel does not let us handle the signals or start a thread.
    pub(crate) fn new(stop: StopFlag, on_abandon: OnAbandon) -> io::Result<Self> {
        Self::patient_for(STOP_TIMEOUT, stop, on_abandon)
    }

    /// The same with another time that a run may take to stop.
    fn patient_for(stop_timeout: Duration, stop: StopFlag, on_abandon: OnAbandon) -> io::Result<Self> {
        let mut signals = Signals::new(that_end_a_run())?;
        let state = Arc::new(AtomicU8::new(RUNNING));
        let last_act = SharedLastAct::default();
        let (shared, last) = (Arc::clone(&state), Arc::clone(&last_act));
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let on_abandon: Arc<dyn Fn() + Send + Sync> = Arc::from(on_abandon);
            let mut signals = signals.forever();
            let mut first = None;
            if signals.next().is_some() {
                first = Some(Instant::now());
                stop.raise();
                if shared.load(Ordering::SeqCst) == ENDING {
                    // The test files are removed and only output is left.
                    leave_output(&last);
                }
                let (state, words) = (Arc::clone(&shared), Arc::clone(&on_abandon));
                let patient = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
                    std::thread::sleep(stop_timeout);
                    abandon(&state, words.as_ref());
                });
                // Without a watchdog only a second signal ends the run.
                drop(patient);
            }
            // No user hurries the run with SIGXCPU, which the kernel repeats for each further second of the processor.
            let is_another =
                |&signal: &i32| signal != SIGXCPU && first.is_none_or(|first| first.elapsed() >= SAME_SIGNAL);
            if signals.find(is_another).is_some() {
                abandon(&shared, on_abandon.as_ref());
                // The run has ended, and its output is being written.
                leave_output(&last);
            }
        })?;
        Ok(Self { state, last_act })
    }

    /// Sets what a signal that cuts the output short leaves to do; `None` once nothing would be lost. While that is done already,
    /// it does not return, and the process ends.
    pub(crate) fn set_last_act(&self, last_act: Option<LastAct>) {
        *lock(&self.last_act) = last_act;
    }

    /// The run has ended by itself and its output starts. Does not return if the watchdog was first, which then writes the
    /// output.
    pub(crate) fn run_ended(&self) {
        if self.state.compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            loop {
                std::thread::park();
            }
        }
    }
}

/// The signals that end a run.
pub(crate) fn that_end_a_run() -> impl Iterator<Item = i32> {
    UNLESS_IGNORED.into_iter().filter(|&signal| !is_ignored(signal))
}

/// Makes a write beyond `ulimit -f` fail with `EFBIG` instead of killing the process, which would leave the test file
/// behind.
pub(crate) fn survive_file_limits() {
    // Any handler makes the call return, even one that sets a flag that no process reads; programs that are run later get the
    // default back.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Ends the process if the run has not ended; returns if it has.
fn abandon(state: &AtomicU8, on_abandon: &(dyn Fn() + Send + Sync)) {
    if state.compare_exchange(RUNNING, ABANDONED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
        // Removing a file blocks as long as an I/O on it hangs; the report does not wait for that.
        let removing =
            std::thread::Builder::new().name("remover".into()).spawn(rdsk_targets::remove_all_test_files_now);
        on_abandon();
        match removing {
            Ok(removing) => drop(removing.join()),
            Err(_) => rdsk_targets::remove_all_test_files_now(),
        }
        leave();
    }
}

/// Ends a process whose output does not end.
fn leave_output(last_act: &Mutex<Option<LastAct>>) -> ! {
    std::thread::sleep(OUTPUT_TIMEOUT);
    // The lock is kept, so that the process does not end in the midst of it.
    let mut last_act = lock(last_act);
    if let Some(act) = last_act.take() {
        act();
    }
    leave();
}

fn lock(last_act: &Mutex<Option<LastAct>>) -> MutexGuard<'_, Option<LastAct>> {
    last_act.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::exit, reason = "another thread hangs in the kernel and cannot be waited for")]
fn leave() -> ! {
    std::process::exit(i32::from(exit::INTERRUPTED))
}

/// Whether the process was started with the signal ignored (`SigIgn` of proc_pid_status(5), a mask in hexadecimal).
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status, signal)
}

fn ignored_in(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    u32::try_from(signal - 1).is_ok_and(|bit| bit < u64::BITS && mask >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert!(ignored_in(status, SIGHUP));
        assert!(!ignored_in(status, SIGINT));
        assert!(!ignored_in("", SIGHUP));
    }

    /// Set in the process that the test below starts: whether it sends itself one signal, or one after the other, or first those by which
    /// the kernel says again and again that the time of the processor is used up.
    const CHILD: &str = "RDSK_TEST_OF_INTERRUPT";
    const HOUR: Duration = Duration::from_secs(3600);

    /// A run that hangs cannot be shown in this process, since its end is the end of the process. After one signal the
    /// watchdog ends it; after another one it need not wait for a watchdog that sleeps for an hour.
    #[test]
    fn a_run_that_hangs_is_abandoned() {
        if let Ok(signals) = std::env::var(CHILD) {
            let said = || crate::out::warning("last words");
            let (stop_timeout, most) = if signals == "one" { (STOP_TIMEOUT, 1) } else { (HOUR, 500) };
            let _guard = Guard::patient_for(stop_timeout, StopFlag::new(), Box::new(said)).unwrap();
            for _ in 0..if signals == "processor first" { 4 } else { 0 } {
                signal_hook::low_level::raise(SIGXCPU).unwrap();
                std::thread::sleep(3 * SAME_SIGNAL);
                crate::out::warning("still here");
            }
            for _ in 0..most {
                signal_hook::low_level::raise(SIGTERM).unwrap();
                std::thread::sleep(3 * SAME_SIGNAL);
            }
            std::thread::sleep(HOUR / 12);
            panic!("nobody ended the process");
        }
        for (signals, least, lines) in
            [("one", STOP_TIMEOUT, 0), ("more", Duration::ZERO, 0), ("processor first", Duration::ZERO, 4)]
        {
            let began = std::time::Instant::now();
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "interrupt::tests::a_run_that_hangs_is_abandoned", "--nocapture"])
                .env(CHILD, signals)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(130), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("last words"), "{output:?}");
            assert_eq!(said.matches("still here").count(), lines, "{output:?}");
            assert!(began.elapsed() >= least, "{signals}: {:?}", began.elapsed());
        }
    }
}
