//! Whichever engine issues the I/O, the requested depth is reached, and the rate is that of io_uring.

use crate::support::ways::{DEPTH, ID, NEEDS, WAYS, reads};
use crate::support::{cell, figure, word};
use rdsk_testkit::requires;

const ATTEMPTS: usize = 12;

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn a_forbidden_ring_costs_neither_depth_nor_rate() {
    if !requires(&NEEDS) {
        return;
    }
    for way in &WAYS {
        let (_disk, device) = way.disk();
        let (mut depths, mut rates, mut of_ring) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ATTEMPTS {
            // The two take turns, so that the machine's mood hits both.
            let with_ring = reads(&device, way.latency_ns, None);
            assert_eq!(word(cell(&with_ring, ID), "/result/engine"), "uring");
            of_ring.push(figure(cell(&with_ring, ID), "/result/ops_per_s/mean"));
            let record = reads(&device, way.latency_ns, Some(way));
            depths.push(figure(cell(&record, ID), "/result/in_flight_mean"));
            rates.push(figure(cell(&record, ID), "/result/ops_per_s/mean"));
            if depths.iter().any(is_full) && is_same_rate(&rates, &of_ring) {
                break;
            }
        }
        eprintln!("{:?} {:?}: in flight {depths:.2?}", way.forbidden, way.flags);
        eprintln!("  per second {rates:.0?}, with io_uring {of_ring:.0?}");
        assert!(depths.iter().any(is_full), "{} {:?}: {depths:?}", way.engine, way.flags);
        assert!(is_same_rate(&rates, &of_ring), "{} {:?}: {rates:?}, {of_ring:?}", way.engine, way.flags);
    }
}

/// Mean in flight within 5 % of the requested depth.
fn is_full(depth: &f64) -> bool {
    (depth / DEPTH as f64 - 1.0).abs() <= 0.05
}

/// Within 3 % of the ring's rate: in one turn, or best against best, since other programs only ever take from a rate.
fn is_same_rate(rates: &[f64], of_ring: &[f64]) -> bool {
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let last = rates.last().zip(of_ring.last()).map(|(rate, ring)| rate / ring);
    let ratios = last.into_iter().chain([best(rates) / best(of_ring)]);
    ratios.into_iter().any(|ratio| (ratio - 1.0).abs() <= 0.03)
}
