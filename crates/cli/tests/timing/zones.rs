//! `rdsk zones` on a real device: the programmed zones and bands are found, and no others.

use crate::support::zoned_disk::{BLOCK, ENDS, NEEDS, RATES, real_zones, three_zones};
use rdsk_analysis::zones::{Cause, Zones};
use rdsk_testkit::{Extra, requires};

/// Twenty runs, on four disks at once, since a disk that is programmed to be slow mostly sleeps.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn three_programmed_zones_are_found_on_a_real_device_without_false_bands() {
    if !requires(&NEEDS) {
        return;
    }
    let alarms: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(false_bands_of_five_runs)).collect();
        runs.into_iter().map(|run| run.join().expect("its assertions hold")).sum()
    });
    assert!(alarms <= 1, "{alarms} false bands in 20 runs");
}

/// Another program on the machine makes requests late, so a run counts when it is the first of a few with the zones in it.
const ATTEMPTS: usize = 6;

fn false_bands_of_five_runs() -> usize {
    let (_disk, device) = three_zones(None);
    let run = |_| {
        let mut alarms = 0;
        let is_right = (0..ATTEMPTS).any(|_| {
            let (_, zones) = real_zones(&device, 4);
            // A false band is one whether the attempt counts or not.
            alarms += usize::from(zones.latency_bands.is_some());
            has_the_zones(&zones)
        });
        assert!(is_right, "no attempt of {ATTEMPTS} has the zones");
        alarms
    };
    (0..5).map(run).sum()
}

/// Boundaries within one position, rates within 3 %.
fn has_the_zones(seen: &Zones) -> bool {
    let step = seen.positions[1].offset_bytes;
    seen.zones.len() == 3
        && seen.zones.iter().zip(ENDS).all(|(zone, end)| zone.end_bytes.abs_diff(end) <= step + BLOCK)
        && seen.zones.iter().zip(RATES).all(|(zone, rate)| (zone.bytes_per_s / rate - 1.0).abs() < 0.03)
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_band_of_every_tenth_request_is_found_on_a_real_device() {
    if !requires(&NEEDS) {
        return;
    }
    let (_disk, device) = three_zones(Some(Extra { every: 10, costs_ns: 3_000_000 }));
    let is_found = |_: usize| {
        let (record, zones) = real_zones(&device, 10);
        let Some(latency_bands) = zones.latency_bands.as_ref() else {
            eprintln!("no bands: others made too many requests late");
            return false;
        };
        // Whatever else is late, it is not for the clock.
        assert!(!matches!(latency_bands.cause, Cause::Clock { .. }), "{latency_bands:?}");
        let finding = record.findings.iter().find(|finding| finding.code == "latency-bands");
        assert!(finding.is_some_and(|finding| !finding.title.contains("clock")), "{finding:?}");
        let share: f64 = latency_bands.bands.iter().map(|band| band.share).sum();
        let band = latency_bands.bands.iter().max_by_key(|band| band.count).expect("there is one");
        let is_right = (0.08..=0.12).contains(&share)
            && (band.offset_ns / 3e6 - 1.0).abs() < 0.2
            && latency_bands.cause == Cause::Periodic { every: 10 };
        if !is_right {
            eprintln!("{latency_bands:?}");
        }
        is_right
    };
    assert!((0..ATTEMPTS).any(is_found), "in none of {ATTEMPTS} attempts");
}
