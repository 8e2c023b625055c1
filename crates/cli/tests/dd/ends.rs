//! How a copy ends otherwise than by itself: an interrupt at any point, and a limit on files. What was done before is reported and
//! recorded.

use super::*;

/// An interrupt leaves the figures of the runs that were done, and the counts of the one that was not. One that comes during the flush
/// of a run that was done finds none of these, and another attempt counts.
#[test]
fn an_interrupt_of_repeated_runs_keeps_those_that_were_done() {
    first_right(ATTEMPTS, || {
        let place = scratch();
        let document = place.path().join("record.json");
        let mut command = common::command(["dd", "--json", document.to_str().unwrap(), "--repeat", "10000"]);
        command.args(["if=/dev/zero", "of=out", "bs=64k", "count=16"]).current_dir(place.path());
        let log = std::fs::File::create(place.path().join("log")).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        // The output is cut to nothing at the start of each run: two of them are done when it was seen to grow anew twice.
        let (mut last, mut starts) = (0, 0);
        assert!(rdsk_testkit::wait_until(SOON, || {
            let length = place.path().join("out").metadata().map_or(0, |facts| facts.len());
            starts += usize::from(length < last);
            last = length;
            starts >= 3
        }));
        cli::signal(child.id(), cli::Signal::INT).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
        let said = std::fs::read_to_string(place.path().join("log")).unwrap();
        let record: Record = serde_json::from_str(&std::fs::read_to_string(&document).unwrap()).unwrap();
        let done = record.copies[0].runs.iter().filter(|run| run.is_complete).count();
        assert!(done >= 2, "{said}");
        assert!(said.contains(&format!("runs    {done}: ")), "{said}");
        ensure(said.contains("records out"), || format!("no run was cut short: {said}"))?;
        let result = &record.cell("dd/write").unwrap().result;
        assert_eq!((result.visits.len(), result.bytes), (done, Some((done as u64) << 20)), "{said}");
        Ok(())
    });
}

/// Ctrl-C is how an endless copy ends, and what it measured is explained. This one has an end, so that a machine that stands still does not
/// fill memory.
#[test]
fn a_signal_ends_copy_and_record() {
    first_right(ATTEMPTS, || {
        let place = scratch();
        let document = place.path().join("record.json");
        let mut command = common::command(["dd", "--json", document.to_str().unwrap(), "if=/dev/zero"]);
        command.args(["of=out", "bs=64k", "count=5000"]).current_dir(place.path());
        let running = cli::start(command);
        let out = place.path().join("out");
        assert!(rdsk_testkit::wait_until(SOON, || out.metadata().is_ok_and(|facts| facts.len() > 1 << 20)));
        cli::signal(running.pid(), cli::Signal::INT).unwrap();
        let run = running.finish(SOON);
        ensure(!run.stderr.contains("5000+0 records out"), || format!("all was copied: {}", run.stderr))?;
        assert_eq!(run.ended, cli::Ended::Signalled(2), "{}", run.stderr);
        let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("The copy was cut short: these are the figures until then."), "{said}");
        let text = std::fs::read_to_string(&document).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(complaints(&value), [""; 0]);
        assert_eq!(value["status"], "interrupted");
        Ok(())
    });
}

/// dd's own end stays, whatever a limit on files does to the history that is written after it.
#[test]
fn a_limit_on_files_takes_nothing_but_the_history() {
    let place = scratch();
    let line = |explain: &str, operands: &str| {
        let mut shell = Command::new("sh");
        let line = format!("ulimit -c 0; ulimit -f 4; exec \"$0\" dd --explain {explain} {operands}");
        shell.args(["-c", &line]).arg(common::command([""; 0]).get_program());
        shell.current_dir(place.path()).env("RDSK_HISTORY", place.path().join("history.db"));
        cli::run(shell, SOON)
    };
    let run = line("on", "if=/dev/zero of=out bs=512 count=1");
    assert_eq!(run.ended, cli::Ended::Exited(0), "{}", run.stderr);
    assert!(run.stderr.contains("\nrdsk    ") && run.stderr.contains("File too large"), "{}", run.stderr);
    // The copy itself ends as dd's does.
    for explain in ["on", "off"] {
        let run = line(explain, "if=/dev/zero of=out bs=512 count=100");
        assert!(matches!(run.ended, cli::Ended::Signalled(_)), "{}", run.stderr);
    }
}

/// A FIFO that no process writes is opened forever: an interrupt ends dd there, too.
#[test]
fn an_interrupt_ends_dd_while_it_opens() {
    let place = scratch();
    let fifo = place.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let mut command = common::command(["dd", "of=/dev/null"]);
    command.arg(format!("if={}", fifo.display())).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // It takes the signal as soon as it has said how; asked too early, it ends as well.
    let waits = || {
        let text = std::fs::read_to_string(format!("/proc/{}/wchan", child.id())).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        text.contains("fifo") || text.contains("wait_for_partner") || stat.contains(") S ")
    };
    assert!(rdsk_testkit::wait_until(SOON, waits));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut status = None;
    assert!(rdsk_testkit::wait_until(SOON, || {
        status = child.try_wait().unwrap();
        status.is_some()
    }));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status.unwrap()), Some(2));
}
