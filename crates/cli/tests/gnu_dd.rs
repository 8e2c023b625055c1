//! `rdsk dd` against GNU dd: generated command lines have the same outputs, files, counts, exit codes and messages.

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
    compare(1, 250);
}

#[test]
fn generated_lines_do_what_dd_does_second_half() {
    compare(2, 250);
}

#[test]
fn conversions_of_characters_are_refused_in_words() {
    let both = Both::new();
    for name in ["ascii", "ebcdic", "ibm", "block", "unblock", "lcase", "ucase"] {
        let ran = both.rdsk(&[format!("conv={name}"), "if=in".into(), "of=new".into()]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("conv={name} is not supported")), "{ran:?}");
        assert!(!ran.files.contains_key("new"), "{ran:?}");
    }
}
