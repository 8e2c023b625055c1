//! Lines that a shell prepares: closed and full descriptors, ignored signals, limits, FIFOs. Each runs with GNU dd and with rdsk,
//! and leaves the same bytes, messages and exit code.

use super::both::without_time;
use super::has_gnu_dd;
use rdsk_testkit::{Need, requires};
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

/// Exit code, signal, output, messages, and the lengths of the files.
type Seen = (Option<i32>, Option<i32>, Vec<u8>, String, BTreeMap<String, u64>);

fn seen(line: &str, program: &str) -> Seen {
    let place = tempfile::tempdir().expect("a directory");
    let output = run_in(place.path(), line, program);
    let said = String::from_utf8_lossy(&output.stderr).replace("rdsk dd", "dd");
    let files = std::fs::read_dir(place.path()).expect("the directory").flatten().map(|entry| {
        let length = entry.metadata().map_or(0, |metadata| metadata.len());
        (entry.file_name().to_string_lossy().into_owned(), length)
    });
    let said = said.lines().map(without_time).collect();
    (output.status.code(), output.status.signal(), output.stdout, said, files.collect())
}

fn same(lines: &[&str]) {
    if !has_gnu_dd() {
        return;
    }
    for line in lines {
        assert_eq!(seen(line, "dd"), seen(line, OURS), "{line}");
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

/// Whoever has no standard output does not learn that all is well.
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

#[test]
fn what_is_skipped_of_an_output_without_positions_is_read() {
    same(&[
        "mkfifo pipe; exec 5<>pipe; printf abcdefghij >&5; @ if=in of=pipe bs=4 seek=2 count=1; head -c6 pipe",
        "@ if=in seek=3 | cat",
        "@ if=in seek=99999999999999999 | cat",
    ]);
}

#[test]
fn a_device_whose_offset_stays_where_it_is_gets_a_warning() {
    // It can be read by nobody, and its lseek(2) does nothing.
    if !requires(&[Need::Root, Need::Device("/dev/btrfs-control")]) {
        return;
    }
    same(&[
        "@ if=/dev/btrfs-control of=out conv=noerror,sync count=3 status=noxfer",
        "@ if=/dev/btrfs-control of=out conv=noerror,sync count=3 status=none",
    ]);
}

#[test]
fn options_are_found_wherever_they_stand() {
    same(&[
        "@ --help=1",
        "@ if=in --vers=1",
        "@ if=in -q --help",
        "@ if=in -- --help",
        "@ --versionx",
        "@ -",
        "@ if=in - --x --help",
    ]);
    for (line, start) in [
        ("@ if=in of=out --help", "Copy as dd does"),
        ("@ foo --he -q", "Copy as dd does"),
        ("@ if=in --version", "rdsk dd "),
        ("@ --v", "rdsk dd "),
    ] {
        let output = run(line, OURS);
        assert!(output.status.success() && output.stdout.starts_with(start.as_bytes()), "{line}: {output:?}");
    }
}
