//! Rules for the sources: who may write, print, use `unsafe`, access the machine. Each rule is a pure function of one file's
//! tokens; the parent module walks the tree.

use super::tokens::{Token, occurrences, path_uses, tokens};

/// One source file, as the rules see it.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    /// Path from the root of the workspace: `crates/stats/src/lib.rs`.
    pub(crate) path: &'a str,
    /// Directory of the room: `stats`, `cli`; `xtask` for itself.
    pub(crate) room: &'a str,
    /// Whether the whole file is test code.
    pub(crate) is_test: bool,
    /// Its tokens.
    pub(crate) tokens: &'a [Token],
}

/// The files outside `targets` that write something of their own, each with what; none of them ever opens a target of a plan.
const WRITERS: &[(&str, &str)] = &[
    (
        "crates/cli/src/json_file.rs",
        "the document that --json requests, never a block device and never a target",
    ),
    ("crates/cli/src/html_page/files.rs", "figures as new files of a directory, none of which replaces one"),
    ("crates/cli/src/history/keep.rs", "the Record of a run that the history has no room for, as a new file"),
    ("crates/store/src/file.rs", "the history itself, which is created empty and never replaced"),
    ("crates/dd/src/open.rs", "the output of a copy, as dd opens it, never a block device"),
];
/// Rooms that may write anything: the one that claims targets, and the two that are not part of the program.
const WRITING_ROOMS: &[&str] = &["targets", "testkit", "xtask"];
/// Rooms that make the calls for which no library has a safe wrapper.
const UNSAFE_ROOMS: &[&str] = &["sys", "engine"];
/// Rooms that talk to people.
const PRINTING_ROOMS: &[&str] = &["cli", "testkit", "xtask"];
/// Rooms that are functions of their arguments.
const PURE_ROOMS: &[&str] =
    &["units", "stats", "model", "disk", "analysis", "finding", "compare", "report", "exchange", "html"];

/// Spellings of "open for writing" and of changing a directory.
const WRITING: &str = ".write(true) .append(true) .truncate(true) OpenOptions File::create File::create_new File::options \
                       fs::write fs::copy fs::rename fs::remove_file fs::remove_dir_all \
                       OFlags::WRONLY OFlags::RDWR OFlags::CREATE O_WRONLY O_RDWR O_CREAT";
const PRINTING: &str = "print! println! eprint! eprintln! dbg! stdout() stderr()";
/// What a pure room does not name: modules of `std` that reach the machine; clocks, and crates that reach it.
const IMPURE_STD: &[&str] = &["fs", "net", "process", "env", "os"];
const IMPURE: &str = "Instant::now SystemTime thread::sleep rustix:: libc:: io_uring::";

/// Every violation in one file, as `path:line: what`.
pub(crate) fn violations(source: &Source<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    if !WRITING_ROOMS.contains(&source.room) && !WRITERS.iter().any(|(path, _)| *path == source.path) {
        violations.extend(program_uses(source, WRITING, "opens or changes a file; only targets does"));
    }
    if !PRINTING_ROOMS.contains(&source.room) {
        violations.extend(program_uses(source, PRINTING, "prints; only cli talks to people"));
    }
    if !UNSAFE_ROOMS.contains(&source.room) {
        // Tests are no exception here: an unsound test proves nothing.
        let places = occurrences(source.tokens, &["unsafe"]);
        violations
            .extend(places.into_iter().map(|at| complaint(source, at, "is unsafe; only sys and engine are")));
    }
    if PURE_ROOMS.contains(&source.room) {
        violations.extend(impurities(source));
    }
    violations
}

fn impurities(source: &Source<'_>) -> Vec<String> {
    let why = "reaches the machine or a clock; this room is a function of its arguments";
    let mut violations = program_uses(source, IMPURE, why);
    for segment in IMPURE_STD {
        violations.extend(complaints(source, path_uses(source.tokens, "std", segment), why));
    }
    violations
}

/// Complaints about each of the spellings, which stand in one text with spaces between them.
fn program_uses(source: &Source<'_>, spellings: &str, why: &str) -> Vec<String> {
    let places = |spelling: &str| {
        let pattern = tokens(spelling).expect("a spelling is Rust");
        occurrences(source.tokens, &pattern.iter().map(|token| token.text.as_str()).collect::<Vec<_>>())
    };
    spellings.split_whitespace().flat_map(|spelling| complaints(source, places(spelling), why)).collect()
}

/// Complaints about the places that are no tests.
fn complaints(source: &Source<'_>, places: Vec<usize>, why: &str) -> Vec<String> {
    let in_program = places.into_iter().filter(|at| !source.is_test && !source.tokens[*at].test);
    in_program.map(|at| complaint(source, at, why)).collect()
}

fn complaint(source: &Source<'_>, at: usize, why: &str) -> String {
    let here: String = source.tokens[at..].iter().take(4).map(|token| token.text.as_str()).collect();
    format!("{}:{}: `{here}…` {why}", source.path, source.tokens[at].line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(room: &str, text: &str) -> Vec<String> {
        let tokens = tokens(text).unwrap();
        let path = format!("crates/{room}/src/lib.rs");
        violations(&Source { path: &path, room, is_test: false, tokens: &tokens })
    }

    /// A text that is wrong in one room and right in another, and right in both as a test.
    fn check(wrong_room: &str, right_room: &str, body: &str) {
        let program = format!("fn f() {{ {body} }}");
        assert_eq!(found(wrong_room, &program).len(), 1, "{wrong_room}: {program}");
        assert!(found(right_room, &program).is_empty(), "{right_room}: {program}");
        assert!(
            found(wrong_room, &format!("#[cfg(test)] mod tests {{ {program} }}")).is_empty(),
            "test: {program}"
        );
    }

    #[test]
    fn only_targets_writes() {
        for body in [
            "open(path).write(true);", "OpenOptions::new();", "File::create(path);",
            "fs::write(path, data);", "open(path, OFlags::RDWR);", "open(path, libc::O_WRONLY);",
            "fs::remove_file(path);",
        ] {
            check("engine", "targets", body);
        }
    }

    #[test]
    fn every_exception_still_exists() {
        for (path, _) in WRITERS {
            assert!(crate::root().join(path).exists(), "{path} is gone; so is its exception");
        }
    }

    #[test]
    fn only_cli_prints() {
        for body in ["println!(\"{x}\");", "eprintln!();", "write(io::stdout(), x);", "dbg!(x);"] {
            check("engine", "cli", body);
        }
    }

    #[test]
    fn only_sys_and_engine_are_unsafe_and_tests_are_no_exception() {
        assert_eq!(found("observe", "fn f() { unsafe { g() } }").len(), 1);
        assert_eq!(found("observe", "#[cfg(test)] mod tests { fn f() { unsafe { g() } } }").len(), 1);
        assert!(found("sys", "fn f() { unsafe { g() } }").is_empty());
        assert!(found("observe", "#![deny(unsafe_code)] // unsafe").is_empty());
    }

    #[test]
    fn pure_rooms_see_neither_machine_nor_clock() {
        for body in
            ["std::fs::read(p);", "std::time::Instant::now();", "rustix::time::x();", "let t: SystemTime;"]
        {
            check("finding", "observe", body);
        }
        assert_eq!(found("stats", "use std::{collections, net::TcpStream};").len(), 1);
        assert!(found("stats", "use std::{collections, time::Duration};").is_empty());
    }

    #[test]
    fn complaints_name_the_place() {
        assert_eq!(
            found("stats", "\nfn f() {\n    println!();\n}"),
            vec!["crates/stats/src/lib.rs:3: `println!()…` prints; only cli talks to people"]
        );
    }
}
