//! Reports as lines, at equal distances in time. It draws nothing itself.

use super::options::{Form, Watch};
use super::wake::Ending;
use crate::exit;
use crate::out::{self, Reader};
use jiff::{Timestamp, Unit};
use rdsk_model::{Problem, WatchInterval};
use rdsk_observe::watch::Watcher;
use rdsk_report::watch::{Look, json_lines, plain_lines};
use std::time::Instant;

/// Prints reports until their number is reached, a signal comes, or no process reads them any more.
///
/// # Errors
/// When standard output takes no more, for another reason than that its reader has left.
pub(super) fn watch(options: &Watch, mut watcher: Watcher) -> Result<u8, Problem> {
    let ending = Ending::new()?;
    let mut next = Instant::now();
    let mut reports = 0;
    while options.count.is_none_or(|count| reports < count) {
        reports += 1;
        // Counted from the beginning, so that the distances do not grow by the time that a report takes; after a process that was
        // stopped, or a reader that was slow, they begin anew.
        next += options.interval();
        if next <= Instant::now() {
            next = Instant::now() + options.interval();
        }
        if ending.comes_before(next) {
            return Ok(exit::INTERRUPTED);
        }
        let interval = watcher.next_interval();
        if out::report(&text(&interval, &now(), options))? == Reader::Gone {
            break;
        }
    }
    Ok(exit::DONE)
}

/// One report.
pub(super) fn text(interval: &WatchInterval, at: &str, options: &Watch) -> String {
    match options.form() {
        Form::Json => json_lines(interval, at, options.columns),
        Form::Plain | Form::Suitable => {
            plain_lines(interval, at, Look { columns: options.columns, charset: options.charset.charset() })
        }
    }
}

/// The time of day, in UTC to the millisecond.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now).to_string()
}
