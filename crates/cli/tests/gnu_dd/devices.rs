//! Block devices as ends of a copy: read as dd reads them; written only with their identity, never in use, and then as dd
//! writes them.

use super::has_gnu_dd;
use rdsk_testkit::loopdev::LoopDevice;
use rdsk_testkit::{Need, requires, wait_until};
use rustix::fs::OFlags;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const BYTES: u64 = 1 << 20;
/// Nothing here takes longer; whatever does hangs.
const SOON: Duration = Duration::from_secs(200);

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
    let operand = format!("of={}", device.path().display());
    let words = ["if=/dev/zero", &operand, "bs=4k", "count=1"];
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

/// A node that is missing would become a regular file, and a file that is there would be taken for the device.
#[test]
fn with_destroy_nothing_but_a_block_device_is_written() {
    let place = tempfile::tempdir().expect("a directory");
    let (missing, file) = (place.path().join("sdx"), place.path().join("file"));
    std::fs::write(&file, "mine").expect("a file");
    std::os::unix::fs::symlink("nowhere", place.path().join("link")).expect("a link");
    let refused = |outputs: &[&str], why: &str| {
        let words = [&["--destroy", "SERIAL", "if=/dev/zero", "bs=4k", "count=1"], outputs].concat();
        let output = rdsk(&words);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{outputs:?}: {said}");
        let is_told = said.contains("refusing to write to ") && said.contains(why) && said.contains("hint: ");
        assert!(is_told && said.contains("--destroy"), "{outputs:?}: {said}");
        assert!(output.stdout.is_empty(), "{outputs:?}");
    };
    for name in [&missing, &place.path().join("link"), &place.path().join("no/such/directory")] {
        refused(&[&format!("of={}", name.display())], "none of this name");
    }
    for name in [file.as_path(), place.path(), Path::new("/dev/null")] {
        refused(&[&format!("of={}", name.display())], "no block device");
    }
    refused(&[], "no block device");
    let mut names: Vec<_> = std::fs::read_dir(&place)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["file", "link"]);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "mine");
}

/// The second run waits for its input when the node goes.
#[test]
fn a_node_that_goes_between_two_runs_does_not_become_a_file() {
    if !requires(&[Need::Root, Need::Loop]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let (device, node, fifo) = (device(), place.path().join("node"), place.path().join("fifo"));
    std::os::unix::fs::symlink(device.path(), &node).expect("a link");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
    let identity = device.backing_path().display().to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_rdsk"))
        .args(["dd", "--explain=off", "--repeat=2", "--destroy", &identity])
        .args([format!("if={}", fifo.display()), format!("of={}", node.display())])
        .args(["bs=64k", "iflag=fullblock"])
        .env("LC_ALL", "C")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rdsk starts");
    let mut input = None;
    assert!(wait_until(SOON, || {
        input = writer_of(&fifo);
        input.is_some()
    }));
    let mut input = input.expect("it was opened");
    // More than a pipe holds: once it is written, the output is open.
    input.write_all(&[7; 1 << 20]).expect("the first run reads it");
    std::fs::remove_file(&node).expect("it is there");
    drop(input);
    // The first run may not have heard of the end before the FIFO has a writer again, so the second one needs another.
    assert!(wait_until(SOON, || {
        drop(writer_of(&fifo));
        child.try_wait().expect("it is our child").is_some()
    }));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("none of this name"), "{}", said(&output));
    assert!(std::fs::symlink_metadata(&node).is_err(), "a file was made");
    assert_eq!(
        std::fs::read(device.path()).expect("it can be read"),
        vec![7; 1 << 20],
        "the first run is whole"
    );
}

/// The other end of a FIFO, if a program reads it.
fn writer_of(fifo: &Path) -> Option<std::fs::File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(fifo, flags, rustix::fs::Mode::empty()).ok()?;
    rustix::fs::fcntl_setfl(&fd, OFlags::empty()).expect("it may wait from now on");
    Some(fd.into())
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
    let operand = format!("of={}", device.path().display());
    let output = rdsk(&["--destroy", &identity, "if=/dev/zero", &operand, "bs=4k", "count=1"]);
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
            (
                output.status.code(),
                super::both::counts(&said(&output)),
                device.content_hash().expect("it can be read"),
            )
        };
        assert_eq!(run(&theirs, true), run(&ours, false), "{line}");
    }
}
