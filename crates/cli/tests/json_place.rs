//! Where `--json` may point: a place that cannot be written is noticed before anything is measured or created, and a file
//! that is not JSON of rdsk is never replaced.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{error_and_hint, holds_only, rdsk, record};
use rdsk_testkit::{LoopDevice, Need, cli, requires};
use std::fs;

/// A run that would take a minute if it began.
fn run_with_json(directory: &std::path::Path, json: &str) -> cli::Run {
    rdsk(["run", directory.to_str().unwrap(), "--json", json])
}

#[test]
fn an_unwritable_place_is_noticed_before_measuring() {
    let scratch = tempfile::tempdir().unwrap();
    for json in ["/nonexistent/dir/r.json", "/proc/r.json", scratch.path().to_str().unwrap()] {
        let run = run_with_json(scratch.path(), json);
        assert_eq!(run.status_code, Some(3), "{json}: {}", run.stderr);
        let (error, _) = error_and_hint(&run);
        assert!(error.contains(json), "{error}");
    }
    holds_only(scratch.path(), &[]);
}

#[test]
fn data_is_never_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("photos.img");
    fs::write(&data, b"\xff\xd8\xff precious").unwrap();
    let run = run_with_json(scratch.path(), data.to_str().unwrap());
    assert_eq!(run.status_code, Some(3));
    let (error, hint) = error_and_hint(&run);
    assert!(error.contains("refusing to write the JSON"), "{error}");
    assert!(hint.contains("new file"), "{hint}");
    assert_eq!(fs::read(&data).unwrap(), b"\xff\xd8\xff precious");
    // Not even to tell a mistake of the command line.
    let run = rdsk(["run", "--budget", "soon", "--json", data.to_str().unwrap()]);
    assert_eq!(run.status_code, Some(2));
    assert_eq!(fs::read(&data).unwrap(), b"\xff\xd8\xff precious");
}

#[test]
fn the_target_is_never_the_document() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("t");
    fs::write(&target, "{}").unwrap();
    let name = target.to_str().unwrap();
    let run = rdsk(["run", name, "--json", name]);
    assert_eq!(run.status_code, Some(2), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&target).unwrap(), "{}");
}

#[test]
fn a_block_device_is_never_the_document() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(1 << 20).create().unwrap();
    let before = device.content_hash().unwrap();
    for line in [
        ["run", ".", "--json", device.path().to_str().unwrap()],
        ["info", ".", "--json", device.path().to_str().unwrap()],
        ["run", "--budget=soon", "--json", device.path().to_str().unwrap()],
    ] {
        let run = rdsk(line);
        assert_ne!(run.status_code, Some(0), "{line:?}");
    }
    assert_eq!(device.content_hash().unwrap(), before);
}

#[test]
fn what_the_environment_refuses_is_in_the_document() {
    for (line, code) in [
        (["run", "/nonexistent/target", "--json", "-"], 3),
        (["paths", "/dev/null", "--json", "-"], 3),
        (["align", "/proc", "--json", "-"], 3),
    ] {
        let run = rdsk(line);
        assert_eq!(run.status_code, Some(code), "{line:?}: {}", run.stderr);
        let (error, _) = error_and_hint(&run);
        let record = record(cli::json(&run));
        assert_eq!(record["status"], "failed");
        assert_eq!(record["error"]["message"], *error);
    }
}
