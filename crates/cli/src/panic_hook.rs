//! Bugs of rdsk itself: a panic becomes a problem of one line, after the stack was unwound and every test file removed. It
//! repairs nothing.

use rdsk_model::{Problem, ProblemKind};
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;

/// The first panic that was not reported yet.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Replaces the standard message, which is long and breaks the progress line. With `RUST_BACKTRACE` set the standard
/// message stays, since a developer is debugging.
pub(crate) fn install() {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|value| value == "0") {
        std::panic::set_hook(Box::new(remember));
    }
}

/// Runs something that may panic.
///
/// # Errors
/// The panic as a problem.
pub(crate) fn catch<T>(action: impl FnOnce() -> T) -> Result<T, Problem> {
    std::panic::catch_unwind(AssertUnwindSafe(action)).map_err(|_| {
        let text = unreported().unwrap_or_else(|| "a panic, shown above".to_owned());
        Problem::new(
            ProblemKind::Io,
            "internal",
            format!("internal error: {text}"),
            "this is a bug in rdsk; please report it with the command line and this message",
        )
    })
}

/// A panic of any thread that was not reported yet.
pub(crate) fn unreported() -> Option<String> {
    FIRST.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

fn remember(info: &PanicHookInfo<'_>) {
    let what = info.payload_as_str().unwrap_or("an unknown panic");
    let place =
        info.location().map_or_else(String::new, |place| format!(" ({}:{})", place.file(), place.line()));
    let mut first = FIRST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    first.get_or_insert(format!("{what}{place}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_problem_of_one_line() {
        let problem = catch(|| -> u8 { panic!("the test's own") }).unwrap_err();
        assert!(problem.message.starts_with("internal error: "), "{problem}");
        assert_eq!(problem.kind, ProblemKind::Io);
        assert_eq!(catch(|| 7), Ok(7));
    }
}
