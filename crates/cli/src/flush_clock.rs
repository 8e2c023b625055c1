//! Reports how long the run has been waiting for a flush: on the progress line, and as a warning when there is no such line
//! or the wait is long. It never touches the run.

use crate::out;
use indicatif::ProgressBar;
use rdsk_units::printable;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);
/// A flush that takes longer causes a warning as well; then again each time it has taken twice as long.
const FIRST_WARNING: Duration = Duration::from_secs(5);

/// A thread that wakes once a second while a flush is under way, and sleeps otherwise. It ends with its clock.
#[derive(Debug)]
pub(crate) struct FlushClock(Option<Sender<Option<Waiting>>>);

#[derive(Clone, Debug)]
struct Waiting {
    /// What the writes belong to.
    topic: String,
    since: Instant,
    left: Duration,
    next_warning: Duration,
}

impl FlushClock {
    /// Reports on a line, or in warnings alone without one; `None` is silent.
    pub(crate) fn new(line: Option<Option<ProgressBar>>) -> Self {
        let Some(line) = line else { return Self(None) };
        let (sender, flushes) = mpsc::channel();
        let thread = std::thread::Builder::new().name("rdsk-flush-clock".to_owned());
        // Without a thread nothing is reported; the run does not depend on it.
        let started = thread.spawn(move || report(&flushes, line.as_ref()));
        Self(started.ok().map(|_| sender))
    }

    pub(crate) fn begin(&self, topic: &str, left_ns: u64) {
        let left = Duration::from_nanos(left_ns);
        self.set(Some(&Waiting {
            topic: topic.to_owned(),
            since: Instant::now(),
            left,
            next_warning: FIRST_WARNING,
        }));
    }

    pub(crate) fn end(&self) {
        self.set(None);
    }

    fn set(&self, waiting: Option<&Waiting>) {
        self.0.iter().for_each(|sender| drop(sender.send(waiting.cloned())));
    }
}

fn report(flushes: &Receiver<Option<Waiting>>, line: Option<&ProgressBar>) {
    let mut flush: Option<Waiting> = None;
    loop {
        let next = match &flush {
            Some(_) => flushes.recv_timeout(TICK),
            None => flushes.recv().map_err(RecvTimeoutError::from),
        };
        match (next, &mut flush) {
            (Ok(next), _) => flush = next,
            (Err(RecvTimeoutError::Timeout), Some(waiting)) => tick(waiting, line),
            (Err(_), _) => return,
        }
    }
}

fn tick(waiting: &mut Waiting, line: Option<&ProgressBar>) {
    let waited = waiting.since.elapsed();
    let text = words(waiting, waited);
    if let Some(line) = line {
        line.set_message(text.clone());
    }
    if waited >= waiting.next_warning {
        waiting.next_warning = waited * 2;
        match line {
            Some(line) => line.suspend(|| out::warning(&text)),
            None => out::warning(&text),
        }
    }
}

/// The report after so much waiting.
fn words(waiting: &Waiting, waited: Duration) -> String {
    let over = waited.saturating_sub(waiting.left).as_secs();
    let over = if over > 0 { format!(", {over} s beyond the budget") } else { String::new() };
    let topic = printable(&waiting.topic);
    format!("waiting for the flush of {topic}: {} s so far{over}; it cannot be cut short", waited.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_says_how_long_and_how_far_beyond() {
        let waiting = Waiting {
            topic: "paths".into(),
            since: Instant::now(),
            left: Duration::from_secs(7),
            next_warning: FIRST_WARNING,
        };
        assert_eq!(
            words(&waiting, Duration::from_millis(5200)),
            "waiting for the flush of paths: 5 s so far; it cannot be cut short"
        );
        assert_eq!(
            words(&waiting, Duration::from_secs(20)),
            "waiting for the flush of paths: 20 s so far, 13 s beyond the budget; it cannot be cut short"
        );
    }

    #[test]
    fn a_silent_clock_has_no_thread() {
        let clock = FlushClock::new(None);
        clock.begin("x", 1);
        clock.end();
        assert!(clock.0.is_none());
    }
}
