//! A buffered write returns from memory long before a device of known speed has taken it; and what `dontcache` moved does not stay.

use crate::support::{MIB, brief, cell, figure, on_ext4_in_memory, on_xfs, rdsk, record_of, write_paths};
use rdsk_testkit::{BlkioThrottle, Limits, Need, requires};

/// The device takes 64 MiB/s from the program that submits, and lies in memory, so that the flush of 64 MiB has a known time: a
/// second.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_buffered_write_returns_long_before_it_is_stable() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4, Need::BlkioThrottle]) {
        return;
    }
    on_ext4_in_memory(|directory, disk| {
        let limits = Limits { write_bps: Some(64 * MIB), ..Limits::default() };
        let throttle = BlkioThrottle::new(disk.major_minor(), limits).expect("requires() found throttles");
        let record = record_of(throttle.command(write_paths(directory)));
        let buffered = cell(&record, "paths/write/buffered");
        let [to_return_ns, to_stable_ns] =
            ["to_return_ns", "to_stable_ns"].map(|name| figure(buffered, &format!("/result/{name}")));
        assert!(
            to_return_ns < 0.5 * to_stable_ns,
            "{to_return_ns} ns to return, {to_stable_ns} ns until stable: {}",
            brief(buffered)
        );
        // The kernel's own threads may write a part outside the limit, which makes it faster than a second.
        let visits = buffered["result"]["visits"].as_array().expect("a cell lists its visits").len();
        let pass_ns = to_stable_ns / visits as f64;
        assert!((0.5e9..2.5e9).contains(&pass_ns), "{pass_ns} ns for 64 MiB at 64 MiB/s");
    });
}

/// A page that a program works on when it is to be dropped stays: on a busy machine up to a tenth of them.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn nothing_that_is_not_to_be_cached_stays() {
    if !requires(&[Need::Root, Need::Loop, Need::Cachestat, Need::DontCache, Need::Xfs]) {
        return;
    }
    on_xfs(|directory, _| {
        let record = record_of(rdsk(&[&"paths", &directory, &"--bytes", &"64M", &"--runtime", &"1s"]));
        for (op, state) in [("read", "after"), ("write", "stable")] {
            let own = cell(&record, &format!("paths/{op}/dontcache"));
            let cached = figure(own, &format!("/evidence/page_cache/{state}/cached_bytes"));
            let bytes = figure(own, "/result/bytes");
            assert!(cached < bytes / 100.0, "{cached} of {bytes} stay cached: {}", brief(own));
        }
    });
}
