//! The flush after dd's lines: what it finds out is reported, and fails the command as dd's own flush would.

use super::*;
use rdsk_model::{ProblemKind, Status};
use rdsk_testkit::sandbox::{Errno, Sysno};

/// A filesystem in memory with less room than a disk on it claims to have.
struct SmallMemory(tempfile::TempDir);

impl SmallMemory {
    fn mounted() -> Self {
        let place = scratch();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m", "rdsk-small"]).arg(place.path());
        assert!(mount.status().unwrap().success());
        Self(place)
    }
}

impl Drop for SmallMemory {
    fn drop(&mut self) {
        let unmount = || Command::new("umount").arg(self.0.path()).status().is_ok_and(|end| end.success());
        rdsk_testkit::wait_until(SOON, unmount);
    }
}

/// dd itself is content: the data is in memory. The program that flushes it takes the kernel's only report of what was lost.
#[test]
fn a_flush_that_fails_is_told_and_fails_the_command() {
    if !requires(&[Need::Root, Need::Loop, Need::Ext4]) {
        return;
    }
    let place = scratch();
    let memory = SmallMemory::mounted();
    let image = memory.0.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let device = LoopDevice::builder().over(&image).create().unwrap();
    device.mkfs_ext4("rdsk-small").unwrap();
    let mount = device.mount().unwrap();
    let document = place.path().join("record.json");
    let mut command = common::command(["dd", "--json", document.to_str().unwrap(), "--repeat", "3"]);
    command.args(["if=/dev/zero", "of=out", "bs=1M", "count=32"]).current_dir(mount.path());
    let run = cli::run(command, SOON);
    assert_eq!(run.status_code, Some(1), "{}", run.stderr);
    let first = run.stderr.lines().next().unwrap();
    assert!(first.starts_with("rdsk dd: flushing out failed: "), "{}", run.stderr);
    assert!(first.ends_with("; not all of it is on the device"), "{}", run.stderr);

    let value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&document).unwrap()).unwrap();
    assert_eq!(complaints(&value), [""; 0], "{}", run.stderr);
    let record: Record = serde_json::from_value(value).unwrap();
    let problem = record.error.as_ref().unwrap();
    assert_eq!(
        (record.status, problem.kind, problem.code.as_str()),
        (Status::Failed, ProblemKind::Io, "flush-failed")
    );
    assert_eq!(first.strip_prefix("rdsk dd: "), Some(problem.message.as_str()));
    let runs = &record.copies[0].runs;
    assert_eq!(runs.len(), 1, "no further run: {}", run.stderr);
    assert_eq!((runs[0].to_stable_ns, runs[0].stable_by), (None, StableBy::Nobody));
    let result = &record.cell("dd/write").unwrap().result;
    assert_eq!((result.bytes, result.ops), (Some(32 << 20), Some(32)), "what was counted stays");
}

/// Some kernels and sandboxes have no sync_file_range(2): the data is flushed all the same.
#[test]
fn writing_out_in_pieces_is_no_condition_of_the_flush() {
    let place = scratch();
    for errno in [Errno::NOSYS, Errno::INVAL, Errno::SPIPE, Errno::PERM] {
        let answer = rdsk_testkit::without(&[Sysno::sync_file_range], errno, || {
            answer(place.path(), "if=/dev/zero of=out bs=1M count=2")
        });
        let run = &answer.copy().runs[0];
        assert_eq!(run.stable_by, StableBy::Rdsk, "{errno}");
        assert!(run.to_stable_ns.is_some(), "{errno}");
    }
}
