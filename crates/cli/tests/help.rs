//! The help texts and the version, word by word.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{self, rdsk};
use rdsk_testkit::cli;
use std::process::{Command, Stdio};

#[test]
fn help_texts() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

#[test]
fn help_is_narrow_and_plain() {
    for line in [
        &["--help"][..],
        &["run", "--help"],
        &["paths", "--help"],
        &["stream", "-h"],
        &["align", "-h"],
        &["info", "-h"],
    ] {
        let run = rdsk(line);
        assert_eq!(run.status_code, Some(0));
        assert_eq!(run.stderr, "");
        for text in run.stdout.lines() {
            assert!(text.chars().count() <= 80, "{line:?}: {text}");
            assert!(!text.contains('\u{1b}'), "{line:?}: {text}");
        }
    }
}

#[test]
fn the_version_is_one_line() {
    let run = rdsk(["--version"]);
    assert_eq!((run.status_code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout, format!("rdsk {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_has_left_is_a_quiet_end() {
    for line in ["--help", "run --help", "info"] {
        let script = format!("{} {line}; echo $? >&2", env!("CARGO_BIN_EXE_rdsk"));
        let said = || {
            // A pipe whose reader is gone before the first byte.
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
            let output = shell.spawn().unwrap().wait_with_output().unwrap();
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        // `info` looks at every device of the machine, and one that another program takes away meanwhile is an error.
        let said = (0..5).map(|_| said()).find(|said| !said.starts_with("error: /dev/"));
        assert_eq!(said.as_deref(), Some("0\n"), "{line}");
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let mut command = common::command(["--help"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write to standard output"));
}

#[test]
fn an_unknown_locale_and_a_narrow_terminal_change_nothing() {
    let mut command = common::command(["run", "--help"]);
    command.env("COLUMNS", "20").env("LC_ALL", "xx_YY").env("CLICOLOR_FORCE", "1");
    assert_eq!(cli::run(command, common::SOON).stdout, rdsk(["run", "--help"]).stdout);
}

/// What a newcomer copies first measures, from a clone and without anything installed.
#[test]
fn the_readme_begins_with_the_command_that_measures() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (_, block) = readme.split_once("```sh\n").unwrap();
    assert_eq!(block.lines().next(), Some("cargo run --release -- run"));
}
