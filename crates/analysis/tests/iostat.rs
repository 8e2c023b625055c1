//! The installed sysstat computes the row of `iostat -x` as this room does.

use rdsk_analysis::iostat::{COLUMNS, row_of};
use rdsk_model::DiskStat;
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::{Need, requires};
use std::process::Command;

/// iostat is given counters and an uptime of our choice, and prints every column of our row to the last digit.
#[test]
fn the_installed_iostat_computes_every_column_alike() {
    if !requires(&[Need::Root, Need::Tool("iostat"), Need::Tool("unshare"), Need::Tool("mount")]) {
        return;
    }
    let texts: Vec<&str> = include_str!("fixtures/loop-work.txt")
        .lines()
        .map(|line| line.split_once(" loop0 ").expect("the fixture is of loop0").1)
        .collect();
    let numbers = |text: &str| text.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
    for texts in texts.chunks_exact(2) {
        let (before, after): (Vec<u64>, Vec<u64>) = (numbers(texts[0]), numbers(texts[1]));
        let grown: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
        let row = row_of(&DiskStat::from_fields(&grown).unwrap(), 2_000_000_000);
        // On a busy machine the files may change before or after both of iostat's looks.
        first_right(20, || {
            let theirs = iostat_of(texts[0], texts[1]);
            for (name, figure) in COLUMNS {
                // JSON of sysstat leaves the percent sign out.
                let column = theirs[name.trim_start_matches('%')].as_f64();
                let ours = figure(&row);
                let is_alike = column.is_some_and(|column| (ours - column).abs() <= 0.005 + 1e-9);
                ensure(is_alike, || format!("{name}: {ours} against {column:?}"))?;
            }
            Ok(())
        });
    }
}

/// The row that iostat prints for a device whose `stat` file changes from `before` to `after` while an uptime of two
/// seconds passes. Both are ours by bind mounts in a mount namespace of its own. It reads the uptime first (sysstat 12.6.1), so it takes
/// counters of one moment with the time of the other only if both files change between its looks at them.
fn iostat_of(before: &str, after: &str) -> serde_json::Value {
    const SCRIPT: &str = r#"
        stand() { mount --bind "$1" "$2" || exit 3; }
        stand "$1/uptime" /proc/uptime
        (sleep 0.5; stand "$1/uptime-after" /proc/uptime; stand "$1/after" "$1/block/disk9/stat") &
        iostat -x -d -k -y --dec=2 -o JSON -f "$1" disk9 1 1
        wait"#;
    let directory = tempfile::tempdir().expect("a directory");
    let write =
        |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file in it");
    std::fs::create_dir_all(directory.path().join("block/disk9")).expect("a directory in it");
    write("block/disk9/stat", before);
    write("after", after);
    write("uptime", "1000.00 1.00\n");
    write("uptime-after", "1002.00 1.00\n");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", SCRIPT, "sh"])
        .arg(directory.path())
        .env("LC_ALL", "C")
        .output()
        .expect("unshare starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("iostat prints JSON");
    document["sysstat"]["hosts"][0]["statistics"][0]["disk"][0].clone()
}
