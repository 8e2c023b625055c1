//! Many samples take little time. `cargo xtask campaign timing` runs it; what the samples give is in the tests beside the
//! functions.

use rdsk_stats::rng::SplitMix64;
use rdsk_stats::{BandOptions, ChangeOptions, bands, change_points};
use std::time::Instant;

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn many_samples_are_searched_for_steps_in_little_time() {
    let slope: Vec<f64> = (0..80_000).map(f64::from).collect();
    let begin = Instant::now();
    assert_eq!(change_points(&slope, &ChangeOptions::default()).len(), 32);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn many_samples_are_searched_for_bands_in_little_time() {
    let mut noise = SplitMix64::new(3);
    let samples: Vec<f64> = (0..800_000).map(|_| noise.normal()).collect();
    let begin = Instant::now();
    assert_eq!(bands(&samples, &BandOptions::default()).bands.len(), 1);
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
}
