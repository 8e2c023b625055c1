//! Lines that a shell prepares: closed and full descriptors, ignored signals, limits, FIFOs. Each runs with GNU dd and with rdsk,
//! and leaves the same bytes, counts and exit code.

use super::both::counts;
use super::has_gnu_dd;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The line with `@` for the program, by a shell in a directory with one file.
fn run(line: &str, program: &str) -> Output {
    run_in(tempfile::tempdir().expect("a directory").path(), line, program)
}

fn run_in(place: &Path, line: &str, program: &str) -> Output {
    let content: Vec<u8> = (1..=250).cycle().take(5000).collect();
    std::fs::write(place.join("in"), content).expect("a file");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line.replace('@', program)]).current_dir(place).env("LC_ALL", "C");
    shell.stdin(Stdio::null()).output().expect("sh starts")
}

const OURS: &str = concat!(env!("CARGO_BIN_EXE_rdsk"), " dd --explain=off");

/// Exit code, signal, output, counts, and the lengths of the files.
type Seen = (Option<i32>, Option<i32>, Vec<u8>, String, BTreeMap<String, u64>);

fn run_with(line: &str, program: &str) -> Seen {
    let place = tempfile::tempdir().expect("a directory");
    let output = run_in(place.path(), line, program);
    let said = counts(&String::from_utf8_lossy(&output.stderr));
    let files = std::fs::read_dir(place.path()).expect("the directory").flatten().map(|entry| {
        let length = entry.metadata().map_or(0, |metadata| metadata.len());
        (entry.file_name().to_string_lossy().into_owned(), length)
    });
    (output.status.code(), output.status.signal(), output.stdout, said, files.collect())
}

/// Whether there is what the line itself has made: its input, and a copy of it.
fn is_untouched(line: &str, seen: &Seen) -> bool {
    let has_copy = line.starts_with("cp in out");
    let names: &[&str] = if has_copy { &["in", "out"] } else { &["in"] };
    seen.2.is_empty() && seen.4.keys().eq(names) && seen.4.values().all(|&bytes| bytes == 5000)
}

fn same(lines: &[&str]) {
    if !has_gnu_dd() {
        return;
    }
    for line in lines {
        let (theirs, ours) = (run_with(line, "dd"), run_with(line, OURS));
        // Where both fail, rdsk may see that before it opens the output, and then leaves everything as it was.
        let is_left = theirs.0 == ours.0 && theirs.0 == Some(1) && ours.3.is_empty();
        let has_no_counts = theirs.3.is_empty() && (&theirs.2, &theirs.4) == (&ours.2, &ours.4);
        let is_right = theirs == ours || (theirs.0 == ours.0 && has_no_counts);
        assert!(is_right || (is_left && is_untouched(line, &ours)), "{line}:\n{theirs:?}\n{ours:?}");
    }
}

#[test]
fn what_is_closed_or_full_is_told_and_never_done() {
    same(&[
        "@ if=in >&-",
        "@ if=in >&- of=out",
        "@ <&- of=out",
        "@ <&- if=in of=out",
        "@ <&- of=out count=0",
        "@ >&- if=in count=0",
        "@ if=in of=out 2>&-",
        "@ if=in of=out 2>&- status=none",
        "@ if=in of=out 2>/dev/full",
        "@ if=in of=out 2>/dev/full status=none",
        "@ <&- iflag=nonblock of=out",
        "@ <&- of=out count=10B",
        "@ <&- of=out count=3 iflag=skip_bytes",
        "@ >&- if=in seek=5B",
        "@ if=in oflag=append conv=notrunc >&-",
        "@ if=in 1</dev/null",
        "@ <&- of=out skip=1 conv=noerror",
        "@ if=in >&- seek=1",
        "@ if=in >&- conv=fsync count=0",
        "@ if=in of=out <&- >&- 2>&-",
        "@ iflag=nocache count=0 <&- of=/dev/null",
        "@ bs=2 conv=noerror,sync count=2 <&- of=out",
    ]);
}

/// A process without standard output does not learn that all is well.
#[test]
fn no_command_loses_its_output_in_silence() {
    for line in ["@ sim list >&-", "@ sim list 1</dev/null", "@ info . --json - >&-", "@ --help >&-"] {
        let output = run(line, env!("CARGO_BIN_EXE_rdsk"));
        assert_eq!(output.status.code(), Some(4), "{line}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("error: cannot write to standard output: Bad file descriptor"), "{said}");
    }
    for line in ["@ --help >&-", "@ --json - if=in of=out >&-"] {
        let output = run(line, OURS);
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
    }
}

#[test]
fn a_pipe_without_readers_is_an_error_where_its_signal_is_ignored() {
    let line = |operands: &str| {
        // The reader has gone when the copy begins.
        format!(
            "mkfifo pipe; exec 5<>pipe 6>pipe 5<&-; trap '' PIPE; @ {operands} >&6; echo code $? >&2; \
             trap - PIPE; @ {operands} >&6"
        )
    };
    let lines = ["if=/dev/zero bs=1k count=3", "if=/dev/zero ibs=1k count=30 obs=2k"].map(line);
    same(&lines.each_ref().map(String::as_str));
}

#[test]
fn a_limit_on_the_length_of_files_ends_a_copy_as_it_ends_dd() {
    same(&[
        "ulimit -c 0; ulimit -f 1; exec @ if=/dev/zero of=out bs=500 count=3",
        "trap '' XFSZ; ulimit -f 1; @ if=/dev/zero of=out bs=500 count=3",
        "trap '' XFSZ; ulimit -f 1; @ if=/dev/null of=out bs=1k seek=5",
        "trap '' XFSZ; ulimit -f 1; @ if=in of=out bs=1k seek=5 conv=notrunc",
    ]);
}

/// The input is opened first: a file that would have been the output stays as it is.
#[test]
fn a_descriptor_that_was_closed_has_no_name() {
    same(&[
        "cp in out; @ if=/dev/stdin of=out <&-",
        "cp in out; @ if=/dev/fd/0 of=out bs=1k seek=1 <&-",
        "@ if=in of=/dev/stdout >&-",
        "cp in out; @ if=/dev/stderr of=out 2>&-",
        "@ if=/ of=new <&-",
        "@ if=/dev/stdin of=new <in; cat new",
    ]);
}

/// dd reads past a part of a FIFO that is its output; rdsk seeks there or not at all.
#[test]
fn an_output_without_positions_cannot_be_sought_in() {
    same(&["@ if=in seek=3 | cat", "@ if=in seek=99999999999999999 | cat"]);
}

#[test]
fn help_and_version_stand_anywhere() {
    for line in ["@ if=in of=out --help", "@ foo --help"] {
        let output = run(line, OURS);
        assert!(
            output.status.success() && output.stdout.starts_with(b"Copy as dd does"),
            "{line}: {output:?}"
        );
    }
    for line in ["@ --help=1", "@ if=in -q", "@ if=in -- --help", "@ -"] {
        assert_eq!(run(line, OURS).status.code(), Some(1), "{line}");
    }
}
