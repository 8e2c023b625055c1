//! What only a quiet machine shows: the rates of the installed iostat. `cargo xtask campaign timing` runs it; what no other
//! program can change is in loop_device.rs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use rdsk_observe::{delta, parse_stat};
use rdsk_testkit::{BlkioThrottle, DirectIo, Limits, LoopDevice, Need, requires};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// iostat and we look at the same busy device: columns that do not depend on when exactly each looked must agree.
#[test]
#[ignore = "timing: cargo xtask campaign timing"]
fn the_installed_iostat_has_the_same_rates() {
    if !requires(&[Need::Root, Need::Loop, Need::BlkioThrottle, Need::Tool("iostat"), Need::Tool("dd")]) {
        return;
    }
    let device = LoopDevice::builder().size(64 << 20).direct_io(DirectIo::Off).create().unwrap();
    // 200 reads of 16 KiB a second, for longer than iostat looks.
    let limits = Limits { read_iops: Some(200), ..Limits::default() };
    let throttle = BlkioThrottle::new(device.major_minor(), limits).unwrap();
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", device.path().display()))
        .args(["of=/dev/null", "bs=16k", "count=1000", "iflag=direct"]);
    let mut reader = throttle.command(dd);
    let mut reader = reader.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let path = Path::new("/sys/dev/block").join(device.major_minor()).join("stat");
    let stat = || parse_stat(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let (before, start) = (stat(), Instant::now());
    let output = Command::new("iostat")
        .args(["-x", "-d", "-k", "-y", "-o", "JSON", device.name(), "3", "1"])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let (after, interval) = (stat(), start.elapsed());
    reader.kill().unwrap();
    reader.wait().unwrap();
    let grown = delta(&before, &after).unwrap();
    let per_s = |count: u64| count as f64 / interval.as_secs_f64();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let theirs = &document["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let column = |name: &str| theirs[name].as_f64().unwrap_or_else(|| panic!("no {name} in {theirs}"));
    for (name, ours) in [("r/s", per_s(grown.read_ios)), ("rkB/s", per_s(grown.read_sectors) / 2.0)] {
        let ratio = ours / column(name);
        assert!((0.93..1.07).contains(&ratio), "{name}: {ours} against {}", column(name));
    }
}
