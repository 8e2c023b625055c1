//! `--from` and `--to`: one report from two copies of `/proc/diskstats` and `/proc/uptime`.

use crate::common::{error_and_hint, rdsk};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{Need, cli, requires};
use std::path::{Path, PathBuf};

/// Copies that were taken on Linux 6.18 around work on two loop devices, 2.44 s apart.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/watch").join(name)
}

fn report(more: &[&str]) -> cli::Run {
    let (before, after) = (fixture("before"), fixture("after"));
    let mut line = vec!["watch", "--from", before.to_str().unwrap(), "--to", after.to_str().unwrap()];
    line.extend(more);
    rdsk(line)
}

#[test]
fn the_report_of_two_trees() {
    for set in ["iostat", "old", "solaris"] {
        let run = report(&["--columns", set]);
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
        insta::assert_snapshot!(format!("saved-{set}"), run.stdout);
    }
    let json = report(&["--json"]);
    assert_eq!(json.stdout.lines().count(), report(&[]).stdout.lines().count() - 3, "a line for each device");
}

/// sysstat's iostat computes the same figures from the same files. On a busy machine these may change before it has read them, or between
/// its looks at the two, and then another attempt counts.
#[test]
fn the_installed_iostat_prints_the_same_row() {
    if !requires(&[Need::Root, Need::Tool("iostat"), Need::Tool("unshare"), Need::Tool("mount")]) {
        return;
    }
    for name in ["loop0", "loop1"] {
        let ours = report(&["--json", name]);
        let ours: serde_json::Value = serde_json::from_str(&ours.stdout).unwrap();
        let columns = ours["columns"].as_object().unwrap();
        assert_eq!(columns.len(), 22);
        first_right(10, || {
            let theirs = iostat_of(name)?;
            for (column, value) in columns {
                // JSON of sysstat leaves the percent sign out.
                let theirs = theirs[column.trim_start_matches('%')].as_f64();
                let value = value.as_f64().unwrap();
                let is_same = theirs.is_some_and(|theirs| (value - theirs).abs() <= 0.005 + 1e-9);
                ensure(is_same, || format!("{name} {column}: {value} against {theirs:?}"))?;
            }
            Ok(())
        });
    }
}

/// What iostat prints for one of the devices. With `-p ALL` it reads /proc/diskstats, and /proc/uptime in any case: ours stand there in a
/// mount namespace of its own, and change while it sleeps. It reads the uptime first (sysstat 12.6.1), so counters of one moment with the
/// time of the other are read only if both files change between its looks at them, or neither has moved.
fn iostat_of(name: &str) -> Result<serde_json::Value, String> {
    const SCRIPT: &str = r#"
        stand() { mount --bind "$1/$2" "/proc/$2" || exit 3; }
        stand "$1/before" diskstats; stand "$1/before" uptime
        (sleep 0.5; stand "$1/after" uptime; stand "$1/after" diskstats) &
        iostat -x -d -k -y -p ALL --dec=2 -o JSON 1 1
        wait"#;
    let mut command = cli::rdsk("unshare");
    command.args(["--mount", "sh", "-c", SCRIPT, "sh"]).arg(fixture(""));
    let document = cli::json(&cli::run(command, crate::common::SOON));
    let rows = document["sysstat"]["hosts"][0]["statistics"][0]["disk"].as_array();
    let row = rows.and_then(|rows| rows.iter().find(|row| row["disk_device"] == name));
    row.cloned().ok_or_else(|| format!("no {name}: {document}"))
}

/// Pairs of trees of old kernels, 1 and 5 s apart.
#[test]
fn counters_of_old_kernels_are_read_and_doubted() {
    let report = |name: &str, more: &[&str]| {
        let tree = |side: &str| fixture(name).join(side).to_str().unwrap().to_owned();
        let (from, to) = (tree("before"), tree("after"));
        let run = rdsk(["watch", "--from", &from, "--to", &to].iter().chain(more));
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
        run.stdout
    };
    let busy = report("util140", &[]);
    let row = busy.lines().find(|line| line.starts_with("sda ")).unwrap();
    assert!(
        row.contains(" 140.00  note: %util is no share: the kernel counts 1.40 s of busy time in 1.00 s"),
        "{busy}"
    );
    let busy: serde_json::Value = serde_json::from_str(&report("util140", &["--json"])).unwrap();
    assert_eq!(busy["notes"].as_array().map(Vec::len), Some(1), "{busy}");
    let old = report("old-partition", &["--columns", "old"]);
    let row: Vec<&str> =
        old.lines().find(|line| line.starts_with("sda ")).unwrap().split_whitespace().collect();
    assert_eq!((row[3], row[4], row.len()), ("10.00", "40.00", 14), "{old}");
    let partition = report("old-partition", &["sda1"]);
    assert!(partition.contains("sda1    no counters: Linux before 2.6.25"), "{partition}");
}

#[test]
fn what_is_no_pair_of_trees_is_refused() {
    let (before, after) = (fixture("before"), fixture("after"));
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    for (line, said) in [
        (vec!["--from", after, "--to", before], "not later"),
        (vec!["--from", before, "--to", "/nonexistent"], "cannot read /nonexistent"),
        (vec!["--from", before, "--to", after, "sdq"], "neither tree has a device"),
    ] {
        let run = rdsk(["watch"].into_iter().chain(line));
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(3), ""));
        assert!(error_and_hint(&run).0.contains(said), "{}", run.stderr);
    }
}

#[test]
fn a_tree_without_counters_is_refused_with_how_to_make_one() {
    let before = fixture("before");
    let uptime = std::fs::read_to_string(fixture("after").join("uptime")).unwrap();
    let tree = tempfile::tempdir().unwrap();
    let refused = |said: &str| {
        let run = rdsk(["watch", "--from", before.to_str().unwrap(), "--to", tree.path().to_str().unwrap()]);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
        let (error, hint) = error_and_hint(&run);
        assert!(
            error.contains(said) && hint.contains("copy /proc/diskstats and /proc/uptime"),
            "{}",
            run.stderr
        );
    };
    refused("uptime");
    std::fs::write(tree.path().join("uptime"), "").unwrap();
    refused("\"\" is not a counter");
    std::fs::write(tree.path().join("uptime"), uptime).unwrap();
    refused("diskstats");
    std::fs::write(tree.path().join("diskstats"), "").unwrap();
    refused("diskstats lists no device");
}
