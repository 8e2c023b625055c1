//! Lines and JSON of devices of our own.

use crate::common::{SOON, command, error_and_hint, rdsk};
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::sandbox::Errno;
use rdsk_testkit::{LoopDevice, Need, Sysno, Turn, cli, requires, wait_until, without};
use serde_json::Value;
use std::process::{Command, Stdio};

fn device() -> Option<LoopDevice> {
    requires(&[Need::Root, Need::Loop]).then(|| LoopDevice::builder().size(16 << 20).create().unwrap())
}

fn read_directly(device: &LoopDevice, count: u32) {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", device.path().display())).args(["of=/dev/null", "bs=4k", "iflag=direct"]);
    let status = dd.arg(format!("count={count}")).stderr(Stdio::null()).status().unwrap();
    assert!(status.success());
}

/// Waits until the first interval of a running watch has begun: SIGTERM has its handler, which comes after the first look.
fn wait_until_counting(running: &cli::Running) {
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|mask| mask >> (15 - 1) & 1 == 1)
    };
    assert!(wait_until(SOON, catches));
}

#[test]
fn each_interval_has_a_line_for_each_device() {
    let Some(device) = device() else { return };
    let name = device.name();
    let run = rdsk(["watch", name, "--plain", "--interval", "100ms", "--count", "3", "--evidence", "sysfs"]);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with(name)).count(), 3, "{}", run.stdout);
    assert_eq!(run.stdout.lines().filter(|line| line.starts_with("Device")).count(), 3);
    // On a pipe there is no screen, whether asked for lines or not.
    let same = rdsk(["watch", name, "--interval", "10ms", "--count", "1", "--evidence", "sysfs"]);
    assert!(same.stdout.contains("%util") && !same.stdout.contains('\u{1b}'), "{}", same.stdout);
}

/// The number of a file there is that of its subvolume, which is no device's.
#[test]
fn a_directory_on_btrfs_leads_to_its_device() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let device = LoopDevice::builder().size(160 << 20).create().unwrap();
    let made = Command::new("mkfs.btrfs").args(["-q", "-f"]).arg(device.path()).status().unwrap();
    assert!(made.success());
    let mount = device.mount().unwrap();
    let directory = mount.path().join("some directory");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [&directory, &file] {
        let path = path.to_str().unwrap();
        let run =
            rdsk(["watch", path, "--plain", "--count", "1", "--interval", "200ms", "--evidence", "sysfs"]);
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
        let lines = run.stdout.lines().filter(|line| line.starts_with(device.name()));
        assert_eq!(lines.count(), 1, "{}", run.stdout);
    }
}

#[test]
fn the_growth_of_all_intervals_is_what_was_read() {
    let Some(device) = device() else { return };
    let path = device.path().display().to_string();
    let running = cli::start(command([
        "watch", &path, "--json", "--interval", "100ms", "--count", "20", "--evidence", "sysfs",
    ]));
    wait_until_counting(&running);
    read_directly(&device, 500);
    let run = running.finish(SOON);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
    let objects: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 20);
    for object in &objects {
        assert_eq!((&object["schema"], &object["state"]), (&"rdsk.watch/1".into(), &"counted".into()));
        assert_eq!(object["device"], device.name());
        // A look that comes late leaves the next interval shorter.
        assert!(object["interval_ns"].as_u64().unwrap() > 0, "{object}");
        let (ios, seconds) = (&object["diskstat"]["read_ios"], object["interval_ns"].as_f64().unwrap() / 1e9);
        let rate = object["columns"]["r/s"].as_f64().unwrap();
        assert!((rate * seconds - ios.as_f64().unwrap()).abs() < 1e-6, "{object}");
        assert!(object["block_layer"].is_null());
    }
}

#[test]
fn programs_count_what_the_kernel_counts() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let _turn = Turn::Bpf.take();
    let Some(device) = device() else { return };
    let whole = || {
        let running = cli::start(command([
            "watch",
            device.name(),
            "--json",
            "--interval",
            "3s",
            "--count",
            "1",
            "--evidence",
            "bpf",
        ]));
        wait_until_counting(&running);
        read_directly(&device, 100);
        let run = running.finish(SOON);
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        cli::json(&run)
    };
    // On some machines the kernel passes over a tracepoint once in some ten thousand events.
    let is_whole = |object: &Value| {
        let requests = object["block_layer"]["requests"].as_array().unwrap();
        let counted: u64 = requests.iter().map(|request| request["count"].as_u64().unwrap()).sum();
        let latency = &object["block_layer"]["device_latency_ns"];
        assert!(latency["p50"].as_u64() <= latency["max"].as_u64(), "{object}");
        object["block_layer"]["lost"] == 0
            && object["diskstat"]["read_ios"] == counted
            && counted >= 100
            && latency["count"].as_u64() >= object["diskstat"]["read_ios"].as_u64()
    };
    first_right(10, || {
        let object = whole();
        ensure(is_whole(&object), || format!("{object}"))
    });
}

#[test]
fn a_device_that_goes_away_is_said_once() {
    if !requires(&[Need::Tool("partx")]) {
        return;
    }
    first_right(3, || {
        let Some(device) = device() else { return Ok(()) };
        let part = device.partition_gpt().unwrap()[0].display().to_string();
        let name = part.trim_start_matches("/dev/").to_owned();
        let mut watch = command(["watch", &name, "--plain", "--evidence", "sysfs"]);
        watch.args(["--interval", "50ms", "--count", "40"]);
        let running = cli::start(watch);
        wait_until_counting(&running);
        // The partition goes with its disk.
        drop(device);
        let run = running.finish(SOON);
        assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
        let rows = run.stdout.lines().filter(|line| line.starts_with(&name));
        // Another test may get its number, and a partition on it: that one is said to appear, if it does not come at once.
        let rows: Vec<&str> = rows.take_while(|row| !row.contains("appeared")).collect();
        let vanished = rows.iter().position(|row| row.contains("vanished"));
        ensure(vanished.is_some_and(|last| last + 1 == rows.len()), || run.stdout.clone())
    });
}

#[test]
fn a_reader_that_has_left_and_a_signal_are_quiet_ends() {
    let script = format!("{} watch --interval 10ms --evidence sysfs | head -1", env!("CARGO_BIN_EXE_rdsk"));
    let mut shell = cli::rdsk("bash");
    shell.args(["-c", &format!("set -o pipefail; {script}")]);
    let run = cli::run(shell, SOON);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    let running = cli::start(command(["watch", "--interval", "1h", "--evidence", "sysfs"]));
    wait_until_counting(&running);
    cli::signal(running.pid(), cli::Signal::TERM).unwrap();
    let run = running.finish(SOON);
    assert_eq!((run.status_code, run.stdout.as_str()), (Some(130), ""), "{}", run.stderr);
}

#[test]
fn names_that_lead_nowhere_are_refused() {
    for name in ["/nonexistent", "nonsense0", "/proc"] {
        let run = rdsk(["watch", name, "--plain"]);
        assert_eq!((run.status_code, run.stdout.as_str()), (Some(3), ""), "{name}");
        let (_, hint) = error_and_hint(&run);
        assert!(hint.contains("rdsk info"), "{hint}");
    }
}

#[test]
fn without_privilege_it_says_why_once_and_goes_on() {
    if !requires(&[Need::Root, Need::Loop, Need::Tool("setpriv")]) {
        return;
    }
    let Some(device) = device() else { return };
    let without = |more: &[&str]| {
        let mut setpriv = cli::rdsk("setpriv");
        setpriv.arg("--bounding-set=-cap_38,-cap_39,-sys_admin").arg(env!("CARGO_BIN_EXE_rdsk"));
        setpriv.args(["watch", device.name(), "--plain", "--interval", "10ms", "--count", "3"]).args(more);
        cli::run(setpriv, SOON)
    };
    let run = without(&[]);
    assert_eq!(run.status_code, Some(0));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(matches!(lines[..], [line] if line.starts_with("warning: exact sizes")), "{}", run.stderr);
    let refused = without(&["--evidence", "bpf"]);
    assert_eq!((refused.status_code, refused.stdout.as_str()), (Some(3), ""));
    assert!(error_and_hint(&refused).0.contains("BPF"), "{}", refused.stderr);
}

#[test]
fn where_bpf_is_forbidden_it_says_why_and_goes_on() {
    if !requires(&[Need::Root, Need::Loop, Need::Bpf]) {
        return;
    }
    let Some(device) = device() else { return };
    let line = ["watch", device.name(), "--plain", "--interval", "10ms", "--count", "2"];
    for errno in [Errno::PERM, Errno::NOSYS] {
        let run = without(&[Sysno::bpf], errno, || rdsk(line));
        assert_eq!(run.status_code, Some(0), "{}", run.stderr);
        assert!(
            run.stderr.starts_with("warning: exact sizes") && run.stderr.contains("seccomp"),
            "{}",
            run.stderr
        );
        assert_eq!(
            run.stdout.lines().filter(|line| line.starts_with(device.name())).count(),
            2,
            "{}",
            run.stdout
        );
        let command = without(&[Sysno::bpf], errno, || rdsk(["watch", device.name(), "--", "true"]));
        assert_eq!(command.status_code, Some(0), "{}", command.stderr);
        assert!(
            command.stderr.split_whitespace().collect::<Vec<_>>().join(" ").contains("a seccomp filter"),
            "{}",
            command.stderr
        );
        let refused = without(&[Sysno::bpf], errno, || rdsk(line.into_iter().chain(["--evidence", "bpf"])));
        assert_eq!((refused.status_code, refused.stdout.as_str()), (Some(3), ""));
        assert!(error_and_hint(&refused).0.contains("seccomp"), "{}", refused.stderr);
    }
}
