//! Chunk and full stripe of a real device, recovered from latencies alone.

use crate::support::array::{KIB, NEEDS, bytes_of, codes, is_surely_not, read, slow_disk};
use crate::support::{identity, rdsk, record_of};
use rdsk_analysis::stripe::{Agreement, SURE};
use rdsk_testkit::requires;

const ATTEMPTS: usize = 4;

/// A real block device: the loop device of a disk whose requests are answered as late as the array would.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn an_array_behind_a_real_device_is_recovered_from_latency_alone() {
    if !requires(&NEEDS) {
        return;
    }
    let disk = slow_disk();
    let device = disk.loop_device().expect("requires() found loop devices");
    let identity = identity(&device);
    // Other programs on the machine make single requests late; nothing wrong may be said for sure in any attempt.
    let recovered = (0..ATTEMPTS).any(|_| {
        let (record, inferred) = read(record_of(rdsk(&[
            &"stripe",
            &device.path(),
            &"--rw",
            &"write",
            &"--destroy",
            &identity,
            &"--points",
            &"800",
        ])));
        eprintln!("{:?} {:?} {:?}", inferred.chunk(), inferred.stripe(), inferred.evidence);
        assert!(inferred.described.is_none(), "nothing describes a loop device");
        assert!(!is_surely_not(inferred.chunk(), 32 * KIB) && !is_surely_not(inferred.stripe(), 96 * KIB));
        // A loop device gives no hint of it.
        let hints = inferred.hints.as_ref().map(|(agreement, _)| *agreement);
        bytes_of(inferred.chunk()) == Some(32 * KIB)
            && inferred.stripe().is_some_and(|(bytes, confidence)| bytes == 96 * KIB && confidence >= SURE)
            && inferred.parity == Some(true)
            && hints == Some(Agreement::NotHinted)
            && codes(&record).contains(&"stripe-geometry")
    });
    assert!(recovered, "in none of {ATTEMPTS} attempts");
}
