//! A stop of 5 s on a disk that answers evenly: on a quiet machine nothing of it is the device's, in ten runs of ten.

use std::time::Duration;

use crate::support::checked_run::{contract, start, word};
use crate::support::stopped::{gaps_ns, stopped_for};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::fusedisk::{Behaviour, FuseDisk};
use rdsk_testkit::{Need, requires};

const STOP: Duration = Duration::from_secs(5);

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_stop_of_five_seconds_is_never_the_devices() {
    if !requires(&[Need::Root, Need::Fuse]) {
        return;
    }
    for run in 0..10 {
        // A stop between two visits makes an attempt void, and so does a busy moment.
        first_right(5, || {
            let disk = FuseDisk::builder().capacity(8 << 20).mount().expect("requires() found FUSE");
            disk.set_behaviour(Behaviour::single(1_000_000));
            let way = if run % 2 == 0 { "--rw read" } else { "--rw write --overwrite" };
            let line = format!("scale {} {way} --streams 1 --bs 4k --budget 12s", word(disk.file()));
            let answer = stopped_for(start(&line), &disk, STOP).expect_code(0);
            let gaps_ns = gaps_ns(&answer.record);
            ensure(gaps_ns > 0, || "it was stopped between two visits".to_owned())?;
            let programmed_ns = STOP.as_nanos();
            assert!(gaps_ns >= programmed_ns - 100_000_000, "run {run}: gaps of {gaps_ns} ns");
            let result = &answer.cells()[0]["result"];
            assert!(result["latency_ns"]["max"].as_u64().unwrap() < 1_000_000_000, "run {run}: {result}");
            let codes: Vec<&str> = contract::list(&answer.record["findings"])
                .iter()
                .filter_map(|finding| finding["code"].as_str())
                .collect();
            assert!(codes.contains(&"own-pause"), "run {run}: {codes:?}");
            assert!(!codes.contains(&"stalls"), "run {run}: {codes:?}");
            // With the stop in it, the rate would be a half of this at most; other programs may halve it too.
            let rate = result["ops_per_s"]["mean"].as_f64().unwrap();
            ensure((700.0..1_100.0).contains(&rate), || format!("run {run}: {rate} IOPS of 1 ms each"))?;
            Ok(())
        });
    }
}
