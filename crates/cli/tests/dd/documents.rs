//! Documents beside a copy: the Record and the page with figures, which never lie where the copy reads or writes.

use super::*;

#[test]
fn the_document_never_replaces_the_output() {
    let place = scratch();
    for document in ["out", "./out"] {
        let mut command =
            common::command(["dd", "--json", document, "if=/dev/zero", "of=out", "bs=1k", "count=1"]);
        let run = cli::run(
            {
                command.current_dir(place.path());
                command
            },
            SOON,
        );
        assert_eq!(run.status_code, Some(1), "{}", run.stderr);
        assert!(run.stderr.starts_with("error: --json names the output"), "{}", run.stderr);
    }
    common::holds_only(place.path(), &[]);
}

/// The document of the answer never takes the place of the copy, whatever name leads to it.
#[test]
fn the_document_never_replaces_the_copy() {
    let place = scratch();
    std::fs::write(place.path().join("in"), [7; 1000]).unwrap();
    std::os::unix::fs::symlink("later", place.path().join("link")).unwrap();
    let mut command = common::command(["dd", "--json", "later", "if=in", "of=link", "bs=100"]);
    let run = cli::run(
        {
            command.current_dir(place.path());
            command
        },
        SOON,
    );
    assert_eq!(run.status_code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("--json names the output of the copy"), "{}", run.stderr);
    assert!(!place.path().join("later").exists());

    let out = std::fs::File::create(place.path().join("out")).unwrap();
    let mut command = common::command(["dd", "--json", "-", "if=in", "of=/dev/stdout", "bs=100"]);
    let status = command.current_dir(place.path()).stdout(out).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(std::fs::read(place.path().join("out")).unwrap(), [0_u8; 0], "nothing was copied or written");
}

/// The page is that of the Record, also without an answer, and never lies where the copy writes.
#[test]
fn a_page_with_figures_is_written_beside_the_answer() {
    let place = scratch();
    let (first, again) = (place.path().join("one.html"), place.path().join("again.html"));
    let page = first.to_str().unwrap();
    asked(place.path(), &["--report", page], "if=/dev/zero of=out bs=64k count=16");
    let drawn = std::fs::read_to_string(&first).unwrap();
    assert!(drawn.contains("<figure id=\"dd"), "{} bytes without a figure", drawn.len());
    let json = place.path().join("record.json");
    let shown = common::rdsk(["report", json.to_str().unwrap(), "-o", again.to_str().unwrap()]);
    assert_eq!(shown.status_code, Some(0), "{}", shown.stderr);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), drawn);
    let dd = |words: &[&str]| {
        let mut command = common::command(std::iter::once("dd").chain(words.iter().copied()));
        command.current_dir(place.path());
        cli::run(command, SOON)
    };
    let silent =
        dd(&["--explain=off", "--report", "silent.html", "if=/dev/zero", "of=out", "bs=64k", "count=16"]);
    assert_eq!((silent.status_code, silent.stderr.lines().count()), (Some(0), 3), "{}", silent.stderr);
    assert!(place.path().join("silent.html").exists());
    for words in [
        &["--report", "out", "if=/dev/zero", "of=out", "count=1"][..],
        &["--report", "new", "if=/dev/zero", "of=./new", "count=1"],
        &["--report", "new", "--json", "./new", "if=/dev/zero", "of=out", "count=1"],
        &["--report", "-", "if=/dev/zero", "of=out", "count=1"],
        &["--report", "record.json", "if=/dev/zero", "of=out", "count=1"],
    ] {
        let refused = dd(words);
        assert_eq!(refused.status_code, Some(1), "{words:?}");
        assert_eq!(
            std::fs::metadata(place.path().join("out")).unwrap().len(),
            1 << 20,
            "{words:?}: untouched"
        );
    }
    assert!(!place.path().join("new").exists());
}

/// Whatever is wrong with the line, what was asked for as JSON is JSON. It never goes where the copy would.
#[test]
fn a_wrong_line_gives_a_record_that_says_why() {
    let place = scratch();
    let dd = |words: &[&str]| {
        let mut command = common::command(std::iter::once("dd").chain(words.iter().copied()));
        command.current_dir(place.path());
        let run = cli::run(command, SOON);
        assert_eq!(run.status_code, Some(1), "{words:?}: {}", run.stderr);
        run
    };
    for words in [
        &["--json", "-", "if=in", "of=out", "bs=x"][..],
        &["--json", "-", "if=in", "of=out", "nonsense=1"],
        &["--json=-", "--repeat", "0", "if=in", "of=out"],
        &["--json", "-", "--repeat", "2", "of=out"],
        &["--json", "-", "--report", "/nonexistent/page.html", "if=in", "of=out"],
    ] {
        let run = dd(words);
        let record = common::record(cli::json(&run));
        assert_eq!(record["status"], "failed", "{words:?}");
        let message = record["error"]["message"].as_str().unwrap();
        assert!(run.stderr.contains(message), "{words:?}: {message}: {}", run.stderr);
    }
    for json in ["out", "./out", "in"] {
        dd(&["--json", json, "if=in", "of=out", "bs=x"]);
    }
    dd(&["--json", "second", "--compare", "of=second bs=4k", "if=in", "of=out", "count=z"]);
    // Where the copy goes to standard output, its reader may write what it gets to a disk.
    for words in [
        &["--json", "-", "if=in"][..],
        &["--json", "-", "if=in", "bs=x"],
        &["--json", "-", "if=in", "of=/dev/stdout", "bs=x"],
        &["--json", "/dev/stdout", "if=in", "bs=x"],
        &["--json=-", "--repeat", "x", "if=in"],
    ] {
        let run = dd(words);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{words:?}: {}", run.stdout);
    }
    common::holds_only(place.path(), &[]);
    dd(&["--json", "r.json", "if=in", "of=out", "bs=x"]);
    common::holds_only(place.path(), &["r.json"]);
}
