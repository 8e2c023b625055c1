//! Where `--json` may point: a place that cannot be written is noticed before anything is measured or created, and a file
//! that is not JSON of rdsk is never replaced.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, error_and_hint, holds_only, rdsk, record};
use rdsk_testkit::{LoopDevice, Need, cli, requires};
use std::fs;
use std::process::Stdio;

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
    // Not even to show a mistake of the command line.
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

/// However it is spelled, and whether it exists or not: the run would replace what it has just kept, or keep what it replaces.
#[test]
fn the_history_is_never_the_document() {
    let scratch = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("new.db", scratch.path().join("link")).unwrap();
    let run = |words: &[&str], variable: &str| {
        let mut command = common::command(words);
        command.env("RDSK_HISTORY", variable).current_dir(scratch.path());
        cli::run(command, common::SOON)
    };
    let line = ["run", "sim:wd2500", "--only", "headline", "--budget", "5s"];
    for flag in ["--json", "--csv", "--openmetrics", "--markdown", "--report"] {
        for place in ["new.db", "./new.db", "link", "new.db-wal", "new.db-journal"] {
            let named = run(&[&line[..], &["--history", "new.db", flag, place]].concat(), "");
            assert_eq!(named.status_code, Some(2), "{flag} {place}: {}", named.stderr);
            let set = run(&[&line[..], &[flag, place]].concat(), "./new.db");
            assert_eq!(set.status_code, Some(2), "{flag} {place}: {}", set.stderr);
            let (error, hint) = error_and_hint(&set);
            assert!(error.contains("is the history") && hint.contains("another file"), "{error}: {hint}");
        }
    }
    holds_only(scratch.path(), &["link"]);
    // One that is there already, through a hard link too, and as the target.
    assert_eq!(run(&line, "new.db").status_code, Some(0));
    fs::hard_link(scratch.path().join("new.db"), scratch.path().join("hard")).unwrap();
    for place in ["new.db", "hard"] {
        let there = run(&[&line[..], &["--json", place]].concat(), "new.db");
        assert_eq!(there.status_code, Some(2), "{}", there.stderr);
    }
    fs::remove_file(scratch.path().join("hard")).unwrap();
    let kept = fs::read(scratch.path().join("new.db")).unwrap();
    let target = run(&["run", "link", "--overwrite", "--only", "headline", "--budget", "1s"], "new.db");
    assert_eq!(target.status_code, Some(2), "{}", target.stderr);
    assert!(error_and_hint(&target).0.contains("is the history"), "{}", target.stderr);
    assert_eq!(fs::read(scratch.path().join("new.db")).unwrap(), kept);
    // Two documents in one file, which is not there yet.
    let twice = run(&[&line[..], &["--json", "a", "--csv", "./a"]].concat(), "");
    assert!(error_and_hint(&twice).0.contains("two documents go to the same file"), "{}", twice.stderr);
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

/// A shell opens it before rdsk can look, and that is no permission.
#[test]
fn a_block_device_is_never_a_standard_stream() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = LoopDevice::builder().size(1 << 20).create().unwrap();
    let before = device.content_hash().unwrap();
    let open = || fs::File::options().write(true).open(device.path()).unwrap();
    for (line, code) in [
        (&["info", "sim:wd2500"][..], 3),
        (&["run", "sim:wd2500", "--only", "headline", "--budget", "5s", "--json", "-"], 3),
        (&["run", "--nonsense", "--json", "-"], 3),
        (&["--help"], 3),
        (&["compare", "--help"], 3),
        (&["watch", "--help"], 3),
        (&["dd", "--help"], 1),
    ] {
        let output = common::command(line).stdin(Stdio::null()).stdout(open()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line:?}: {told}");
        assert!(
            told.contains("refusing to write to standard output: it is a block device"),
            "{line:?}: {told}"
        );
        assert_eq!(device.content_hash().unwrap(), before, "{line:?}");
    }
    // No message can be written.
    for (line, code) in [(&["run", "--nonsense"][..], 3), (&["dd", "if=/nonexistent"], 1)] {
        let output = common::command(line).stdin(Stdio::null()).stderr(open()).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{line:?}");
        assert_eq!(device.content_hash().unwrap(), before, "{line:?}");
    }
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

/// Not by a mistake, a refusal or a plan: a baseline is measured once. Standard error says so, and the exit code stays that of what
/// happened.
#[test]
fn a_measured_run_is_replaced_only_by_another() {
    let scratch = common::scratch();
    let run = |words: &[&str]| {
        let mut command = common::command(words);
        command.current_dir(scratch.path());
        cli::run(command, common::SOON)
    };
    let line = ["run", "sim:wd2500", "--only", "headline", "--budget", "5s", "--json", "base.json"];
    assert_eq!(run(&line).status_code, Some(0));
    let base = scratch.path().join("base.json");
    let kept = fs::read_to_string(&base).unwrap();
    for (words, code) in [
        (&["run", "sim:wd2500", "--iodeph", "4"][..], 2),
        (&["runn", "sim:wd2500"], 2),
        (&["run", "/nonexistent/target"], 3),
        (&["run", "sim:wd2500", "--resume", "nothing-of-this-name"], 2),
        // Nothing of it is missing.
        (&["run", "--resume", "base.json"], 2),
        (&["run", "sim:linux-disk", "--resume", "base.json"], 2),
        (&["run", "sim:wd2500", "--dry-run"], 3),
        (&["run", "--resume", "base.json", "--dry-run"], 3),
        (&["show", "nothing-of-this-name"], 2),
        (&["info", "sim:wd2500"], 3),
        (&["info", "--nonsense"], 2),
    ] {
        let refused = run(&[words, &["--json", "base.json"]].concat());
        assert_eq!(refused.status_code, Some(code), "{words:?}: {}", refused.stderr);
        let told = "base.json: it is a measured run, which only another measured run replaces";
        assert!(refused.stderr.contains(told), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("\nhint: "), "{words:?}: {}", refused.stderr);
        assert_eq!(fs::read_to_string(&base).unwrap(), kept, "{words:?}");
    }
    assert_eq!(run(&line).status_code, Some(0));
    assert_ne!(fs::read_to_string(&base).unwrap(), kept, "it has another id");
    holds_only(scratch.path(), &["base.json"]);
}
