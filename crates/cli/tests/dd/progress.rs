//! The line of `status=progress` and what follows it.

use super::*;
use rustix::fs::{FileType, Mode, OFlags};

/// Writes into a FIFO, from when it is opened for reading until dd has shown that it goes on.
fn fed(fifo: &Path, log: &Path) {
    let shown = || std::fs::read_to_string(log).unwrap().matches('\r').count();
    let before = shown();
    let mut pipe = None;
    assert!(rdsk_testkit::wait_until(SOON, || {
        // Without a reader that is refused.
        pipe =
            rustix::fs::open(fifo, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok();
        pipe.is_some()
    }));
    let pipe = pipe.unwrap();
    assert!(rdsk_testkit::wait_until(SOON, || {
        match rustix::io::write(&pipe, &[7; 1024]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => shown() > before,
            Err(error) => panic!("dd reads no more: {error}"),
        }
    }));
}

/// The counts of runs that are compared are hidden, so that nothing else ends the line of progress.
#[test]
fn the_answer_begins_below_the_line_of_progress() {
    let place = scratch();
    let fifos = ["one", "two"].map(|name| place.path().join(name));
    for fifo in &fifos {
        rustix::fs::mknodat(rustix::fs::CWD, fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }
    let log = place.path().join("log");
    let mut command = common::command(["dd", "--repeat", "1", "--compare", "if=two"]);
    command.args(["if=one", "of=/dev/null", "bs=1k", "status=progress"]).current_dir(place.path());
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    for fifo in &fifos {
        fed(fifo, &log);
    }
    assert!(child.wait().unwrap().success());
    let said = std::fs::read_to_string(&log).unwrap();
    let last = said.rsplit('\r').next().unwrap();
    let (progress, answer) = last.split_once('\n').unwrap();
    assert!(progress.trim_end().ends_with("/s"), "{said:?}");
    assert!(answer.starts_with("\n1 ") || answer.starts_with("1 "), "{said:?}");
}
