//! A run that is stopped (SIGSTOP) in the midst of its I/O, and goes on.

use std::fs;
use std::time::Duration;

use super::checked_run::{Answer, Started, contract};
use rdsk_testkit::cli::Signal;
use rdsk_testkit::fusedisk::FuseDisk;
use serde_json::Value;

/// Stops it, and returns when all of its threads stand still and the disk has nothing of it in flight.
pub(crate) fn wait_until_stopped(started: &Started, disk: &FuseDisk) {
    const STILL: usize = 500;
    started.signal(Signal::STOP);
    started.wait_until("its threads stand still", || are_stopped(started.pid()));
    let mut last = (disk.counts(), 0);
    started.wait_until("the disk is idle", || {
        let now = disk.counts();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        last.1 > STILL
    });
}

/// Requests of the programs that look for labels, before anything is measured, are fewer.
const MEASURING: u64 = 400;

/// Waits until it does I/O, stops it for so long, and lets it end.
pub(crate) fn stopped_for(started: Started, disk: &FuseDisk, time: Duration) -> Answer {
    started.wait_until("it measures", || disk.counts().reads + disk.counts().writes > MEASURING);
    wait_until_stopped(&started, disk);
    // The length of the stop is what is programmed here, and not waited for.
    std::thread::sleep(time);
    started.signal(Signal::CONT);
    started.answer()
}

/// Whether every thread is stopped but those of the kernel's own that work for a ring.
fn are_stopped(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    tasks.flatten().all(|task| {
        // proc_pid_stat(5): the state follows the name, which may contain anything.
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.contains("(iou-") || stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

/// How long it did not run in the visits of all cells.
pub(crate) fn gaps_ns(record: &Value) -> u128 {
    let visits =
        contract::list(&record["cells"]).iter().flat_map(|cell| contract::list(&cell["result"]["visits"]));
    let gaps = visits.filter_map(|visit| visit["gaps"].as_array()).flatten();
    gaps.filter_map(|gap| gap["lasts_ns"].as_u64()).map(u128::from).sum()
}
