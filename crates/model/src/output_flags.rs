//! The flags of a command line that say where the answer goes, how it looks or what it is called: nothing of what is measured. Two
//! command lines that differ in these alone ask the same.

/// A flag of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputFlag {
    /// Its long name, without dashes.
    pub name: &'static str,
    /// Its short name, if it has one.
    pub short: Option<char>,
    /// Whether a value follows it.
    pub value: FlagValue,
}

/// Whether a value follows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are what their names say")]
pub enum FlagValue {
    None,
    One,
}

/// All of them.
pub const OUTPUT_FLAGS: &[OutputFlag] = &[
    one("json"),
    switch("json-compact"),
    one("markdown"),
    one("csv"),
    one("openmetrics"),
    one("report"),
    switch("details"),
    switch("dry-run"),
    one("label"),
    one("resume"),
    one("history"),
    switch("no-history"),
    OutputFlag { short: Some('q'), ..switch("quiet") },
    one("color"),
    switch("ascii"),
];

const fn one(name: &'static str) -> OutputFlag {
    OutputFlag { name, short: None, value: FlagValue::One }
}

const fn switch(name: &'static str) -> OutputFlag {
    OutputFlag { name, short: None, value: FlagValue::None }
}

/// The words of a command line without its flags of output and their values; what follows a `--` stays.
pub fn without_output(words: &[String]) -> Vec<&str> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (flagged, rest) = words.split_at(end);
    let mut kept = Vec::new();
    let mut flagged = flagged.iter();
    while let Some(word) = flagged.next() {
        match output_flag(word) {
            None => kept.push(word.as_str()),
            Some(flag) if flag.value == FlagValue::One && !word.contains('=') => drop(flagged.next()),
            Some(_) => {}
        }
    }
    kept.extend(rest.iter().map(String::as_str));
    kept
}

/// The flag that a word is, with a value behind `=` or without.
fn output_flag(word: &str) -> Option<&'static OutputFlag> {
    let bare = word.split('=').next().unwrap_or(word);
    let is_it = |flag: &&OutputFlag| match (bare.strip_prefix("--"), bare.strip_prefix('-')) {
        (Some(name), _) => name == flag.name,
        (None, Some(letters)) => flag.short.is_some_and(|short| letters.chars().eq([short])),
        (None, None) => false,
    };
    OUTPUT_FLAGS.iter().find(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_what_is_measured_stays() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            without_output(&words).join(" ")
        };
        assert_eq!(
            of("run /dev/sda --json a.json --budget 20s -q --report=x.html"),
            "run /dev/sda --budget 20s"
        );
        assert_eq!(of("run --csv x.csv --rw read --details --markdown x"), "run --rw read");
        assert_eq!(of("run --iodepth 4 -- --json x"), "run --iodepth 4 -- --json x");
        assert_eq!(of("run --jsons x -p - quiet json"), "run --jsons x -p - quiet json");
        assert_eq!(of("run --json"), "run");
    }
}
