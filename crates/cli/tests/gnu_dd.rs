//! `rdsk dd` against GNU dd: generated command lines have the same outputs, files, counts and exit codes.

mod both;
mod cache;
mod devices;
mod ends;
mod lines;
mod shell;

use both::Both;
use lines::Lines;
use rdsk_testkit::{Need, requires};

fn has_gnu_dd() -> bool {
    requires(&[Need::GnuDd])
}

/// Each test takes lines of its own, so that they run in parallel.
fn compare(seed: u64, count: usize) {
    if !has_gnu_dd() {
        return;
    }
    let both = Both::new();
    let mut lines = Lines::new(seed);
    let differing: Vec<String> = (0..count).filter_map(|_| both.difference(&lines.next_line())).collect();
    assert!(differing.is_empty(), "{} of {count} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn generated_lines_do_what_dd_does_first_half() {
    compare(1, 125);
}

#[test]
fn generated_lines_do_what_dd_does_second_half() {
    compare(2, 125);
}

/// What dd takes and measures nothing is refused, with the line that runs it and shows its I/O.
#[test]
fn what_is_not_taken_is_refused_with_the_line_that_does_it() {
    let both = Both::new();
    for operand in [
        "conv=ascii", "conv=ebcdic", "conv=ibm", "conv=block", "conv=unblock", "conv=lcase",
        "conv=notrunc,ucase", "conv=swab", "iflag=directory", "cbs=80",
    ] {
        let ran = both.rdsk(&[operand.into(), "if=a=b ~{x}".into(), "of=new".into()]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let (name, value) = operand.split_once('=').unwrap();
        let value = if value.contains(',') { format!("'{value}'") } else { value.to_owned() };
        let hint = format!("hint: rdsk watch -- dd {name}={value} if='a=b ~{{x}}' of=new\n");
        assert!(ran.said.contains(" is not taken: ") && ran.said.ends_with(&hint), "{ran:?}");
        assert!(!ran.files.contains_key("new"), "{ran:?}");
    }
}
