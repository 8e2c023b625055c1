//! Runs that BPF programs observe: one at a time, and again where the kernel passed over an event. It judges no figure.

use super::count;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while rdsk loads programs, so that only one test of a file does at a time. On some machines the kernel passes over a
/// tracepoint once in some ten thousand events: the program's own count of its runs lacks it, while `recursion_misses` stays 0. Why
/// is not known.
static TURN: Mutex<()> = Mutex::new(());

/// The turn of this test.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first of a few runs in which the programs missed no request: rdsk counts what the kernel passed over (see [`TURN`]).
pub(crate) fn whole(run: impl Fn() -> Value) -> Value {
    whole_and(run, |_| Ok(()))
}

/// The same, where this holds of the run, too: that a bio was passed over nothing tells but its absence.
pub(crate) fn whole_and(run: impl Fn() -> Value, is_exact: impl Fn(&Value) -> Result<(), String>) -> Value {
    let is_whole = |record: &Value| {
        let cells = record["cells"].as_array().expect("a Record has cells");
        // A path that the kernel does not have on a block device was not measured.
        let mut measured = cells.iter().filter(|cell| cell["result"]["stop"] != "not_applicable");
        measured.all(|cell| {
            let bpf = &cell["evidence"]["bpf"];
            count(bpf, "/lost") == 0 && count(bpf, "/checks/0/bpf") == count(bpf, "/checks/0/sysfs")
        })
    };
    let mut missed = Vec::new();
    for _ in 0..10 {
        let record = run();
        match is_exact(&record) {
            Ok(()) if is_whole(&record) => return record,
            Ok(()) => missed.push("the programs missed something".to_owned()),
            Err(what) => missed.push(what),
        }
    }
    panic!("each of ten runs misses something: {missed:#?}");
}
