//! Runs that BPF programs observe: one at a time, and again where the kernel passed over an event. It judges no figure.

use super::count;
use serde_json::Value;

/// The first of a few runs in which the programs missed no request: rdsk counts what the kernel passed over (see
/// [`rdsk_testkit::Turn::Bpf`]).
pub(crate) fn whole(run: impl Fn() -> Value) -> Value {
    whole_and(run, |_| Ok(()))
}

/// The same, where this holds of the run, too: that a bio was passed over nothing says but its absence.
pub(crate) fn whole_and(run: impl Fn() -> Value, is_exact: impl Fn(&Value) -> Result<(), String>) -> Value {
    let is_whole = |record: &Value| {
        let cells = record["cells"].as_array().expect("a Record has cells");
        // A path that the kernel does not have on a block device was not measured.
        let mut measured = cells.iter().filter(|cell| cell["result"]["stop"] != "not_applicable");
        measured.all(|cell| {
            let bpf = &cell["evidence"]["bpf"];
            // What is below serves other programs, too, and a machine full of them makes the kernel pass over some events.
            let devices = bpf["devices"].as_array().expect("a list");
            let mut own = devices.iter().filter(|device| device["device"] == bpf["checks"][0]["device"]);
            own.all(|device| count(device, "/lost") == 0)
                && count(bpf, "/checks/0/bpf") == count(bpf, "/checks/0/sysfs")
        })
    };
    let mut missed = Vec::new();
    for _ in 0..30 {
        let record = run();
        match is_exact(&record) {
            Ok(()) if is_whole(&record) => return record,
            Ok(()) => missed.push("the programs missed something".to_owned()),
            Err(what) => missed.push(what),
        }
    }
    panic!("each of ten runs misses something: {missed:#?}");
}
