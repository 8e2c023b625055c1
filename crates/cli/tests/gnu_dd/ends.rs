//! How a copy ends otherwise than by itself: signals, a closed pipe, a full disk, an input that cannot be read. Each line runs
//! through GNU dd and through rdsk, and does the same.

use super::both::counts;
use super::has_gnu_dd;
use rdsk_testkit::attempts::{ensure, first_right};
use rdsk_testkit::fusedisk::{Behaviour, FuseDisk};
use rdsk_testkit::{Need, requires, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Nothing here takes longer; whatever does hangs.
const SOON: Duration = Duration::from_secs(200);

/// Copies of which one has to be under way when a signal comes.
const ATTEMPTS: usize = 20;

/// Both programs, for one line in one directory.
fn programs(directory: &Path, line: &str) -> [Command; 2] {
    let mut rdsk = Command::new(env!("CARGO_BIN_EXE_rdsk"));
    rdsk.args(["dd", "--explain=off"]);
    [Command::new("dd"), rdsk].map(|mut command| {
        command.args(line.split_whitespace()).current_dir(directory).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    })
}

/// Exit code, signal and counts.
fn ended(output: &Output) -> (Option<i32>, Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), output.status.signal(), counts(&said))
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
    kill_process(pid, signal).expect("the child is there");
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The number of bytes in dd's last line.
fn bytes_told(stderr: &str) -> Option<u64> {
    stderr.lines().rev().find(|line| line.contains(" copied"))?.split(' ').next()?.parse().ok()
}

#[test]
fn sigusr1_prints_the_counts_and_sigint_ends_after_them() {
    if !has_gnu_dd() {
        return;
    }
    for last in [None, Some(Signal::INT)] {
        let mut ends = Vec::new();
        for index in 0..2 {
            let place = tempfile::tempdir().expect("a directory");
            let [gnu, ours] = programs(place.path(), "of=out bs=500");
            let mut command = if index == 0 { gnu } else { ours };
            let errors = place.path().join("errors");
            let file = std::fs::File::create(&errors).expect("a file for messages");
            let mut child = command.stdin(Stdio::piped()).stderr(file).spawn().expect("it starts");
            let mut input = child.stdin.take().expect("it is a pipe");
            input.write_all(&[7; 1000]).expect("a pipe holds so much");
            // What was written stands in the file, so that the handlers are in place and dd waits for more.
            assert!(wait_until(SOON, || length(&place.path().join("out")) == 1000), "{index}");
            signal(&child, Signal::USR1);
            assert!(wait_until(SOON, || std::fs::read_to_string(&errors)
                .is_ok_and(|text| text.contains(" copied"))));
            if let Some(last) = last {
                signal(&child, last);
                assert!(wait_until(SOON, || child.try_wait().expect("it is our child").is_some()), "{index}");
            }
            drop(input);
            let output = child.wait_with_output().expect("it ends");
            let stderr = std::fs::read(&errors).expect("messages");
            ends.push((ended(&Output { stderr, ..output }), length(&place.path().join("out"))));
        }
        assert_eq!(ends[0], ends[1], "{last:?}");
        assert_eq!(ends[0].0.2.lines().count(), 6, "{:?}", ends[0]);
    }
}

/// A FIFO is opened when its other end is: until then the signals do what they do later, too. Each is sent until it is heard, since
/// nothing says when the program begins to wait.
#[test]
fn signals_are_answered_while_a_fifo_is_opened() {
    if !has_gnu_dd() {
        return;
    }
    for line in ["if=fifo of=out", "if=/dev/null of=fifo", "if=/dev/null of=fifo status=noxfer"] {
        let ends = [0, 1].map(|index| {
            let place = tempfile::tempdir().expect("a directory");
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let fifo = place.path().join("fifo");
            rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
            let [gnu, ours] = programs(place.path(), line);
            let errors = place.path().join("errors");
            let file = std::fs::File::create(&errors).expect("a file for messages");
            let mut child = { if index == 0 { gnu } else { ours } }.stderr(file).spawn().expect("it starts");
            assert!(wait_until(SOON, || is_waiting(&child)), "{line}");
            let said = || std::fs::read_to_string(&errors).unwrap_or_default();
            signal(&child, Signal::USR1);
            assert!(wait_until(SOON, || said().contains("records out")), "{line} {index}: {}", said());
            let mut status = None;
            assert!(wait_until(SOON, || {
                signal(&child, Signal::INT);
                status = child.try_wait().expect("it is our child");
                status.is_some()
            }));
            let heard: Vec<String> = counts(&said()).lines().map(str::to_owned).collect();
            (status.expect("it has ended").signal(), heard)
        });
        let lines = if line.contains("noxfer") { 2 } else { 3 };
        assert_eq!(ends[0].1[..lines], ends[1].1[..lines], "{line}");
        assert_eq!(ends.map(|(ended, heard)| (ended, heard.len() >= lines)), [(Some(2), true); 2], "{line}");
    }
}

/// Whether a program sleeps in open(2) of a FIFO.
fn is_waiting(child: &Child) -> bool {
    let proc_file =
        |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap_or_default();
    proc_file("wchan").contains("wait_for_partner")
        || (proc_file("wchan").trim() == "0" && proc_file("stat").contains(") S "))
}

/// A device that no process can wait for with poll(2) as for a pipe is left at once, too.
#[test]
fn an_interrupt_ends_the_wait_for_the_kernels_log() {
    if !has_gnu_dd() || !requires(&[Need::Root]) || !Path::new("/dev/kmsg").exists() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    for index in 0..2 {
        first_right(20, || {
            let [gnu, ours] = programs(place.path(), "if=/dev/kmsg of=out bs=64k");
            let mut child =
                { if index == 0 { gnu } else { ours } }.stderr(Stdio::null()).spawn().expect("it starts");
            let out = place.path().join("out");
            let mut status = None;
            let has_begun = wait_until(SOON, || {
                status = child.try_wait().expect("it is our child");
                status.is_some() || length(&out) > 0
            });
            assert!(has_begun, "the log is never empty");
            assert!(wait_until(SOON, || {
                if status.is_none() {
                    signal(&child, Signal::INT);
                    status = child.try_wait().expect("it is our child");
                }
                status.is_some()
            }));
            std::fs::remove_file(out).expect("it was made");
            // A new message that takes the place of the first one before that is read is an error of the read.
            let ended = status.expect("it has ended");
            ensure(ended.code().is_none(), || format!("{index}: {ended}"))?;
            assert_eq!(ended.signal(), Some(Signal::INT.as_raw()));
            Ok(())
        });
    }
}

/// Whatever the moment, the counts are those of the file, and the file is whole up to there. A copy that was done before the signal
/// came shows nothing; it has an end, so that a machine that stands still does not fill memory.
#[test]
fn an_interruption_at_any_point_leaves_what_was_told() {
    if !has_gnu_dd() {
        return;
    }
    for (line, block) in [
        ("bs=64k count=4800", 65_536),
        ("bs=1M count=300", 1 << 20),
        ("ibs=10k obs=6k count=30000", 6144),
        ("bs=4k conv=fdatasync count=76800", 4096),
    ] {
        for after in [1, 3, 10, 40].map(|blocks| blocks * block) {
            first_right(ATTEMPTS, || is_interrupted(line, after));
        }
    }
}

fn is_interrupted(line: &str, after: u64) -> Result<(), String> {
    let place = tempfile::tempdir().expect("a directory");
    let [_, mut ours] = programs(place.path(), &format!("if=/dev/zero of=out {line}"));
    let child = ours.spawn().expect("it starts");
    assert!(wait_until(SOON, || length(&place.path().join("out")) >= after), "{line} {after}");
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let (code, by, stderr) = ended(&output);
    ensure(code != Some(0), || format!("{line} {after}: all was copied: {stderr}"))?;
    assert_eq!((code, by), (None, Some(Signal::INT.as_raw())), "{stderr}");
    let written = length(&place.path().join("out"));
    assert_eq!(
        bytes_told(&String::from_utf8_lossy(&output.stderr)),
        Some(written),
        "{line} {after}: {stderr}"
    );
    assert!(written >= after, "{line}: {written}");
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
    Ok(())
}

/// A pipe that gives its bytes in known pieces: the next one only when the one before is taken.
fn in_pieces(command: &mut Command, pieces: &[usize]) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("it is a pipe");
    for (index, &length) in pieces.iter().enumerate() {
        let filling = u8::try_from(index % 200).expect("below 200");
        if input.write_all(&vec![filling; length]).is_err() {
            break;
        }
        let is_taken = || rustix::io::ioctl_fionread(input.as_fd()).is_ok_and(|bytes| bytes == 0);
        let has_ended =
            wait_until(SOON, || is_taken() || child.try_wait().is_ok_and(|ended| ended.is_some()));
        assert!(has_ended, "{command:?}");
    }
    drop(input);
    child.wait_with_output().expect("it ends")
}

#[test]
fn parts_from_a_pipe_are_blocks_unless_full_ones_are_asked_for() {
    if !has_gnu_dd() {
        return;
    }
    let pieces = [300, 512, 100, 700, 511, 1, 513];
    for line in [
        "bs=512 count=3",
        "bs=512 count=3 iflag=fullblock",
        "bs=512 iflag=fullblock",
        "ibs=512 obs=1k count=4",
        "bs=1k count=1500 iflag=count_bytes",
        "bs=700 skip=1",
        "bs=512 skip=2 iflag=fullblock",
        "ibs=512 obs=300 conv=sync",
    ] {
        let place = tempfile::tempdir().expect("a directory");
        let [gnu, ours] = programs(place.path(), line).map(|mut command| in_pieces(&mut command, &pieces));
        assert_eq!(ended(&gnu), ended(&ours), "{line}");
        assert!(gnu.stdout == ours.stdout, "{line}: other bytes");
    }
}

#[test]
fn a_reader_that_leaves_ends_the_copy() {
    if !has_gnu_dd() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    for line in [
        "if=/dev/zero bs=64k count=1000",
        "if=/dev/zero obs=100k conv=sync count=100000",
        "if=/dev/zero bs=1k count=10000 status=none",
    ] {
        let ends = programs(place.path(), line).map(|mut command| {
            let mut child = command.spawn().expect("it starts");
            let mut pipe = child.stdout.take().expect("it is a pipe");
            let mut read = vec![0; 100_000];
            std::io::Read::read_exact(&mut pipe, &mut read).expect("so much comes");
            drop(pipe);
            ended(&child.wait_with_output().expect("it ends"))
        });
        assert_eq!(ends[0], ends[1], "{line}");
        assert_eq!(ends[0].1, Some(Signal::PIPE.as_raw()), "{line}");
    }
}

/// A filesystem in memory that holds a mebibyte.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mounted() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "rdsk-small"]).arg(place.path());
        assert!(mount.status().is_ok_and(|status| status.success()), "root can mount");
        Self(place)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_keeps_what_it_took() {
    if !has_gnu_dd() || !requires(&[Need::Root]) {
        return;
    }
    for line in [
        "bs=64k", "bs=300000", "ibs=10000 obs=300000", "bs=64k conv=fdatasync", "bs=300000 status=noxfer",
        "bs=1M seek=1",
    ] {
        let ends = [0, 1].map(|index| {
            let disk = SmallDisk::mounted();
            let [gnu, ours] = programs(disk.0.path(), &format!("if=/dev/zero of=out {line}"));
            let output = { if index == 0 { gnu } else { ours } }.output().expect("it starts");
            (ended(&output), length(&disk.0.path().join("out")))
        });
        assert_eq!(ends[0], ends[1], "{line}");
        assert_eq!(ends[0].0.0, Some(1), "{line}: the disk is full");
    }
}

#[test]
fn blocks_that_cannot_be_read_are_left_out_or_zeros() {
    if !has_gnu_dd() || !requires(&[Need::Root, Need::Fuse]) {
        return;
    }
    let disk = FuseDisk::builder().capacity(256 << 10).mount().expect("a disk");
    let content: Vec<u8> = (1..252).cycle().take(256 << 10).collect();
    std::fs::OpenOptions::new()
        .write(true)
        .open(disk.file())
        .expect("it is there")
        .write_all(&content)
        .expect("written");
    disk.set_behaviour(Behaviour { errors: vec![65_536..69_632, 200_000..200_001], ..Behaviour::default() });
    for line in [
        "bs=4k",
        "bs=4k conv=noerror",
        "bs=4k conv=noerror,sync",
        "bs=16k conv=sync,noerror",
        "ibs=8k obs=5000 conv=noerror,sync",
        "bs=4k conv=noerror,notrunc status=none",
        "bs=4k skip=16 count=3 conv=noerror,sync",
    ] {
        let ends = [0, 1].map(|index| {
            let place = tempfile::tempdir().expect("a directory");
            let [gnu, ours] = programs(place.path(), &format!("if={} of=out {line}", disk.file().display()));
            let output = { if index == 0 { gnu } else { ours } }.output().expect("it starts");
            (ended(&output), std::fs::read(place.path().join("out")).unwrap_or_default())
        });
        assert_eq!(ends[0].0, ends[1].0, "{line}");
        assert!(ends[0].1 == ends[1].1, "{line}: other bytes");
    }
}
