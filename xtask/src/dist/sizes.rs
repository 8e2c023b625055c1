//! Where the bytes of a program lie, by crate: the sizes of its symbols as nm lists them. What the linker took into a caller counts for
//! the caller's crate.

use crate::programs::text_of;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Crates that get a row of their own.
const MAX_ROWS: usize = 30;
/// Symbols that are no Rust path.
const FOREIGN: &str = "C (SQLite, glibc)";
/// Strings and tables to which the compiler gives no name of a crate.
const CONSTANTS: &str = "constants";

/// The symbols as nm prints them: place, size, kind, name.
pub(super) fn symbols(program: &Path) -> Result<String> {
    text_of(Command::new("nm").args(["--print-size", "--radix=d", "--demangle"]).arg(program))
}

/// A table of crates, the largest first, of a program that has so many bytes without its symbols.
pub(super) fn table(symbols: &str, program_bytes: u64) -> String {
    let mut crates: BTreeMap<&str, u64> = BTreeMap::new();
    for (bytes, name) in symbols.lines().filter_map(symbol) {
        *crates.entry(crate_of(name)).or_default() += bytes;
    }
    let named: u64 = crates.values().sum();
    let mut rows: Vec<(&str, u64)> = crates.into_iter().collect();
    rows.sort_by_key(|(name, bytes)| (std::cmp::Reverse(*bytes), *name));
    let others: u64 = rows.iter().skip(MAX_ROWS).map(|(_, bytes)| bytes).sum();
    rows.truncate(MAX_ROWS);
    rows.push(("other crates", others));
    rows.push(("without a symbol", program_bytes.saturating_sub(named)));
    let mut table = String::from("| crate | kB | % |\n|---|---:|---:|\n");
    for (name, bytes) in rows {
        let percent = bytes * 100 / program_bytes.max(1);
        writeln!(table, "| {name} | {} | {percent} |", bytes / 1000).expect("a String takes everything");
    }
    table
}

/// Size and name of a symbol that has bytes in the file; a line without a size has fewer words.
fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.splitn(4, ' ').skip(1);
    let (size, kind, name) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    (!kind.eq_ignore_ascii_case("b")).then_some((size, name))
}

/// The crate whose path stands first in the name, as `core` in `<u8 as core::fmt::Debug>::fmt`.
fn crate_of(name: &str) -> &str {
    let Some((head, _)) = name.split_once("::") else {
        return if name.starts_with("anon.") || name.starts_with('.') { CONSTANTS } else { FOREIGN };
    };
    // The demangler may show which of several builds of a crate it is: core[1a2b]::fmt.
    let head = head.strip_suffix(']').and_then(|head| head.rsplit_once('[')).map_or(head, |(name, _)| name);
    let start = head.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    // What belongs to a type of the language, such as <[u8]>::len.
    if head[start..].is_empty() { "core" } else { &head[start..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_crate_that_stands_first() {
        for (name, expected) in [
            ("core::fmt::write", "core"),
            ("<u8 as core::fmt::Debug>::fmt", "core"),
            ("<alloc::vec::Vec<rdsk_model::Cell> as serde::Serialize>::serialize", "alloc"),
            ("rdsk_report[1a2b]::short::draw", "rdsk_report"),
            ("<[u8]>::len", "core"),
            ("<[u8] as alloc::slice::Concat>::concat", "alloc"),
            ("sqlite3VdbeExec", FOREIGN),
            ("anon.1234.5", CONSTANTS),
        ] {
            assert_eq!(crate_of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_table_has_every_byte_once() {
        let symbols =
            "4096 3000 T core::fmt::write\n8192 1000 r anon.1.2\n9000 500 b zero::ed\n     U outside\n";
        let table = table(symbols, 10_000);
        assert!(table.contains("| core | 3 | 30 |\n| constants | 1 | 10 |"), "{table}");
        assert!(table.ends_with("| without a symbol | 6 | 60 |\n"), "{table}");
    }
}
