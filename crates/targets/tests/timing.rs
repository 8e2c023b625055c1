//! What only a quiet machine shows: a test file is made in the time that it may take. `cargo xtask campaign timing` runs it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::look;
use rdsk_model::StopFlag;
use rdsk_targets::{Roots, TestFileOptions, TestFileSize, create_test_file};

#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn an_adaptive_file_ends_with_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let max_elapsed_ns = 300_000_000;
    let size = TestFileSize::Adaptive { max_bytes: 1 << 30, max_elapsed_ns };
    let options = TestFileOptions { size, seed: 1, is_rewritten: true, stop: StopFlag::new() };
    let (_claim, made) =
        create_test_file(&look(directory.path()), &options, &Roots::default(), &mut |_| {}).unwrap();
    assert!(made.bytes == 1 << 30 || made.elapsed_ns < 4 * max_elapsed_ns, "{made:?}");
    eprintln!("made {} MiB at {:.0} MiB/s", made.bytes >> 20, made.write_bytes_per_s / 1_048_576.0);
}
