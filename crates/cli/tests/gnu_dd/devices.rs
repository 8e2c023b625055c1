//! Block devices as ends of a copy: read as dd reads them; written only with their identity, never in use, and then as dd
//! writes them.

use crate::has_gnu_dd;
use rdsk_testkit::loopdev::LoopDevice;
use rdsk_testkit::{Need, requires};
use std::process::{Command, Output};

const BYTES: u64 = 1 << 20;

fn device() -> LoopDevice {
    LoopDevice::builder().size(BYTES).create().expect("root can make loop devices")
}

fn rdsk(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rdsk"));
    command.arg("dd").args(words).env("LC_ALL", "C").output().expect("rdsk starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_device_is_written_with_its_identity_only() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let device = device();
    let before = device.content_hash().expect("it can be read");
    let of = format!("of={}", device.path().display());
    let words = ["if=/dev/zero", &of, "bs=4k", "count=1"];
    let wrong = [&["--destroy", "some-other-disk"][..], &["--destroy", device.name()], &[]];
    for permission in wrong {
        let output = rdsk(&[permission, &words].concat());
        assert_eq!(output.status.code(), Some(1), "{permission:?}: {}", said(&output));
        assert!(said(&output).contains("refusing to write"), "{permission:?}: {}", said(&output));
        assert!(said(&output).contains("hint: "), "{permission:?}: {}", said(&output));
        assert_eq!(device.content_hash().expect("it can be read"), before, "{permission:?}");
    }
    let standard = Command::new("sh")
        .args([
            "-c",
            &format!(
                "{} dd if=/dev/zero bs=4k count=1 > {}",
                env!("CARGO_BIN_EXE_rdsk"),
                device.path().display()
            ),
        ])
        .output()
        .expect("sh starts");
    assert_eq!(standard.status.code(), Some(1), "{}", said(&standard));
    assert_eq!(device.content_hash().expect("it can be read"), before, "by standard output");
}

#[test]
fn a_device_in_use_is_never_written() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let device = LoopDevice::builder().size(8 << 20).create().expect("a loop device");
    device.mkfs_ext4("used").expect("mkfs");
    let mounted = device.mount().expect("it is mounted");
    let identity = device.backing_path().display().to_string();
    let of = format!("of={}", device.path().display());
    let output = rdsk(&["--destroy", &identity, "if=/dev/zero", &of, "bs=4k", "count=1"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("mounted"), "{}", said(&output));
    drop(mounted);
}

#[test]
fn devices_are_read_and_written_as_dd_does() {
    if !has_gnu_dd() || !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let (theirs, ours) = (device(), device());
    let source = device();
    let content: Vec<u8> = (0..253).cycle().take(1 << 20).collect();
    std::fs::write(source.backing_path(), &content).expect("a file can be written");
    for line in [
        "bs=64k",
        "bs=512 seek=3 skip=5 count=100",
        "bs=4k oflag=direct seek=2",
        "ibs=1000 obs=4096 conv=fsync",
        "bs=1M iflag=direct oflag=dsync",
        "bs=300000",
        "bs=4k oflag=append,direct count=1",
        "bs=4k seek=300 count=1",
        "bs=4k conv=excl",
    ] {
        let run = |device: &LoopDevice, is_gnu: bool| {
            let mut command = Command::new(if is_gnu { "dd" } else { env!("CARGO_BIN_EXE_rdsk") });
            let identity = device.backing_path().display().to_string();
            if !is_gnu {
                command.args(["dd", "--explain=off", "--destroy", &identity]);
            }
            command
                .args([format!("if={}", source.path().display()), format!("of={}", device.path().display())]);
            let output = command.args(line.split(' ')).env("LC_ALL", "C").output().expect("it starts");
            let said = said(&output).replace("rdsk dd", "dd").replace(device.name(), "loopN");
            let lines: String = said.lines().map(crate::both::without_time).collect();
            (output.status.code(), lines, device.content_hash().expect("it can be read"))
        };
        assert_eq!(run(&theirs, true), run(&ours, false), "{line}");
    }
}
